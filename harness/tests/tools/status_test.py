# SPDX-License-Identifier: MIT
"""plots/status.py: whether a rung is faster than its parent follows from the runs alone."""

from __future__ import annotations

import json
import unittest
from typing import Any

import support
import synthetic

import ladder
import status

CACHE = {"heads": 32, "kv_heads": 8, "seq_q": 1, "seq_kv": 8192}
LENGTHS = {"batch": 64, "seq_kv": 32768, "lengths": [100 * n for n in range(1, 65)]}


class StatusTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.listing = synthetic.catalogue(("ampere",), 4)
        self.rows: list[dict[str, Any]] = []

    def time(self, id: str, tflops: float, shape: dict[str, Any] | None = None, **extra: Any) -> None:
        at = synthetic.problem(8192, causal=extra.pop("causal", False)) | (shape or {})
        extra = {"variant": "64x64w4"} | extra
        self.rows.append(synthetic.timed_row("rung", id, at, tflops, **extra))

    def of(self, id: str, runs: int = 5) -> str:
        folder = self.folder / "ladder"
        for path in folder.glob("*"):
            path.unlink()
        synthetic.write_runs(folder, synthetic.document(self.rows), runs=runs)
        return status.statuses(ladder.Results.load(folder), self.catalogue())[id].text

    def catalogue(self) -> ladder.Catalogue:
        return ladder.Catalogue.from_json(json.dumps(self.listing), "synthetic")

    def change(self, tflops: float, runs: int = 5) -> str:
        self.rows = []
        self.time("01", 100.0)
        self.time("02", tflops)
        return self.of("02", runs)

    def test_where_the_interval_is(self) -> None:
        """The quotients vary by 0.2 %: their mean is known to 0.1 %."""
        self.assertEqual(self.change(100.5), "faster")
        self.assertEqual(self.change(99.5), "slower")
        self.assertEqual(self.change(100), "flat")

    def test_fewer_runs_say_less(self) -> None:
        self.assertEqual(self.change(100.1, runs=20), "faster")
        self.assertEqual(self.change(100.1, runs=1), "flat")

    def test_a_single_run_says_nothing(self) -> None:
        self.change(150, runs=1)
        folder = self.folder / "ladder"
        (folder / "card2_run1.json").unlink()
        for path in (folder, folder / "card1_run1.json"):
            found = status.statuses(ladder.Results.load(path), self.catalogue())
            self.assertEqual((found["01"].text, found["02"].text), ("first", "not measured"))

    def test_a_parent_without_a_time(self) -> None:
        self.time("01", 100.0)
        self.time("03", 110.0)
        self.assertEqual(self.of("03"), "not measured")  # its parent is 02

    def test_the_faster_of_two_parents_counts(self) -> None:
        self.time("01", 100.0)
        self.time("02", 110.0, variant="128x64w4")
        self.assertEqual(self.of("02"), "faster")
        self.time("01", 120.0, variant="128x64w4", ablation=True)
        self.assertEqual(self.of("02"), "slower")

    def test_a_mask_that_the_parent_does_not_take(self) -> None:
        self.listing["rungs"][1]["causal"] = True
        self.time("01", 100.0)
        self.time("02", 98.0)
        self.assertEqual(self.of("02"), "slower")
        self.time("02", 90.0, causal=True)  # half the work, so 1.8 times as fast
        self.assertEqual(self.of("02"), "faster")

    def test_a_mask_that_the_parent_takes(self) -> None:
        for rung in self.listing["rungs"][:2]:
            rung["causal"] = True
        self.time("01", 100.0)
        self.time("02", 101.0)
        self.time("01", 90.0, causal=True)
        self.time("02", 86.0, causal=True)
        self.assertEqual(self.of("02"), "slower")

    def decoded(self) -> None:
        for rung in self.listing["rungs"]:
            rung |= {"family": ladder.DECODE, "e4m3": rung["id"] == "03"}
        for batch in (1, 16):
            self.time("01", 1.0, CACHE | {"batch": batch})
            self.time("02", 0.98, CACHE | {"batch": batch})

    def test_random_lengths_count_where_both_were_timed(self) -> None:
        self.decoded()
        self.time("02", 1.1, CACHE | LENGTHS)
        self.assertEqual(self.of("02"), "slower")
        self.time("01", 1.0, CACHE | LENGTHS)
        self.assertEqual(self.of("02"), "faster")

    def test_random_lengths_of_a_cache_of_another_type(self) -> None:
        self.decoded()
        self.time("02", 1.0, CACHE | LENGTHS)
        self.time("03", 1.2, CACHE | LENGTHS | {"cache": ladder.E4M3})
        self.assertEqual(self.of("03"), "faster")
        self.time("04", 1.3, CACHE | LENGTHS)
        self.assertEqual(self.of("04"), "faster")

    def test_first_and_not_measured(self) -> None:
        self.time("01", 100.0)
        self.assertEqual((self.of("01"), self.of("02")), ("first", "not measured"))
        self.rows = []
        self.time("02", 100.0)
        self.assertEqual((self.of("01"), self.of("02")), ("not measured", "not measured"))

    def test_a_branch_is_what_nothing_is_built_on(self) -> None:
        for id, tflops in (("01", 100.0), ("02", 110.0), ("03", 120.0), ("04", 120.0)):
            self.time(id, tflops)
        self.assertEqual([self.of(id) for id in ("02", "03", "04")], ["faster", "faster", "flat"])
        self.listing["rungs"][3]["parent"] = "02"  # beside 03; the last one is no branch
        texts = ["faster", "faster, branch", "faster"]
        self.assertEqual([self.of(id) for id in ("02", "03", "04")], texts)


if __name__ == "__main__":
    unittest.main()
