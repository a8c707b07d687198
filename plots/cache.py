# SPDX-License-Identifier: MIT
"""Chart: microseconds of one query against a cache, by its number of keys, between the time of a
cache of one key (the floor) and the time that its bytes take at the read bandwidth (the roof)."""

from __future__ import annotations

import math
from dataclasses import replace

import limits
import lines
import style
from ladder import DECODE, Catalogue, LadderError, Problem, Results, Row, timed_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import WIDE, Form

PROBLEM = "1,32/8,1/8192,128"
LOOP = "memory_read"  # of fa limits
KEY = "Dotted: floor (spaced) and roof."
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
DOTS = (0, (1, 1.5))


def draw(
    results: Results, catalogue: Catalogue, problem: Problem, note: str, form: Form = WIDE
) -> Figure:
    drawn = lines_of(results, catalogue, problem, form)
    keys = sorted({int(number) for line in drawn for number in line.xs})
    if len(keys) < 2:
        raise LadderError(f"{results.name} has fewer than two caches like {problem.label}")
    shape = problem.label.replace(f"N={problem.seq_q}/{problem.seq_kv} ", "")
    words = [shape, f"{timed_text(results)}. {lines.KEY} {KEY}"]
    title = f"µs by keys, {results.gpu}"
    room = lines.ROOM[form.is_narrow]
    figure, axes = style.page(form, room, lines.HEIGHT, title, words, results, note)
    style.hairline_grid(axes, "y")
    floor = floor_of(results, problem)
    set_axes(axes, keys, [value for line in drawn for value in line.ys] + floor, form)
    draw_roof(axes, results, problem, keys, form)
    # Logarithms are plotted: the labels at the ends of lines are moved apart on an even scale.
    ends = lines.draw(axes, drawn, math.log10)
    style.label_ends(axes, ends + [draw_floor(axes, value, keys[-1]) for value in floor], form)
    return figure


def with_keys(problem: Problem, keys: int) -> Problem:
    return replace(problem, seq_kv=keys)


def lines_of(
    results: Results, catalogue: Catalogue, problem: Problem, form: Form
) -> list[lines.Line]:
    """Of rungs without pages: what pages add does not show with one query."""

    def points(rows: list[Row]) -> tuple[list[float], list[float]]:
        like = {
            float(row.problem.seq_kv): 1e3 * row.ms
            for row in rows
            if row.problem == with_keys(problem, row.problem.seq_kv) and row.problem.seq_kv > 1
        }
        return sorted(like), [like[keys] for keys in sorted(like)]

    rungs = [rung for rung in catalogue.rungs if rung.family == DECODE and not rung.takes("paged")]
    found = lines.of_rungs(results, rungs, points, "µs") + lines.of_peers(results, points, form)
    # A single point is no line, and its label would cross the others.
    return [line for line in found if len(line.xs) > 1]


def set_axes(axes: Axes, keys: list[int], values: list[float], form: Form) -> None:
    style.length_axis(axes, keys, keys[0] * 0.93, keys[-1])
    low, high = min(values) * 0.6, max(values) * 1.1
    axes.set_ylim(math.log10(low), math.log10(high))
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks([math.log10(tick) for tick in shown], [str(tick) for tick in shown])
    axes.set_xlabel("keys of the cache" + form.either(" (both scales are logarithmic)", ""))


def floor_of(results: Results, problem: Problem) -> list[float]:
    """The least time of a rung for a single key: a launch and a load, nearly no bytes. Empty where
    that was not measured."""
    rows = [row for row in results.timed() if row.kind == "rung"]
    rows = [row for row in rows if row.problem == with_keys(problem, 1)]
    times = [1e3 * row.ms for row in rows]
    return [min(times)] if times else []


def draw_floor(axes: Axes, floor: float, last: int) -> style.End:
    axes.axhline(math.log10(floor), color=style.MUTED, linewidth=0.9, linestyle=DOTS)
    return style.End("a single key", style.MUTED, (last, math.log10(floor)), floor)


def draw_roof(
    axes: Axes, results: Results, problem: Problem, keys: list[int], form: Form
) -> None:
    measured = limits.Limits.beside(results)
    roof = measured.traffic(LOOP) if measured else None
    if roof is None:
        return
    times = [1e-3 * with_keys(problem, number).kv_bytes / roof for number in keys]
    low = axes.get_ylim()[0]
    places = zip(keys, map(math.log10, times), strict=True)
    seen = [(number, time) for number, time in places if time >= low]
    axes.plot(*zip(*seen, strict=True), color=style.MUTED, linewidth=0.9, linestyle=DOTS)
    axes.annotate(
        form.either("its bytes ", "") + f"at {roof:.0f} GB/s",
        seen[len(seen) // 2],
        xytext=(4, -4),
        textcoords="offset points",
        size=style.SMALL,
        color=style.MUTED,
        va="top",
    )
