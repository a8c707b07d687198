# SPDX-License-Identifier: MIT
"""docs/howto_ptxvm.md, followed to the letter."""

from __future__ import annotations

import os
import re
import sys
import unittest
from pathlib import Path

import support
from page import BUILD, PageTest

support.need("numpy")


class HowToTest(PageTest):
    def test_every_command_prints_what_the_page_says(self) -> None:
        nvcc = self.need_nvcc()
        if not (BUILD / "ptxvm").is_file() or not (BUILD / "cuda/libcudart.so.13").is_file():
            self.skipTest("ptxvm and its runtime of CUDA are not built")
        first = [str(BUILD), str(nvcc.parent), str(Path(sys.executable).parent)]
        path = os.pathsep.join([*first, os.environ.get("PATH", "")])
        package = str(support.REPOSITORY / "harness/vm/python")
        self.environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "PYTHONPATH": package}

        def write_code(code: str) -> None:
            named = re.match(r"// (\w+\.cu)\n", code)
            name = named[1] if named else "softmax.cu"
            (self.folder / name).write_text(code, encoding="utf-8")

        self.follow(support.REPOSITORY / "docs/howto_ptxvm.md", write_code)

    def test_the_page_names_every_kind_of_argument(self) -> None:
        page = (support.REPOSITORY / "docs/howto_ptxvm.md").read_text(encoding="utf-8")
        for kind in ("inout", "out", "zero", "buffer", "raw", "struct", "tmap"):
            self.assertIn(f"\n| `{kind}:", page)


if __name__ == "__main__":
    unittest.main()
