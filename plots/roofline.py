#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: arithmetic intensity against the achieved rate, under the ceilings measured on the card."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import intensity
import limits
import status
import style
from intensity import Ceilings
from ladder import PEER_NAMES, Catalogue, LadderError, Problem, Results, Row
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

# Narrow, with large letters: at the width of a phone they are still read.
WIDTH = 6.6
LEFT, RIGHT, TOP, BOTTOM = 0.55, 2.3, 1.78, 1.06  # inches around the plot
LABEL = 0.2  # inches between the labels at the right
MINIMUM = 3.2  # inches of plot height
GAP, VALUE = 0.26, 2.24  # inches right of the plot: where a label begins, where its number ends
SIZE = 10.5
KEY = """\
Dot: K and V read once for each tile of Q, or S and P written and read.
Ring: every tensor moved once. The truth lies between: the more L2
serves, the nearer to the ring."""


@dataclass(frozen=True)
class Point:
    name: str
    tflops: float
    colour: style.Colour | str
    low: float | None  # intensity without any cache; None where the tile is not known
    high: float  # with every tensor moved once; the same as low where S and P are moved


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    roof = intensity.ceilings(results, problem)
    points = rung_points(results, catalogue, problem) + peer_points(results, problem)
    if not points:
        raise LadderError(f"{results.name} has no time at {problem.label}")
    plot = max(MINIMUM, LABEL * (len(points) + len(roof.arithmetic)) * 1.08)
    height = plot + TOP + BOTTOM
    figure = style.plt.figure(figsize=(WIDTH, height))
    box = (LEFT / WIDTH, BOTTOM / height, (WIDTH - LEFT - RIGHT) / WIDTH, plot / height)
    axes = figure.add_axes(box)
    set_axes(axes, points, roof)
    draw_roof(axes, roof)
    for point in points:
        draw_point(axes, point)
    label_ends(axes, points, roof)
    key = f"{KEY}\n{slopes(roof)}"
    style.titles(figure, f"Roofline, {results.gpu}", f"TFLOPS at {problem.label}", key, 9.5)
    style.footer(figure, results, note, lines=96)
    return figure


def slopes(roof: Ceilings) -> str:
    """What the slanted lines are."""
    memory = f"Slanted: {roof.traffic} at {roof.gbs:.0f} GB/s, which meets the roof at"
    memory += f" {roof.ridge:.3g} FLOP/byte"
    if roof.l2_gbs is None:
        return f"{memory}\n({limits.NOT_MEASURED})."
    return f"{memory};\ndashed: reads from L2 at {roof.l2_gbs:.0f} GB/s."


def rung_points(results: Results, catalogue: Catalogue, problem: Problem) -> list[Point]:
    """Slower ones are left out: a loop order of their own may move other bytes than these."""
    colours = style.rung_colours(catalogue)
    points = []
    for rung in catalogue.rungs:
        row = results.rung(rung.id, problem)
        if row is None or status.change_of(rung, results, catalogue) == status.SLOWER:
            continue
        points.append(point_of(rung.title, row, colours[rung.id], intensity.uncached(row)))
    return points


def peer_points(results: Results, problem: Problem) -> list[Point]:
    """Of a fused kernel of others the tile is not known."""
    rows = [row for id in results.peers() if (row := results.peer(id, problem))]
    names = (PEER_NAMES.get(row.id, row.id) for row in rows)
    tiled = (intensity.uncached(row) if intensity.stores_scores(row) else None for row in rows)
    return [point_of(name, row, style.INK, low) for name, row, low in zip(names, rows, tiled)]


def point_of(name: str, row: Row, colour: style.Colour | str, low: float | None) -> Point:
    once = intensity.once(row.problem).intensity
    high = low if low is not None and intensity.stores_scores(row) else once
    return Point(name, row.tflops, colour, low, high)


def set_axes(axes: Axes, points: list[Point], roof: Ceilings) -> None:
    style.hairline_grid(axes, "both")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    places = [point.low or point.high for point in points] + [roof.ridge]
    axes.set_xlim(min(places) / 3, max(point.high for point in points) * 1.5)
    rates = [point.tflops for point in points]
    axes.set_ylim(min(rates) / 1.6, max([*rates, roof.tflops]) * 1.35)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("arithmetic intensity, FLOP/byte (log scale)", size=SIZE)
    axes.tick_params(labelsize=SIZE)


def draw_roof(axes: Axes, roof: Ceilings) -> None:
    low, high = axes.get_xlim()
    look = {"color": style.MUTED, "linewidth": 1.4, "zorder": 2}
    axes.plot([low, roof.ridge, high], [low * roof.gbs / 1e3, roof.tflops, roof.tflops], **look)
    for _, tflops in roof.arithmetic[1:]:
        axes.plot([1e3 * tflops / roof.gbs, high], [tflops] * 2, **look)
    if roof.l2_gbs is not None:
        ridge = 1e3 * roof.tflops / roof.l2_gbs
        dashed = look | {"linestyle": (0, (4, 3))}
        axes.plot([low, ridge], [low * roof.l2_gbs / 1e3, roof.tflops], **dashed)


def draw_point(axes: Axes, point: Point) -> None:
    colour = point.colour
    if point.low is not None:
        axes.plot([point.low, point.high], [point.tflops] * 2, color=colour, linewidth=0.7, zorder=3)
        axes.plot(point.low, point.tflops, marker="o", markersize=5, color=colour, zorder=4)
    if point.low != point.high:
        look = {"markerfacecolor": style.BACKGROUND, "markeredgecolor": colour}
        axes.plot(point.high, point.tflops, marker="o", markersize=5, zorder=4, **look)


def label_ends(axes: Axes, points: list[Point], roof: Ceilings) -> None:
    """Names and rates in a column right of the plot, moved apart, each with a line to what it names."""
    ends = [(point.name, point.high, point.tflops, point.colour) for point in points]
    right = axes.get_xlim()[1]
    ends += [(name, right, tflops, style.MUTED) for name, tflops in roof.arithmetic]
    panel = axes.get_position().height * axes.figure.get_figheight()
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [to_axes.transform((x, y))[1] for _, x, y, _ in ends]
    begin, number = style.right_of(axes, GAP), style.right_of(axes, VALUE)
    for (name, x, y, colour), place in zip(ends, style.spread_labels(heights, LABEL / panel, 0.0, 1.0)):
        axes.annotate(
            "",
            (x, y),
            xytext=(begin - 0.005, place),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkB": 3.5},
            annotation_clip=False,
        )
        text = {"transform": axes.transAxes, "va": "center", "size": SIZE, "color": colour}
        axes.text(begin, place, name, weight="bold", **text)
        axes.text(number, place, f"{y:.3g}", ha="right", **text)


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
