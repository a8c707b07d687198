# SPDX-License-Identifier: MIT
"""A page of the documentation, followed to the letter: its code, its commands, their output.

FA_HOWTO=write fills the output in instead.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import support
from web_exercises import cached

BLOCK = re.compile(r"(```(bash|console|cuda|python)\n)(.*?)(```)", re.S)
RELEASE = "13.0"  # of nvcc: another one makes other PTX, with other counts and lines
BUILD = Path(os.environ.get("FA_BUILD_DIR") or support.REPOSITORY / "build")

# What another build folder takes from the real one.
PASSED_ON = ("CMAKE_GENERATOR", "CMAKE_CXX_COMPILER", "CMAKE_CUDA_COMPILER", "CMAKE_CUDA_HOST_COMPILER")


def cache_entry(name: str) -> str:
    """A value of the real build's cache, empty when it has none."""
    return cached(BUILD, name)


class PageTest(support.FolderTest):
    """Commands run in the test's folder, with what `environment` says."""

    environment: dict[str, str]

    def need_nvcc(self) -> Path:
        """nvcc of the release that the pages were written with; without it the test is skipped."""
        nvcc = cache_entry("CMAKE_CUDA_COMPILER")
        if not nvcc:
            self.skipTest("the build has no nvcc")
        version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
        if f"release {RELEASE}," not in version.stdout:
            self.skipTest(f"nvcc is not of release {RELEASE}")
        return Path(nvcc)

    def run_command(self, command: str) -> subprocess.CompletedProcess[str]:
        """Both streams as one, without spaces at the ends of lines."""
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
        )
        done.stdout = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        return done

    def follow(self, page: Path, write_code: Callable[[str], None]) -> None:
        """Blocks in their order: bash must succeed, console print what the page says, cuda is
        handed to write_code, python becomes program.py."""
        text = page.read_text(encoding="utf-8")

        def followed(block: re.Match[str]) -> str:
            head, kind, body, tail = block.groups()
            if kind == "cuda":
                write_code(body)
            elif kind == "python":
                (self.folder / "program.py").write_text(body, encoding="utf-8")
            elif kind == "bash":
                done = self.run_command(f"set -e\n{body}")
                self.assertEqual(done.returncode, 0, f"{body}{done.stdout}")
            else:
                lines = []
                for command in re.findall(r"^\$ (.*)$", body, re.M):
                    lines.append(f"$ {command}")
                    lines += self.run_command(command).stdout.splitlines()
                body = "\n".join(lines) + "\n"
            return head + body + tail

        now = BLOCK.sub(followed, text)
        if os.environ.get("FA_HOWTO") == "write":
            page.write_text(now, encoding="utf-8")
        self.assertEqual(text.splitlines(), now.splitlines())
