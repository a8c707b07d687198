# SPDX-License-Identifier: MIT
"""scripts/spdx.py in a small repository."""

from __future__ import annotations

import subprocess
import unittest

import support

import spdx

FILES = {
    "scripts/a.sh": "#!/bin/sh\ntrue\n",
    "harness/b.cpp": "int b;\n",
    "harness/CMakeLists.txt": "project(c)\n",
    "kernels/ampere/d.cu": "int d;\n",
    "docs/e.md": "# e\n",
}


class SpdxTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)

    def run_spdx(self, *words: str) -> tuple[int, str, str]:
        return support.run_main(spdx.main, "--root", self.folder, *words)

    def test_files_without_the_line_are_listed_and_get_it(self) -> None:
        code, out, _ = self.run_spdx("--check")
        self.assertEqual(code, 1)
        listed = sorted(line.partition(":")[0] for line in out.splitlines())
        self.assertEqual(listed, ["harness/CMakeLists.txt", "harness/b.cpp", "scripts/a.sh"])
        self.assertEqual(self.run_spdx()[0], 0)
        self.assertEqual(self.run_spdx("--check")[:2], (0, ""))
        shell = f"#!/bin/sh\n# {spdx.LINE}\ntrue\n"
        self.assertEqual((self.folder / "scripts/a.sh").read_text(), shell)
        self.assertEqual((self.folder / "harness/b.cpp").read_text(), f"// {spdx.LINE}\nint b;\n")
        self.assertEqual((self.folder / "kernels/ampere/d.cu").read_text(), "int d;\n")

    def test_the_line_names_the_licence(self) -> None:
        licence = (support.REPOSITORY / "LICENSE").read_text()
        self.assertTrue(licence.startswith("MIT License"))
        self.assertTrue(spdx.LINE.endswith(" MIT"))


if __name__ == "__main__":
    unittest.main()
