"""docs/howto_ptxvm.md, followed to the letter: its code, its commands, their output.

FA_HOWTO=write fills the output in instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import support

support.need("numpy")

PAGE = support.REPOSITORY / "docs" / "howto_ptxvm.md"
CODE = re.compile(r"```cuda\n(.*?)```", re.S)
CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.S)
RELEASE = "13.0"  # of nvcc: another one makes other PTX, with other counts and lines
BUILD = Path(os.environ.get("FA_BUILD_DIR", support.REPOSITORY / "build"))


def find_nvcc() -> str | None:
    folders = [str(support.REPOSITORY / ".venv/cuda/bin"), os.environ.get("PATH", "")]
    folders.append("/usr/local/cuda/bin")
    return shutil.which("nvcc", path=os.pathsep.join(folders))


class HowToTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        nvcc = find_nvcc()
        if nvcc is None or not (BUILD / "ptxvm").is_file():
            self.skipTest("nvcc or ptxvm is not there")
        version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
        if f"release {RELEASE}," not in version.stdout:
            self.skipTest(f"nvcc is not of release {RELEASE}")
        first = [str(BUILD), str(Path(nvcc).parent), str(Path(sys.executable).parent)]
        path = os.pathsep.join([*first, os.environ.get("PATH", "")])
        self.environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}

    def output(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
        )
        return "\n".join(line.rstrip() for line in done.stdout.splitlines())

    def test_every_command_prints_what_the_page_says(self) -> None:
        text = PAGE.read_text(encoding="utf-8")
        code = CODE.search(text)
        assert code
        (self.folder / "softmax.cu").write_text(code[1], encoding="utf-8")

        def filled(block: re.Match[str]) -> str:
            lines = []
            for command in re.findall(r"^\$ (.*)$", block[2], re.M):
                lines.append(f"$ {command}")
                lines += self.output(command).splitlines()
            return block[1] + "\n".join(lines) + "\n" + block[3]

        now = CONSOLE.sub(filled, text)
        if os.environ.get("FA_HOWTO") == "write":
            PAGE.write_text(now, encoding="utf-8")
        self.assertEqual(text.splitlines(), now.splitlines())


if __name__ == "__main__":
    unittest.main()
