#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""solve.py SOLUTIONS OUT: writes each exercise with its gaps filled into OUT.

SOLUTIONS/NAME.txt holds what belongs into the gaps of the exercise NAME, in their order, each with its
lines "Your code: begin" and "Your code: end". What is up to date stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from exercise import GAP, fill

solutions, out = map(Path, sys.argv[1:])
for solution in sorted(solutions.rglob("*.txt")):
    name = solution.relative_to(solutions).with_suffix("")
    text = fill(name, GAP.findall(solution.read_text(encoding="utf-8")))
    target = out / name
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
