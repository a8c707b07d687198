# SPDX-License-Identifier: MIT
"""Which lane holds what, and where it is stored: from the machine's answers (machine.json)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from canvas import HUES, SMALL, Canvas, begin
from ladder import read_json

FACTS = Path(__file__).resolve().parent / "machine.json"
SHOWN_LANE = 5


@functools.cache
def facts() -> dict[str, Any]:
    return read_json(FACTS, "what probe.py writes", dict)


def soft(index: int) -> str:
    return f"{HUES[index % len(HUES)]}-soft"


# --- fragments ------------------------------------------------------------------------------------


def operand(canvas: Canvas, x: float, y: float, registers: list[Any], names: str) -> None:
    """A matrix whose rows hold pairs: each pair with the number of the lane that has it, coloured by
    register. registers: [lane][register] -> [[row, column], [row, column + 1]]."""
    width, height = 29.0, 17.0
    for lane, held in enumerate(registers):
        for index, ((row, column), _) in enumerate(held):
            shown = lane == SHOWN_LANE
            place = x + column / 2 * width, y + row * height
            hue = HUES[index]
            canvas.rect(*place, width, height, hue if shown else f"{hue}-soft", "paper")
            fill = "paper" if shown else "ink"
            middle = place[0] + width / 2, place[1] + height / 2
            canvas.text(*middle, str(lane), fill, size=SMALL, anchor="middle", bold=shown)
    canvas.text(x, y - 10, names, size=SMALL)


def pairs_of_accumulator(held: list[list[list[int]]]) -> list[Any]:
    """[lane][register] -> position as [lane][pair] -> two positions."""
    return [[[lane[0], lane[1]], [lane[2], lane[3]]] for lane in held]


def fragments() -> Canvas:
    mma = facts()["mma"]
    canvas, y = begin(
        "Who holds what: mma.m16n8k16",
        "The three matrices of one mma. Every pair of neighbouring elements shows the number of "
        "the "
        "lane that holds it in one register. Lane 5 holds row 1 and row 9 of C at columns 2 and 3, "
        "of A also at 10 and 11, and column 1 of B.",
        note="Number: lane. Colour: register. One box: two elements.",
    )
    top = y + 22
    operand(canvas, 14, top, mma["a"], "A, 16 x 16")
    operand(canvas, 300, top, pairs_of_accumulator(mma["c"]), "C, 16 x 8")
    bottom = top + 16 * 17 + 34
    operand(canvas, 14, bottom, mma["b"], "B, 16 x 8, shown transposed")
    x = 262.0
    y = bottom + 14
    for index, name in enumerate(("a0, b0, c0-1", "a1, b1, c2-3", "a2", "a3")):
        at = x, y + index * 19
        canvas.rect(at[0], at[1] - 7, 14, 14, soft(index), "line")
        canvas.text(at[0] + 18, at[1], name, size=SMALL)
    y += 62
    lines = ["Lane 5 is filled in.", "C has the layout of A."]
    canvas.lines(x, y + 26, lines, "muted", size=SMALL)
    return canvas


# --- ldmatrix -------------------------------------------------------------------------------------


def loads() -> Canvas:
    canvas, y = begin(
        "ldmatrix.x4: from row addresses to registers",
        "Above: 16 rows of 32 bytes in shared memory, two chunks of 16 bytes each, and the lane "
        "that gives the address of each chunk. Below: which lane receives each element of the "
        "first tile, plain and transposed.",
        note="Each lane gives the address of one row of 8 elements.",
    )
    top = y + 22
    canvas.text(14, top - 12, "addresses: lane of each row", size=SMALL)
    for lane in range(32):
        tile = lane // 8
        row, half = lane % 16, lane // 16
        canvas.cell(14 + half * 74, top + row * 17, 74, 17, f"lane {lane}", soft(tile))
    x = 184.0
    for tile, rows in enumerate(("0 to 7", "8 to 15", "16 to 23", "24 to 31")):
        canvas.rect(x, top + tile * 24, 16, 16, soft(tile), "line")
        canvas.text(
            x + 26, top + tile * 24 + 8, f"lanes {rows}: matrix {tile}, into r{tile}", size=SMALL
        )
    told = [
        "Four 8x8 matrices, one register each.",
        "The order of the addresses",
        "decides which matrix is which:",
        "this one gives A of mma.",
    ]
    canvas.lines(x, top + 4 * 24 + 24, told, "muted", size=SMALL)
    tiles(canvas, 14, top + 16 * 17 + 40)
    return canvas


def tiles(canvas: Canvas, x: float, y: float) -> None:
    """The 8x8 matrix of r0: which lane holds each element after the load, in both forms."""
    transposed = facts()["transposed"]
    straight = facts()["mma"]["a"]
    for offset, held, name in ((0, straight, "r0, plain"), (216, transposed, "r0, .trans")):
        canvas.text(x + offset, y - 10, f"{name}: lane of each element", size=SMALL)
        for lane in range(32):
            for row, column in held[lane][0]:
                fill = "blue" if lane == SHOWN_LANE else soft(0) if lane % 2 == 0 else "grey-soft"
                shown = "paper" if lane == SHOWN_LANE else "ink"
                place = x + offset + column * 24.5, y + row * 17
                canvas.rect(*place, 24.5, 17, fill, "paper")
                canvas.text(
                    place[0] + 12, place[1] + 8.5, str(lane), shown, size=SMALL, anchor="middle"
                )
    end = y + 8 * 17 + 16
    rows = [
        f"lane {SHOWN_LANE}: " + ", ".join(f"({r}, {c})" for r, c in held[SHOWN_LANE][0])
        for held in (straight, transposed)
    ]
    canvas.text(x, end, rows[0], "blue", size=SMALL)
    canvas.text(x + 216, end, rows[1], "blue", size=SMALL)


def row_of(lane: int) -> tuple[int, int]:
    """Key and chunk whose address a lane gives for K: lanes 8 i to 8 i + 7 those of matrix i. That
    this order makes two B operands is asserted where the figure is drawn."""
    tile = lane // 8
    return tile // 2 * 8 + lane % 8, tile % 2


def order_of_tiles() -> Canvas:
    canvas, y = begin(
        "01: the addresses decide which matrix is which",
        "K of 16 keys and 16 columns, cut into four matrices of 8 by 8. Lanes 0 to 7 give the rows of "
        "keys 0 to 7, columns 0 to 7; lanes 8 to 15 the same keys, columns 8 to 15; lanes 16 to 31 "
        "the same for keys 8 to 15. The first two registers are the B operand of the first eight "
        "keys, the others that of the second.",
        note="Number: the lane that gives the row's address. Colour: matrix.",
    )
    top, left, width = y + 22, 70.0, 90.0
    for chunk in range(2):
        middle = left + (chunk + 0.5) * width
        name = f"columns {8 * chunk}-{8 * chunk + 7}"
        canvas.text(middle, top - 11, name, "muted", size=SMALL, anchor="middle")
    for lane in range(32):
        key, chunk = row_of(lane)
        place = left + chunk * width, top + key * 17
        canvas.cell(*place, width, 17, str(lane), soft(lane // 8), size=SMALL)
        if chunk == 0:
            canvas.text(left - 8, place[1] + 8.5, f"key {key}", "muted", size=SMALL, anchor="end")
    # What a lane then has is what mma takes: the columns of its B are the rows of K.
    for lane, registers in enumerate(facts()["mma"]["b"]):
        for register, held in enumerate(registers):
            key, chunk = row_of(register * 8 + lane // 4)
            wanted = [[key, 8 * chunk + lane % 4 * 2 + i] for i in range(2)]
            assert held == wanted
    x = left + 2 * width + 22
    for first, keys in ((0, "keys 0 to 7"), (2, "keys 8 to 15")):
        at = top + first * 68
        for tile in (first, first + 1):
            canvas.cell(x + (tile - first) * 62, at + 26, 56, 26, f"b[{tile}]", soft(tile))
        canvas.text(x, at + 12, f"B of {keys}:", size=SMALL)
        canvas.text(x, at + 68, f"S[{'n' if first == 0 else 'n + 1'}] += A B", "muted", size=SMALL)
    end = top + 16 * 17 + 16
    canvas.text(14, end, "Lanes 8 i to 8 i + 7 address matrix i; b[i] receives it:", size=SMALL)
    canvas.text(14, end + 18, "lane l receives two columns of row l / 4.", size=SMALL)
    return canvas


# --- banks ----------------------------------------------------------------------------------------

WORDS = 12.0  # width of a word of 4 bytes, where a line shows all 32 banks
PITCHES = ((32, "rows of 32 floats"), (36, "rows of 32 floats and a gap of 4"))


def wavefront_text(canvas: Canvas, y: float, waves: int) -> str:
    """At the right; its colour."""
    hue = "red" if waves > 1 else "green"
    text = f"{waves} wavefront{'s' * (waves > 1)}"
    canvas.text(426, y, text, hue, size=SMALL, anchor="end", bold=True)
    return hue


def bank_grid() -> Canvas:
    """Shared memory in lines of 32 words: rows without a gap, and with one."""
    canvas, y = begin(
        "A gap of four words moves a row by four banks",
        "Shared memory in lines of 32 words, a column for each bank. Above: rows of 32 floats, "
        "without a gap; the first four words of all eight rows are in banks 0 to 3, eight "
        "wavefronts. Below: rows of 32 floats with a gap of 4; the first four words of each row "
        "are four banks further on, and those of eight rows are in all 32 banks, one wavefront.",
        note="One cell: a word of 4 bytes. Filled: what lane t reads, row t.",
    )
    left = 28.0
    for pitch, name in PITCHES:
        found = facts()["banks"][f"pitch {pitch}"]
        assert found["places"] == [row * pitch * 4 for row in range(8)]
        canvas.text(14, y + 6, name, size=SMALL, bold=True)
        hue = wavefront_text(canvas, y + 6, found["of_eight_lanes"])
        for bank in range(0, 32, 4):
            at = left + (bank + 0.5) * WORDS
            canvas.text(at, y + 24, str(bank), "muted", size=SMALL, anchor="middle")
        y += 34
        for word in range(8 * pitch):
            row, column = divmod(word, pitch)
            place = left + word % 32 * WORDS, y + word // 32 * 16
            fill = "blue-soft" if row % 2 else "grey-soft"
            fill = hue if column < 4 else "none" if column >= 32 else fill
            canvas.rect(*place, WORDS, 16, fill, "line" if column >= 32 else "paper", radius=0)
        for row in range(8):
            word = row * pitch
            middle = left + (word % 32 + 2) * WORDS, y + word // 32 * 16 + 8
            canvas.text(*middle, str(row), "paper", size=SMALL, anchor="middle", bold=True)
        y += 8 * pitch // 32 * 16 + 14
    canvas.text(14, y, "Columns: the 32 banks. Empty cells: the gap.", "muted", size=SMALL)
    return canvas


# --- tiles of the TMA and of wgmma ----------------------------------------------------------------


def chunk_rows(canvas: Canvas, x: float, y: float, width: float, panel: int, rows: int) -> None:
    """A panel as the copy wrote it: at each place of 16 bytes the number of the chunk."""
    for place, (row, chunk) in enumerate(facts()["box"][panel * 128 : panel * 128 + rows * 8]):
        at = x + place % 8 * width, y + place // 8 * 18
        canvas.cell(*at, width, 18, str(chunk), soft(chunk), size=SMALL, bold=chunk % 8 == 0)
        assert row == place // 8


def tma_box() -> Canvas:
    canvas, y = begin(
        "A tile as the TMA writes it",
        "Eight rows of two panels. Every cell is 16 bytes and shows which chunk of the row is "
        "stored there: chunk c of row r is at place c XOR (r mod 8) of its panel.",
        note="One cell: 16 bytes. Number: which 8 columns of the row.",
    )
    top = y + 22
    for panel, x in ((0, 44.0), (1, 240.0)):
        columns = f"panel {panel}: columns {64 * panel} to {64 * panel + 63}"
        canvas.text(x, top - 12, columns, size=SMALL)
        chunk_rows(canvas, x, top, 23, panel, 8)
    for row in range(8):
        canvas.text(40, top + row * 18 + 9, f"row {row}", "muted", size=SMALL, anchor="end")
    canvas.text(
        14,
        top + 8 * 18 + 16,
        "Bold: the first chunk of each row, at eight different places.",
        "muted",
        size=SMALL,
    )
    canvas.text(
        14,
        top + 8 * 18 + 33,
        "So one column of eight rows uses all 32 banks.",
        "muted",
        size=SMALL,
    )
    return canvas


# First bit, last bit, name, value for K at Bc = 128 and head_dim 128.
FIELDS = (
    (0, 13, "address / 16", "start of the tile", "blue"),
    (16, 29, "panel stride / 16", "16384 / 16 = 1024", "orange"),
    (32, 45, "8-row stride / 16", "1024 / 16 = 64", "green"),
    (49, 51, "base", "0", "violet"),
    (62, 63, "swizzle", "1: 128 bytes", "red"),
)


def wgmma_tile() -> Canvas:
    canvas, y = begin(
        "A tile for wgmma: panels, atoms, descriptor",
        "K of 128 rows and 128 columns is stored as two panels with rows of 128 bytes. A panel is "
        "a stack of 16 swizzle atoms of 8 rows, 1024 bytes each. The descriptor has the start "
        "address, the distance of panels, the distance of atoms and the swizzle.",
        note="K, 128 keys x 128 columns, 32 KB of shared memory",
    )
    top = y + 24
    canvas.line([(82, top), (196, top)], "yellow", thick=1)
    canvas.line([(82, top + 10), (196, top + 8 * 18)], "yellow", thick=1)
    for panel in range(2):
        x = 14 + panel * 78
        canvas.rect(x, top, 68, 16 * 11, "paper")  # hides the lines of the atom
        canvas.text(x + 34, top - 12, f"panel {panel}", size=SMALL, anchor="middle")
        for atom in range(16):
            fill = "yellow-soft" if (panel, atom) == (0, 0) else soft(panel)
            canvas.rect(x, top + atom * 11, 68, 10, fill)
    canvas.text(14, top + 16 * 11 + 12, "16 atoms each: 16 KB", "muted", size=SMALL)
    canvas.text(196, top - 12, "an atom: 8 rows x 128 bytes", size=SMALL)
    chunk_rows(canvas, 196, top, 28.5, 0, 8)
    canvas.text(196, top + 8 * 18 + 14, "number: chunk of 8 columns", "muted", size=SMALL)
    y = top + 16 * 11 + 40
    canvas.text(14, y, "The descriptor, 64 bits (bit 0 at the right)", bold=True, size=SMALL)
    y += 16
    unit = 412 / 64
    canvas.rect(14, y, 412, 22, "grey-soft")
    for first, last, _, _, hue in FIELDS:
        canvas.rect(14 + (63 - last) * unit, y, (last - first + 1) * unit, 22, hue)
    y += 40
    for first, last, name, value, hue in FIELDS:
        canvas.rect(14, y - 7, 12, 12, hue)
        canvas.text(34, y, f"{first}-{last}", size=SMALL)
        canvas.text(84, y, name, size=SMALL, bold=True)
        canvas.text(210, y, value, size=SMALL)
        y += 19
    canvas.text(
        14, y + 4, "The next 16 columns: 32 bytes further on, descriptor + 2.", "muted", size=SMALL
    )
    return canvas


# Columns of tensor memory at head_dim 128: name, first column, number, what is in 32 bits, colour.
TENSOR_COLUMNS = (
    ("S", 0, 128, "a float", "blue"),
    ("P", 128, 64, "two halves", "orange"),
    ("O", 192, 128, "a float", "green"),
)


def tensor_memory() -> Canvas:
    canvas, y = begin(
        "Tensor memory in 80: a row is a lane",
        "A rectangle of 128 lanes and 512 columns. S takes columns 0 to 127, P 128 to 191, O 192 to "
        "319, each in all lanes. Warp w reaches lanes 32 w to 32 w + 31. Row 37 is lane 37, which "
        "thread 5 of warp 1 loads and stores: a column of S or O is a float, a column of P is two "
        "neighbouring halves.",
        note="512 columns of 32 bits, 128 lanes; head_dim 128.",
    )
    left, top, unit, height = 62.0, y + 26, 364 / 512, 32.0
    canvas.rect(left, top, 512 * unit, 4 * height, "grey-soft")
    for name, first, count, _, hue in TENSOR_COLUMNS:
        x, width = left + first * unit, count * unit
        canvas.rect(x, top, width, 4 * height, f"{hue}-soft", "paper")
        canvas.text(x, top - 10, str(first), "muted", size=SMALL)
        canvas.text(x + width / 2, top + 2.5 * height, name, hue, anchor="middle", bold=True)
    canvas.text(left + 320 * unit, top - 10, "320", "muted", size=SMALL)
    canvas.text(
        left + 416 * unit, top + 2.5 * height, "not used", "muted", size=SMALL, anchor="middle"
    )
    held = facts()["tensor_memory"]
    thread = held["thread"]
    for warp in range(4):
        shown = f"warp {warp}"
        canvas.text(left - 8, top + (warp + 0.5) * height, shown, size=SMALL, anchor="end")
        if warp:
            edge = top + warp * height
            canvas.line([(left, edge), (left + 512 * unit, edge)], "muted", dashed=True)
    line = top + (thread + 0.5) * height / 32
    canvas.line([(left, line), (left + 512 * unit, line)], "red", thick=2)
    canvas.text(left - 8, top - 10, "column", "muted", size=SMALL, anchor="end")
    y = top + 4 * height + 22
    canvas.text(
        14, y, f"Row {thread}, the red lane: thread {thread % 32} of warp 1", size=SMALL, bold=True
    )
    y += 14
    for name, _, _, what, hue in TENSOR_COLUMNS:
        cells = held["a" if name == "P" else "sums"]
        assert name == "P" or cells == [[thread, column] for column in range(16)]
        assert name != "P" or cells == [[[thread, 2 * i], [thread, 2 * i + 1]] for i in range(8)]
        canvas.text(14, y + 11, f"{name}: {what}", size=SMALL)
        for i in range(4):
            keys = [cells[i]] if name != "P" else cells[i]
            text = ", ".join(str(column) for _, column in keys)
            canvas.cell(126 + i * 62, y, 60, 22, text, f"{hue}-soft")
        canvas.text(126 + 4 * 62 + 6, y + 11, "...", "muted", size=SMALL)
        y += 28
    told = "Number: key of S and P, column of O; a cell is a column."
    canvas.text(14, y + 8, told, "muted", size=SMALL)
    return canvas


SHOWN_CHUNK = 2  # as in probe.py
STORED = (
    ("row-major", "01: chunk c at place c", lambda row, chunk: chunk),
    ("xor", "02: chunk c of row r at place c XOR (r mod 8)", lambda row, chunk: chunk ^ row % 8),
)


def swizzle() -> Canvas:
    """Which banks a phase of ldmatrix reads, without and with the XOR of 02."""
    canvas, y = begin(
        "Eight rows, one chunk of each: which banks?",
        "Two grids of eight rows and eight places of 16 bytes; a number names the chunk that is "
        "stored there. Row-major: chunk 2 of all eight rows is at place 2, in banks 8 to 11, eight "
        "wavefronts. With c XOR (r mod 8), chunk 2 of the rows 0 to 7 is at the places 2, 3, 0, 1, "
        "6, 7, 4, 5, in all 32 banks, one wavefront.",
        note=f"One cell: 16 bytes. Filled: chunk {SHOWN_CHUNK}, which 8 lanes read.",
    )
    left, width, height = 66.0, 44.0, 18.0
    for key, name, place_of in STORED:
        found = facts()["banks"][key]
        canvas.text(14, y + 6, name, size=SMALL, bold=True)
        hue = wavefront_text(canvas, y + 6, found["of_eight_lanes"])
        y += 20
        for row in range(8):
            top = y + row * height
            canvas.text(left - 8, top + 9, f"row {row}", "muted", size=SMALL, anchor="end")
            for chunk in range(8):
                place = place_of(row, chunk)
                mine = chunk == SHOWN_CHUNK
                assert not mine or found["places"][row] == row * 256 + place * 16
                fill, ink = (hue, "paper") if mine else ("grey-soft", "ink")
                x = left + place * width
                canvas.rect(x, top, width, height, fill, "paper")
                middle = x + width / 2, top + height / 2
                canvas.text(*middle, str(chunk), ink, size=SMALL, anchor="middle", bold=mine)
        y += 8 * height
        canvas.text(left - 8, y + 9, "banks", "muted", size=SMALL, anchor="end")
        for place in range(8):
            middle = left + (place + 0.5) * width, y + 9
            text = f"{4 * place}-{4 * place + 3}"
            canvas.text(*middle, text, "muted", size=SMALL, anchor="middle")
        y += 34
    canvas.grow(y - 12)
    return canvas


def accumulator_to_operand() -> Canvas:
    """C of two neighbouring products above, A of the next product below: the same lane everywhere."""
    mma = facts()["mma"]
    canvas, y = begin(
        "The accumulator is the next A operand",
        "Above: two accumulators of 16 rows and 8 keys, side by side. Below: the A operand of "
        "16 rows "
        "and 16 keys. Each lane has the same places in both.",
        note="Four rows of 16. Number: lane. Colour: register of A.",
    )
    width, height = 51.5, 20.0
    top = y + 22
    canvas.text(14, top - 12, "S: two accumulators of 8 keys, floats", size=SMALL)
    for tile in range(2):
        for lane, held in enumerate(pairs_of_accumulator(mma["c"])):
            (row, column), _ = held[0]
            if row < 4:
                draw_pair(
                    canvas, 14 + (column / 2 + 4 * tile) * width, top + row * height, lane, 2 * tile
                )
    below = top + 4 * height + 46
    canvas.line([(220, top + 4 * height + 6), (220, below - 26)], "muted", arrow=True, thick=1.5)
    canvas.text(230, top + 4 * height + 16, "packed to halves, in place", "muted", size=SMALL)
    canvas.text(14, below - 12, "P: A operand of 16 keys, halves", size=SMALL)
    for lane, held in enumerate(mma["a"]):
        for index in (0, 2):
            (row, column), _ = held[index]
            if row < 4:
                draw_pair(canvas, 14 + column / 2 * width, below + row * height, lane, index)
    canvas.text(
        14,
        below + 4 * height + 16,
        "Rows 8 to 15 are the same with a1 and a3.",
        "muted",
        size=SMALL,
    )
    return canvas


def draw_pair(canvas: Canvas, x: float, y: float, lane: int, register: int) -> None:
    canvas.rect(x, y, 51.5, 20, f"{HUES[register]}-soft", "paper")
    canvas.text(x + 25.7, y + 10, str(lane), size=SMALL, anchor="middle")


FIGURES = {
    "fragments": fragments,
    "ldmatrix": loads,
    "ldmatrix_order": order_of_tiles,
    "bank_grid": bank_grid,
    "swizzle": swizzle,
    "tma_box": tma_box,
    "wgmma_tile": wgmma_tile,
    "tensor_memory": tensor_memory,
    "accumulator": accumulator_to_operand,
}
