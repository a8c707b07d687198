# SPDX-License-Identifier: MIT
"""The look of all charts: colours, fonts, grid, labels; and how they are saved."""

from __future__ import annotations

import argparse
import io
import math
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")  # no display is needed; set before pyplot is imported

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

import themes
from colours import (
    BACKGROUND,
    DARK_BACKGROUND as DARK_BACKGROUND,
    HAIRLINE,
    INK,
    MUTED,
    Colour,
    pale as pale,
    ramp_colour as ramp_colour,
    rung_colours as rung_colours,
)
from ladder import (
    MAIN_PROBLEM,
    Catalogue,
    CannotWrite,
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

PEER_DASHES = {"fa2": (5, 2), "cudnn": (2, 2), "triton": (1, 2), "fa3": (7, 2, 1, 2)}
PEER_DASHES |= {"flashinfer": (7, 2, 1, 2, 1, 2)}

FONT = {
    "font.family": "sans-serif",
    # Drawn with the first; a machine without it takes another, Verdana being as wide.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.5,
    "svg.hashsalt": "flash-ladder",
    "svg.fonttype": "none",  # text: small files, words that can be found and read aloud
    "figure.facecolor": BACKGROUND,
    "savefig.facecolor": BACKGROUND,
    "axes.facecolor": BACKGROUND,
    "axes.edgecolor": HAIRLINE,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
}
plt.rcParams.update(FONT)

# --- parts of a chart -----------------------------------------------------------------------------


def hairline_grid(axes: Axes, axis: str) -> None:
    axes.grid(axis=axis, color=HAIRLINE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def titles(figure: Figure, title: str, subtitle: str, key: str, size: float = 8) -> None:
    """Left-aligned title, subtitle and how to read it, at fixed distances from the top edge."""
    height = figure.get_figheight()
    figure.text(0.02, 1 - 0.16 / height, title, size=13, weight="bold", va="top")
    figure.text(0.02, 1 - 0.45 / height, subtitle, size=9, va="top")
    figure.text(0.02, 1 - 0.64 / height, key, size=size, color=MUTED, va="top")


def footer(figure: Figure, results: Results, note: str, lines: int | None = None) -> None:
    """Where the numbers are from; `lines` is the length of a line where the figure is narrow."""
    parts = [", ".join(filter(None, (source_text(results), note))), policy_text(results)]
    text = "\n".join(textwrap.fill(part, lines) if lines else part for part in parts)
    bottom = 0.10 / figure.get_figheight()
    figure.text(0.02, bottom, text, size=7.5, color=MUTED, va="bottom", linespacing=1.4)


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


END_LABEL = 0.155  # inches between the labels at the ends of lines


@dataclass(frozen=True)
class End:
    """Where a line ends, and what it is called there; value: what is said, where that is not the
    place."""

    name: str
    colour: str | Colour
    last: tuple[float, float]
    value: float | None = None


# Right of a plot of ENDS_AT inches, in parts of them: the end of a hairline, a name, the end of a
# value. Beside a plot of less than half of that they stand a little closer.
ENDS_AT, HAIRLINE_END, NAME, VALUE_END = 7.03, 0.035, 0.04, 0.265
CLOSER = 0.9


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Name and last value of every line, moved apart, with a hairline to where it ends."""
    low, high = axes.get_ylim()
    width = axes.figure.get_figwidth() * axes.get_position().width
    height = axes.figure.get_figheight() * axes.get_position().height
    scale = round(ENDS_AT / width, 6) * (1 if width > ENDS_AT / 2 else CLOSER)
    gap = END_LABEL * (high - low) / height
    places = spread_labels([end.last[1] for end in ends], gap, low, high)
    for end, place in zip(ends, places):
        axes.annotate(
            "",
            end.last,
            xytext=(1 + HAIRLINE_END * scale, place),
            textcoords=axes.get_yaxis_transform(),
            arrowprops={"arrowstyle": "-", "color": end.colour, "linewidth": 0.7, "shrinkB": 3},
            annotation_clip=False,
        )
        text = {"transform": axes.get_yaxis_transform(), "va": "center", "size": 8.5}
        axes.text(1 + NAME * scale, place, end.name, color=end.colour, weight="bold", **text)
        value = end.last[1] if end.value is None else end.value
        axes.text(1 + VALUE_END * scale, place, f"{value:.0f}", color=end.colour, ha="right", **text)


CHANGE, IDEA = 0.20, 1.28  # inches right of the plot: the two columns


def right_of(axes: Axes, inches: float) -> float:
    """A distance right of the plot as a fraction of its width."""
    figure = axes.figure
    return 1 + inches / (figure.get_figwidth() * axes.get_position().width)


def name_change_columns(axes: Axes) -> None:
    for inches, name in ((CHANGE, "against\nparent"), (IDEA, "at equal\ntile")):
        axes.annotate(
            name,
            (right_of(axes, inches), 1.0),
            xycoords="axes fraction",
            xytext=(0, 5),
            textcoords="offset points",
            size=8,
            color=MUTED,
            va="bottom",
        )


def draw_changes(axes: Axes, place: float, step: Step) -> None:
    """Change against the parent, and against the parent at this rung's tile where it has a time."""
    column = blended_transform_factory(axes.transAxes, axes.transData)
    text = {"transform": column, "va": "center_baseline"}
    axes.text(right_of(axes, CHANGE), place, percent(step.factor), **text)
    parent = {"size": 8, "color": MUTED, **text}
    axes.text(right_of(axes, CHANGE + 0.62), place, f"on {step.parent.id}", **parent)
    if step.parent_at_tile:
        axes.text(right_of(axes, IDEA), place, percent(step.idea_factor), **text)


# --- command line and files -----------------------------------------------------------------------


def parse_arguments(description: str, argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--results", type=Path, required=True, help="JSON file of fa bench, or a folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="path without suffix: SVG and PNG")
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    parser.add_argument("--problem", default=MAIN_PROBLEM, help="BATCH,HEADS,SEQ,DIM[,causal]")
    parser.add_argument("--note", default="", help="text for the caption")
    return parser.parse_args(argv)


Draw = Callable[[Results, Catalogue, Problem, str], Figure]


def chart_main(description: str, draw: Draw, argv: Sequence[str] | None = None) -> int:
    """What every chart script does: read, draw, save."""
    arguments = parse_arguments(description, argv)
    try:
        results = Results.load(arguments.results)
        catalogue = Catalogue.load(arguments.catalogue)
        figure = draw(results, catalogue, Problem.parse(arguments.problem), arguments.note)
        save(figure, arguments.out, results, catalogue)
    except LadderError as error:
        print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        return error.code
    return 0


def save(figure: Figure, out: Path, results: Results, catalogue: Catalogue) -> None:
    """out.svg, light and dark, and out.png; the same input gives the same bytes."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        description = provenance(results, catalogue)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Description": description})
        both = themes.with_both(svg.getvalue(), catalogue)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
        # Only now: an interrupt while it was drawn leaves the last chart whole.
        replace(out.with_name(out.name + ".svg"), both.encode())
        replace(out.with_name(out.name + ".png"), png.getvalue())
    except OSError as error:
        raise CannotWrite(f"cannot write {out}: {error.strerror}") from error
    finally:
        plt.close(figure)


def replace(path: Path, contents: bytes) -> None:
    """The file has its old or its new contents at every moment, also where the disk is full."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(contents)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def rungs_with_times(results: Results, catalogue: Catalogue, problem: Problem) -> list[Rung]:
    """In catalogue order; an empty chart is an error."""
    rungs = [rung for rung in catalogue.rungs if results.rung(rung.id, problem)]
    if not rungs:
        raise LadderError(f"{results.name} has no timed rung at {problem.label}")
    return rungs
