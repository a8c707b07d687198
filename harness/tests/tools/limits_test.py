# SPDX-License-Identifier: MIT
"""plots/limits.py: the ceilings that fa limits measured, and that no rung stands above them."""

from __future__ import annotations

import json
import unittest
from dataclasses import replace
from pathlib import Path

import support
import synthetic

import ladder
import limits

COMMITTED = support.REPOSITORY / "plots" / "results"
MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)


def put(folder: Path, families: tuple[str, ...]) -> tuple[ladder.Results, ladder.Catalogue]:
    listing, results = synthetic.write(folder, families, 7)
    (folder / limits.FILE).write_text(json.dumps(synthetic.limits()), encoding="utf-8")
    return ladder.Results.load(results), ladder.Catalogue.load(listing)


class LimitsTest(support.FolderTest):
    def test_without_a_file(self) -> None:
        _, results = synthetic.write(self.folder, ("ampere",), 3)
        self.assertIsNone(limits.Limits.beside(ladder.Results.load(results)))

    def test_of_family(self) -> None:
        results, _ = put(self.folder, ("ampere",))
        measured = limits.Limits.beside(results)
        assert measured is not None
        self.assertEqual(measured.of_family("hopper"), limits.Rate(900, 810))
        self.assertEqual(measured.of_family("ampere"), limits.Rate(640, 576))
        self.assertEqual(measured.traffic("memory_read"), 4500)
        self.assertIsNone(measured.of_family("own"))

    def test_loops_that_the_card_cannot_run(self) -> None:
        results, _ = put(self.folder, ("ampere",))
        document = synthetic.limits()
        for row in document["rows"][:2]:
            row |= {"status": "unsupported", "rate": None, "rate_back_to_back": None}
        (self.folder / limits.FILE).write_text(json.dumps(document), encoding="utf-8")
        measured = limits.Limits.beside(results)
        assert measured is not None
        self.assertIsNone(measured.of_family("hopper"))
        self.assertIsNotNone(measured.of_family("ampere"))

    def test_share(self) -> None:
        results, _ = put(self.folder, ("ampere",))
        measured = limits.Limits.beside(results)
        row = results.rung("06", MAIN)
        assert row is not None
        share = limits.share_of(measured, "ampere", row)
        assert share is not None
        self.assertAlmostEqual(share, row.tflops / 640)
        steady = replace(row, steady=True)
        self.assertAlmostEqual(limits.share_of(measured, "ampere", steady), row.tflops / 1.04 / 576)
        self.assertIsNone(limits.share_of(None, "ampere", row))

    def test_another_file_is_refused(self) -> None:
        results, _ = put(self.folder, ("ampere",))
        for text in ("{}", "[", "[" * 200_000, json.dumps(synthetic.sweep())):
            (self.folder / limits.FILE).write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(ladder.LadderError, "is not a file of fa limits"):
                limits.Limits.beside(results)


class RoofTest(unittest.TestCase):
    def test_no_committed_rung_is_above_it(self) -> None:
        paths = [ladder.located(card / limits.FILE) for card in COMMITTED.glob("*")]
        paths = [path for path in paths if path.exists()]
        if not paths:
            self.skipTest("no limits are committed")
        catalogue = ladder.Catalogue.load(None)
        for path in paths:
            measured = limits.Limits.load(path)
            for name in ("ladder.json", "fp32.json", "tune.json"):
                results = ladder.located(path.with_name(name))
                for row in ladder.Results.load(results).timed() if results.exists() else ():
                    family = catalogue.find(row.id).family if row.kind == "rung" else ""
                    share = limits.share_of(measured, family, row)
                    self.assertLessEqual(share or 0, 1, f"{row.id} {row.variant} {row.problem}")


if __name__ == "__main__":
    unittest.main()
