# SPDX-License-Identifier: MIT
"""The result files: the schema itself, what it refuses, and every committed measurement."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import hashlib
import json
import subprocess
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import support
import synthetic
import ladder
import limits
from files import document_text
from page import BUILD
from flash_ladder._problem import Problem

jsonschema = support.need("jsonschema")

COLUMNS = ("results", "limits", "timeline")  # what build/fa_schema knows
SCHEMAS = {
    "sanitizer": support.REPOSITORY / "scripts" / "sanitize.schema.json",
    "ncu": support.REPOSITORY / "scripts" / "profile.schema.json",
    "sass": support.REPOSITORY / "scripts" / "sass.schema.json",
}
COMMITTED = support.REPOSITORY / "plots" / "results"


@functools.cache
def schema(kind: str) -> Any:
    if kind in SCHEMAS:
        return json.loads(SCHEMAS[kind].read_text(encoding="utf-8"))
    program = BUILD / "fa_schema"
    if not program.is_file():
        raise unittest.SkipTest(f"{program} is not built")
    return json.loads(subprocess.check_output([program, kind]))


def validator(kind: str) -> Any:
    return jsonschema.Draft202012Validator(schema(kind))


def errors(kind: str, document: Any) -> list[str]:
    found = validator(kind).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]


def lines(text: str) -> list[Any]:
    """Each line as a value where it is a row, so that two spellings of a number are equal."""
    rows = (line.strip().removesuffix(",") for line in text.splitlines())
    return [
        json.loads(row) if row.endswith("}") and row != "}" and row[0] == "{" else row
        for row in rows
    ]


class SchemaTest(unittest.TestCase):
    def test_schemas_are_schemas(self) -> None:
        for kind in (*SCHEMAS, *COLUMNS):
            jsonschema.Draft202012Validator.check_schema(validator(kind).schema)

    def test_synthetic_results_are_valid(self) -> None:
        self.assertEqual(errors("results", synthetic.results(synthetic.catalogue())), [])

    def test_committed_files_have_a_row_a_line(self) -> None:
        for path in committed_files():
            text = path.read_text(encoding="utf-8")
            with self.subTest(path.name):
                self.assertEqual(len(lines(text)), len(lines(document_text(json.loads(text)))))


class ProblemTest(unittest.TestCase):
    def test_python_has_the_fields_of_a_problem(self) -> None:
        names = {each.name for each in dataclasses.fields(Problem)}
        row = schema("results")["$defs"]["row"]["properties"]
        self.assertEqual(names | {"inputs", "spread"}, set(row["problem"]["properties"]))


class ProgramTest(unittest.TestCase):
    """What fa explain prints."""

    def test_rows_with_counts_and_bounds(self) -> None:
        fa = BUILD / "fa"
        if not fa.is_file():
            self.skipTest(f"{fa} is not built")
        words = [fa, "explain", "01", "a5", "32", "--seq", "128", "--by-line", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        document = json.loads(done.stdout)
        self.assertEqual(lines(done.stdout), lines(document_text(document)))
        self.assertEqual(errors("results", document), [])
        self.assertEqual([row["status"] for row in document["rows"]], ["ok", "ok", "ok"])
        (row,) = (row for row in document["rows"] if row["id"] == "a5")
        bound = row["bound"]
        self.assertEqual(len(bound["launches"]), 2)
        for wrong in ({"resource": "luck"}, {"share": 1.5}, {"launches": []}, {"clocks": 0}):
            row["bound"] = bound | wrong
            self.assertNotEqual(errors("results", document), [], wrong)


class SampleTest(unittest.TestCase):
    """What bench_test wrote."""

    def test_it_is_valid_and_damaged_copies_are_not(self) -> None:
        file = BUILD / "harness/tests/bench/sample_results.json"
        if not file.is_file():
            self.skipTest("bench_test did not run")
        sample = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(errors("results", sample), [])
        two = sample["rows"][0]["launches"]
        for *path, last, value in (
            ("generator", "git_dirty", "no"),
            ("device", "kind", "cpu"),
            ("rows", 0, "problem", "heads", 0),
            ("rows", 0, "time_ms", "median", 0),
            ("rows", 0, "launches", 1, "time_ms", "median", -1),
            ("rows", 0, "launches", 1, "resources", None),
            ("rows", 0, "launches", two[:1]),
            ("rows", 1, "launches", two),  # it was not timed
            ("rows", 1, "tflops", 12.0),
            ("rows", 4, "copy_bytes", 1),  # a matrix product is no copy
            ("rows", 5, "tflops", 1.0),
            ("rows", 5, "gbs", None),
        ):
            damaged = copy.deepcopy(sample)
            node = functools.reduce(lambda within, key: within[key], path, damaged)
            node[last] = value
            self.assertNotEqual(errors("results", damaged), [], (*path, last, value))


class SweepTest(unittest.TestCase):
    """What fa tune writes: rows of one rung at many tiles, and the static file."""

    def test_sweep_rows(self) -> None:
        document = synthetic.sweep()
        self.assertEqual(errors("results", document), [])
        used = document["rows"][0]["resources"]
        for limited_by in (None, ["warps", "blocks"]):
            used["limited_by"] = limited_by
            self.assertEqual(errors("results", document), [])
        for limited_by in ([], ["luck"], ["warps", "warps"], "warps"):
            used["limited_by"] = limited_by
            self.assertNotEqual(errors("results", document), [], limited_by)


class LimitsTest(unittest.TestCase):
    """What fa limits writes."""

    def test_file(self) -> None:
        document = synthetic.limits()
        self.assertEqual(errors("limits", document), [])
        unsupported = {"status": "unsupported", "reason": "wgmma exists on 9.0 alone"}
        nothing = dict.fromkeys(("iterations", "work", "time_ms", "rate", "rate_back_to_back"))
        document["rows"][0] |= unsupported | nothing
        self.assertEqual(errors("limits", document), [])
        for change in (
            {"rate": 1.0},
            {"reason": ""},
            {"status": "ok"},
            {"unit": "FLOPS"},
            {"x": 1},
        ):
            damaged = copy.deepcopy(document)
            damaged["rows"][0] |= change
            self.assertNotEqual(errors("limits", damaged), [], change)


class RefusalTest(unittest.TestCase):
    """Each change makes a valid document wrong."""

    def refuses(self, change: Callable[[dict[str, Any]], object]) -> None:
        document = copy.deepcopy(synthetic.results(synthetic.catalogue()))
        change(document)
        self.assertNotEqual(errors("results", document), [])

    def row(self, **changes: Any) -> None:
        self.refuses(lambda document: document["rows"][0].update(changes))

    def test_times_where_there_must_be_none(self) -> None:
        self.refuses(lambda document: document["device"].update(kind="vm"))
        for status in ("incorrect", "unsupported", "out_of_memory", "error"):
            self.row(status=status, reason="it did not work")

    def test_a_vm_row_without_a_time_is_fine(self) -> None:
        document = copy.deepcopy(synthetic.results(synthetic.catalogue()))
        document["device"].update(kind="vm", sms=None, memory=None, l2=None)
        del document["policy"]["rounds"], document["policy"]["l2"]
        times = [
            name for name in synthetic.MEASURED if name not in ("check", "resources", "peak_bytes")
        ]
        for row in document["rows"]:
            row.update(dict.fromkeys(times))
        self.assertEqual(errors("results", document), [])

    def test_status_and_reason(self) -> None:
        self.row(status="good")
        self.row(reason="ok rows have no reason")
        self.row(status="error", reason="")

    def test_unverified_or_incomplete(self) -> None:
        self.row(check=None)
        self.row(time_ms=None)
        self.row(tflops=None)
        self.row(tflops=-1)
        self.row(problem={"batch": 1})

    def test_unknown_fields(self) -> None:
        self.row(speed=1)
        self.refuses(lambda document: document.update(notes="x"))
        self.refuses(lambda document: document["policy"].update(mood="good"))

    def test_a_gpu_has_a_size_and_a_policy(self) -> None:
        self.refuses(lambda document: document["device"].update(sms=None))
        self.refuses(lambda document: document["policy"].pop("rounds"))

    def test_kinds(self) -> None:
        self.row(kind="peer")
        self.row(matmul=[8, 8, 8])
        self.refuses(lambda document: document["rows"][0].pop("ablation"))

    def test_another_version(self) -> None:
        self.refuses(lambda document: document.update(schema=2))


def committed_files() -> list[Path]:
    return sorted(COMMITTED.rglob("*.json"))


class CommittedTest(unittest.TestCase):
    def test_every_file_is_valid_and_from_a_clean_tree(self) -> None:
        for path in committed_files():
            with self.subTest(path=path.name):
                document = json.loads(path.read_text(encoding="utf-8"))
                kind = document.get("kind", "results")
                self.assertIn(kind, (*SCHEMAS, *COLUMNS))
                self.assertEqual(errors(kind, document), [])
                self.assert_measured_what_a_commit_has(document["generator"])
                self.assertNotEqual(document["generator"]["git_sha"], "unknown")

    def assert_measured_what_a_commit_has(self, generator: dict[str, Any]) -> None:
        """A clean tree, or one whose measured files are those of the commit by their hashes."""
        if generator["git_dirty"] is False:
            return
        self.assertTrue(generator["sources_sha256"])
        for name, digest in generator["sources_sha256"].items():
            command = [
                "git",
                "-C",
                str(support.REPOSITORY),
                "show",
                f"{generator['git_sha']}:{name}",
            ]
            done = subprocess.run(command, capture_output=True)
            if done.returncode != 0:
                self.skipTest(f"no {generator['git_sha'][:9]} here: {done.stderr.decode().strip()}")
            self.assertEqual(hashlib.sha256(done.stdout).hexdigest(), digest, name)

    def test_a_set_is_five_runs_of_each_of_two_cards_with_the_same_rows(self) -> None:
        # As the notes of each card say.
        fewer, of_one_card = (
            (
                "backward",
                "cold",
                "decode",
                "fp32",
                "model",
                "packed",
                "ragged",
                "spread",
            ),
            (
                "h100/backward",
                "h100/gradients",
                "h100/gradients_more",
            ),
        )
        for folder in sorted(path for path in COMMITTED.glob("*/*") if path.is_dir()):
            with self.subTest(folder=folder.name):
                is_limits = folder.name == Path(limits.FILE).stem
                measured = (limits.Limits if is_limits else ladder.Results).load(folder)
                cards = collections.Counter(map(ladder.card_of, measured.runs))
                names = {folder.name, f"{folder.parent.name}/{folder.name}"}
                self.assertGreaterEqual(len(cards), 1 if names.intersection(of_one_card) else 2)
                least = 1 if names.intersection((*fewer, *of_one_card)) else 5
                # More cards may have fewer runs.
                two = [count for _, count in cards.most_common(2)]
                self.assertGreaterEqual(min(two), least)
                if isinstance(measured, ladder.Results):
                    statuses = {row.status for row in measured.rows}
                    self.assertNotIn(ladder.TOO_FEW_RUNS, statuses)

    def test_only_real_gpus(self) -> None:
        for path in committed_files():
            device = json.loads(path.read_text(encoding="utf-8")).get("device")
            if device is not None and device.get("kind") != "vm":
                self.assertTrue(device["name"].startswith("NVIDIA "), f"{path.name}: {device}")


if __name__ == "__main__":
    unittest.main()
