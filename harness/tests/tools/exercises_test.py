# SPDX-License-Identifier: MIT
"""The exercises: unsolved as they ship, for the reason that they teach; solved by their solutions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import support
from exercise import ALL, EXERCISES, GAP, Exercise
from page import BUILD

SCRIPT = support.REPOSITORY / "scripts/exercise.py"
BENCHMARK = ALL[-1]  # not a kernel
SOLUTIONS = BUILD / "solutions/source"  # the exercises with their gaps filled


def run_script(*words: object, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout


class ShippedTest(unittest.TestCase):
    def check(self, exercise: Exercise, kind: str) -> tuple[int, str]:
        """The verdict on a file as it is built into a program of its own."""
        folder = EXERCISES if kind == "exercises" else SOLUTIONS
        fa, environment = BUILD / kind / "fa", {"FA_PTX_DIR": str(BUILD / kind / "ptx")}
        if exercise is BENCHMARK:
            fa, environment = BUILD / "fa", {}
        if not fa.is_file():
            self.fail(f"{fa} is not built; build the target all")
        return run_script(exercise.number, "--fa", fa, "--file", folder / exercise.file, **environment)

    def test_solutions_are_right(self) -> None:
        for exercise in ALL:
            with self.subTest(exercise=exercise.file):
                code, output = self.check(exercise, "solutions")
                self.assertEqual(code, 0, output)
                self.assertTrue(output.endswith("\nsolved\n"), output)
                self.assertNotIn("  wrong  ", output)

    def test_what_ships_is_unsolved_for_the_reason_that_it_teaches(self) -> None:
        for exercise in ALL:
            with self.subTest(exercise=exercise.file):
                code, output = self.check(exercise, "exercises")
                self.assertEqual(code, 1, output)
                head, *lines, verdict = output.splitlines()
                self.assertIn(f"exercise {exercise.number}. {exercise.title}: ", head)
                self.assertEqual(verdict, "not solved yet")
                self.findings(exercise, lines)

    def findings(self, exercise: Exercise, lines: list[str]) -> None:
        """Each is the expected one, and so is each failed case below the first."""
        wanted, case = exercise.data["unsolved"], exercise.data.get("cases")
        found = [line for line in lines if re.match("  (ok   |wrong)  ", line)]
        self.assertEqual(len(found), len(wanted), lines)
        for line, pattern in zip(found, wanted, strict=True):
            self.assertRegex(line, f"^  {pattern}")
        cases = [line for line in lines if line not in found]
        self.assertEqual(bool(cases), case is not None, lines)
        for line in cases:
            self.assertRegex(line, rf"{case}|^ *\.\.\.$")

    def test_solutions_hold_the_gaps_alone(self) -> None:
        for exercise in ALL:
            with self.subTest(exercise=exercise.file):
                text = (EXERCISES / "solutions" / f"{exercise.file}.txt").read_text(encoding="utf-8")
                self.assertEqual(GAP.sub("", text).strip(), "")


class WrongSolutionTest(support.FolderTest):
    def refused(self, exercise: Exercise, finding: str, *words: object, **environment: str) -> None:
        code, output = run_script(exercise.number, *words, **environment)
        self.assertEqual(code, 1, output)
        self.assertIn(finding, output)

    def test_a_missing_instruction(self) -> None:
        """A solution that lacks one of its synchronising instructions is not right any more."""
        fa = BUILD / "solutions/fa"
        if not fa.is_file():
            self.fail(f"{fa} is not built; build the target all")
        kernels = [(each, wrong) for each in ALL[:-1] for wrong in each.data.get("wrong", [])]
        self.assertGreater(len(kernels), 0)
        for exercise, wrong in kernels:
            name = Path(exercise.file).with_suffix(".ptx").name
            text = (BUILD / "solutions/ptx" / name).read_text(encoding="utf-8")
            places = list(re.finditer(rf"^\s*{re.escape(wrong['instruction'])}", text, re.M))
            self.assertTrue(places, wrong)
            for place in places:
                at = place.start()
                with self.subTest(exercise=exercise.file, wrong=wrong, at=at):
                    (self.folder / name).write_text(f"{text[:at]}\n//{text[at:].lstrip()}")
                    self.refused(exercise, wrong["finding"], "--fa", fa, FA_PTX_DIR=str(self.folder))

    def test_a_mistake_of_a_benchmark(self) -> None:
        if not (BUILD / "fa").is_file():
            self.fail("fa is not built; build the target all")
        text = (SOLUTIONS / BENCHMARK.file).read_text(encoding="utf-8")
        for wrong in BENCHMARK.data["wrong"]:
            with self.subTest(wrong=wrong):
                self.assertIn(wrong["text"], text)
                file = self.folder / BENCHMARK.file
                file.write_text(text.replace(wrong["text"], wrong["instead"]), encoding="utf-8")
                self.refused(BENCHMARK, wrong["finding"], "--fa", BUILD / "fa", "--file", file)


class BenchmarkTest(unittest.TestCase):
    def test_the_table(self) -> None:
        results = support.REPOSITORY / "plots/results/h200/ladder/card1_run1.json"
        done = subprocess.run([sys.executable, SOLUTIONS / BENCHMARK.file, results, "01", "06"],
                              capture_output=True, text=True, check=True)  # fmt: skip
        self.assertRegex(done.stdout, r"^06 against 01\n(B=\d+ H=\d+ N=\d+ d=\d+: \d+\.\d\d times as fast\n)+$")


class CommandLineTest(support.FolderTest):
    def test_the_list_names_every_file(self) -> None:
        code, output = run_script()
        self.assertEqual(code, 0)
        listed = re.findall(r" docs/exercises/(\S+)", output)
        files = {str(path.relative_to(EXERCISES)) for path in EXERCISES.rglob("ex*.*")}
        self.assertEqual({f for f in files if f.endswith((".cu", ".py"))}, set(listed))
        self.assertEqual([each.number for each in ALL], list(range(1, 15)))

    def test_unknown_number(self) -> None:
        code, output = run_script(99)
        self.assertEqual(code, 2)
        self.assertIn("99", output)
        self.assertIn("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14", output)

    def test_first_time_without_a_build(self) -> None:
        own = self.folder / "own"
        environment = {"FA_OWN_DIR": str(own), "FA_BUILD_DIR": str(self.folder)}
        for number in (2, 11):  # of which one belongs into a folder of its own
            file = ALL[number - 1].file
            code, output = run_script(number, **environment)
            self.assertEqual(code, 3)
            self.assertIn("is no build folder", output)
            self.assertEqual((own / file).read_bytes(), (EXERCISES / file).read_bytes())
            (own / file).write_text("mine", encoding="utf-8")
            self.assertEqual(run_script(number, **environment)[0], 3)
            self.assertEqual((own / file).read_text(encoding="utf-8"), "mine")

    def test_a_folder_that_cannot_be_made(self) -> None:
        (self.folder / "file").touch()
        code, output = run_script(1, FA_OWN_DIR=str(self.folder / "file/own"))
        self.assertEqual(code, 3)
        self.assertRegex(output, r"^exercise.py: error: cannot write .*: Not a directory; set FA_OWN_.*\n$")


if __name__ == "__main__":
    unittest.main()
