# SPDX-License-Identifier: MIT
"""The glossary, and the links into it: the first use of each term on a page.

docs/glossary.md has a heading for every term, then, where it has them, a comment with its other
forms (<!-- also: fragments of A; ... -->), then its text. A plural with s is a form of its own
accord. A term in small letters may begin with a capital.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser

from markdown.extensions.toc import slugify

from book.source import BookError

PAGE = "glossary.md"
ENTRY = re.compile(r"^### (.+?)[ \t]*\n(.*?)(?=^#{1,3} |\Z)", re.S | re.M)
ALSO = re.compile(r"<!--\s*also:(.*?)-->", re.S)
MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]|\\\(|\\\)|\$")


@dataclass(frozen=True)
class Term:
    name: str
    forms: tuple[str, ...]  # its name is the first
    text: str  # plain

    @property
    def anchor(self) -> str:
        return str(slugify(self.name, "-"))


def parse_entry(name: str, body: str) -> Term:
    name = name.replace("`", "")
    also = ALSO.search(body)
    others = [form.strip() for form in also[1].split(";")] if also else []
    text = MARKUP.sub(lambda match: match[1] or "", ALSO.sub("", body))
    if not text.strip():
        raise BookError(f"{PAGE}: '{name}' has no text")
    return Term(name, (name, *filter(None, others)), " ".join(text.split()))


def form_pattern(form: str) -> str:
    words = r"\s+".join(re.escape(word) for word in form.split())
    if form == form.lower() and form[0].isalpha():
        words = f"[{form[0]}{form[0].upper()}]" + words[1:]
    return words + ("(?:s|es)?" if form[-1].isalpha() else "")


@dataclass(frozen=True)
class Glossary:
    terms: tuple[Term, ...]

    @staticmethod
    def parse(markdown: str) -> Glossary:
        terms = tuple(parse_entry(*entry) for entry in ENTRY.findall(markdown))
        seen: dict[str, str] = {}
        for term in terms:
            for form in term.forms:
                if form in seen:
                    raise BookError(
                        f"{PAGE}: '{form}' is a form of '{seen[form]}' and '{term.name}'"
                    )
                seen[form] = term.name
        return Glossary(terms)

    @cached_property
    def forms(self) -> list[tuple[str, Term]]:
        """The longest first: "bank conflict" is no use of "bank"."""
        pairs = [(form, term) for term in self.terms for form in term.forms]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        words = "|".join(f"({form_pattern(form)})" for form, _ in self.forms)
        return re.compile(rf"(?<![\w\-/.])(?:{words})(?![\w\-]|[./]\w)")

    def uses(self, text: str) -> Iterable[tuple[re.Match[str], Term]]:
        """Of terms in a text, in its order."""
        if self.terms:
            for match in self.pattern.finditer(text):
                yield match, self.forms[match.lastindex - 1][1]  # type: ignore[operator]


# --- links ----------------------------------------------------------------------------------------

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
# Where a use of a term is no sentence of the page, or cannot be a link.
SKIPPED = {"a", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "math", "svg", "script", "style"}
SKIPPED |= {"summary", "button", "template", "textarea", "select", "label", "kbd"}
APART = ("data-widget", "data-strip", "data-title")  # attributes of what is no text of the page


class Linker(HTMLParser):
    """The HTML of a page with a link at the first use of each term; all else stays as it is."""

    def __init__(self, glossary: Glossary, page: str, is_glossary: bool = False) -> None:
        super().__init__(convert_charrefs=False)
        self.glossary, self.page, self.is_glossary = glossary, page, is_glossary
        self.parts: list[str] = []
        self.inside: list[str] = []
        self.linked: set[str] = set()
        self.code: int | None = None  # where in parts an inline code begins

    def of(self, text: str) -> str:
        self.feed(text)
        self.close()
        return "".join(self.parts)

    @property
    def skips(self) -> bool:
        return any(tag in SKIPPED or tag in APART for tag in self.inside)

    def link(self, term: Term, inner: str) -> str:
        self.linked.add(term.name)
        text = html.escape(term.text, quote=True)
        return f'<a class="term" href="{self.page}#{term.anchor}" title="{text}">{inner}</a>'

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "h3" and self.is_glossary:  # an entry is as a page, and its own term is known
            anchor = dict(attributes).get("id")
            self.linked = {term.name for term in self.glossary.terms if term.anchor == anchor}
        if tag == "code" and not self.skips:
            self.code = len(self.parts)
        if tag not in VOID:
            self.inside.append(next((each for each in APART if each in dict(attributes)), tag))
        self.parts.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        while self.inside and self.inside.pop() not in (tag, *APART):
            pass
        if tag == "code" and self.code is not None:
            self.link_code(self.code)
            self.code = None

    def link_code(self, start: int) -> None:
        """Inline code that is a term, and nothing else."""
        inner = "".join(self.parts[start:])
        text = html.unescape(re.sub(r"<[^>]*>", "", inner))
        for match, term in self.glossary.uses(text):
            if match[0] == text and term.name not in self.linked:
                self.parts[start:] = [self.link(term, inner)]

    def handle_data(self, data: str) -> None:
        if self.skips or self.code is not None:
            self.parts.append(data)
            return
        end = 0
        for match, term in self.glossary.uses(data):
            if term.name not in self.linked:
                self.parts += [data[end : match.start()], self.link(term, match[0])]
                end = match.end()
        self.parts.append(data[end:])

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")
