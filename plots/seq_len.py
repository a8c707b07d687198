#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: TFLOPS against the sequence length, a line for every rung and peer."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import style
from ladder import (
    PEER_NAMES,
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
from matplotlib.ticker import FixedLocator, NullLocator

MINIMUM = 3.9  # inches of plot height
KEY = "Dashed: other implementations, timed in the same run."


@dataclass(frozen=True)
class Layout:
    """Of charts with lines: inches of the figure and around the plot."""

    width: float
    left: float
    right: float
    top: float
    bottom: float
    is_narrow: bool = False  # for a phone

    def wrapped(self, text: str) -> str:
        return textwrap.fill(text, 62) if self.is_narrow else text

    @property
    def footer_lines(self) -> int | None:
        return 52 if self.is_narrow else None

    def number(self, value: int) -> str:
        """On the axis of lengths."""
        return f"{value // 1024}k" if self.is_narrow and value >= 1024 else str(value)


WIDE = Layout(9.6, 0.62, 1.95, 1.05, 0.92)
NARROW = Layout(4.7, 0.55, 1.72, 1.35, 1.3, True)


@dataclass(frozen=True)
class Line:
    name: str
    rows: list[Row]  # by sequence length
    look: dict[str, Any]

    @property
    def seqs(self) -> list[int]:
        return [row.problem.seq_q for row in self.rows]

    @property
    def values(self) -> list[float]:
        return [row.tflops for row in self.rows]

    @property
    def last(self) -> tuple[float, float]:
        return self.seqs[-1], self.values[-1]


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(WIDE, results, catalogue, problem, note)


def draw_narrow(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(NARROW, results, catalogue, problem, note)


def draw_in(
    layout: Layout, results: Results, catalogue: Catalogue, problem: Problem, note: str
) -> Figure:
    lines = rung_lines(results, catalogue, problem) + peer_lines(results, problem)
    seqs = sorted({seq for line in lines for seq in line.seqs})
    if len(seqs) < 2:
        raise LadderError(f"{results.name} has fewer than two lengths like {problem.label}")
    figure, axes = make_figure(len(lines) + 1, layout)
    style.hairline_grid(axes, "y")
    for line in lines:
        axes.plot(line.seqs, line.values, clip_on=False, zorder=3, **line.look)
    set_axes(axes, seqs, highest(results, problem, lines), layout)
    draw_ceiling(axes, results.matmul(problem))
    style.label_ends(axes, [style.End(line.name, line.look["color"], line.last) for line in lines])
    shape = problem.label.replace(f"N={problem.seq_q} ", "")
    key = layout.wrapped(f"{timed_text(results)}. {KEY}")
    style.titles(figure, f"Sequence length, {results.gpu}", f"TFLOPS at {shape}", key)
    style.footer(figure, results, note, lines=layout.footer_lines)
    return figure


def make_figure(labels: int, layout: Layout) -> tuple[Figure, Axes]:
    plot = max(MINIMUM, style.END_LABEL * labels * 1.1)
    width, height = layout.width, plot + layout.top + layout.bottom
    figure = style.plt.figure(figsize=(width, height))
    across = layout.left / width, (width - layout.left - layout.right) / width
    return figure, figure.add_axes((across[0], layout.bottom / height, across[1], plot / height))


def rung_lines(results: Results, catalogue: Catalogue, problem: Problem) -> list[Line]:
    colours = style.rung_colours(catalogue)
    lines = []
    for rung in catalogue.rungs:
        rows = [row for row in results.timed() if (row.kind, row.id) == ("rung", rung.id)]
        rows = [row for row in rows if not row.ablation and alike(row, problem)]
        look = {"color": colours[rung.id], "linewidth": 1.7, "marker": "o", "markersize": 3.5}
        lines.append(Line(rung.title, by_length(rows), look))
    return [line for line in lines if line.rows]


def peer_lines(results: Results, problem: Problem) -> list[Line]:
    lines = []
    for id in results.peers():
        rows = [row for row in results.timed() if (row.kind, row.id) == ("peer", id)]
        rows = [row for row in rows if alike(row, problem)]
        dashes = style.PEER_DASHES.get(id, (3, 2))
        look = {"color": style.INK, "linewidth": 1.2, "dashes": dashes}
        lines.append(Line(PEER_NAMES.get(id, id), by_length(rows), look))
    return [line for line in lines if line.rows]


def highest(results: Results, problem: Problem, lines: list[Line]) -> float:
    ceiling = results.matmul(problem)
    values = [value for line in lines for value in line.values]
    return max(values + ([ceiling.tflops] if ceiling else []))


def set_axes(axes: Axes, seqs: list[int], top: float, layout: Layout) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(seqs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(seqs, [layout.number(seq) for seq in seqs])
    axes.set_xlim(seqs[0] * (0.8 if layout.is_narrow else 0.93), seqs[-1])
    axes.set_ylim(0, top * 1.05)
    axes.set_xlabel("sequence length N (log scale)", size=9)


def draw_ceiling(axes: Axes, ceiling: Row | None) -> None:
    if ceiling is None:
        return
    axes.axhline(ceiling.tflops, color=style.MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)))
    axes.annotate(
        f"{PEER_NAMES.get(ceiling.id, ceiling.id)} {ceiling.tflops:.0f}",
        (0, ceiling.tflops),
        xycoords=axes.get_yaxis_transform(),
        xytext=(2, 3),
        textcoords="offset points",
        size=8.5,
        color=style.MUTED,
        bbox={"facecolor": style.BACKGROUND, "edgecolor": "none", "pad": 0.6},
    )


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
