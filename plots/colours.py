# SPDX-License-Identifier: MIT
"""The colours of charts and figures, each in a light and a dark form."""

from __future__ import annotations

# Name -> (light, dark). A hue has a strong form for lines and letters and a soft one for areas.
COLOURS = {
    "paper": ("#fdfdfc", "#1e2129"),
    "ink": ("#1f2430", "#e6e8ee"),
    "muted": ("#5b6270", "#a9afbd"),
    "line": ("#cfd4dc", "#474c5a"),
    "blue": ("#235fae", "#82b6f7"),
    "blue-soft": ("#d6e6f8", "#21406a"),
    "orange": ("#a84d08", "#f2a866"),
    "orange-soft": ("#fbe0c5", "#5e3a1a"),
    "green": ("#1b7047", "#72d19e"),
    "green-soft": ("#cfeddc", "#1d4d37"),
    "red": ("#b3261e", "#f4938b"),
    "red-soft": ("#f9d6d3", "#652925"),
    "violet": ("#6238ad", "#bca2f2"),
    "violet-soft": ("#e4daf7", "#43336a"),
    "teal": ("#0c6a7c", "#67cadb"),
    "teal-soft": ("#cbebf0", "#164a55"),
    "yellow": ("#7d6000", "#e6c555"),
    "yellow-soft": ("#f6eabf", "#4f4415"),
    "pink": ("#a02a6d", "#f09bc8"),
    "pink-soft": ("#f7d7e8", "#5c2747"),
    "grey-soft": ("#e8eaee", "#343946"),
    "on-bar": ("#ffffff", "#12141a"),  # letters on a strong form
}
FAMILIES = {"fp32": "violet", "ampere": "blue", "hopper": "orange", "decode": "green", "backward": "pink", "blackwell": "yellow"}
OUTSTANDING = ("blue", "orange", "green", "violet", "pink")  # lines that are named
BACKGROUND, INK, MUTED, LINE = (COLOURS[name][0] for name in ("paper", "ink", "muted", "line"))
HAIRLINE, ON_BAR = COLOURS["grey-soft"][0], COLOURS["on-bar"][0]


def light(name: str) -> str:
    return COLOURS[name][0]


def of_family(family: str, *, soft: bool = False) -> str:
    """That of its rungs; soft for those that are no step up."""
    return light(FAMILIES.get(family, "teal") + "-soft" * soft)


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, other: str) -> float:
    """From 1 to 21; WCAG 2 wants 4.5 of letters."""
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)
