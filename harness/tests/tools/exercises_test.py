# SPDX-License-Identifier: MIT
"""The exercises: unsolved as they ship, for the reason that they teach; solved by their solutions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest

import support
from page import BUILD

EXERCISES = support.REPOSITORY / "docs/exercises"
SCRIPT = support.REPOSITORY / "scripts/exercise.py"
GAP = re.compile(r"(Your code: begin.*?\n)((?: *//[^\n]*\n)*)(.*?)( *(?://|#) Your code: end)", re.S)
FILES = {1: "ex1_online_softmax.cu", 2: "ex2_causal.cu", 3: "ex3_conflict.cu", 4: "ex4_benchmark.py"}
BENCHMARK = EXERCISES / "solutions/ex4_benchmark.py"


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
    def check(self, number: int, kind: str) -> tuple[int, str]:
        """The verdict on a file as it is built into a program of its own."""
        folder = EXERCISES if kind == "exercises" else EXERCISES / kind
        fa, environment = BUILD / kind / "fa", {"FA_PTX_DIR": str(BUILD / kind / "ptx")}
        if number == 4:  # not a kernel
            fa, environment = BUILD / "fa", {}
        if not fa.is_file():
            self.fail(f"{fa} is not built; build the target all")
        return run_script(number, "--fa", fa, "--file", folder / FILES[number], **environment)

    def unsolved(self, number: int) -> list[str]:
        """The findings of what ships."""
        code, output = self.check(number, "exercises")
        self.assertEqual(code, 1, output)
        self.assertTrue(output.endswith("not solved yet\n"), output)
        return output.splitlines()[1:-1]

    def test_solutions_are_right(self) -> None:
        for number in FILES:
            with self.subTest(exercise=number):
                code, output = self.check(number, "solutions")
                self.assertEqual(code, 0, output)
                self.assertTrue(output.endswith("\nsolved\n"), output)
                self.assertNotIn("  wrong  ", output)

    def test_online_softmax_overflows(self) -> None:
        results, spikes = self.unsolved(1)
        # The case whose inputs have spikes.
        self.assertRegex(results, r"wrong  results: 1 cases of fa check ex1 fail, [1-9]\d* pass")
        self.assertRegex(spikes, r" spike: nan at .* are not finite")

    def test_causal_is_wrong_where_it_is_causal(self) -> None:
        head, *failures = self.unsolved(2)
        self.assertRegex(head, r"wrong  results: [1-9]\d* cases of fa check ex2 fail, [1-9]\d* pass")
        self.assertTrue(failures)
        for failure in failures:
            self.assertRegex(failure, r" causal |^ +\.\.\.$")

    def test_conflict_is_right_and_slow(self) -> None:
        results, reads, writes, loads = self.unsolved(3)
        self.assertRegex(results, "ok     results: all")
        found = re.search(r"wrong  wavefronts of shared-memory reads: (\d+), more than the (\d+)", reads)
        assert found
        # Half of the reads are of K, and these take 32 wavefronts instead of one.
        self.assertEqual(int(found[1]), int(found[2]) // 2 * 33)
        self.assertRegex(writes, "ok     wavefronts")
        self.assertRegex(loads, "ok     warp loads")

    def test_benchmark_is_not_written(self) -> None:
        lines = self.unsolved(4)
        functions = ("flops", "rate", "speed_ups", "bytes_written")
        self.assertEqual(lines, [f"  wrong  {name}: not written yet" for name in functions])

    def test_only_the_gaps_differ(self) -> None:
        for number, name in FILES.items():
            with self.subTest(exercise=number):
                shipped, solved = (
                    (folder / name).read_text(encoding="utf-8")
                    for folder in (EXERCISES, EXERCISES / "solutions")
                )
                self.assertNotEqual(shipped, solved)
                self.assertEqual(*(GAP.sub(r"\1\4", text) for text in (shipped, solved)))


class BenchmarkTest(support.FolderTest):
    """Usual mistakes of a benchmark are found."""

    MISTAKES = {
        "return 4 * pairs": ("return 2 * pairs", "flops: "),
        '["median"]': ('["min"]', "rate: "),
        "1e-3": ("1", "rate: "),
        'row["status"] != "ok" or ': ("", "rate: "),
        ' or row["ablation"]': ("", "speed_ups: "),
        'problem["seq_q"], problem["head_dim"]\n': ('problem["seq_q"], 0\n', "speed_ups: "),
        'shape = problem["batch"]': ("shape = 1", "speed_ups: "),
        "/ rates[standard][key]": ("* rates[standard][key]", "speed_ups: "),
        "3 * scores": ("scores", "bytes_written: "),
        "# Your code: end": ("raise KeyError('x')", "KeyError"),
    }

    def test_mistakes(self) -> None:
        if not (BUILD / "fa").is_file():
            self.fail("fa is not built; build the target all")
        text = BENCHMARK.read_text(encoding="utf-8")
        for place, (mistake, message) in self.MISTAKES.items():
            with self.subTest(mistake=mistake):
                self.assertIn(place, text)
                file = self.folder / "ex4_benchmark.py"
                file.write_text(text.replace(place, mistake), encoding="utf-8")
                code, output = run_script(4, "--fa", BUILD / "fa", "--file", file)
                self.assertEqual(code, 1, output)
                self.assertIn("wrong  " if message == "KeyError" else f"wrong  {message}", output)

    def test_the_table(self) -> None:
        results = support.REPOSITORY / "plots/results/h200/ladder.json"
        done = subprocess.run([sys.executable, BENCHMARK, results, "01", "06"],
                              capture_output=True, text=True, check=True)  # fmt: skip
        self.assertRegex(done.stdout, r"^06 against 01\n(B=\d+ H=\d+ N=\d+ d=\d+: \d+\.\d\d times as fast\n)+$")


class CommandLineTest(support.FolderTest):
    def test_the_list_names_every_file(self) -> None:
        code, output = run_script()
        self.assertEqual(code, 0)
        for name in FILES.values():
            self.assertIn(f"docs/exercises/{name}", output)

    def test_unknown_number(self) -> None:
        code, output = run_script(9)
        self.assertEqual(code, 2)
        self.assertIn("1, 2, 3, 4", output)

    def test_first_time_without_a_build(self) -> None:
        own = self.folder / "own"
        environment = {"FA_OWN_DIR": str(own), "FA_BUILD_DIR": str(self.folder)}
        code, output = run_script(2, **environment)
        self.assertEqual(code, 3)
        self.assertIn("is no build folder", output)
        self.assertEqual((own / FILES[2]).read_bytes(), (EXERCISES / FILES[2]).read_bytes())
        (own / FILES[2]).write_text("mine", encoding="utf-8")
        self.assertEqual(run_script(2, **environment)[0], 3)
        self.assertEqual((own / FILES[2]).read_text(encoding="utf-8"), "mine")


if __name__ == "__main__":
    unittest.main()
