# SPDX-License-Identifier: MIT
"""What the harness says in one place: the options of problems, and what a device can do."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

import support

HARNESS = support.REPOSITORY / "harness"
SHARED = ("arguments", "command", "problem_options", "table", "terminal")  # by all commands
DECLARATION = re.compile(r'\badd_\w+(?:<[^>]*>)?\(\s*(?:\w+,\s*)?"(--[a-z-]+)"')


def declared(*texts: str) -> set[str]:
    return {flag for text in texts for flag in DECLARATION.findall(text)}


class OnceTest(unittest.TestCase):
    def sources(self, *folders: str) -> dict[str, str]:
        found = {}
        for folder in folders:
            for path in sorted((HARNESS / folder).rglob("*")):
                if path.suffix in (".cpp", ".h", ".cu", ".cuh"):
                    name = str(path.relative_to(HARNESS))
                    found[name] = path.read_text(encoding="utf-8")
        return found

    def test_options_that_commands_share_are_declared_once(self) -> None:
        texts = self.sources("cli", "capi")
        shared = [name for name in texts if Path(name).stem in SHARED]
        flags = declared(*(texts.pop(name) for name in shared))
        fields = (HARNESS.parent / "kernels" / "problem.h").read_text(encoding="utf-8")
        flags |= set(re.findall(r'\.option = "(--[a-z-]+)"', fields))
        self.assertTrue({"--batch", "--seq", "--dim", "--causal", "--device", "--tile"} <= flags)
        twice = {name: declared(text) & flags for name, text in texts.items()}
        self.assertEqual({name: found for name, found in twice.items() if found}, {})

    def test_a_declaration_is_seen(self) -> None:
        text = 'app.add_flag("--one", one_);\n  add_integer(app, "--two", two_);\n'
        text += 'add_choice<std::string>(\n      app, "--three", x);\nrequire_path("--four", path);'
        self.assertEqual(declared(text), {"--one", "--two", "--three"})

    def test_no_device_is_asked_what_it_is(self) -> None:
        """A device says what it can do; nobody looks behind the interface."""
        folders = [path.name for path in HARNESS.iterdir() if path.is_dir()]
        texts = self.sources(*(name for name in folders if name not in ("vm", "tests", "python")))
        self.assertIn("device/device.h", texts)
        asking = [name for name, text in texts.items() if re.search(r"\bdynamic_\w*cast\b", text)]
        self.assertEqual(asking, [])


if __name__ == "__main__":
    unittest.main()
