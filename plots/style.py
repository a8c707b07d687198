# SPDX-License-Identifier: MIT
"""The look of all charts: their page, fonts, grid, labels, links; and how they are saved."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import matplotlib

matplotlib.use("svg")  # no display is needed; set before pyplot is imported

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator
from matplotlib.transforms import blended_transform_factory

import themes
from colours import BACKGROUND, HAIRLINE, INK, MUTED
from files import write_atomically
from ladder import (
    Catalogue,
    Unable,
    LadderError,
    Problem,
    Results,
    Rung,
    Step,
    percent,
    policy_text,
    provenance,
    source_text,
)

# A point of a chart is a pixel of a page, where the column of the text is 808 wide, and 358 on a phone.
PIXEL = 1 / 72  # inches
SIZE, SMALL = 12.0, 11.5
LETTER = 0.52  # of its size: the mean width of a letter
FONT = {
    "font.family": "sans-serif",
    # Drawn with the first; a machine without it takes another, Verdana being as wide.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": SIZE,
    "svg.hashsalt": "flash-ladder",
    "svg.fonttype": "none",  # text: small files, words that can be found and read aloud
    "figure.facecolor": BACKGROUND,
    "savefig.facecolor": BACKGROUND,
    "axes.facecolor": BACKGROUND,
    "axes.edgecolor": HAIRLINE,
    "axes.labelcolor": MUTED,
    "axes.labelsize": SMALL,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
}
plt.rcParams.update(FONT)


T = TypeVar("T")

# --- the page of a chart --------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """Of a page: that of a column of text, or that of a phone. Inches."""

    width: float
    is_narrow: bool

    def either(self, wide: T, narrow: T) -> T:
        return narrow if self.is_narrow else wide

    def wrapped(self, *texts: str) -> list[str]:
        letters = int((self.width - 2 * EDGE) / (SMALL * LETTER * PIXEL))
        return [line for text in texts for line in textwrap.wrap(text, letters)]


WIDE, NARROW = Form(808 * PIXEL, False), Form(358 * PIXEL, True)
TICK = 0.45  # inches between labels of an axis of lengths
EDGE, TITLE, ROW = 0.1, 0.34, 0.222  # inches: left of words; the row of the title; other rows


@dataclass(frozen=True)
class Room:
    """Inches around the plot, besides the words above and below."""

    left: float
    right: float
    above: float = 0.12
    below: float = 0.48


def page(
    form: Form, room: Room, plot: float, title: str, words: Sequence[str], results: Results, note: str
) -> tuple[Figure, Axes]:
    """A figure with its title, words on how to read it and where its numbers are from; `plot` is the
    height of the plot in inches."""
    head = form.wrapped(*words)
    foot = form.wrapped(", ".join(filter(None, (source_text(results), note))), policy_text(results))
    top = 0.1 + TITLE + ROW * len(head) + room.above
    bottom = 0.08 + ROW * len(foot) + room.below
    width, height = form.width, top + plot + bottom
    figure = plt.figure(figsize=(width, height))
    look = {"size": SMALL, "color": MUTED, "linespacing": 1.2}
    at = EDGE / width
    figure.text(at, 1 - 0.12 / height, title, size=14, weight="bold", va="top")
    figure.text(at, 1 - (0.1 + TITLE) / height, "\n".join(head), va="top", **look)
    figure.text(at, 0.08 / height, "\n".join(foot), va="bottom", **look)
    across = room.left / width, (width - room.left - room.right) / width
    return figure, figure.add_axes((across[0], bottom / height, across[1], plot / height))


def hairline_grid(axes: Axes, axis: str) -> None:
    axes.grid(axis=axis, color=HAIRLINE, linewidth=0.9, zorder=0)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def length_axis(axes: Axes, values: list[int], low: float, high: float) -> None:
    """Logarithmic, from low to high; a value whose label would touch the next has none."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(low, high)
    width = axes.figure.get_figwidth() * axes.get_position().width / math.log2(high / low)
    shown = values[-1:]
    for value in reversed(values[:-1]):
        if width * math.log2(shown[-1] / value) > TICK:
            shown.append(value)
    texts = [f"{value // 1024}k" if value >= 1024 else str(value) for value in values]
    labels = [text if value in shown else "" for value, text in zip(values, texts)]
    axes.set_xticks(values, labels)


# --- links ----------------------------------------------------------------------------------------


def link(artist: Artist, rung: Rung, *words: str) -> None:
    """To the rung's chapter; words: what is said where it is pointed at, behind its idea."""
    chapter = rung.chapter.removeprefix("docs/")
    artist.set_url(f"{themes.LINK}{chapter}|{rung.title}: {'; '.join((rung.idea, *words))}.")


def link_row(axes: Axes, place: float, rung: Rung, *words: str) -> None:
    """The whole width of a row, over all that is drawn there."""
    row = blended_transform_factory(axes.figure.transFigure, axes.transData)
    area = Rectangle((0, place - 0.5), 1, 1, transform=row, clip_on=False, zorder=9)
    area.set(facecolor=INK, alpha=0, linewidth=0)
    link(area, rung, *words)
    axes.add_patch(area)


def link_line(axes: Axes, xs: Sequence[float], ys: Sequence[float], rung: Rung, *words: str) -> None:
    """A band along a line, wide enough to be pointed at."""
    (band,) = axes.plot(xs, ys, color=INK, linewidth=9, alpha=0, clip_on=False, zorder=9)
    link(band, rung, *words)


# --- parts of a chart -----------------------------------------------------------------------------


def error_bar(axes: Axes, place: float, value: float, low: float, high: float) -> None:
    """Thin, across a horizontal bar."""
    ends = [[max(value - low, 0)], [max(high - value, 0)]]
    look = {"color": INK, "linewidth": 0.9, "capsize": 2.2, "capthick": 0.9, "zorder": 4}
    axes.errorbar(value, place, xerr=ends, **look)


def spread_labels(
    positions: Sequence[float], gap: float, low: float = -math.inf, high: float = math.inf
) -> list[float]:
    """Moves labels apart to at least gap, as little as possible, keeping order and limits."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    blocks: list[tuple[float, list[int]]] = []  # (mean of wanted places, members)
    for index in order:
        blocks.append((positions[index], [index]))
        while len(blocks) > 1 and overlaps(blocks[-2], blocks[-1], gap):
            second, first = blocks.pop(), blocks.pop()
            members = first[1] + second[1]
            mean = (first[0] * len(first[1]) + second[0] * len(second[1])) / len(members)
            blocks.append((mean, members))
    placed = [0.0] * len(positions)
    for mean, members in blocks:
        for place, index in enumerate(members):
            placed[index] = mean + gap * (place - (len(members) - 1) / 2)
    for index in reversed(order):
        placed[index] = min(placed[index], high)
        high = placed[index] - gap
    for index in order:
        placed[index] = max(placed[index], low)
        low = placed[index] + gap
    return placed


def overlaps(first: tuple[float, list[int]], second: tuple[float, list[int]], gap: float) -> bool:
    reach = gap * (len(first[1]) + len(second[1])) / 2
    return second[0] - first[0] < reach


END_LABEL = 0.2  # inches between the labels at the ends of lines


@dataclass(frozen=True)
class End:
    """Where a line ends, and what it is called there; value: what is said, where that is not the
    place."""

    name: str
    colour: str
    last: tuple[float, float]
    value: float | None = None


NAME = 0.16  # inches right of a plot where the names of lines begin


def label_ends(axes: Axes, ends: Sequence[End], form: Form) -> None:
    """Name and last value of every line, moved apart, with a hairline to where it ends."""
    low, high = axes.get_ylim()
    height = axes.figure.get_figheight() * axes.get_position().height
    gap = END_LABEL * (high - low) / height
    places = spread_labels([end.last[1] for end in ends], gap, low, high)
    for end, place in zip(ends, places):
        axes.annotate(
            "",
            end.last,
            xytext=(right_of(axes, NAME - 0.03), place),
            textcoords=axes.get_yaxis_transform(),
            arrowprops={"arrowstyle": "-", "color": end.colour, "linewidth": 0.7, "shrinkB": 3},
            annotation_clip=False,
        )
        value = end.last[1] if end.value is None else end.value
        text = {"transform": axes.get_yaxis_transform(), "va": "center", "size": SMALL}
        text |= {"color": end.colour, "weight": form.either("bold", "normal")}
        axes.text(right_of(axes, NAME), place, f"{end.name}: {value:.0f}", **text)


CHANGE, IDEA = 0.18, 1.5  # inches right of the plot: the two columns


def right_of(axes: Axes, inches: float) -> float:
    """A distance right of the plot as a fraction of its width."""
    figure = axes.figure
    return 1 + inches / (figure.get_figwidth() * axes.get_position().width)


def name_change_columns(axes: Axes, steps: Sequence[Step | None]) -> None:
    names = {CHANGE: "against\nparent"}
    if any(step and step.parent_at_tile for step in steps):
        names[IDEA] = "at equal\ntile"
    for inches, name in names.items():
        axes.annotate(
            name,
            (right_of(axes, inches), 1.0),
            xycoords="axes fraction",
            xytext=(0, 5),
            textcoords="offset points",
            size=SMALL,
            color=MUTED,
            va="bottom",
            linespacing=1.1,
        )


def draw_changes(axes: Axes, place: float, step: Step) -> None:
    """Change against the parent, and against the parent at this rung's tile where it has a time."""
    column = blended_transform_factory(axes.transAxes, axes.transData)
    text = {"transform": column, "va": "center_baseline"}
    axes.text(right_of(axes, CHANGE), place, percent(step.factor), **text)
    parent = {"size": SMALL, "color": MUTED, **text}
    axes.text(right_of(axes, CHANGE + 0.74), place, f"on {step.parent.id}", **parent)
    if step.parent_at_tile:
        axes.text(right_of(axes, IDEA), place, percent(step.idea_factor), **text)


# --- files ----------------------------------------------------------------------------------------


Draw = Callable[[Results, Catalogue, Problem, str, Form], Figure]


def save(figure: Figure, out: Path, results: Results, catalogue: Catalogue) -> None:
    """The file `out`, light and dark; the same input gives the same bytes."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        description = provenance(results, catalogue)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Description": description})
        # Only now: an interrupt while it was drawn leaves the last chart whole.
        write_atomically(out, themes.with_both(svg.getvalue()))
    except OSError as error:
        raise Unable(f"cannot write {out}: {error.strerror}") from error
    finally:
        plt.close(figure)


def rungs_with_times(results: Results, catalogue: Catalogue, problem: Problem) -> list[Rung]:
    """In catalogue order; an empty chart is an error."""
    rungs = [each for each in catalogue.rungs if results.rung(each.id, each.typed(problem))]
    if not rungs:
        raise LadderError(f"{results.name} has no timed rung at {problem.label}")
    return rungs
