#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the figures of docs/. This is the list of them.

  plots/figures/draw.py --write              into docs/assets/figures
  plots/figures/draw.py --write NAME...      only these
  plots/figures/draw.py --check              exit 1 when one is out of date

They are drawn from machine.json (what the virtual machine answered, see probe.py), from the files
in plots/results and from the arithmetic of the kernels.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
FOLDER = REPOSITORY / "docs" / "assets" / "figures"
sys.path.insert(0, str(HERE.parent))  # plots: results and limits

from canvas import Canvas  # noqa: E402
from ladder import LadderError  # noqa: E402

MODULES = (
    "attention_figures",
    "memory_figures",
    "layouts",
    "orders",
    "timelines",
    "tiles",
    "model_figures",
    "decode_figures",
    "backward_figures",
    "blackwell_figures",
    "predictions",
    "training_figures",
)

Draw = Callable[[], Canvas]


def figures() -> dict[str, Draw]:
    """Name -> what draws it: the table FIGURES of each module."""
    found: dict[str, Draw] = {}
    for module in MODULES:
        for name, draw in importlib.import_module(module).FIGURES.items():
            if name in found:
                raise SystemExit(f"draw.py: two figures are named {name}")
            found[name] = draw
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="draw them")
    action.add_argument("--check", action="store_true", help="exit 1 when one is out of date")
    parser.add_argument("names", nargs="*", help="figures; none: all")
    arguments = parser.parse_args(argv)
    known = figures()
    for name in arguments.names:
        if name not in known:
            parser.error(f"no figure '{name}'; there are: {', '.join(known)}")
    wanted = {
        name: draw for name, draw in known.items() if not arguments.names or name in arguments.names
    }
    try:
        return write(wanted) if arguments.write else check(wanted, known)
    except LadderError as error:
        print(f"draw.py: error: {error}", file=sys.stderr)
        return 2


def write(wanted: dict[str, Draw]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in wanted.items():
        path, text = FOLDER / f"{name}.svg", draw().svg()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(REPOSITORY))
    return 0


def check(wanted: dict[str, Draw], known: dict[str, Draw]) -> int:
    """Prints the names that differ and files that no figure has."""
    wrong = []
    for name, draw in wanted.items():
        path = FOLDER / f"{name}.svg"
        if not path.is_file() or path.read_text(encoding="utf-8") != draw().svg():
            wrong.append(f"{name}.svg is out of date")
    wrong += [
        f"{path.name} is drawn by nothing"
        for path in FOLDER.glob("*.svg")
        if path.stem not in known
    ]
    for line in wrong:
        print(f"draw.py: {line}", file=sys.stderr)
    if wrong:
        print("draw.py: run plots/figures/draw.py --write", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
