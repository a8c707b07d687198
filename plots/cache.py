#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chart: microseconds of one query against a cache, by its number of keys, between the time of a
cache of one key (the floor) and the time that its bytes take at the read bandwidth (the roof)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import limits
import seq_len
import style
from ladder import DECODE, PEER_NAMES, Catalogue, LadderError, Problem, Results, Row, timed_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

PROBLEM = "1,32/8,1/8192,128"
LOOP = "memory_read"  # of fa limits
KEY = "L2 flushed. Dashed: other implementations, timed in the same run. Dotted: floor and roof."
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)


@dataclass(frozen=True)
class Line:
    """Microseconds by number of keys."""

    name: str
    keys: list[int]
    values: list[float]
    look: dict[str, Any]


def draw(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(seq_len.WIDE, results, catalogue, problem, note)


def draw_narrow(results: Results, catalogue: Catalogue, problem: Problem, note: str) -> Figure:
    return draw_in(seq_len.NARROW, results, catalogue, problem, note)


def draw_in(
    layout: seq_len.Layout, results: Results, catalogue: Catalogue, problem: Problem, note: str
) -> Figure:
    lines = rung_lines(results, catalogue, problem) + peer_lines(results, problem)
    # A single point is no line, and its label would cross the others.
    lines = [line for line in lines if len(line.keys) > 1]
    keys = sorted({number for line in lines for number in line.keys})
    if len(keys) < 2:
        raise LadderError(f"{results.name} has fewer than two caches like {problem.label}")
    figure, axes = seq_len.make_figure(len(lines) + 1, layout)
    style.hairline_grid(axes, "y")
    for line in lines:
        axes.plot(line.keys, logarithms(line.values), clip_on=False, zorder=3, **line.look)
    floor = floor_of(results, problem)
    set_axes(axes, keys, [value for line in lines for value in line.values] + floor, layout)
    for value in floor:
        draw_floor(axes, value, layout)
    draw_roof(axes, results, problem, keys, layout)
    style.label_ends(axes, [end_of(line) for line in lines])
    shape = problem.label.replace(f"N={problem.seq_q}/{problem.seq_kv} ", "")
    key = layout.wrapped(f"{timed_text(results)}, {KEY}")
    style.titles(figure, f"One query against a cache, {results.gpu}", f"µs at {shape}", key)
    style.footer(figure, results, note, lines=layout.footer_lines)
    return figure


def logarithms(values: list[float]) -> list[float]:
    """What is plotted: the labels at the ends of lines are moved apart on an even scale."""
    return [math.log10(value) for value in values]


def end_of(line: Line) -> style.End:
    place = (float(line.keys[-1]), math.log10(line.values[-1]))
    return style.End(line.name, line.look["color"], place, line.values[-1])


def with_keys(problem: Problem, keys: int) -> Problem:
    return replace(problem, seq_kv=keys)


def times_of(rows: list[Row], problem: Problem) -> tuple[list[int], list[float]]:
    """Keys and microseconds, of caches with more than one key."""
    like = {
        row.problem.seq_kv: 1e3 * row.ms
        for row in rows
        if row.problem == with_keys(problem, row.problem.seq_kv) and row.problem.seq_kv > 1
    }
    return sorted(like), [like[keys] for keys in sorted(like)]


def rung_lines(results: Results, catalogue: Catalogue, problem: Problem) -> list[Line]:
    """Those without pages: what pages add does not show with one query."""
    colours, lines = style.rung_colours(catalogue), []
    for rung in catalogue.rungs:
        if rung.family != DECODE or rung.takes("paged"):
            continue
        rows = [row for row in results.timed() if (row.kind, row.id) == ("rung", rung.id)]
        keys, values = times_of([row for row in rows if not row.ablation], problem)
        look = {"color": colours[rung.id], "linewidth": 1.7, "marker": "o", "markersize": 3.5}
        lines.append(Line(rung.title, keys, values, look))
    return [line for line in lines if line.keys]


def peer_lines(results: Results, problem: Problem) -> list[Line]:
    lines = []
    for id in results.peers():
        rows = [row for row in results.timed() if (row.kind, row.id) == ("peer", id)]
        keys, values = times_of(rows, problem)
        dashes = style.PEER_DASHES.get(id, (3, 2))
        look = {"color": style.INK, "linewidth": 1.2, "dashes": dashes}
        lines.append(Line(PEER_NAMES.get(id, id), keys, values, look))
    return [line for line in lines if line.keys]


def set_axes(
    axes: Axes, keys: list[int], values: list[float], layout: seq_len.Layout
) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(keys))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(keys, [layout.number(number) for number in keys])
    axes.set_xlim(keys[0] * 0.93, keys[-1])
    low, high = min(values) * 0.6, max(values) * 1.1
    axes.set_ylim(math.log10(low), math.log10(high))
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks(logarithms(list(map(float, shown))), [str(tick) for tick in shown])
    axes.set_xlabel("keys of the cache (both scales are logarithmic)", size=9)


def floor_of(results: Results, problem: Problem) -> list[float]:
    """The least time of a rung for a single key: a launch and a load, nearly no bytes. Empty where
    that was not measured."""
    rows = [row for row in results.timed() if row.kind == "rung"]
    rows = [row for row in rows if row.problem == with_keys(problem, 1)]
    times = [1e3 * row.ms for row in rows]
    return [min(times)] if times else []


def draw_floor(axes: Axes, floor: float, layout: seq_len.Layout) -> None:
    place, below = (0.0, -11) if layout.is_narrow else (0.72, 3)
    axes.axhline(math.log10(floor), color=style.MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)))
    axes.annotate(
        f"a cache of one key: {floor:.1f} µs",
        (place, math.log10(floor)),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, below),
        textcoords="offset points",
        size=8.5,
        color=style.MUTED,
    )


def draw_roof(
    axes: Axes, results: Results, problem: Problem, keys: list[int], layout: seq_len.Layout
) -> None:
    measured = limits.Limits.beside(results)
    roof = measured.traffic(LOOP) if measured else None
    if roof is None:
        return
    times = [1e-3 * with_keys(problem, number).kv_bytes / roof for number in keys]
    low = axes.get_ylim()[0]
    places = zip(keys, logarithms(times), strict=True)
    seen = [(number, time) for number, time in places if time >= low]
    axes.plot(*zip(*seen, strict=True), color=style.MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)))
    middle = seen[len(seen) // 2]
    axes.annotate(
        f"at {roof:.0f} GB/s" if layout.is_narrow else f"its bytes at {roof:.0f} GB/s",
        middle,
        xytext=(4, -4),
        textcoords="offset points",
        size=8.5,
        color=style.MUTED,
        va="top",
    )


if __name__ == "__main__":
    sys.exit(style.chart_main(__doc__ or "", draw))
