# SPDX-License-Identifier: MIT
"""Chart: arithmetic intensity against the achieved rate, under the ceilings measured on the card."""

from __future__ import annotations

from dataclasses import dataclass

import colours
import intensity
import limits
import lines
import status
import style
from intensity import Ceilings
from ladder import PEER_NAMES, SHORT_NAMES, Catalogue, LadderError, Problem, Results, Row, Rung
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from style import WIDE, Form, Room

HEIGHT = 4.6  # inches of the plot
LABEL = 0.2  # inches between the labels at the right
GAP = 0.2  # inches right of the plot where labels begin
KEY = "Dot: K and V read once for each tile of Q, or S and P written and read. Ring: every tensor"
KEY += " moved once. The truth lies between. Five rungs are named, and grey are the others."


@dataclass(frozen=True)
class Point:
    name: str
    tflops: float
    rung: Rung | None  # None: of a peer
    low: float | None  # intensity without any cache; None where the tile is not known
    high: float  # with every tensor moved once; the same as low where S and P are moved


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    roof = intensity.ceilings(results, problem)
    rungs, peers = rung_points(results, catalogue, problem), peer_points(results, problem, form)
    if not rungs + peers:
        raise LadderError(f"{results.name} has no time at {problem.label}")
    room = Room(form.either(0.6, 0.55), form.either(2.5, 2.15))
    words = [problem.label, KEY, slopes(roof)]
    title = f"Roofline, {results.gpu}"
    figure, axes = style.page(form, room, HEIGHT, title, words, results, note)
    set_axes(axes, rungs + peers, roof, form)
    draw_roof(axes, roof)
    named = lines.outstanding([point.tflops for point in rungs]) if rungs else {}
    ends = [(point, style.INK) for point in peers]
    for index, point in enumerate(rungs):
        draw_point(axes, point, named.get(index))
        ends += [(point, named[index])] if index in named else []
    for point in peers:
        draw_point(axes, point, style.INK)
    label_ends(axes, ends, roof, form)
    return figure


def slopes(roof: Ceilings) -> str:
    """What the slanted lines are."""
    memory = f"Slanted: {roof.traffic} at {roof.gbs:.0f} GB/s, which meets the roof at"
    memory += f" {roof.ridge:.3g} FLOP/byte"
    if roof.l2_gbs is None:
        return f"{memory} ({limits.NOT_MEASURED})."
    return f"{memory}; dashed: reads from L2 at {roof.l2_gbs:.0f} GB/s."


def rung_points(results: Results, catalogue: Catalogue, problem: Problem) -> list[Point]:
    """Slower ones are left out: a loop order of their own may move other bytes than these."""
    points = []
    for rung in catalogue.rungs:
        row = results.rung(rung.id, problem)
        if row is None or status.change_of(rung, results, catalogue) == status.SLOWER:
            continue
        points.append(point_of(rung.title, row, rung, intensity.uncached(row)))
    return points


def peer_points(results: Results, problem: Problem, form: Form) -> list[Point]:
    """Of a fused kernel of others the tile is not known."""
    names = PEER_NAMES | (SHORT_NAMES if form.is_narrow else {})
    rows = [row for id in results.peers() if (row := results.peer(id, problem))]
    tiled = (intensity.uncached(row) if intensity.stores_scores(row) else None for row in rows)
    return [point_of(names.get(row.id, row.id), row, None, low) for row, low in zip(rows, tiled)]


def point_of(name: str, row: Row, rung: Rung | None, low: float | None) -> Point:
    once = intensity.once(row.problem).intensity
    high = low if low is not None and intensity.stores_scores(row) else once
    return Point(name, row.tflops, rung, low, high)


def set_axes(axes: Axes, points: list[Point], roof: Ceilings, form: Form) -> None:
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
    axes.set_xlabel(form.either("arithmetic intensity, ", "") + "FLOP/byte (log scale)")


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


def draw_point(axes: Axes, point: Point, colour: str | None) -> None:
    """`colour` is that of a point that is named; the others have a grey dot, or a ring."""
    at = [point.low or point.high, point.high if colour else point.low or point.high]
    rates = [point.tflops] * 2
    strong = colour or colours.LINE
    if point.low is not None:
        axes.plot(at, rates, color=strong, linewidth=0.9, zorder=3)
        axes.plot(point.low, point.tflops, marker="o", markersize=6, color=strong, zorder=4)
    if point.low is None or (colour and point.low != point.high):
        look = {"markerfacecolor": style.BACKGROUND, "markeredgecolor": strong}
        axes.plot(point.high, point.tflops, marker="o", markersize=6, zorder=4, **look)
    if point.rung:
        style.link_line(axes, at, rates, point.rung, f"{point.tflops:.3g} TFLOPS")


def label_ends(
    axes: Axes, points: list[tuple[Point, str]], roof: Ceilings, form: Form
) -> None:
    """Rates and names right of the plot, moved apart, each with a line to what it names."""
    ends = [(point.name, point.high, point.tflops, colour) for point, colour in points]
    right = axes.get_xlim()[1]
    for name, tflops in roof.arithmetic:
        ends.append((form.either(name, name.removeprefix("limit: ")), right, tflops, style.MUTED))
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [to_axes.transform((x, y))[1] for _, x, y, _ in ends]
    begin = style.right_of(axes, GAP)
    places = style.spread_labels(heights, LABEL / HEIGHT, 0.0, 1.02)
    for (name, x, y, colour), place in zip(ends, places):
        axes.annotate(
            "",
            (x, y),
            xytext=(begin - 0.005, place),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkB": 3.5},
            annotation_clip=False,
        )
        text = {"transform": axes.transAxes, "va": "center", "size": style.SMALL}
        text |= {"weight": form.either("bold", "normal")}
        axes.text(begin, place, f"{name}: {y:.3g}", color=colour, **text)
