# SPDX-License-Identifier: MIT
"""Outside kernels and exercises, which are read alone, no nine lines of code stand twice."""

from __future__ import annotations

import subprocess
import unittest
from collections import defaultdict
from collections.abc import Mapping

import support

MOST_LINES = 8
CODE = (".cpp", ".h", ".cu", ".cuh", ".inc", ".py", ".sh", ".js", ".css", ".cmake", "Lists.txt")
ALONE = ("kernels/", "docs/exercises/")
COMMENTS = ("//", "# ", "#include", "import ", "from ")  # two files may use the same

# What stands twice on purpose, and where that is said.
OPERATOR = "harness/python/flash_ladder/_torch.py"
WORDS = "harness/vm/tests/tool_words_test.py"
PACKAGE = "harness/vm/python/tests"
STATED = {
    frozenset({OPERATOR}): "the parameters of one operator, on two devices",
    frozenset({WORDS, f"{PACKAGE}/test_ptxvm.py"}): "the machine's tests stand alone",
    frozenset({WORDS, f"{PACKAGE}/test_ptxvm_more.py"}): "the machine's tests stand alone",
    frozenset({"harness/vm/tests/kernels/divergence.cu", "harness/vm/tests/kernels_test.cpp"}): (
        "the host computes what the kernel must"
    ),
}

Place = tuple[str, int]


def code_lines(text: str) -> list[tuple[int, str]]:
    """Number and words of each line that is neither empty nor a comment."""
    lines = [(i, " ".join(line.split())) for i, line in enumerate(text.splitlines(), 1)]
    return [(i, line) for i, line in lines if line and not line.startswith(COMMENTS)]


def repetitions(files: Mapping[str, str]) -> list[tuple[Place, Place]]:
    """Pairs of places from which on more than MOST_LINES lines are the same, one for two files."""
    first: dict[tuple[str, ...], Place] = {}
    found: dict[tuple[str, str], tuple[Place, Place]] = {}
    for name, text in files.items():
        lines = code_lines(text)
        for at in range(len(lines) - MOST_LINES):
            window = tuple(line for _, line in lines[at : at + MOST_LINES + 1])
            place = (name, lines[at][0])
            other = first.setdefault(window, place)
            if other != place:
                found.setdefault((other[0], name), (other, place))
    return list(found.values())


class Repository(unittest.TestCase):
    def setUp(self) -> None:
        words = ["git", "-C", str(support.REPOSITORY), "ls-files", "-z"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("not a checkout")
        names = [name for name in done.stdout.split("\0") if name.endswith(CODE)]
        names = [name for name in names if not name.startswith(ALONE)]
        paths = {name: support.REPOSITORY / name for name in names}
        there = {name: path for name, path in paths.items() if path.is_file()}
        self.files = {name: path.read_text(encoding="utf-8") for name, path in there.items()}

    def test_what_repeats_is_stated(self) -> None:
        self.assertGreater(len(self.files), 300)
        found = defaultdict(list)
        for one, other in repetitions(self.files):
            found[frozenset({one[0], other[0]})].append((one, other))
        self.assertEqual({files: found[files] for files in found if files not in STATED}, {})
        self.assertEqual(set(STATED), set(found), "what is stated and no longer so")


class Windows(unittest.TestCase):
    def test_nine_lines_are_found_and_eight_are_not(self) -> None:
        lines = [f"f({i});" for i in range(9)]
        text = "\n\n".join(lines)
        files = {"a.cpp": "int x;\n" + text, "b.cpp": text.replace("\n\n", "\n  // why\n")}
        self.assertEqual(repetitions(files), [(("a.cpp", 2), ("b.cpp", 1))])
        twice = {"a": "\n".join([*lines, "g();", *lines])}
        self.assertEqual(repetitions(twice), [(("a", 1), ("a", 11))])
        files["b.cpp"] = "\n".join(lines[:8])
        self.assertEqual(repetitions(files), [])


if __name__ == "__main__":
    unittest.main()
