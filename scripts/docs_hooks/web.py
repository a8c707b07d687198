# SPDX-License-Identifier: MIT
"""MkDocs hook: the live parts of the pages.

A chapter gets "Run it here" before its exercise. Any page gets a widget where a comment stands:

  <!-- widget:banks rung=01_base -->

Without JavaScript the static part of a widget stays: a sentence, or what the page has between such
a comment and <!-- /widget -->, a figure say. What the widgets load is in the folder that
FA_WEB_DATA names (scripts/web.py); without it pages have no widgets.
"""

from __future__ import annotations

import html
import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.web")

MARKER = re.compile(
    r"^<!-- widget:(\w+)((?: \w+=\S+)*) -->$(?:((?:(?!<!-- widget).)*?)^<!-- /widget -->$)?",
    re.MULTILINE | re.DOTALL,
)
BEFORE = re.compile(r"^## (?:Exercise|Next)\b", re.MULTILINE)
CHAPTER = re.compile(r"^[a-z0-9]\d_\w+$")
ASSETS = "assets/web"
MOST_ROWS = 8  # of a table that are not folded, as in counts.js
WITHOUT = "*This site was built without its live parts; `scripts/docs.sh` says what they need.*"
STATIC = {
    "break": "Each barrier, fence and wait of the kernel as a switch: needs JavaScript.",
    "banks": "The 32 banks of shared memory, as a kernel uses them: needs JavaScript.",
    "holds": "Which lane holds which element of a fragment: needs JavaScript.",
    "timeline": "What each warp does, step by step: needs JavaScript.",
    "softmax": "The recurrence of the online softmax on six numbers: needs JavaScript.",
    "ring": "A ring of slots between a producer and a consumer: needs JavaScript.",
    "chart": "Measured rates of all rungs: needs JavaScript; the tables of the chapters hold them.",
    "exercise": "The gaps of this exercise to fill in here: needs JavaScript.",
    "play": "An editor for PTX, with the machine behind it: needs JavaScript.",
}


def data_folder() -> Path | None:
    folder = os.environ.get("FA_WEB_DATA")
    return Path(folder) if folder and (Path(folder) / "rungs.json").is_file() else None


def rung_data(name: str) -> dict[str, Any] | None:
    folder = data_folder()
    file = folder / "rungs" / f"{name}.json" if folder else None
    return json.loads(file.read_text(encoding="utf-8")) if file and file.is_file() else None


def static_run(name: str) -> str:
    """The counts that the page would show first."""
    data = rung_data(name)
    if data is None:
        return ""
    choice, counts = data["expected"]["choice"], data["expected"]["counts"]
    rows = [
        f"<tr><th scope='row'>{html.escape(key.replace('_', ' '))}</th><td>{value}</td></tr>"
        for key, value in counts.items()
    ]

    def table(some: list[str]) -> str:
        return f"<table class='fa-counts'><tbody>{''.join(some)}</tbody></table>"

    more = f"<summary>{len(rows) - MOST_ROWS} more counts</summary>{table(rows[MOST_ROWS:])}"
    length = "keys" if data["expected"]["problem"]["seq_q"] == 1 else "N"
    what = f"{length}={choice['n']}, d={choice['d']}"
    return (
        f"<p>What the virtual machine counts in {name} at {what}; with JavaScript this part runs "
        f"the kernel in the page.</p>"
        f"<div class='fa-wide' tabindex='0' role='region' aria-label='counts'>"
        f"{table(rows[:MOST_ROWS])}<details>{more}</details></div>"
    )


def widget(name: str, options: dict[str, str], static: str = "") -> str:
    """`static` is Markdown."""
    attributes = "".join(f' data-{key}="{html.escape(value)}"' for key, value in options.items())
    rung = options.get("rung", "")
    inside = static_run(rung) if name == "run" else f"<p>{STATIC.get(name, '')}</p>"
    if static:
        inside = f"\n\n{static}\n\n"
    return f'<div class="fa-widget" markdown="1" data-widget="{name}"{attributes}>{inside}</div>'


def from_marker(match: re.Match[str]) -> str:
    options = dict(word.split("=", 1) for word in match[2].split())
    static = (match[3] or "").strip()
    return widget(match[1], options, static) if has_data(match[1], options) else static or WITHOUT


def has_data(name: str, options: dict[str, str]) -> bool:
    """Exercises need a CUDA compiler as well."""
    folder = data_folder()
    if folder is None or name != "exercise":
        return folder is not None
    return (folder / f"exercises/ex{options['number']}.json").is_file()


def chapter_part(name: str) -> str:
    run = widget("run", {"rung": name})
    broken = widget("break", {"rung": name})
    return (
        "## Run it here\n\n"
        "The kernel of this chapter on the [virtual machine](machine.md), in this page.\n\n"
        f"{run}\n\n"
        "### Break it\n\n"
        "Each synchronisation of the kernel is a switch. Turn one off, or another fault on, and the "
        f"machine or the check says what goes wrong.\n\n{broken}\n\n"
    )


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    name = Path(page.file.src_uri).stem
    if CHAPTER.match(name) and rung_data(name) is not None and "## Run it here" not in markdown:
        place = BEFORE.search(markdown)
        at = place.start() if place else len(markdown)
        markdown = f"{markdown[:at]}{chapter_part(name)}{markdown[at:]}"
    return MARKER.sub(from_marker, markdown)


def on_config(config: Any, **_: Any) -> Any:
    if data_folder() is None:
        log.info("FA_WEB_DATA names no folder of scripts/web.py: pages have no live parts")
    else:
        config["extra_css"].append(f"{ASSETS}/web.css")
    return config


def on_post_page(output: str, page: Any, **_: Any) -> str:
    if 'class="fa-widget"' not in output:
        return output
    depth = page.url.count("/")
    source = f"{'../' * depth}{ASSETS}/main.js"
    return output.replace("</body>", f'<script type="module" src="{source}"></script></body>', 1)


def on_post_build(config: Any, **_: Any) -> None:
    folder = data_folder()
    target = Path(config["site_dir"]) / ASSETS
    if folder is None:
        shutil.rmtree(target, ignore_errors=True)
    else:
        shutil.copytree(folder, target / "data", dirs_exist_ok=True)
