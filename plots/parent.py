# SPDX-License-Identifier: MIT
"""Chart: every rung in percent of its parent, the idea's share apart from the tile's."""

from __future__ import annotations

import colours
import status
import style
from ladder import Catalogue, LadderError, Problem, Results, Step, percent, step_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator
from matplotlib.transforms import blended_transform_factory
from style import WIDE, Form, Room

BAR = 0.62  # height of a bar, in rows
ROW = 0.335  # inches
MOST = 1.5  # a factor beyond is cut off: one of 6.5 would leave no room for the others
STEP = 0.1  # between ticks
KEY = (
    "Solid: against the parent; where the parent was timed at this rung's tile, against that."
    " Hatched: what the tile alone did. A bar with a gap is cut off."
)


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    steps = [step_of(rung, catalogue, results, problem) for rung in catalogue.rungs]
    known = [step for step in steps if step is not None]
    if not known:
        raise LadderError(f"{results.name} has no rung with its parent at {problem.label}")
    found = status.statuses(results, catalogue)
    words = [problem.label, KEY + (" Thin: 95 % intervals." if results.runs else "")]
    title = f"Percent of the parent, {results.gpu}"
    room = Room(form.either(2.6, 1.45), form.either(2.25, 0.75), form.either(0.45, 0.12))
    figure, axes = style.page(form, room, ROW * len(known), title, words, results, note)
    set_axes(axes, known)
    if not form.is_narrow:
        style.name_change_columns(axes, known)
    for place, step in enumerate(known):
        draw_bars(axes, place, step, found[step.rung.id])
        draw_words(axes, place, step, found[step.rung.id], room, form)
    return figure


def tile_factor(step: Step) -> float:
    """What the tile alone did to the parent; 1 where it did not change."""
    return step.factor / step.idea_factor


def set_axes(axes: Axes, steps: list[Step]) -> None:
    ends = [factor for step in steps for factor in (1.0, step.factor, tile_factor(step))]
    ends += [end for step in steps if step.change for end in (step.change.low, step.change.high)]
    axes.set_xlim(min(ends) - 0.03, max(end for end in ends if end <= MOST) + 0.05)
    axes.xaxis.set_major_locator(MultipleLocator(STEP))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
    axes.set_xlabel("percent of the parent")
    axes.set_ylim(len(steps) - 0.5, -0.5)
    axes.set_yticks([])
    style.hairline_grid(axes, "x")
    axes.axvline(1.0, color=style.INK, linewidth=1.0, zorder=3)


def draw_bars(axes: Axes, place: int, step: Step, kind: status.Status) -> None:
    family = step.rung.family
    look = {"facecolor": colours.of_family(family, soft=not kind.is_up)}
    look |= {"edgecolor": colours.of_family(family)}
    tile = tile_factor(step)
    if step.parent_at_tile is None:
        middle = float(place)
        bar(axes, place, BAR, 1.0, step.factor, **look)
    else:  # two lanes: the shares may point in opposite directions
        hatched = {"facecolor": "none", "edgecolor": style.MUTED, "hatch": "/////"}
        bar(axes, place - BAR / 4, BAR / 2, 1.0, tile, **hatched)
        middle = place + BAR / 4
        bar(axes, middle, BAR / 2, tile, step.factor, **look)
    if step.change and step.change.high < axes.get_xlim()[1]:
        style.error_bar(axes, middle, step.factor, step.change.low, step.change.high)


def bar(axes: Axes, place: float, height: float, start: float, end: float, **look: object) -> None:
    """One that leaves the plot has a gap before its end."""
    right = axes.get_xlim()[1]
    if start >= right:
        return
    shown = min(end, right)
    axes.barh(place, shown - start, left=start, height=height, linewidth=0.6, zorder=2, **look)
    if end > right:
        low, high = place - height, place + height
        gap = {"color": style.BACKGROUND, "linewidth": 4, "zorder": 3}
        axes.plot([right - 0.03, right - 0.02], [high, low], **gap)


def draw_words(
    axes: Axes, place: int, step: Step, kind: status.Status, room: Room, form: Form
) -> None:
    column = blended_transform_factory(axes.transAxes, axes.transData)
    edge = blended_transform_factory(axes.figure.transFigure, axes.transData)
    text = {"va": "center_baseline"}
    title = step.rung.title
    axes.text(style.EDGE / form.width, place, title, weight="bold", transform=edge, **text)
    change = percent(step.factor)
    style.link_row(axes, place, step.rung, f"{change} against {step.parent.title}", kind.text)
    if form.is_narrow:
        right = style.right_of(axes, room.right - style.EDGE)
        axes.text(right, place, change, ha="right", size=style.SMALL, transform=column, **text)
        return
    under = {"ha": "right", "size": style.SMALL, "color": style.MUTED, "transform": column}
    words = "" if kind.is_up or not kind.is_known else kind.text
    axes.text(-0.012, place, words, **under, **text)
    style.draw_changes(axes, place, step)
