# SPDX-License-Identifier: MIT
"""What runs when: rows of bars over time. Orders, not measurements: the lengths are drawn by eye,
except where a figure states its rule (timelines.py has those that were measured)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from canvas import SMALL, Canvas, begin
from ladder import read_json

Bar = tuple[float, float, str, str]  # begin, length, text, fill

QK, PV, EXP, LOAD, WAIT, STORE = (
    "blue-soft",
    "teal-soft",
    "orange-soft",
    "green-soft",
    "none",
    "violet-soft",
)
NOT_TO_SCALE = "Time runs to the right. Order only, not to scale."


@dataclass(frozen=True)
class Row:
    name: str
    bars: Sequence[Bar]
    gap: float = 8  # below it


def chart(
    title: str,
    description: str,
    rows: Sequence[Row],
    end: float,
    told: Sequence[str] = (),
    *,
    left: float = 104,
    note: str = NOT_TO_SCALE,
) -> Canvas:
    """Rows of bars; `end` is the time at the right edge."""
    canvas, y = begin(title, description, note=note)
    unit = (426 - left) / end
    for row in rows:
        canvas.text(14, y + 14, row.name, size=SMALL, bold=True)
        for start, length, text, fill in row.bars:
            x, width = left + start * unit, length * unit
            if fill == WAIT:
                canvas.rect(x, y, width, 28, "none", "muted", dashed=True)
            else:
                canvas.rect(x, y, width, 28, fill, "paper")
            if len(text) * 5.8 > width + 3:
                raise ValueError(f"{title}: '{text}' is wider than its bar")
            if text:
                canvas.text(x + width / 2, y + 14, text, size=SMALL, anchor="middle")
        y += 28 + row.gap
    canvas.lines(14, y + 8, told, "muted", size=SMALL)
    return canvas


FILLS = {"qk": QK, "pv": PV, "exp": EXP, "load": LOAD, "wait": WAIT, "store": STORE}
DRAWINGS = read_json(Path(__file__).with_suffix(".json"), "drawings of bars", dict)


def drawing(name: str) -> Canvas:
    """One of orders.json: bars are [begin, length, text, fill]."""
    found = dict(DRAWINGS[name])
    found["rows"] = [
        Row(**row | {"bars": [(*bar, FILLS[fill]) for *bar, fill in row["bars"]]})
        for row in found["rows"]
    ]
    return chart(**found)


# --- the ring -------------------------------------------------------------------------------------

SLOTS, LOADING, READING = 3, 2, 2
ITEMS = ("K0", "V0", "K1", "V1", "K2", "V2")


def ring_times() -> list[tuple[float, float, float, float]]:
    """Of each item: load started, arrived, read from, read until; as the two roles wait."""
    times: list[tuple[float, float, float, float]] = []
    for item in range(len(ITEMS)):
        free = times[item - SLOTS][3] if item >= SLOTS else 0.0
        start = max(times[-1][0] + 0.5 if times else 0.0, free)
        landed = start + LOADING
        begin_read = max(landed, times[-1][3] if times else 0.0)
        times.append((start, landed, begin_read, begin_read + READING))
    return times


def ring() -> Canvas:
    canvas, y = begin(
        "A ring of three slots over two rounds",
        "Three slots over time. Each slot is loaded, full, read and empty, twice. The full barrier "
        "of a slot completes phase 0 when the first load has arrived and phase 1 after the second; "
        "the empty barrier completes a phase when the consumer has read.",
        note="Time runs to the right; computed from the rules below.",
    )
    times = ring_times()
    left, unit = 66.0, 356.0 / (times[-1][3] + 0.2)
    for slot in range(SLOTS):
        top = y + 24 + slot * 66
        canvas.text(14, top + 14, f"slot {slot}", size=SMALL, bold=True)
        canvas.rect(left, top, 356, 28, "none", "line", dashed=True)
        for turn, item in enumerate(range(slot, len(ITEMS), SLOTS)):
            start, landed, read, done = (left + at * unit for at in times[item])
            canvas.cell(start, top, landed - start, 28, ITEMS[item], "orange-soft")
            if read > landed:
                canvas.rect(landed, top, read - landed, 28, "green-soft", "paper")
            canvas.cell(read, top, done - read, 28, f"read {ITEMS[item]}", "blue-soft", size=SMALL)
            for at, hue, name in (
                (landed, "orange", f"full: {turn}"),
                (done, "blue", f"empty: {turn}"),
            ):
                canvas.line([(at, top), (at, top + 36)], hue, thick=1.6)
                anchor = "middle" if at < 400 else "end"
                canvas.text(at if at < 400 else 428, top + 44, name, hue, size=SMALL, anchor=anchor)
    y += 24 + SLOTS * 66 + 8
    for hue, text in (
        ("orange-soft", "loading"),
        ("green-soft", "full"),
        ("blue-soft", "being read"),
    ):
        canvas.rect(
            left + (("loading", "full", "being read").index(text)) * 100, y - 7, 14, 14, hue, "line"
        )
        canvas.text(
            left + (("loading", "full", "being read").index(text)) * 100 + 19, y, text, size=SMALL
        )
    y += 24
    canvas.text(
        14, y, "full: n, empty: n - phase n of that barrier is complete.", "muted", size=SMALL
    )
    rule = (
        "Round n: the consumer waits for full with parity n mod 2,",
        "the producer for empty with the other parity. In round 0",
        "that is parity 1, complete on a new barrier: it does not wait.",
    )
    canvas.lines(14, y + 20, rule, size=SMALL)
    return canvas


# --- 52: two launches -----------------------------------------------------------------------------


def launches() -> Canvas:
    """Two launches back to back, with and without an early begin."""
    start, tiles, merged = 2.4, 6.0, 2.6
    end = start + tiles + merged

    def work(begin: float) -> list[Bar]:
        return [(begin, tiles, "tiles", QK), (begin + tiles, merged, "merge", STORE)]

    first = [(0.0, start, "start", "grey-soft"), *work(start)]
    after = [(end, start, "start", "grey-soft"), *work(end + start)]
    came = start + tiles - 0.6  # as the first blocks leave
    waits = (came + start, end - came - start, "", WAIT)
    early = [(came, start, "start", "grey-soft"), waits, *work(end)]
    return chart(
        "52: the second launch starts early",
        "Two launches back to back. In 45 the second starts when the first has ended. In 52 the "
        "second starts while the last thread blocks of the first merge, waits for their end, and "
        "then loads its tiles.",
        (
            Row("45, first", first),
            Row("45, second", after, 20),
            Row("52, first", first),
            Row("52, second", early),
        ),
        2 * end,
        (
            "start: until the thread blocks run on their SMs.",
            "Dashed: griddepcontrol.wait.",
        ),
    )


FIGURES = {name: partial(drawing, name) for name in DRAWINGS} | {
    "ring": ring,
    "decode_launches": launches,
}
