# SPDX-License-Identifier: MIT
"""Timelines of a few rungs, as measured on the card by clock stamps.

plots/results/h200/timeline.json is what fa_timeline record wrote (harness/measure/timeline).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from canvas import SMALL, Canvas, begin
from ladder import read_json

HERE = Path(__file__).resolve().parent
STAMPS = HERE.parent / "results" / "h200" / "timeline.json"
SHOWN = 3  # iterations
STRIPE = 4.0  # a narrower span is drawn as its neighbour
BC = 128  # keys of a block, in all of these rungs

# Kind of a span -> its colour and its name.
KINDS = {
    "product": ("blue", "products issued"),
    "arithmetic": ("orange", "softmax"),
    "wait_products": ("blue-soft", "waits for products"),
    "wait_data": ("green-soft", "waits for data or a slot"),
    "wait_turn": ("violet-soft", "waits for its turn"),
    "copy": ("green", "copies started"),
    "other": ("grey-soft", "other"),
}
TITLES = {
    "22": "22: product, softmax, product",
    "23": "23: a producer and two consumers",
    "25": "25: two products in flight",
}


@dataclass(frozen=True)
class Span:
    begin: float
    end: float
    kind: str


# --- what was measured ----------------------------------------------------------------------------


@functools.cache
def stamps() -> dict[str, Any]:
    return read_json(STAMPS, "what fa_timeline writes", dict)


def product_name(rung: str, index: int, key_blocks: int) -> str:
    """QK or PV: which of the two the commit of this number closed."""
    if rung in ("22", "23", "24"):
        return "PV" if index % 2 else "QK"
    place = index % (2 * key_blocks)
    if place in (0, 2 * key_blocks - 1):
        return "QK" if place == 0 else "PV"
    return "QK" if place % 2 else "PV"


def thread_spans(events: Sequence[Sequence[int]], kinds: Sequence[str]) -> list[Span]:
    """What a warp does: its waits, and between them its work."""
    waits = {
        "wait_begin": ("wait_end", "wait_data"),
        "products_wait": ("products_done", "wait_products"),
        "turn_wait": ("turn_taken", "wait_turn"),
    }
    found: list[Span] = []
    last = events[0][0]
    opened: tuple[float, str, str] | None = None
    for clock, code, _ in events:
        name = kinds[code]
        if opened and name == opened[1]:
            found.append(Span(opened[0], clock, opened[2]))
            last, opened = clock, None
        elif name in waits:
            found.append(Span(last, clock, "arithmetic"))
            opened = (clock, *waits[name])
        elif name == "commit":
            found.append(Span(last, clock, "arithmetic"))
            last = clock
    return found


def product_spans(
    rung: str, events: Sequence[Sequence[int]], kinds: Sequence[str], key_blocks: int
) -> list[Span]:
    """From the commit of each group, or the end of the one before, to where a wait shows that it is
    complete: groups of a warpgroup run in order."""
    commits: list[int] = []
    found: list[Span] = []
    for clock, code, detail in events:
        if kinds[code] == "commit":
            commits.append(clock)
        if kinds[code] == "products_done":
            while len(found) < len(commits) - detail:
                index = len(found)
                begins = max(commits[index], found[-1].end if found else 0)
                found.append(Span(begins, clock, product_name(rung, index, key_blocks)))
    return found


def window_of(
    events: Sequence[Sequence[int]], kinds: Sequence[str], key_blocks: int
) -> tuple[float, float]:
    """A few iterations in the middle of a tile."""
    commits = [clock for clock, code, _ in events if kinds[code] == "commit"]
    first = 2 * (key_blocks // 2) if len(commits) > 2 * (key_blocks // 2 + SHOWN) else 0
    return commits[first], commits[min(first + 2 * SHOWN, len(commits) - 1)]


# --- drawing --------------------------------------------------------------------------------------


class Axis:
    def __init__(self, begins: float, ends: float) -> None:
        self.left, self.begins, self.unit = 92.0, begins, 334.0 / (ends - begins)
        self.ends = ends

    def clipped(self, span: Span) -> tuple[float, float] | None:
        low, high = max(span.begin, self.begins), min(span.end, self.ends)
        if high <= low:
            return None
        return self.left + (low - self.begins) * self.unit, (high - low) * self.unit

    def joined(self, spans: Sequence[Span]) -> list[Span]:
        """Without stripes that nobody could tell apart: each goes to the span before it."""
        found: list[Span] = []
        for span in sorted(spans, key=lambda each: each.begin):
            is_stripe = (span.end - span.begin) * self.unit < STRIPE and span.kind != "copy"
            continues = found and found[-1].kind == span.kind and span.begin <= found[-1].end
            if found and (is_stripe or continues):
                found[-1] = replace(found[-1], end=max(span.end, found[-1].end))
            else:
                found.append(span)
        return found


def lane(
    canvas: Canvas, y: float, name: str, axis: Axis, spans: Sequence[Span], height: float = 20
) -> float:
    canvas.text(14, y + height / 2, name, size=SMALL)
    canvas.rect(axis.left, y, 334, height, "none", "line")
    for span in axis.joined(spans):
        place = axis.clipped(span)
        if place is None:
            continue
        hue = {"QK": "blue", "PV": "teal"}.get(span.kind) or KINDS[span.kind][0]
        canvas.rect(place[0], y, place[1], height, hue, radius=0)
        if span.kind in ("QK", "PV") and place[1] > 26:
            canvas.text(
                place[0] + place[1] / 2,
                y + height / 2,
                span.kind,
                "paper",
                size=SMALL,
                anchor="middle",
            )
    return y + height + 6


def card(canvas: Canvas, y: float, rung: str, document: dict[str, Any]) -> tuple[float, set[str]]:
    """A few iterations on the card."""
    (row,) = (row for row in document["rows"] if row["id"] == rung)
    kinds, key_blocks = document["kinds"], row["problem"]["seq_kv"] // BC
    warps = {each["warp"]: each["events"] for each in row["warps"]}
    leaders = (0, 4) if rung == "22" else (4, 8)
    window = window_of(warps[leaders[0]], kinds, key_blocks)
    axis = Axis(*window)
    slower = 100 * (row["stamped_ms"]["back_to_back"] / row["plain_ms"]["back_to_back"] - 1)
    canvas.text(
        14,
        y + 6,
        f"On the card: {window[1] - window[0]:.0f} clocks, {SHOWN} iterations",
        size=SMALL,
        bold=True,
    )
    canvas.text(426, y + 6, f"stamps cost {slower:.0f} %", "muted", size=SMALL, anchor="end")
    source = f"{document['device']['name']}, N = {row['problem']['seq_q']}, "
    source += f"commit {document['generator']['git_sha'][:9]}"
    canvas.text(14, y + 22, source, "muted", size=SMALL)
    y += 36
    shown: set[str] = set()
    if rung != "22":
        loads = [
            Span(clock, clock + 24, "copy") for clock, code, _ in warps[0] if kinds[code] == "load"
        ]
        waits = [span for span in thread_spans(warps[0], kinds) if span.kind == "wait_data"]
        y = lane(canvas, y, "producer", axis, [*waits, *loads])
        shown |= {"copy", "wait_data"}
    for number, warp in enumerate(leaders):
        threads = thread_spans(warps[warp], kinds)
        y = lane(
            canvas,
            y,
            f"products {number}",
            axis,
            product_spans(rung, warps[warp], kinds, key_blocks),
        )
        y = lane(canvas, y, f"threads {number}", axis, threads) + 6
        shown |= {span.kind for span in threads}
    return y, shown


def legend(canvas: Canvas, y: float, shown: set[str]) -> None:
    x = 14.0
    for kind, (hue, name) in KINDS.items():
        if kind not in shown:
            continue
        width = 19 + len(name) * 6.3 + 14
        if x + width > 436:
            x, y = 14.0, y + 20
        canvas.rect(x, y - 7, 14, 14, hue, "line")
        canvas.text(x + 19, y, name, size=SMALL)
        x += width


def timeline(rung: str) -> Canvas:
    who = "the two warpgroups" if rung == "22" else "the producer and the two consumers"
    description = f"Bars over time for {who}: products, softmax, waits, in clocks measured on the card."
    canvas, y = begin(TITLES[rung], description)
    y, shown = card(canvas, y + 2, rung, stamps())
    legend(canvas, y + 8, shown)
    return canvas


FIGURES = {f"timeline_{rung}": functools.partial(timeline, rung) for rung in TITLES}
