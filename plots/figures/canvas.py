# SPDX-License-Identifier: MIT
"""A small SVG writer: one look for all figures, light and dark in one file.

Colours are classes with two values; `prefers-color-scheme` chooses. Within an <img> that is the colour
scheme of the page around it, so a figure follows the page's own switch; a viewer that knows no such
query shows the light form. A figure is 440 units wide and has the whole width of a phone, 390 pixels: letters of 12.5
units have 11 there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from colours import COLOURS

WIDTH = 440.0
SCALE = 1.25  # of the size that a figure asks for in a page

HUES = ("blue", "orange", "green", "red", "violet", "teal", "yellow", "pink")
SIZE, SMALL = 14.0, 12.5


CLASS = re.compile(r'class="([^"]*)"')


def style_sheet(body: str) -> str:
    """Rules for the classes that are used."""
    used = {name for words in CLASS.findall(body) for name in words.split()}

    def rules(form: int) -> str:
        pairs = ((name, values[form]) for name, values in COLOURS.items())
        both = ((f"{name}{{fill:{c}}}", f"s-{name}{{stroke:{c}}}") for name, c in pairs)
        return "".join(f".{rule}" for two in both for rule in two if rule.split("{")[0] in used)

    return (
        f"svg{{color-scheme:light dark}}"
        f"text{{font-family:system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:{SIZE:g}px}}"
        f".none{{fill:none}}.b{{font-weight:600}}.m{{font-family:ui-monospace,Consolas,'DejaVu Sans Mono',monospace}}"
        f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}"
    )


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass
class Canvas:
    """What is drawn, in order. y grows downwards; `height` is set when all is drawn."""

    title: str
    description: str
    width: float = WIDTH
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

    def grow(self, bottom: float) -> None:
        self.height = max(self.height, bottom)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = "grey-soft",
        stroke: str = "",
        *,
        radius: float = 2,
        dashed: bool = False,
        thick: float = 1,
    ) -> None:
        classes = " ".join(filter(None, (fill, f"s-{stroke}" if stroke else "")))
        more = f' stroke-width="{number(thick)}"' if stroke else ""
        more += ' stroke-dasharray="4 3"' if dashed else ""
        box = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self.parts.append(f'<rect class="{classes}" {box} rx="{number(radius)}"{more}/>')
        self.grow(y + height)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        fill: str = "ink",
        *,
        size: float = SIZE,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """y is the middle of the letters. A text that a wide font would push out of the figure is an
        error."""
        length = len(text) * size * (0.57 if bold else 0.52)
        left = x - {"start": 0.0, "middle": length / 2, "end": length}[anchor]
        if left < 2 or left + length > self.width + 2:
            raise ValueError(
                f"{self.title}: '{text}' does not fit: {left:.0f} to {left + length:.0f}"
            )
        classes = " ".join(filter(None, (fill, "b" if bold else "", "m" if mono else "")))
        more = (
            f' font-size="{number(size)}" style="font-size:{number(size)}px"'
            if size != SIZE
            else ""
        )
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        place = f'x="{number(x)}" y="{number(y + size * 0.36)}"'
        self.parts.append(f'<text class="{classes}" {place}{more}>{escape(text)}</text>')
        self.grow(y + size * 0.7)

    def lines(
        self,
        x: float,
        y: float,
        texts: Sequence[str],
        fill: str = "ink",
        *,
        size: float = SIZE,
        anchor: str = "start",
    ) -> float:
        """Lines of text one below the other; returns where the next one would stand."""
        for text in texts:
            self.text(x, y, text, fill, size=size, anchor=anchor)
            y += size * 1.35
        return y

    def line(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str = "line",
        *,
        thick: float = 1,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        where = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        more = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<polyline class="none s-{stroke}" points="{where}" stroke-width="{number(thick)}"{more}/>'
        )
        if arrow:
            self.head(points[-2], points[-1], stroke)
        self.grow(max(y for _, y in points))

    def head(self, begin: tuple[float, float], end: tuple[float, float], fill: str) -> None:
        """The head of an arrow that ends there."""
        dx, dy = end[0] - begin[0], end[1] - begin[1]
        length = (dx * dx + dy * dy) ** 0.5 or 1.0
        ux, uy = dx / length, dy / length
        left = (end[0] - 7 * ux + 3.5 * uy, end[1] - 7 * uy - 3.5 * ux)
        right = (end[0] - 7 * ux - 3.5 * uy, end[1] - 7 * uy + 3.5 * ux)
        self.polygon([end, left, right], fill)

    def polygon(self, points: Sequence[tuple[float, float]], fill: str, stroke: str = "") -> None:
        where = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        classes = " ".join(filter(None, (fill, f"s-{stroke}" if stroke else "")))
        self.parts.append(f'<polygon class="{classes}" points="{where}"/>')
        self.grow(max(y for _, y in points))

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str = "") -> None:
        classes = " ".join(filter(None, (fill, f"s-{stroke}" if stroke else "")))
        place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self.parts.append(f'<circle class="{classes}" {place}/>')
        self.grow(y + radius)

    def cell(
        self, x: float, y: float, width: float, height: float, text: str, fill: str, **look: object
    ) -> None:
        """A box with text in its middle."""
        size = float(str(look.pop("size", SMALL)))
        stroke = str(look.pop("stroke", "paper"))
        self.rect(x, y, width, height, fill, stroke)
        if text:
            self.text(x + width / 2, y + height / 2, text, size=size, anchor="middle", **look)  # type: ignore[arg-type]

    def svg(self) -> str:
        height = self.height + 12
        size = f'width="{number(self.width * SCALE)}" height="{number(height * SCALE)}"'
        box = f'viewBox="0 0 {number(self.width)} {number(height)}"'
        paper = f'<rect class="paper" width="{number(self.width)}" height="{number(height)}" rx="6"/>'
        body = "\n".join((paper, *self.parts))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} {size} role="img">\n'
            f"<title>{escape(self.title)}</title>\n<desc>{escape(self.description)}</desc>\n"
            f"<style>{style_sheet(body)}</style>\n"
            f"{body}\n</svg>\n"
        )


def begin(
    title: str, description: str, *, width: float = WIDTH, note: str = ""
) -> tuple[Canvas, float]:
    """A figure with its title, and where the drawing begins."""
    canvas = Canvas(title, description, width)
    canvas.text(14, 20, title, bold=True, size=15)
    y = 42.0
    if note:
        canvas.text(14, y - 2, note, "muted", size=SMALL)
        y += 18
    return canvas, y
