# SPDX-License-Identifier: MIT
"""The colours of charts: one for each rung, and those of what surrounds them."""

from __future__ import annotations

import math

from ladder import Catalogue
from matplotlib.colors import to_rgb

INK = "#1f2430"
MUTED = "#6b7280"
HAIRLINE = "#e3e6eb"
BACKGROUND = "#fdfdfc"
DARK_BACKGROUND = "#1e2129"

Colour = tuple[float, float, float]

# Family -> (OKLCH of the first slot, of the last slot, number of slots). Slots, not the number of
# rungs, fix the colours: a rung keeps its colour when others join after it.
RAMPS = {
    "fp32": ((0.62, 0.05, 320.0), (0.45, 0.12, 295.0), 6),
    "ampere": ((0.74, 0.10, 205.0), (0.43, 0.17, 268.0), 10),
    "hopper": ((0.76, 0.15, 80.0), (0.45, 0.19, 18.0), 14),
    "decode": ((0.72, 0.10, 175.0), (0.44, 0.11, 150.0), 13),
}


def oklch(lightness: float, chroma: float, hue: float) -> Colour:
    """sRGB of a colour in the OKLCH space, where equal steps look equal."""
    a = chroma * math.cos(math.radians(hue))
    b = chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    red, green, blue = (gamma(min(max(channel, 0.0), 1.0)) for channel in linear)
    return red, green, blue


def gamma(channel: float) -> float:
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055


def rung_colours(catalogue: Catalogue, dark: bool = False) -> dict[str, Colour]:
    """One fixed colour a rung: its family's ramp at its place in the family."""
    seen: dict[str, int] = {}
    colours = {}
    for rung in catalogue.rungs:
        place = seen.get(rung.family, 0)
        seen[rung.family] = place + 1
        colours[rung.id] = ramp_colour(rung.family, place, dark)
    return colours


def ramp_colour(family: str, place: int, dark: bool = False) -> Colour:
    first, last, slots = RAMPS.get(family, RAMPS["fp32"])
    t = min(place / (slots - 1), 1.0)
    lightness, chroma, hue = (
        start + t * (end - start) for start, end in zip(first, turned(first, last))
    )
    if dark:  # none darker than what reads on a dark page
        lightness = 0.66 + 0.45 * (lightness - 0.43)
    return oklch(lightness, chroma, hue)


def family_colour(family: str, dark: bool = False) -> Colour:
    """For what belongs to a family as a whole: the end of its ramp, which reads as text, too."""
    *_, slots = RAMPS[family]
    return ramp_colour(family, slots - 1, dark)


def pale(colour: Colour, background: str = BACKGROUND) -> Colour:
    """Halfway to the background: for rungs that are no step up."""
    paper = to_rgb(background)
    red, green, blue = ((0.45 * own + 0.55 * other) for own, other in zip(colour, paper))
    return red, green, blue


def turned(first: Colour, last: Colour) -> Colour:
    """last with its hue on the short way round from first."""
    hue = last[2] + 360.0 * round((first[2] - last[2]) / 360.0)
    return last[0], last[1], hue
