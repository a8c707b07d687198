# SPDX-License-Identifier: MIT
"""scripts/tidy.py: files that are checked together, and what is found in them."""

from __future__ import annotations

import json
import shutil
import sys
import unittest
from pathlib import Path
from unittest import mock

import support

import tidy

TOOL = Path(sys.executable).with_name("clang-tidy")
CLEAN = "namespace {\nint half(int x) { return x / 2; }\n}  // namespace\n"
USE = "int use_{name}(int x) {{ return half(x); }}\n"
UNUSED = "namespace {\nint never_called() { return 1; }\n}  // namespace\n"
CAST = "int* cast_{name}(long x) {{ return (int*)x; }}\n"


class BundleTest(unittest.TestCase):
    def test_hidden_names(self) -> None:
        text = """namespace {
struct Row { int value; };
enum class Kind { kOne };
using Rows = std::vector<Row>;
using std::vector;
constexpr int kWidths[2] = {1, 2};
class Shown final : public Base {
  int inner();
};
std::optional<int> parse(std::string_view text) {
  return inner_call(text);
}
}  // namespace
void seen() {}
"""
        names = {"Row", "Kind", "Rows", "kWidths", "Shown", "parse"}
        self.assertEqual(tidy.hidden_names(text), names)


@unittest.skipUnless(TOOL.is_file() and shutil.which("ninja"), "clang-tidy is not installed")
class FindingsTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder.resolve()
        (self.root / "harness/vm").mkdir(parents=True)
        rules = "Checks: '-*,clang-diagnostic-*,misc-unused-parameters'\nWarningsAsErrors: '*'\n"
        (self.root / ".clang-tidy").write_text(rules, encoding="utf-8")
        more = "InheritParentConfig: true\nChecks: 'google-readability-casting'\n"
        (self.root / "harness/vm/.clang-tidy").write_text(more, encoding="utf-8")

    def tidy(self, files: dict[str, str]) -> tuple[int, str]:
        """Exit code and output for these files of one command."""
        commands = []
        for name, text in files.items():
            path = self.root / name
            path.write_text(text, encoding="utf-8")
            command = f"g++ -std=c++20 -Wall -o {name}.o -c {path}"
            commands.append({"directory": str(self.root), "file": str(path), "command": command})
        build = self.root / "build"
        build.mkdir(exist_ok=True)
        (build / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
        with (
            mock.patch.object(tidy, "REPOSITORY", self.root),
            mock.patch.object(tidy, "FOLDERS", ("harness",)),
        ):
            code, said, _ = support.run_main(tidy.main, "--build", build, "--jobs", 1)
        return code, said

    def bundles(self) -> list[str]:
        return [file.read_text() for file in sorted(self.root.glob("build/tidy/*/bundle.cpp"))]

    def test_clean_files_are_checked_together(self) -> None:
        files = {f"harness/{name}.cpp": f"int {name}() {{ return 1; }}\n" for name in "abc"}
        self.assertEqual(self.tidy(files), (0, "clang-tidy: 3 of 3 files are clean\n"))
        self.assertEqual(self.bundles(), ["\n".join(files.values())])

    def test_a_finding_is_reported_at_its_own_file_and_line(self) -> None:
        code, said = self.tidy({"harness/a.cpp": "int a();\n", "harness/b.cpp": "\n\n" + UNUSED})
        self.assertEqual(code, 1)
        self.assertIn("harness/b.cpp:4:5: error: unused function 'never_called'", said)
        self.assertIn("1 of 2 files are clean", said)
        self.assertEqual(len(self.bundles()), 1)

    def test_files_that_hide_the_same_name_are_apart(self) -> None:
        files = {f"harness/{name}.cpp": CLEAN + USE.format(name=name) for name in "ab"}
        self.assertEqual(self.tidy(files)[0], 0)
        self.assertEqual(self.bundles(), [])

    def test_files_that_do_not_compile_together_are_checked_alone(self) -> None:
        files = {f"harness/{name}.cpp": f"#define TWICE\nint {name}();\n" for name in "ab"}
        files["harness/b.cpp"] = "#ifdef TWICE\n#error twice\n#endif\nint b();\n"
        self.assertEqual(self.tidy(files), (0, "clang-tidy: 2 of 2 files are clean\n"))
        self.assertEqual(len(self.bundles()), 1)

    def test_the_rules_of_the_repository_find_a_function_above_120_lines(self) -> None:
        shutil.copy(support.REPOSITORY / ".clang-tidy", self.root)
        for lines in (119, 122):
            text = "void count(int& x) {\n" + "  ++x;\n" * (lines - 2) + "}\n"
            code, said = self.tidy({"harness/a.cpp": text})
            self.assertEqual((code, "readability-function-size" in said), (lines > 120, lines > 120))

    def test_each_folder_has_its_rules(self) -> None:
        names = ("harness/a.cpp", "harness/b.cpp", "harness/vm/c.cpp", "harness/vm/d.cpp")
        files = {name: CAST.format(name=Path(name).stem) for name in names}
        code, said = self.tidy(files)
        self.assertEqual(code, 1)
        self.assertEqual(len(self.bundles()), 2)
        for name in names:
            self.assertEqual(f"{name}:1:" in said, "vm" in name, said)


if __name__ == "__main__":
    unittest.main()
