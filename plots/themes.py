# SPDX-License-Identifier: MIT
"""The light and the dark form of a chart, in one SVG file.

A chart is drawn in its light colours. In the file each of them becomes a variable that has another
value where the reader's colour scheme is dark; a page decides by its own `color-scheme`.
"""

from __future__ import annotations

import re

import colours
from ladder import Catalogue
from matplotlib.colors import to_hex, to_rgb

# Light -> dark, of all that is no rung's.
FIXED = {
    colours.INK: "#e4e6ec",
    colours.MUTED: "#9ba3b0",
    colours.HAIRLINE: "#363b47",
    colours.BACKGROUND: colours.DARK_BACKGROUND,
    "#ffffff": "#12141a",  # words on a bar: bars are lighter in the dark
    "#000000": "#e4e6ec",
}
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
STYLED = re.compile(r'style="[^"]*"')
FIRST_STYLE = re.compile(r'<style type="text/css">')


def dark_colours(catalogue: Catalogue) -> dict[str, str]:
    """Every light colour of a chart, in hex, with its dark one."""
    pairs = dict(FIXED)
    light, dark = colours.rung_colours(catalogue), colours.rung_colours(catalogue, dark=True)
    for id, colour in light.items():
        pairs[to_hex(colour)] = to_hex(dark[id])
        pairs[to_hex(colours.pale(colour))] = to_hex(colours.pale(dark[id], colours.DARK_BACKGROUND))
    return pairs


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, other: str) -> float:
    """From 1 to 21; WCAG 2 wants 4.5 of letters."""
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def is_pale(colour: str, catalogue: Catalogue) -> bool:
    """Of a rung that is no step up: a fill behind words, inside an outline of the full colour."""
    return colour in {to_hex(colours.pale(own)) for own in colours.rung_colours(catalogue).values()}


def with_both(svg: str, catalogue: Catalogue) -> str:
    """The SVG that matplotlib wrote, with variables for colours that have a dark form."""
    pairs = dark_colours(catalogue)
    used = sorted({colour for text in STYLED.findall(svg) for colour in COLOUR.findall(text)})
    names = {colour: f"--c{place}" for place, colour in enumerate(c for c in used if c in pairs)}

    def variables(match: re.Match[str]) -> str:
        return COLOUR.sub(
            lambda colour: f"var({names[colour[0]]})" if colour[0] in names else colour[0], match[0]
        )

    light = "".join(f"{name}:{colour};" for colour, name in names.items())
    dark = "".join(f"{name}:{pairs[colour]};" for colour, name in names.items())
    rules = f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"
    return FIRST_STYLE.sub(lambda match: match[0] + rules, STYLED.sub(variables, svg), count=1)
