# SPDX-License-Identifier: MIT
"""The pages about the machine for kernels of others, followed to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import support
from page import BUILD, PageTest

support.need("numpy")

NEEDED = ("ptxvm", "libptxvm_c.so", "cuda/libcudart.so.13")
FOREIGN = BUILD / "foreign-venv/bin/python"  # harness/vm/foreign/run.py --install makes it


def has(python: Path, modules: str) -> bool:
    if not python.is_file():
        return False
    done = subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False)
    return done.returncode == 0


class MachinePages(PageTest):
    def follow_page(self, name: str, python: Path, *folders: Path) -> None:
        if not all((BUILD / file).is_file() for file in NEEDED):
            self.skipTest("ptxvm is not built")
        first = [str(BUILD), *map(str, folders), str(python.parent)]
        path = os.pathsep.join([*first, os.environ.get("PATH", "")])
        package = str(support.REPOSITORY / "harness/vm/python")
        self.environment = {
            **os.environ,
            **{"PATH": path, "LC_ALL": "C.UTF-8", "PYTHONPATH": package},
            **{"FA_BUILD_DIR": str(BUILD), "PYTHONWARNINGS": "ignore"},
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
        }

        def write_code(code: str) -> None:
            named = re.match(r"// (\w+\.cu)\n", code)
            name = named[1] if named else "softmax.cu"  # of howto_ptxvm.md
            (self.folder / name).write_text(code, encoding="utf-8")

        self.follow(support.REPOSITORY / "docs" / name, write_code)

    def test_ptxvm(self) -> None:
        self.follow_page("howto_ptxvm.md", Path(sys.executable), self.need_nvcc().parent)

    def test_the_page_names_every_kind_of_argument(self) -> None:
        page = (support.REPOSITORY / "docs/howto_ptxvm.md").read_text(encoding="utf-8")
        for kind in ("inout", "out", "zero", "buffer", "raw", "struct", "tmap"):
            self.assertIn(f"\n| `{kind}:", page)

    def test_races(self) -> None:
        self.follow_page("howto_races.md", Path(sys.executable), self.need_nvcc().parent)

    def test_ci(self) -> None:
        if not has(Path(sys.executable), "pytest"):
            self.skipTest("pytest is not installed")
        self.follow_page("howto_ci.md", Path(sys.executable), self.need_nvcc().parent)

    def test_triton(self) -> None:
        python = next((p for p in (Path(sys.executable), FOREIGN) if has(p, "triton, numpy")), None)
        if python is None:
            self.skipTest("Triton is not installed; harness/vm/foreign/run.py --install fetches it")
        self.follow_page("howto_triton.md", python)


if __name__ == "__main__":
    unittest.main()
