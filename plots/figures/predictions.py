# SPDX-License-Identifier: MIT
"""Predictions of FP32 rungs: how long each unit of an SM is busy with the same work."""

from __future__ import annotations

from collections.abc import Sequence

from canvas import SMALL, Canvas, begin
from memory_figures import counts

DIM, SEQ, HEADS = 64, 1024, 2  # of the counted problem
QUARTERS = 4  # parts of an SM, each with 32 FP32 units and an issue of one instruction per clock
BROADCAST = 2  # wavefronts of a float4 that all lanes read at one address
LEFT, RIGHT = 120.0, 424.0

Part = tuple[str, float, str]  # what, how long, hue
Row = tuple[str, Sequence[Part], str]  # unit, parts, total


def per_warp_scores(rung: str, key: str) -> float:
    """The machine's count for 32 scores."""
    return counts(rung, DIM)[key] / (HEADS * SEQ * SEQ / 32)


def require(rung: str, key: str, wanted: float) -> None:
    """What a figure sums up by hand must be what the machine counts."""
    counted = per_warp_scores(rung, key)
    if counted != wanted:
        raise ValueError(f"{rung}: {key} is {counted} for 32 scores, the figure has {wanted}")


def draw_bars(canvas: Canvas, y: float, rows: Sequence[Row], longest: float) -> float:
    """A bar for each unit, to one scale."""
    unit = (RIGHT - LEFT - 62) / longest
    for name, parts, total in rows:
        canvas.text(14, y + 15, name, size=SMALL)
        x = LEFT
        for text, size, hue in parts:
            width = size * unit
            shown = text if len(text) * SMALL * 0.56 < width else ""
            canvas.cell(x, y, width, 30, shown, f"{hue}-soft")
            x += width
        canvas.text(x + 6, y + 15, total, size=SMALL, bold=True)
        y += 42
    return y


def told(canvas: Canvas, y: float, lines: Sequence[str]) -> Canvas:
    canvas.lines(14, y + 6, lines, "muted", size=SMALL)
    return canvas


def a3_cycles() -> Canvas:
    """Clocks of a warp of a3 for a tile of 8 rows and 32 keys."""
    warps = 8  # times 32 scores
    conflicts = warps * (
        per_warp_scores("a3", "shared_load_wavefronts") - per_warp_scores("a3", "shared_load_ideal")
    )
    k, q = DIM // 4 * 32, DIM // 4 * 8 * BROADCAST
    v, p = DIM, 2 * 32 * BROADCAST
    require("a3", "shared_load_wavefronts", (k + q + v + p) / warps)
    others = 8 + 32 + 40  # P, a quarter of the tiles of K and V; shuffles of the maxima
    total, units = k + q + v + p + others, 2 * DIM * warps / QUARTERS
    before = warps * per_warp_scores("a1", "shared_load_wavefronts")
    canvas, y = begin(
        "a3: how long shared memory is busy",
        "For one tile of a warp the FP32 units are busy for 256 clocks, shared memory for 1040. K "
        "takes 512, of which 448 are conflicts, Q 256, P 128, V 64, stores and shuffles 80. a1 "
        "takes 544 for as many scores.",
        note="A warp, 8 rows x 32 keys, d = 64, in clocks of the SM.",
    )
    parts: list[Part] = [
        ("", k - conflicts, "green"),
        ("conflicts", conflicts, "red"),
        ("Q", q, "blue"),
        ("P", p, "orange"),
        ("", v, "teal"),
        ("", others, "grey"),
    ]
    rows: list[Row] = [
        ("FP32 units", [("", units, "blue")], f"{units:.0f}"),
        ("shared, a1", [("q, K, V", before, "green")], f"{before:.0f}"),
        ("shared, a3", parts, f"{total}"),
    ]
    y = draw_bars(canvas, y, rows, total)
    lines = (
        f"a3, from the left: K {k - conflicts:.0f}, its conflicts {conflicts:.0f} (red), Q {q}, P {p},",
        f"V {v}, stores and shuffles {others}.",
    )
    return told(canvas, y, lines)


FIGURES = {"a3_cycles": a3_cycles}
