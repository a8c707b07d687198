# SPDX-License-Identifier: MIT
"""Code on pages. Between these markers, each in a line of its own, scripts/docs.py writes it:

  <!-- code: NAME -->                    a function, type or macro of the chapter's kernel
  <!-- code: NAME "first" .. "last" -->  part of it: from the one line that has the words `first` to
                                         the next that has `last`; without `.. "last"` that line
  <!-- code: "first" .. "last" -->       the same in the whole file
  <!-- code: kernels/ptx/mma.cuh: NAME -->   of another file
  <!-- change: NAME -->                  what the rung changes in it, against the parent
      ... generated ... <!-- /code -->

The site gives the title of an excerpt its first line, shows a change with the numbers of its lines,
and at the end of "The change" of a chapter the whole difference to the parent, folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from book import difference, listing
from book.source import KERNELS, BookError, Excerpt, Rung, Source, Span, rungs_of, sources

MARKER = re.compile(r"^(<!-- ?(code|change):(.*?) ?-->\n)(?:.*?^)??(<!-- ?/code ?-->)$", re.S | re.M)
OPENING = re.compile(r"<!--\s*(?:code|change):.*")
FENCED = re.compile(r"^```.*?^```\n", re.S | re.M)
SECTION = re.compile(r"^## The change[ \t]*\n.*?(?=^## |\Z)", re.S | re.M)


def fenced(language: str, title: str, text: str, indent: str = "") -> str:
    lines = [f'```{language} title="{title}"', *text.rstrip("\n").split("\n"), "```"]
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def excerpt_of(root: Path, rung: Rung | None, words: str) -> tuple[str, Span]:
    """Title and lines of what a code: marker asks for."""
    excerpt = Excerpt.parse(words)
    if not excerpt.path and rung is None:
        raise BookError(f"code:{words}: a page that is no chapter names the file")
    source = Source.load(root, excerpt.path or rung.file)  # type: ignore[union-attr]
    return excerpt.title(source), excerpt.cut(source)


def change_of(
    root: Path, rung: Rung | None, parent: Rung | None, words: str
) -> tuple[str, Source, Span]:
    """Title, file of the parent and lines of what a change: marker asks for."""
    excerpt = Excerpt.parse(words)
    if rung is None or parent is None or excerpt.path:
        raise BookError(
            f"change:{words}: only in a chapter whose rung has a parent, of its own file"
        )
    child = Source.load(root, rung.file)
    title = f"{excerpt.title(child)}, against {parent.name}"
    return title, Source.load(root, parent.file), excerpt.cut(child)


def code(root: Path, rung: Rung | None, words: str) -> str:
    title, span = excerpt_of(root, rung, words)
    return fenced("cuda", title, span.text)


def change(root: Path, rung: Rung | None, parent: Rung | None, words: str) -> str:
    title, before, span = change_of(root, rung, parent, words)
    lines = difference.of_part(Excerpt.parse(words).cut(before), span)
    return fenced("diff", title, difference.text_of(lines))


def with_code(markdown: str, root: Path, rung: Rung | None, parent: Rung | None) -> str:
    """The page with code between its markers."""
    makers: dict[str, Callable[[str], str]] = {
        "code": lambda words: code(root, rung, words),
        "change": lambda words: change(root, rung, parent, words),
    }
    prose = FENCED.sub("", markdown)
    for opening in OPENING.findall(prose):
        if not re.search(f"^{re.escape(opening)}\n<!-- ?/code ?-->$", prose, re.M):
            raise BookError(f"'{opening}' is to be a line, and <!-- /code --> the one after its code")
    return MARKER.sub(lambda match: match[1] + makers[match[2]](match[3]) + match[4], markdown)


# --- as the site shows them -----------------------------------------------------------------------


def with_listings(markdown: str, root: Path, rung: Rung | None, parent: Rung | None) -> str:
    """The page with what leads from its code to the lines of the files."""

    def shown(match: re.Match[str]) -> str:
        if match[2] == "code":
            title, span = excerpt_of(root, rung, match[3])
            return fenced("cuda", f"{title} @{span.first + 1}", span.text)
        title, before, span = change_of(root, rung, parent, match[3])
        lines = difference.of_part(Excerpt.parse(match[3]).cut(before), span)
        first = next(line.new for line in lines if line.new)
        return listing.of_difference(f"{title} @{first}", lines, before, span.source)

    markdown = MARKER.sub(shown, markdown)
    return with_difference(markdown, root, rung, parent) if rung and parent else markdown


def with_difference(markdown: str, root: Path, rung: Rung, parent: Rung) -> str:
    section = SECTION.search(markdown)
    if section is None:
        raise BookError("the chapter has no heading '## The change'")
    end = section.end()
    lines = difference.whole(root, parent.file, rung.file)
    count = difference.changed_lines(lines)
    before, after = (Source.load(root, each.file) for each in (parent, rung))
    added = listing.of_difference(f"{rung.file}, against {parent.name}", lines, before, after)
    head = f"<summary>The whole difference to {parent.name}: {count} lines</summary>"
    details = f'<details class="example">{head}\n{added}</details>'
    return f"{markdown[:end].rstrip()}\n\n{details}\n\n{markdown[end:]}"


# --- pages of the files themselves ----------------------------------------------------------------

INCLUDE = re.compile(rf'^#include "({KERNELS}/[\w./]+)"')


def page_of(name: str) -> str:
    """kernels/hopper/22_wgmma.cu -> the page that shows it, below docs/."""
    return f"{name}.md"


def users_of(root: Path, name: str) -> list[str]:
    """The files that include a header."""
    found = (Source.load(root, each) for each in sources(root))
    return [
        each.name
        for each in found
        if any((line := INCLUDE.match(text)) and line[1] == name for text in each.lines)
    ]


def back_from(root: Path, name: str) -> str:
    """Where a reader of a file came from: its chapter, or the files that include it."""
    chapter = next((rung.chapter for rung in rungs_of(root) if rung.file == name), None)
    if chapter:
        return f"Chapter: [{Path(chapter).stem}](../../{chapter})"
    users = (f"[{Path(user).name}](../../{page_of(user)})" for user in users_of(root, name))
    return f"Included by: {', '.join(users)}"


def source_page(root: Path, name: str) -> str:
    text = "\n".join(Source.load(root, name).lines)
    head = f"---\ntitle: {Path(name).name}\nsearch:\n  boost: 0.1\n---\n"  # behind chapters
    back = back_from(root, name)
    return f'{head}\n# `{name}`\n\n{back}\n\n```cuda linenums="1"\n{text}\n```\n'
