# SPDX-License-Identifier: MIT
"""Numbers in sentences. The key of a number is a comment directly behind it:

    At N = 8192 it is 1.04<!--06;tflops;/;05--> times as fast.

A new one is written with a question mark in the place of the number: ?<!-- 06 tflops / 05 -->. The
parts of a key are separated by spaces or by semicolons; with these, a count of a page's words is that
of the words that are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ladder import LadderError

# What is filled from elsewhere: tables, and code of the kernels or of an example.
GENERATED = re.compile(r"<!-- table:.*?<!-- /table -->|^( *)```.*?^\1```", re.S | re.M)
NUMBER = (
    r"(?<![\w.])(?:[+−]|×\s)?\d[\d\u202f]*(?:\.\d+)?(?:\s%)?"
    r"|not\s+measured\s+(?:yet|in\s+this\s+run)|\?"
)
# Comments of other kinds begin with a word and a colon, or end one of them.
KEYED = re.compile(rf"({NUMBER})?<!--(?! ?(?:/|[a-z]+:)) ?([^>]*?) ?-->")


def keyed(text: str) -> Iterator[re.Match[str]]:
    """Every key of a page, behind its number."""
    hidden = GENERATED.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), text)
    return KEYED.finditer(hidden)


def key_of(match: re.Match[str]) -> str:
    return match[2].replace(";", " ")


def keys(text: str) -> list[str]:
    return [key_of(match) for match in keyed(text)]


def filled(text: str, value: Callable[[str], str], complain: Callable[[str], None]) -> str:
    """The page with the value of its key in the place of each number; a number that has no value
    keeps its text."""
    result, end = "", 0
    for match in keyed(text):
        if match[1] is None:
            complain(f"'{key_of(match)}': no number, and no ?, directly before this comment")
            continue
        try:
            number = value(key_of(match))
        except LadderError as error:
            complain(str(error))
            continue
        result += text[end : match.start()] + number
        end = match.end(1)
    return result + text[end:]
