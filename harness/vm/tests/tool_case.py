# SPDX-License-Identifier: MIT
"""What the tests of the command-line tool share. sys.argv: FILE PTXVM [PTX_FOLDER]."""

from __future__ import annotations

import math
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PTXVM, PTX = (Path(word).resolve() for word in (sys.argv[1], sys.argv[-1]))
GOOD, FINDING, REFUSED, ENVIRONMENT = range(4)
FORMATS = {
    **{"<f2": "e", "<f4": "f", "<f8": "d", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H"},
    **{"<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q", "|b1": "?", "<V2": "H"},
}


def write_npy(path: Path, values: list, shape: tuple[int, ...], descr: str = "<f4") -> None:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{FORMATS[descr]}", *values)
    size = struct.pack("<H", len(header))
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode() + data)


def read_npy(path: Path) -> tuple[list, tuple[int, ...]]:
    raw = path.read_bytes()
    length = struct.unpack_from("<H", raw, 8)[0]
    header = eval(raw[10 : 10 + length].decode())  # a literal that the tool wrote
    count = math.prod(header["shape"])
    return list(struct.unpack(f"<{count}{FORMATS[header['descr']]}", raw[10 + length :])), header[
        "shape"
    ]


def single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


class ToolCase(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.random = random.Random(1)

    def tool(self, *words: object, code: int = GOOD) -> tuple[str, str]:
        done = subprocess.run(
            [PTXVM, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            timeout=120,
        )
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def launch(self, kernel: str, entry: str, *words: object, code: int = GOOD) -> str:
        return self.tool("run", PTX / f"{kernel}.ptx", "--entry", entry, *words, code=code)[0]

    def refused(self, *words: object, says: str, code: int = REFUSED) -> None:
        out, err = self.tool(*words, code=code)
        self.assertEqual(out, "")
        self.assertRegex(err, re.compile(rf"\Aptxvm: error: .*{says}", re.DOTALL))

    def numbers(self, text: str, section: str, row: str) -> list[int]:
        """The numbers of one row of the report; they are grouped by single spaces."""
        body = text[text.index(section) :]
        line = next(line for line in body.splitlines()[1:] if line.split()[:1] == [row])
        cells = re.split(r" {2,}", line.strip())[1:]
        return [int(cell.replace(" ", "")) for cell in cells if not cell.startswith("x")]

    def shared(self, text: str, row: str) -> list[int]:
        """requests, wavefronts, ideal"""
        return self.numbers(text, "shared memory", row)

    def instructions(self, text: str, row: str) -> int:
        return self.numbers(text, "warp instructions", row)[0]
