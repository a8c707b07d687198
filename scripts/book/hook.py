# SPDX-License-Identifier: MIT
"""Events of MkDocs, which calls them by their names (mkdocs.yml, hooks)."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from book import code, figures, glossary, mathematics, strip
from book.source import KERNELS, BookError, Rung, rungs_of, sources

SOURCE_NAME = re.compile(r"<code>(kernels/[\w./]+\.cuh?)</code>")
LINE_LINK = re.compile(r'<a href="#__codelineno-\d+-(\d+)"')  # its number is drawn by the style
UNNAMED = '<div class="md-search" data-md-component="search" role="dialog">'
TITLE = re.compile(r'<span class="filename">(kernels/[\w/.]+\.cuh?)(.*?)(?: @(\d+))?</span>')
INCLUDE = re.compile(r'<span class="cpf">(?:"|&quot;)(kernels/[\w/.]+)(?:"|&quot;)</span>')
LINE_BEGIN = re.compile(r'<a id="(__codelineno-0-\d+)" name="[^"]*"></a>(.*)')
LINE = "__codelineno-0-"  # the ids of lines on the page of a file


def root_of(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).resolve().parent


def rung_of(config: MkDocsConfig, page: Page) -> tuple[Rung | None, Rung | None]:
    """The rung of a chapter, and its parent."""
    rungs = rungs_of(root_of(config))
    own = next((rung for rung in rungs if rung.chapter == page.file.src_uri), None)
    parent = next((rung for rung in rungs if own and rung.name == own.parent), None)
    return own, parent


def read_glossary(config: MkDocsConfig) -> glossary.Glossary:
    text = (Path(config.docs_dir) / glossary.PAGE).read_text(encoding="utf-8")
    return glossary.Glossary.parse(text)


# --- links to the pages of source files -----------------------------------------------------------


def linked(name: str, inner: str, page: Page, files: Files, line: str | None = None) -> str:
    file = files.get_file_from_path(code.page_of(name))
    if file is None:
        return inner
    at = f"#{LINE}{line}" if line else ""
    return f'<a href="{file.url_relative_to(page.file)}{at}">{inner}</a>'


def with_source_links(html: str, page: Page, files: Files) -> str:
    def title(match: re.Match[str]) -> str:
        name, part, line = match.groups()
        shown = f"{name}:{line}" if line else name
        return f'<span class="filename" data-title>{linked(name, shown, page, files, line)}{part}</span>'

    html = SOURCE_NAME.sub(lambda match: linked(match[1], match[0], page, files), html)
    return TITLE.sub(title, html)


def with_includes(html: str, page: Page, files: Files) -> str:
    """The page of a file, whose includes lead to the pages of these."""
    html = LINE_LINK.sub(r'\g<0> aria-label="line \1"', html)
    html = LINE_BEGIN.sub(r'<span class="row" id="\1">\2</span>', html)
    return INCLUDE.sub(lambda match: linked(match[1], match[0], page, files), html)


# Code that the search finds elsewhere, or would find too often.
SOURCE = re.compile(r'<div class="[^"]*\bhighlight"')
DIFFERENCE = re.compile(r"<details(?=[^>]*>\s*<summary>The whole difference)")


def unsearched(match: re.Match[str]) -> str:
    return f"{match[0]} data-search-exclude"


def find_image(files: Files, url: str) -> Path | None:
    file = files.get_file_from_path(url)  # assets keep their path
    return Path(file.abs_src_path) if file and file.abs_src_path else None


# Markers of scripts/docs.py serve whoever writes a page, and the site has no use for them. Comments in
# code blocks are kept, and so are those that place a widget (scripts/docs_hooks/web.py).
MARKERS = re.compile(
    r"(?P<kept>^```.*?^```$)|^<!--(?! /?widget).*?-->\n|<!--(?! /?widget).*?-->", re.M | re.S
)


def without_markers(markdown: str) -> str:
    return MARKERS.sub(lambda match: match["kept"] or "", markdown)


# --- marks in the navigation ----------------------------------------------------------------------

# Against the parent; a mark has the colour of its family, which its class names.
MARKS = {"faster": "faster than its parent", "flat": "no faster", "slower": "slower than its parent"}


def mark_of(config: MkDocsConfig, rung: Rung) -> str:
    changes = config.extra["changes"].items()
    change = next((change for change, rungs in changes if rung.id in rungs.split()), "")
    return f"{rung.family}-{change if change in MARKS else 'none'}"


# --- events ---------------------------------------------------------------------------------------


def on_serve(server: object, config: MkDocsConfig, **_: object) -> None:
    for folder in (KERNELS, "scripts/book"):
        server.watch(str(root_of(config) / folder))  # type: ignore[attr-defined]


def on_config(config: MkDocsConfig) -> None:
    rungs_of.cache_clear()
    families = {rung.family for rung in rungs_of(root_of(config))}
    config.extra["status"] = {f"{each}-{mark}": MARKS[mark] for each in families for mark in MARKS}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page for each kernel file and each header of theirs."""
    root = root_of(config)
    for name in sources(root):
        text = code.source_page(root, name)
        hidden = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, code.page_of(name), content=text, inclusion=hidden))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith(f"{KERNELS}/"):
        return markdown
    rung, parent = rung_of(config, page)
    if rung:
        page.meta["status"] = mark_of(config, rung)
    try:
        markdown = code.with_listings(markdown, root_of(config), rung, parent)
        if rung:
            markdown = strip.with_strip(markdown, root_of(config), rung, rungs_of(root_of(config)))
    except BookError as error:
        raise PluginError(f"docs/{page.file.src_uri}: {error}") from error
    return figures.with_folded_tables(without_markers(markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith(f"{KERNELS}/"):
        return SOURCE.sub(unsearched, with_includes(html, page, files))
    try:
        terms = read_glossary(config)
        html = mathematics.typeset(html)
    except (BookError, OSError) as error:
        raise PluginError(f"docs/{page.file.src_uri}: {error}") from error
    at = posixpath.dirname(page.file.dest_uri)
    html = figures.with_charts(html, at, lambda url: find_image(files, url))
    html = figures.with_whole_intervals(figures.with_coloured_changes(html))
    html = DIFFERENCE.sub(unsearched, with_source_links(html, page, files))
    target = files.get_file_from_path(glossary.PAGE)
    assert target is not None
    is_glossary = page.file.src_uri == glossary.PAGE
    address = "" if is_glossary else target.url_relative_to(page.file)
    return glossary.Linker(terms, address, is_glossary).of(html)


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """The theme's search is a dialog without a name, which a screen reader would not announce. The
    article has the colour of its family."""
    rung, _ = rung_of(config, page)
    if rung:
        output = output.replace("<article ", f'<article data-family="{rung.family}" ', 1)
    if 'class="chart"' in output:
        source = f"{'../' * page.url.count('/')}assets/charts.js"
        output = output.replace("</body>", f'<script src="{source}" defer></script></body>', 1)
    return output.replace(UNNAMED, UNNAMED.replace("role=", 'aria-label="Search" role='), 1)
