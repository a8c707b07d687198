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
from page import BUILD

EXERCISES = support.REPOSITORY / "docs/exercises"
SCRIPT = support.REPOSITORY / "scripts/exercise.py"
GAP = re.compile(r"[ \t]*(?://|#) Your code: begin.*?Your code: end[^\n]*\n", re.S)
FILES = {
    1: "ex1_online_softmax.cu",
    2: "ex2_causal.cu",
    3: "ex3_conflict.cu",
    4: "ex4_any_length.cu",
    5: "ex5_sectors.cu",
    6: "ex6_fragments.cu",
    7: "ex7_registers.cu",
    8: "ex8_ldmatrix.cu",
    9: "ex9_swizzle.cu",
    10: "ex10_pipeline.cu",
    11: "hopper/ex11_ring.cu",
    12: "hopper/ex12_descriptor.cu",
    13: "hopper/ex13_wait.cu",
    14: "ex14_benchmark.py",
}
BENCHMARK_NUMBER = 14
SOLUTIONS = BUILD / "solutions/source"  # the exercises with their gaps filled
BENCHMARK = SOLUTIONS / FILES[BENCHMARK_NUMBER]


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
        folder = EXERCISES if kind == "exercises" else SOLUTIONS
        fa, environment = BUILD / kind / "fa", {"FA_PTX_DIR": str(BUILD / kind / "ptx")}
        if number == BENCHMARK_NUMBER:  # not a kernel
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
        # The case whose inputs have spikes, and those whose scores are all far from 0.
        results, *failures = self.unsolved(1)
        self.assertRegex(results, r"wrong  results: 6 cases of fa check ex1 fail, [1-9]\d* pass")
        for failure in failures[:3]:
            self.assertRegex(failure, r" (high|low)(, spread 40)?: nan at .* are not finite")

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

    def finds_in_all_cases(self, number: int, finding: str) -> None:
        """Each failure that is shown has this finding."""
        head, *failures = self.unsolved(number)
        self.assertRegex(head, r"wrong  results: [1-9]\d* cases of fa check ex\d+ fail")
        self.assertTrue(failures)  # a finding is shown for the first case that has it
        for failure in failures:
            self.assertRegex(failure, rf"{finding}|^ *\.\.\.$")

    def excess(self, line: str) -> tuple[int, int]:
        """What was found and what is needed."""
        found = re.search(r"wrong  [^:]*: (\d+), more than the (\d+) that are needed", line)
        assert found, line
        return int(found[1]), int(found[2])

    def test_any_length_reads_outside(self) -> None:
        self.finds_in_all_cases(4, r"global read of 4 bytes out of bounds: at \+\d+ of buffer '[QKV]'")

    def test_sectors_are_wasted(self) -> None:
        results, sectors = self.unsolved(5)
        self.assertRegex(results, "ok     results: all")
        found, needed = self.excess(sectors)
        self.assertEqual(found, 8 * needed)  # a float of each sector

    def test_fragments_are_wrong(self) -> None:
        self.finds_in_all_cases(6, r"elements wrong")

    def test_p_takes_a_detour(self) -> None:
        results, stores, loads, shuffles = self.unsolved(7)
        self.assertRegex(results, "ok     results: all")
        self.assertEqual(self.excess(stores)[1], 0)
        found, needed = self.excess(loads)
        self.assertEqual(found - needed, needed // 10)  # 2 of P for 20 of Q, K and V
        self.assertRegex(shuffles, "ok     shuffles")

    def test_addresses_of_ldmatrix_are_wrong(self) -> None:
        self.finds_in_all_cases(8, r"elements wrong")

    def test_rows_conflict(self) -> None:
        results, wavefronts = self.unsolved(9)
        self.assertRegex(results, "ok     results: all")
        found, needed = self.excess(wavefronts)
        self.assertEqual(found, 8 * needed)

    def test_no_copy_is_in_the_background(self) -> None:
        results, copies = self.unsolved(10)
        self.assertRegex(results, "ok     results: all")
        self.assertRegex(copies, "wrong  groups of copies in flight while warp 0 multiplies: 0 of 8")

    def test_ring_is_overrun(self) -> None:
        self.finds_in_all_cases(11, r"1 arrival at the mbarrier .*, of which phase 0 misses 0")

    def test_descriptor_is_incomplete(self) -> None:
        self.finds_in_all_cases(12, r"elements wrong")

    def test_registers_are_in_flight(self) -> None:
        self.finds_in_all_cases(13, r"accumulator of a wgmma in flight; wgmma.wait_group must come first")

    def test_benchmark_is_not_written(self) -> None:
        lines = self.unsolved(BENCHMARK_NUMBER)
        functions = ("flops", "rate", "speed_ups", "bytes_written")
        self.assertEqual(lines, [f"  wrong  {name}: not written yet" for name in functions])

    def test_solutions_hold_the_gaps_alone(self) -> None:
        for name in FILES.values():
            with self.subTest(exercise=name):
                text = (EXERCISES / "solutions" / f"{name}.txt").read_text(encoding="utf-8")
                self.assertEqual(GAP.sub("", text).strip(), "")


class SynchronisationTest(support.FolderTest):
    """A solution that lacks one of its synchronising instructions is not right any more."""

    MISSING = (
        (10, "cp.async.wait_group", "is still writing"),
        (10, "bar.sync", "nothing orders them"),
        (11, "mbarrier.arrive.shared", "deadlock"),
        (13, "wgmma.wait_group", "wgmma.wait_group must come first"),
        (13, "wgmma.fence", "written after its last wgmma.fence"),
    )

    def test_missing_instructions(self) -> None:
        fa = BUILD / "solutions/fa"
        if not fa.is_file():
            self.fail(f"{fa} is not built; build the target all")
        for number, instruction, finding in self.MISSING:
            name = Path(FILES[number]).with_suffix(".ptx").name
            text = (BUILD / "solutions/ptx" / name).read_text(encoding="utf-8")
            places = list(re.finditer(rf"^\s*{re.escape(instruction)}", text, re.M))
            self.assertTrue(places, instruction)
            for place in places:
                with self.subTest(exercise=number, instruction=instruction, at=place.start()):
                    at = place.start()
                    (self.folder / name).write_text(f"{text[:at]}\n//{text[at:].lstrip()}")
                    code, output = run_script(number, "--fa", fa, FA_PTX_DIR=str(self.folder))
                    self.assertEqual(code, 1, output)
                    self.assertIn(finding, output)


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
        'problem["causal"])] = value': ("False)] = value", "speed_ups: "),
        '[(*shape, problem["causal"])]': ("[shape]", "speed_ups: "),
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
                file = self.folder / FILES[BENCHMARK_NUMBER]
                file.write_text(text.replace(place, mistake), encoding="utf-8")
                code, output = run_script(BENCHMARK_NUMBER, "--fa", BUILD / "fa", "--file", file)
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
        code, output = run_script(99)
        self.assertEqual(code, 2)
        self.assertIn("99", output)
        self.assertIn("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14", output)

    def test_first_time_without_a_build(self) -> None:
        own = self.folder / "own"
        environment = {"FA_OWN_DIR": str(own), "FA_BUILD_DIR": str(self.folder)}
        for number in (2, 11):  # of which one belongs into a folder of its own
            file = FILES[number]
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
