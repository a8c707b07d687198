# SPDX-License-Identifier: MIT
"""The light and the dark form of a chart, in one SVG file.

A chart is drawn in its light colours. A rule of the file's style sheet replaces each of them where the
reader's colour scheme is dark; a page decides by its own `color-scheme`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import colours
from ladder import Catalogue
from matplotlib import rcParams
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
COLOUR = re.compile(r"#[0-9a-f]{6}")
FINE = re.compile(r"\d+\.\d{3,}")  # finer than a hundredth of a point, which nobody sees
PLACES = ("d", "x", "y", "width", "height")
REFERENCE = re.compile(r"#([\w-]+)")
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


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


def attributes_of(element: Element, kept: set[str]) -> dict[str, str]:
    """Presentation attributes for its style, places to a hundredth, no identifier that nobody uses."""
    found = dict(element.attrib)
    if found.get("id") not in kept:
        found.pop("id", None)
    for rule in filter(None, found.pop("style", "").split(";")):
        name, value = rule.split(":", 1)
        if name.strip() != "font-family":  # one for all, in the style sheet
            found[name.strip()] = value.strip()
    for name in set(PLACES) & set(found):
        rounded = FINE.sub(lambda match: f"{float(match[0]):.2f}", found[name])
        found[name] = " ".join(rounded.split())
    return found


def flattened(element: Element, kept: set[str]) -> Iterator[Element]:
    """The element, or its children where it groups them for no reason."""
    element.attrib = attributes_of(element, kept)
    if element.tag == f"{{{SVG}}}text":
        for part in element.iter():
            part.attrib = attributes_of(part, kept)
        element.tail = None
        yield element
        return
    children = [grandchild for child in element for grandchild in flattened(child, kept)]
    if element.tag == f"{{{SVG}}}g" and (not element.attrib or not children):
        yield from children
        return
    element[:] = children
    element.text = element.tail = "\n"
    for child in children:
        child.tail = "\n"
    yield element


def dark_rules(root: Element, pairs: dict[str, str]) -> str:
    """For each light colour that is used, what replaces it: a rule has precedence over an attribute."""
    used = {
        (name, element.attrib[name])
        for element in root.iter()
        for name in ("fill", "stroke")
        if pairs.get(element.attrib.get(name, ""))
    }
    return "".join(f'[{name}="{colour}"]{{{name}:{pairs[colour]}}}' for name, colour in sorted(used))


def with_both(svg: str, catalogue: Catalogue) -> str:
    """The SVG that matplotlib wrote, with its light colours as attributes, which any viewer shows, and
    the dark ones as rules of a style sheet. Without the groups and names that matplotlib adds."""
    root = ElementTree.fromstring(svg)
    description = next(root.iter(DESCRIPTION)).text
    # Its metadata is of no use but for the description; its style sheet would go before attributes.
    for child in [*root.iter(f"{{{SVG}}}metadata"), next(root.iter(f"{{{SVG}}}defs"))]:
        root.remove(child)
    kept = set(REFERENCE.findall(svg)) - set(COLOUR.findall(svg))
    (root,) = flattened(root, kept)
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    family = ", ".join(f"'{name}'" for name in rcParams["font.sans-serif"])
    head = Element(f"{{{SVG}}}metadata"), Element(f"{{{SVG}}}style")
    head[0].text = description
    head[1].text = (
        f"text{{font-family:{family},sans-serif}}"
        f"@media(prefers-color-scheme:dark){{{dark_rules(root, dark_colours(catalogue))}}}"
    )
    for element in reversed(head):
        element.tail = "\n"
        root.insert(0, element)
    return ElementTree.tostring(root, encoding="unicode")
