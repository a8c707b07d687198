# SPDX-License-Identifier: MIT
"""Chart: TFLOPS against the sequence length, a line for every rung and peer."""

from __future__ import annotations

import lines
import style
from ladder import (
    PEER_NAMES,
    SHORT_NAMES,
    Catalogue,
    LadderError,
    Problem,
    Results,
    Row,
    alike,
    by_length,
    timed_text,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import WIDE, Form


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    def points(rows: list[Row]) -> tuple[list[float], list[float]]:
        like = by_length(row for row in rows if alike(row, problem))
        return [float(row.problem.seq_q) for row in like], [row.tflops for row in like]

    drawn = lines.of_rungs(results, catalogue.rungs, points, "TFLOPS")
    drawn += lines.of_peers(results, points, form)
    # A single point is no line, and its label would cross the others.
    drawn = [line for line in drawn if len(line.xs) > 1]
    seqs = sorted({int(seq) for line in drawn for seq in line.xs})
    if len(seqs) < 2:
        raise LadderError(f"{results.name} has fewer than two lengths like {problem.label}")
    shape = problem.label.replace(f"N={problem.seq_q} ", "")
    words = [shape, f"{timed_text(results)}. {lines.KEY}"]
    title = f"TFLOPS by length, {results.gpu}"
    room = lines.ROOM[form.is_narrow]
    figure, axes = style.page(form, room, lines.HEIGHT, title, words, results, note)
    style.hairline_grid(axes, "y")
    ceiling = results.matmul(problem)
    top = max(value for line in drawn for value in line.ys)
    set_axes(axes, seqs, max(top, ceiling.tflops if ceiling else 0), form)
    ends = lines.draw(axes, drawn)
    if ceiling:
        ends.append(draw_ceiling(axes, ceiling, seqs[-1], form))
    style.label_ends(axes, ends, form)
    return figure


def set_axes(axes: Axes, seqs: list[int], top: float, form: Form) -> None:
    style.length_axis(axes, seqs, seqs[0] * form.either(0.93, 0.8), seqs[-1])
    axes.set_ylim(0, top * 1.05)
    axes.set_xlabel("sequence length N (log scale)")


def draw_ceiling(axes: Axes, ceiling: Row, last: int, form: Form) -> style.End:
    axes.axhline(ceiling.tflops, color=style.MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)))
    names = PEER_NAMES | (SHORT_NAMES if form.is_narrow else {})
    name = names.get(ceiling.id, ceiling.id)
    return style.End(name, style.MUTED, (last, ceiling.tflops), ceiling.tflops)
