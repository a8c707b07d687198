# SPDX-License-Identifier: MIT
"""Figures of the chapters 81 to 83: from the arithmetic of the kernels."""

from __future__ import annotations

import math
import struct

from canvas import SMALL, Canvas, begin

# --- 81: who uses which columns -------------------------------------------------------------------

COLUMNS = 512
PARTS = (
    ("S", 0, 128, "blue"),
    ("S", 128, 128, "violet"),
    ("O", 256, 128, "green"),
    ("O", 384, 128, "teal"),
)
# Name, and what it touches: first column, number, text. A warpgroup or thread per line.
USES = (
    ("softmax 0 loads", ((0, 128, "S 0"),)),
    ("and stores", ((64, 64, "P 0"),)),
    ("softmax 1 loads", ((128, 128, "S 1"),)),
    ("and stores", ((192, 64, "P 1"),)),
    ("correction, both", ((256, 128, "O 0"), (384, 128, "O 1"))),
)


def two_tiles() -> Canvas:
    canvas, y = begin(
        "81: two tiles fill tensor memory",
        "Columns 0 to 127 hold S of tile 0, 128 to 255 S of tile 1, 256 to 383 O of tile 0, 384 to "
        "511 O of tile 1. The softmax of a tile loads its S and stores P in the upper half of it. "
        "The correction loads and stores both O. The products write S and O and read P.",
        note="512 columns, head_dim 128. P overwrites half of its S.",
    )
    left, unit, top = 124.0, 302 / COLUMNS, y + 22
    for place, (name, first, count, hue) in enumerate(PARTS):
        x = left + first * unit
        canvas.cell(x, top, count * unit, 44, f"{name} {place % 2}", f"{hue}-soft")
        canvas.text(x, top - 10, str(first), "muted", size=SMALL)
    canvas.text(left - 8, top - 10, "column", "muted", size=SMALL, anchor="end")
    y = top + 56
    for name, uses in USES:
        canvas.text(left - 8, y + 11, name, size=SMALL, anchor="end")
        for first, count, text in uses:
            hue = next(part[3] for part in PARTS if part[1] <= first < part[1] + part[2])
            canvas.cell(left + first * unit, y, count * unit, 22, text, f"{hue}-soft")
        y += 26
    told = (
        "The products write S and O, and read P: of tile 0,",
        "then of tile 1, one thread for both.",
    )
    canvas.lines(14, y + 12, told, "muted", size=SMALL)
    return canvas


# --- 82: the error of the polynomial --------------------------------------------------------------

COEFFICIENTS = (0.9999280572, 0.6932609677, 0.2426111251, 0.0551716685)
HALF_ROUNDING = 2.0**-11


def single(x: float) -> float:
    """Rounded to FP32."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def polynomial_error(f: float) -> float:
    """Relative, with the roundings of three FMAs."""
    p = single(COEFFICIENTS[3])
    for coefficient in reversed(COEFFICIENTS[:3]):
        p = single(p * f + single(coefficient))
    return p / 2.0**f - 1


def polynomial() -> Canvas:
    canvas, y = begin(
        "82: the polynomial errs less than a half rounds",
        "The relative error of the cubic polynomial for 2 to the power f, for f from -1/2 to 1/2: a "
        "wave between -7.5e-5 and 7.5e-5. A half rounds by up to 4.9e-4, more than six times as much.",
        note="Relative error of 2^f, f from -1/2 to 1/2.",
    )
    left, width, middle, scale = 96.0, 330.0, y + 92, 150_000.0
    limit = HALF_ROUNDING * scale
    canvas.rect(left, middle - limit, width, 2 * limit, "grey-soft")
    canvas.line([(left, middle), (left + width, middle)], "muted")
    errors = [(i / 160 - 0.5, polynomial_error(single(i / 160 - 0.5))) for i in range(161)]
    largest = max(abs(error) for _, error in errors)
    assert 7e-5 < largest < 7.6e-5
    points = [(left + (f + 0.5) * width, middle - error * scale) for f, error in errors]
    canvas.line(points, "orange", thick=2)
    for value, text in ((HALF_ROUNDING, "+4.9e-4"), (0.0, "0"), (-HALF_ROUNDING, "-4.9e-4")):
        canvas.text(left - 8, middle - value * scale, text, "muted", size=SMALL, anchor="end")
    for f, text in ((-0.5, "-1/2"), (0.0, "0"), (0.5, "1/2")):
        x = left + (f + 0.5) * width
        canvas.text(
            x, middle + limit + 14, text, "muted", size=SMALL, anchor="end" if f > 0 else "middle"
        )
    canvas.text(left + 8, middle - limit + 14, "what rounding to a half costs", "muted", size=SMALL)
    exponent = math.floor(math.log10(largest))
    shown = f"the polynomial: at most {largest / 10**exponent:.1f}e{exponent}"
    canvas.text(left + 8, middle + 32, shown, "orange", size=SMALL)
    return canvas


# --- 83: who has which part of a product ----------------------------------------------------------

# A, the sums, the second operand, and what its columns are.
PRODUCTS = (("Q", "S", "K", "keys"), ("P", "O", "V", "columns of V"))
BLOCKS = ("blue", "orange")


def pair() -> Canvas:
    canvas, y = begin(
        "83: two thread blocks, one product",
        "Two products, S = Q K^T and O += P V. Block 0 has the upper rows of A and of the sums, block "
        "1 the lower ones. Block 0 has the left half of the second operand, keys 0 to 63 of K or "
        "columns 0 to 63 of V, and block 1 the right half. The rows of each block are multiplied by "
        "both halves.",
        note="Each colour is in one block's memory. head_dim 128.",
    )
    for place, (a, sums, b, columns) in enumerate(PRODUCTS):
        left = 14.0 + place * 212
        canvas.text(left + 122, y + 12, columns, "muted", size=SMALL, anchor="middle")
        for block, (hue, half) in enumerate(zip(BLOCKS, ("0-63", "64-127"), strict=True)):
            row = y + 64 + block * 42
            canvas.cell(left + 46 + block * 77, y + 22, 77, 36, f"{b} {half}", f"{hue}-soft")
            canvas.cell(left, row, 40, 42, a, f"{hue}-soft")
            canvas.cell(left + 46, row, 154, 42, f"{sums} of block {block}", f"{hue}-soft")
    canvas.lines(14, y + 166, ("One thread of block 0 issues the product.",), "muted", size=SMALL)
    return canvas


FIGURES = {"two_tiles": two_tiles, "polynomial": polynomial, "pair": pair}
