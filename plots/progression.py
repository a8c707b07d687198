# SPDX-License-Identifier: MIT
"""Chart: the rate of every rung on one problem, beside other implementations and what the card can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import colours
import limits
import status
import style
from ladder import (
    FEW_QUERIES,
    PEER_NAMES,
    SHORT_NAMES,
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
from style import WIDE, Form, Room

BAR = 0.7  # height of a bar, in rows
ROW = 0.335  # inches
KEY = "{} with {}. Dashed outline: the parent at this rung's tile."
KEY += " Pale: flat or slower, kept for its lesson."
MEMORY = "memory_read"  # of fa limits: what bounds decode
LABEL = 40  # pixels that a number on a bar takes
LETTERS = 7.4  # pixels of a letter of a name


@dataclass(frozen=True)
class Measure:
    """What bars show: TFLOPS, or of a problem that is bound by bytes GB/s."""

    unit: str
    value: Callable[[Row], float]
    limit: float | None  # of the card
    limit_name: str

    @staticmethod
    def of(results: Results, problem: Problem) -> Measure:
        measured = limits.Limits.beside(results)
        if problem.seq_q <= FEW_QUERIES:
            roof = measured.traffic(MEMORY) if measured else None
            return Measure("GB/s", lambda row: row.gbs or 0, roof, "reads of device memory")
        families = limits.FAMILIES[problem.dtype]
        rates = {name: measured.of_family(name) for name in families} if measured else {}
        family = next((name for name in families if rates.get(name)), families[0])
        rate = rates.get(family)
        steady = any(row.steady for row in results.rows)
        whole = (rate.back_to_back if steady else rate.spaced) if rate else None
        return Measure("TFLOPS", lambda row: row.tflops, whole, f"bare {limits.NAMES[family]}")


@dataclass(frozen=True)
class Bar:
    rung: Rung
    row: Row
    value: float
    ends: tuple[float, float]
    kind: status.Status
    step: Step | None
    outline: float  # of the parent at this tile

    @property
    def words(self) -> str:
        is_plain = (self.kind.is_up and not self.kind.branch) or not self.kind.is_known
        return "" if is_plain else self.kind.text

    @property
    def colour(self) -> str:
        return colours.of_family(self.rung.family, soft=not self.kind.is_up)


References = list[tuple[str, float]]


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    measure = Measure.of(results, problem)
    bars = bars_of(results, catalogue, problem, measure)
    references = references_of(results, problem, measure, form)
    names = max(len(bar.rung.title) for bar in bars) * LETTERS * style.PIXEL
    room = Room(names + 0.2, form.either(2.25, 0.75), 0.78, 0.9)
    whiskers = "95 % intervals" if results.runs else "p10 to p90"
    words = [problem.label, KEY.format(timed_text(results), whiskers)]
    words += ["Right: change against parent."] if form.is_narrow else []
    title = f"{measure.unit} on {results.gpu}"
    figure, axes = style.page(form, room, ROW * len(bars), title, words, results, note)
    highest = max([*(bar.ends[1] for bar in bars), *(value for _, value in references)])
    axes.set_xlim(0, highest * 1.06)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_yticks([])
    style.hairline_grid(axes, "x")
    for place, bar in enumerate(bars):
        draw_bar(axes, place, bar, form)
        draw_step(axes, place, bar, room, form)
        words = said(bar, results, problem, measure)
        style.link_row(axes, place, bar.rung, *words)
    draw_limit_axis(axes, measure)
    draw_references(axes, references, form)
    if not form.is_narrow:
        style.name_change_columns(axes, [bar.step for bar in bars])
    return figure


def bars_of(
    results: Results, catalogue: Catalogue, problem: Problem, measure: Measure
) -> list[Bar]:
    kinds = status.statuses(results, catalogue)
    bars = []
    for rung in style.rungs_with_times(results, catalogue, problem):
        row = results.rung(rung.id, rung.typed(problem))
        assert row is not None
        value, step = measure.value(row), step_of(rung, catalogue, results, problem)
        at_tile = step.parent_at_tile if step else None
        slow, fast = (value * end / row.tflops for end in ends_of(results, row))
        outline = measure.value(at_tile) if at_tile else 0.0
        bars.append(Bar(rung, row, value, (slow, fast), kinds[rung.id], step, outline))
    return bars


def ends_of(results: Results, row: Row) -> tuple[float, float]:
    """TFLOPS at the ends of the whiskers: where the mean of the runs is, else the launches."""
    mean = level(results, row)
    if mean is None:
        return row.spread
    return row.tflops * mean.low / mean.mean, row.tflops * mean.high / mean.mean


def references_of(results: Results, problem: Problem, measure: Measure, form: Form) -> References:
    """(name, rate) of the peers on this problem and of the matrix product beside it."""
    names = PEER_NAMES | (SHORT_NAMES if form.is_narrow else {})
    rows = [results.peer(id, problem) for id in results.peers()]
    rows += [results.matmul(problem)] if measure.unit == "TFLOPS" else []
    return [(names.get(row.id, row.id), measure.value(row)) for row in rows if row]


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}"


def said(bar: Bar, results: Results, problem: Problem, measure: Measure) -> list[str]:
    """Where a bar is pointed at: rate, change, and the rate of the first peer."""
    words = [f"{number(bar.value)} {measure.unit} with tile {bar.row.variant}"]
    if measure.limit:
        words[0] += f", {100 * bar.value / measure.limit:.0f} % of {measure.limit_name}"
    if bar.step:
        words.append(f"{percent(bar.step.factor)} against {bar.step.parent.title}")
    rows = [results.peer(id, problem) for id in results.peers()]
    fastest = max(filter(None, rows), key=measure.value, default=None)
    if fastest:
        quotient = measure.value(bar.row) / measure.value(fastest)
        words.append(f"{100 * quotient:.0f} % of {PEER_NAMES.get(fastest.id, fastest.id)}")
    return words


def draw_bar(axes: Axes, place: int, bar: Bar, form: Form) -> None:
    """A rung with its name, value and words; they stand behind the end of an outline that would
    cross them."""
    edge = colours.of_family(bar.rung.family)
    axes.barh(place, bar.value, height=BAR, facecolor=bar.colour, edgecolor=edge, zorder=2)
    style.error_bar(axes, place, bar.value, *bar.ends)
    pixels = axes.get_position().width * form.width / style.PIXEL / axes.get_xlim()[1]
    label = LABEL / pixels
    is_long = bar.value > label + (bar.outline if bar.outline < label else 0)
    inside = bar.outline if bar.outline < label else 0
    words = f", {bar.words}" if bar.words and not form.is_narrow else ""
    behind = {"facecolor": style.BACKGROUND, "edgecolor": "none", "pad": 0.8}  # a reference line
    axes.annotate(
        f"{number(bar.value)}{words}",
        (inside if is_long else max(bar.ends[1], bar.outline), place),
        xytext=(6, 0),
        textcoords="offset points",
        va="center_baseline",
        color=colours.ON_BAR if is_long and bar.kind.is_up else style.INK,
        weight="bold",
        zorder=5,
        bbox=None if is_long else behind,
    )
    column = blended_transform_factory(axes.figure.transFigure, axes.transData)
    text = {"transform": column, "va": "center_baseline", "weight": "bold"}
    axes.text(style.EDGE / form.width, place, bar.rung.title, **text)


def draw_step(axes: Axes, place: int, bar: Bar, room: Room, form: Form) -> None:
    """Change against the parent; where the tile changed too, the parent at this tile."""
    if bar.step is None:
        return
    if form.is_narrow:
        column = blended_transform_factory(axes.transAxes, axes.transData)
        text = {"transform": column, "va": "center_baseline", "ha": "right", "size": style.SMALL}
        right = style.right_of(axes, room.right - style.EDGE)
        axes.text(right, place, percent(bar.step.factor), **text)
    else:
        style.draw_changes(axes, place, bar.step)
    if bar.outline:
        look = {"facecolor": "none", "edgecolor": style.INK, "linewidth": 0.9, "zorder": 3}
        axes.barh(place, bar.outline, height=BAR + 0.18, linestyle=(0, (2.5, 1.5)), **look)


def draw_limit_axis(axes: Axes, measure: Measure) -> None:
    """The rate once more, in percent of what a bare loop reaches on this card."""
    whole = measure.limit
    if whole is None:
        axes.set_xlabel(f"{measure.unit} ({limits.NOT_MEASURED})")
        return
    axes.set_xlabel(measure.unit, labelpad=1)
    below = -0.46 / (axes.figure.get_figheight() * axes.get_position().height)
    ticks = axes.secondary_xaxis(
        below,
        functions=(lambda rate: 100 * rate / whole, lambda part: part * whole / 100),
    )
    ticks.spines["bottom"].set_visible(False)
    ticks.tick_params(length=0)
    name = f"percent of {measure.limit_name}, {whole:.3g} {measure.unit}"
    if whole >= 1000:
        name = f"percent of {measure.limit_name}, {whole:.0f} {measure.unit}"
    ticks.set_xlabel(name, labelpad=1)


def draw_references(axes: Axes, references: References, form: Form) -> None:
    """A vertical line each, named above the bars; the names keep clear of each other."""
    right = axes.get_xlim()[1]
    points = axes.get_position().width * form.width / style.PIXEL / right  # of a unit
    names = [name.replace("FlashA", "Flash A").replace(" ", "\n") for name, _ in references]
    names = [f"{name}\n{value:.0f}" for name, (_, value) in zip(names, references)]
    width = max(len(line) for name in names for line in name.split("\n")) * 6.9 + 4 if names else 0
    places = style.spread_labels([v for _, v in references], width / points, high=right - 0.4 * width / points)
    for (_, value), name, place in zip(references, names, places):
        axes.axvline(value, color=style.INK, linewidth=1, linestyle=(0, (4, 2)), zorder=1.5)
        axes.annotate(
            name,
            (value, 1.0),
            xycoords=blended_transform_factory(axes.transData, axes.transAxes),
            xytext=((place - value) * points, 12),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "linewidth": 0.7, "shrinkB": 0, "relpos": (0.5, 0)},
            ha="center",
            va="bottom",
            size=style.SMALL,
            linespacing=1.1,
        )
