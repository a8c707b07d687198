# SPDX-License-Identifier: MIT
"""What a rung changes: the whole difference to its parent, or that of one function."""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from book.source import BookError, Span

CONTEXT = 3  # lines around each change
SHORT = 45  # lines of a part that is shown whole
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Line:
    """A line of a difference; the numbers are those of the two files, 0 where it is in one alone."""

    sign: str  # space, + or -; @ between two places
    old: int = 0
    new: int = 0
    text: str = ""


def whole(root: Path, parent: str, child: str) -> list[Line]:
    """The changed lines of two files, as git pairs them."""
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--diff-algorithm=myers"]
    done = subprocess.run(
        [*command, "--unified=0", parent, child], capture_output=True, text=True, cwd=root
    )
    if done.returncode not in (0, 1):
        raise BookError(f"git diff of {parent} and {child} failed: {done.stderr.strip()}")
    return list(of_hunks(done.stdout.splitlines()))[1:]


def of_hunks(lines: Iterable[str]) -> Iterator[Line]:
    old = new = 0
    for line in lines:
        if hunk := HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            yield Line("@")
        elif new and line.startswith("-"):
            yield Line("-", old, 0, line[1:])
            old += 1
        elif new and line.startswith("+"):
            yield Line("+", 0, new, line[1:])
            new += 1


def changed_lines(difference: Iterable[Line]) -> int:
    return sum(line.sign in "+-" for line in difference)


def of_part(parent: Span, child: Span) -> list[Line]:
    """The change of one part, whole where it is short; an unchanged part is an error."""
    before, after = parent.lines, child.lines
    if before == after:
        raise BookError(f"{child.source.name}: the parent has the same lines; use code: instead")
    context = SHORT if max(len(before), len(after)) <= SHORT else CONTEXT
    found: list[Line] = []
    for group in difflib.SequenceMatcher(None, before, after).get_grouped_opcodes(context):
        found.append(Line("@"))
        for tag, a, a_end, b, b_end in group:
            old, new = parent.first + 1, child.first + 1
            if tag == "equal":
                pairs = zip(range(a, a_end), range(b, b_end), strict=True)
                found += [Line(" ", old + i, new + j, before[i]) for i, j in pairs]
                continue
            found += [Line("-", old + i, 0, before[i]) for i in range(a, a_end)]
            found += [Line("+", 0, new + j, after[j]) for j in range(b, b_end)]
    return found[1:]


def text_of(difference: Iterable[Line]) -> str:
    return "".join("@@\n" if each.sign == "@" else f"{each.sign}{each.text}\n" for each in difference)
