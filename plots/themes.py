# SPDX-License-Identifier: MIT
"""The light and the dark form of a chart, in one SVG file, with its links.

A chart is drawn in its light colours. A rule of the file's style sheet replaces each of them where the
reader's colour scheme is dark; the site, which puts charts into its pages, decides by its own switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from colours import COLOURS, INK
from matplotlib import rcParams

# Light -> dark; black is what matplotlib draws in where nothing else is said.
DARK = dict(COLOURS.values()) | {"#000000": dict(COLOURS.values())[INK]}
COLOUR = re.compile(r"#[0-9a-f]{6}")
FINE = re.compile(r"\d+\.\d{3,}")  # finer than a hundredth of a pixel, which nobody sees
PLACES = ("d", "x", "y", "width", "height")
REFERENCE = re.compile(r"#([\w-]+)")
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
LINK = "link:"  # of what a chart links: link:CHAPTER|WORDS
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def attributes_of(element: Element, kept: set[str]) -> dict[str, str]:
    """Presentation attributes for its style, places to a hundredth, no identifier that nobody uses."""
    found = dict(element.attrib)
    if found.get("id") not in kept:
        found.pop("id", None)
    if found.get("transform", "").startswith("rotate(-0 "):
        del found["transform"]
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


def link(element: Element) -> None:
    """A link to a chapter, from the folder of the charts, with what it says when it is pointed at."""
    chapter, words = element.attrib.pop(HREF).removeprefix(LINK).split("|", 1)
    element.attrib = {"href": f"../{chapter}"}
    for mark in element:  # not seen, but pointed at
        mark.attrib.pop("opacity", None)
        if "stroke" not in mark.attrib:
            mark.attrib |= {"fill": INK, "fill-opacity": "0"}
    title = Element(f"{{{SVG}}}title")
    title.text = words
    element.insert(0, title)


def dark_rules(root: Element) -> str:
    """For each light colour that is used, what replaces it: a rule has precedence over an attribute."""
    used = {
        (name, element.attrib[name])
        for element in root.iter()
        for name in ("fill", "stroke")
        if DARK.get(element.attrib.get(name, ""))
    }
    return "".join(f'[{name}="{colour}"]{{{name}:{DARK[colour]}}}' for name, colour in sorted(used))


def with_both(svg: str) -> str:
    """The SVG that matplotlib wrote, with its light colours as attributes, which any viewer shows, and
    the dark ones as rules of a style sheet. Without the groups and names that matplotlib adds."""
    root = ElementTree.fromstring(svg)
    description = next(root.iter(DESCRIPTION)).text
    # Its metadata is of no use but for the description; its style sheet would go before attributes.
    for child in [*root.iter(f"{{{SVG}}}metadata"), next(root.iter(f"{{{SVG}}}defs"))]:
        root.remove(child)
    kept = set(REFERENCE.findall(svg)) - set(COLOUR.findall(svg))
    (root,) = flattened(root, kept)
    for element in root.iter(f"{{{SVG}}}a"):
        link(element)
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    # matplotlib's points are the pixels of a page.
    root.attrib |= {name: root.attrib[name].removesuffix("pt") for name in ("width", "height")}
    family = ", ".join(f"'{name}'" for name in rcParams["font.sans-serif"])
    root.text = None
    style = Element(f"{{{SVG}}}style")
    style.text = (
        f"text{{font-family:{family},sans-serif}}"
        f"@media(prefers-color-scheme:dark){{{dark_rules(root)}}}"
    )
    root.insert(0, style)
    metadata = SubElement(root, f"{{{SVG}}}metadata")
    metadata.text = description
    style.tail = metadata.tail = "\n"
    return ElementTree.tostring(root, encoding="unicode")
