# SPDX-License-Identifier: MIT
"""Chart: TFLOPS against the spread of the scores, a line for every rung and peer."""

from __future__ import annotations

from dataclasses import replace

import lines
import style
from ladder import Catalogue, LadderError, Problem, Results, Row, timed_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import WIDE, Form

RISING = "rising"
KEY = "Dashed: other implementations. Rising: the row maximum grows in every key block."
KEY += " The axis does not begin at 0."

LEAST = 0.5  # of the highest: a line below would leave half of the chart empty


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    axis = problems_of(results, problem)
    if len(axis) < 2:
        raise LadderError(f"{results.name} has fewer than two spreads like {problem.label}")
    drawn = lines_of(results, catalogue, axis, form)
    most = max(value for line in drawn for value in line.ys)
    low = [line for line in drawn if max(line.ys) < LEAST * most]
    drawn = [line for line in drawn if line not in low]
    words = [problem.plain.label, f"{timed_text(results)}. {KEY}"]
    words += [f"Below: {each.name}, {min(each.ys):.0f} to {max(each.ys):.0f}." for each in low]
    title = f"TFLOPS by spread, {results.gpu}"
    room = lines.ROOM[form.is_narrow]
    figure, axes = style.page(form, room, lines.HEIGHT, title, words, results, note)
    style.hairline_grid(axes, "y")
    values = [value for line in drawn for value in line.ys]
    set_axes(axes, axis, min(values), max(values))

    def whole(line: lines.Line) -> int:
        """Rising scores have no place among the spreads: only a thin line leads there."""
        plain = [place for place in line.xs if axis[int(place)].inputs != RISING]
        return len(plain) or len(line.xs)

    style.label_ends(axes, lines.draw(axes, drawn, whole=whole), form)
    return figure


def problems_of(results: Results, problem: Problem) -> list[Problem]:
    """By spread, and the rising scores last."""
    found = {row.problem for row in results.timed() if row.problem.plain == problem.plain}
    spreads = sorted((each for each in found if each.inputs == "normal"), key=lambda p: p.spread)
    return spreads + [each for each in found if each == replace(problem.plain, inputs=RISING)]


def lines_of(
    results: Results, catalogue: Catalogue, axis: list[Problem], form: Form
) -> list[lines.Line]:
    def points(rows: list[Row]) -> tuple[list[float], list[float]]:
        known = {row.problem: row.tflops for row in rows}
        timed = [place for place, each in enumerate(axis) if each in known]
        return [float(place) for place in timed], [known[axis[place]] for place in timed]

    found = lines.of_rungs(results, catalogue.rungs, points, "TFLOPS")
    return found + lines.of_peers(results, points, form)


def set_axes(axes: Axes, axis: list[Problem], low: float, high: float) -> None:
    names = [RISING if each.inputs == RISING else f"{each.spread:g}" for each in axis]
    axes.set_xticks(range(len(axis)), names)
    axes.set_xlim(-0.25, len(axis) - 1)
    margin = 0.08 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("standard deviation of the scores")
