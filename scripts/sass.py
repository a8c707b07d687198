#!/usr/bin/env python3
"""Counts the machine instructions in the main loop of every entry point.

  scripts/sass.py --out plots/results/sass.json [--binary build/fa]

The main loop is the innermost one with the most tensor instructions; nested loops inside it count
once. Needs cuobjdump of the CUDA toolkit, but no GPU. The counts depend on the compiler, whose
version is in the file.
"""

from __future__ import annotations

import argparse
import json
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

from ladder import LadderError  # noqa: E402
from ptxas_report import write_atomically  # noqa: E402
from sanitize import source_state  # noqa: E402

ARCHITECTURE = re.compile(r"^\s*arch = (sm_\w+)", re.M)
FUNCTION = re.compile(r"^\s*Function : (\S+)$", re.M)
INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)([^;]*);", re.M
)
BRANCH_TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")
TENSOR = ("HMMA", "HGMMA")


@dataclass(frozen=True)
class Instruction:
    address: int
    kind: str
    operands: str


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """(entry, instructions) of each function of one cuobjdump -sass listing."""
    parts = FUNCTION.split(listing)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        found = (Instruction(int(m[1], 16), m[2], m[3]) for m in INSTRUCTION.finditer(body))
        yield name, list(found)


def loops(code: list[Instruction]) -> Iterator[list[Instruction]]:
    """The body of every loop: from the target of a backward branch to the branch."""
    for branch in code:
        target = BRANCH_TARGET.search(branch.operands) if branch.kind == "BRA" else None
        if target and (start := int(target[1], 16)) < branch.address:
            yield [i for i in code if start <= i.address <= branch.address]


def main_loop(code: list[Instruction]) -> Counter[str]:
    """Instructions by kind; of loops with equally many tensor instructions the shortest counts."""

    def weight(body: list[Instruction]) -> tuple[int, int]:
        return sum(i.kind in TENSOR for i in body), -len(body)

    body = max(loops(code), key=weight, default=[])
    return Counter(i.kind for i in body)


def disassemble(binary: Path) -> str:
    tool = shutil.which("cuobjdump")
    if tool is None:
        raise LadderError("cuobjdump was not found on PATH; it is part of the CUDA toolkit")
    done = subprocess.run([tool, "-sass", binary], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LadderError(f"cuobjdump could not read {binary}: {done.stderr.strip()}")
    return done.stdout


def count(binary: Path, architecture: str) -> dict[str, dict[str, int]]:
    listing = disassemble(binary)
    parts = ARCHITECTURE.split(listing)
    found = list(zip(parts[1::2], parts[2::2], strict=True))
    wanted = [text for arch, text in found if arch == architecture]
    if not wanted:
        present = ", ".join(sorted({arch for arch, _ in found}))
        raise LadderError(f"{binary} holds no code for {architecture}, only for {present}")
    entries = {}
    for text in wanted:
        for name, code in functions(text):
            loop = main_loop(code)
            if name.startswith("fa_") and any(loop[kind] for kind in TENSOR):
                entries[name] = {"total": loop.total(), **dict(loop.most_common())}
    return dict(sorted(entries.items()))


def nvcc_version() -> str:
    tool = shutil.which("nvcc")
    if tool is None:
        raise LadderError("nvcc was not found on PATH; its version belongs into the file")
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"V([\d.]+)", done.stdout)
    return found[1] if found else "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--binary", type=Path, default=REPOSITORY / "build" / "fa")
    parser.add_argument("--arch", default="sm_90a")
    options = parser.parse_args()
    sha, dirty = source_state(options.binary.resolve().parent)
    document = {
        "schema": 1,
        "kind": "sass",
        "generator": {"git_sha": sha, "git_dirty": dirty},
        "nvcc": nvcc_version(),
        "arch": options.arch,
        "entries": count(options.binary, options.arch),
    }
    write_atomically(options.out, json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LadderError as error:
        print(f"sass.py: error: {error}", file=sys.stderr)
        sys.exit(2)
