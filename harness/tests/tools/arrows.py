#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the arrows between the folders of C++ code, and refuses those that run upwards.

  arrows.py FOLDER [--include ROOT]... LAYER...

FOLDER holds the code. A LAYER is a folder in it, by its path from FOLDER; `.` is the files of
FOLDER itself. The lowest comes first, and a layer may include those before it. Layers of one
height are joined by commas (`num,isa`): one of them may include another, but in no circle.
Quoted and angled #include lines count; ROOT is where their paths begin (FOLDER, unless named).
What lies outside FOLDER is not looked at. The exit code is 1 when an include runs upwards, when
folders form a cycle, or when a folder with code is no layer; 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

CODE = {".h", ".cuh", ".cpp", ".cu", ".inc", ".def"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')

Arrows = dict[tuple[str, str], list[str]]  # (from, to): the lines that draw it


def layer_of(path: Path, layers: list[str]) -> str | None:
    """The deepest layer that holds a file, whose path is from FOLDER; `.` holds no folders."""
    at_top = path.parent == Path(".")
    names = [str(parent) for parent in path.parents if at_top or parent != Path(".")]
    return next((name for name in names if name in layers), None)


def includes_of(file: Path, folder: Path, roots: list[Path]) -> list[tuple[int, Path]]:
    """Lines of a file that include one of `folder`, and that file's path from there."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        include = INCLUDE.match(line)
        if include is None:
            continue
        for root in [*roots, file.parent]:
            target = (root / include[1]).resolve()
            if target.is_file() and target.is_relative_to(folder):
                found.append((number, target.relative_to(folder)))
                break
    return found


def draw(folder: Path, roots: list[Path], layers: list[str]) -> tuple[Arrows, list[str]]:
    """The arrows, and what is wrong with the folders."""
    arrows: Arrows = defaultdict(list)
    homeless = set()
    for file in sorted(folder.rglob("*")):
        if file.suffix not in CODE or not file.is_file():
            continue
        here = file.relative_to(folder)
        layer = layer_of(here, layers)
        if layer is None:
            homeless.add(str(here.parent))
            continue
        for number, target in includes_of(file, folder, roots):
            other = layer_of(target, layers)
            if other is not None and other != layer:
                arrows[layer, other].append(f"{here}:{number} includes {target}")
    return arrows, [f"{name} holds code and is no layer" for name in sorted(homeless)]


def cycles(arrows: Arrows) -> list[str]:
    """One circle for each arrow that closes one, as text."""
    found = []
    for begin, end in arrows:
        trail, reached = [[end]], {end}
        while trail:
            way = trail.pop(0)
            if way[-1] == begin:
                circle = way[way.index(min(way)) :] + way[: way.index(min(way))]
                found.append(" -> ".join([*circle, circle[0]]))
                break
            steps = [to for at, to in arrows if at == way[-1] and to not in reached]
            reached.update(steps)
            trail += [[*way, step] for step in steps]
    return sorted(set(found))


def check(folder: Path, roots: list[Path], heights: list[list[str]]) -> tuple[str, list[str]]:
    """The drawing, lowest layer last, and everything that is wrong."""
    height = {layer: at for at, row in enumerate(heights) for layer in row}
    arrows, wrong = draw(folder, roots, list(height))
    for (begin, end), lines in sorted(arrows.items()):
        if height[end] > height[begin]:
            wrong += [f"{begin} -> {end} runs upwards: {line}" for line in lines]
    wrong += [f"a circle: {circle}" for circle in cycles(arrows)]
    wide = max(map(len, height))
    drawing = []
    for layer in sorted(height, key=lambda name: -height[name]):
        below = sorted((end for begin, end in arrows if begin == layer), key=lambda name: -height[name])
        drawing.append(f"{layer:{wide}} -> {', '.join(below)}" if below else layer)
    return "\n".join(drawing), wrong


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("layers", nargs="+", metavar="LAYER")
    parser.add_argument("--include", type=Path, action="append", metavar="ROOT", default=[])
    options = parser.parse_args(words)
    folder = options.folder.resolve()
    heights = [row.split(",") for row in options.layers]
    for layer in [layer for row in heights for layer in row]:
        if not (folder / layer).is_dir():
            parser.error(f"there is no folder {layer} in {options.folder}")
    drawing, wrong = check(folder, [root.resolve() for root in options.include or [folder]], heights)
    print(drawing)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
