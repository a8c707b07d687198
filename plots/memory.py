#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: time and memory of standard and of fused attention against the sequence length."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

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
from matplotlib.ticker import FixedLocator, NullLocator

PROBLEM = "1,16,8192,64,float32"
WIDTH, HEIGHT = 9.6, 4.9
LEFT, RIGHT, TOP, BOTTOM = 0.72, 2.15, 1.30, 0.92  # inches around the panels
GAP = 0.72  # inches between the panels
PEER_DASHES = ((5, 2), (2, 2), (1, 2), (7, 2, 1, 2))
LABEL = 0.30  # inches between the labels at the ends
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


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    lines = lines_of(results, catalogue, problem)
    if not any(line.refused for line in lines):
        raise LadderError(f"{results.name} has no length like {problem.label} that does not fit")
    seqs = sorted({row.problem.seq_q for line in lines for row in line.timed + line.refused})
    figure = style.plt.figure(figsize=(WIDTH, HEIGHT))
    width = (WIDTH - LEFT - RIGHT - GAP) / 2
    panels = [
        figure.add_axes(
            (left / WIDTH, BOTTOM / HEIGHT, width / WIDTH, (HEIGHT - TOP - BOTTOM) / HEIGHT)
        )
        for left in (LEFT, LEFT + width + GAP)
    ]
    for axes, title in zip(panels, ("time, ms", "device memory, GB")):
        set_axes(axes, seqs, title)
    draw_times(panels[0], lines)
    draw_memory(panels[1], lines, results, problem)
    label_ends(panels[1], lines)
    shape = problem.label.replace(f"N={problem.seq_q} ", "")
    title = f"Standard against fused attention, {results.gpu}"
    style.titles(figure, title, f"{timed_text(results)}, peak memory at {shape}", KEY)
    style.footer(figure, results, note)
    return figure


def lines_of(results: Results, catalogue: Catalogue, problem: Problem) -> list[Line]:
    """Rungs, then peers."""
    tried = tried_to_the_end(results, problem)
    colours = style.rung_colours(catalogue)
    names = {("rung", rung.id): rung.title for rung in catalogue.rungs}
    names |= {who: PEER_NAMES.get(who[1], who[1]) for who in tried if who[0] == "peer"}
    lines = []
    for who, name in names.items():
        timed = [row for row in tried.get(who, []) if row.is_timed]
        refused = [row for row in tried.get(who, []) if not row.is_timed]
        if not timed:
            continue
        if who[0] == "rung":
            look: dict[str, Any] = {"color": colours[who[1]], "linewidth": 1.7}
        else:
            dashes = PEER_DASHES[len(lines) % len(PEER_DASHES)]
            look = {"color": style.INK, "linewidth": 1.2, "dashes": dashes}
        lines.append(Line(name, timed, refused, look | {"marker": "o", "markersize": 3.5}))
    return lines


def set_axes(axes: Axes, seqs: list[int], title: str) -> None:
    style.hairline_grid(axes, "y")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(seqs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(seqs, [str(seq) if seq < 1024 else f"{seq // 1024}k" for seq in seqs])
    axes.set_xlim(seqs[0] * 0.85, seqs[-1] * 1.15)
    axes.set_xlabel("sequence length N (log scale)", size=9)
    axes.set_title(f"{title} (log scale)", size=9, color=style.INK, loc="left", pad=5)


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
        size=8.5,
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
                xytext=(1.045, place),
                textcoords="axes fraction",
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkB": 3},
                annotation_clip=False,
            )
        text = {"transform": axes.transAxes, "size": 8.5}
        axes.text(1.055, place, line.name, color=colour, weight="bold", va="center", **text)
        if line.limit:
            words = f"out of memory at {line.limit}"
            text |= {"size": 7.5, "color": style.MUTED, "va": "top"}
            axes.text(1.055, place - 0.075 / panel, words, **text)


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
