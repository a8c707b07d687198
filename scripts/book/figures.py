# SPDX-License-Identifier: MIT
"""Images and tables of a page, made to fit: charts for narrow windows, switches between charts, long tables folded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

NARROW = ".narrow.svg"  # progression.narrow.svg is progression.svg for narrow windows
NARROW_WINDOW = "(max-width: 700px)"
MOST_ROWS = 16  # of a generated table that is not folded
# Long tables that are folded, and under which title; the others are what one comes for.
TITLES = {
    "caches": "Every rung of decode: time, bytes per second, change",
    "ncu": "Every count of the machine beside the counter of the hardware",
}

IMAGE = re.compile(r'<img ([^>]*?)src="([^":]+\.svg)"([^>]*?)/?>')
TITLE = re.compile(r' ?title="([^"]*)"')
# What a drawing asks for in pixels, else what it is drawn in.
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', re.S)
BOX = re.compile(r'<svg[^>]*?viewBox="[\d.\-]+ [\d.\-]+ ([\d.]+) ([\d.]+)"', re.S)
DATA = "<metadata>"  # charts have it, and drawings have not
SWITCH = re.compile(r'(?:<span class="chart" title="[^"]*">.*?</span>\s*){2,}', re.S)
CHOICE = re.compile(r'<span class="chart" title="([^"]*)"')
TABLE = re.compile(r"^<!-- table:(\w+)[^\n]*-->\n(.*?)^<!-- /table -->$", re.S | re.M)
ROWS = re.compile(r"^\|.*\n", re.M)


def size_of(text: str) -> str:
    """Attributes that keep the place of an image free until it is loaded."""
    size = SIZE.search(text[:4000]) or BOX.search(text[:4000])
    return f' width="{float(size[1]):.0f}" height="{float(size[2]):.0f}"' if size else ""


def with_charts(page: str, at: str, find: Callable[[str], Path | None]) -> str:
    """`at` is the URL of the page below the root of the site; `find` gives the file of a URL. The links
    in charts work where docs/assets/charts.js makes them a part of the page."""

    def replaced(match: re.Match[str]) -> str:
        before, address, after = match.groups()
        url = posixpath.normpath(posixpath.join(at, address))
        image = find(url)
        if image is None:
            return match[0]
        text = image.read_text(encoding="utf-8")
        title = TITLE.search(before + after)
        after = TITLE.sub("", after).rstrip()
        shown = f'<img {before}src="{address}"{after} loading="lazy"{size_of(text)}>'
        if DATA not in text:
            return shown
        source = ""
        if find(url.removesuffix(".svg") + NARROW):
            narrow = address.removesuffix(".svg") + NARROW
            source = f'<source media="{NARROW_WINDOW}" srcset="{narrow}">'
        choice = f" {title[0].strip()}" if title else ""
        return f'<span class="chart"{choice}><picture>{source}{shown}</picture></span>'

    return SWITCH.sub(with_switch, IMAGE.sub(replaced, page))


def with_switch(match: re.Match[str]) -> str:
    """Of charts in a row that have titles, one is shown at a time."""
    choices = "".join(
        f'<input type="radio" name="chart" id="chart-{place}"{" checked" * (place == 0)}>'
        f'<label for="chart-{place}">{title}</label>'
        for place, title in enumerate(CHOICE.findall(match[0]))
    )
    charts = CHOICE.sub('<span class="chart"', match[0])
    return f'<span class="charts">{choices}{charts}</span>'


def fold(match: re.Match[str]) -> str:
    title, count = TITLES.get(match[1]), len(ROWS.findall(match[2])) - 2
    if title is None or count <= MOST_ROWS:
        return match[0]
    opening = f'<details class="fold" markdown="1"><summary>{title}</summary>'
    return f"{opening}\n\n{match[0]}\n\n</details>"


def with_folded_tables(markdown: str) -> str:
    return TABLE.sub(fold, markdown)


# A cell with a change against a parent: what it is, how far it may be off.
CHANGE = re.compile(
    r"<td([^>]*)>((?:(?P<times>×)|(?P<sign>[+−])) ?(?P<value>[\d.]+)(?: ± (?P<half>[\d.]+))? ?%? against )"
)
UNSURE = 2.0  # percent; a single run tells no smaller difference


def coloured(match: re.Match[str]) -> str:
    half = float(match["half"]) if match["half"] else UNSURE
    if not match["times"] and float(match["value"]) <= half:
        return match[0]
    kind = "slower" if match["sign"] == "−" else "faster"
    return f'<td{match[1]} class="{kind}">{match[2]}'


def with_coloured_changes(html: str) -> str:
    return CHANGE.sub(coloured, html)


CELL = re.compile(r"<td[^>]*>[^<]*± [^<]*</td>")
TOGETHER = ("± ", "× ", " %", "against ")


def with_whole_intervals(html: str) -> str:
    """A line of a narrow column ends before an interval or a parent, and not within."""

    def unbroken(match: re.Match[str]) -> str:
        cell = match[0]
        for piece in TOGETHER:
            cell = cell.replace(piece, piece.replace(" ", "&nbsp;"))
        return cell

    return CELL.sub(unbroken, html)
