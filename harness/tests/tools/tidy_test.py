# SPDX-License-Identifier: MIT
"""scripts/tidy.py: files that are checked together, what is found in them, and what is not looked at again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import support

TOOL = Path(sys.executable).with_name("clang-tidy")
CLEAN = "namespace {\nint half(int x) { return x / 2; }\n}  // namespace\n"
USE = "int use_{name}(int x) {{ return half(x); }}\n"
UNUSED = "namespace {\nint never_called() { return 1; }\n}  // namespace\n"
CAST = "int* cast_{name}(long x) {{ return (int*)x; }}\n"
RULES = "Checks: '-*,clang-diagnostic-*,misc-unused-parameters'\nWarningsAsErrors: '*'\nHeaderFilterRegex: harness\n"
COMPILE = """rule cc
  command = g++ -std=c++20 -I.. -MD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
"""


@unittest.skipUnless(TOOL.is_file() and shutil.which("ninja"), "clang-tidy is not installed")
class TidyTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder.resolve()
        for folder in ("harness/vm", "scripts", "build"):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(support.REPOSITORY / "scripts/tidy.py", self.root / "scripts")
        (self.root / ".clang-tidy").write_text(RULES, encoding="utf-8")
        more = "InheritParentConfig: true\nChecks: 'google-readability-casting'\n"
        (self.root / "harness/vm/.clang-tidy").write_text(more, encoding="utf-8")
        self.calls = self.root / "calls"
        tool = self.root / "clang-tidy"
        tool.write_text(
            f'#!/bin/sh -f\necho $* >>{self.calls}\nexec {TOOL} "$@"\n', encoding="utf-8"
        )
        tool.chmod(0o755)
        self.environment = {
            **os.environ,
            "CLANG_TIDY": str(tool),
            "FA_BUILD_DIR": str(self.root / "build"),
        }

    def tidy(self, files: dict[str, str]) -> tuple[int, str]:
        """Exit code and output for these files, of one command."""
        commands = []
        for name, text in files.items():
            path = self.root / name
            path.write_text(text, encoding="utf-8")
            command = f"g++ -std=c++20 -Wall -I{self.root} -o {name}.o -c {path}"
            commands.append({"directory": str(self.root), "file": str(path), "command": command})
        (self.root / "build/compile_commands.json").write_text(
            json.dumps(commands), encoding="utf-8"
        )
        return self.again()

    def again(self) -> tuple[int, str]:
        done = subprocess.run([sys.executable, self.root / "scripts/tidy.py"], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        return done.returncode, done.stdout

    def checks(self) -> list[list[str]]:
        """The files of each run of clang-tidy so far."""
        lines = self.calls.read_text(encoding="utf-8").splitlines()
        names = [
            [Path(word).name for word in line.split() if word.endswith(".cpp")] for line in lines
        ]
        return [each for each, line in zip(names, lines, strict=True) if "--quiet" in line]

    def test_clean_files_are_checked_together(self) -> None:
        files = {f"harness/{name}.cpp": f"int {name}() {{ return 1; }}\n" for name in "abc"}
        self.assertEqual(self.tidy(files)[0], 0)
        self.assertEqual(self.checks(), [["harness_a.cpp"]])
        together = self.root / "build/tidy/harness_a.cpp"
        self.assertEqual(together.read_text(encoding="utf-8"), "\n".join(files.values()))

    def test_a_finding_is_reported_at_its_own_file_and_line(self) -> None:
        code, said = self.tidy({"harness/a.cpp": "int a();\n", "harness/b.cpp": "\n\n" + UNUSED})
        self.assertEqual(code, 1)
        self.assertIn("harness/b.cpp:4:5: error: unused function 'never_called'", said)
        self.assertEqual(self.checks(), [["harness_a.cpp"], ["a.cpp", "b.cpp"]])

    def test_files_that_declare_the_same_name_are_apart(self) -> None:
        files = {f"harness/{name}.cpp": CLEAN + USE.format(name=name) for name in "ab"}
        self.assertEqual(self.tidy(files)[0], 0)
        self.assertEqual(sorted(self.checks()), [["harness_a.cpp"], ["harness_b.cpp"]])

    def test_files_that_do_not_compile_together_are_checked_alone(self) -> None:
        files = {f"harness/{name}.cpp": f"#define TWICE\nint {name}();\n" for name in "ab"}
        files["harness/b.cpp"] = "#ifdef TWICE\n#error twice\n#endif\nint b();\n"
        self.assertEqual(self.tidy(files)[0], 0)
        self.assertEqual(self.checks(), [["harness_a.cpp"], ["a.cpp", "b.cpp"]])

    def test_what_passed_is_checked_again_when_a_file_changes_that_it_reads(self) -> None:
        header = self.root / "harness/a.h"
        header.write_text("#pragma once\nint a();\n", encoding="utf-8")
        build = COMPILE + f"build harness/a.cpp.o: cc {self.root}/harness/a.cpp\n"
        (self.root / "build/build.ninja").write_text(build, encoding="utf-8")
        (self.root / "harness/a.cpp").write_text('#include "harness/a.h"\n', encoding="utf-8")
        subprocess.run(["ninja", "-C", self.root / "build"], check=True, capture_output=True)
        self.assertEqual(self.tidy({"harness/a.cpp": '#include "harness/a.h"\n'})[0], 0)
        self.assertEqual((self.again()[0], len(self.checks())), (0, 1))
        header.write_text("#pragma once\ninline int a(int x) { return 1; }\n", encoding="utf-8")
        code, said = self.again()
        self.assertEqual(code, 1)
        self.assertIn("harness/a.h:2:18: error: parameter 'x' is unused", said)

    def test_the_rules_of_the_repository_find_a_function_above_120_lines(self) -> None:
        shutil.copy(support.REPOSITORY / ".clang-tidy", self.root)
        for lines in (119, 122):
            text = "void count(int& x) {\n" + "  ++x;\n" * (lines - 2) + "}\n"
            code, said = self.tidy({"harness/a.cpp": text})
            self.assertEqual(
                (code, "readability-function-size" in said), (lines > 120, lines > 120)
            )

    def test_each_folder_has_its_rules(self) -> None:
        names = ("harness/a.cpp", "harness/b.cpp", "harness/vm/c.cpp", "harness/vm/d.cpp")
        code, said = self.tidy({name: CAST.format(name=Path(name).stem) for name in names})
        self.assertEqual(code, 1)
        for name in names:
            self.assertEqual(f"{name}:1:" in said, "vm" in name, said)

    def test_without_clang_tidy(self) -> None:
        self.environment["CLANG_TIDY"] = str(self.root / "none")
        code, said = self.again()
        self.assertEqual((code, "skipped" in said), (77, True))


if __name__ == "__main__":
    unittest.main()
