# SPDX-License-Identifier: MIT
"""What a rung changes: the whole difference to its parent, or that of one function."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

from book.source import BookError, Excerpt, Source, Span

CONTEXT = 3  # lines around each change
SHORT = 45  # lines of a part that is shown whole


def whole(root: Path, parent: str, child: str) -> str:
    """git diff of two files, from the first hunk on."""
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--diff-algorithm=myers"]
    done = subprocess.run(
        [*command, f"--unified={CONTEXT}", parent, child], capture_output=True, text=True, cwd=root
    )
    if done.returncode not in (0, 1):
        raise BookError(f"git diff of {parent} and {child} failed: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return "\n".join(lines[first:]) + "\n"


def changed_lines(difference: str) -> int:
    return sum(line.startswith(("+", "-")) for line in difference.splitlines())


def of_part(parent: Span, child: Span) -> str:
    """The change of one part, whole where it is short; an unchanged part is an error."""
    if parent.lines == child.lines:
        raise BookError(f"{child.source.name}: the parent has the same lines; use code: instead")
    context = SHORT if max(len(parent.lines), len(child.lines)) <= SHORT else CONTEXT
    lines = list(difflib.unified_diff(parent.lines, child.lines, n=context, lineterm=""))
    shown = ["@@" if line.startswith("@@") else line for line in lines[2:]]
    return "\n".join(shown[1:]) + "\n"


def change(excerpt: Excerpt, parent: Source, child: Source) -> str:
    return of_part(excerpt.cut(parent), excerpt.cut(child))
