#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""solve.py EXERCISES OUT: writes each exercise with its gaps filled into OUT.

EXERCISES/solutions/NAME.txt holds what belongs into the gaps of the exercise NAME, in their order,
each with its lines "Your code: begin" and "Your code: end". What is up to date stays.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

GAP = re.compile(r"[ \t]*(?://|#) Your code: begin.*?Your code: end[^\n]*\n", re.S)


def solved(shipped: str, solution: str, name: str) -> str:
    """The exercise with the solution's gaps in the place of its own."""
    gaps = GAP.findall(solution)
    count = len(GAP.findall(shipped))
    if not gaps or len(gaps) != count:
        sys.exit(f"solve.py: error: {name} has {len(gaps)} gaps, its exercise {count}")
    rest = iter(gaps)
    return GAP.sub(lambda _: next(rest), shipped)


def main() -> None:
    exercises, out = map(Path, sys.argv[1:])
    for solution in sorted((exercises / "solutions").rglob("*.txt")):
        name = solution.relative_to(exercises / "solutions").with_suffix("")
        text = solved((exercises / name).read_text(), solution.read_text(), str(name))
        target = out / name
        if not target.is_file() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


if __name__ == "__main__":
    main()
