# SPDX-License-Identifier: MIT
"""Numbers in sentences. A page carries them plainly; a comment at its end says which is which.

The comment lists bindings, one a line: words of the page, with a key in braces in the place of each
number.

    <!-- numbers
    {06 tflops % 05} at N = 8192, and {06 tflops / fa2} of FlashAttention-2
    | back to back … | 27 | {27 tflops_back_to_back} |
    -->

These words stand at one place of the page; line breaks do not matter, and generated tables do not
count. Where the words before "…" stand at one place, those after it are the first that follow.
A number that is written as {{06 tflops / fa2}} is replaced by its value, and a binding is added.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ladder import LadderError

Value = Callable[[str], str]  # of a key
Complain = Callable[[str], None]

BLOCK = re.compile(r"\n*^<!-- numbers\n(.*?)^-->\n?", re.S | re.M)
GENERATED = re.compile(r"<!-- table:.*?<!-- /table -->", re.S)
CODE = re.compile(r"^( *)```.*?^\1```|`[^`\n]*`", re.S | re.M)
NEW = re.compile(r"\{\{([^{}\n]+)\}\}")
PLACE = re.compile(r"\{([^{}]*)\}")
NUMBER = (
    r"((?<![\w.])(?:[+−]|×\s)?\d[\d\u202f]*(?:\.\d+)?(?:\s%)?(?![\d\u202f]|\.\d)"
    r"|not\s+measured\s+(?:yet|in\s+this\s+run))"
)
SKIP = "…"
NEARLY = 6  # characters between the words of two numbers
MOST_WORDS = 12  # on each side of a number, in a binding that is made


@dataclass(frozen=True, order=True)
class Place:
    """Of one number in the text of a page."""

    start: int
    end: int
    key: str


# --- where the numbers of a binding stand ---------------------------------------------------------


def literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


def pattern(words: str) -> re.Pattern[str]:
    parts = PLACE.split(words)
    return re.compile("".join(NUMBER if i % 2 else literal(part) for i, part in enumerate(parts)))


def bindings_of(text: str) -> list[str]:
    block = BLOCK.search(text)
    return [line for line in block[1].splitlines() if line.strip()] if block else []


def with_bindings(text: str, bindings: list[str]) -> str:
    page = BLOCK.sub("\n", text).rstrip("\n") + "\n"
    block = "".join(f"{line}\n" for line in bindings)
    return f"{page}\n<!-- numbers\n{block}-->\n" if bindings else page


def blotted(text: str, *kinds: re.Pattern[str]) -> str:
    """The text with everything of these kinds, but line ends, blotted out in its place."""
    for kind in kinds:
        text = kind.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), text)
    return text


def prose_of(text: str) -> str:
    return blotted(text, GENERATED, BLOCK)


def nearest(prose: str, words: str) -> str:
    """The line of the page that is most like these words, for a message."""
    lines = [line.strip() for line in prose.splitlines() if line.strip("\0 ")]
    close = difflib.get_close_matches(PLACE.sub("", words), lines, n=1, cutoff=0.3)
    return f"; the nearest line: {close[0]}" if close else ""


def only_match(prose: str, words: str) -> re.Match[str]:
    found = list(pattern(words).finditer(prose))
    if not found:
        raise LadderError(f"numbers: the page has no words '{words}'{nearest(prose, words)}")
    if len(found) > 1:
        lines = ", ".join(str(prose.count("\n", 0, match.start()) + 1) for match in found)
        raise LadderError(f"numbers: '{words}' stands in lines {lines}; add words of one of them")
    return found[0]


def places_of(prose: str, binding: str) -> list[Place]:
    before, skip, words = (part.strip() for part in binding.rpartition(SKIP))
    keys = PLACE.findall(words)
    if not keys or PLACE.search(before):
        raise LadderError(f"numbers: '{binding}' has no key in braces, or one before '{SKIP}'")
    if skip:
        start = only_match(prose, before).end()
        match = pattern(words).search(prose, start)
        if match is None:
            raise LadderError(f"numbers: the page has no words '{words}' after '{before}'")
    else:
        match = only_match(prose, words)
    return [Place(*match.span(i), key) for i, key in enumerate(keys, start=1)]


# --- filling --------------------------------------------------------------------------------------


def located(text: str, complain: Complain) -> list[tuple[str, list[Place]]]:
    """Every binding with its places; one without any is an error."""
    prose, found, taken = prose_of(text), [], set[int]()
    for binding in bindings_of(text):
        try:
            places = places_of(prose, binding)
        except LadderError as error:
            complain(str(error))
            continue
        if taken & {place.start for place in places}:
            complain(f"numbers: '{binding}': another binding has one of these numbers already")
            continue
        taken |= {place.start for place in places}
        found.append((binding, places))
    return found


def filled(text: str, value: Value, complain: Complain) -> str:
    """The page with the number of every key in its place."""
    places = [place for _, some in located(text, complain) for place in some]
    for place in sorted(places, reverse=True):
        try:
            text = text[: place.start] + value(place.key) + text[place.end :]
        except LadderError as error:
            complain(str(error))
    return text


# --- new numbers ----------------------------------------------------------------------------------


def new_places(text: str, value: Value, complain: Complain) -> tuple[str, list[Place]]:
    """The page with values where {{keys}} stood, and where that is."""
    places: list[Place] = []
    result, end = "", 0
    for match in NEW.finditer(blotted(text, GENERATED, BLOCK, CODE)):
        result += text[end : match.start()]
        try:
            number, key = value(match[1].strip()), match[1].strip()
        except LadderError as error:
            complain(str(error))
            number, key = match[0], ""
        if key:
            places.append(Place(len(result), len(result) + len(number), key))
        result, end = result + number, match.end()
    return result + text[end:], places


def words_with_keys(prose: str, start: int, end: int, places: list[Place]) -> str:
    """Part of the page as a binding."""
    words = ""
    for place in sorted(places):
        words += prose[start : place.start] + "{" + place.key + "}"
        start = place.end
    return " ".join((words + prose[start:end]).split())


def binds(prose: str, binding: str, places: list[Place]) -> bool:
    try:
        return places_of(prose, binding) == sorted(places)
    except LadderError:
        return False


def row_binding(prose: str, places: list[Place], bound: list[Place]) -> str:
    """Of all numbers in a row of a table; where another table has the same row, after a line above
    that has no bound number in it."""
    start = prose.rfind("\n", 0, places[0].start) + 1
    row = words_with_keys(prose, start, (prose + "\n").find("\n", start), places)
    fixed = prose
    for place in bound:
        fixed = fixed[: place.start] + "\0" * (place.end - place.start) + fixed[place.end :]
    above = [line.strip() for line in fixed[:start].splitlines() if re.search(r"\w", line)]
    for before in ["", *(f"{line} {SKIP} " for line in reversed(above) if "\0" not in line)]:
        if binds(prose, before + row, places):
            return before + row
    raise LadderError(f"numbers: no words of the page single out '{row}'; write its line yourself")


def paragraph_bounds(prose: str, at: int) -> tuple[int, int]:
    """Of the text around a number that has no blank line, table or generated part in it."""
    ends = [match.span() for match in re.finditer(r"\n[ \t]*\n|\0+|\n\||\|\n", prose)]
    start = max((end for _, end in ends if end <= at), default=0)
    return start, min((begin for begin, _ in ends if begin >= at), default=len(prose))


def window(prose: str, places: list[Place], words: int, taken: list[Place]) -> tuple[int, int]:
    """So many words on each side of the places, up to the next number that is bound elsewhere."""
    first, last = places[0].start, places[-1].end
    start, end = paragraph_bounds(prose, first)
    start = max([start, *(place.end for place in taken if place.end <= first)])
    end = min([end, *(place.start for place in taken if place.start >= last)])
    before = [match.start() for match in re.finditer(r"\S+", prose[start:first])]
    after = [match.end() for match in re.finditer(r"\S+", prose[last:end])]
    left = start + (before[-words] if len(before) >= words else 0)
    return left, last + (after[words - 1] if len(after) >= words else len(prose[last:end]))


def merged(prose: str, groups: list[list[Place]], words: int) -> list[list[Place]]:
    """Groups whose words overlap, or nearly, become one."""
    result: list[list[Place]] = []
    for group in groups:
        if result:
            _, end = window(prose, result[-1], words, [])
            start, _ = window(prose, group, words, [])
            if start < end + NEARLY:
                result[-1] = result[-1] + group
                continue
        result.append(group)
    return result


def sentence_bindings(prose: str, places: list[Place], taken: list[Place]) -> Iterator[str]:
    """As few words as single a number out, at least two on each side."""
    groups = [[place] for place in sorted(places)]
    for words in range(2, MOST_WORDS):
        left = []
        for group in merged(prose, groups, words):
            binding = words_with_keys(prose, *window(prose, group, words, taken), group)
            if binds(prose, binding, group):
                taken = taken + group
                yield binding
            else:
                left.append(group)
        groups = left
    for group in groups:
        raise LadderError(f"numbers: no words around '{{{group[0].key}}}' single it out")


def in_row(prose: str, place: Place) -> bool:
    return prose[prose.rfind("\n", 0, place.start) + 1 :].lstrip().startswith("|")


def rows_of(prose: str, places: list[Place]) -> dict[int, list[Place]]:
    """Where the rows of tables begin that have these numbers, and their numbers."""
    rows: dict[int, list[Place]] = {}
    for place in places:
        if in_row(prose, place):
            rows.setdefault(prose.rfind("\n", 0, place.start), []).append(place)
    return rows


def added(text: str, value: Value, complain: Complain) -> str:
    """The page with a value and a binding for every {{key}}."""
    text, new = new_places(text, value, complain)
    if not new:
        return text
    prose, bindings = prose_of(text), bindings_of(text)
    rows, taken = rows_of(prose, new), list[Place]()
    for binding, places in located(text, lambda _: None):
        row = rows.get(prose.rfind("\n", 0, places[0].start))
        if row is None:
            taken += places
        else:  # a row has one binding
            row += places
            bindings.remove(binding)
    sentences = [place for place in new if not in_row(prose, place)]
    try:
        bound = new + taken
        bindings += [row_binding(prose, sorted(places), bound) for places in rows.values()]
        bindings += sentence_bindings(prose, sentences, taken)
    except LadderError as error:
        complain(str(error))
        return text
    return with_bindings(text, sorted(bindings, key=lambda binding: first_place(prose, binding)))


def first_place(prose: str, binding: str) -> int:
    try:
        return places_of(prose, binding)[0].start
    except LadderError:
        return len(prose)
