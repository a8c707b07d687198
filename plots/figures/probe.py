#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks the virtual machine where instructions read and write elements, for the figures.

plots/figures/probe.py --write     runs probe.ptx and probe_tensor.ptx, and writes machine.json
plots/figures/probe.py --check     exit 1 when the machine answers something else
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FACTS = HERE / "machine.json"
sys.path.insert(0, str(HERE.parent.parent / "harness" / "vm" / "python"))

import numpy as np  # noqa: E402
import ptxvm  # noqa: E402

LANES = np.arange(32)
SWIZZLE_128 = 1 << 62
TENSOR_THREAD = 37


class Machine:
    """The kernels of probe.ptx."""

    def __init__(self) -> None:
        self.module = ptxvm.Module.load(HERE / "probe.ptx")

    def run(
        self, name: str, *arguments: object, block: int = 32, shared: int = 0, **more: Any
    ) -> ptxvm.Result:
        return self.module.kernel(name).launch(
            *arguments, grid=1, block=block, shared=shared, **more
        )

    def load(self, tile: np.ndarray, addresses: np.ndarray, transposed: bool = False) -> np.ndarray:
        """What each lane has in its four registers, two halves each: [lane, register, half]."""
        out = np.zeros((32, 4), np.uint32)
        name = "load_transposed" if transposed else "load_tiles"
        self.run(name, tile, addresses.astype(np.uint32), out, shared=512)
        return out.view(np.uint16).reshape(32, 4, 2)

    def wavefronts(self, addresses: list[int]) -> int:
        """Passes over the banks of one load of 16 bytes per lane."""
        result = self.run("read", np.array(addresses, np.uint32), shared=1 << 16, checkers=False)
        return result.counts["shared_load_wavefronts"]


def positions(ids: np.ndarray, columns: int) -> list[Any]:
    """Numbers in a row-major matrix as [row, column]."""
    return np.stack([ids // columns, ids % columns], axis=-1).tolist()


def tile_addresses(pitch: int) -> np.ndarray:
    """Lanes 0 to 15 at the rows of the left half of a 16x16 tile, 16 to 31 at those of the right."""
    return LANES % 16 * pitch + LANES // 16 * 16


def fragments(machine: Machine) -> dict[str, Any]:
    """Which elements of A, B and C of mma.m16n8k16 each register of a lane holds."""
    ids = np.arange(256, dtype=np.uint16).reshape(16, 16)
    a = machine.load(ids, tile_addresses(32))
    # K as it is stored, a key per row: lanes 0 to 7 at the left half, 8 to 15 at the right half.
    keys = LANES % 8 * 32 + LANES // 8 % 2 * 16
    b = machine.load(ids, keys)[:, :2]
    product = multiply(machine, a, b)
    return {"a": positions(a, 16), "b": positions(b, 16), "c": positions(product, 8)}


def multiply(machine: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Numbers of the elements of C that a lane holds, found by a product whose element (r, n) is
    8 r + n. It comes out right only where A and B are laid out as the two loads laid them out."""
    left = np.zeros((16, 16), np.float16)
    left[:, 3], left[:, 12] = 8 * np.arange(16), 1
    right = np.zeros((16, 16), np.float16)  # [key, k]
    right[:8, 3], right[:8, 12] = 1, np.arange(8)
    out = np.zeros((32, 4), np.float32)
    machine.run("multiply", left.reshape(-1)[a], np.ascontiguousarray(right.reshape(-1)[b]), out)
    found = out.astype(np.uint16)
    if sorted(found.reshape(-1)) != list(range(128)):
        raise SystemExit("probe.py: the fragments do not make up a product")
    return found


def transposed(machine: Machine) -> list[Any]:
    """[lane, register, half] -> [key, column] of a 16x16 tile of V through ldmatrix.x4.trans."""
    ids = np.arange(256, dtype=np.uint16).reshape(16, 16)
    return positions(machine.load(ids, tile_addresses(32), transposed=True), 16)


def box(machine: Machine) -> list[Any]:
    """[place / 16 bytes] -> [row, chunk of 8 columns], for 16 rows of 128 columns as two panels."""
    ids = np.arange(16 * 128, dtype=np.uint16).reshape(16, 128)
    panels = ids.reshape(16, 2, 64).transpose(1, 0, 2)
    out = np.zeros(2048, np.uint16)
    tensor = ptxvm.TensorMap(panels, (2, 16, 64), swizzle=128)
    machine.run("copy_box", tensor, out, block=256, shared=4096)
    first = out.reshape(-1, 8)[:, 0]
    return np.stack([first // 128, first % 128 // 8], axis=-1).tolist()


def swizzled(tile: np.ndarray, places: list[Any]) -> np.ndarray:
    """Rows of 64 halves as the copy laid out the first panel of its 16 rows, repeated."""
    order = [(row, chunk) for row, chunk in places if chunk < 8]
    chunks = tile.reshape(-1, 16, 8, 8)
    rows, columns = np.array(order).T
    return np.ascontiguousarray(chunks[:, rows, columns])


def tensor_memory(places: list[Any]) -> dict[str, Any]:
    """Of a product with 128 rows in tensor memory, [register] -> [row, column] of one thread: of its
    sums where it loads them, and of A, two halves per register, where it has stored it."""
    left, right = np.zeros((128, 64), np.float16), np.zeros((16, 64), np.float16)
    left[:, 3], left[:, 12] = 16 * np.arange(128), 1
    right[:, 3], right[:, 12] = 1, np.arange(16)
    form = SWIZZLE_128 | 1 << 46 | (1024 >> 4) << 32
    stored = np.arange(128 * 16, dtype=np.float16).reshape(128, 16)
    kernel = ptxvm.Module.load(HERE / "probe_tensor.ptx").kernel("tensor")

    def run(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, output = np.zeros((128, 16), np.float32), np.zeros((128, 16), np.float32)
        kernel.launch(
            *(swizzled(left, places), swizzled(b, places), stored, sums, output, form),
            grid=1, block=128, shared=18432,
        )  # fmt: skip
        return sums.astype(np.uint16), output.astype(np.uint16)

    sums, _ = run(right)
    _, elements = run(np.eye(16, 64, dtype=np.float16))  # [row][k]: the half of P that is there
    for found in (sums, elements):
        if sorted(found.reshape(-1)) != list(range(2048)):
            raise SystemExit("probe.py: the tile is not what tcgen05.mma takes")
    rows = np.argsort(elements.reshape(-1)).reshape(128, 8, 2)  # [thread][register][half]
    held = {"sums": sums, "a": rows}
    found = {name: positions(each[TENSOR_THREAD], 16) for name, each in held.items()}
    return {"thread": TENSOR_THREAD} | found


def banks(machine: Machine) -> dict[str, Any]:
    """Where the bytes are that eight lanes read, 16 each, and how many wavefronts that takes: a
    quarter of those of a warp. First as ldmatrix reads rows of 128 halves: chunk 2 + i of eight rows. Then as
    a4 reads rows of 32 floats: the first four of 32 rows, without a gap between rows and with one."""
    layouts = {
        "row-major": lambda lane: lane % 8 * 256 + (2 + lane // 8) * 16,
        "xor": lambda lane: lane % 8 * 256 + ((2 + lane // 8) ^ lane % 8) * 16,
        "pitch 32": lambda lane: lane * 32 * 4,
        "pitch 36": lambda lane: lane * 36 * 4,
    }
    found = {}
    for name, place in layouts.items():
        addresses = [place(lane) for lane in range(32)]
        wavefronts = machine.wavefronts(addresses) // 4
        found[name] = {"places": addresses[:8], "of_eight_lanes": wavefronts}
    return found


def facts() -> dict[str, Any]:
    machine = Machine()
    places = box(machine)
    return {
        "mma": fragments(machine),
        "transposed": transposed(machine),
        "box": places,
        "tensor_memory": tensor_memory(places),
        "banks": banks(machine),
    }


def text_of(found: dict[str, Any]) -> str:
    """One line an entry."""
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write machine.json")
    action.add_argument("--check", action="store_true", help="exit 1 when it is out of date")
    arguments = parser.parse_args(argv)
    try:
        text = text_of(facts())
    except ImportError as error:
        print(f"probe.py: error: {error}", file=sys.stderr)
        return 3
    if arguments.write:
        FACTS.write_text(text, encoding="utf-8")
        return 0
    if FACTS.read_text(encoding="utf-8") != text:
        print(
            "probe.py: machine.json is out of date; run plots/figures/probe.py --write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
