"""Which folders include which, as the #include lines say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {".h", ".cpp", ".cu", ".inc", ".def"}


@dataclass(frozen=True)
class Arrow:
    """A file of the folder `source` includes one of the folder `target`."""

    source: str
    target: str
    where: str  # "device/gpu.cpp:12"

    def __str__(self) -> str:
        return f"{self.where}: {self.source} includes {self.target}"


def draw(folder: Path, prefix: str, parts: Iterable[str]) -> list[Arrow]:
    """The arrows between parts (subfolders) of a folder whose files are included as PREFIX/part/..."""
    include = re.compile(rf'^\s*#\s*include\s*[<"]{re.escape(prefix)}/([^/">]+)/', re.MULTILINE)
    arrows = []
    for part in parts:
        for file in sorted((folder / part).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            text = file.read_text(encoding="utf-8")
            for found in include.finditer(text):
                line = text.count("\n", 0, found.start(1)) + 1
                where = f"{file.relative_to(folder)}:{line}"
                arrows.append(Arrow(part, found[1], where))
    return arrows


def upward(arrows: Iterable[Arrow], order: Sequence[str]) -> list[Arrow]:
    """Those that lead to a folder later in the order, or to none of it."""
    rank = {part: i for i, part in enumerate(order)}
    return [a for a in arrows if rank.get(a.target, len(rank)) > rank[a.source]]


def cycle(arrows: Iterable[Arrow]) -> list[str]:
    """Folders that include each other in a ring; empty when there is none."""
    targets: dict[str, set[str]] = {}
    for arrow in arrows:
        if arrow.source != arrow.target:
            targets.setdefault(arrow.source, set()).add(arrow.target)
    done: set[str] = set()

    def search(part: str, path: list[str]) -> list[str]:
        if part in path:
            return [*path[path.index(part) :], part]
        if part in done:
            return []
        for target in sorted(targets.get(part, ())):
            if ring := search(target, [*path, part]):
                return ring
        done.add(part)
        return []

    for part in sorted(targets):
        if ring := search(part, []):
            return ring
    return []
