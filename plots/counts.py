# SPDX-License-Identifier: MIT
"""Chart: what every rung spends for the same tensor work, counted by the virtual machine."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import colours
import style
from ladder import Catalogue, LadderError, Problem, Results, Row, Rung, products
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import WIDE, Form, Room

PROBLEM = "1,2,1024,128"
BAR = 0.6  # height of a bar, in rows
ROW = 0.335  # inches
ABOVE, GAP = 0.5, 0.25  # inches above a panel, for its title; between panels
ROOM = 1.6  # a panel's width against its longest bar: the label stands behind it

Counts = Mapping[str, float]

# The writes of cp.async are left out, because the hardware's counters show one wavefront for each
# of its instructions, whatever the addresses; wgmma's reads have no conflicts.
REQUESTS = ("ldmatrix", "stmatrix", "shared_load", "shared_store")
SECTORS = ("global_load", "global_store", "global_copy", "bulk_load", "bulk_store")


def wavefronts(counts: Counts) -> float:
    return sum(counts.get(f"{kind}_wavefronts", 0) for kind in (*REQUESTS, "wgmma"))


def conflicts(counts: Counts) -> float:
    return sum(
        counts.get(f"{kind}_wavefronts", 0) - counts.get(f"{kind}_ideal", 0) for kind in REQUESTS
    )


def sectors(counts: Counts) -> float:
    return sum(counts.get(f"{kind}_sectors", 0) for kind in SECTORS)


@dataclass(frozen=True)
class Panel:
    title: str
    value: Callable[[Counts], float]
    wasted: Callable[[Counts], float] = lambda counts: 0.0


PANELS = (
    Panel("shared-memory wavefronts", wavefronts, conflicts),
    Panel("ldmatrix", lambda counts: counts.get("ldmatrix", 0)),
    Panel("PTX instructions", lambda counts: counts["instructions"]),
    Panel("global sectors", sectors),
)


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    rows = [
        (rung, row)
        for rung in catalogue.rungs
        if (row := results.counted(rung.id, problem)) and products(row) > 0
    ]
    if not rows:
        raise LadderError(f"{results.name} has no counts of tensor-core rungs at {problem.label}")
    words = [
        f"Warp instructions, wavefronts and sectors for each m16n8k16 product at {problem.label}.",
        "One mma is one such product; a wgmma does many at once. Hatched: wavefronts that bank"
        " conflicts add. Exact counts, no times.",
    ]
    title = form.either("What a tensor product costs, rung by rung", "What a product costs")
    count = form.either(len(PANELS), 2)  # of panels in a row
    tall = ROW * len(rows)
    plot = tall * (len(PANELS) // count) + ABOVE * (len(PANELS) // count - 1)
    room = Room(1.65, 0.1, ABOVE, 0.15)
    figure, whole = style.page(form, room, plot, title, words, results, note)
    box = whole.get_position()
    whole.remove()
    across = (box.width + GAP / form.width) / count
    inch = 1 / figure.get_figheight()
    for place, panel in enumerate(PANELS):
        left, top = place % count, place // count
        bottom = box.y1 - (top * (tall + ABOVE) + tall) * inch
        size = (box.x0 + left * across, bottom, across - GAP / form.width, tall * inch)
        draw_panel(figure.add_axes(size), panel, rows, named=left == 0, letters=form.either(40, 14))
    return figure


def number_text(value: float) -> str:
    return f"{value:.2g}" if value < 0.1 else f"{value:.3g}"


def draw_panel(
    axes: Axes,
    panel: Panel,
    rows: list[tuple[Rung, Row]],
    named: bool,
    letters: int,
) -> None:
    counted = [row.data["counts"] for _, row in rows]
    values = [panel.value(counts) / products(row) for counts, (_, row) in zip(counted, rows)]
    for place, (rung, row) in enumerate(rows):
        wasted = panel.wasted(counted[place]) / products(row)
        useful = values[place] - wasted
        axes.barh(place, useful, height=BAR, color=colours.of_family(rung.family), zorder=2)
        look = {"facecolor": "none", "edgecolor": style.MUTED, "hatch": "/////", "linewidth": 0.6}
        if wasted > 0:
            axes.barh(place, wasted, left=useful, height=BAR, zorder=2, **look)
        axes.annotate(
            number_text(values[place]),
            (values[place], place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center_baseline",
            size=style.SMALL,
            color=style.INK,
        )
    axes.set_xlim(0, ROOM * max(values) or 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_yticks(range(len(rows)), [rung.title for rung, _ in rows] if named else [])
    if named:
        for label in axes.get_yticklabels():
            label.set_fontweight("bold")
    style.hairline_grid(axes, "x")
    title = textwrap.fill(panel.title, letters)
    axes.set_title(title, size=style.SMALL, color=style.INK, loc="left", pad=7)
    for place, (rung, _) in enumerate(rows):
        if named:
            style.link_row(axes, place, rung)
