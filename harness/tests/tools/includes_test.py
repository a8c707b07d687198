"""The folders of harness/ form layers: what stands lower includes nothing that stands higher."""

from __future__ import annotations

import re
import tempfile
import unittest
from pathlib import Path

import includes
import support

HARNESS = support.REPOSITORY / "harness"


def layers() -> list[str]:
    """Lowest first, as harness/CMakeLists.txt builds them."""
    text = (HARNESS / "CMakeLists.txt").read_text(encoding="utf-8")
    return [name for name in re.findall(r"add_subdirectory\((\w+)\)", text) if name != "tests"]


class Layers(unittest.TestCase):
    def test_every_folder_has_its_place(self) -> None:
        folders = {path.name for path in HARNESS.iterdir() if path.is_dir()}
        self.assertEqual(folders - {"tests", "python"}, set(layers()))

    def test_no_include_runs_upwards(self) -> None:
        arrows = includes.draw(HARNESS, "harness", layers())
        self.assertGreater(len(arrows), 100)
        self.assertEqual([str(a) for a in includes.upward(arrows, layers())], [])

    def test_folders_form_no_cycle(self) -> None:
        self.assertEqual(includes.cycle(includes.draw(HARNESS, "harness", layers())), [])

    def test_the_library_stands_beside_the_program(self) -> None:
        arrows = includes.draw(HARNESS, "harness", layers())
        self.assertNotIn("cli", {a.target for a in arrows if a.source != "cli"})

    def test_the_machine_includes_nothing_of_the_project(self) -> None:
        for prefix in ("harness", "kernels"):
            arrows = includes.draw(HARNESS, prefix, ["vm"])
            outside = [str(a) for a in arrows if (prefix, a.target) != ("harness", "vm")]
            self.assertEqual(outside, [])

    def test_kernels_include_only_what_problems_are(self) -> None:
        arrows = includes.draw(support.REPOSITORY, "harness", ["kernels"])
        self.assertEqual({a.target for a in arrows}, {"attention"})


class Drawing(unittest.TestCase):
    """A folder of three parts, one of which includes upwards."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.write("low/a.h", '#pragma once\n#include <vector>\n  #  include "x/high/c.h"\n')
        self.write("middle/b.cpp", '#include "x/low/a.h"\n// #include "x/high/c.h"\n')
        self.write("high/c.h", '#include "x/middle/b.h"\n#include "y/none/d.h"\n')

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def test_upward_and_cycle_are_found(self) -> None:
        order = ["low", "middle", "high"]
        arrows = includes.draw(self.folder, "x", order)
        found = [str(a) for a in includes.upward(arrows, order)]
        self.assertEqual(found, ["low/a.h:3: low includes high"])
        self.assertEqual(includes.cycle(arrows), ["high", "middle", "low", "high"])

    def test_an_unknown_folder_is_upward(self) -> None:
        self.write("low/a.h", '#include "x/other/e.h"\n')
        arrows = includes.draw(self.folder, "x", ["low"])
        self.assertEqual(len(includes.upward(arrows, ["low"])), 1)
        self.assertEqual(includes.cycle(arrows), [])
