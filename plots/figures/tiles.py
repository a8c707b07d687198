# SPDX-License-Identifier: MIT
"""Tiles: which are computed, in which order and by whom; edges; reuse of fragments."""

from __future__ import annotations

from collections.abc import Sequence

from canvas import HUES, SMALL, Canvas, begin
from memory_figures import counted_results

# --- causal tiles and edges -----------------------------------------------------------------------


def causal_tiles() -> Canvas:
    """Key blocks of 64 against query tiles of 128, by the two numbers of 08."""
    canvas, y = begin(
        "08: blocks that are visited, masked, skipped",
        "Four query tiles of 128 rows against eight key blocks of 64. Tile t visits 2 (t + 1) "
        "blocks "
        "and compares scores in the last two only.",
        note="512 queries, 512 keys; one cell: 128 x 64 scores.",
    )
    rows, keys, count = 128, 64, 512
    top = y + 6
    visited = masked = 0
    for tile in range(count // rows):
        first, last = tile * rows, tile * rows + rows - 1
        canvas.text(14, top + tile * 42 + 20, f"tile {tile}", size=SMALL)
        for block in range(count // keys):
            low, high = block * keys, block * keys + keys - 1
            kind = "none" if low > last else "green-soft" if high <= first else "yellow-soft"
            visited += kind != "none"
            masked += kind == "yellow-soft"
            x = 66 + block * 45
            canvas.rect(x, top + tile * 42, 45, 42, kind, "line")
            if kind == "yellow-soft":
                draw_diagonal(canvas, x, top + tile * 42, first - low, rows, keys)
    y = top + 4 * 42 + 16
    total = (count // rows) * (count // keys)
    for hue, text in (
        ("green-soft", f"{visited - masked} without a mask"),
        ("yellow-soft", f"{masked} masked"),
        ("none", f"{total - visited} skipped"),
    ):
        x = 14 + {"green-soft": 0, "yellow-soft": 160, "none": 270}[hue]
        canvas.rect(x, y - 7, 14, 14, hue, "line")
        canvas.text(x + 20, y, text, size=SMALL)
    return canvas


def draw_diagonal(canvas: Canvas, x: float, y: float, ahead: int, rows: int, keys: int) -> None:
    """The line key = query within a cell whose first query is `ahead` of its first key."""
    points = []
    for query in (0, rows):
        key = min(max(query + ahead, 0), keys)
        points.append((x + key / keys * 45, y + min(max(key - ahead, 0), rows) / rows * 42))
    canvas.line(points, "red", thick=1.6)


def ragged() -> Canvas:
    canvas, y = begin(
        "09: the last key block, 40 of 64 keys exist",
        "Rows 0 to 39 are loaded, rows 40 to 63 are filled with zeros, and their scores are "
        "masked. Query rows beyond the end are not stored.",
        note="One row: 8 keys.",
    )
    for column, (name, good, bad) in enumerate(
        (
            ("loads", "16 bytes", "0 bytes: zeros"),
            ("scores", "computed", "-infinity"),
            ("P", "2^(s - m)", "0"),
        )
    ):
        x = 62 + column * 124
        canvas.text(x + 58, y + 6, name, size=SMALL, anchor="middle", bold=True)
        for row in range(8):
            exists = row < 5
            canvas.rect(
                x, y + 20 + row * 22, 116, 22, "green-soft" if exists else "red-soft", "paper"
            )
        canvas.text(x + 58, y + 20 + 2.5 * 22, good, size=SMALL, anchor="middle")
        canvas.text(x + 58, y + 20 + 6.5 * 22, bad, size=SMALL, anchor="middle")
    for row in (0, 5):
        canvas.text(54, y + 31 + row * 22, str(row * 8), "muted", size=SMALL, anchor="end")
    canvas.text(
        14,
        y + 20 + 8 * 22 + 14,
        "Zeros in V matter: 0 times a stale NaN would be NaN.",
        "muted",
        size=SMALL,
    )
    return canvas


# --- reuse ----------------------------------------------------------------------------------------


def loads_for(rung: str, tile: str) -> float:
    """ldmatrix for 256 mma, by the machine's counts."""
    (row,) = (
        row.data
        for row in counted_results().rows
        if row.id == rung and row.variant == tile and row.problem.head_dim == 128
    )
    return float(256 * row["counts"]["ldmatrix"] / row["counts"]["tensor"])


def reuse() -> Canvas:
    canvas, y = begin(
        "06: one fragment, two row tiles",
        "05: a fragment of K feeds the products of one tile of 16 rows. 06: it feeds two tiles.",
        note="One warp; B is a fragment of K or V.",
    )
    for rung, count, tile in (("05", 1, "64x128w4"), ("06", 2, "128x64w4")):
        canvas.text(14, y + 30, rung, bold=True)
        canvas.cell(44, y + 12, 80, 36, "ldmatrix: B", "green-soft")
        for index in range(count):
            top = y + index * 34 + (14 if count == 1 else -2)
            canvas.line([(126, y + 30), (160, top + 15)], "green", thick=1.5, arrow=True)
            canvas.cell(
                162,
                top,
                130,
                30,
                f"rows {16 * index}-{16 * index + 15}: 2 mma",
                f"{HUES[index]}-soft",
            )
        canvas.text(304, y + 22, f"{loads_for(rung, tile):.0f} ldmatrix", size=SMALL, bold=True)
        canvas.text(304, y + 40, "for 256 mma", "muted", size=SMALL)
        y += 80
    return canvas


def pairs() -> Canvas:
    canvas, y = begin(
        "04: one load, two V fragments",
        "ldmatrix.x4.trans: lanes 0 to 15 point at 16 keys of one chunk, lanes 16 to 31 "
        "at the same keys of the next. Four registers: two fragments.",
        note="V: 16 keys down, two chunks of 8 columns across.",
    )
    for half in range(2):
        for tile in range(2):
            x, top = 14 + half * 92, y + 6 + tile * 64
            hue = f"{HUES[half]}-soft"
            first = half * 16 + tile * 8
            canvas.rect(x, top, 88, 60, hue, "paper")
            canvas.text(x + 44, top + 20, f"lanes {first}-{first + 7}", size=SMALL, anchor="middle")
            canvas.text(
                x + 44,
                top + 40,
                f"keys {tile * 8}-{tile * 8 + 7}",
                "muted",
                size=SMALL,
                anchor="middle",
            )
    canvas.line([(200, y + 66), (232, y + 66)], "muted", thick=1.6, arrow=True)
    for half in range(2):
        top = y + 14 + half * 62
        for register in range(2):
            canvas.cell(
                238 + register * 40, top, 38, 30, f"b{half * 2 + register}", f"{HUES[half]}-soft"
            )
        canvas.text(324, top + 15, "O[n]" if half == 0 else "O[n + 1]", size=SMALL, bold=True)
    canvas.text(
        14,
        y + 150,
        "03 needs two ldmatrix.x2.trans for the same four registers.",
        "muted",
        size=SMALL,
    )
    return canvas


def register_tile() -> Canvas:
    rows = 8
    canvas, y = begin(
        "a6: 256 multiply-adds for 16 loads",
        "A thread of a4: 8 rows of Q and 1 key of K, 32 multiply-adds for 9 loads. A thread of a6: 8 rows "
        "and 8 keys, 256 multiply-adds for 16 loads.",
        note="One thread, four columns of d at a time.",
    )
    cell, top = 20.0, y + 44
    for left, name, keys in ((80.0, "a4", 1), (196.0, "a6", 8)):
        canvas.text(
            left, y + 6, f"{name}: {keys} key{'s' if keys > 1 else ''}", size=SMALL, bold=True
        )
        for key in range(keys):
            canvas.cell(left + key * cell, top - 14, cell, 14, "", "green-soft")
        for row in range(rows):
            canvas.cell(left - 16, top + row * cell, 14, cell, "", "blue-soft")
            for key in range(keys):
                x = left + key * cell
                canvas.rect(x, top + row * cell, cell, cell, "violet-soft", "paper")
        told = [f"{rows + keys} loads", "of float4,", f"{4 * rows * keys} FMA"]
        canvas.lines(left + keys * cell + 8, top + 2.6 * cell, told, size=SMALL)
    canvas.lines(14, top + 3.2 * cell, ["8 rows", "of Q"], size=SMALL)
    canvas.text(
        14, top + rows * cell + 16, "Green: a load of K. Blue: a load of Q.", "muted", size=SMALL
    )
    return canvas


def transposed_k() -> Canvas:
    canvas, y = begin(
        "a5: the same column of K, two layouts",
        "Left: K row by row; eight lanes read one chunk of eight rows, all in banks 0 to 3. "
        "Right: K transposed; 32 lanes read 32 neighbouring floats, all banks.",
        note="One cell: 4 banks. Filled: what one load touches.",
    )
    for x, name, touched in (
        (14.0, "K tile, [32][d]: 8 lanes", lambda r, c: c == 0),
        (232.0, "K\u1d40 tile, [d][32]: 32 lanes", lambda r, c: r == 0),
    ):
        hue = "red" if x < 100 else "green"
        canvas.text(x, y + 6, name, size=SMALL, bold=True)
        for row in range(8):
            for column in range(8):
                on = touched(row, column)
                canvas.rect(
                    x + column * 24, y + 20 + row * 20, 24, 20, hue if on else "grey-soft", "paper"
                )
        canvas.text(
            x,
            y + 196,
            "8 wavefronts: 16 B per lane" if x < 100 else "1 wavefront: 4 B per lane",
            hue,
            size=SMALL,
        )
    return canvas


# --- order of tiles -------------------------------------------------------------------------------

BLOCKS, HEADS, ROW_TILES, GROUP = 6, 4, 8, 2


def longest_first(t: int) -> tuple[int, int]:
    return t // ROW_TILES, ROW_TILES - t % ROW_TILES


def fixed(turned: bool) -> list[list[tuple[int, int]]]:
    """Tiles handed out in rounds, as in 30; turned: every second round from the other end."""
    tiles = HEADS * ROW_TILES

    def tile(t: int) -> int:
        first = t // BLOCKS * BLOCKS
        return first + min(first + BLOCKS, tiles) - 1 - t if turned and t // BLOCKS % 2 else t

    return [[longest_first(tile(t)) for t in range(b, tiles, BLOCKS)] for b in range(BLOCKS)]


def counted(group: int) -> list[list[tuple[int, int]]]:
    """A counter: the free thread block computes the next tile. The tiles of the last `group` heads
    are ordered by length across these heads."""
    tiles = [longest_first(t) for t in range((HEADS - group) * ROW_TILES)]
    last = range(group * ROW_TILES)
    tiles += [(HEADS - group + t % group, ROW_TILES - t // group) for t in last]
    shares: list[list[tuple[int, int]]] = [[] for _ in range(BLOCKS)]
    for tile in tiles:
        min(shares, key=lambda share: sum(length for _, length in share)).append(tile)
    return shares


def draw_order(
    canvas: Canvas, y: float, name: str, shares: Sequence[Sequence[tuple[int, int]]]
) -> float:
    unit, left = 12.0, 62.0
    ends = [sum(length for _, length in share) for share in shares]
    canvas.text(14, y + 6, name, size=SMALL, bold=True)
    y += 18
    for block, share in enumerate(shares):
        canvas.text(54, y + 8, f"SM {block}", "muted", size=SMALL, anchor="end")
        x = left
        for head, length in share:
            canvas.cell(x, y, length * unit, 17, str(length), f"{HUES[head]}-soft", size=SMALL)
            x += length * unit
        y += 18
    canvas.line(
        [(left + max(ends) * unit, y - 18 * len(shares)), (left + max(ends) * unit, y)],
        "red",
        thick=1.8,
    )
    canvas.text(
        left,
        y + 9,
        f"all done after {max(ends)} iterations; evenly: {sum(ends) / len(ends):g}",
        "red",
        size=SMALL,
    )
    return y + 30


def orders(
    title: str, description: str, shown: Sequence[tuple[str, list[list[tuple[int, int]]]]]
) -> Canvas:
    canvas, y = begin(
        title,
        description,
        note=f"Number: iterations of a tile. Colour: head. {HEADS} heads, {ROW_TILES} row tiles.",
    )
    for name, shares in shown:
        y = draw_order(canvas, y, name, shares)
    return canvas


def back_and_forth() -> Canvas:
    return orders(
        "30: causal tiles, longest first, back and forth",
        "Six SMs and 32 tiles of one to eight iterations. When every round begins at SM 0, all are "
        "done after 30 iterations; when every second round begins at SM 5, after 27.",
        (
            ("every round from SM 0 to SM 5", fixed(False)),
            ("every second round from SM 5 to SM 0", fixed(True)),
        ),
    )


def dynamic() -> Canvas:
    return orders(
        "32: a counter hands out the tiles",
        "The same 32 tiles. With a counter each free SM computes the next tile, and all are done "
        "after 25 iterations. When the tiles of the last two heads are ordered longest first, the "
        "last tiles are short: 24 iterations, the even share.",
        (
            ("a counter, one head after the other", counted(1)),
            ("the last two heads, longest tiles first", counted(GROUP)),
        ),
    )


def cluster() -> Canvas:
    canvas, y = begin(
        "34: one copy for both thread blocks",
        "Two thread blocks, each with a ring of five slots. Block 0 loads the even slots and block 1 "
        "the odd ones, each in both rings. Four consumers, two in each block, empty a slot. The "
        "query rows belong to the blocks in turn, 64 rows at a time.",
        note="A cluster. Colour: the block that loads or computes.",
    )
    hues = ("orange", "blue")
    canvas.cell(14, y, 412, 26, "L2: K and V of a head, each tile read once", "grey-soft")
    y += 70
    for block, hue in enumerate(hues):
        left = 14 + block * 222
        canvas.rect(left, y, 190, 84, "none", hue, radius=4, thick=1.6)
        for slot in range(5):
            text = "KV"[slot % 2] + str(slot // 2)
            canvas.cell(left + 8 + slot * 35, y + 9, 35, 26, text, f"{hues[slot % 2]}-soft")
        canvas.text(left + 8, y + 50, f"block {block}: its ring", size=SMALL, bold=True)
        canvas.text(left + 8, y + 68, "empty after 4 arrivals", "muted", size=SMALL)
        for other in range(2):
            end = 22 + other * 222 + 17.5 + block * 35
            canvas.line([(180 + block * 80, y - 44), (end, y + 7)], hue, thick=1.8, arrow=True)
    canvas.text(20, y - 35, "copies of block 0", "orange", size=SMALL)
    canvas.text(420, y - 35, "copies of block 1", "blue", size=SMALL, anchor="end")
    y += 104
    canvas.text(14, y, "the tile: 256 query rows", size=SMALL, bold=True)
    for strip in range(4):
        hue = hues[strip % 2]
        top = y + 12 + strip * 26
        canvas.cell(14, top, 190, 26, f"rows {strip * 64} to {strip * 64 + 63}", f"{hue}-soft")
        canvas.text(214, top + 13, f"block {strip % 2}, consumer {strip // 2}", hue, size=SMALL)
    return canvas


# --- the end of a tensor --------------------------------------------------------------------------

LENGTH, TILE = 200, 128


def zero_fill() -> Canvas:
    """What a length that is no multiple of the tile needs in 31."""
    canvas, y = begin(
        "31: the last tile, 72 of 128 rows exist",
        "200 keys in boxes of 128. The second box covers 72 keys; the TMA fills the other 56 rows "
        "of the tile with zeros. The first key block needs no mask. In the second the scores of "
        "the 56 rows become minus infinity and P becomes 0. Of a tile of queries 72 rows are "
        "stored and 56 are not.",
        note=f"{LENGTH} keys, {LENGTH} queries; a box of the TMA: {TILE} rows of one head.",
    )
    left, unit = 100.0, 326.0 / (2 * TILE)
    parts = ((0, TILE), (TILE, LENGTH), (LENGTH, 2 * TILE))
    rows: tuple[tuple[str, tuple[str, str, str], float], ...] = (
        ("K of a head", ("keys 0-127", f"128-{LENGTH - 1}", ""), 14),
        ("its tiles", ("128 rows", "72 rows", "56: zeros"), 6),
        ("scores", ("no mask", "masked", "-infinity"), 6),
        ("P", ("2^(s - m)", "2^(s - m)", "0"), 22),
        ("rows of O", ("128 rows stored", "72 stored", "not stored"), 12),
    )
    for name, texts, gap in rows:
        canvas.text(14, y + 14, name, size=SMALL, bold=True)
        for (begins, ends), text, fill in zip(
            parts, texts, ("green-soft", "yellow-soft", "red-soft"), strict=True
        ):
            x, width = left + begins * unit, (ends - begins) * unit
            if not text:
                canvas.rect(x, y, width, 28, "none", "line", dashed=True)
            else:
                canvas.cell(x, y, width, 28, text, fill, size=SMALL)
        if name == "K of a head":
            for box in range(2):
                x = left + box * TILE * unit
                canvas.rect(x + 1, y - 3, TILE * unit - 2, 34, "none", "blue", thick=1.6)
        y += 28 + gap
    told = (
        "Blue: two boxes. The length of a head is in the tensor map:",
        "beyond it the TMA writes zeros, not keys of the next head.",
        "Zeros in V matter: P is 0 there, and 0 times NaN would be NaN.",
    )
    canvas.lines(14, y + 6, told, "muted", size=SMALL)
    return canvas


FIGURES = {
    "causal_tiles": causal_tiles,
    "ragged": ragged,
    "reuse": reuse,
    "pairs": pairs,
    "register_tile": register_tile,
    "transposed_k": transposed_k,
    "back_and_forth": back_and_forth,
    "dynamic": dynamic,
    "cluster": cluster,
    "zero_fill": zero_fill,
}
