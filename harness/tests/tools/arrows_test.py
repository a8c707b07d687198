# SPDX-License-Identifier: MIT
"""arrows.py on folders made for it: each thing that it refuses, and what it leaves alone. And on
harness/: what stands lower includes nothing that stands higher."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import unittest
from pathlib import Path

import support

import arrows

HARNESS = support.REPOSITORY / "harness"


class ArrowsTest(support.FolderTest):
    def write(self, files: dict[str, list[str]]) -> None:
        for name, includes in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f'#include "{each}"\n' for each in includes), encoding="utf-8")

    def check(self, *layers: str) -> tuple[str, list[str]]:
        return arrows.check(self.folder.resolve(), [self.folder.resolve()], [row.split(",") for row in layers])

    def test_arrows_that_run_downwards_are_drawn_and_good(self) -> None:
        self.write({"low/a.h": ["vector"], "mid/b.h": ["low/a.h"], "top/c.cpp": ["mid/b.h", "low/a.h"]})
        drawing, wrong = self.check("low", "mid", "top")
        self.assertEqual(wrong, [])
        self.assertEqual(drawing.splitlines(), ["top -> mid, low", "mid -> low", "low"])

    def test_an_upward_include_is_named_with_its_line(self) -> None:
        self.write({"low/a.cpp": ["low/a.h", "top/c.h"], "low/a.h": [], "top/c.h": []})
        _, wrong = self.check("low", "top")
        self.assertEqual(wrong, ["low -> top runs upwards: low/a.cpp:2 includes top/c.h"])

    def test_a_circle_between_folders_of_one_height(self) -> None:
        self.write({"a/a.h": ["b/b.h"], "b/b.h": ["c/c.h"], "c/c.h": []})
        self.assertEqual(self.check("a,b,c")[1], [])
        self.write({"c/other.h": ["a/a.h"]})
        self.assertEqual(self.check("a,b,c")[1], ["a circle: a -> b -> c -> a"])

    def test_a_new_folder_must_be_given_a_place(self) -> None:
        self.write({"low/a.h": [], "new/b.h": ["low/a.h"]})
        self.assertEqual(self.check("low")[1], ["new holds code and is no layer"])

    def test_the_deepest_layer_holds_a_file_and_a_relative_include_counts(self) -> None:
        self.write({"a/a.h": [], "a/b/b.h": ["../../c/c.h"], "c/c.h": ["a/a.h"], "top.cpp": ["c/c.h"]})
        drawing, wrong = self.check("a", "c", "a/b", ".")
        self.assertEqual(wrong, [])
        self.assertEqual(drawing.splitlines(), [".   -> c", "a/b -> c", "c   -> a", "a"])

    def test_the_command_line(self) -> None:
        self.write({"low/a.h": ["top/c.h"], "top/c.h": []})
        folder = str(self.folder)
        with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(arrows.main([folder, "low", "top"]), 1)
            self.assertEqual(arrows.main([folder, "top", "low"]), 0)
            with self.assertRaises(SystemExit) as refused:
                arrows.main([folder, "nowhere"])
        self.assertEqual(refused.exception.code, 2)
        self.assertIn("there is no folder nowhere", err.getvalue())


class HarnessTest(unittest.TestCase):
    """The folders of harness/, lowest first, as harness/CMakeLists.txt builds them."""

    def setUp(self) -> None:
        text = (HARNESS / "CMakeLists.txt").read_text(encoding="utf-8")
        self.layers = re.findall(r"^ *add_subdirectory\(([\w/]+)\)", text, re.MULTILINE)

    def test_every_folder_has_its_place_and_no_include_runs_upwards(self) -> None:
        drawing, wrong = arrows.check(HARNESS, [support.REPOSITORY], [[layer] for layer in self.layers])
        self.assertEqual(wrong, [])
        self.assertRegex(drawing, r"(?m)^capi .*\bcli\b")  # the drawing is not empty

    def test_the_library_stands_beside_the_program(self) -> None:
        """libfa.so has fa bench, and not the other commands."""
        found, _ = arrows.draw(HARNESS, [support.REPOSITORY], self.layers)
        used = {line.partition(" includes ")[2] for line in found["capi", "cli"]}
        self.assertEqual(used, {"cli/bench_command.h", "cli/terminal.h"})

    def test_the_machine_includes_nothing_of_the_project(self) -> None:
        layers = ["harness/vm", "harness", "kernels", "docs"]
        found, _ = arrows.draw(support.REPOSITORY, [support.REPOSITORY], layers)
        self.assertEqual({end for begin, end in found if begin == "harness/vm"}, set())

    def test_no_circle_between_files(self) -> None:
        """A header and its source are one."""
        root = support.REPOSITORY
        roots = [root, HARNESS / "vm", HARNESS / "vm/include"]
        files = [path for folder in ("harness", "kernels") for path in (root / folder).rglob("*.*")]
        found: arrows.Arrows = {}
        for path in files:
            here = path.relative_to(root).with_suffix("")
            for _, target in arrows.includes_of(path, root, roots) if path.suffix in arrows.CODE else ():
                found[str(here), str(target.with_suffix(""))] = []
        self.assertEqual(arrows.cycles({ends: [] for ends in found if ends[0] != ends[1]}), [])
        self.assertIn(("harness/vm/exec/async", "harness/vm/exec/fault"), found)

    def test_kernels_include_nothing_of_the_harness(self) -> None:
        layers = ["kernels", "docs", "harness/attention", "harness"]
        found, _ = arrows.draw(support.REPOSITORY, [support.REPOSITORY], layers)
        self.assertEqual({end for begin, end in found if begin == "kernels"}, set())


class ReadmeTest(unittest.TestCase):
    """Each folder says in at most ten lines what is there, what it depends on and where to start."""

    def test_folders(self) -> None:
        root = support.REPOSITORY
        folders = [root / name for name in ("harness", "kernels", "plots", "scripts")]
        folders += [path for path in (root / "harness").iterdir() if any(path.glob("*.*"))]
        for folder in folders:
            with self.subTest(folder.name):
                text = (folder / "README.md").read_text(encoding="utf-8")
                if folder.name == "vm":  # a product of its own, with a longer one
                    continue
                self.assertLessEqual(len(text.splitlines()), 10)
                self.assertRegex(text, r"(?s)Here: .*\n\nDepends on .*\n\nStart ")
                for name in re.findall(r"`([\w./]+\.(?:h|cpp|py|sh|def|md|cu))`", text):
                    self.assertTrue((folder / name).is_file() or (root / name).is_file(), name)


PRODUCT = ("scripts", "plots", "harness/python/flash_ladder", "harness/vm/python/ptxvm")


def modules(folder: Path) -> dict[str, Path]:
    """The Python modules that a folder on the path brings, by their first name."""
    return {path.stem: path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}


def imported(file: Path) -> set[str]:
    """First names of what a file imports, at whatever place."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


class PythonTest(unittest.TestCase):
    def test_the_machine_imports_nothing_of_the_ladder(self) -> None:
        others: set[str] = set()
        for folder in ("scripts", "plots", "harness/python", "harness/tests/tools"):
            others |= set(modules(support.REPOSITORY / folder))
        self.assertTrue({"flash_ladder", "ptxas_report", "style", "support"} <= others)
        own = {path.stem for path in (HARNESS / "vm").rglob("*.py")}
        files = sorted((HARNESS / "vm").rglob("*.py"))
        wrong = {path.name: imported(path) & (others - own) for path in files}
        self.assertEqual({name: found for name, found in wrong.items() if found}, {})

    def test_no_product_imports_a_test(self) -> None:
        tests = set(modules(HARNESS / "tests/tools")) | set(modules(HARNESS / "python/tests"))
        for folder in PRODUCT:
            own = {path.stem for path in (support.REPOSITORY / folder).rglob("*.py")}
            for path in sorted((support.REPOSITORY / folder).rglob("*.py")):
                self.assertEqual(imported(path) & (tests - own), set(), str(path))

    def test_no_product_reads_a_file_of_tests(self) -> None:
        files = [path for folder in PRODUCT for path in (support.REPOSITORY / folder).rglob("*.*")]
        code = [path for path in files if path.suffix in (".py", ".sh")]
        named = {path.name for path in code if "harness/tests" in path.read_text(encoding="utf-8")}
        self.assertEqual(named, {"spdx.py"})  # which says what files need no line of the licence

    def test_no_circle_between_files_of_the_charts_and_scripts(self) -> None:
        for folder in ("plots", "plots/figures", "scripts"):
            own = modules(support.REPOSITORY / folder)
            files = {name: path for name, path in own.items() if path.is_file()}
            found = {(name, to): [] for name, path in files.items() for to in imported(path) & set(files)}
            self.assertEqual(arrows.cycles(found), [], folder)
            self.assertTrue(found, folder)


if __name__ == "__main__":
    unittest.main()
