#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: TFLOPS against the spread of the scores, a line for every rung and peer."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import seq_len
import style
from ladder import PEER_NAMES, Catalogue, LadderError, Problem, Results, Row, timed_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RISING = "rising"
KEY = (
    "Dashed: other implementations, timed in the same run."
    " Rising: the row maximum grows in every key block."
)


@dataclass(frozen=True)
class Line:
    """TFLOPS at the places on the axis where there is a time."""

    name: str
    places: list[int]
    values: list[float]
    look: dict[str, Any]

    @property
    def last(self) -> tuple[float, float]:
        return self.places[-1], self.values[-1]


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(seq_len.WIDE, results, catalogue, problem, note)


def draw_narrow(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(seq_len.NARROW, results, catalogue, problem, note)


def draw_in(
    layout: seq_len.Layout, results: Results, catalogue: Catalogue, problem: Problem, note: str
) -> Figure:
    axis = problems_of(results, problem)
    if len(axis) < 2:
        raise LadderError(f"{results.name} has fewer than two spreads like {problem.label}")
    lines = rung_lines(results, catalogue, axis) + peer_lines(results, axis)
    figure, axes = seq_len.make_figure(len(lines), layout)
    style.hairline_grid(axes, "y")
    for line in lines:
        draw_line(axes, line, axis)
    set_axes(axes, axis, max(value for line in lines for value in line.values))
    style.label_ends(axes, [style.End(line.name, line.look["color"], line.last) for line in lines])
    subtitle = f"TFLOPS at {problem.plain.label}"
    title = f"Spread of the scores, {results.gpu}"
    key = layout.wrapped(f"{timed_text(results)}. {KEY}")
    style.titles(figure, title, subtitle, key)
    style.footer(figure, results, note, lines=layout.footer_lines)
    return figure


def problems_of(results: Results, problem: Problem) -> list[Problem]:
    """By spread, and the rising scores last."""
    found = {row.problem for row in results.timed() if row.problem.plain == problem.plain}
    spreads = sorted((each for each in found if each.inputs == "normal"), key=lambda p: p.spread)
    return spreads + [each for each in found if each == replace(problem.plain, inputs=RISING)]


def line_of(name: str, rows: list[Row | None], look: dict[str, Any]) -> Line:
    timed = [(place, row.tflops) for place, row in enumerate(rows) if row]
    return Line(name, [place for place, _ in timed], [value for _, value in timed], look)


def rung_lines(results: Results, catalogue: Catalogue, axis: list[Problem]) -> list[Line]:
    colours = style.rung_colours(catalogue)
    lines = []
    for rung in catalogue.rungs:
        look = {"color": colours[rung.id], "linewidth": 1.7, "marker": "o", "markersize": 3.5}
        lines.append(line_of(rung.title, [results.rung(rung.id, each) for each in axis], look))
    return [line for line in lines if line.places]


def peer_lines(results: Results, axis: list[Problem]) -> list[Line]:
    lines = []
    for id in results.peers():
        dashes = style.PEER_DASHES.get(id, (3, 2))
        look = {"color": style.INK, "linewidth": 1.2, "dashes": dashes, "marker": "."}
        rows = [results.peer(id, each) for each in axis]
        lines.append(line_of(PEER_NAMES.get(id, id), rows, look))
    return [line for line in lines if line.places]


def draw_line(axes: Axes, line: Line, axis: list[Problem]) -> None:
    """Rising scores have no place among the spreads: only a thin line leads there."""
    apart = [place for place in line.places if axis[place].inputs == RISING]
    points = list(zip(line.places, line.values))
    whole = points[: len(points) - len(apart)]
    axes.plot(*zip(*(whole or points)), clip_on=False, zorder=3, **line.look)
    if apart and whole:
        thin = line.look | {"linewidth": 0.6, "alpha": 0.6, "dashes": (1, 2)}
        axes.plot(*zip(*points[-2:]), clip_on=False, zorder=2, **thin)


def set_axes(axes: Axes, axis: list[Problem], top: float) -> None:
    names = [RISING if each.inputs == RISING else f"{each.spread:g}" for each in axis]
    axes.set_xticks(range(len(axis)), names)
    axes.set_xlim(-0.25, len(axis) - 1)
    axes.set_ylim(0, top * 1.05)
    axes.set_xlabel("standard deviation of the scores", size=9)


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
