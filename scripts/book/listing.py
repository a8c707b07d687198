# SPDX-License-Identifier: MIT
"""Lines of source files with the colours of code, as HTML."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from book.difference import Line
from book.source import Source, indent_of, is_code

KINDS = {" ": "same", "+": "added", "-": "removed"}
MARGIN = re.compile(r"^((?:<span[^>]*>)?)( *)")
SPACE = re.compile(r'<span class="w">(\s*)</span>')  # most of the spans, and none has a colour


@functools.cache
def coloured(source: Source) -> list[str]:
    """The lines of a file. A file is coloured whole: a comment may have begun above an excerpt."""
    lexer = get_lexer_by_name("cuda", stripnl=False)
    text = highlight("\n".join(source.lines), lexer, HtmlFormatter(nowrap=True))
    return SPACE.sub(r"\1", text).split("\n")[: len(source.lines)]


def without_margin(line: str, margin: int) -> str:
    return MARGIN.sub(lambda match: match[1] + match[2][margin:], line, count=1)


def margin_of(lines: Sequence[Line], before: Source, after: Source) -> int:
    """The indentation that all of the lines have in their files."""
    texts = [
        after.lines[each.new - 1] if each.new else before.lines[each.old - 1]
        for each in lines
        if each.sign != "@"
    ]
    return min((indent_of(text) for text in texts if is_code(text)), default=0)


def row(line: Line, before: Source, after: Source, margin: int) -> str:
    if line.sign == "@":
        return '<span class="row gap"> </span>'
    code = coloured(after)[line.new - 1] if line.new else coloured(before)[line.old - 1]
    places = "".join(f'<i data-line="{number or ""}"></i>' for number in (line.old, line.new))
    shown = without_margin(code, margin)
    return f'<span class="row {KINDS[line.sign]}">{places}{line.sign} {shown}</span>'


def of_difference(title: str, lines: Sequence[Line], before: Source, after: Source) -> str:
    """A difference with the numbers of its lines in both files."""
    margin = margin_of(lines, before, after)
    rows = "".join(row(line, before, after, margin) for line in lines)
    head = f'<span class="filename">{escape(title)}</span>'
    return f'<div class="highlight difference">{head}<pre><code>{rows}</code></pre></div>\n'
