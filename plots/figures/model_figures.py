# SPDX-License-Identifier: MIT
"""What models have: views, windows, sinks."""

from __future__ import annotations

import math
from collections.abc import Callable

from canvas import SMALL, Canvas, begin


def views() -> Canvas:
    """Rows of 35 and of 36 in the order of memory."""
    canvas, y = begin(
        "36: two orders of the same rows",
        "Above, head after head: the rows of head 1 are neighbours. Below, row after row: each row "
        "has all heads, and the rows of head 1 are four cells apart.",
        note="Four heads, a cell is 128 elements; blue: head 1.",
    )
    heads, rows, width = 4, 4, 25.5
    for title, stride, place in (
        ("[heads, rows, head_dim]", "128", lambda head, row: head * rows + row),
        ("[rows, heads, head_dim]", "4 x 128", lambda head, row: row * heads + head),
    ):
        canvas.text(14, y + 6, title, size=SMALL, bold=True)
        for head in range(heads):
            for row in range(rows):
                x = 14 + place(head, row) * width
                fill = "blue-soft" if head == 1 else "grey-soft"
                canvas.cell(x, y + 18, width, 26, f"r{row}", fill)
        first, second = (14 + (place(1, row) + 0.5) * width for row in (0, 1))
        arc = [(first, y + 46), (first, y + 54), (second, y + 54), (second, y + 46)]
        canvas.line(arc, "blue", thick=1.5, arrow=True)
        canvas.text(second + 8, y + 56, f"stride of a row: {stride}", "muted", size=SMALL)
        y += 78
    return canvas


def window() -> Canvas:
    """Key blocks of a causal window of 384 keys, by the formula of 37."""
    left, count, block, rows, cluster = 383, 768, 128, 64, 256
    canvas, y = begin(
        "37: key blocks of a window of 384 keys",
        "Twelve groups of 64 rows against six key blocks of 128. Each group multiplies at most four "
        "blocks, and masks the ones at both ends. A frame is what a cluster of 256 rows loads.",
        note="One cell: 64 rows x 128 keys.",
    )
    x, width, height = 92.0, 54.0, 19.0

    def blocks(first: int, last: int) -> range:
        return range(max(0, first - left) // block, math.ceil((last + 1) / block))

    for first in range(0, count, rows):
        top = y + first / rows * height
        canvas.text(84, top + height / 2, f"rows {first}", size=SMALL, anchor="end")
        full = range(max(0, first + rows - 1 - left) // block + 1, (first + 1) // block)
        for j in range(count // block):
            seen = j in blocks(first, first + rows - 1)
            fill = "none" if not seen else "green-soft" if j in full else "yellow-soft"
            canvas.rect(x + j * width, top, width, height, fill, "line")
    for first in range(0, count, cluster):
        loaded, top = blocks(first, first + cluster - 1), y + first / rows * height
        frame = (x + loaded.start * width, top, len(loaded) * width, cluster / rows * height)
        canvas.rect(*frame, "none", "blue", thick=2.5)
    y += count / rows * height + 18
    kinds = (
        ("green-soft", "no mask", 14),
        ("yellow-soft", "masked", 110),
        ("none", "skipped", 200),
    )
    for fill, text, at in kinds:
        canvas.rect(at, y - 7, 14, 14, fill, "line")
        canvas.text(at + 20, y, text, size=SMALL)
    canvas.rect(292, y - 7, 14, 14, "none", "blue", thick=2.5)
    canvas.text(312, y, "loaded by a cluster", size=SMALL)
    return canvas


def sinks() -> Canvas:
    """Weights of four keys, without a sink and with one."""
    scores, sink = (0.75, 0.5, 0.25, 0.0), 1.0
    canvas, y = begin(
        "38: a sink takes a share of the weight",
        "Weights of four keys. Without a sink they add up to 1. A sink of 1 takes the largest "
        "part, and the weights of the keys shrink by one factor.",
        note="Scores of the keys: 0.75, 0.5, 0.25, 0.",
    )
    for title, extra in (("without a sink", ()), ("with a sink of 1", (sink,))):
        canvas.text(14, y + 6, title, size=SMALL, bold=True)
        total = sum(map(math.exp, (*scores, *extra)))
        x = 14.0
        for index, score in enumerate((*scores, *extra)):
            width = 412 * math.exp(score) / total
            is_key = index < len(scores)
            text = f"{math.exp(score) / total:.2f}" if is_key else f"{width / 412:.2f}: no value"
            canvas.cell(x, y + 18, width, 30, text, "blue-soft" if is_key else "grey-soft")
            x += width
        y += 66
    return canvas


def packed() -> Canvas:
    """Boxes of three rows over two sequences of a packed tensor."""
    canvas, y = begin(
        "39: a box ends where its sequence ends",
        "Rows of sequences of five and of four tokens, one behind the other. The second box of the "
        "first sequence has one row that the next sequence owns: it is zero and is not stored.",
        note="Boxes of three rows; blue and green: sequences; grey: zeros.",
    )
    lengths, box, width = (5, 4), 3, 36.0
    fills = ("blue-soft", "green-soft")
    canvas.text(14, y + 6, "rows in memory", size=SMALL, bold=True)
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    for index, length in enumerate(lengths):
        for row in range(length):
            canvas.cell(14 + (starts[index] + row) * width, y + 18, width, 26, str(row), fills[index])
    y += 62
    canvas.text(14, y + 6, "what the boxes hold", size=SMALL, bold=True)
    y += 18
    for index, length in enumerate(lengths):
        for first in range(0, length, box):
            for row in range(first, first + box):
                inside = row < length
                x = 14 + (starts[index] + row) * width
                fill = fills[index] if inside else "grey-soft"
                canvas.cell(x, y, width, 26, f"{row}" if inside else "0", fill)
            y += 32
    return canvas


FIGURES: dict[str, Callable[[], Canvas]] = {
    "views": views,
    "window": window,
    "sinks": sinks,
    "packed": packed,
}
