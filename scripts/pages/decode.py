# SPDX-License-Identifier: MIT
"""table:decode and table:caches, of rungs that are bound by the bytes of a cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ladder
import limits
from ladder import (
    DECODE,
    DECODE_PROBLEMS,
    PEER_NAMES,
    LadderError,
    Problem,
    Results,
    Row,
    Rung,
)

from pages.results import NOTHING, markdown_table, rung_link, short_names, source_line
from pages.site import NotMeasured, Site, digits, rung_is_missing

PEERS = ("fa2", "cudnn", "fa3", "flashinfer")
LOOP = "memory_read"  # of fa limits: reads from device memory
SHAPE = ["B", "heads", "queries", "keys"]


def decode_table(site: Site, page: Path, name: str, id: str) -> str:
    """A rung at every cache that it was timed with, beside its parent and the peers."""
    rung = site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:decode: the catalogue has no rung '{id}'")
    if not site.results_path(name).exists():
        raise NotMeasured
    results = site.results(name)
    if rung_is_missing(site, results, id):
        raise NotMeasured
    problems = sorted({row.problem for row in results.timed() if row.id == id and not row.ablation})
    if not problems:
        raise LadderError(f"{results.name} has no time of '{id}'")
    measured = limits.Limits.beside(results)
    roof = measured.traffic(LOOP) if measured else None
    parent = site.catalogue.find(rung.parent)
    peers = tried_peers(results)
    lines = [line(results, rung, parent, problem, roof, peers) for problem in problems]
    heads = [*SHAPE, "µs", f"{id}, GB/s", "of read bandwidth"]
    heads += [parent.id if parent else "parent", *short_names(peers), "of the best peer"]
    return markdown_table(heads, lines) + source_line(results, None)


def tried_peers(results: Results) -> list[str]:
    """Files that were measured before a peer was there have nothing of it."""
    return [id for id in PEERS if id in results.peers()]


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
            cells += [digits(1e3 * milliseconds(row)), text(gbs(row)), ""] if row else [NOTHING] * 3
        lines.append([PEER_NAMES.get(peer, peer), *cells])
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
            interval = ladder.ratio(results, before, row, milliseconds)
            quotient = interval.mean if interval else milliseconds(before) / milliseconds(row)
            change = f"{ladder.percent(quotient, interval)} against {parent.id}"
        cells += [digits(1e3 * milliseconds(row)), text(gbs(row)), change]
    return cells


def line(
    results: Results,
    rung: Rung,
    parent: Rung | None,
    problem: Problem,
    roof: float | None,
    tried: list[str],
) -> list[str]:
    row = results.rung(rung.id, problem)
    half = replace(problem, cache="")  # peers read the same keys in 16 bits
    parent_row = results.rung(parent.id, parent.typed(problem)) if parent else None
    peers = [results.peer(peer, half) for peer in tried]
    best = min((peer for peer in peers if peer is not None), key=milliseconds, default=None)
    own = gbs(row)
    assert row is not None and own is not None
    return [
        *shape_cells(problem),
        digits(1e3 * milliseconds(row)),
        digits(own),
        f"{100 * own / roof:.0f} %" if roof else NOTHING,
        text(gbs(parent_row)),
        *(text(gbs(peer)) for peer in peers),
        times_as_fast(results, row, best) if best else NOTHING,
    ]


def times_as_fast(results: Results, row: Row, other: Row) -> str:
    """1.05, or 1.052 ± 0.003."""
    change = ladder.ratio(results, other, row, milliseconds)
    if change is None or change.is_exact:
        return f"{milliseconds(other) / milliseconds(row):.2f}"
    digits = change.decimals + 2
    return f"{change.mean:.{digits}f} ± {change.half:.{digits}f}"


def shape_cells(problem: Problem) -> list[str]:
    keys = f"{problem.seq_kv}"
    if problem.lengths:
        keys = f"{min(problem.lengths)} to {max(problem.lengths)}"
    if problem.page:
        keys += f", pages of {problem.page}"
    if problem.cache:
        keys += ", e4m3"
    heads = f"{problem.heads}/{problem.kv_heads or problem.heads}"
    return [f"{problem.batch}", heads, f"{problem.seq_q}", keys]


def milliseconds(row: Row) -> float:
    return row.ms


def gbs(row: Row | None) -> float | None:
    return row.gbs if row else None


def text(value: float | None) -> str:
    return NOTHING if value is None else digits(value)
