# SPDX-License-Identifier: MIT
"""Code cut from source files by names and words that survive editing, never by line numbers."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

KERNELS = "kernels"
SUFFIXES = (".cu", ".cuh")


class BookError(Exception):
    """A page cannot be built; the message names what is wrong and what is allowed."""


@dataclass(frozen=True)
class Source:
    """A text file of the repository."""

    name: str  # as the repository calls it
    lines: tuple[str, ...]

    @staticmethod
    def load(root: Path, name: str) -> Source:
        try:
            text = (root / name).read_text(encoding="utf-8")
        except OSError as error:
            raise BookError(f"cannot read {name}: {error.strerror}") from None
        return Source(name, tuple(text.splitlines()))


def sources(root: Path) -> list[str]:
    """Kernels, and the headers that they share."""
    files = (path for path in (root / KERNELS).glob("*/*") if path.suffix in SUFFIXES)
    return sorted(path.relative_to(root).as_posix() for path in files if path.parent.name != "own")


LADDER = f"{KERNELS}/ladder.def"
LISTED = re.compile(r"^RUNG\((\w+), (\w+)\)", re.M)
ROW = re.compile(r'^FA_RUNG\((\w+),\s*"(\w*)",', re.M)


@dataclass(frozen=True)
class Rung:
    """What the pages need to know of a rung."""

    name: str
    parent: str  # its name; empty where there is none
    family: str

    @property
    def id(self) -> str:
        return self.name.partition("_")[0]

    @property
    def file(self) -> str:
        return f"{KERNELS}/{self.family}/{self.name}.cu"

    @property
    def chapter(self) -> str:
        """Below docs/."""
        return f"{self.name}.md"


@functools.cache
def rungs_of(root: Path) -> list[Rung]:
    """Of the ladder, in its order, read as text: the site is built without a compiler. Each page
    asks, so the files are read once; a site that follows changes clears the cache."""
    names = {name.partition("_")[0]: name for _, name in listed(root)}
    rungs = []
    for family, name in listed(root):
        file = Rung(name, "", family).file
        row = ROW.search("\n".join(Source.load(root, file).lines))
        if row is None or row[1] != name:
            raise BookError(f"{file} has no row FA_RUNG({name}, ...)")
        if row[2] and row[2] not in names:
            raise BookError(f"{file}: the parent '{row[2]}' is no rung of {LADDER}")
        rungs.append(Rung(name, names.get(row[2], ""), family))
    return rungs


def listed(root: Path) -> list[tuple[str, str]]:
    """(family, name) of each line of the ladder."""
    return LISTED.findall("\n".join(Source.load(root, LADDER).lines))


# --- what a name stands for -----------------------------------------------------------------------

DEFINITION = r"^\s*(?:[\w:<>,&*~\[\]()=. ]+\s)?[&*]?{name}\s*\("
TYPE = r"^\s*(?:struct|class|union|enum class)\s+(?:__align__\(\d+\)\s+)?{name}\b[^;]*$"
MACRO = r"^#define\s+{name}\b"
NAMES = re.compile(
    r"^\s*(?:struct (\w+)|(?:__device__|__global__|template|constexpr|inline).*?\b(\w+)\()"
)


def known_names(source: Source) -> list[str]:
    found = (NAMES.match(line) for line in source.lines)
    return sorted({match[1] or match[2] for match in found if match} - {"explicit"})


def is_code(line: str) -> bool:
    """Neither blank nor a directive, which begins at the left edge anywhere."""
    return bool(line.strip()) and not line.startswith("#")


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def body_start(source: Source, first: int) -> int | None:
    """The line with the brace that opens the body of what is declared at `first`; None where it is
    a call or a declaration."""
    depth = 0
    for number in range(first, min(first + 12, len(source.lines))):
        for letter in source.lines[number]:
            depth += (letter == "(") - (letter == ")")
            if letter == "{" and depth == 0:
                return number
            if letter == ";" and depth == 0:
                return None
            if depth < 0:
                return None
        if source.lines[number].lstrip().startswith("#"):
            return None
    return None


def body_end(source: Source, opening: int, indent: int) -> int:
    if source.lines[opening].rstrip().endswith(("}", "};")):
        return opening
    for number in range(opening + 1, len(source.lines)):
        line = source.lines[number]
        if is_code(line) and indent_of(line) <= indent:
            return number
    raise BookError(f"{source.name}: no end of what line {opening + 1} opens")


def macro_end(source: Source, first: int) -> int:
    end = first
    while source.lines[end].endswith("\\"):
        end += 1
    return end


def with_heading(source: Source, first: int) -> int:
    """The first line of the comment and the template heading directly above."""
    indent = indent_of(source.lines[first])
    while first > 0:
        above = source.lines[first - 1]
        heading = above.lstrip().startswith(("//", "template", "requires"))
        if not heading or indent_of(above) != indent:
            break
        first -= 1
    return first


@dataclass(frozen=True)
class Span:
    """Lines of a file, the last one included."""

    source: Source
    first: int
    last: int

    @property
    def lines(self) -> list[str]:
        """Without the indentation that all of them have."""
        lines = list(self.source.lines[self.first : self.last + 1])
        shared = min((indent_of(line) for line in lines if is_code(line)), default=0)
        return [line[shared:].rstrip() if is_code(line) else line for line in lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def definitions(source: Source, name: str) -> list[Span]:
    """A type hides its constructors."""
    for kind in (TYPE, DEFINITION, MACRO):
        heads = (n for n, line in enumerate(source.lines) if is_head(line, kind, name))
        found = [span for number in heads if (span := defined_at(source, number))]
        if found:
            return found
    return []


def is_head(line: str, kind: str, name: str) -> bool:
    called = line.lstrip().startswith(("return ", "if ", "for ", "while ", "//", "else"))
    return not called and bool(re.match(kind.format(name=name), line))


def defined_at(source: Source, number: int) -> Span | None:
    """What a line begins that looks like a definition; None where it is a call or a declaration."""
    if source.lines[number].startswith("#"):
        return Span(source, number, macro_end(source, number))
    opening = body_start(source, number)
    if opening is None:
        return None
    end = body_end(source, opening, indent_of(source.lines[number]))
    return Span(source, with_heading(source, number), end)


def definition(source: Source, name: str) -> Span:
    """Of a function, type or macro, with the comment above it."""
    found = definitions(source, name)
    if len(found) == 1:
        return found[0]
    if not found:
        names = ", ".join(known_names(source))
        raise BookError(f"{source.name} defines no '{name}'; it defines {names}")
    lines = ", ".join(str(span.first + 1) for span in found)
    raise BookError(f'{source.name} defines \'{name}\' in lines {lines}; use "first" .. "last"')


def between(span: Span, first: str, last: str) -> Span:
    """From the one line that has the words `first` to the next one that has the words `last`."""
    lines = span.source.lines
    numbers = range(span.first, span.last + 1)
    starts = [number for number in numbers if first in lines[number]]
    if len(starts) != 1:
        where = ", ".join(str(number + 1) for number in starts) or "none"
        raise BookError(f"{span.source.name}: '{first}' is to stand in one line; found: {where}")
    ends = (number for number in numbers if number >= starts[0] and last in lines[number])
    end = next(ends, None)
    if end is None:
        raise BookError(f"{span.source.name}: no line with '{last}' after line {starts[0] + 1}")
    return Span(span.source, starts[0], end)


# --- markers --------------------------------------------------------------------------------------

PATH = rf"(?:(?P<path>{KERNELS}/[\w./]+):?\s+)?"
WORDS = r'(?:\s*"(?P<first>[^"]+)"(?:\s*\.\.\s*"(?P<last>[^"]+)")?)?'
MARKER = re.compile(rf"{PATH}(?P<name>\w+)?{WORDS}")


@dataclass(frozen=True)
class Excerpt:
    """What a marker asks for: a name, a name and two lines in it, or two lines of the file."""

    path: str  # empty: the file of the chapter
    name: str
    first: str
    last: str

    @staticmethod
    def parse(text: str) -> Excerpt:
        match = MARKER.fullmatch(text.strip())
        if not match or not (match["name"] or match["first"]):
            raise BookError(f'\'{text}\': expected [PATH] NAME, or [PATH] [NAME] "first" .. "last"')
        first = match["first"] or ""
        return Excerpt(match["path"] or "", match["name"] or "", first, match["last"] or first)

    def title(self, source: Source) -> str:
        return f"{source.name}, {self.name}" if self.name else source.name

    def cut(self, source: Source) -> Span:
        whole = Span(source, 0, len(source.lines) - 1)
        span = definition(source, self.name) if self.name else whole
        return between(span, self.first, self.last) if self.first else span
