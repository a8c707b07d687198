# SPDX-License-Identifier: MIT
"""docs/assets/strips.json: what the strip under the title of each chapter shows (scripts/book/strip.py)."""

from __future__ import annotations

import json
from typing import Any

import ladder
import limits
from ladder import DECODE, DECODE_PROBLEMS, MAIN_PROBLEMS, Problem, Results, Row, Rung

from book.strip import predictions
from pages.decode import DECODE_PEERS
from pages.site import ANY_LENGTHS, Site, digits, parse_problem, results_of, with_lengths

FILE = "docs/assets/strips.json"
RUNG_PEERS = {"float16": ("fa2", "fa3", "cudnn"), "float32": ("torch_efficient", "torch_standard")}

Json = dict[str, Any]


def problem_of(results: Results, rung: Rung) -> Problem:
    """That of the prediction, else that by which rungs are told."""
    _, text = predictions().get(rung.name, ("", ""))
    told_by = DECODE_PROBLEMS[0] if rung.family == DECODE else MAIN_PROBLEMS[rung.dtype]
    problem = parse_problem(text or told_by)
    return with_lengths(results, problem) if problem.lengths == ANY_LENGTHS else problem


def change_of(results: Results, before: Row | None, row: Row) -> str:
    """In the rate, against the parent; empty where that has no such row."""
    if before is None:
        return ""
    interval = ladder.ratio(results, before, row, ladder.time_of)
    return ladder.percent(interval.mean if interval else before.ms / row.ms, interval)


def share_of(results: Results, rung: Rung, row: Row) -> str:
    """Of what the card reaches: in operations, or for decode in bytes."""
    measured = limits.Limits.beside(results)
    if measured is None:
        return ""
    if rung.family == DECODE:
        read = measured.traffic("memory_read")
        return f"{100 * row.gbs / read:.0f} % of the bandwidth" if row.gbs and read else ""
    share = limits.share_of(measured, rung.family, row)
    return f"{100 * share:.0f} % of the limit" if share else ""


def bars(results: Results, problem: Problem, rung: Rung, before: Row | None, row: Row) -> list[Json]:
    """The parent, the rung and other implementations."""
    peers = DECODE_PEERS if rung.family == DECODE else RUNG_PEERS[rung.dtype]
    shown = [("parent", before.id if before else "", before), ("own", rung.id, row)]
    shown += [("peer", ladder.PEER_NAMES[id], results.peer(id, problem)) for id in peers]

    def value(each: Row) -> float:
        return 1e3 * each.ms if rung.family == DECODE else each.tflops

    return [
        {"kind": kind, "name": name, "value": float(digits(value(each)))}
        for kind, name, each in shown
        if each
    ]


def strip(site: Site, rung: Rung) -> Json | None:
    """None where the rung was not measured."""
    name = results_of(rung)
    if not site.results_path(name).exists():
        return None
    results = site.results(name)
    problem, parent = problem_of(results, rung), site.catalogue.find(rung.parent)
    row = results.rung(rung.id, rung.typed(problem))
    if row is None:
        return None
    before = results.rung(parent.id, parent.typed(problem)) if parent else None
    return {
        "unit": "µs" if rung.family == DECODE else "TFLOPS",
        "parent": parent.id if parent else "",
        "verdict": site.statuses[rung.id].change,
        "share": share_of(results, rung, row),
        "change": change_of(results, before, row),
        "problem": problem.label,
        "bars": bars(results, problem, rung, before, row),
    }


def text(site: Site) -> str:
    """Empty where nothing was measured."""
    found = {rung.name: strip(site, rung) for rung in site.catalogue.rungs}
    rows = [
        f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}"
        for name, row in found.items()
        if row
    ]
    return "{\n" + ",\n".join(rows) + "\n}\n" if rows else ""
