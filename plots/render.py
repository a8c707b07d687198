#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Renders every chart of a result set into a folder. This is the list of charts.

  plots/render.py --results plots/results/h200/ladder --out docs/assets
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import cache
import counts
import memory
import parent
import progression
import roofline
import seq_len
import spread
import style
from ladder import (
    DECODE_PROBLEMS,
    MAIN_PROBLEM,
    SINGLE,
    Catalogue,
    LadderError,
    Problem,
    Results,
)


@dataclass(frozen=True)
class Chart:
    name: str
    draw: style.Draw
    problem: str = MAIN_PROBLEM
    counted: bool = False  # drawn from counts of the virtual machine instead of times
    varied: bool = False  # drawn from a file that compares inputs
    cached: bool = False  # drawn from a file of new queries against caches


CHARTS = (
    Chart("progression", progression.draw),
    Chart("progression_d64", progression.draw, "16,16,8192,64"),
    Chart("progression_causal", progression.draw, f"{MAIN_PROBLEM},causal"),
    Chart("progression_fp32", progression.draw, SINGLE),
    Chart("progression_decode", progression.draw, DECODE_PROBLEMS[0], cached=True),
    Chart("seq_len", seq_len.draw),
    Chart("parent", parent.draw),
    Chart("roofline", roofline.draw),
    Chart("roofline_fp32", roofline.draw, SINGLE),
    Chart("memory", memory.draw, memory.PROBLEM),
    Chart("spread", spread.draw, varied=True),
    Chart("cache", cache.draw, cache.PROBLEM, cached=True),
    Chart("counts", counts.draw, counts.PROBLEM, counted=True),
)
# The site shows NAME.narrow in place of NAME where the window is narrow.
FORMS = {"": style.WIDE, ".narrow": style.NARROW}


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, required=True, help="folder of runs, or a JSON file of fa bench or fa explain")
    parser.add_argument("--out", type=Path, required=True, help="folder for SVG files")
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    parser.add_argument("--note", default="", help="text for the captions")
    return parser.parse_args(argv)


def charts_of(results: Results) -> list[Chart]:
    """Those that this kind of file may have data for; another dtype is another file, and so are
    other inputs."""
    if results.is_counted:
        return [chart for chart in CHARTS if chart.counted]
    dtypes = {row.problem.dtype for row in results.rows}
    charts = [chart for chart in CHARTS if not chart.counted]
    charts = [chart for chart in charts if chart.varied == results.varies_inputs]
    charts = [chart for chart in charts if chart.cached == results.has_caches]
    return [chart for chart in charts if Problem.parse(chart.problem).dtype in dtypes]


def render(results: Results, catalogue: Catalogue, out: Path, note: str) -> list[str]:
    """Draws what the file has data for; returns why charts were left out."""
    left_out = []
    catalogue = catalogue.of(results)
    if not charts_of(results):
        raise LadderError(f"{results.name} has no rows")
    for chart in charts_of(results):
        problem = Problem.parse(chart.problem)
        for suffix, form in FORMS.items():
            try:
                figure = chart.draw(results, catalogue, problem, note, form)
            except LadderError as reason:
                left_out.append(f"{chart.name} not drawn: {reason}")
                break
            path = out / f"{chart.name}{suffix}.svg"
            style.save(figure, path, results, catalogue)
            print(path)
    return left_out


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        results = Results.load(arguments.results)
        catalogue = Catalogue.load(arguments.catalogue)
        left_out = render(results, catalogue, arguments.out, arguments.note)
    except LadderError as error:
        print(f"render.py: error: {error}", file=sys.stderr)
        return error.code
    for reason in left_out:
        print(f"render.py: {reason}", file=sys.stderr)
    return 2 if len(left_out) == len(charts_of(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
