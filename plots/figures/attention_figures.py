# SPDX-License-Identifier: MIT
"""The algorithm: passes and blocks, the online softmax by numbers, references and their range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from canvas import SMALL, Canvas, begin

# --- standard attention ---------------------------------------------------------------------------


def passes() -> Canvas:
    """The seven passes of a0 over the N x N scores."""
    canvas, y = begin(
        "a0: three kernels, seven passes over S",
        "Three kernels. The first writes S once. The second reads it three times and writes it "
        "twice. "
        "The third reads P once. Seven passes over N times N floats.",
        note="An arrow is one pass over N x N floats in device memory.",
    )
    rows = (
        ("scores", "S = Q K\u1d40", (("S", 1),)),
        ("softmax", "maximum", (("S", -1),)),
        ("", "e^(S - max), sum", (("S", -1), ("S", 1))),
        ("", "divided by the sum", (("P", -1), ("P", 1))),
        ("values", "O = P V", (("P", -1),)),
    )
    canvas.rect(300, y + 4, 126, 5 * 44 - 4, "orange-soft")
    canvas.text(363, y + 20, "device memory", "orange", size=SMALL, anchor="middle", bold=True)
    canvas.lines(
        363, y + 100, ["S, then P:", "N x N floats", "for every head"], size=SMALL, anchor="middle"
    )
    y += 26
    for kernel, what, moves in rows:
        canvas.text(14, y, kernel, size=SMALL, bold=True)
        canvas.rect(76, y - 14, 136, 28, "blue-soft")
        canvas.text(144, y, what, size=SMALL, anchor="middle")
        for index, (_, way) in enumerate(moves):
            at = y + (index - (len(moves) - 1) / 2) * 14
            ends = ((216.0, at), (298.0, at))
            canvas.line(
                ends if way > 0 else ends[::-1],
                "orange" if way > 0 else "blue",
                thick=1.6,
                arrow=True,
            )
        y += 42
    canvas.text(216, y + 2, "written 3 times, read 4 times", "muted", size=SMALL)
    return canvas


def thread_per_row() -> Canvas:
    canvas, y = begin(
        "a1: one thread, one query row",
        "A thread block has 128 rows of Q. Thread t has row t: its maximum, sum and row of O in "
        "registers. All threads read the same rows of the K and V tiles in shared memory.",
        note="A thread block: 128 threads; tiles of 16 keys of K and V.",
    )
    names = ("thread 0", "thread 1", "thread 2", "...", "thread 127")
    for index, name in enumerate(names):
        at = y + 22 + index * 34
        canvas.text(14, at + 12, name, size=SMALL)
        if name != "...":
            canvas.cell(96, at, 40, 24, "q", "blue-soft")
            canvas.cell(140, at, 104, 24, "m, l, S[16]", "green-soft")
            canvas.cell(248, at, 44, 24, "O row", "green-soft")
    canvas.text(96, y + 8, "of its own", "muted", size=SMALL)
    canvas.text(330, y + 8, "shared by all", "muted", size=SMALL)
    for index, name in enumerate(("K tile", "V tile")):
        top = y + 22 + index * 84
        canvas.rect(330, top, 96, 66, "orange-soft")
        for line in range(1, 6):
            canvas.line([(332, top + line * 11), (424, top + line * 11)], "paper")
        canvas.text(378, top + 33, name, size=SMALL, anchor="middle", bold=True)
        canvas.line([(330, top + 33), (296, top + 33)], "orange", thick=1.6, arrow=True)
    canvas.text(
        14,
        y + 22 + 5 * 34 + 8,
        "All lanes of a warp read one address: a broadcast.",
        "muted",
        size=SMALL,
    )
    return canvas


# --- blocks of the score matrix -------------------------------------------------------------------


def walk() -> Canvas:
    canvas, y = begin(
        "A thread block computes one row of blocks",
        "The score matrix as 8 by 8 blocks. One thread block computes one row of blocks from left "
        "to right; only the current block exists, in registers. Under the causal mask the row ends "
        "at the diagonal.",
        note="Rows: queries. Columns: keys. One cell: a block of scores.",
    )
    for x, causal, name in ((14.0, False, "no mask"), (232.0, True, "causal")):
        canvas.text(x, y + 8, name, size=SMALL, bold=True)
        grid_of_blocks(canvas, x, y + 22, causal)
    y += 22 + 8 * 24 + 14
    legend(
        canvas,
        y,
        (
            ("green", "now: in registers"),
            ("green-soft", "done, not stored"),
            ("grey-soft", "other thread blocks"),
        ),
    )
    legend(canvas, y + 20, (("yellow-soft", "masked singly"), ("none", "never computed")))
    return canvas


def grid_of_blocks(
    canvas: Canvas, x: float, y: float, causal: bool, mine: int = 5, now: int = 3
) -> None:
    for row in range(8):
        for column in range(8):
            fill, text = "grey-soft", ""
            if causal and column > row:
                fill = "none"
            elif causal and column == row:
                fill = "yellow-soft"
            if row == mine and fill != "none":
                text = str(column)
                fill = "green" if column == now else "green-soft" if column < now else fill
            canvas.rect(
                x + column * 24, y + row * 24, 24, 24, fill, "line" if fill == "none" else "paper"
            )
            if text:
                canvas.text(
                    x + column * 24 + 12,
                    y + row * 24 + 12,
                    text,
                    "paper" if fill == "green" else "ink",
                    size=SMALL,
                    anchor="middle",
                )
    canvas.rect(
        x, y + mine * 24, 8 * 24 if not causal else (mine + 1) * 24, 24, "none", "green", thick=2
    )


def legend(canvas: Canvas, y: float, entries: Sequence[tuple[str, str]], x: float = 14) -> None:
    for fill, text in entries:
        canvas.rect(x, y - 7, 14, 14, fill, "line")
        canvas.text(x + 19, y, text, size=SMALL)
        x += 19 + len(text) * 6.4 + 16


# --- the online softmax by numbers ----------------------------------------------------------------

SCORES = ((1.0, 3.0, 2.0), (5.0, 4.0, 0.0))
VALUES = ((10.0, 20.0, 30.0), (40.0, 50.0, 60.0))


def online_softmax() -> Canvas:
    canvas, y = begin(
        "Online softmax on six numbers",
        "Scores 1, 3, 2 and then 5, 4, 0 with values 10 to 60. After the first block the maximum "
        "is 3. The second block raises the maximum to 5, so sum and output are multiplied by e to "
        "the minus 2 before the new terms are added. The quotient equals the direct result.",
        note="Two blocks of three keys; each value of V is one number.",
    )
    maximum, total, output = -math.inf, 0.0, 0.0
    for index, (scores, values) in enumerate(zip(SCORES, VALUES, strict=True)):
        y = softmax_block(canvas, y, index, scores, values, (maximum, total, output))
        new = max(maximum, *scores)
        alpha = math.exp(maximum - new)
        weights = [math.exp(score - new) for score in scores]
        total = total * alpha + sum(weights)
        output = output * alpha + sum(w * v for w, v in zip(weights, values, strict=True))
        maximum = new
    canvas.rect(14, y, 412, 46, "green-soft")
    canvas.text(24, y + 14, f"O / l = {output:.3f} / {total:.4f} = {output / total:.3f}", bold=True)
    canvas.text(24, y + 33, f"all six at once: {direct():.3f}", size=SMALL)
    return canvas


def direct() -> float:
    scores, values = sum(SCORES, ()), sum(VALUES, ())
    weights = [math.exp(score) for score in scores]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def softmax_block(
    canvas: Canvas,
    y: float,
    index: int,
    scores: Sequence[float],
    values: Sequence[float],
    before: tuple[float, float, float],
) -> float:
    maximum, total, output = before
    new = max(maximum, *scores)
    alpha = math.exp(maximum - new)
    weights = [math.exp(score - new) for score in scores]
    canvas.text(14, y + 6, f"block {index + 1}", bold=True)
    y += 20
    for name, cells, fill in (
        ("score s", [f"{s:g}" for s in scores], "blue-soft"),
        (f"e^(s - {new:g})", [f"{w:.4f}" for w in weights], "violet-soft"),
        ("value v", [f"{v:g}" for v in values], "orange-soft"),
    ):
        canvas.text(14, y + 11, name, size=SMALL)
        for place, text in enumerate(cells):
            canvas.cell(104 + place * 70, y, 70, 22, text, fill)
        y += 24
    first = maximum == -math.inf
    canvas.text(326, y - 61, f"m = {new:g}", "blue", size=SMALL, bold=True)
    canvas.text(
        326,
        y - 37,
        "alpha = 0" if first else f"alpha = e^({maximum:g} - {new:g})",
        "red",
        size=SMALL,
    )
    canvas.text(326, y - 13, "" if first else f"= {alpha:.4f}", "red", size=SMALL)
    l_new = total * alpha + sum(weights)
    o_new = output * alpha + sum(w * v for w, v in zip(weights, values, strict=True))
    old_l, old_o = (
        ("", "") if first else (f"{total:.4f} x {alpha:.4f} + ", f"{output:.3f} x {alpha:.4f} + ")
    )
    terms = " + ".join(f"{w:.4f}" for w in weights) if first else f"{sum(weights):.4f}"
    canvas.text(14, y + 10, f"l = {old_l}{terms} = {l_new:.4f}", size=SMALL)
    added = sum(w * v for w, v in zip(weights, values, strict=True))
    products = (
        " + ".join(f"{w:.4f} x {v:g}" for w, v in zip(weights, values, strict=True))
        if first
        else f"{added:.3f}"
    )
    canvas.text(14, y + 28, f"O = {old_o}{products} = {o_new:.3f}", size=SMALL)
    return y + 50


# --- exponentials and references ------------------------------------------------------------------


def exp2() -> Canvas:
    canvas, y = begin(
        "05: four instructions become two",
        "Before: multiply by the scale, subtract the maximum, multiply by log2 e, EX2. After: "
        "one FFMA, one EX2.",
        note="For every score. c = log2(e) / sqrt(d), m' = m log2(e).",
    )
    before = (("FMUL", "s / sqrt(d)"), ("FADD", "- m"), ("FMUL", "x log2(e)"), ("EX2", "2^x"))
    after = (("FFMA", "s c - m'"), ("EX2", "2^x"))
    for name, chain, fill in (("04", before, "grey-soft"), ("05", after, "green-soft")):
        canvas.text(14, y + 24, name, bold=True)
        for place, (opcode, what) in enumerate(chain):
            x = 44 + place * 97
            canvas.rect(x, y, 84, 46, fill)
            canvas.text(x + 42, y + 15, opcode, size=SMALL, anchor="middle", bold=True)
            canvas.text(x + 42, y + 33, what, size=SMALL, anchor="middle")
            if place:
                canvas.line([(x - 12, y + 23), (x - 1, y + 23)], "muted", thick=1.4, arrow=True)
        y += 62
    return canvas


MAXIMA = (3.1, 3.9, 4.4, 4.4, 5.2, 13.5, 13.5)
SLACK = 8.0


def lazy() -> Canvas:
    canvas, y = begin(
        "10: a reference that rarely moves",
        "Maximum of a row over seven key blocks. A reference that is the maximum changes four "
        "times, and O is rescaled each time. The lazy reference changes once, where a score "
        "exceeds it by more than 8.",
        note="One row, seven key blocks; scores in powers of two.",
    )
    reference, lazy_row, moves = MAXIMA[0], [], []
    for maximum in MAXIMA:
        moved = maximum > reference + SLACK
        reference = maximum if moved else reference
        lazy_row.append(reference)
        moves.append(moved)
    left, width, top, scale = 70.0, 50.0, y + 10, 11.0
    floor = top + 15 * scale
    for value in (0, 5, 10, 15):
        canvas.line(
            [(left, floor - value * scale), (left + 7 * width, floor - value * scale)], "line"
        )
        canvas.text(left - 8, floor - value * scale, str(value), "muted", size=SMALL, anchor="end")
    for place, maximum in enumerate(MAXIMA):
        x = left + place * width
        canvas.rect(x + 6, floor - maximum * scale, width - 12, maximum * scale, "blue-soft")
        canvas.line(
            [
                (x + 2, floor - lazy_row[place] * scale),
                (x + width - 2, floor - lazy_row[place] * scale),
            ],
            "red",
            thick=2.5,
        )
        grows = place > 0 and maximum > MAXIMA[place - 1]
        mark(canvas, x + width / 2, floor + 16, grows, "blue")
        mark(canvas, x + width / 2, floor + 38, moves[place], "red")
    canvas.text(14, floor + 16, "max", "blue", size=SMALL, bold=True)
    canvas.text(14, floor + 38, "lazy", "red", size=SMALL, bold=True)
    counted = sum(b > a for a, b in itertools.pairwise(MAXIMA))
    canvas.text(
        14,
        floor + 60,
        f"Filled: O is rescaled. {counted} times with the maximum (bars),",
        "muted",
        size=SMALL,
    )
    canvas.text(
        14,
        floor + 77,
        f"{sum(moves)} time with a slack of {SLACK:g} (red lines).",
        "muted",
        size=SMALL,
    )
    return canvas


def mark(canvas: Canvas, x: float, y: float, filled: bool, hue: str) -> None:
    canvas.circle(x, y, 5, hue if filled else "none", hue)


def guard() -> Canvas:
    """Where a P = 2^(s - m) fits, as a float and as a half, and the bound of the guard."""
    canvas, y = begin(
        "28: the range of P = 2^(s - m)",
        "An axis of s minus m from minus 30 to 140. As a float P is finite below 128, as a half "
        "below 16. The guard's bound is a sum of 2 to the 15: up to 10 nothing happens, from 15 on the "
        "row is repaired by a power of two, and from 128 on its scores are computed again.",
        note="How far a score is above the row's reference, in powers of two.",
    )
    left, right, low, high = 76.0, 424.0, -30.0, 140.0

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    half_top, float_top = math.log2(65504), math.log2(3.4028e38)
    bars = (
        (
            "as a float",
            ((low, float_top, "green-soft", "finite"), (float_top, high, "red-soft", "")),
        ),
        (
            "as a half",
            (
                (low, -25, "grey-soft", ""),
                (-25, -14, "yellow-soft", ""),
                (-14, half_top, "green-soft", "fits"),
                (half_top, high, "red-soft", "infinite"),
            ),
        ),
        (
            "28 does",
            (
                (low, 10, "green-soft", "nothing"),
                (10, 15, "yellow-soft", ""),
                (15, float_top, "orange-soft", "repair: whole powers of two"),
                (float_top, high, "red-soft", ""),
            ),
        ),
    )
    for name, parts in bars:
        canvas.text(14, y + 14, name, size=SMALL)
        for begins, ends, fill, text in parts:
            canvas.rect(at(begins), y, at(ends) - at(begins), 28, fill, "paper")
            if text:
                canvas.text((at(begins) + at(ends)) / 2, y + 14, text, size=SMALL, anchor="middle")
        y += 36
    for value in (-25, 0, 15, 64, 128):
        canvas.line([(at(value), y - 8), (at(value), y - 1)], "muted")
        canvas.text(at(value), y + 8, str(value), size=SMALL, anchor="middle")
    canvas.text(
        14,
        y + 30,
        "From 10 to 15 it depends: is the sum of a lane's 32 P above 2^15?",
        "orange",
        size=SMALL,
    )
    canvas.text(
        14, y + 48, "From 128 on P is infinite: the scores are computed again.", "red", size=SMALL
    )
    return canvas


FIGURES = {
    "passes": passes,
    "thread_per_row": thread_per_row,
    "walk": walk,
    "online_softmax": online_softmax,
    "exp2": exp2,
    "lazy": lazy,
    "guard": guard,
}
