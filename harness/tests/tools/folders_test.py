# SPDX-License-Identifier: MIT
"""Scripts in folders with spaces and other letters, and FA_..._DIR where one stands elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path

import support

SCRIPTS = support.REPOSITORY / "scripts"
CMAKE = """#!/bin/sh
echo "$PWD: $*" >>"$LOG"
"""
CLANG_FORMAT = """#!/bin/sh
[ "$1" != --version ] || echo "clang-format version {version}"
for file; do
  case "$file" in *ugly*) echo "$file:1:1: error: code should be clang-formatted" >&2 ;; esac
done
"""


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class FoldersTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder / "ein älterer Klon"
        shutil.copytree(SCRIPTS, self.root / "scripts")

    def tool(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def bash(self, command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=os.environ | more, text=True,
            capture_output=True, check=False,
        )  # fmt: skip

    def test_relative_folders_are_those_of_the_caller(self) -> None:
        self.tool(self.folder / "bin" / "cmake", CMAKE)
        log = self.folder / "log"
        command = 'source "$LIB"; configure_and_build fa; echo "$VENV:$BUILD_DIR:$RUNS_DIR"'
        done = self.bash(
            command,
            LIB=str(self.root / "scripts" / "lib.sh"), LOG=str(log),
            FA_BUILD_DIR="b", FA_RUNS_DIR="../r", FA_VENV_DIR="/v",
            PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        here = os.path.realpath(self.folder)
        self.assertEqual(done.stdout, f"/v:{here}/b:{os.path.dirname(here)}/r\n")
        configure, build = log.read_text().splitlines()
        self.assertIn(f": -S {self.root} --preset release -B {here}/b", configure)
        self.assertIn(f": --build {here}/b ", build)

    @unittest.skipUnless(shutil.which("cmake"), "cmake is not installed")
    def test_a_checkout_that_was_moved_or_copied_builds(self) -> None:
        presets = '{"version": 6, "configurePresets": [{"name": "release"}]}'
        project = 'cmake_minimum_required(VERSION 3.25)\nproject(moved NONE)\n'
        project += 'add_custom_target(fa COMMAND "${CMAKE_COMMAND}" -E echo "${CMAKE_SOURCE_DIR}")'
        (self.root / "CMakePresets.json").write_text(presets)
        (self.root / "CMakeLists.txt").write_text(project)

        def build(root: Path) -> subprocess.CompletedProcess[str]:
            command = f"source '{root}/scripts/lib.sh'; configure_and_build fa"
            done = self.bash(command, FA_BUILD_DIR=str(root / "build"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"\n{root}\n", done.stderr)
            return done

        for _ in range(2):
            self.assertNotIn("afresh", build(self.root).stderr)
        copied, moved = self.folder / "copied", self.folder / "moved"
        shutil.copytree(self.root, copied)
        self.assertIn("afresh", build(copied).stderr)
        self.assertNotIn("afresh", build(copied).stderr)
        self.root.rename(moved)
        self.assertIn("afresh", build(moved).stderr)

    def test_no_word_is_ignored(self) -> None:
        """Nothing runs: cmake would be found in the log."""
        self.tool(self.folder / "bin" / "cmake", CMAKE)
        log = self.folder / "log"
        environment = {
            "LOG": str(log), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "FA_BUILD_DIR": str(self.folder / "build"), "FA_VENV_DIR": str(self.folder / "venv"),
        }  # fmt: skip
        for words, message in (
            ("test.sh --frob", "unknown option '--frob'; allowed: -R --tests-regex "),
            ("test.sh -R vm frob", "unknown option 'frob'; allowed: -R"),
            ("test.sh -VV -R", "-R needs a value"),
            ("test.sh --only", "--only needs the name of one test"),
            ("test.sh --only a b", "--only needs the name of one test"),
            ("docs.sh site frob", "unknown word 'frob'; allowed: serve, check, or one folder"),
            ("docs.sh serve frob", "unknown word 'frob'; allowed: serve, check, or one folder"),
            ("docs.sh frob", "there is no folder 'frob'; allowed: serve, check, or a folder"),
            ("docs.sh --frob", "unknown option '--frob'; allowed: serve, check, or a folder"),
            ("fresh.sh --frob", "unknown option '--frob'; allowed: --toolkit"),
            ("fresh.sh --toolkits true", "unknown option '--toolkits'; allowed: --toolkit"),
            ("format.sh --check frob", "unknown word 'frob'; allowed: --check"),
            ("format.sh --frob", "unknown option '--frob'; allowed: --check"),
            ("setup.sh --frob", "unknown part '--frob'; allowed: build cuda python web charts"),
            ("setup.sh build ''", "unknown part ''; allowed: build cuda python web charts"),
            ("shellcheck.sh --frob", "unknown word '--frob'; allowed: none"),
        ):
            with self.subTest(words=words):
                done = self.bash(f"'{self.root}'/scripts/{words}", **environment)
                script = words.partition(" ")[0]
                self.assertIn(f"{script}: error: {message}", done.stderr)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertFalse(log.exists())

    def test_one_test_is_built_and_run(self) -> None:
        build = os.environ.get("FA_BUILD_DIR", str(support.REPOSITORY / "build"))
        if not Path(build, "build.ninja").is_file():
            self.skipTest("not built by ninja")
        command = f"'{support.REPOSITORY}/scripts/test.sh' --only"
        done = self.bash(f"{command} vm.layout_test", FA_BUILD_DIR=build)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("100% tests passed, 0 tests failed out of 1", done.stdout)
        done = self.bash(f"{command} vm.layout", FA_BUILD_DIR=build)
        self.assertEqual(done.returncode, 2)
        self.assertIn('no test "vm.layout"; the nearest: vm.layout_test', done.stderr)

    def test_a_site_where_nothing_can_be_written(self) -> None:
        file = self.folder / "file"
        file.touch()
        done = self.bash(f"'{self.root}/scripts/docs.sh' '{file}/site'")
        self.assertEqual(done.returncode, 3)
        message = f"cannot write '{file}/site'; name another folder: scripts/docs.sh FOLDER"
        self.assertEqual(done.stderr, f"docs.sh: error: {message}\n")

    def test_what_is_not_formatted_is_named(self) -> None:
        wanted = (SCRIPTS / "requirements.txt").read_text().partition("clang-format==")[2]
        text = CLANG_FORMAT.replace("{version}", wanted.partition("\n")[0])
        self.tool(self.folder / "venv" / "bin" / "clang-format", text)
        for folder in ("kernels", "harness", "docs"):
            (self.root / folder).mkdir()
            (self.root / folder / "good.h").touch()
        command = f"'{self.root}/scripts/format.sh' --check"
        venv = str(self.folder / "venv")
        self.assertEqual(self.bash(command, FA_VENV_DIR=venv).returncode, 0)
        (self.root / "harness" / "ugly.h").touch()
        done = self.bash(command, FA_VENV_DIR=venv)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, f"{self.root}/harness/ugly.h\n")


if __name__ == "__main__":
    unittest.main()
