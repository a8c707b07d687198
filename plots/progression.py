#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: TFLOPS of every rung on one problem, beside FA2, cuDNN and the matmul ceiling."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass

import limits
import status
import style
from ladder import (
    PEER_NAMES,
    Catalogue,
    Problem,
    Results,
    Row,
    Rung,
    Step,
    level,
    percent,
    step_of,
    timed_text,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

BAR = 0.66  # height of a bar, in rows
ROW = 0.335  # inches

KEY = (
    "{} with {}. Dashed outline: the parent at this rung's tile."
    " Pale: flat or slower, kept for its lesson."
)
SHORT_NAMES = {"fa2": "FA2", "fa3": "FA3", "cublas": "cuBLAS"}


@dataclass(frozen=True)
class Layout:
    """Inches of the figure and around the bars."""

    width: float
    left: float
    right: float
    top: float
    bottom: float
    name_width: int  # points that the name of a reference line takes
    is_narrow: bool  # for a phone: no tiles, no second column of changes

    @property
    def bars(self) -> float:
        return self.width - self.left - self.right

    def key(self, results: Results) -> str:
        whiskers = "95 % intervals" if results.runs else "p10 to p90"
        text = KEY.format(timed_text(results), whiskers)
        if not self.is_narrow:
            return text
        return textwrap.fill(f"{text} Right: change against parent.", 60)


WIDE = Layout(9.74, 2.36, 2.02, 1.46, 1.22, 86, False)
NARROW = Layout(4.7, 1.5, 0.72, 1.98, 1.6, 54, True)

References = list[tuple[str, Row]]


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(WIDE, results, catalogue, problem, note)


def draw_narrow(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(NARROW, results, catalogue, problem, note)


def draw_in(
    layout: Layout, results: Results, catalogue: Catalogue, problem: Problem, note: str
) -> Figure:
    rungs = style.rungs_with_times(results, catalogue, problem)
    references = reference_rows(results, problem, layout)
    figure, axes = make_figure(len(rungs), layout)
    axes.set_xlim(0, highest(results, rungs, references, problem) * 1.06)
    axes.set_ylim(len(rungs) - 0.5, -0.5)
    style.hairline_grid(axes, "x")
    colours = style.rung_colours(catalogue)
    kinds = status.statuses(results, catalogue)
    for place, rung in enumerate(rungs):
        row = results.rung(rung.id, problem)
        assert row is not None
        step = step_of(rung, catalogue, results, problem)
        outline = step.parent_at_tile.tflops if step and step.parent_at_tile else 0.0
        kind = kinds[rung.id]
        is_plain = (kind.is_up and not kind.branch) or not kind.is_known
        words = "" if layout.is_narrow or is_plain else kind.text
        draw_bar(axes, place, row, ends_of(results, row), kind, words, colours[rung.id], outline)
        label_rung(axes, place, rung, row, layout)
        draw_step(axes, place, step, layout)
    axes.set_yticks([])
    draw_limit_axis(axes, results, problem)
    draw_references(figure, axes, references, layout)
    if not layout.is_narrow:
        style.name_change_columns(axes)
    subtitle = f"TFLOPS at {problem.label}"
    style.titles(figure, f"Flash Ladder on {results.gpu}", subtitle, layout.key(results))
    style.footer(figure, results, note, lines=52 if layout.is_narrow else None)
    return figure


def make_figure(count: int, layout: Layout) -> tuple[Figure, Axes]:
    height = layout.top + layout.bottom + ROW * count
    figure = style.plt.figure(figsize=(layout.width, height))
    across = layout.left / layout.width, layout.bars / layout.width
    box = (across[0], layout.bottom / height, across[1], ROW * count / height)
    return figure, figure.add_axes(box)


def highest(results: Results, rungs: list[Rung], references: References, problem: Problem) -> float:
    rows = [results.rung(rung.id, problem) for rung in rungs] + [row for _, row in references]
    return max(ends_of(results, row)[1] for row in rows if row is not None)


def ends_of(results: Results, row: Row) -> tuple[float, float]:
    """TFLOPS at the ends of the whiskers: where the mean of the runs is, else the launches."""
    mean = level(results, row)
    if mean is None:
        return row.spread
    return row.tflops * mean.low / mean.mean, row.tflops * mean.high / mean.mean


def reference_rows(results: Results, problem: Problem, layout: Layout) -> References:
    """(name, row) of the peers on this problem and of the ceiling."""
    names = PEER_NAMES | (SHORT_NAMES if layout.is_narrow else {})
    space = "\n" if layout.is_narrow else " "
    rows = [results.peer(id, problem) for id in results.peers()] + [results.matmul(problem)]
    found = [row for row in rows if row]
    return [(names.get(row.id, row.id).replace(" ", space), row) for row in found]


def draw_bar(
    axes: Axes,
    place: int,
    row: Row,
    ends: tuple[float, float],
    kind: status.Status,
    words: str,
    colour: style.Colour,
    outline: float,
) -> None:
    """A rung with its value and words; they stand behind the end of an outline that would cross
    them."""
    slow, fast = ends
    fill = colour if kind.is_up else style.pale(colour)
    axes.barh(place, row.tflops, height=BAR, facecolor=fill, edgecolor=colour, zorder=2)
    style.error_bar(axes, place, row.tflops, slow, fast)
    label = 0.12 * axes.get_xlim()[1]
    is_long = row.tflops > label + (outline if outline < label else 0)
    inside = outline if outline < label else 0
    value = f"{row.tflops:.0f}" if row.tflops >= 99.5 else f"{row.tflops:.1f}"
    behind = {"facecolor": style.BACKGROUND, "edgecolor": "none", "pad": 0.8}  # a reference line
    axes.annotate(
        f"{value}  {words}".rstrip(),
        (inside if is_long else max(fast, outline), place),
        xytext=(7, 0),
        textcoords="offset points",
        va="center_baseline",
        color="white" if is_long and kind.is_up else style.INK,
        weight="bold",
        zorder=5,
        bbox=None if is_long else behind,
    )


def label_rung(axes: Axes, place: int, rung: Rung, row: Row, layout: Layout) -> None:
    """Name and tile at the left."""
    column = blended_transform_factory(axes.transAxes, axes.transData)
    left = -(layout.left - (0.08 if layout.is_narrow else 0.2)) / layout.bars
    axes.text(left, place, rung.title, transform=column, va="center_baseline", weight="bold")
    if layout.is_narrow:
        return
    axes.text(
        -0.012,
        place,
        row.variant,
        transform=column,
        ha="right",
        va="center_baseline",
        size=8,
        color=style.MUTED,
    )


def draw_step(axes: Axes, place: int, step: Step | None, layout: Layout) -> None:
    """Change against the parent; where the tile changed too, the parent at this tile."""
    if step is None:
        return
    if layout.is_narrow:
        column = blended_transform_factory(axes.transAxes, axes.transData)
        place_of = style.right_of(axes, layout.right - 0.08)
        text = {"transform": column, "va": "center_baseline", "ha": "right", "size": 9}
        axes.text(place_of, place, percent(step.factor), **text)
    else:
        style.draw_changes(axes, place, step)
    if step.parent_at_tile is not None:
        axes.barh(
            place,
            step.parent_at_tile.tflops,
            height=BAR + 0.18,
            facecolor="none",
            edgecolor=style.INK,
            linewidth=0.9,
            linestyle=(0, (2.5, 1.5)),
            zorder=3,
        )


def draw_limit_axis(axes: Axes, results: Results, problem: Problem) -> None:
    """TFLOPS once more, in percent of what a bare loop reaches on this card."""
    family = limits.FAMILIES[problem.dtype][0]
    measured = limits.Limits.beside(results)
    limit = measured.of_family(family) if measured else None
    if limit is None:
        axes.set_xlabel(f"TFLOPS ({limits.NOT_MEASURED})", size=9)
        return
    axes.set_xlabel("TFLOPS", size=9, labelpad=1)
    below = -0.46 / (axes.figure.get_figheight() * axes.get_position().height)
    steady = any(row.steady for row in results.rows)
    whole = limit.back_to_back if steady else limit.spaced
    ticks = axes.secondary_xaxis(
        below,
        functions=(lambda rate: 100 * rate / whole, lambda part: part * whole / 100),
    )
    ticks.spines["bottom"].set_visible(False)
    ticks.tick_params(length=0)
    name = f"percent of the limit: bare {limits.NAMES[family]}, {whole:.3g} TFLOPS"
    ticks.set_xlabel(name, size=9, labelpad=1, color=style.MUTED)


def draw_references(
    figure: Figure, axes: Axes, references: References, layout: Layout
) -> None:
    """A vertical line each, named above the bars; the names keep clear of each other."""
    points = layout.bars * 72 / axes.get_xlim()[1]  # a TFLOPS in points
    limit = axes.get_xlim()[1] - layout.name_width / 3 / points  # clear of the columns at the right
    places = style.spread_labels(
        [row.tflops for _, row in references], layout.name_width / points, high=limit
    )
    for (name, row), place in zip(references, places):
        axes.axvline(row.tflops, color=style.INK, linewidth=1, linestyle=(0, (4, 2)), zorder=1.5)
        axes.annotate(
            f"{name}\n{row.tflops:.0f}",
            (row.tflops, 1.0),
            xycoords=blended_transform_factory(axes.transData, axes.transAxes),
            xytext=((place - row.tflops) * points, 13),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "linewidth": 0.7, "shrinkB": 0, "relpos": (0.5, 0)},
            ha="center",
            va="bottom",
            size=8.5,
            linespacing=1.25,
        )


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
