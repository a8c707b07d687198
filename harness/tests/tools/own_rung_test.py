# SPDX-License-Identifier: MIT
"""docs/own_rung.md, followed to the letter, in a folder of its own.

There `build` is a project that takes fa's libraries from the real build and adds the kernel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from page import BUILD, PASSED_ON, PageTest, cache_entry

LIBRARIES = BUILD / "exercises/libraries.cmake"
SOLUTIONS = BUILD / "solutions/source"
PROJECT = support.REPOSITORY / "harness/tests/exercises/project"


class OwnRungTest(PageTest):
    def setUp(self) -> None:
        super().setUp()
        self.own = self.folder / "kernels/own"
        ptx = self.folder / "build/ptx"
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", "FA_PTX_DIR": str(ptx)}
        for variable in ("NINJA_STATUS", "CLICOLOR_FORCE", "FA_OWN_DIR"):
            self.environment.pop(variable, None)

    def configure(self) -> None:
        values = {name: cache_entry(name) for name in PASSED_ON}
        generator = values.pop("CMAKE_GENERATOR")
        values |= {
            "FA_LIBRARIES": str(LIBRARIES),
            "FA_OWN_DIR": str(self.own),
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_CUDA_ARCHITECTURES": "80-real",
            "Python3_EXECUTABLE": cache_entry("_Python3_EXECUTABLE"),
        }
        done = subprocess.run(
            ["cmake", "-S", PROJECT, "-B", self.folder / "build", "-G", generator]
            + [f"-D{name}={value}" for name, value in values.items() if value],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def succeed(self, command: str) -> str:
        done = self.run_command(command)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def need_build(self) -> None:
        self.need_nvcc()
        if not LIBRARIES.is_file():
            self.skipTest("fa is not built with its tests")

    def test_the_page(self) -> None:
        self.need_build()
        self.configure()
        text = ""

        def write_code(code: str) -> None:
            nonlocal text
            text += code
            (self.own / "my_first.cu").write_text(text, encoding="utf-8")

        self.follow(support.REPOSITORY / "docs/own_rung.md", write_code)
        self.assertEqual(self.run_command("build/fa check my --device vm").returncode, 1)
        self.more_kernels()
        self.an_exercise()
        self.a_taken_id()

    def more_kernels(self) -> None:
        """What the page says in prose: kernels for sm_90a have a folder; own means them all; a
        kernel prints."""
        first = (self.own / "my_first.cu").read_text(encoding="utf-8")
        (self.own / "hopper").mkdir()
        (self.own / "hopper/mine_too.cu").write_text(
            first.replace("my_first", "mine_too").replace(", sm_80, f32", ", sm_90a, f32"),
            encoding="utf-8",
        )
        loud = self.own / "loud_one.cu"
        print_row = '  if (row == 65) printf("row %d\\n", row);\n'
        text = first.replace("my_first", "loud_one").replace("  float m", print_row + "  float m", 1)
        loud.write_text("#include <cstdio>\n" + text, encoding="utf-8")
        self.succeed("cmake --build build --target fa")
        # As on a GPU, but of the two launches that are compared only the first is heard.
        said = self.run_command("build/fa run loud --device vm --dim 64 --heads 1 --seq 128").stdout
        self.assertEqual(said.count("row 65\n"), 1, said)
        loud.unlink()
        self.assertIn("9.0a", self.succeed("build/fa list | grep mine_too"))
        self.assertIn("target sm_90a", Path(self.folder, "build/ptx/mine_too.ptx").read_text())
        self.assertIn("my_first", self.succeed("build/fa check own --device vm; test $? = 1"))

    def an_exercise(self) -> None:
        """scripts/exercise.py copies, builds and checks; then the reader fills the gap."""
        self.environment |= {"FA_OWN_DIR": str(self.own), "FA_BUILD_DIR": "build"}
        command = f"{support.REPOSITORY}/scripts/exercise.py 3"
        unsolved = self.run_command(command)
        self.assertEqual(unsolved.returncode, 1, unsolved.stdout)
        self.assertIn("new: ", unsolved.stdout)
        self.assertIn("wrong  wavefronts of shared-memory reads", unsolved.stdout)
        file = self.own / "ex3_conflict.cu"
        shutil.copyfile(SOLUTIONS / "ex3_conflict.cu", file)
        self.assertIn("\nsolved", self.succeed(command))
        file.write_text("no C++", encoding="utf-8")
        broken = self.run_command(command)
        self.assertEqual(broken.returncode, 1)
        self.assertIn("the build fails", broken.stdout)
        self.another_exercise()
        file.unlink()

    def another_exercise(self) -> None:
        """It is solved although exercise 3 does not compile."""
        file = self.own / "hopper/ex12_descriptor.cu"
        shutil.copyfile(SOLUTIONS / "hopper/ex12_descriptor.cu", file)
        said = self.succeed(f"{support.REPOSITORY}/scripts/exercise.py 12")
        self.assertIn("does not compile; checked with build/own/fa_ex12_descriptor\n", said)
        self.assertIn("\nsolved", said)
        file.unlink()

    def a_taken_id(self) -> None:
        first = (self.own / "my_first.cu").read_text(encoding="utf-8")
        (self.own / "01_base.cu").write_text(first.replace("my_first", "01_mine"), encoding="utf-8")
        self.succeed("cmake --build build --target fa")
        refused = self.run_command("build/fa list")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("01_base and 01_mine have the same id, '01'; rename one", refused.stdout)


if __name__ == "__main__":
    unittest.main()
