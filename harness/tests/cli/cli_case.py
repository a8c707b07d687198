# SPDX-License-Identifier: MIT
"""Runs the command-line tool and compares stdout, stderr and exit code."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

OK, WRONG, USAGE, ENVIRONMENT = range(4)


def npy_bytes(shape: tuple[int, ...], descr: str = "<f2", fill: bytes | None = None) -> bytes:
    """A .npy file without NumPy: every element is `fill`, by default 1.0."""
    ones = {"<f2": b"\x00\x3c", "<f4": b"\x00\x00\x80\x3f", "<f8": b"\x00" * 6 + b"\xf0\x3f"}
    element = fill or ones[descr]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    count = 1
    for extent in shape:
        count *= extent
    size = len(header).to_bytes(2, "little")
    return b"\x93NUMPY\x01\x00" + size + header.encode() + element * count


def more_than_memory() -> tuple[object, ...]:
    """A shape whose Q, K and V, 6 GiB for a batch entry, are just more than this host has free."""
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    available = int(re.search(r"MemAvailable: +(\d+)", text)[1]) << 10
    return ("--batch", available // (6 << 30) + 1, "--heads", 64, "--seq", 131072)


def endless(ptx: str) -> str:
    """PTX whose kernels never return."""
    counter = itertools.count()
    return re.sub(r"\bret;", lambda _: "again_{0}: bra again_{0};".format(next(counter)), ptx)


class CliCase(unittest.TestCase):
    """`self.fa(...)` runs the tool; `self.folder` is an empty folder."""

    program: Path
    environment: dict[str, str] = {}

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def fa(self, *words: object, code: int, out: str = "", err: str = "", **extra: str) -> str:
        """Both patterns must match the whole stream; returns stdout."""
        environment = {**os.environ, **self.environment, **extra}
        done = subprocess.run(
            [str(self.program), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=self.folder,
            env=environment,
        )
        # What long work says every ten seconds, on a machine that is slow enough.
        err_lines = re.sub(r"^fa: \d+ of \d+[^\n]*\n", "", done.stderr, flags=re.MULTILINE)
        what = f"fa {' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, code, what)
        self.assertRegex(done.stdout, re.compile(rf"\A{out}\Z", re.DOTALL), what)
        self.assertRegex(err_lines, re.compile(rf"\A{err}\Z", re.DOTALL), what)
        return done.stdout

    def refused(self, *words: object, code: int = USAGE, says: str) -> None:
        """Nothing on stdout; one line on stderr, which contains the pattern."""
        self.fa(*words, code=code, err=rf"fa: error: [^\n]*{says}[^\n]*\n")


def run(module: str) -> int:
    program = unittest.main(module=module, argv=["cli"], exit=False, verbosity=1)
    return 0 if program.result.wasSuccessful() else 1


def arguments(count: int) -> list[Path]:
    if len(sys.argv) != count + 1:
        sys.exit(f"usage: {sys.argv[0]} with {count} paths")
    return [Path(word).resolve() for word in sys.argv[1:]]
