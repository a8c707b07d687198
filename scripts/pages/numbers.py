# SPDX-License-Identifier: MIT
"""Keys: one number each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import itemgetter

import ladder
from ladder import LadderError, Problem, Row, read_json

from pages.site import (
    BLACKWELL_COUNTS,
    COUNTS,
    COUNTS_AT,
    FIELDS,
    LIMIT_FIELDS,
    MODEL_RESULTS,
    NotMeasured,
    Site,
    Unsaid,
    digits,
    find_row,
    limits_of,
    parse_problem,
    read_field,
    results_for,
)

MAIN_SEQ = "8192"  # the problem where a key names none
PROBLEM = r"\d+(?:,\S+)?"
ROW_KEY = re.compile(
    rf"(?:(?P<file>\S+/\S+) )?(?P<id>\S+)(?: (?P<problem>{PROBLEM}))? (?P<field>[a-z]\w*)"
    rf"(?: (?P<sign>[/%]) (?P<other>\S+)(?: (?P<other_problem>{PROBLEM}))?(?P<flat> flat)?)?"
)


@dataclass(frozen=True)
class RowKey:
    """[FILE] ID [PROBLEM] FIELD, or that and "/ ID [PROBLEM] [flat]" or "% ID [PROBLEM] [flat]"."""

    text: str
    file: str
    id: str
    problem: Problem
    field: str
    sign: str = ""
    other: str = ""
    other_problem: Problem | None = None
    is_flat: bool = False

    @staticmethod
    def parse(key: str) -> RowKey:
        match = ROW_KEY.fullmatch(" ".join(key.split()))
        if not match:
            raise LadderError(f"'{key}': expected [FILE] ID [PROBLEM] FIELD [/ ID or % ID]")
        problem = parse_problem(match["problem"] or MAIN_SEQ)
        other = parse_problem(match["other_problem"]) if match["other_problem"] else problem
        file = match["file"] or results_for(problem)
        found = (match["id"], problem, match["field"], match["sign"] or "", match["other"] or "")
        return RowKey(key, file, *found, other, bool(match["flat"]))


def number(site: Site, key: str) -> str:
    """Text of one number."""
    words = key.split()
    if words[0] == "counts" and len(words) in (4, 5):
        return count_number(site, *words[1:])
    if words[0] == "sass" and len(words) == 3:
        return str(loop_counts(site, words[1]).get(words[2], 0))
    if words[0] == "limit" and len(words) == 4:
        return limit_number(site, *words[1:])
    return row_number(site, RowKey.parse(key))


def row_number(site: Site, key: RowKey) -> str:
    if key.file == MODEL_RESULTS and not site.results_path(key.file).exists():
        raise NotMeasured
    results = site.results(key.file)
    row = find_row(site, results, key.id, key.problem)
    value = read_field(row, key.field)
    if not key.sign:
        return FIELDS[key.field][1](value)
    other_row = find_row(site, results, key.other, key.other_problem)
    other = read_field(other_row, key.field)
    if other == 0:
        raise LadderError(f"{key.field} of '{key.other}' is 0")
    change = ladder.ratio(results, row, other_row, FIELDS[key.field][0])
    quotient = change.mean if change else value / other
    text = f"{quotient:.2f}" if key.sign == "/" else ladder.percent(quotient)
    if change is None or change.is_exact:
        return text
    if text == "1.00" and not change.has_one:
        text = f"{quotient:.3f}"
    if change.has_one != key.is_flat:
        found = f"{change.mean:.4f}, from {change.low:.4f} to {change.high:.4f} with 95 % confidence"
        allowed = "excludes 1: take the word flat out of the key"
        if change.has_one:
            allowed = "contains 1: end the key with the word flat, or remove the number"
        runs = ladder.runs_text(results.runs)
        raise Unsaid(text, f"'{key.text}' is {found} ({runs}), which {allowed}")
    return text


def limit_number(site: Site, card: str, loop: str, field: str) -> str:
    rows = {row["id"]: row for row in limits_of(site, card).rows}
    for what, name, known in (("loop", loop, rows), ("field", field, LIMIT_FIELDS)):
        if name not in known:
            raise LadderError(f"limit: unknown {what} '{name}'; known: {', '.join(known)}")
    value = rows[loop][field]
    if value is None:
        raise LadderError(f"limit: '{loop}' on {card} has no {field}: {rows[loop]['reason']}")
    return LIMIT_FIELDS[field](value)


def loop_counts(site: Site, entry: str) -> dict[str, int]:
    """Instructions by kind, and their "total", in the main loop of an entry point."""
    path = site.results_path("sass")
    entries = read_json(path, "what scripts/sass.py writes", itemgetter("entries"))
    if entry not in entries:
        raise LadderError(f"{path.name} has no entry point '{entry}'")
    return entries[entry]


def counted_problem(site: Site, id: str, dim: str) -> Problem:
    """Where a rung is counted, in its own dtype."""
    problem, rung = Problem.parse(COUNTS_AT.format(dim)), site.catalogue.find(id)
    return replace(problem, dtype=rung.data.get("dtype", problem.dtype)) if rung else problem


def counted_row(site: Site, who: str, dim: str) -> Row:
    """Counts of a rung, or of ID@TILE."""
    id, _, tile = who.partition("@")
    rung = site.catalogue.find(id)
    is_blackwell = rung is not None and rung.family == "blackwell"
    results = site.results(BLACKWELL_COUNTS if is_blackwell else COUNTS)
    row = results.counted(id, counted_problem(site, id, dim), tile)
    if row is None:
        raise LadderError(f"{results.name} has no counts of '{who}' at head_dim {dim}")
    return row


def counts_of(site: Site, who: str, dim: str) -> dict[str, int]:
    return dict(counted_row(site, who, dim).data["counts"])


def known_counts(site: Site) -> list[str]:
    """Names of all counts that any rung has; what never happened to a rung is not in its row."""
    rows = list(site.results(COUNTS).rows)
    if site.results_path(BLACKWELL_COUNTS).exists():
        rows += site.results(BLACKWELL_COUNTS).rows
    return sorted({name for row in rows for name in row.data.get("counts") or {}})


def count_number(site: Site, who: str, dim: str, key: str, reference: str = "") -> str:
    row = counted_row(site, who, dim)
    if key not in known_counts(site):
        raise LadderError(f"counts: no rung has {key}; known: {', '.join(known_counts(site))}")
    count = row.data["counts"].get(key, 0)
    if not reference:
        return grouped(count)
    if reference == "mma":
        products = ladder.products(row)
        if not products:
            raise LadderError(f"counts: '{who}' uses no tensor cores")
        return digits(count / products)
    other = counts_of(site, reference, dim).get(key, 0)
    if other == 0:
        raise LadderError(f"counts: {key} of '{reference}' is 0")
    return f"{count / other:.2f}"


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
