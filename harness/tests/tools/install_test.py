# SPDX-License-Identifier: MIT
"""cmake --install, from the build that is here into a folder that is then moved.

What comes out is used as a stranger would: a project of its own finds the machine and runs a
kernel, every public header compiles alone, and the installed `fa` finds its PTX. The consumer
project is the one that docs/howto_ptxvm.md shows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import support
from page import BUILD, cache_entry

CONSUMER = support.REPOSITORY / "harness/vm/tests/consumer"
HEADERS = support.REPOSITORY / "harness/vm/include/ptxvm"
PAGE = support.REPOSITORY / "docs/howto_ptxvm.md"


def run(*words: object, cwd: Path | None = None, text: str = "") -> subprocess.CompletedProcess[str]:
    """One command, without what would lead an installed program back to the build."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FA_")}
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True, text=True, check=False, cwd=cwd, env=environment, input=text,
        timeout=300,
    )  # fmt: skip


class InstallTest(unittest.TestCase):
    """`prefix` holds the components of COMPONENTS, "" for what --component is not needed for; it is not where they were installed to."""

    components: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    prefix: Path

    @classmethod
    def setUpClass(cls) -> None:
        for program in cls.programs:
            if not (BUILD / program).is_file():
                raise unittest.SkipTest(f"{program} is not built")
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        first = Path(holder.name) / "first"
        for component in cls.components:
            which = ("--component", component) if component else ()
            done = run("cmake", "--install", BUILD, "--prefix", first, *which)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
        cls.prefix = first.rename(Path(holder.name) / "moved")

    def succeed(self, *words: object, cwd: Path | None = None) -> str:
        done = run(*words, cwd=cwd)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout


class Machine(InstallTest):
    components = ("ptxvm",)
    programs = ("ptxvm",)

    def test_nothing_but_the_machine_is_there(self) -> None:
        files = {str(file.relative_to(self.prefix)) for file in self.prefix.rglob("*") if file.is_file()}
        headers = {file for file in files if file.startswith("include/")}
        ours = {f"include/ptxvm/{file.name}" for file in HEADERS.glob("*.h")}
        self.assertEqual(headers, ours)
        others = {Path(file).name for file in files - headers}
        configs = {f"ptxvm-{word}.cmake" for word in ("config", "config-version", "targets")}
        configs.add(f"ptxvm-targets-{cache_entry('CMAKE_BUILD_TYPE').lower()}.cmake")
        runtime = {"libcudart.so.13", "libcuda.so.1"}  # for ptxvm exec, where CUDA's headers are
        rest = {name for name in others - runtime if not name.startswith("libptxvm.")}
        self.assertEqual(rest, {"ptxvm"} | configs)
        for config in self.prefix.rglob("*.cmake"):
            for folder in (BUILD, support.REPOSITORY):
                self.assertNotIn(str(folder), config.read_text(encoding="utf-8"), config)

    def test_a_project_finds_it_and_runs_a_kernel(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder) / "build"
            self.succeed(
                *("cmake", "-S", CONSUMER, "-B", build, "-G", cache_entry("CMAKE_GENERATOR")),
                f"-DCMAKE_PREFIX_PATH={self.prefix}",
                f"-DCMAKE_CXX_COMPILER={cache_entry('CMAKE_CXX_COMPILER')}",
                f"-DCMAKE_CXX_FLAGS={cache_entry('CMAKE_CXX_FLAGS')}",
            )
            self.succeed("cmake", "--build", build)
            out = self.succeed(build / "counts", CONSUMER / "twice.ptx", "twice")
        # 8 blocks of 4 warps, each reads and writes 128 bytes once.
        self.assertRegex(out, r"load_global +32\n")
        self.assertRegex(out, r"load +32 +128 +4 096\n")
        self.assertTrue(out.endswith("2 in out[0]\n"), out)

    def test_a_compiled_program_runs(self) -> None:
        program = BUILD / "harness/tests/vm/exec/programs"
        if not program.is_file():
            self.skipTest("there are no programs: no nvcc, or not that of CUDA 13")
        self.succeed(self.prefix / "bin/ptxvm", "exec", program, "vectors")

    def test_another_version_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "find.cmake"
            script.write_text(
                "cmake_minimum_required(VERSION 3.23)\nfind_package(ptxvm 99 REQUIRED)\n", encoding="utf-8"
            )
            done = run("cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-P", script)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"ptxvm-config.cmake, version: 0\.1\.0")

    def test_every_header_compiles_alone(self) -> None:
        headers = sorted((self.prefix / "include/ptxvm").glob("*.h"))

        def compile_alone(header: Path) -> str:
            done = run(
                *(cache_entry("CMAKE_CXX_COMPILER"), "-std=c++20", "-fsyntax-only", "-x", "c++"),
                *("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", self.prefix / "include", "-"),
                text=f"#include <ptxvm/{header.name}>\n",
            )
            return "" if done.returncode == 0 else f"{header.name}:\n{done.stderr}"

        with ThreadPoolExecutor(2) as pool:
            wrong = [each for each in pool.map(compile_alone, headers) if each]
        self.assertEqual(wrong, [])

    def test_the_tool(self) -> None:
        out = self.succeed(self.prefix / "bin/ptxvm", "list", CONSUMER / "twice.ptx")
        self.assertIn("\ntwice\n  param   .u64 in (8 bytes at 0)\n", out)


class Page(unittest.TestCase):
    def test_the_page_shows_the_project_that_is_tested(self) -> None:
        text = PAGE.read_text(encoding="utf-8")
        for kind, name in (("cmake", "CMakeLists.txt"), ("cpp", "main.cpp")):
            block = re.search(rf"```{kind}\n(.*?)```", text, re.S)
            self.assertIsNotNone(block, kind)
            code = (CONSUMER / name).read_text(encoding="utf-8")
            if os.environ.get("FA_HOWTO") == "write":
                text = text.replace(f"```{kind}\n{block[1]}```", f"```{kind}\n{code}```")
                PAGE.write_text(text, encoding="utf-8")
            else:
                self.assertEqual(block[1], code, f"{name}: FA_HOWTO=write copies it into the page")
            self.assertLessEqual(len(code.splitlines()), 20, name)


class Alone(unittest.TestCase):
    def test_the_machine_is_configured_without_cuda_and_without_packages(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                *("cmake", "-S", support.REPOSITORY / "harness/vm", "-B", folder),
                *("-G", cache_entry("CMAKE_GENERATOR"), "-DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON"),
                f"-DCMAKE_CXX_COMPILER={cache_entry('CMAKE_CXX_COMPILER')}",
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cache = (Path(folder) / "CMakeCache.txt").read_text(encoding="utf-8")
        self.assertNotIn("CMAKE_CUDA_COMPILER", cache)
        self.assertNotIn("nvcc", cache)


class Fa(InstallTest):
    components = ("fa",)
    programs = ("fa",)

    def test_it_runs_from_anywhere(self) -> None:
        words = ("run", "06", "--device", "vm", "--seq", "128")
        out = self.succeed(self.prefix / "bin/fa", *words, cwd=self.prefix)
        self.assertIn("06_batched", out)
        # Through a link, as package managers put programs on PATH.
        link = self.prefix / "fa"
        link.symlink_to("bin/fa")
        self.assertEqual(self.succeed(link, *words), out)

    def test_its_ptx_is_that_of_the_prefix(self) -> None:
        copy = self.prefix / "copy"
        for part in ("bin", "share"):
            shutil.copytree(self.prefix / part, copy / part)
        (broken,) = copy.rglob("06_*.ptx")
        broken.write_text("frob\n" + broken.read_text(encoding="utf-8"), encoding="utf-8")
        done = run(copy / "bin/fa", "run", "06", "--device", "vm", "--seq", "128")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(str(broken), done.stderr)


class Whole(InstallTest):
    components = ("",)
    programs = ("fa", "ptxvm")

    def test_the_prefix_may_be_that_of_the_system(self) -> None:
        there = {file.name for file in self.prefix.iterdir()}
        self.assertLessEqual(there, {"bin", "include", "lib", "lib64", "share"})
        self.assertTrue(all((self.prefix / "bin" / program).is_file() for program in self.programs))


if __name__ == "__main__":
    unittest.main()
