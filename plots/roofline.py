#!/usr/bin/env python3
"""Chart: arithmetic intensity against the achieved rate, under the ceilings measured on the card."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import intensity
import style
from intensity import Ceilings
from ladder import PEER_NAMES, Catalogue, LadderError, Problem, Results, Row
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

SINGLE = "1,16,8192,64,float32"
WIDTH = 9.6
LEFT, RIGHT, TOP, BOTTOM = 0.72, 1.75, 1.10, 1.02  # inches around the plot
LABEL = 0.155  # inches between the labels at the right
MINIMUM = 3.6  # inches of plot height
KEY = (
    "Dot: K and V read once for each tile of Q, or S and P written and read. "
    "Ring: every tensor moved once. The truth lies between, nearer the ring the more L2 serves."
)


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
    plot = max(MINIMUM, LABEL * len(points) * 1.15)
    height = plot + TOP + BOTTOM
    figure = style.plt.figure(figsize=(WIDTH, height))
    box = (LEFT / WIDTH, BOTTOM / height, (WIDTH - LEFT - RIGHT) / WIDTH, plot / height)
    axes = figure.add_axes(box)
    set_axes(axes, points, roof)
    draw_roof(axes, roof)
    for point in points:
        draw_point(axes, point)
    label_points(axes, points)
    style.titles(figure, f"Roofline, {results.gpu}", f"TFLOPS at {problem.label}", KEY)
    style.footer(figure, results, note)
    return figure


def rung_points(results: Results, catalogue: Catalogue, problem: Problem) -> list[Point]:
    """Regressions are left out: a loop order of their own may move other bytes than these."""
    colours = style.rung_colours(catalogue)
    points = []
    for rung in catalogue.rungs:
        row = results.rung(rung.id, problem)
        if row is None or rung.status == "regression":
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
    axes.set_xlabel("arithmetic intensity, FLOP/byte (log scale)", size=9)


def draw_roof(axes: Axes, roof: Ceilings) -> None:
    low, high = axes.get_xlim()
    look = {"color": style.MUTED, "linewidth": 1.1, "zorder": 2}
    axes.plot([low, roof.ridge, high], [low * roof.gbs / 1e3, roof.tflops, roof.tflops], **look)
    words = (
        f"matrix product {roof.tflops:.3g} TFLOPS, copy {roof.gbs:.0f} GB/s: "
        f"they meet at {roof.ridge:.3g} FLOP/byte"
    )
    text = {"size": 8.5, "color": style.MUTED, "ha": "left", "va": "bottom", "zorder": 5}
    text |= {"bbox": {"facecolor": style.BACKGROUND, "edgecolor": "none", "pad": 0.6}}
    axes.annotate(words, (low, roof.tflops), xytext=(3, 3), textcoords="offset points", **text)


def draw_point(axes: Axes, point: Point) -> None:
    colour = point.colour
    if point.low is not None:
        axes.plot([point.low, point.high], [point.tflops] * 2, color=colour, linewidth=0.7, zorder=3)
        axes.plot(point.low, point.tflops, marker="o", markersize=5, color=colour, zorder=4)
    if point.low != point.high:
        look = {"markerfacecolor": style.BACKGROUND, "markeredgecolor": colour}
        axes.plot(point.high, point.tflops, marker="o", markersize=5, zorder=4, **look)


def label_points(axes: Axes, points: list[Point]) -> None:
    """Name and rate right of the plot, moved apart, with a hairline to the point."""
    panel = axes.get_position().height * axes.figure.get_figheight()
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [to_axes.transform((point.high, point.tflops))[1] for point in points]
    places = style.spread_labels(heights, LABEL / panel, 0.0, 1.0)
    for point, place in zip(points, places):
        axes.annotate(
            "",
            (point.high, point.tflops),
            xytext=(1.03, place),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": point.colour, "linewidth": 0.5, "shrinkB": 4},
            annotation_clip=False,
        )
        text = {"transform": axes.transAxes, "va": "center", "size": 8.5, "color": point.colour}
        axes.text(1.035, place, point.name, weight="bold", **text)
        axes.text(1.235, place, f"{point.tflops:.3g}", ha="right", **text)


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
