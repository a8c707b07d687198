# SPDX-License-Identifier: MIT
"""The exercises: unsolved as they ship, for the reason that they teach; solved by their solutions."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import support  # isort: split

import exercise as script
from exercise import ALL, EXERCISES, GAP, Exercise, fill
from page import BUILD
from web_exercises import nvcc_words

Json = dict[str, Any]

SCRIPT = support.REPOSITORY / "scripts/exercise.py"
BENCHMARK = next(each for each in ALL if each.file.endswith(".py"))
KERNELS = [each for each in ALL if each is not BENCHMARK]
PROGRAM = BUILD / "exercises/fa"  # runs the PTX of a folder that FA_PTX_DIR names
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


def run_here(*words: object, **environment: str) -> tuple[int, str]:
    """The same in this process, without the start of another one."""
    with mock.patch.dict(os.environ, environment):
        code, out, err = support.run_main(script.main, *words)
    return code, out + err


def ptx_file(exercise: Exercise, folder: Path) -> Path:
    return folder / Path(exercise.file).with_suffix(".ptx").name


class ShippedTest(unittest.TestCase):
    def check(self, exercise: Exercise, kind: str) -> tuple[int, str]:
        """The verdict on a file, from the PTX that the build has made of it."""
        folder = EXERCISES if kind == "exercises" else SOLUTIONS
        fa, environment = PROGRAM, {"FA_PTX_DIR": str(BUILD / kind / "ptx")}
        if exercise is BENCHMARK:
            fa, environment = BUILD / "fa", {}
        if not fa.is_file():
            self.fail(f"{fa} is not built; build the target all")
        return run_here(exercise.number, "--fa", fa, "--file", folder / exercise.file, **environment)

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
        cases = [line for line in lines if re.match(CASE, line)]
        self.assertEqual(bool(cases), case is not None, lines)
        for line in cases:
            self.assertRegex(line, rf"{case}|^ *\.\.\.$")

    def test_solutions_hold_the_gaps_alone(self) -> None:
        for exercise in ALL:
            with self.subTest(exercise=exercise.file):
                text = (EXERCISES / "solutions" / f"{exercise.file}.txt").read_text(encoding="utf-8")
                self.assertEqual(GAP.sub("", text).strip(), "")


# A failed case: a wrong value has its element, the thread that writes it, and the right value; what
# the machine refuses to do, or finds, begins with the kernel's name.
CASE = r" {9}\S"
VALUE = r"batch \d+, head \d+, row \d+, column \d+ \(thread \d+: warp \d+, lane \d+\): got \S+, expected \S+"
FAULT = r": fa_ex\d+_\w+: |: counters of dQ not zero after the launch|: a second launch gave another dQ"


class WrongSolutionTest(support.FolderTest):
    """The entries `wrong`: mistakes that readers make, each refused for the reason that it has."""

    def setUp(self) -> None:
        super().setUp()
        for fa in (BUILD / "fa", PROGRAM):
            if not fa.is_file():
                self.fail(f"{fa} is not built; build the target all")

    def sources(self, exercise: Exercise, wrong: Json) -> list[str]:
        """The solution with this text, or the PTX that lacks the instruction at one of its places."""
        if "text" in wrong:
            file = EXERCISES / "solutions" / f"{exercise.file}.txt"
            gaps = GAP.findall(file.read_text(encoding="utf-8"))
            changed = [gap.replace(wrong["text"], wrong["instead"]) for gap in gaps]
            self.assertNotEqual(changed, gaps, wrong)
            return [fill(exercise.file, changed)]
        text = ptx_file(exercise, BUILD / "solutions/ptx").read_text(encoding="utf-8")
        places = re.finditer(rf"^\s*{re.escape(wrong['instruction'])}", text, re.M)
        cut = [f"{text[: each.start()]}\n//{text[each.start() :].lstrip()}" for each in places]
        self.assertTrue(cut, wrong)
        return cut

    def compile_together(self, exercise: Exercise, sources: list[str], folder: Path) -> list[str]:
        """The PTX of each source. The headers cost most of a compilation, so one has all sources,
        each in a namespace of its own, with a number behind the name of its kernel."""
        folder.mkdir(parents=True, exist_ok=True)
        entry = f"fa_{Path(exercise.file).stem}"
        heads = {line for source in sources for line in re.findall(r"^#include .*\n", source, re.M)}
        # The row of the catalogue stands in the namespace fa, and PTX has none.
        text = "".join(sorted(heads)) + "#undef FA_RUNG\n#define FA_RUNG(...) static_assert(true)\n"
        for number, source in enumerate(sources):
            body = re.sub(r"^#include .*\n", "", source, flags=re.M).replace(entry, f"{entry}_n{number}_")
            text += f"namespace n{number} {{\n{body}\n}}\n"
        file, ptx = folder / Path(exercise.file).name, ptx_file(exercise, folder)
        file.write_text(text, encoding="utf-8")
        words = [*nvcc_words(BUILD, exercise, "-lineinfo"), file, "-o", ptx]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = ptx.read_text(encoding="utf-8")
        # The kernels of each, between the text before the first and the text after the last.
        head, *kernels = re.split(r"^(?=\.visible \.entry )", text, flags=re.M)
        end = re.compile(r"\n\}\n(?!\t// end inline asm)")  # a scope of inline PTX ends otherwise
        bodies, tails = zip(*(end.split(each, maxsplit=1) for each in kernels), strict=True)
        ours: list[str] = [""] * len(sources)
        for body in bodies:
            ours[int(re.findall(rf"{entry}_n(\d+)_", body)[0])] += f"{body}\n}}\n"
        return [f"{head}{own}{tails[-1]}".replace(f"{entry}_n{number}_", entry)
                for number, own in enumerate(ours)]  # fmt: skip

    @staticmethod
    def attempt(place: Path, exercise: Exercise, wrong: Json, source: str) -> tuple[int, str]:
        """The verdict on a Python source, or on PTX, in a folder of this place. The first wrong case
        suffices where it is the one that the finding describes."""
        folder = Path(tempfile.mkdtemp(dir=place))
        file = folder / Path(exercise.file).name
        if exercise.number == BENCHMARK.number:
            file.write_text(source, encoding="utf-8")
            return run_here(exercise.number, "--fa", BUILD / "fa", "--file", file)
        ptx_file(exercise, folder).write_text(source, encoding="utf-8")
        words = (exercise.number, "--fa", PROGRAM)
        code, output = run_here(*words, "--fail-fast", FA_PTX_DIR=str(folder))
        if code == 1 and not re.search(wrong["finding"], output):
            code, output = run_here(*words, FA_PTX_DIR=str(folder))
        return code, output

    def jobs(self, exercise: Exercise) -> list[tuple[Exercise, Json, str]]:
        """Each wrong solution, and what is run: Python, or PTX."""
        found = [(wrong, source) for wrong in exercise.data["wrong"]
                 for source in self.sources(exercise, wrong)]  # fmt: skip
        if exercise is BENCHMARK:
            return [(exercise, wrong, source) for wrong, source in found]
        texts = [source for wrong, source in found if "text" in wrong]
        # Where the last run had it: a compiler cache knows a source by its path, too.
        place = BUILD / "solutions/wrong" / str(exercise.number)
        compiled = iter(self.compile_together(exercise, texts, place))
        return [(exercise, wrong, next(compiled) if "text" in wrong else source)
                for wrong, source in found]  # fmt: skip

    def check(self, wrong: Json, code: int, output: str) -> None:
        self.assertEqual(code, 1, output)
        self.assertRegex(output, wrong["finding"])
        for line in output.splitlines():
            if re.match(CASE, line) and line.strip() != "...":
                self.assertRegex(line, f"{VALUE}|{FAULT}")

    def test_each_is_refused_for_its_reason(self) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [job for jobs in pool.map(self.jobs, ALL) for job in jobs]
        # Each process has an output and an environment of its own.
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
            verdicts = pool.map(self.attempt, itertools.repeat(self.folder), *zip(*jobs))
            for (exercise, wrong, _), (code, output) in zip(jobs, verdicts):
                with self.subTest(exercise=exercise.file, wrong=wrong):
                    self.check(wrong, code, output)

    def test_there_are_ten_of_each_exercise(self) -> None:
        for exercise in ALL:
            with self.subTest(exercise=exercise.file):
                wrong = [(each.get("text"), each.get("instead"), each.get("instruction"))
                         for each in exercise.data["wrong"]]  # fmt: skip
                self.assertEqual(len(wrong), len(set(wrong)))
                self.assertGreaterEqual(len(wrong), 10)

    def test_the_thread_of_an_element(self) -> None:
        """Without the stores of one thread its elements are missing, and they are said to be its."""
        for exercise in KERNELS:
            mine = eval(exercise.data["thread"], {"__builtins__": {}}, {"row": 45, "column": 13})
            text = ptx_file(exercise, BUILD / "solutions/ptx").read_text(encoding="utf-8")
            guard = ("{ .reg .pred %mine; .reg .u32 %me; mov.u32 %me, %tid.x; "
                     f"setp.ne.u32 %mine, %me, {mine}; @%mine ")  # fmt: skip
            # Of the kernel that the file is named after: another one prepares what it reads.
            before, entry, text = text.partition(f".entry fa_{Path(exercise.file).stem}(")
            text, behind, others = text.partition(".visible .entry ")
            text, count = re.subn(r"^\s*(st\.global[^;]*;)", rf"{guard}\1 }}", text, flags=re.M)
            self.assertGreater(count, 0)
            text = f"{before}{entry}{text}{behind}{others}"
            ptx_file(exercise, self.folder).write_text(text, encoding="utf-8")
            with self.subTest(exercise=exercise.file):
                words = (exercise.number, "--fa", PROGRAM, "--fail-fast")
                _, output = run_here(*words, FA_PTX_DIR=str(self.folder))
                threads = re.findall(r"column \d+ \((thread[^)]*)\): got -?nan, expected ", output)
                place = f"thread {mine}: warp {mine // 32}, lane {mine % 32}"
                self.assertEqual(set(threads), {place}, output)


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
        self.assertEqual([each.number for each in ALL], list(range(1, 19)))

    def test_unknown_number(self) -> None:
        code, output = run_script(99)
        self.assertEqual(code, 2)
        self.assertIn("99", output)
        self.assertIn("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18", output)

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
