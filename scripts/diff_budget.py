#!/usr/bin/env python3
"""One idea a rung: counts the code lines that differ between each rung and its parent.

Comments and blank lines do not count, nor does the rung's own name. A changed block counts as many
lines as the longer of its two sides. Fails where the count is above the diff_budget of the
catalogue row.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

from ladder import Catalogue, LadderError, Rung  # noqa: E402

# Strings first, so that "//" inside one is not taken for a comment.
STRING_OR_COMMENT = re.compile(
    r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|//[^\n]*|/\*.*?\*/', re.S
)


def without_comments(text: str) -> str:
    return STRING_OR_COMMENT.sub(lambda match: match[1] or " ", text)


def code_lines(text: str, name: str) -> list[str]:
    """Code without comments, blank lines, extra spaces and the rung's name (06_batched)."""
    code = without_comments(text).replace(name, "RUNG")
    lines = (" ".join(line.split()) for line in code.splitlines())
    return [line for line in lines if line]


def changed_lines(old: list[str], new: list[str]) -> int:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    blocks = (block for block in matcher.get_opcodes() if block[0] != "equal")
    return sum(
        max(old_end - old_start, end - start) for _, old_start, old_end, start, end in blocks
    )


@dataclass(frozen=True)
class Comparison:
    rung: Rung
    parent: Rung
    changed: int

    @property
    def budget(self) -> int:
        return int(self.rung.data["diff_budget"])

    @property
    def is_over(self) -> bool:
        return self.changed > self.budget


def read_code(root: Path, rung: Rung) -> list[str]:
    try:
        return code_lines((root / rung.file).read_text(encoding="utf-8"), rung.name)
    except OSError as error:
        raise LadderError(f"cannot read {rung.file}: {error.strerror}") from error


def compare(root: Path, catalogue: Catalogue) -> list[Comparison]:
    """Every rung that has a parent."""
    comparisons = []
    for rung in catalogue.rungs:
        if not rung.parent:
            continue
        parent = catalogue.find(rung.parent)
        if parent is None:
            raise LadderError(f"{rung.name}: its parent '{rung.parent}' is not in the catalogue")
        changed = changed_lines(read_code(root, parent), read_code(root, rung))
        comparisons.append(Comparison(rung, parent, changed))
    return comparisons


def print_table(comparisons: list[Comparison]) -> None:
    for item in comparisons:
        mark = "  OVER BUDGET" if item.is_over else ""
        print(f"{item.rung.name:16} {item.changed:4} of {item.budget:3} lines against "
              f"{item.parent.name}{mark}")  # fmt: skip


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="where the kernels are")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        comparisons = compare(arguments.root, Catalogue.load(arguments.catalogue))
    except LadderError as error:
        print(f"diff_budget.py: error: {error}", file=sys.stderr)
        return 2
    print_table(comparisons)
    return 1 if any(item.is_over for item in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
