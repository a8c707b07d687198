# SPDX-License-Identifier: MIT
"""The result of a rung, under the title of its chapter: rate beside parent and other implementations,
prediction and measurement, verdict, place on the ladder.

The numbers are those of docs/assets/strips.json, which scripts/docs.py writes; predictions.txt has what was
predicted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from book.source import BookError, Rung

FILE = "docs/assets/strips.json"
PREDICTIONS = Path(__file__).with_name("predictions.txt")
TITLE = re.compile(r"^# .*\n", re.M)
SHORT = {"FlashAttention-2": "FA2", "FlashAttention-3": "FA3"}


def read(root: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((root / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BookError(f"{FILE}: {error}; scripts/docs.py --write writes it") from None


def predictions() -> dict[str, tuple[str, str]]:
    """Of each rung by its name: the prediction, and its problem or nothing."""
    lines = PREDICTIONS.read_text(encoding="utf-8").splitlines()
    parts = ([*line.split(" | "), ""] for line in lines if not line.startswith("#"))
    return {name: (text, problem) for name, text, problem, *_ in parts}


def bar(each: dict[str, Any], longest: float) -> str:
    share = 100 * each["value"] / longest
    name = escape(SHORT.get(each["name"], each["name"]))
    value = f"{each['value']:g}"
    line = f'<span class="bar"><span style="width:{share:.1f}%"></span></span>'
    return f'<li class="{each["kind"]}"><span>{name}</span>{line}<span>{value}</span></li>'


def told(verdict: str, parent: str) -> str:
    """The verdict is of all problems of a rung, unlike the measurement beside it. One run gives none:
    its interval is not known."""
    if verdict in ("faster", "slower"):
        return f'<b class="{verdict}">{verdict}</b> than {parent} over all its problems'
    if verdict == "flat":
        return f"<b>flat</b> against {parent} over all its problems"
    return f"one run, against {parent}" if parent else "the first of its kind"


def html(row: dict[str, Any], predicted: str, place: int, count: int) -> str:
    longest = max(each["value"] for each in row["bars"])
    bars = "".join(bar(each, longest) for each in row["bars"])
    own = next(each["value"] for each in row["bars"] if each["kind"] == "own")
    measured = ", ".join(filter(None, (f"{own:g} {row['unit']}", row["change"], row["share"])))
    facts = {"predicted": predicted, "measured": measured, "rung": f"{place} of {count}"}
    shown = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text)
    better = "less is faster" if row["unit"] == "µs" else "more is faster"
    head = f"<p>{told(row['verdict'], row['parent'])}</p><dl>{shown}</dl>"
    note = f"{row['unit']}, {better}; {row['problem']}"
    return (
        f'<div class="strip" data-strip role="group" aria-label="Result of this rung"><div>{head}</div>'
        f'<div><ul>{bars}</ul><small>{escape(note)}</small></div></div>\n'
    )


def with_strip(markdown: str, root: Path, rung: Rung, rungs: Sequence[Rung]) -> str:
    """The chapter with its strip; as it is where the rung was not measured."""
    row, title = read(root).get(rung.name), TITLE.search(markdown)
    if row is None or title is None:
        return markdown
    predicted, _ = predictions().get(rung.name, ("", ""))
    shown = html(row, predicted, rungs.index(rung) + 1, len(rungs))
    return f"{markdown[: title.end()]}\n{shown}\n{markdown[title.end() :]}"
