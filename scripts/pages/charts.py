# SPDX-License-Identifier: MIT
"""Charts in docs/assets: drawn, and checked for what they were drawn from."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import ladder
from ladder import LadderError

from pages.site import (
    COUNTS,
    DECODE_RESULTS,
    MAIN_RESULTS,
    SINGLE_RESULTS,
    SPREAD_RESULTS,
    Site,
)

PROVENANCE = re.compile(r"<metadata>(.*?)</metadata>", re.S)



def chart_problem(site: Site, chart: Path) -> str:
    """Why a committed chart is out of date; empty when it is not."""
    name = chart.relative_to(site.root)
    described = PROVENANCE.search(chart.read_text(encoding="utf-8"))
    if not described:
        return ""  # a drawing, not a chart
    try:
        made_from = json.loads(unescape(described[1]))
        source = site.root / made_from["results"]
        results = site.load(source)
    except (ValueError, KeyError, TypeError, LadderError) as error:
        return f"{name}: what it was drawn from cannot be read ({error})"
    if made_from.get("results_sha256") != results.sha256:
        return f"{name} was drawn from another version of {made_from['results']}"
    if made_from.get("limits_sha256") != ladder.limits_sha256(results):
        return f"{name} was drawn with other limits than those beside {made_from['results']}"
    if made_from.get("catalogue_sha256") != site.catalogue.of(results).sha256:
        return f"{name} was drawn from another catalogue"
    return ""


def chart_problems(site: Site) -> list[str]:
    assets = site.root / "docs" / "assets"
    charts = sorted(assets.glob("*.svg"))
    problems = [problem for chart in charts if (problem := chart_problem(site, chart))]
    if not charts and site.results_path(MAIN_RESULTS).exists():
        problems.append(f"plots/results/{MAIN_RESULTS} has no charts in docs/assets")
    return problems


def render_charts(site: Site, catalogue: Path | None) -> None:
    try:
        import render
    except ImportError as error:
        raise LadderError(f"the charts need matplotlib ({error}); scripts/setup.sh python") from None
    for name in (MAIN_RESULTS, SINGLE_RESULTS, SPREAD_RESULTS, DECODE_RESULTS, COUNTS):
        results = site.results_path(name)
        if not results.exists():
            continue
        words = ["--results", str(results), "--out", str(site.root / "docs" / "assets")]
        words += ["--catalogue", str(catalogue)] if catalogue else []
        with contextlib.redirect_stdout(io.StringIO()):
            code = render.main(words)
        if code != 0:
            raise LadderError("the charts could not be drawn; the messages above say why")


def draw_figures(site: Site) -> None:
    """The figures of docs/assets/figures, some of which show numbers of result files."""
    draw = site.root / "plots" / "figures" / "draw.py"
    if draw.is_file() and subprocess.run([sys.executable, str(draw), "--write"]).returncode != 0:
        raise LadderError("the figures could not be drawn; the messages above say why")
