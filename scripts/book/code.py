# SPDX-License-Identifier: MIT
"""Code on pages. Between these markers, each in a line of its own, scripts/docs.py writes it:

  <!-- code: NAME -->                    a function, type or macro of the chapter's kernel
  <!-- code: NAME "first" .. "last" -->  part of it: from the one line that has the words `first` to
                                         the next that has `last`; without `.. "last"` that line
  <!-- code: "first" .. "last" -->       the same in the whole file
  <!-- code: kernels/ptx/mma.cuh: NAME -->   of another file
  <!-- change: NAME -->                  what the rung changes in it, against the parent
      ... generated ... <!-- /code -->

At the end of "The change" of a chapter the site shows the whole difference to the parent, folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from book import difference
from book.source import BookError, Excerpt, Rung, Source

MARKER = re.compile(r"^(<!-- (code|change):(.*?) -->\n)(?:.*?^)??(<!-- /code -->)$", re.S | re.M)
OPENING = re.compile(r"<!--\s*(?:code|change):.*")
FENCED = re.compile(r"^```.*?^```\n", re.S | re.M)
SECTION = re.compile(r"^## The change[ \t]*\n.*?(?=^## |\Z)", re.S | re.M)


def fenced(language: str, title: str, text: str, indent: str = "") -> str:
    lines = [f'```{language} title="{title}"', *text.rstrip("\n").split("\n"), "```"]
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def code(root: Path, rung: Rung | None, words: str) -> str:
    excerpt = Excerpt.parse(words)
    if not excerpt.path and rung is None:
        raise BookError(f"code:{words}: a page that is no chapter names the file")
    source = Source.load(root, excerpt.path or rung.file)  # type: ignore[union-attr]
    named = f", {excerpt.name}" if excerpt.name else ""
    return fenced("cuda", f"{source.name}{named}", excerpt.cut(source).text)


def change(root: Path, rung: Rung | None, parent: Rung | None, words: str) -> str:
    excerpt = Excerpt.parse(words)
    if rung is None or parent is None or excerpt.path:
        raise BookError(
            f"change:{words}: only in a chapter whose rung has a parent, of its own file"
        )
    child = Source.load(root, rung.file)
    text = difference.change(excerpt, Source.load(root, parent.file), child)
    named = f", {excerpt.name}" if excerpt.name else ""
    return fenced("diff", f"{child.name}{named}, against {parent.name}", text)


def whole_difference(root: Path, rung: Rung, parent: Rung) -> str:
    text = difference.whole(root, parent.file, rung.file)
    count = difference.changed_lines(text)
    head = f'??? example "The whole difference to {parent.name}: {count} lines"\n\n'
    return head + fenced("diff", f"{rung.file}, against {parent.name}", text, indent="    ")


def with_code(markdown: str, root: Path, rung: Rung | None, parent: Rung | None) -> str:
    """The page with code between its markers."""
    makers: dict[str, Callable[[str], str]] = {
        "code": lambda words: code(root, rung, words),
        "change": lambda words: change(root, rung, parent, words),
    }
    prose = FENCED.sub("", markdown)
    for opening in OPENING.findall(prose):
        if not re.search(f"^{re.escape(opening)}\n<!-- /code -->$", prose, re.M):
            raise BookError(f"'{opening}' is to be a line, and <!-- /code --> the one after its code")
    return MARKER.sub(lambda match: match[1] + makers[match[2]](match[3]) + match[4], markdown)


def with_difference(markdown: str, root: Path, rung: Rung, parent: Rung) -> str:
    section = SECTION.search(markdown)
    if section is None:
        raise BookError("the chapter has no heading '## The change'")
    end = section.end()
    added = whole_difference(root, rung, parent)
    return f"{markdown[:end].rstrip()}\n\n{added}\n{markdown[end:]}"


# --- pages of the files themselves ----------------------------------------------------------------


def page_of(name: str) -> str:
    """kernels/hopper/22_wgmma.cu -> the page that shows it, below docs/."""
    return f"{name}.md"


def source_page(root: Path, name: str) -> str:
    text = "\n".join(Source.load(root, name).lines)
    head = f"---\ntitle: {Path(name).name}\nsearch:\n  exclude: true\n---\n"
    return f'{head}\n# `{name}`\n\n```cuda linenums="1"\n{text}\n```\n'
