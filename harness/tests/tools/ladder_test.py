# SPDX-License-Identifier: MIT
"""plots/ladder.py: reading results and the catalogue, comparing a rung with its parent."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path

import support
import synthetic

import ladder

DEEP = 200_000
MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)


class ProblemTest(unittest.TestCase):
    def test_parse(self) -> None:
        problem = ladder.Problem.parse("2,3,512,64,causal,float32")
        self.assertEqual((problem.batch, problem.heads, problem.head_dim), (2, 3, 64))
        self.assertEqual((problem.seq_q, problem.seq_kv), (512, 512))
        self.assertTrue(problem.causal)
        self.assertEqual(problem.label, "B=2 H=3 N=512 D=64, float32, causal")

    def test_what_models_have(self) -> None:
        problem = ladder.Problem.parse("2,6/2,512,64,bfloat16,bnhd,sinks,window=63/70")
        words = "bfloat16, non-causal, a window of 63 before and 70 behind, sinks, [B, N, H, D]"
        self.assertEqual(problem.label, f"B=2 H=6/2 N=512 D=64, {words}")
        row = synthetic.problem(512) | {"batch": 2, "heads": 6, "kv_heads": 2, "head_dim": 64}
        row |= {"dtype": "bfloat16", "window_left": 63, "window_right": 70, "sinks": True}
        q, k = [512 * 6 * 64, 64, 6 * 64], [512 * 2 * 64, 64, 2 * 64]
        self.assertEqual(ladder.Problem.from_json(row | {"strides": [*q, *k, *k, *q]}), problem)
        other = ladder.Problem.from_json(row | {"strides": [*q, *k, *k, 0, *q[1:]]})
        self.assertTrue(other.label.endswith(", sinks, strided"))
        self.assertTrue(problem.of_a_model and not MAIN.of_a_model)
        causal = ladder.Problem.parse("1,1,512,64,causal,window=1023")
        self.assertEqual((causal.window_left, causal.window_right), (1023, -1))

    def test_inputs(self) -> None:
        wide = ladder.Problem.parse("16,16,8192,128,spread=8")
        self.assertEqual((wide.inputs, wide.spread), ("normal", 8))
        self.assertTrue(wide.label.endswith("non-causal, spread 8"))
        rising = ladder.Problem.parse("16,16,8192,128,causal,rising,spread=0.5")
        self.assertTrue(rising.label.endswith(", causal, rising, spread 0.5"))
        self.assertEqual(rising.plain, ladder.Problem.parse("16,16,8192,128,causal"))
        self.assertEqual(rising.with_seq(512).inputs, "rising")

    def test_a_row_says_what_its_inputs_are_unless_they_are_usual(self) -> None:
        plain = synthetic.problem(8192)
        self.assertEqual(ladder.Problem.from_json(plain), MAIN)
        other = ladder.Problem.from_json(plain | {"inputs": "rising", "spread": 4})
        self.assertEqual(other, ladder.Problem.parse("16,16,8192,128,rising,spread=4"))

    def test_bad_text_is_named(self) -> None:
        odd = ("1,2,3,4,odd", "1,2,3,4,spread=wide", "1,2,3,4,rising,spike", "1,2,3,4,normal", "1,2,3,4,window=x")
        for text in ("", "1,2,3", "1,2,3,x", *odd):
            with self.assertRaisesRegex(ladder.LadderError, f"problem '{text}'"):
                ladder.Problem.parse(text)


class FilesTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        listing, results = synthetic.write(self.folder, ("ampere",), 7)
        self.catalogue = ladder.Catalogue.load(listing)
        self.results = ladder.Results.load(results)

    def test_rows(self) -> None:
        row = self.results.rung("02", MAIN)
        assert row is not None
        self.assertFalse(row.ablation)
        slow, fast = row.spread
        self.assertLess(slow, row.tflops)
        self.assertGreater(fast, row.tflops)
        self.assertIsNone(self.results.rung("02", MAIN.with_seq(77)))
        self.assertIsNone(self.results.peer("triton", MAIN))
        self.assertEqual(self.results.peers(), ["fa2", "cudnn"])

    def test_ceiling_prefers_the_row_beside_the_problem(self) -> None:
        row = self.results.matmul(MAIN)
        assert row is not None
        self.assertEqual((row.id, row.problem), ("cublas", MAIN))

    def test_step_separates_idea_and_tile(self) -> None:
        rung = self.catalogue.find("02")
        assert rung is not None
        step = ladder.step_of(rung, self.catalogue, self.results, MAIN)
        assert step is not None and step.parent_at_tile is not None
        self.assertAlmostEqual(step.idea_factor, 1 / 0.8)
        self.assertGreater(step.factor, 6)

    def test_step_at_the_same_tile(self) -> None:
        rung = self.catalogue.find("03")
        assert rung is not None
        step = ladder.step_of(rung, self.catalogue, self.results, MAIN)
        assert step is not None
        self.assertIsNone(step.parent_at_tile)
        self.assertEqual(step.factor, step.idea_factor)

    def test_no_step_without_a_parent(self) -> None:
        rung = self.catalogue.find("01")
        assert rung is not None
        self.assertIsNone(ladder.step_of(rung, self.catalogue, self.results, MAIN))

    def test_catalogue_hash_follows_what_is_shown(self) -> None:
        other = synthetic.catalogue(("ampere",), 7)
        other["rungs"][0]["why_large"] = "a reason"
        same = ladder.Catalogue.from_json(json.dumps(other), "x")
        self.assertEqual(same.sha256, self.catalogue.sha256)
        for field in ("idea", "name"):
            other = synthetic.catalogue(("ampere",), 7)
            other["rungs"][0][field] = "01_other"
            different = ladder.Catalogue.from_json(json.dumps(other), "x")
            self.assertNotEqual(different.sha256, self.catalogue.sha256, field)

    def test_bad_files_are_one_clear_line(self) -> None:
        path = self.folder / "bad.json"
        texts = ("", "[]", "{}", "[" * DEEP, '{"rungs":' + '{"a":' * DEEP, '{"rungs": [7]}')
        unnamed = ('{"schema": 1, "rows": []}', '{"schema": 1, "rows": [], "device": {"name": 1}}')
        rows = ('{"schema": 2, "rows": []}', '{"schema": 1, "rows": [{}]}', *unnamed)
        for text in texts + rows:
            path.write_text(text)
            for load in (ladder.Results.load, ladder.Catalogue.load):
                with self.assertRaises(ladder.LadderError) as caught:
                    load(path)
                self.assertNotIn("\n", str(caught.exception))
                self.assertIn("bad.json", str(caught.exception))
                self.assertLess(len(str(caught.exception)), 300)
        with self.assertRaisesRegex(ladder.LadderError, "cannot read"):
            ladder.Results.load(self.folder / "none.json")

    def test_rows_of_other_types_are_one_clear_line(self) -> None:
        changes = (
            ({"problem": synthetic.problem(8192) | {"seq_q": "many"}}, "seq_q is 'many'"),
            ({"problem": synthetic.problem(8192) | {"batch": True}}, "batch is True"),
            ({"time_ms": None}, "not subscriptable"),
            ({"tflops": float("inf")}, "the times of 01 are not finite"),
        )
        for change, says in changes:
            document = json.loads(self.results.path.read_text())
            row = next(row for row in document["rows"] if row["id"] == "01")
            row |= change
            path = self.folder / "typed.json"
            path.write_text(json.dumps(document))
            with self.assertRaisesRegex(ladder.LadderError, f"typed.json is not a .*{says}"):
                ladder.Results.load(path)

    def test_what_is_no_file(self) -> None:
        os.mkfifo(self.folder / "pipe")
        for path in (Path("/dev/zero"), self.folder / "pipe"):
            with self.assertRaisesRegex(ladder.LadderError, f"^cannot read {path}: not a regular"):
                ladder.Results.load(path)


class WordsTest(unittest.TestCase):
    def test_percent(self) -> None:
        minus, times = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
        cases = {1.234: "+23 %", 1.0: "+0.0 %", 0.958: f"{minus}4.2 %", 7.1: f"{times} 7.1"}
        for factor, text in cases.items():
            self.assertEqual(ladder.percent(factor), text)


if __name__ == "__main__":
    unittest.main()
