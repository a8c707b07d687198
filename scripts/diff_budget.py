#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One idea a rung: the size of each rung's difference to its parent, and what stands beside the idea.

Three checks; the exit status is 1 where one fails.
- `git diff --no-index --numstat PARENT RUNG`: added and removed lines together, with comments,
  includes and blank lines, are at most 120, or the row of the file (FA_RUNG) says why they are more.
- Host code of a kernel file, the lines after the first `}  // namespace` (blank ones aside): at most
  20.
- No six lines of host code in a row, spaces aside, stand in two kernel files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

from ladder import Catalogue, LadderError, Rung  # noqa: E402

END_OF_DEVICE_CODE = "}  // namespace"
LARGE = 120  # lines of a difference that needs a reason
MAX_HOST_LINES = 20
REPEATED_LINES = 6


def changed_lines(parent: Path, child: Path) -> int:
    """Added plus removed lines, as git counts them with its default algorithm."""
    for path in (parent, child):
        if not path.is_file():
            raise LadderError(f"cannot read {path}: no such file")
    command = ["git", "diff", "--no-index", "--numstat", "--diff-algorithm=myers", "--no-renames"]
    done = subprocess.run([*command, parent, child], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise LadderError(f"git diff of {parent} and {child} failed: {done.stderr.strip()}")
    if not done.stdout:
        return 0
    added, removed = done.stdout.split("\t")[:2]
    return int(added) + int(removed)


def host_lines(text: str) -> list[str]:
    """The lines after the device code without their spaces; blank lines are left out."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = lines.index(END_OF_DEVICE_CODE) + 1 if END_OF_DEVICE_CODE in lines else 0
    return [" ".join(line.split()) for line in lines[first:] if line]


def repetitions(files: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """(file, earlier file, first line) of the first lines in a row that two files have in common."""
    seen: dict[tuple[str, ...], str] = {}
    for name, lines in files.items():
        rows = range(len(lines) - REPEATED_LINES + 1)
        blocks = [tuple(lines[i : i + REPEATED_LINES]) for i in rows]
        known = next((block for block in blocks if block in seen), None)
        if known:
            yield name, seen[known], known[0]
        for block in blocks:
            seen.setdefault(block, name)


@dataclass(frozen=True)
class Comparison:
    rung: Rung
    parent: Rung
    changed: int

    @property
    def mark(self) -> str:
        """What is wrong with it; empty where nothing is."""
        is_large, why = self.changed > LARGE, self.rung.data["why_large"]
        if is_large and not why:
            return f"  above {LARGE}, and its row gives no reason (.why_large)"
        return f"  its row says why it is above {LARGE}, which it is not" if why and not is_large else ""


def compare(root: Path, catalogue: Catalogue) -> list[Comparison]:
    """Every rung that has a parent."""
    comparisons = []
    for rung in catalogue.rungs:
        if not rung.parent:
            continue
        parent = catalogue.find(rung.parent)
        if parent is None:
            raise LadderError(f"{rung.name}: its parent '{rung.parent}' is not in the catalogue")
        changed = changed_lines(root / parent.file, root / rung.file)
        comparisons.append(Comparison(rung, parent, changed))
    return comparisons


def read_hosts(root: Path, catalogue: Catalogue) -> dict[str, list[str]]:
    """The host code of each rung's file."""
    hosts = {}
    for rung in catalogue.rungs:
        try:
            hosts[rung.name] = host_lines((root / rung.file).read_text(encoding="utf-8"))
        except OSError as error:
            raise LadderError(f"cannot read {rung.file}: {error.strerror}") from error
    return hosts


def print_report(comparisons: list[Comparison], hosts: dict[str, list[str]]) -> bool:
    """Prints what was counted; true if all of it is allowed."""
    good = True
    for item in comparisons:
        good &= not item.mark
        print(f"{item.rung.name:18} {item.changed:4} lines against {item.parent.name}{item.mark}")
    for name, lines in hosts.items():
        if len(lines) > MAX_HOST_LINES:
            good = False
            print(f"{name:18} {len(lines):4} lines of host code, above {MAX_HOST_LINES}")
    for name, other, line in repetitions(hosts):
        good = False
        print(f"{name:18} repeats {REPEATED_LINES} lines of {other}, from: {line}")
    return good


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="where the kernels are")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        catalogue = Catalogue.load(arguments.catalogue)
        comparisons = compare(arguments.root, catalogue)
        hosts = read_hosts(arguments.root, catalogue)
    except LadderError as error:
        print(f"diff_budget.py: error: {error}", file=sys.stderr)
        return 2
    return 0 if print_report(comparisons, hosts) else 1


if __name__ == "__main__":
    sys.exit(main())
