# SPDX-License-Identifier: MIT
"""table:caches, of rungs that are bound by the bytes of a cache."""

from __future__ import annotations

from pathlib import Path

import ladder
from ladder import DECODE, DECODE_PROBLEMS, PEER_NAMES, SHORT_NAMES, Problem, Results, Rung, time_of

from pages.results import NOTHING, markdown_table, rung_link, source_line
from pages.site import NotMeasured, Site, digits

DECODE_PEERS = ("fa2", "cudnn", "fa3", "flashinfer")


def tried_peers(results: Results) -> list[str]:
    """Files that were measured before a peer was there have nothing of it."""
    return [id for id in DECODE_PEERS if id in results.peers()]


def caches_table(site: Site, page: Path, name: str) -> str:
    """All rungs that decode, at the two caches of equal lengths by which steps are told (plots/status.py)."""
    if not site.results_path(name).exists():
        raise NotMeasured
    results = site.results(name)
    problems = [Problem.parse(each) for each in DECODE_PROBLEMS]
    heads = ["rung"]
    for problem in problems:
        batch = f"B = {problem.batch}"
        heads += [f"{batch}, µs", f"{batch}, GB/s", f"{batch}, change"]
    lines = [
        [rung_link(site, rung, page), *caches_cells(site, results, rung, problems)]
        for rung in site.catalogue.rungs
        if rung.family == DECODE and results.rung(rung.id, rung.typed(problems[0]))
    ]
    for peer in tried_peers(results):
        cells: list[str] = []
        for problem in problems:
            row = results.peer(peer, problem)
            cells += [digits(1e3 * row.ms), text(row.gbs), ""] if row else [NOTHING] * 3
        lines.append([SHORT_NAMES.get(peer, PEER_NAMES[peer]), *cells])
    return markdown_table(heads, lines) + source_line(results, None)


def caches_cells(site: Site, results: Results, rung: Rung, problems: list[Problem]) -> list[str]:
    parent = site.catalogue.find(rung.parent)
    cells: list[str] = []
    for problem in problems:
        row = results.rung(rung.id, rung.typed(problem))
        before = results.rung(parent.id, parent.typed(problem)) if parent else None
        if row is None:
            cells += [NOTHING] * 3
            continue
        change = NOTHING
        if parent and before:
            interval = ladder.ratio(results, before, row, time_of)
            quotient = interval.mean if interval else before.ms / row.ms
            change = f"{ladder.percent(quotient, interval)} against {parent.id}"
        cells += [digits(1e3 * row.ms), text(row.gbs), change]
    return cells


def text(value: float | None) -> str:
    return NOTHING if value is None else digits(value)
