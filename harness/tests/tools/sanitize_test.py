# SPDX-License-Identifier: MIT
"""scripts/sanitize.py: reading compute-sanitizer's output, the summary. Nothing is run."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from unittest import mock

import support
import synthetic

import ladder
import sanitize

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
DIRTY = "========= Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n"
RACES = "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n"


def catalogue() -> ladder.Catalogue:
    return ladder.Catalogue.from_json(json.dumps(synthetic.catalogue(("ampere",), 3)), "synthetic")


class OutputTest(unittest.TestCase):
    def test_verdicts(self) -> None:
        self.assertEqual(sanitize.judge(CLEAN, 0), (0, ""))
        errors, reason = sanitize.judge(DIRTY, 1)
        self.assertEqual(errors, 3)
        self.assertIn("Invalid __global__ write", reason)
        self.assertEqual(sanitize.judge(RACES, 0)[0], 2)
        self.assertEqual(sanitize.judge(RACES.replace("2 haz", "0 haz"), 0), (0, ""))

    def test_a_run_that_failed_is_never_clean(self) -> None:
        for output, code in (("", 0), ("fa: error: no GPU", 3), (CLEAN, 2), ("no end", 124)):
            errors, reason = sanitize.judge(output, code)
            self.assertIsNone(errors)
            self.assertIn(f"exit code {code}", reason)


class TargetsTest(unittest.TestCase):
    def test_own_tiles_of_the_wanted_dims(self) -> None:
        found = sanitize.targets(catalogue(), [128], 256, with_ablations=False)
        self.assertEqual([target.rung for target in found], ["01", "02", "03"])
        self.assertEqual(sanitize.targets(catalogue(), [64], 256, with_ablations=False), [])

    def test_a_rung_runs_all_that_it_claims(self) -> None:
        claims = synthetic.catalogue(("ampere",), 1)
        claims["rungs"][0] |= {"causal": True, "ragged": True, "lse": True}
        found = ladder.Catalogue.from_json(json.dumps(claims), "synthetic")
        (target,) = sanitize.targets(found, [128], 256, with_ablations=False)
        command = " ".join(sanitize.run_command(Path("fa"), target))
        self.assertIn("--seq 251 ", command)
        self.assertTrue(command.endswith(" --causal --lse"))

    def test_of_all_rungs_those_that_this_gpu_runs(self) -> None:
        claims = synthetic.catalogue(("ampere",), 3)
        claims["rungs"][2]["instances"][0]["refused"] = "03 is compiled for 10.0a"
        found = ladder.Catalogue.from_json(json.dumps(claims), "synthetic")
        chosen = sanitize.select(found, sanitize.parse_arguments(["--out", "x"]))
        self.assertEqual([target.rung for target in chosen], ["01", "02"])
        named = sanitize.parse_arguments(["--out", "x", "--rungs", "03"])
        self.assertEqual([target.rung for target in sanitize.select(found, named)], ["03"])

    def test_a_decode_rung_runs_against_a_cache(self) -> None:
        claims = synthetic.catalogue(("ampere",), 1)
        takes = {"ragged": True, "lengths": True, "paged": True, "few_queries": True}
        claims["rungs"][0] |= {"family": "decode"} | takes
        found = ladder.Catalogue.from_json(json.dumps(claims), "synthetic")
        (target,) = sanitize.targets(found, [128], 256, with_ablations=False)
        command = " ".join(sanitize.run_command(Path("fa"), target))
        self.assertIn("--seq 5 --seq-kv 1019 --kv-heads 1 --lengths random --page 16 ", command)

    def test_command(self) -> None:
        target = sanitize.Target("06", 64, "128x64w4", 256)
        command = " ".join(sanitize.run_command(Path("fa"), target))
        expected = "fa run 06 --tile 128x64w4 --dim 64 --dtype float16 --seq 256 "
        self.assertTrue(command.startswith(expected))
        self.assertIn("--launch-only --exact-buffers", command)


class SummaryTest(support.FolderTest):
    def test_summary_follows_its_schema(self) -> None:
        jsonschema = support.need("jsonschema")
        header = self.folder / "harness/environment/generated/fa_git_version.h"
        header.parent.mkdir(parents=True)
        sha = "1" * 40
        header.write_text(f'#define FA_BUILD_GIT_SHA "{sha}"\n#define FA_BUILD_GIT_DIRTY 0\n')
        findings = [
            sanitize.examine(lambda _: (CLEAN, 0), "tool", Path("fa"), target, tool)
            for target in sanitize.targets(catalogue(), [128], 256, False)
            for tool in sanitize.TOOLS
        ]
        with mock.patch.object(sanitize, "gpu_info", return_value={"name": "S", "driver": "0"}):
            with mock.patch.object(sanitize, "first_match", return_value="0.0"):
                summary = sanitize.document(findings, "tool", self.folder)
        path = support.REPOSITORY / "scripts" / "sanitize.schema.json"
        jsonschema.validate(summary, json.loads(path.read_text(encoding="utf-8")))
        self.assertEqual(len(summary["rows"]), 12)
        self.assertFalse(summary["generator"]["git_dirty"])


if __name__ == "__main__":
    unittest.main()
