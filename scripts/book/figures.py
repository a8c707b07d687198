# SPDX-License-Identifier: MIT
"""Images and tables of a page, made to fit: charts for narrow windows, long tables folded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

CHARTS = "assets"  # drawn for a desktop: in a narrow window one without a narrow form scrolls
NARROW = ".narrow.svg"  # progression.narrow.svg is progression.svg for narrow windows
NARROW_WINDOW = "(max-width: 600px)"
MOST_ROWS = 16  # of a generated table that is not folded
INDEXES = ("chapters", "ladder")  # tables that one comes for are not folded either

IMAGE = re.compile(r'<img ([^>]*?)src="([^":]+\.svg)"([^>]*?)/?>')
# What a drawing asks for in pixels, else what it is drawn in.
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', re.S)
BOX = re.compile(r'<svg[^>]*?viewBox="[\d.\-]+ [\d.\-]+ ([\d.]+) ([\d.]+)"', re.S)
TABLE = re.compile(r"^<!-- table:(\w+)[^\n]*-->\n(.*?)^<!-- /table -->$", re.S | re.M)
ROWS = re.compile(r"^\|.*\n", re.M)


def size_of(image: Path) -> str:
    """Attributes that keep the place of an image free until it is loaded."""
    text = image.read_text(encoding="utf-8")[:4000]
    size = SIZE.search(text) or BOX.search(text)
    return f' width="{float(size[1]):.0f}" height="{float(size[2]):.0f}"' if size else ""


def with_narrow_forms(page: str, at: str, find: Callable[[str], Path | None]) -> str:
    """`at` is the URL of the page below the root of the site; `find` gives the file of a URL."""

    def replaced(match: re.Match[str]) -> str:
        before, address, after = match.groups()
        url = posixpath.normpath(posixpath.join(at, address))
        image = find(url)
        if image is None:
            return match[0]
        text = f'<img {before}src="{address}"{after.rstrip()} loading="lazy"{size_of(image)}>'
        if find(url.removesuffix(".svg") + NARROW) is None:
            is_chart = posixpath.dirname(url) == CHARTS
            return f'<span class="wide" tabindex="0">{text}</span>' if is_chart else text
        narrow = address.removesuffix(".svg") + NARROW
        source = f'<source media="{NARROW_WINDOW}" srcset="{narrow}">'
        return f"<picture>{source}{text}</picture>"

    return IMAGE.sub(replaced, page)


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
