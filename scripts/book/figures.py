# SPDX-License-Identifier: MIT
"""Images and tables of a page, made to fit: charts as a part of the page, long tables folded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

NARROW = ".narrow.svg"  # progression.narrow.svg is progression.svg for narrow windows
MOST_ROWS = 16  # of a generated table that is not folded
INDEXES = ("ladder",)  # tables that one comes for are not folded either

IMAGE = re.compile(r'<img ([^>]*?)src="([^":]+\.svg)"([^>]*?)/?>')
ATTRIBUTE = re.compile(r'(alt|title)="([^"]*)"')
# What a drawing asks for in pixels, else what it is drawn in.
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', re.S)
BOX = re.compile(r'<svg[^>]*?viewBox="[\d.\-]+ [\d.\-]+ ([\d.]+) ([\d.]+)"', re.S)
DATA = re.compile(r"<metadata>.*?</metadata>\n?", re.S)  # charts have it, and drawings have not
CHART_LINK = re.compile(r'href="\.\./([^"]+\.md)"')
DARK = "@media(prefers-color-scheme:dark){"
SWITCH = re.compile(r'(?:<span class="chart" title="[^"]*".*?</span></span>\s*){2,}', re.S)
CHOICE = re.compile(r'<span class="chart" title="([^"]*)"')
TABLE = re.compile(r"^<!-- table:(\w+)[^\n]*-->\n(.*?)^<!-- /table -->$", re.S | re.M)
ROWS = re.compile(r"^\|.*\n", re.M)

Find = Callable[[str], Path | None]


def size_of(text: str) -> str:
    """Attributes that keep the place of an image free until it is loaded."""
    size = SIZE.search(text[:4000]) or BOX.search(text[:4000])
    return f' width="{float(size[1]):.0f}" height="{float(size[2]):.0f}"' if size else ""


def part_of_page(svg: str, words: str, link: Callable[[str], str]) -> str:
    """A chart whose colours follow the switch of the page, and whose links lead to its pages."""
    svg = DATA.sub("", svg).replace("<style>text{", "<style>.chart text{")
    svg = svg.replace(DARK, '[data-md-color-scheme="slate"] .chart{')
    svg = svg.replace("<svg ", f'<svg role="group" aria-label="{words}" ', 1)
    return CHART_LINK.sub(lambda match: f'href="{link(match[1])}"', svg)


def with_charts(page: str, at: str, find: Find, link: Callable[[str], str]) -> str:
    """`at` is the URL of the page below the root of the site; `find` gives the file of a URL, `link`
    the address of a page of docs/ from this page."""

    def replaced(match: re.Match[str]) -> str:
        before, address, after = match.groups()
        url = posixpath.normpath(posixpath.join(at, address))
        image = find(url)
        if image is None:
            return match[0]
        text = image.read_text(encoding="utf-8")
        if not DATA.search(text):
            return f'<img {before}src="{address}"{after.rstrip()} loading="lazy"{size_of(text)}>'
        said = dict(ATTRIBUTE.findall(before + after))
        forms = {"wide": text}
        if narrow := find(url.removesuffix(".svg") + NARROW):
            forms["narrow"] = narrow.read_text(encoding="utf-8")
        parts = "".join(
            f'<span class="chart-{form}">{part_of_page(svg, said.get("alt", ""), link)}</span>'
            for form, svg in forms.items()
        )
        title = f' title="{said["title"]}"' if "title" in said else ""
        return f'<span class="chart"{title} data-search-exclude>{parts}</span>'

    return SWITCH.sub(with_switch, IMAGE.sub(replaced, page))


def with_switch(match: re.Match[str]) -> str:
    """Of charts in a row that have titles, one is shown at a time."""
    choices = "".join(
        f'<input type="radio" name="chart" id="chart-{place}"{" checked" * (place == 0)}>'
        f'<label for="chart-{place}">{escape(unescape(title))}</label>'
        for place, title in enumerate(CHOICE.findall(match[0]))
    )
    charts = CHOICE.sub('<span class="chart"', match[0])
    return f'<span class="charts">{choices}{charts}</span>'


def fold(match: re.Match[str]) -> str:
    rows = ROWS.findall(match[2])
    count = len(rows) - 2
    if match[1] in INDEXES or count <= MOST_ROWS:
        return match[0]
    heads = rows[0].replace("`", "").strip("| \n").split(" | ")
    summary = f"Table of {count} rows: {heads[0]}, {', '.join(heads[1:4])} ..."
    opening = f'<details class="fold" markdown="1"><summary>{summary}</summary>'
    return f"{opening}\n\n{match[0]}\n\n</details>"


def with_folded_tables(markdown: str) -> str:
    return TABLE.sub(fold, markdown)
