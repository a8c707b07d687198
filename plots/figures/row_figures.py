# SPDX-License-Identifier: MIT
"""From 49 to 50: 64 rows of Q against a cache, from swapped operands on mma.sync to wgmma.

Tiles and wavefronts are those that the machine counted, layouts those that it answers (facts).
"""

from __future__ import annotations

from canvas import HUES, SMALL, Canvas, begin
from decode_figures import BRIEF, DIM, counts, lanes_of, strip, tile_of, tile_keys, tiles_of
from layouts import facts

ROWS = 64


def four_rows() -> Canvas:
    warps = tile_of("49c")[2]
    lanes = {"49b": DIM // 4, "49c": DIM // 16}
    canvas, y = begin(
        "49c: four rows on their way at a time",
        "A warp that merges 16 of the 64 rows of a head. In 49b its 32 lanes have 4 columns "
        "each of one row, and it waits 16 times. In 49c 8 lanes have 16 columns each of a row, "
        "four rows are on their way at a time, and it waits 4 times.",
        note="One warp: the lanes of a row, and below, its waits.",
    )
    for rung, count in lanes.items():
        at_a_time = 32 // count
        canvas.text(14, y + 6, f"{rung}: {DIM // count} columns a lane", size=SMALL, bold=True)
        y += 18
        for lane in range(32):
            fill = f"{HUES[lane // count]}-soft"
            canvas.rect(14 + lane * 12.8, y, 11.8, 18, fill)
        for row in range(at_a_time):
            middle = 14 + (row + 0.5) * count * 12.8
            canvas.text(middle, y + 9, f"row {row}", size=BRIEF, anchor="middle")
        y += 28
        waits = ROWS // warps // at_a_time
        for wait in range(waits):
            canvas.cell(14 + wait * 25.6, y, 24.6, 18, str(wait), "orange-soft", size=BRIEF)
        y += 38
    canvas.lines(
        14,
        y - 4,
        (
            "In return four parts of a row are on their way, not sixteen:",
            "33 parts of a head take 9 waits instead of 3.",
        ),
        "muted",
        size=SMALL,
    )
    return canvas


def same_registers() -> Canvas:
    mma = facts()["mma"]
    for half in range(2):  # of 16 keys
        second = lanes_of(mma["b"], half, swapped=False)  # (row of the set, key)
        for rows in range(2):  # sets of 8
            first = lanes_of(mma["a"], rows + 2 * half, swapped=False)
            assert first == {(8 * rows + row, key): lane for (row, key), lane in second.items()}
    canvas, y = begin(
        "49d: two second operands are a first operand",
        "P of 16 rows of Q and 16 keys. As second operands of V transposed P it is two sets of "
        "8 rows with two registers each. As the first operand of P V it is 16 rows with four "
        "registers. Each register holds the same 8 rows and 8 keys in the same lanes.",
        note="P: rows of Q down, 16 keys across. A box: one register of a lane.",
    )
    top, size = y + 30, 62.0
    for x, name in ((14.0, "second operands, 49c"), (252.0, "first operand, 49d")):
        canvas.text(x, top - 16, name, size=SMALL, bold=True)
        for rows in range(2):
            for half in range(2):
                register = rows + 2 * half
                label = f"set {rows}: b{half}" if x < 200 else f"a{register}"
                fill = f"{HUES[register]}-soft"
                canvas.cell(
                    x + half * (size + 14), top + rows * size, size + 13, size - 1, label, fill
                )
    canvas.line([(170, top + size), (244, top + size)], "muted", thick=1.6, arrow=True)
    canvas.text(
        14, top + 2 * size + 16, "No lane changes: mma.sync is given the same", "muted", size=SMALL
    )
    canvas.text(14, top + 2 * size + 33, "four registers in another place.", "muted", size=SMALL)
    return canvas


def straight() -> Canvas:
    canvas, y = begin(
        "49f: what stands between the last tile and O",
        "The end of a head. In 49e a set of 8 rows goes to shared memory, a barrier, then each "
        "warp stores rows; then a barrier and the same for the second set. In 49f each lane "
        "stores two columns at a time from its registers.",
        note="The end of a head, in a warp. shared: 8 rows to shared memory.",
    )
    to_memory = [("shared", "orange-soft"), ("barrier", "red-soft"), ("store", "green-soft")]
    for name, cells in (
        ("49e", [*to_memory, ("barrier", "red-soft"), *to_memory]),
        ("49f", [("store", "green-soft"), ("store", "green-soft")]),
    ):
        canvas.text(14, y + 6, name, size=SMALL, bold=True)
        y = strip(canvas, y + 18, cells, unit=59, left=14) + 12
    return canvas


def chains() -> Canvas:
    keys, depth = tile_keys("49g"), DIM // 16
    blocks = keys // 16
    orders = {
        "49f": [(2 * b + n, d) for b in range(blocks) for d in range(depth) for n in range(2)],
        "49g": [(2 * b + n, d) for d in range(depth) for b in range(blocks) for n in range(2)],
    }
    canvas, y = begin(
        "49g: products that do not wait for one another",
        "The 64 products of Q K transposed of a tile in the order in which a warp starts them, "
        "and the eight accumulators of 8 keys that they add to. In 49f an accumulator has "
        "every second product, and each waits for the one before the last. In 49g it has every "
        "eighth.",
        note="A tile of 64 keys: mma in the order of issue, left to right.",
    )
    left, unit, row = 74.0, 5.6, 11.0
    for rung, order in orders.items():
        apart = next(i for i in range(1, len(order)) if order[i][0] == order[0][0])
        text = f"{rung}: an accumulator has every {'second' if apart == 2 else 'eighth'} product"
        assert apart in (2, 8)
        canvas.text(14, y + 6, text, size=SMALL, bold=True)
        y += 20
        canvas.text(left - 6, y + row / 2, "keys 0-7", "muted", size=BRIEF, anchor="end")
        last = y + (2 * blocks - 1) * row
        canvas.text(
            left - 6, last + row / 2, f"{keys - 8}-{keys - 1}", "muted", size=BRIEF, anchor="end"
        )
        for slot, (accumulator, _) in enumerate(order):
            at = left + slot * unit, y + accumulator * row
            canvas.rect(*at, unit - 1, row - 2, HUES[accumulator // 2], radius=0)
        y += 2 * blocks * row + 20
    return canvas


def two_groups() -> Canvas:
    _, keys, warps = tile_of("49h")
    half = keys * 4 // warps
    canvas, y = begin(
        "49h: two halves of a tile, one state at the end",
        f"A tile of {keys} keys and 64 rows of Q. Warps 0 to 3 compute the first {half} keys, "
        "warps 4 to 7 the others; each warp has 16 rows. At the end of a head the second four "
        "leave maximum, sum and O in shared memory, and the first four add them to their own "
        "and store.",
        note="S of a tile: 64 rows of Q down, keys across.",
    )
    top, unit, width = y + 22, 26.0, 150.0
    for group in range(keys // half):
        x = 60 + group * (width + 6)
        name = f"keys {group * half} to {group * half + half - 1}"
        canvas.text(x + width / 2, top - 10, name, "muted", size=BRIEF, anchor="middle")
        for warp in range(4):
            text = f"warp {4 * group + warp}"
            canvas.cell(
                x, top + warp * unit, width - 1, unit - 1, text, f"{HUES[group]}-soft", size=BRIEF
            )
    y = top + 4 * unit + 24
    canvas.text(14, y, "At the end of a head", size=SMALL, bold=True)
    y += 14
    canvas.cell(216, y, 149, 26, "maximum, sum, O", "orange-soft", size=BRIEF)
    canvas.cell(60, y, 149, 26, "adds, divides, stores", "blue-soft", size=BRIEF)
    canvas.line(
        [(290, y + 26), (290, y + 40), (134, y + 40), (134, y + 28)],
        "orange",
        thick=1.6,
        arrow=True,
    )
    canvas.text(212, y + 54, "34 KB of shared memory", "muted", size=BRIEF, anchor="middle")
    return canvas


def tensor_reads() -> Canvas:
    keys = tile_keys("50")

    def each(rung: str, kind: str) -> int:  # of a tile
        return counts(rung)[f"{kind}_wavefronts"] // tiles_of(rung)

    reads = {
        "49i": (each("49i", "ldmatrix") // 2,) * 2,  # K and V are as large
        "49j": (each("49j", "wgmma"), each("49j", "ldmatrix")),
        "50": (each("50", "wgmma") // 2,) * 2,
    }
    canvas, y = begin(
        "49j: who reads K and V from shared memory",
        f"Wavefronts of shared memory for a tile of {keys} keys. In 49i every warp loads the "
        "fragments of its keys, K and V. In 49j wgmma reads K once for four warps. In 50 it "
        "reads V once as well.",
        note=f"Wavefronts for a tile of {keys} keys. Its bytes take 3520 clocks.",
    )
    for rung, (k, v) in reads.items():
        canvas.text(14, y + 6, f"{rung}: {k + v}", size=SMALL, bold=True)
        y += 18
        unit = 400 / sum(reads["49i"])
        canvas.cell(
            14, y, k * unit, 26, "K" if k * unit < 80 else f"K {k}", "blue-soft", size=BRIEF
        )
        canvas.cell(
            14 + k * unit,
            y,
            v * unit,
            26,
            "V" if v * unit < 80 else f"V {v}",
            "green-soft",
            size=BRIEF,
        )
        y += 42
    return canvas


FIGURES = {
    "decode_four_rows": four_rows,
    "decode_same_registers": same_registers,
    "decode_straight": straight,
    "decode_chains": chains,
    "decode_two_groups": two_groups,
    "decode_tensor_reads": tensor_reads,
}
