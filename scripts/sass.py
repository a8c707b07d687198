#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the machine instructions in the main loop of every entry point.

  scripts/sass.py --out plots/results/sass.json

The main loop is an innermost loop with tensor instructions: the one with the most of them, and of
equals the shortest. So of a kernel with roles it is the loop of a consumer, and of one with a masked
or a repeated pass the lean loop. The retries of a wait, which ptxas puts at the end of the function,
are not in it. KIND_in_flight counts those of a kind that stand where wgmma may still run. Needs cuobjdump of
the CUDA toolkit, but no GPU. The counts depend on the compiler, whose version is in the file.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

from files import document_text, require_writable, write_atomically  # noqa: E402
from ladder import LadderError, Unable, find_fa  # noqa: E402
from sanitize import source_state  # noqa: E402

WANTED = "sm_90a"
ARCHITECTURE = re.compile(r"^\s*arch = (sm_\w+)", re.M)
FUNCTION = re.compile(r"^\s*Function : (\S+)$", re.M)
INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)([^;]*);", re.M
)
BRANCH_TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")
ALWAYS = re.compile(r"\s*0x[0-9a-f]+\s*$")  # a branch without a condition among its operands
LEAVES = ("EXIT", "RET", "KILL")
TENSOR = ("HMMA", "HGMMA")
ALL_DONE = re.compile(r"^\.DEPBAR\S* gsb\d+, 0x0\b")  # of WARPGROUP: no product is left in flight
IN_FLIGHT = ("MUFU", "FMNMX")


@dataclass(frozen=True)
class Instruction:
    address: int
    kind: str
    operands: str
    predicated: bool = False

    @property
    def target(self) -> int | None:
        """Where a branch goes."""
        found = BRANCH_TARGET.search(self.operands) if self.kind == "BRA" else None
        return int(found[1], 16) if found else None

    @property
    def goes_on(self) -> bool:
        """Whether the next instruction may follow this one."""
        if self.predicated:
            return True
        return self.kind not in LEAVES and not (self.kind == "BRA" and ALWAYS.match(self.operands))


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """(entry, instructions) of each function of one cuobjdump -sass listing."""
    parts = FUNCTION.split(listing)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        matches = INSTRUCTION.finditer(body)
        yield name, [Instruction(int(m[1], 16), m[3], m[4], bool(m[2])) for m in matches]


def reaches(code: list[Instruction], goal: int, around: int) -> bool:
    """Whether control can come from the start to the instruction `goal` without `around`."""
    places = {instruction.address: place for place, instruction in enumerate(code)}
    seen, waiting = {around}, [0]
    while waiting:
        place = waiting.pop()
        if place in seen or place >= len(code):
            continue
        seen.add(place)
        instruction = code[place]
        if instruction.goes_on:
            waiting.append(place + 1)
        if instruction.target in places:
            waiting.append(places[instruction.target])
    return goal in seen


def loops(code: list[Instruction]) -> Iterator[range]:
    """The places of every loop: from the target of a backward branch to the branch. A jump back into
    the middle, from code that was put aside, closes no loop: its target is reached without it."""
    places = {instruction.address: place for place, instruction in enumerate(code)}
    for last, branch in enumerate(code):
        first = places.get(branch.target, last) if branch.target is not None else last
        if first < last and not reaches(code, last, first):
            yield range(first, last + 1)


def main_loop(code: list[Instruction]) -> range:
    """The places of the loop that is counted; empty where there is none with tensor instructions."""

    def tensor(loop: range) -> int:
        return sum(code[place].kind in TENSOR for place in loop)

    found = [loop for loop in set(loops(code)) if tensor(loop)]
    inner = [
        loop
        for loop in found
        if not any(other != loop and set(other) <= set(loop) for other in found)
    ]
    return max(inner, key=lambda loop: (tensor(loop), -len(loop)), default=range(0))


def in_flight(body: list[Instruction]) -> Iterator[str]:
    """KIND_in_flight for every instruction of these kinds between a wgmma and the wait for all."""
    running = False
    for _ in range(2):  # what is in flight at the end of an iteration is so at the start of the next
        found = []
        for instruction in body:
            if instruction.kind == "HGMMA":
                running = True
            elif instruction.kind == "WARPGROUP" and ALL_DONE.match(instruction.operands):
                running = False
            elif running and instruction.kind in IN_FLIGHT:
                found.append(f"{instruction.kind}_in_flight")
    yield from found


def disassemble(binary: Path) -> str:
    tool = shutil.which("cuobjdump")
    if tool is None:
        raise Unable("cuobjdump was not found on PATH; the CUDA toolkit has it, and of PyPI"
                     " nvidia-cuda-cuobjdump")  # fmt: skip
    done = subprocess.run([tool, "-sass", binary], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LadderError(f"cuobjdump could not read {binary}: {done.stderr.strip()}")
    return done.stdout


def by_kind(instructions: list[Instruction]) -> dict[str, int]:
    kinds = Counter(i.kind for i in instructions)
    return {"total": len(instructions), **dict(kinds.most_common())}


def count(binary: Path) -> dict[str, dict[str, int]]:
    """Instructions of the main loops by entry point."""
    listing = disassemble(binary)
    parts = ARCHITECTURE.split(listing)
    found = list(zip(parts[1::2], parts[2::2], strict=True))
    wanted = [text for arch, text in found if arch == WANTED]
    if not wanted:
        present = ", ".join(sorted({arch for arch, _ in found}))
        raise LadderError(f"{binary} holds no code for {WANTED}, only for {present}")
    entries = {}
    for text in wanted:
        for name, code in functions(text):
            loop = main_loop(code)
            if not name.startswith("fa_") or not loop:
                continue
            body = [code[place] for place in loop]
            entries[name] = by_kind(body) | dict(Counter(in_flight(body)).most_common())
    return dict(sorted(entries.items()))


def nvcc_version() -> str:
    tool = shutil.which("nvcc")
    if tool is None:
        raise Unable("nvcc was not found on PATH; its version belongs into the file")
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"V([\d.]+)", done.stdout)
    return found[1] if found else "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    require_writable(options.out)
    binary = find_fa()
    sha, dirty = source_state(binary.parent)
    document = {
        "schema": 1,
        "kind": "sass",
        "generator": {"git_sha": sha, "git_dirty": dirty},
        "nvcc": nvcc_version(),
        "arch": WANTED,
        "entries": count(binary),
    }
    write_atomically(options.out, document_text(document))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LadderError, OSError) as error:
        print(f"sass.py: error: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, OSError) else error.code)
