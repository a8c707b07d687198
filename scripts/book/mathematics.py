# SPDX-License-Identifier: MIT
"""$...$ and $$...$$ as MathML, which browsers draw by themselves: nothing is loaded for it."""

from __future__ import annotations

import html
import re

import latex2mathml.converter

from book.source import BookError

# What pymdownx.arithmatex makes of them, in its generic form.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)

# A prime stands high by itself; as a superscript most fonts make a dot of it.
PRIMED = re.compile(r"<msup>(<m[in]>[^<]*</m[in]>)<mi>(&#x02032;)</mi></msup>")
PRIME = r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>'
LEFT = re.compile(r"<m[ion][^>]*>(&|\\\w+)</m[ion]>")  # what the library did not understand


def mathml(latex: str, display: str) -> str:
    text = html.unescape(latex).strip()
    braces = re.sub(r"\\.", "", text)
    if braces.count("{") != braces.count("}"):
        raise BookError(f"mathematics: '{text}': braces do not match")
    try:
        result = latex2mathml.converter.convert(text, display=display)
    except Exception as error:  # the library has exceptions of many kinds
        raise BookError(f"mathematics: '{text}' cannot be set: {error!r}") from error
    if left := LEFT.search(result):
        raise BookError(
            f"mathematics: '{text}': '{left[1]}' is not known; align* is, aligned is not"
        )
    return PRIMED.sub(PRIME, result)


def typeset(page: str) -> str:
    page = INLINE.sub(lambda match: mathml(match[1], "inline"), page)
    return BLOCK.sub(
        lambda match: f'<div class="formula" tabindex="0">{mathml(match[1], "block")}</div>', page
    )
