#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: every rung in percent of its parent, the idea's share apart from the tile's."""

from __future__ import annotations

import math
import sys

import status
import style
from ladder import Catalogue, LadderError, Problem, Results, Step, step_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import blended_transform_factory

BAR = 0.58  # height of a bar, in rows
ROW = 0.335  # inches
WIDTH = 9.6
LEFT, RIGHT, TOP, BOTTOM = 2.5, 2.02, 1.3, 0.95  # inches around the bars
KEY = (
    "Solid: against the parent; where the parent was timed at this rung's tile, against that."
    " Hatched: what the tile alone did."
)
RUNS_KEY = "\nThin: 95 % intervals over the runs."
TICKS = (
    0.25,
    0.5,
    0.7,
    0.8,
    0.9,
    0.95,
    1.0,
    1.05,
    1.1,
    1.2,
    1.35,
    1.5,
    2.0,
    3.0,
    4.0,
    6.0,
    8.0,
    12.0,
)
TICK_WIDTH = 0.55  # inches that the label of a tick needs


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    steps = [step_of(rung, catalogue, results, problem) for rung in catalogue.rungs]
    known = [step for step in steps if step is not None]
    if not known:
        raise LadderError(f"{results.name} has no rung with its parent at {problem.label}")
    figure, axes = make_figure(len(known))
    colours = style.rung_colours(catalogue)
    found = status.statuses(results, catalogue)
    set_axes(axes, known)
    style.name_change_columns(axes)
    for place, step in enumerate(known):
        draw_step(axes, place, step, found[step.rung.id], colours[step.rung.id])
    style.titles(
        figure,
        f"Step by step, {results.gpu}",
        f"TFLOPS in percent of the parent's at {problem.label}",
        KEY + (RUNS_KEY if results.runs else ""),
    )
    style.footer(figure, results, note)
    return figure


def make_figure(count: int) -> tuple[Figure, Axes]:
    height = TOP + BOTTOM + ROW * count
    figure = style.plt.figure(figsize=(WIDTH, height))
    width = WIDTH - LEFT - RIGHT
    return figure, figure.add_axes(
        (LEFT / WIDTH, BOTTOM / height, width / WIDTH, ROW * count / height)
    )


def tile_factor(step: Step) -> float:
    """What the tile alone did to the parent; 1 where it did not change."""
    return step.factor / step.idea_factor


def set_axes(axes: Axes, steps: list[Step]) -> None:
    ends = [factor for step in steps for factor in (1.0, step.factor, tile_factor(step))]
    ends += [end for step in steps if step.change for end in (step.change.low, step.change.high)]
    low, high = min(ends) / 1.08, max(ends) * 1.08
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(readable_ticks(low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    axes.set_xlabel("percent of the parent (log scale)", size=9)
    axes.set_ylim(len(steps) - 0.5, -0.5)
    axes.set_yticks([])
    style.hairline_grid(axes, "x")
    axes.axvline(1.0, color=style.INK, linewidth=1.0, zorder=3)


def readable_ticks(low: float, high: float) -> list[float]:
    """100 % first, then outwards in both directions whatever has room for its label."""
    gap = TICK_WIDTH / (WIDTH - LEFT - RIGHT) * math.log(high / low)
    kept = [1.0]
    for tick in sorted(TICKS, key=lambda tick: abs(math.log(tick))):
        if low < tick < high and all(abs(math.log(tick / other)) >= gap for other in kept):
            kept.append(tick)
    return kept


def draw_step(
    axes: Axes, place: int, step: Step, kind: status.Status, full: style.Colour
) -> None:
    colour = full if kind.is_up else style.pale(full)
    tile = tile_factor(step)
    if step.parent_at_tile is None:
        middle = place
        bar(axes, place, BAR, 1.0, step.factor, color=colour)
    else:  # two lanes: the shares may point in opposite directions
        look = {"facecolor": "none", "edgecolor": style.MUTED, "hatch": "/////"}
        bar(axes, place - BAR / 4, BAR / 2, 1.0, tile, **look)
        middle = place + BAR / 4
        bar(axes, middle, BAR / 2, tile, step.factor, color=colour)
    if step.change:
        style.error_bar(axes, middle, step.factor, step.change.low, step.change.high)
    column = blended_transform_factory(axes.transAxes, axes.transData)
    left = -(LEFT - 0.2) / (WIDTH - LEFT - RIGHT)
    text = {"transform": column, "va": "center_baseline"}
    axes.text(left, place, step.rung.title, weight="bold", **text)
    under = {"ha": "right", "size": 8, "color": style.MUTED}
    axes.text(-0.012, place, kind.text if kind.is_known else "", **under, **text)
    style.draw_changes(axes, place, step)


def bar(axes: Axes, place: float, height: float, start: float, end: float, **look: object) -> None:
    axes.barh(place, end - start, left=start, height=height, linewidth=0.6, zorder=2, **look)


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
