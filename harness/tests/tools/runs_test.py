# SPDX-License-Identifier: MIT
"""plots/ladder.py and plots/interval.py: a folder of runs, and the intervals over them."""

from __future__ import annotations

import json
import math
import statistics
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import support
import synthetic

import ladder
import limits
from interval import interval

MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)
TFLOPS = {"01": 100.0, "02": 105.0, "03": 300.0}


def document() -> dict[str, Any]:
    shape = synthetic.problem(8192)
    rows = [synthetic.timed_row("rung", id, shape, speed) for id, speed in TFLOPS.items()]
    return synthetic.document([*rows, synthetic.timed_row("peer", "fa2", shape, 100.0)])


class RunsTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.set = self.folder / "h200" / "ladder"

    def put(self, speed: synthetic.Speed = synthetic.noise, **options: int) -> ladder.Results:
        for path in self.set.glob("*"):
            path.unlink()
        synthetic.write_runs(self.set, document(), speed, **options)
        return ladder.Results.load(self.set)

    def quotients(self, *values: float, cards: int = 1) -> ladder.Results:
        """Runs in which 02 is so many times as fast as 01, which is faster in each run."""

        def speed(row: dict[str, Any], card: int, run: int) -> float:
            at = (card - 1) * runs + run - 1
            return (1 + 0.1 * at) * (values[at] / 1.05 if row["id"] == "02" else 1)

        runs = len(values) // cards
        return self.put(speed, cards=cards, runs=runs)

    def change(self, id: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Of a row of one run, the last."""
        path = self.set / "card2_run5.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        if id:
            change(next(row for row in whole["rows"] if row["id"] == id))
        else:
            change(whole)
        path.write_text(json.dumps(whole), encoding="utf-8")

    def refuses(self, part: str, name: str, value: object) -> None:
        self.put()
        self.change("", lambda whole: whole[part].update({name: value}))
        with self.assertRaises(ladder.LadderError) as caught:
            ladder.Results.load(self.set)
        for word in (f"runs of different {part}.{name}", str(value), "card1_run1.json", "card2_run5"):
            self.assertIn(word, str(caught.exception))


class FolderTest(RunsTest):
    def test_a_row_has_the_means_of_its_runs(self) -> None:
        results = self.put(lambda row, card, run: card + run / 10, runs=2)
        row = results.rung("01", MAIN)
        assert row is not None
        factors = (1.1, 1.2, 2.1, 2.2)
        self.assertAlmostEqual(row.tflops, 100 * sum(factors) / 4)
        self.assertAlmostEqual(row.data["gbs"], 100 * sum(factors) / 4)
        single = results.runs[0].rung("01", MAIN)
        assert single is not None
        slowed = sum(1 / factor for factor in factors) / 4
        for name in ("median", "p10", "p90", "back_to_back"):
            time = row.data["time_ms"][name]
            self.assertAlmostEqual(time, single.data["time_ms"][name] * 1.1 * slowed)
        self.assertEqual((row.data["time_ms"]["n"], row.data["run"]), (200, single.data["run"]))

    def test_what_a_set_is_called(self) -> None:
        results = self.put()
        self.assertEqual((results.name, len(results.runs), len(results.rows)), ("ladder", 10, 4))
        said = ladder.policy_text(results)
        self.assertTrue(said.startswith("means of 10 runs on 2 cards, 95 % intervals, spaced"), said)
        single = ladder.Results.load(self.set / "card1_run1.json")
        self.assertEqual(single.runs, ())
        self.assertTrue(ladder.policy_text(single).startswith("spaced launches"))

    def test_a_card_is_known_by_its_header_or_by_the_name_of_the_file(self) -> None:
        self.put()
        self.change("", lambda whole: whole["device"].update(uuid="GPU-3"))
        self.assertEqual(ladder.runs_text(ladder.Results.load(self.set).runs), "10 runs on 3 cards")
        self.put(cards=1)
        for path in list(self.set.iterdir()):  # as scripts/bench.sh --runs calls them
            path.rename(self.set / path.name.removeprefix("card1_"))
        self.assertEqual(ladder.runs_text(ladder.Results.load(self.set).runs), "5 runs on 1 card")

    def test_the_hash_follows_every_run_and_its_name(self) -> None:
        found = [self.put().sha256, ladder.Results.load(self.set).sha256]
        self.assertEqual(*found)
        (self.set / "NOTES.md").touch()
        self.assertEqual(ladder.Results.load(self.set).sha256, found[0])
        self.change("03", lambda row: row.update(gbs=1.0))
        found.append(ladder.Results.load(self.set).sha256)
        (self.set / "card2_run5.json").rename(self.set / "card3_run5.json")
        found.append(ladder.Results.load(self.set).sha256)
        self.assertEqual(len(set(found)), 3)

    def test_the_name_of_a_file_is_that_of_the_folder(self) -> None:
        self.put()
        file = self.set.with_suffix(".json")
        self.assertEqual(ladder.Results.load(file).path, self.set)
        file.write_text(json.dumps(document()), encoding="utf-8")
        with self.assertRaisesRegex(ladder.LadderError, "remove one of them"):
            ladder.Results.load(file)

    def test_a_row_that_fails_in_a_run_is_not_timed(self) -> None:
        self.put()
        failed = {"status": "incorrect", "reason": "an element", "time_ms": None, "tflops": None}
        self.change("02", lambda row: row.update(failed))
        results = ladder.Results.load(self.set)
        self.assertEqual([row.id for row in results.timed()], ["01", "03", "fa2"])
        (row,) = (row for row in results.rows if row.id == "02")
        self.assertEqual((row.status, row.data["reason"]), ("incorrect", "an element"))

    def test_a_row_that_a_run_does_not_have_is_that_of_the_others(self) -> None:
        self.put()
        self.change("02", lambda row: row.update(id="04"))
        results = ladder.Results.load(self.set)
        self.assertEqual([row.id for row in results.timed()], ["01", "02", "03", "fa2"])
        status = {row.id: row.status for row in results.rows if not row.is_timed}
        self.assertEqual(status, {"04": "missing"}, "a single one of ten runs has it")
        self.assertEqual(ladder.runs_text(results.runs), "up to 10 runs on 2 cards")

    def test_runs_of_one_commit_and_one_kind_of_card(self) -> None:
        self.refuses("generator", "git_sha", "1" * 40)
        self.refuses("generator", "nvcc", "1.0")
        self.refuses("device", "name", "Other GPU")
        self.refuses("policy", "l2", "warm")

    def test_a_folder_without_runs(self) -> None:
        self.set.mkdir(parents=True)
        with self.assertRaisesRegex(ladder.LadderError, "a folder without runs"):
            ladder.Results.load(self.set)


class IntervalTest(RunsTest):
    def ratio(self, results: ladder.Results, metric: ladder.Metric = ladder.rate) -> ladder.Interval:
        rows = [results.rung(id, MAIN) for id in ("02", "01")]
        assert rows[0] and rows[1]
        found = ladder.ratio(results, rows[0], rows[1], metric)
        assert found is not None
        return found

    def test_an_example_by_hand(self) -> None:
        """Logarithms 0.009950, 0.019803, 0.029559: mean 0.019771, deviation 0.009804. The interval is
        0.019771 ± 4.303 * 0.009804 / sqrt(3), which is 0.019771 ± 0.024356."""
        found = self.ratio(self.quotients(1.01, 1.02, 1.03))
        self.assertAlmostEqual(found.mean, math.exp(0.019771), places=5)
        self.assertAlmostEqual(found.low, math.exp(0.019771 - 0.024356), places=5)
        self.assertAlmostEqual(found.high, math.exp(0.019771 + 0.024356), places=5)
        self.assertTrue(found.has_one)

    def test_rows_are_paired_in_their_run(self) -> None:
        """Every run is faster than the one before, and 02 always 2 % faster than 01."""
        found = self.ratio(self.quotients(1.0201, 1.0199, 1.02, 1.02))
        self.assertAlmostEqual(found.mean, 1.02, places=5)
        self.assertLess(found.half, 2e-4)
        self.assertFalse(found.has_one)

    def test_a_run_without_one_of_the_rows_does_not_count(self) -> None:
        self.quotients(1.021, *[1.02] * 8, 3.0, cards=2)
        self.change("02", lambda row: row.update(id="04"))
        results = ladder.Results.load(self.set)
        found = self.ratio(results)
        self.assertAlmostEqual(found.mean, 1.0201, places=4)
        self.assertLess(found.half, 1e-3)
        row = results.rung("02", MAIN)
        assert row is not None
        alone = ladder.level(results, row)
        rates = [run.by_key[row.key].tflops for run in results.runs if row.key in run.by_key]
        self.assertEqual(len(rates), 9)
        assert alone is not None
        self.assertAlmostEqual(alone.mean, statistics.geometric_mean(rates))

    def test_of_two_cards_all_runs_count_and_of_three_the_cards_too(self) -> None:
        values = (1.01, 1.011, 1.012, 1.03, 1.031, 1.032)
        two = self.ratio(self.quotients(*values, cards=2))
        # 5 degrees: 2.571 * 0.010720 / sqrt(6).
        self.assertAlmostEqual(math.log(two.high / two.mean), 0.01125, places=4)
        three = self.ratio(self.quotients(*(1.010, 1.011, 1.020, 1.021, 1.030, 1.031), cards=3))
        # Means of the cards: 4.303 * 0.009799 / sqrt(3), against 2.571 * 0.008781 / sqrt(6).
        self.assertAlmostEqual(math.log(three.high / three.mean), 0.024345, places=5)

    def test_a_wide_interval_of_the_runs_stays_with_three_cards(self) -> None:
        values = (0.9, 1.1, 0.9, 1.1, 0.9, 1.1)
        three = self.ratio(self.quotients(*values, cards=3))
        self.assertAlmostEqual(math.log(three.high / three.mean), 0.11536, places=4)

    def test_student(self) -> None:
        for count, t in ((2, 12.706), (10, 2.262), (31, 2.042), (32, 2.040), (61, 2.000), (1001, 1.962)):
            values = [math.exp(n % 2) for n in range(count)]
            found = interval(values, ["one"] * count)
            assert found is not None
            ones = count // 2
            deviation = math.sqrt(ones * (count - ones) / count / (count - 1))
            width = math.log(found.high / found.mean) * math.sqrt(count) / deviation
            self.assertAlmostEqual(width, t, delta=0.003)

    def test_without_runs_there_is_none(self) -> None:
        self.quotients(1.01, 1.02)
        single = ladder.Results.load(self.set / "card1_run1.json")
        (self.set / "card1_run2.json").unlink()
        for results in (single, ladder.Results.load(self.set)):
            row = results.rung("01", MAIN)
            assert row is not None
            self.assertIsNone(ladder.ratio(results, row, row))
            self.assertIsNone(ladder.level(results, row))

    def test_of_another_number_and_of_one_that_a_row_does_not_have(self) -> None:
        results = self.quotients(1.01, 1.02, 1.03)
        times = self.ratio(results, lambda row: float(row.data["time_ms"]["median"]))
        self.assertAlmostEqual(times.mean, 1 / self.ratio(results).mean)
        row = results.rung("01", MAIN)
        assert row is not None
        self.assertIsNone(ladder.ratio(results, row, row, lambda row: row.data["peak_bytes"]))
        exact = ladder.ratio(results, row, row)
        self.assertTrue(exact and exact.is_exact)

    def test_the_time_without_gaps_counts_where_no_cache_was_in_the_l2(self) -> None:
        row = next(row for row in self.put().runs[0].rows if row.is_timed).data
        for hot, cold, steady in ((False, True, True), (True, True, False), (False, False, False)):
            times = row["time_ms"] | {"median": 2.0, "back_to_back": 3.0, "hot": hot}
            made = ladder.Row.from_json(dict(row) | {"time_ms": times}, cold)
            self.assertEqual((made.steady, made.ms), (steady, 3.0 if steady else 2.0))
        times = row["time_ms"] | {"back_to_back": None}
        self.assertFalse(ladder.Row.from_json(dict(row) | {"time_ms": times}, True).steady)

    def test_a_step_has_the_mean_of_the_quotients(self) -> None:
        results = self.quotients(1.0, 1.2, 1.5)
        catalogue = ladder.Catalogue.from_json(json.dumps(synthetic.catalogue(limit=3)), "synthetic")
        step = ladder.step_of(catalogue.rungs[1], catalogue, results, MAIN)
        assert step is not None
        self.assertAlmostEqual(step.factor, 1.8 ** (1 / 3))
        self.assertEqual((step.change, step.idea_factor), (self.ratio(results), step.factor))


class LimitsTest(RunsTest):
    def put_limits(self, sha: str = "0" * 40) -> Path:
        folder = self.folder / "h200" / "limits"
        folder.mkdir(parents=True, exist_ok=True)
        for run, factor in enumerate((0.9, 1.1), start=1):
            whole = synthetic.limits()
            for row in whole["rows"]:
                row["rate"] *= factor
            whole["generator"]["git_sha"] = sha if run == 2 else "0" * 40
            (folder / f"card{run}_run1.json").write_text(json.dumps(whole), encoding="utf-8")
        return folder

    def test_means_beside_a_set(self) -> None:
        folder = self.put_limits()
        results = self.put()
        measured = limits.Limits.beside(results)
        assert measured is not None
        self.assertAlmostEqual(measured.rates["fma"].spaced, 60)
        self.assertAlmostEqual(measured.rates["fma"].back_to_back, 54)
        self.assertEqual(ladder.limits_sha256(results), ladder.sha256_of(folder))
        self.assertEqual(limits.Limits.load(folder.with_suffix(".json")).document, measured.document)

    def test_a_loop_that_a_run_could_not_do(self) -> None:
        path = self.put_limits() / "card2_run1.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        for row in whole["rows"]:
            if row["id"] == "fma":
                row |= {"status": "unsupported", "rate": None}
        path.write_text(json.dumps(whole), encoding="utf-8")
        measured = limits.Limits.load(path.parent)
        self.assertNotIn("fma", measured.rates)
        self.assertIn("mma_sync", measured.rates)

    def test_of_two_commits(self) -> None:
        with self.assertRaisesRegex(ladder.LadderError, "runs of different generator.git_sha"):
            limits.Limits.load(self.put_limits("1" * 40))


class WordsTest(unittest.TestCase):
    def interval(self, mean: float, half: float) -> ladder.Interval:
        return ladder.Interval(mean, mean - half, mean + half)

    def test_a_change_with_its_margin(self) -> None:
        minus, times = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
        cases = {
            (1.074, 0.003): "+7.4 ± 0.3 %",
            (1.002, 0.005): "+0.2 ± 0.5 %",
            (0.958, 0.0121): f"{minus}4.2 ± 1.2 %",
            (1.2345, 0.004): "+23.4 ± 0.4 %",  # no digit less than the margin has
            (1.0012, 0.0003): "+0.12 ± 0.03 %",
            (1.0052, 0.0049): "+0.52 ± 0.49 %",  # not flat, and it shows
            (1.0048, 0.0052): "+0.5 ± 0.5 %",
            (7.1, 0.142): f"{times} 7.1 ± 2.0 %",
        }
        for (mean, half), text in cases.items():
            self.assertEqual(ladder.percent(mean, self.interval(mean, half)), text)
        self.assertEqual(ladder.percent(1.0, self.interval(1.0, 0.0)), "+0.0 %")

    def test_a_share_with_its_margin(self) -> None:
        self.assertEqual(ladder.share(0.823, None), "82 %")
        self.assertEqual(ladder.share(1.0, self.interval(1.0, 0.0)), "100 %")
        self.assertEqual(ladder.share(0.823, self.interval(0.823, 0.004)), "82.3 ± 0.4 %")


if __name__ == "__main__":
    unittest.main()
