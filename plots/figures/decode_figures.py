# SPDX-License-Identifier: MIT
"""New queries against a cache: who reads what, how the keys are divided, and what is in flight.

Plans and counted bytes are in decode.json (see decode.py); tiles and the depth of rings are those
that the machine counted (counts_decode.json). Shares are computed as the kernels do.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import decode
from canvas import HUES, SMALL, Canvas, begin
from ladder import Results, Row, read_json
from layouts import SHOWN_LANE, facts, pairs_of_accumulator
from memory_figures import RESULTS, card

KB = 1024
DIM = 128


@functools.cache
def decode_facts() -> dict[str, Any]:
    return read_json(decode.FACTS, "what decode.py writes", dict)


@functools.cache
def counted() -> dict[str, Row]:
    return {row.id: row for row in Results.load(RESULTS / "vm" / "counts_decode.json").rows}


def counts(rung: str) -> dict[str, int]:
    return dict(counted()[rung].data["counts"])


def tile_of(rung: str) -> tuple[int, int, int]:
    """Its rows of Q, its keys and the warps that compute it."""
    rows, keys, warps = re.split("[xw]", counted()[rung].variant)
    return int(rows), int(keys), int(warps)


def tile_keys(rung: str) -> int:
    return tile_of(rung)[1]


def tiles_of(rung: str) -> int:
    """How many tiles of K and V the machine has counted."""
    problem = counted()[rung].problem
    return problem.batch * problem.kv_heads * problem.seq_kv // tile_keys(rung)


def stages(rung: str) -> int:
    """Of its ring. A warp commits the copies of all stages but one before its first tile; for each
    tile it commits those of another and waits once. Each block that was counted has one tile."""
    found, (launch,) = counts(rung), decode_facts()["plans"][rung]
    assert found["global_atomic_requests"] == tiles_of(rung)
    return found["cp_async_group"] * 32 // (tiles_of(rung) * launch["block"]) - 2 + 1


# --- 40, 41: who reads what -----------------------------------------------------------------------


def lanes() -> Canvas:
    found = counts("40")
    lanes_of_row = round(32 * DIM * 2 * found["global_load_requests"] / found["global_load_bytes"])
    canvas, y = begin(
        "40: one load instruction reads two rows",
        "Two rows of K, 256 bytes each, as 16 cells of 16 bytes. Lanes 0 to 15 load key j, lanes "
        "16 to 31 key j + 1; a lane has the same 8 columns of every row. Below, the dot product: "
        "8 multiply-adds in each lane, then 4 shuffles over the 16 lanes of a key.",
        note="One cell: 16 bytes, 8 columns. Number: the lane that loads it.",
    )
    left, width = 74.0, 22.0
    for row in range(32 // lanes_of_row):
        name = "key j" if row == 0 else f"key j + {row}"
        canvas.text(left - 6, y + 12, name, size=SMALL, anchor="end")
        for column in range(lanes_of_row):
            lane = row * lanes_of_row + column
            fill = "blue" if column == 3 else f"{HUES[row]}-soft"
            ink = "paper" if column == 3 else "ink"
            canvas.rect(left + column * width, y, width, 24, fill, "paper")
            middle = left + (column + 0.5) * width
            canvas.text(middle, y + 12, str(lane), ink, size=SMALL, anchor="middle")
        y += 26
    canvas.text(left, y + 8, "columns 0-7", "muted", size=SMALL)
    middle = left + 3.5 * width
    canvas.text(middle + 30, y + 8, "24-31", "blue", size=SMALL, anchor="middle")
    canvas.text(left + 16 * width, y + 8, "120-127", "muted", size=SMALL, anchor="end")
    y += 34
    canvas.text(14, y, "The score of key j, in the lanes of its row", size=SMALL, bold=True)
    y += 14
    shuffles = int(math.log2(lanes_of_row))
    canvas.cell(14, y, 96, 30, "8 FMA per lane", "green-soft", size=SMALL)
    for shuffle in range(shuffles):
        x = 126 + shuffle * 76
        canvas.line([(x - 16, y + 15), (x - 1, y + 15)], "muted", thick=1.4, arrow=True)
        distance = lanes_of_row >> (shuffle + 1)
        canvas.cell(x, y, 60, 30, f"xor {distance}", "orange-soft", size=SMALL)
    y += 46
    told = (
        f"{shuffles} shuffles. Each adds the sum of another lane; then all",
        f"{lanes_of_row} lanes of a key have its whole score.",
        "P V needs no shuffle: a lane multiplies its 8 columns of V.",
    )
    canvas.lines(14, y, told, "muted", size=SMALL)
    return canvas


def reads() -> Canvas:
    found = decode_facts()["reads"]
    each, once = found["40"]["global_load_bytes"], found["41"]["global_copy_bytes"]
    q_rows, kv_bytes = 8, 2 * 2 * 1024 * DIM * 2
    assert once == kv_bytes
    # 40 also loads Q, in every lane: 16 bytes.
    times = (each - q_rows * 32 * 16) / kv_bytes
    assert times == 4
    canvas, y = begin(
        "41: a group reads K and V once",
        "40: four warps, one for each query head of a group, each read the same K and V from L2 or "
        "device memory, 4 MB in all. 41: the thread block copies a tile to shared memory once, 1 "
        "MB in all, and the four warps read it there.",
        note="Four query heads share a head of K and V.",
    )
    for x, rung in ((14.0, "40"), (234.0, "41")):
        canvas.text(x, y + 6, rung, bold=True)
        canvas.rect(x, y + 20, 192, 30, "orange-soft")
        canvas.text(x + 96, y + 35, "L2 or device memory", size=SMALL, anchor="middle")
        if rung == "41":
            canvas.line([(x + 96, y + 50), (x + 96, y + 78)], "orange", thick=4, arrow=True)
            canvas.rect(x, y + 80, 192, 30, "green-soft")
            canvas.text(x + 96, y + 95, "tile in shared memory", size=SMALL, anchor="middle")
        for head in range(4):
            at = x + head * 49
            top = y + 50 if rung == "40" else y + 110
            hue = "orange" if rung == "40" else "green"
            thick = 4 if rung == "40" else 1.5
            canvas.line([(at + 22, top), (at + 22, y + 138)], hue, thick=thick, arrow=True)
            canvas.cell(at, y + 140, 45, 40, "", "blue-soft")
            canvas.text(at + 22, y + 153, "warp", size=SMALL, anchor="middle")
            canvas.text(at + 22, y + 168, f"head {head}", size=SMALL, anchor="middle")
    y += 204
    canvas.text(
        14, y, "Counted by the machine: 2 heads of K and V, 1024 keys", size=SMALL, bold=True
    )
    y += 14
    for rung, size, hue in (("40", times * kv_bytes, "orange"), ("41", once, "green")):
        canvas.text(14, y + 9, rung, size=SMALL, bold=True)
        length = 290 * size / (times * kv_bytes)
        canvas.rect(44, y, length, 18, hue)
        canvas.text(50 + length, y + 9, f"{size / 2**20:.0f} MB", size=SMALL)
        y += 24
    return canvas


# --- 42: the keys of a head over thread blocks ----------------------------------------------------


def atomic_inc(value: int, limit: int) -> int:
    """The counter after atomicInc, which returns the value before."""
    return 0 if value >= limit else value + 1


def last() -> Canvas:
    splits, order = 3, (1, 0, 2)  # which block ends first is not determined
    canvas, y = begin(
        "42: the block that counts last merges",
        "Three thread blocks of one head. Each computes its tiles, writes its split and increments "
        "the counter, in any order. The block whose increment returns 2, the number of splits "
        "less one, merges all splits; the same increment sets the counter back to 0.",
        note="Time runs to the right. Order only, not to scale.",
    )
    left, unit = 72.0, 44.0
    ends = {block: 2.6 + 1.3 * place for place, block in enumerate(order)}
    counter, counts = 0, []
    for place, block in enumerate(order):
        at = y + block * 40
        end = ends[block]
        canvas.text(14, at + 14, f"block {block}", size=SMALL, bold=True)
        canvas.cell(left, at, (end - 1) * unit, 28, "tiles", "blue-soft")
        canvas.cell(left + (end - 1) * unit, at, unit, 28, "split", "orange-soft")
        after = atomic_inc(counter, splits - 1)
        x = left + end * unit + 12
        canvas.circle(x, at + 14, 9, "red")
        canvas.text(x, at + 14, str(counter), "paper", size=SMALL, anchor="middle", bold=True)
        if counter == splits - 1:
            canvas.rect(x + 12, at, 64, 28, "green")
            canvas.text(x + 44, at + 14, "merge", "paper", size=SMALL, anchor="middle")
        else:
            canvas.text(x + 14, at + 14, "ends", "muted", size=SMALL)
        counts.append((x, counter, after))
        counter = after
        assert (counter == 0) == (place == splits - 1)
    y += splits * 40 + 12
    canvas.text(14, y + 9, "counter", size=SMALL, bold=True)
    begins = left
    for x, before, _ in counts:
        canvas.cell(begins, y, x - begins, 20, str(before), "grey-soft")
        begins = x
    canvas.cell(begins, y, 426 - begins, 20, str(counter), "red-soft")
    for x, _, _ in counts:
        canvas.line([(x, y - 10), (x, y)], "red", thick=1.4, arrow=True)
    told = (
        "In the circle: what atomicInc returns, the value before.",
        f"The block that gets {splits - 1} is the last: all {splits} splits are written. The",
        "counter is 0 again, as the next launch requires.",
    )
    canvas.lines(14, y + 40, told, "muted", size=SMALL)
    return canvas


# --- 43: bytes in flight --------------------------------------------------------------------------

LATENCY_S = 1e-6  # of a load at the full rate: the chapter's assumption


def ring() -> Canvas:
    depth, iterations = stages("43"), 7
    canvas, y = begin(
        "43: three tiles in flight, one computed",
        "Four stages over seven iterations. In each iteration one stage is computed, three tiles "
        "are in flight, and the load of the tile three iterations ahead starts in the stage that "
        "the previous iteration has freed. Below, bytes in flight per SM: Little's law requires 34 "
        "KB; 42 has 128 KB, less 32 KB for each block that computes; 43 has 144 KB.",
        note="Number: the tile in the stage. Time runs to the right.",
    )
    left, width = 72.0, 50.5
    canvas.text(14, y + 4, "iteration", "muted", size=SMALL)
    for now in range(iterations):
        canvas.text(
            left + (now + 0.5) * width, y + 4, str(now), "muted", size=SMALL, anchor="middle"
        )
    y += 14
    for stage in range(depth):
        canvas.text(14, y + 13, f"stage {stage}", size=SMALL)
        for now in range(iterations):
            # The tiles now to now + depth - 1 are in the ring; the first is computed.
            tile = next(t for t in range(now, now + depth) if t % depth == stage)
            if tile == now:
                fill, ink = "green", "paper"
            else:
                starts = tile == now + depth - 1
                fill, ink = ("blue", "paper") if starts else ("blue-soft", "ink")
            canvas.rect(left + now * width, y, width, 26, fill, "paper")
            middle = left + (now + 0.5) * width
            canvas.text(middle, y + 13, str(tile), ink, size=SMALL, anchor="middle")
        y += 28
    y += 12
    for x, fill, text in (
        (72, "green", "computed"),
        (172, "blue", "its load starts"),
        (306, "blue-soft", "in flight"),
    ):
        canvas.rect(x, y - 7, 14, 14, fill, "line")
        canvas.text(x + 20, y, text, size=SMALL)
    return in_flight(canvas, y + 30)


def in_flight(canvas: Canvas, y: float) -> Canvas:
    plans, sms = decode_facts()["plans"], card().document["device"]["sms"]
    needed = card().traffic("memory_read") * 1e9 * LATENCY_S / sms / KB
    found = {}
    for rung in ("42", "43"):
        (launch,) = plans[rung]
        on_sm = round(math.prod(launch["grid"]) / sms)
        found[rung] = on_sm, launch["dynamic_shared"] / KB
    depth = stages("43")
    canvas.text(14, y, "Bytes in flight per SM", size=SMALL, bold=True)
    y += 16
    blocks, bytes_of = found["42"]
    rows = [
        ("needed", needed, "orange", f"{needed:.0f} KB: bandwidth x 1 \u00b5s"),
        (
            "42",
            blocks * bytes_of,
            "none",
            f"0 to {blocks * bytes_of:.0f} KB; a block that computes has none",
        ),
    ]
    blocks, bytes_of = found["43"]
    always = blocks * bytes_of * (depth - 1) / depth
    rows.append(("43", always, "blue", f"{always:.0f} KB: {blocks} blocks x {depth - 1} tiles"))
    most = max(value for _, value, _, _ in rows)
    for name, value, fill, text in rows:
        canvas.text(14, y + 9, name, size=SMALL, bold=True)
        length = 350 * value / most
        if fill == "none":
            canvas.rect(72, y, length, 18, "none", "blue", dashed=True)
        else:
            canvas.rect(72, y, length, 18, fill)
        canvas.text(72, y + 28, text, "muted", size=SMALL)
        y += 44
    return canvas


# --- 44 and 45: swapped operands ------------------------------------------------------------------


def grid_of_product(
    canvas: Canvas, x: float, y: float, rows: int, columns: int, filled: tuple[int, int], hue: str
) -> None:
    size = 10.0
    for row in range(rows):
        for column in range(columns):
            used = row < filled[0] and column < filled[1]
            at = x + column * size, y + row * size
            canvas.rect(*at, size, size, hue if used else "grey-soft", "paper", radius=0)


def operands() -> Canvas:
    canvas, y = begin(
        "44: keys as the rows of an mma",
        "Scores of 16 keys for a group of four and of eight query heads. With queries as rows, two "
        "products of 16 rows and 8 keys are filled to a quarter and a half. With keys as rows, one "
        "product of 16 keys and 8 heads is filled to a half and completely.",
        note="S of 16 keys, as mma.m16n8k16 computes it. Filled: query heads.",
    )
    for group in (4, 8):
        canvas.text(14, y + 6, f"a group of {group} query heads", size=SMALL, bold=True)
        top = y + 34
        canvas.text(104, top - 10, "keys", "muted", size=SMALL)
        canvas.text(62, top + 80, "queries", "muted", size=SMALL, anchor="end")
        for tile in range(2):
            grid_of_product(canvas, 70 + tile * 86, top, 16, 8, (group, 8), "orange")
        canvas.text(330, top - 10, "heads", "muted", size=SMALL)
        canvas.text(300, top + 80, "keys", "muted", size=SMALL, anchor="end")
        grid_of_product(canvas, 308, top, 16, 8, (16, group), "green")
        y = top + 160 + 14
        canvas.text(70, y, f"2 mma, filled to {100 * group / 16:.0f} %", "orange", size=SMALL)
        canvas.text(290, y, f"1 mma, filled to {100 * group / 8:.0f} %", "green", size=SMALL)
        y += 26
    return canvas


def lanes_of(pairs: Sequence[Any], register: int, swapped: bool) -> dict[tuple[int, int], int]:
    """(key, head) -> lane, of the elements that the lanes hold in one register."""
    found = {}
    for lane, held in enumerate(pairs):
        for first, second in held[register]:
            found[(second, first) if swapped else (first, second)] = lane
    return found


def transposed() -> Canvas:
    mma = facts()["mma"]
    scores = lanes_of(pairs_of_accumulator(mma["c"]), 0, swapped=False)  # rows: keys
    weights = lanes_of(mma["b"], 0, swapped=True)  # rows of B as stored: heads
    tile = [(key, head) for key in range(8) for head in range(8)]
    # movmatrix transposes: the lane of (key, head) gets what another lane had as (head, key).
    assert all(scores[key, head] == weights[head, key] for key, head in tile)
    canvas, y = begin(
        "45: P as a result, P as an operand",
        "An 8 by 8 tile of keys and heads with the lane that holds each element. As the result of "
        "K Q transposed, lane 5 has key 1 of heads 2 and 3. As an operand of V transposed P, lane "
        "5 needs keys 2 and 3 of head 1. movmatrix transposes the tile in registers.",
        note="8 keys down, 8 heads across. Number: lane. Lane 5 filled.",
    )
    top, size = y + 26, 23.0
    for x, held, name in (
        (14.0, scores, "result of K Q\u1d40"),
        (242.0, weights, "operand P\u1d40"),
    ):
        canvas.text(x, top - 14, name, size=SMALL, bold=True)
        for key, head in tile:
            lane = held[key, head]
            mine = lane == SHOWN_LANE
            fill = "blue" if mine else "blue-soft" if lane % 2 else "grey-soft"
            canvas.rect(x + head * size, top + key * 18, size, 18, fill, "paper")
            canvas.text(
                x + (head + 0.5) * size,
                top + key * 18 + 9,
                str(lane),
                "paper" if mine else "ink",
                size=SMALL,
                anchor="middle",
            )
    canvas.line([(203, top + 72), (236, top + 72)], "muted", thick=1.6, arrow=True)
    canvas.text(
        220,
        top + 8 * 18 + 14,
        "movmatrix.trans, twice for 16 keys",
        "muted",
        size=SMALL,
        anchor="middle",
    )
    return canvas


# --- 46: an even share ----------------------------------------------------------------------------

HEAD_TILES, BLOCKS = (9, 2, 5, 1), 6


def even_shares() -> list[range]:
    tiles = sum(HEAD_TILES)
    return [range(tiles * i // BLOCKS, tiles * (i + 1) // BLOCKS) for i in range(BLOCKS)]


def blocks_of(begins: int, ends: int, tiles: int) -> range:
    """The blocks that a head's first and last tile belong to, as the kernel finds them."""
    first, final = ((begins + 1) * BLOCKS - 1) // tiles, (ends * BLOCKS - 1) // tiles
    found = [i for i, share in enumerate(even_shares()) if set(share) & set(range(begins, ends))]
    assert found == list(range(first, final + 1))
    return range(first, final + 1)


def draw_blocks(
    canvas: Canvas, y: float, name: str, shown: Sequence[Sequence[int]], unit: float
) -> float:
    """Rows of tiles, each with its head; shown: block -> head of each of its tiles."""
    if name:
        canvas.text(14, y + 6, name, size=SMALL, bold=True)
        y += 18
    top, left = y, 72.0
    for block, heads in enumerate(shown):
        canvas.text(14, y + 8, f"block {block}", "muted", size=SMALL)
        if not heads:
            canvas.text(left, y + 8, "no work", "muted", size=SMALL)
        for place, head in enumerate(heads):
            canvas.cell(
                left + place * unit, y, unit, 17, str(head), f"{HUES[head]}-soft", size=SMALL
            )
        y += 18
    longest = max(map(len, shown))
    x = left + longest * unit
    canvas.line([(x, top), (x, y)], "red", thick=1.8)
    canvas.text(left, y + 9, f"all done after {longest} tiles", "red", size=SMALL)
    return y + 30


def even() -> Canvas:
    tiles = sum(HEAD_TILES)
    head_of = [head for head, count in enumerate(HEAD_TILES) for _ in range(count)]
    canvas, y = begin(
        "46: the same number of tiles for every block",
        "Four heads of 9, 2, 5 and 1 tiles, six thread blocks. 45 has a thread block for each head: one "
        "computes 9 tiles, and two have no work. 46 divides the 17 tiles evenly: 3 tiles at most. "
        "Head 0 is split over blocks 0 to 3.",
        note="Number and colour: the head of a tile. 6 thread blocks.",
    )
    whole_heads = [[head] * count for head, count in enumerate(HEAD_TILES)]
    whole_heads += [[]] * (BLOCKS - len(HEAD_TILES))
    y = draw_blocks(canvas, y, "45: a thread block for each head", whole_heads, 28)
    canvas.text(14, y + 6, f"46: all {tiles} tiles in a row, cut at T i / n", size=SMALL, bold=True)
    y += 20
    unit = 412 / tiles
    for place, head in enumerate(head_of):
        canvas.cell(14 + place * unit, y, unit, 22, str(head), f"{HUES[head]}-soft", size=SMALL)
    for share in even_shares()[1:]:
        x = 14 + share.start * unit
        canvas.line([(x, y - 5), (x, y + 27)], "red", thick=1.8)
    y += 40
    y = draw_blocks(canvas, y, "", [[head_of[t] for t in share] for share in even_shares()], 28)
    begins, told = 0, []
    for head, count in enumerate(HEAD_TILES):
        found = blocks_of(begins, begins + count, tiles)
        if len(found) > 1:
            of = f"{found[0]} {'to' if len(found) > 2 else 'and'} {found[-1]}"
            told.append(f"Head {head}: parts of blocks {of}; the last to count merges.")
        begins += count
    whole = len(HEAD_TILES) - len(told)
    told.append(f"The other {whole} are within one share: nothing to merge." if whole else "")
    canvas.lines(14, y, told, "muted", size=SMALL)
    return canvas


# --- 47: pages ------------------------------------------------------------------------------------

PAGE, POOL = 16, 10
TABLE = ((6, 1, 8, 3, 4), (0, 7, 5))  # an example; the server that manages the cache fills it
LENGTHS = (75, 40)


def pages() -> Canvas:
    canvas, y = begin(
        "47: the page table gives the page of a key",
        "Two sequences of 75 and 40 keys in pages of 16. A table row for each sequence names its "
        "pages, in any order among ten. Key 37 of sequence 0 is row 5 of page 8, the third page "
        "of its table row.",
        note=f"Pages of {PAGE} keys; an example table.",
    )
    for entry, (table, length) in enumerate(zip(TABLE, LENGTHS, strict=True)):
        assert len(table) == -(-length // PAGE)
        canvas.text(14, y + 6, f"sequence {entry}: {length} keys", size=SMALL, bold=True)
        for index, page in enumerate(table):
            x = 14 + index * 83
            keys = f"{index * PAGE}-{min(length, (index + 1) * PAGE) - 1}"
            canvas.cell(x, y + 18, 79, 22, f"keys {keys}", f"{HUES[entry]}-soft", size=SMALL)
            canvas.cell(x, y + 42, 79, 22, f"page {page}", "grey-soft", size=SMALL)
        y += 80
    canvas.text(14, y + 4, "K (and V) in device memory, page after page", size=SMALL, bold=True)
    y += 16
    owner = {
        page: (entry, index)
        for entry, table in enumerate(TABLE)
        for index, page in enumerate(table)
    }
    unit = 412 / POOL
    for page in range(POOL):
        x = 14 + page * unit
        entry, index = owner.get(page, (-1, -1))
        fill = f"{HUES[entry]}-soft" if entry >= 0 else "none"
        keys = min(PAGE, LENGTHS[entry] - index * PAGE) if entry >= 0 else 0
        canvas.rect(x, y, unit - 2, 48, "none", "line")
        canvas.rect(x, y, unit - 2, 48 * keys / PAGE, fill)
        canvas.text(x + unit / 2 - 1, y + 14, str(page), size=SMALL, anchor="middle")
        text = f"{index * PAGE}-" if entry >= 0 else "free"
        canvas.text(x + unit / 2 - 1, y + 33, text, "muted", size=SMALL, anchor="middle")
    y += 68
    key = 37
    page, row = TABLE[0][key // PAGE], key % PAGE
    told = (
        f"Key {key} of sequence 0: table[{key} / {PAGE}] = table[{key // PAGE}] = page {page},",
        f"row {key} mod {PAGE} = {row} of it. A tile of {tile_keys('47')} keys covers "
        f"{tile_keys('47') // PAGE} pages.",
        "Empty: rows of a last page that hold no key yet, free pages.",
    )
    canvas.lines(14, y, told, "muted", size=SMALL)
    return canvas


# --- 48: several queries --------------------------------------------------------------------------

GROUP, QUERIES, LAST_KEYS = 4, 4, 8


def queries() -> Canvas:
    columns, sets = GROUP * QUERIES, tile_of("48")[0] // 8
    canvas, y = begin(
        "48: a new query is one more column",
        "The last 8 keys of a cache and 16 columns: 4 heads of a group with 4 new queries each. The "
        "last query of a head sees every key, the query before it all but the last key, and so "
        "on. A fragment of K or V is used for two sets of 8 columns.",
        note="Number: query of its head. Grey: masked. L: number of keys.",
    )
    left, unit, row = 62.0, 22.0, 19.0
    for head in range(GROUP):
        x = left + head * QUERIES * unit
        canvas.text(
            x + QUERIES * unit / 2, y + 6, f"head {head}", size=SMALL, bold=True, anchor="middle"
        )
    y += 18
    for key in range(LAST_KEYS):
        before_end = LAST_KEYS - key
        name = "L - 1" if before_end == 1 else f"L - {before_end}"
        canvas.text(left - 8, y + key * row + 10, name, "muted", size=SMALL, anchor="end")
        for column in range(columns):
            query = column % QUERIES
            seen = before_end > QUERIES - 1 - query
            fill = f"{HUES[column // QUERIES]}-soft" if seen else "line"
            canvas.cell(
                left + column * unit, y + key * row, unit - 1, row - 1, str(query), fill, size=SMALL
            )
    bottom = y + LAST_KEYS * row
    for part in range(sets):
        first = left + part * columns / sets * unit
        end = left + (part + 1) * columns / sets * unit
        canvas.line([(first + 2, bottom + 8), (end - 3, bottom + 8)], "ink", thick=1.6)
        canvas.text(
            (first + end) / 2,
            bottom + 22,
            f"set {part}: columns of an mma",
            size=SMALL,
            anchor="middle",
        )
    canvas.lines(
        14,
        bottom + 48,
        (
            f"{GROUP} heads of {QUERIES} queries: {columns} rows of Q, one after another.",
            "K and V are read once, and each fragment is used for both sets.",
        ),
        "muted",
        size=SMALL,
    )
    return canvas


# --- 49: rows of Q are rows again -----------------------------------------------------------------


def rows() -> Canvas:
    keys, across = tile_keys("48"), 16
    groups = tile_of("49")[2] // 4
    wide = tile_keys("49")
    warps, height, scale = keys // 16, 64, 2.0
    canvas, y = begin(
        "49: 64 rows of Q fill wgmma",
        f"Scores of a tile. 48 has keys down and up to {across} rows of Q across: each of four warps has "
        f"{keys // warps} of {keys} keys. 49 has {height} rows of Q down and keys across: two groups of "
        f"four warps have {wide // groups} of {wide} keys each, each warp has 16 rows of them, and the "
        "tensor cores read K and V from shared memory once for each group.",
        note="S of a tile, to one scale. A cell: the part of one warp.",
    )
    top, left, right = y + 26, 70.0, 168.0
    side, narrow = height * scale, across * scale
    canvas.text(left + narrow / 2, top - 14, f"48: {across} rows", bold=True, size=SMALL, anchor="middle")
    canvas.text(left - 8, top + side / 2, f"{keys} keys", "muted", size=SMALL, anchor="end")
    canvas.text(right + wide * scale / 2, top - 14, f"49: {wide} keys", bold=True, size=SMALL, anchor="middle")
    for warp in range(warps):
        at, fill = top + warp * side / warps, f"{HUES[warp]}-soft"
        canvas.cell(left, at, narrow, side / warps, f"w{warp}", fill, size=SMALL)
        for group in range(groups):
            part = wide * scale / groups
            name = f"w{group * warps + warp}: 16 rows"
            canvas.cell(right + group * part, at, part, side / warps, name, fill, size=SMALL)
    canvas.text(right - 8, top + side / 2, f"{height} rows", "muted", size=SMALL, anchor="end")
    times = height * wide // (across * keys)
    told = f"{times} times as many scores per tile. 48 loads K with ldmatrix;"
    canvas.lines(14, top + side + 20, (told, "in 49 the tensor cores read K from shared memory."), "muted", size=SMALL)
    return canvas


# --- 50: one thread block per SM ------------------------------------------------------------------


def one() -> Canvas:
    plans = decode_facts()["plans"]
    many, few = (plans[rung][0]["grid"][0] for rung in ("47", "50"))
    keys = {rung: tile_keys(rung) for rung in ("47", "50")}
    canvas, y = begin(
        "50: half as many splits",
        f"A head of 8192 keys. 47 has {many} thread blocks for 8 heads, {many // 8} splits per head, in "
        f"tiles of {keys['47']} keys; 50 has {few} blocks, {few // 8} splits per head, in tiles of "
        f"{keys['50']} keys. Both have as many bytes in flight per SM.",
        note="One head of K and V, 8192 keys, cut into splits.",
    )
    for rung, blocks, hue in (("47", many, "blue"), ("50", few, "orange")):
        parts, width = blocks // 8, 412.0
        canvas.text(14, y + 6, f"{rung}: {blocks} blocks, {parts} splits to merge", size=SMALL, bold=True)
        for part in range(parts):
            fill = hue if part % 2 else f"{hue}-soft"
            canvas.rect(14 + part * width / parts, y + 18, width / parts, 24, fill, radius=0)
        y += 60
    canvas.text(14, y + 6, "Bytes in flight per SM", size=SMALL, bold=True)
    for rung, per_sm, hue in (("47", 2, "blue"), ("50", 1, "orange")):
        tile = 2 * 2 * keys[rung] * 128 // 1024  # K and V, halves, head_dim 128
        y += 30
        canvas.text(14, y, rung, size=SMALL)
        for block in range(per_sm):
            for slot in range(2):
                x = 44 + (block * 2 + slot) * 1.45 * tile
                canvas.cell(x, y - 12, 1.45 * tile, 24, f"{tile} KB", f"{hue}-soft", size=SMALL)
        words = f"{per_sm} block{'s' * (per_sm > 1)} x 2 tiles"
        canvas.text(240, y, words, "muted", size=SMALL)
    return canvas


# --- 51: a half from an e4m3 ----------------------------------------------------------------------


def bits() -> Canvas:
    canvas, y = begin(
        "51: an e4m3 becomes a half",
        "The 8 bits of an e4m3 are a sign, 4 of exponent and 3 of mantissa. The sign becomes the sign of "
        "the half; the other 7 bits move one place to the right, into the lower 4 bits of its exponent and "
        "the upper 3 of its mantissa. The highest bit of the exponent and 7 of the mantissa are 0.",
        note="Red: sign. Blue: exponent. Green: mantissa.",
    )
    unit, left = 25.0, 18.0
    byte = [("s", "red"), *[("e", "blue")] * 4, *[("m", "green")] * 3]
    half = [("s", "red"), ("0", "grey"), *[("e", "blue")] * 4, *[("m", "green")] * 3]
    half += [("0", "grey")] * 7
    places = [0, *range(2, 9)]  # of the byte's bits in the half
    canvas.text(left, y + 6, "e4m3: (-1)^s 2^(e - 7) 1.m", size=SMALL, bold=True)
    top = y + 20
    for place, (name, hue) in enumerate(byte):
        canvas.cell(left + place * unit, top, unit - 1, 24, name, f"{hue}-soft", size=SMALL)
    low = top + 70
    for place, (name, hue) in enumerate(half):
        canvas.cell(left + place * unit, low, unit - 1, 24, name, f"{hue}-soft", size=SMALL)
    for place, to in enumerate(places):
        start, end = left + (place + 0.5) * unit, left + (to + 0.5) * unit
        canvas.line([(start, top + 25), (end, low - 2)], "muted", arrow=True)
    canvas.text(left, low + 42, "half: (-1)^s 2^(e - 15) 1.m", size=SMALL, bold=True)
    told = ("2^-8 of the value, subnormals too: 2^-6 0.m and 2^-14 0.m.",)
    canvas.lines(left, low + 62, told, "muted", size=SMALL)
    return canvas


FIGURES = {
    "decode_lanes": lanes,
    "decode_reads": reads,
    "decode_last": last,
    "decode_ring": ring,
    "decode_operands": operands,
    "decode_transposed": transposed,
    "decode_even": even,
    "decode_pages": pages,
    "decode_queries": queries,
    "decode_rows": rows,
    "decode_one": one,
    "decode_bits": bits,
}
