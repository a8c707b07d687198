# SPDX-License-Identifier: MIT
"""Chart: time and memory of standard and of fused attention against the sequence length."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import colours
import style
from intensity import tensor_bytes
from ladder import (
    PEER_NAMES,
    Catalogue,
    LadderError,
    Problem,
    Results,
    Row,
    timed_text,
    tried_to_the_end,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from style import WIDE, Form, Room

PROBLEM = "1,16,8192,64,float32"
HEIGHT, GAP = 3.6, 0.8  # inches of a panel, and between two
ABOVE = 0.4  # inches above a panel, for its title
PEER_DASHES = ((5, 2), (2, 2), (1, 2), (7, 2, 1, 2))
LABEL = 0.38  # inches between the labels at the ends
KEY = "Hollow: what it would need. The lines end where a kernel no longer fits into the card's memory."


@dataclass(frozen=True)
class Line:
    name: str
    timed: list[Row]  # by sequence length
    refused: list[Row]  # out of memory
    look: dict[str, Any]

    @property
    def limit(self) -> int | None:
        """The shortest length that did not fit."""
        return self.refused[0].problem.seq_q if self.refused else None


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    lines = lines_of(results, catalogue, problem)
    if not any(line.refused for line in lines):
        raise LadderError(f"{results.name} has no length like {problem.label} that does not fit")
    seqs = sorted({row.problem.seq_q for line in lines for row in line.timed + line.refused})
    words = [problem.label.replace(f"N={problem.seq_q} ", ""), f"{timed_text(results)}. {KEY}"]
    title = f"Standard against fused, {results.gpu}"
    plot = form.either(HEIGHT, 2 * HEIGHT + GAP + ABOVE)
    room = Room(form.either(0.75, 0.6), form.either(2.35, 2.2), ABOVE, 0.5)
    figure, whole = style.page(form, room, plot, title, words, results, note)
    box = whole.get_position()
    whole.remove()
    # Beside each other, or on a phone one below the other.
    across, down = GAP / form.width, (GAP + ABOVE) / figure.get_figheight()
    width = form.either((box.width - across) / 2, box.width)
    height = form.either(box.height, (box.height - down) / 2)
    panels = [
        figure.add_axes((box.x0, box.y1 - height, width, height)),
        figure.add_axes((box.x1 - width, box.y0, width, height)),
    ]
    for axes, title in zip(panels, ("time, ms", "device memory, GB")):
        set_axes(axes, seqs, title)
    draw_times(panels[0], lines)
    draw_memory(panels[1], lines, results, problem)
    label_ends(panels[1], lines)
    return figure


def lines_of(results: Results, catalogue: Catalogue, problem: Problem) -> list[Line]:
    """Rungs, then peers."""
    tried = tried_to_the_end(results, problem)
    hues = itertools.cycle(colours.OUTSTANDING)
    names = {("rung", rung.id): rung.title for rung in catalogue.rungs}
    names |= {who: PEER_NAMES.get(who[1], who[1]) for who in tried if who[0] == "peer"}
    lines = []
    for who, name in names.items():
        timed = [row for row in tried.get(who, []) if row.is_timed]
        refused = [row for row in tried.get(who, []) if not row.is_timed]
        if not timed:
            continue
        if who[0] == "rung":
            look: dict[str, Any] = {"color": colours.light(next(hues)), "linewidth": 2}
        else:
            dashes = PEER_DASHES[len(lines) % len(PEER_DASHES)]
            look = {"color": style.INK, "linewidth": 1.3, "dashes": dashes}
        lines.append(Line(name, timed, refused, look | {"marker": "o", "markersize": 4}))
    return lines


def set_axes(axes: Axes, seqs: list[int], title: str) -> None:
    style.hairline_grid(axes, "y")
    style.length_axis(axes, seqs, seqs[0] * 0.85, seqs[-1] * 1.15)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("sequence length N (log scale)")
    axes.set_title(f"{title} (log scale)", size=style.SMALL, color=style.INK, loc="left", pad=7)


def draw_times(axes: Axes, lines: list[Line]) -> None:
    for line in lines:
        seqs = [row.problem.seq_q for row in line.timed]
        times = [row.ms for row in line.timed]
        axes.plot(seqs, times, zorder=3, **line.look)


def memory_of(rows: list[Row]) -> tuple[list[int], list[float]]:
    known = [row for row in rows if row.data.get("peak_bytes")]
    return [row.problem.seq_q for row in known], [row.data["peak_bytes"] / 1e9 for row in known]


def draw_memory(axes: Axes, lines: list[Line], results: Results, problem: Problem) -> None:
    for line in lines:
        seqs, sizes = memory_of(line.timed)
        axes.plot(seqs, sizes, zorder=3, **line.look)
        # What was tried and did not fit; of a peer it is not known how much it would have needed.
        seqs, sizes = memory_of(line.refused)
        look = {"color": line.look["color"], "markerfacecolor": style.BACKGROUND}
        axes.plot(seqs, sizes, linestyle="none", marker="o", markersize=5, zorder=4, **look)
    card = float(results.document["device"]["memory"]) / 1e9
    axes.axhline(card, color=style.MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)))
    axes.annotate(
        f"the card's {card:.3g} GB",
        (0, card),
        xycoords=axes.get_yaxis_transform(),
        xytext=(2, 3),
        textcoords="offset points",
        size=style.SMALL,
        color=style.MUTED,
    )
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, tensor_bytes(problem.with_seq(512)) / 1e9 / 2), high * 1.3)


def label_ends(axes: Axes, lines: list[Line]) -> None:
    """Names right of the panel, moved apart, each with a hairline to where its memory ends."""
    panel = axes.get_position().height * axes.figure.get_figheight()
    ends = []
    for line in lines:
        seqs, sizes = memory_of(line.timed)
        ends.append((seqs[-1], sizes[-1]) if sizes else None)
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [to_axes.transform(end)[1] if end else 0.5 for end in ends]
    for line, end, place in zip(lines, ends, style.spread_labels(heights, LABEL / panel, 0.03, 0.97)):
        colour = line.look["color"]
        if end:
            axes.annotate(
                "",
                end,
                xytext=(style.right_of(axes, 0.13), place),
                textcoords="axes fraction",
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkB": 3},
                annotation_clip=False,
            )
        text = {"transform": axes.transAxes, "size": style.SMALL}
        axes.text(style.right_of(axes, 0.16), place, line.name, color=colour, weight="bold", va="center", **text)
        if line.limit:
            words = f"out of memory at {line.limit}"
            text |= {"color": style.MUTED, "va": "top"}
            axes.text(style.right_of(axes, 0.16), place - 0.09 / panel, words, **text)
