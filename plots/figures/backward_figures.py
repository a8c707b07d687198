# SPDX-License-Identifier: MIT
"""The backward pass: its five products, where their operands live, and what runs at the same time.

Orders are those of the statements in the loops of the kernels; widths are not to scale.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from canvas import SMALL, Canvas, begin

Box = tuple[str, float, str]  # text, width, fill


def products() -> Canvas:
    canvas, y = begin(
        "60: five products",
        "S equals Q times K transposed, dP equals dO times V transposed. From S comes P, from P and "
        "dP comes dS. dV is P transposed times dO, dK is dS transposed times Q, dQ is dS times K.",
        note="Without factors of scale.",
    )
    rows = [
        ("S", "Q Kᵀ", "scores", "blue-soft"),
        ("dP", "dO Vᵀ", "gradient of P", "blue-soft"),
        ("dV", "Pᵀ dO", "P = exp(S - LSE)", "green-soft"),
        ("dK", "dSᵀ Q", "dS = P (dP - δ)", "green-soft"),
        ("dQ", "dS K", "summed over the keys", "orange-soft"),
    ]
    for name, product, why, fill in rows:
        canvas.cell(14, y, 56, 26, name, fill)
        canvas.text(84, y + 13, "=")
        canvas.cell(102, y, 110, 26, product, "grey-soft")
        canvas.text(226, y + 13, why, "muted", size=SMALL)
        y += 34
    return canvas


def operands() -> Canvas:
    canvas, y = begin(
        "61: where operands live",
        "S transposed and dP transposed have keys as rows. P and dS stay in the registers of the warps "
        "that computed them and are the left operands for dV and dK. Only dS is stored to shared "
        "memory, where both consumers read it for dQ.",
        note="A consumer has 64 keys as rows; columns are queries.",
    )
    canvas.text(14, y + 8, "shared memory", size=SMALL, bold=True)
    for i, name in enumerate(("K", "V", "Q", "dO", "dS")):
        canvas.cell(14 + i * 82, y + 18, 74, 26, name, "orange-soft")
    y += 62
    canvas.text(14, y + 8, "registers of a consumer", size=SMALL, bold=True)
    for i, name in enumerate(("Sᵀ, Pᵀ", "dPᵀ, dSᵀ", "dV", "dK", "dQ")):
        canvas.cell(14 + i * 82, y + 18, 74, 26, name, "blue-soft")
    y += 62
    canvas.text(14, y + 8, "device memory", size=SMALL, bold=True)
    canvas.cell(14 + 4 * 82, y + 18, 74, 26, "dQ, FP32", "green-soft")
    canvas.line([(14 + 4 * 82 + 37, y - 16), (14 + 4 * 82 + 37, y + 16)], "green", arrow=True)
    canvas.text(14 + 4 * 82 - 8, y + 31, "every key block adds its part", size=SMALL, anchor="end")
    return canvas


def additions() -> Canvas:
    canvas, y = begin(
        "62: who adds dQ",
        "61: each of 128 threads of a consumer executes 32 atomic additions per iteration. 62: the threads "
        "store dQ to shared memory, and one thread starts the addition of 16 kilobytes by the TMA.",
        note="One consumer, one iteration: 64 × 64 floats.",
    )
    for x, name in ((14.0, "61"), (234.0, "62")):
        canvas.text(x, y + 6, name, bold=True)
        canvas.cell(x, y + 20, 190, 28, "dQ in registers", "blue-soft")
        if name == "61":
            for i in range(8):
                at = x + 12 + i * 24
                canvas.line([(at, y + 48), (at, y + 118)], "orange", arrow=True)
            canvas.text(x + 95, y + 134, "4096 atomic additions", size=SMALL, anchor="middle")
        else:
            canvas.line([(x + 95, y + 48), (x + 95, y + 62)], "green", arrow=True)
            canvas.cell(x, y + 64, 190, 24, "dQ in shared memory", "orange-soft")
            canvas.line([(x + 95, y + 88), (x + 95, y + 118)], "green", thick=4, arrow=True)
            canvas.text(x + 95, y + 134, "one bulk addition", size=SMALL, anchor="middle")
        canvas.cell(x, y + 146, 190, 28, "sums in device memory", "green-soft")
    return canvas


def tracks(canvas: Canvas, y: float, rows: Sequence[tuple[str, float, Sequence[Box]]]) -> float:
    """Rows of boxes: a name, where the first box begins, and the boxes."""
    for name, start, boxes in rows:
        canvas.text(14, y + 12, name, size=SMALL, bold=True)
        x = 92.0 + start
        for text, width, fill in boxes:
            canvas.cell(x, y, width, 24, text, fill)
            x += width
        y += 32
    return y


def writer() -> Canvas:
    canvas, y = begin(
        "63: a warp writes",
        "62: the consumer stores dQ, waits at a barrier for its other warps, and one of its threads "
        "starts the addition. 63: the consumer stores dQ and continues; a warp of the producers "
        "starts the addition when all four warps have arrived at an mbarrier.",
        note="Time runs to the right. Order only, not to scale.",
    )
    store, start = ("store dQ", 80.0, "orange-soft"), ("start", 44.0, "green-soft")
    wait, following = ("barrier", 62.0, "red-soft"), ("next iteration", 130.0, "blue-soft")
    y = tracks(
        canvas, y, [("62 consumer", 24, (store, wait, start, ("next iteration", 104, "blue-soft")))]
    )
    tracks(canvas, y + 8, [("63 consumer", 24, (store, following)), ("63 writer", 108, (start,))])
    return canvas


def late() -> Canvas:
    canvas, y = begin(
        "64: dQ an iteration late",
        "63: both consumers meet at a barrier in every iteration, because dQ of a tile needs dS of "
        "both. 64: dQ of the tile before is multiplied, whose dS both have stored.",
        note="One iteration of one consumer; i is the tile of queries.",
    )
    soft, multiply, stop = "orange-soft", "blue-soft", "red-soft"
    y = tracks(
        canvas,
        y,
        [
            (
                "63",
                0,
                (
                    ("P, dS of i", 74, soft),
                    ("dV starts", 60, multiply),
                    ("barrier", 50, stop),
                    ("dQ, dK of i", 76, multiply),
                    ("next S, dP", 76, multiply),
                ),
            ),
            (
                "64",
                0,
                (
                    ("dP, P, dS of i", 92, soft),
                    ("dV, dK of i", 82, multiply),
                    ("dQ of i - 1", 76, multiply),
                    ("S of i + 1", 72, multiply),
                ),
            ),
        ],
    )
    return canvas


def turns() -> Canvas:
    canvas, y = begin(
        "65: consumers take turns",
        "64: both consumers compute P and dS at the same time and multiply at the same time. 65: one "
        "multiplies while the other computes.",
        note="Time runs to the right. Order only, not to scale.",
    )
    compute, multiply = ("P, dS", 78.0, "orange-soft"), ("products", 78.0, "blue-soft")
    both = (compute, multiply, compute, multiply)
    y = tracks(canvas, y, [("64 first", 0, both), ("64 second", 0, both)])
    tracks(canvas, y + 8, [("65 first", 0, both), ("65 second", 78, (compute, multiply, compute))])
    return canvas


def longest() -> Canvas:
    """Thread blocks in their order on four SMs; each takes as many units as it has tiles."""
    heads, blocks, sms, unit = 3, 8, 8, 22.0
    canvas, y = begin(
        "66: the longest thread blocks first",
        "Three heads of eight key blocks on eight SMs, under the mask. 65: the longest thread block of "
        "the last head starts late, and the other SMs wait for it. 66: the heads alternate, and all SMs "
        "end at about the same time.",
        note="A row is an SM, a colour a head. Time runs to the right.",
    )
    fills = ("blue-soft", "orange-soft", "green-soft")
    in_heads = [(head, block) for head in range(heads) for block in range(blocks)]
    in_turn = [(head, block) for block in range(blocks) for head in range(heads)]
    for name, order in (("65", in_heads), ("66", in_turn)):
        canvas.text(14, y + 8, name, bold=True)
        free = [(0, sm) for sm in range(sms)]
        for head, block in order:
            start, sm = heapq.heappop(free)
            length = blocks - block
            x, top = 40 + start * unit, y + sm * 13
            canvas.rect(x, top, length * unit, 12, fills[head], "line")
            heapq.heappush(free, (start + length, sm))
        y += sms * 13 + 16
    return canvas


def gradient_window() -> Canvas:
    """Tiles of queries for each key block, by the bounds of 67."""
    left, count, keys, queries = 255, 768, 128, 64
    canvas, y = begin(
        "67: queries of a key block, window of 256 keys",
        "Six key blocks of 128 against twelve tiles of 64 queries. Each key block multiplies at most "
        "six tiles: those from its first key to 255 behind its last one. Four of them are masked.",
        note="One cell: 128 keys x 64 queries.",
    )
    x, width, height = 92.0, 27.0, 24.0
    for first in range(0, count, keys):
        top = y + first / keys * height
        canvas.text(84, top + height / 2, f"keys {first}", size=SMALL, anchor="end")
        for tile in range(count // queries):
            row, last = tile * queries, first + keys - 1
            seen = row + queries > first and row <= last + left
            masked = row < last or row + queries - 1 > first + left
            fill = "none" if not seen else "yellow-soft" if masked else "green-soft"
            canvas.rect(x + tile * width, top, width, height, fill, "line")
    y += count / keys * height + 18
    kinds = (("green-soft", "no mask"), ("yellow-soft", "masked"), ("none", "skipped"))
    for i, (fill, text) in enumerate(kinds):
        canvas.rect(14 + i * 130, y - 7, 14, 14, fill, "line")
        canvas.text(34 + i * 130, y, text, size=SMALL)
    return canvas


def five() -> Canvas:
    canvas, y = begin(
        "68: five products in a turn",
        "67: the turn has dV, dK, dQ of the tile before and S of the next one; then dQ is staged, and P "
        "is computed while dP is multiplied. 68: the turn has dQ of the tile before, dV, dK, and S and dP "
        "of the next tile; dQ is staged while dV and dK are multiplied.",
        note="An iteration. Blue: products in the turn. Not to scale.",
    )
    turn, own, outside = "blue-soft", "orange-soft", "green-soft"
    after = (("stage dQ", 58, own), ("dP, P", 50, outside), ("dS", 34, own))
    last = (("dV", 36, turn), ("dK", 36, turn), ("dQ", 36, turn), ("S", 36, turn), *after)
    first = (
        *((each, 36, turn) for each in ("dQ", "dV", "dK", "S", "dP")),
        ("P", 36, own),
        ("dS", 34, own),
    )
    y = tracks(canvas, y, [("67", 0, last), ("68", 0, first)])
    canvas.cell(128, y - 4, 72, 22, "stage dQ", own)
    return canvas


def sectors() -> Canvas:
    """What the four lanes of a quad hold of 32 columns of a row: before and after."""
    canvas, y = begin(
        "69: a quad exchanges columns",
        "Before: a lane holds two adjacent columns of each of four groups of eight. After: lane t holds "
        "all eight columns of group t, which are 16 bytes.",
        note="32 columns of a row in groups of eight. A colour is a lane.",
    )
    fills, width = ("blue-soft", "orange-soft", "green-soft", "yellow-soft"), 21.0
    for name, lane_of in (
        ("before", lambda group, pair: pair),
        ("after", lambda group, pair: group),
    ):
        canvas.text(14, y + 12, name, size=SMALL, bold=True)
        for group in range(4):
            for pair in range(4):
                lane = lane_of(group, pair)
                x = 70 + (group * 4 + pair) * width + group * 6
                canvas.cell(x, y, width, 24, str(lane), fills[lane])
        y += 36
    return canvas


def ordered() -> Canvas:
    """When four key blocks add to eight tiles under the mask, by the loop of 70."""
    blocks, tiles, width, height = 4, 8, 34.0, 24.0
    canvas, y = begin(
        "70: thread blocks add in the order of their keys",
        "Each key block goes from the last tile of queries to its first one, and adds to each tile one "
        "iteration after the key block before.",
        note="A cell: the tile that is added to. Time runs to the right.",
    )
    for block in range(blocks):
        canvas.text(84, y + height / 2, f"keys {128 * block}", size=SMALL, anchor="end")
        for step, tile in enumerate(range(tiles - 1, 2 * block - 1, -1)):
            fill = "orange-soft" if tile == tiles - 1 else "blue-soft"
            canvas.cell(92 + (block + step) * width, y, width, height, str(tile), fill)
        y += height + 4
    return canvas


def waves() -> Canvas:
    """Two SMs, four key blocks and eight tiles under the mask, by the loops of 71 and 72."""
    tiles, width, height = 8, 28.0, 24.0
    canvas, y = begin(
        "72: every second wave goes up",
        "Two SMs take two key blocks each. If all go from the last tile down, the second two are at "
        "different tiles; if these go up, at the same ones.",
        note="A cell: a tile, orange: of both SMs. Time runs to the right.",
    )
    for name, upwards in (("71", False), ("72", True)):
        seen = []
        for first, second in ((0, 3), (1, 2)):
            down = [*range(tiles - 1, 2 * first - 1, -1)]
            then = range(2 * second, tiles)
            seen.append([*down, *(then if upwards else reversed(then))])
        for sm, taken in enumerate(seen):
            canvas.text(112, y + height / 2, f"{name}, SM {sm}", size=SMALL, anchor="end")
            for step, tile in enumerate(taken):
                both = step < len(seen[1 - sm]) and seen[1 - sm][step] == tile
                fill = "orange-soft" if both else "blue-soft"
                canvas.cell(120 + step * width, y, width, height, str(tile), fill)
            y += height + 4
        y += 10
    return canvas


def packed_tiles() -> Canvas:
    """Where 71 puts the tiles of four sequences, with tiles of four rows."""
    lengths, rows, width, height = (5, 1, 2, 9), 4, 12.0, 24.0
    fills = ("blue-soft", "orange-soft", "green-soft", "yellow-soft")
    starts = [sum(lengths[:b]) for b in range(len(lengths))]
    firsts = [start // rows + b for b, start in enumerate(starts)]
    tiles = sum(lengths) // rows + len(lengths)
    canvas, y = begin(
        "71: tiles of a packed batch",
        f"Sequences of {', '.join(map(str, lengths))} rows begin at tiles"
        f" {', '.join(map(str, firsts))} of {tiles}. Tiles hold {rows} rows; one of them is empty.",
        note="A cell is a row, a colour a sequence; numbers: first tiles.",
    )
    canvas.text(14, y + height / 2, "rows", size=SMALL, bold=True)
    for b, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        for row in range(start, start + length):
            canvas.rect(60 + row * (width + 2), y, width, height, fills[b], "line")
    y += height + 14
    canvas.text(14, y + height / 2, "tiles", size=SMALL, bold=True)
    for tile in range(tiles):
        b = max(each for each, first in enumerate(firsts) if first <= tile)
        x = 60 + tile * (rows * width - 1)
        for row in range(rows):
            filled = (tile - firsts[b]) * rows + row < lengths[b]
            fill = fills[b] if filled else "none"
            canvas.rect(x + row * (width - 2), y, width - 2, height, fill, "line")
        if tile in firsts:
            canvas.text(x, y + height + 10, str(tile), size=SMALL)
    return canvas


FIGURES: dict[str, Callable[[], Canvas]] = {
    "backward_products": products,
    "backward_operands": operands,
    "backward_additions": additions,
    "backward_writer": writer,
    "backward_late": late,
    "backward_turns": turns,
    "backward_longest": longest,
    "backward_window": gradient_window,
    "backward_five": five,
    "backward_sectors": sectors,
    "backward_ordered": ordered,
    "backward_packed": packed_tiles,
    "backward_waves": waves,
}
