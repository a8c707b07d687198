# SPDX-License-Identifier: MIT
"""ptxvm exec, on compiled CUDA programs. sys.argv: FILE PTXVM FOLDER, with the programs."""

from __future__ import annotations

import os
import subprocess
import unittest

from tool_case import ENVIRONMENT, FINDING, GOOD, PTX, PTXVM, REFUSED, ToolCase

RIGHT = (
    *("vectors", "atomics", "transpose", "streams", "managed", "symbols", "cooperative"),
    *("clusters", "tma", "shared", "threads", "prints"),
)
NO_IMAGE = 209  # cudaErrorNoKernelImageForDevice


class ExecTest(ToolCase):
    def exec(self, *words: str, code: int = GOOD) -> tuple[str, str]:
        """A word that names a program of the folder stands for it."""
        named = [PTX / word if (PTX / word).is_file() else word for word in words]
        return self.tool("exec", *named, code=code)

    def test_programs_that_judge_themselves(self) -> None:
        # The first has CUDA's runtime linked into it, the second asks for libcudart.so.13.
        for program in ("programs", "programs_shared"):
            for name in RIGHT:
                with self.subTest(program=program, name=name):
                    out, err = self.exec(program, name)
                    self.assertEqual(err, "")
                    said = "host\nblock 0 of 2\nblock 1 of 2\nhost again\n"
                    self.assertEqual(out, said if name == "prints" else "")

    def test_thrust_and_cub(self) -> None:
        self.assertEqual(self.exec("thrust"), ("", ""))

    def test_the_order_of_warps_and_threads_changes_nothing(self) -> None:
        for name in ("atomics", "cooperative", "clusters", "tma"):
            self.exec("--reversed", "--threads", "2", "programs", name)

    def test_findings_and_faults(self) -> None:
        _, err = self.exec("programs", "race", code=FINDING)
        self.assertRegex(err, r"ptxvm: .*unordered\(int\*\): grid \(1, 1, 1\), block \(64, 1, 1\)")
        self.assertRegex(err, r"race: .*warp 1 reads at .*\(programs.cu:\d+\) what warp 0 wrote")
        self.assertTrue(err.endswith("ptxvm: errors in 1 of 1 launches\n"), err)
        _, err = self.exec("--ignore", "race,uninitialised", "programs", "race")
        self.assertEqual(err, "")
        _, err = self.exec("programs", "bounds", code=FINDING)
        self.assertIn("at +400 of buffer 'cudaMalloc 1' (400 bytes)", err)

        out, err = self.exec("programs", "asserts", code=FINDING)
        self.assertRegex(out, "Assertion `n < 0` failed")

    def test_what_a_card_would_refuse(self) -> None:
        _, err = self.exec("programs", "large", code=FINDING)
        self.assertRegex(err, "60000 bytes of dynamic shared memory; more than 49152 need cudaFunc")
        _, err = self.exec("programs", "overrun", code=FINDING)
        self.assertRegex(err, "20 bytes at .0 of 'cudaMalloc 1', which has 16 bytes")

    def test_memory_of_the_card_is_none_of_the_host(self) -> None:
        self.exec("programs", "dereference", code=-11)

    def test_what_is_missing_has_a_name(self) -> None:
        for program in ("programs", "programs_shared"):
            _, err = self.exec(program, "missing", code=REFUSED)
            self.assertRegex(err, "this program calls cudaMallocArray, which ptxvm exec does not")
        _, err = self.exec("stripped", "vectors", code=REFUSED)
        self.assertRegex(err, "no table of symbols: .* nvcc -cudart shared")
        _, err = self.exec("no_ptx", code=NO_IMAGE)
        self.assertRegex(err, "no PTX for the h200, only machine code for sm_90: compile with")
        _, err = self.exec("--card", "a100", "programs", "vectors", code=3)
        self.assertRegex(err, "no PTX for the a100, only PTX for sm_90")

    def test_modules_that_were_compiled_apart(self) -> None:
        self.assertEqual(self.exec("linked"), ("", ""))

    def test_small_floats_are_those_of_the_headers(self) -> None:
        self.assertEqual(self.exec("small_floats"), ("", ""))

    def test_a_target_is_no_reason_to_refuse(self) -> None:
        self.assertEqual(self.exec("later"), ("", ""))

    def test_the_command_line(self) -> None:
        _, err = self.exec("--counts", "programs", "vectors")
        self.assertRegex(err, r"grid \(4, 1, 1\)[\s\S]*load_global +64\n")
        self.exec("programs", "--help", code=9)  # the program's own word
        self.assertIn("--counts", self.exec("--help")[0])
        self.refused("exec", says="exec needs a program")
        self.refused("exec", "--grid", "1", PTX / "programs", says="'--grid' is not understood")
        self.refused("exec", "--card", "tpu", PTX / "programs", says="no card 'tpu'")
        self.refused("exec", "--ignore", "rice", PTX / "programs", says="'rice' is not a checker")
        self.refused("exec", "./nowhere", says="nowhere: No such file", code=ENVIRONMENT)

    def test_the_runtime_works_by_preloading_alone(self) -> None:
        runtime = PTXVM.parent / "cuda/libcudart.so.13"
        done = subprocess.run(
            [PTX / "programs", "race"],
            env={**os.environ, "LD_PRELOAD": str(runtime)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, FINDING, done.stderr)
        self.assertIn("race: ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
