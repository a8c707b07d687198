# SPDX-License-Identifier: MIT
"""plots/status.py: whether a rung is a step follows from times alone."""

from __future__ import annotations

import json
import unittest
from typing import Any

import support
import synthetic

import ladder
import status


class StatusTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.listing = synthetic.catalogue(("ampere",), 4)
        self.rows: list[dict[str, Any]] = []

    def time(self, id: str, tflops: float, spread: float = 0.0, **extra: Any) -> None:
        """A row whose p10 and p90 are `spread` of the median apart."""
        shape = synthetic.problem(8192, causal=extra.pop("causal", False))
        row = synthetic.timed_row("rung", id, shape, tflops, **({"variant": "64x64w4"} | extra))
        median = row["time_ms"]["median"]
        row["time_ms"] |= {"p10": median * (1 - spread / 2), "p90": median * (1 + spread / 2)}
        self.rows.append(row)

    def of(self, id: str) -> str:
        path = self.folder / "synthetic.json"
        path.write_text(json.dumps(synthetic.document(self.rows)), encoding="utf-8")
        catalogue = ladder.Catalogue.from_json(json.dumps(self.listing), "synthetic")
        return status.statuses(ladder.Results.load(path), catalogue)[id].text

    def change(self, tflops: float, spread: float = 0.0) -> str:
        self.rows = []
        self.time("01", 100.0, spread)
        self.time("02", tflops)
        return self.of("02")

    def test_at_least_one_percent(self) -> None:
        self.assertEqual(self.change(102), "step")
        self.assertEqual(self.change(98), "regression")
        for tflops in (100.9, 100, 99.2):
            self.assertEqual(self.change(tflops), "flat")

    def test_more_than_the_spread_of_either(self) -> None:
        rounds = synthetic.POLICY["rounds"]
        self.assertEqual(self.change(103, spread=0.02 * rounds), "step")
        self.assertEqual(self.change(103, spread=0.04 * rounds), "flat")
        self.assertEqual(self.change(96, spread=0.03 * rounds), "regression")
        self.assertEqual(self.change(96, spread=0.05 * rounds), "flat")

    def test_a_parent_without_a_time(self) -> None:
        self.time("01", 100.0)
        self.time("03", 110.0)
        self.assertEqual(self.of("03"), "not measured")  # its parent is 02

    def test_the_faster_of_two_parents_counts(self) -> None:
        self.time("01", 100.0)
        self.time("02", 110.0, variant="128x64w4")
        self.assertEqual(self.of("02"), "step")
        self.time("01", 120.0, variant="128x64w4", ablation=True)
        self.assertEqual(self.of("02"), "regression")

    def test_a_mask_that_the_parent_does_not_take(self) -> None:
        self.listing["rungs"][1]["causal"] = True
        self.time("01", 100.0)
        self.time("02", 98.0)
        self.assertEqual(self.of("02"), "regression")
        self.time("02", 90.0, causal=True)  # half the work, so 1.8 times as fast
        self.assertEqual(self.of("02"), "step")

    def test_a_mask_that_the_parent_takes(self) -> None:
        for rung in self.listing["rungs"][:2]:
            rung["causal"] = True
        self.time("01", 100.0)
        self.time("02", 101.0)
        self.time("01", 90.0, causal=True)
        self.time("02", 86.0, causal=True)
        self.assertEqual(self.of("02"), "regression")

    def test_first_and_not_measured(self) -> None:
        self.time("01", 100.0)
        self.assertEqual((self.of("01"), self.of("02")), ("first", "not measured"))
        self.rows = []
        self.time("02", 100.0)
        self.assertEqual((self.of("01"), self.of("02")), ("not measured", "not measured"))

    def test_a_branch_is_what_nothing_is_built_on(self) -> None:
        for id, tflops in (("01", 100.0), ("02", 110.0), ("03", 120.0), ("04", 120.0)):
            self.time(id, tflops)
        self.assertEqual([self.of(id) for id in ("02", "03", "04")], ["step", "step", "flat"])
        self.listing["rungs"][3]["parent"] = "02"  # beside 03; the last one is no branch
        self.assertEqual([self.of(id) for id in ("02", "03", "04")], ["step", "step, branch", "step"])


if __name__ == "__main__":
    unittest.main()
