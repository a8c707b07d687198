# SPDX-License-Identifier: MIT
"""table: markers made from result files of a card."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import intensity
import ladder
import limits
from ladder import LadderError, Problem, Results, Row, Rung, read_json

from pages.site import (
    FIELDS,
    NOTHING,
    RESULTS_OF,
    NotMeasured,
    Site,
    LIMIT_FIELDS,
    digits,
    find_row,
    limits_of,
    parse_problem,
    read_field,
    rung_is_missing,
)

OCCUPANCY = "occupancy"  # fa tune 06 --static --json, for head_dim 64 and 128



def markdown_table(heads: list[str], rows: Iterable[list[str]], left: int = 1) -> str:
    """The first `left` columns are text, the others are numbers."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    lines = [heads, rule, *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def rung_link(site: Site, rung: Rung, page: Path, text: str = "") -> str:
    target = os.path.relpath(site.root / rung.chapter, page.parent)
    return f"[{text or rung.title}]({target})"


def chapters_table(site: Site, page: Path) -> str:
    rows = (
        [rung_link(site, rung, page), rung.idea, rung.parent or NOTHING, site.statuses[rung.id].text]
        for rung in site.catalogue.rungs
    )
    return markdown_table(["rung", "the one idea", "on", "kind"], rows, left=4)


def rate(row: Row | None) -> str:
    return digits(row.tflops) if row else NOTHING


def share(results: Results, row: Row | None, reference: Row | None) -> str:
    if row is None or reference is None:
        return NOTHING
    return ladder.share(row.tflops / reference.tflops, ladder.ratio(results, row, reference))


def peer_name(row: Row) -> str:
    name = ladder.PEER_NAMES.get(row.id, row.id)
    size = row.data.get("matmul")
    product = " " + "\N{MULTIPLICATION SIGN}".join(map(str, size)) if size else ""
    return f"{name}{product} ({row.variant})" if row.variant else f"{name}{product}"


def source_line(results: Results, problem: Problem | None) -> str:
    shape = f", {problem.label}" if problem else ""
    policy = ladder.policy_text(results)
    return f"\n{results.gpu}{shape}; {policy}; `{ladder.source_text(results)}`.\n"


OF_LIMIT = "% of limit"


def limit_cells(measured: limits.Limits | None, rung: Rung | None, row: Row | None) -> list[str]:
    """One cell where the card's limits are known, none where they are not."""
    if measured is None:
        return []
    share = limits.share_of(measured, rung.family, row) if rung else None
    return [f"{100 * share:.0f} %" if share else NOTHING]


def ladder_row(site: Site, page: Path, results: Results, problem: Problem, rung: Rung) -> list[str]:
    row = results.rung(rung.id, problem)
    step = ladder.step_of(rung, site.catalogue, results, problem)
    changed = step and step.parent_at_tile
    parent = step.parent.id if step else ""
    return [
        rung_link(site, rung, page),
        rate(row),
        *limit_cells(limits.Limits.beside(results), rung, row),
        share(results, row, results.peer("fa2", problem)),
        f"{ladder.percent(step.factor, step.change)} against {parent}" if step else NOTHING,
        f"{ladder.percent(step.idea_factor, step.idea_change)} against {parent}" if changed else "",
    ]


def ladder_table(site: Site, page: Path, name: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    measured = limits.Limits.beside(results)
    fa2 = results.peer("fa2", problem)
    peers = [results.peer(id, problem) for id in results.peers()] + [results.matmul(problem)]
    heads = ["rung", "TFLOPS", *([OF_LIMIT] if measured else []), "of FA2"]
    heads += ["change", "at equal tile"]
    tried = {row.id for row in results.rows}
    rungs = [
        ladder_row(site, page, results, problem, rung)
        for rung in site.catalogue.rungs
        if rung.id in tried
        and rung.dtype == problem.dtype
        and (rung.takes("causal") or not problem.causal)
    ]
    others = [
        [peer_name(row), rate(row), *limit_cells(measured, None, row), share(results, row, fa2), "", ""]
        for row in peers
        if row
    ]
    table = markdown_table(heads, rungs + others)
    unknown = "" if measured else f"\n{limits.NOT_MEASURED.capitalize()}.\n"
    return table + source_line(results, problem) + unknown


CARDS = {"H200": "h200", "H100": "h100"}  # name -> folder below plots/results


def cards_table(site: Site, page: Path, problem_text: str) -> str:
    """Every rung on the cards, each from the result file of its dtype. A card without a file has
    empty cells."""
    problem = parse_problem(problem_text)
    stem = Path(RESULTS_OF[problem.dtype]).name
    names = [f"{folder}/{stem}" for folder in CARDS.values()]
    files = [site.results(name) if site.results_path(name).exists() else None for name in names]
    if not any(files):
        raise LadderError(f"table:cards: there is none of {', '.join(names)}")
    def line(name: str, find: Callable[[Results], Row | None]) -> list[str]:
        return [name, *card_cells([find(file) if file else None for file in files])]

    rungs = [rung for rung in site.catalogue.rungs if rung.dtype == problem.dtype]
    peers = dict.fromkeys(peer for file in files if file for peer in file.peers())
    lines = [
        line(rung_link(site, rung, page), lambda file, id=rung.id: file.rung(id, problem))
        for rung in rungs
        if rung.takes("causal") or not problem.causal
    ]
    lines += [
        line(ladder.PEER_NAMES.get(peer, peer), lambda file, id=peer: file.peer(id, problem))
        for peer in peers
    ]
    lines = [line for line in lines if any(cell != NOTHING for cell in line[1:])]
    quotient = "\N{DIVISION SIGN}".join(CARDS)
    sources = "".join(source_line(file, problem) for file in files if file)
    return markdown_table(["rung", *CARDS, quotient], lines) + sources


def card_cells(rows: list[Row | None]) -> list[str]:
    first, second = rows
    quotient = f"{first.tflops / second.tflops:.2f}" if first and second else NOTHING
    return [*map(rate, rows), quotient]


def limits_table(site: Site, page: Path, card: str) -> str:
    measured = limits_of(site, card)
    lines = []
    for row in measured.rows:
        values = [row[name] for name in ("rate", "rate_back_to_back")]
        cells = [NOTHING if value is None else f"{digits(value)} {row['unit']}" for value in values]
        for name in ("per_clock_sm", "clock_mhz", "power_w"):
            cells.append(NOTHING if row[name] is None else LIMIT_FIELDS[name](row[name]))
        lines.append([row["what"], *cells])
    heads = ["loop", "spaced", "back to back", "a clock and SM", "MHz", "W"]
    runs = f"; means of {ladder.runs_text(measured.runs)}" if measured.runs else ""
    file = f"`plots/results/{card}/{measured.path.name}`"
    source = f"{measured.gpu}{runs}; {file}, commit {measured.commit[:9]}"
    return f"{markdown_table(heads, lines)}\n{source}.\n"


# What a rung is measured against, by dtype; the first is the reference of the last column.
RUNG_PEERS = {"float16": ("fa2", "fa3", "cudnn"), "float32": ("torch_efficient", "torch_standard")}
SHORT_NAMES = {"fa2": "FA2", "fa3": "FA3"}


def short_names(peers: Iterable[str]) -> list[str]:
    return [SHORT_NAMES.get(peer, ladder.PEER_NAMES[peer]) for peer in peers]


def rung_table(site: Site, page: Path, name: str, id: str) -> str:
    results, rung = site.results(name), site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:rung: the catalogue has no rung '{id}'")
    if rung_is_missing(site, results, id):
        raise NotMeasured
    problems = sorted({row.problem for row in results.timed() if row.id == id and not row.ablation})
    if not problems:
        raise LadderError(f"{results.name} has no time of '{id}'")
    several = len({(problem.batch, problem.heads) for problem in problems}) > 1
    peers, measured = RUNG_PEERS[problems[0].dtype], limits.Limits.beside(results)
    rows = []
    for problem in problems:
        row = results.rung(id, problem)
        step = ladder.step_of(rung, site.catalogue, results, problem)
        others = [results.peer(peer, problem) for peer in peers]
        rows.append(
            [
                *([heads_text(problem)] if several else []),
                f"{problem.head_dim}{' causal' if problem.causal else ''}",
                str(problem.seq_q),
                rate(row),
                *limit_cells(measured, rung, row),
                rate(step.parent_row) if step else NOTHING,
                rate(step.parent_at_tile) if step else NOTHING,
                *map(rate, others),
                share(results, row, others[0]),
            ]
        )
    parent = rung.parent or "parent"
    names = short_names(peers)
    heads = [HEADS] if several else []
    heads += ["D", "N", f"{id}", *([OF_LIMIT] if measured else []), parent]
    heads += [f"{parent} at this tile", *names, f"of {names[0]}"]
    return markdown_table(heads, rows, left=1) + source_line(results, None)


HEADS = "B\N{MULTIPLICATION SIGN}H"


def heads_text(problem: Problem) -> str:
    return f"{problem.batch}\N{MULTIPLICATION SIGN}{problem.heads}"


def part(row: Row | None, whole: Row | None) -> str:
    """Share of a time."""
    if row is None or whole is None:
        return NOTHING
    return f"{read_field(row, 'ms') / read_field(whole, 'ms'):.3f}"


def causal_table(site: Site, page: Path, name: str, id: str) -> str:
    results, peers = site.results(name), RUNG_PEERS["float16"]
    if rung_is_missing(site, results, id):
        raise NotMeasured
    problems = sorted({row.problem for row in results.timed() if row.id == id})
    rows = []
    for problem in problems:
        row, whole = results.rung(id, problem), replace(problem, causal=False)
        if not problem.causal or row is None:
            continue
        others = [results.peer(peer, problem) for peer in peers]
        unmasked = [results.rung(id, whole), *(results.peer(peer, whole) for peer in peers)]
        rows.append(
            [
                str(problem.head_dim),
                str(problem.seq_q),
                digits(read_field(row, "ms")),
                *map(part, [row, *others], unmasked),
                *map(rate, [row, *others]),
                share(results, row, others[0]),
            ]
        )
    if not rows:
        raise LadderError(f"{results.name} has no time of '{id}' at a causal problem")
    names = short_names(peers)
    shares = ["of non-causal", *(f"{name}'s" for name in names)]
    heads = ["D", "N", "ms", *shares, id, *names, f"of {names[0]}"]
    return markdown_table(heads, rows, left=1) + source_line(results, None)


def tile_key(tile: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", tile)))


def limit_names(names: list[str] | None) -> str:
    return " and ".join(names) if names else NOTHING


def tune_table(site: Site, page: Path, name: str, id: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    swept = [row for row in results.rows if (row.id, row.problem) == (id, problem)]
    timed = [row for row in swept if row.is_timed]
    if not timed:
        raise LadderError(f"{results.name} has no time of '{id}' at {problem.label}")
    best = max(timed, key=lambda row: row.tflops)
    rows = []
    for row in sorted(swept, key=lambda row: tile_key(row.variant)):
        used = row.data.get("resources") or {}
        tile = row.variant if row.ablation else f"{row.variant} (its own)"
        if row.is_timed:
            speed = [FIELDS["ms"][1](row.ms), rate(row), share(results, row, best)]
        else:
            speed = [row.status, "", ""]
        cells = [tile, *speed]
        cells += [str(used.get(key, NOTHING)) for key in ("registers", "spill_bytes")]
        cells += [f"{used['shared_bytes'] / 1024:.0f}" if used else NOTHING]
        cells += [str(used.get("blocks_per_sm", NOTHING)), limit_names(used.get("limited_by"))]
        rows.append([f"**{cell}**" if row is best and cell else cell for cell in cells])
    heads = ["tile", "ms", "TFLOPS", "of best", "registers", "spilled bytes", "shared KiB"]
    table = markdown_table([*heads, "blocks per SM", "limited by"], rows)
    return table + source_line(results, problem)


def occupancy_rows(site: Site, id: str, dim: str) -> list[dict[str, Any]]:
    path = site.results_path(OCCUPANCY)

    def take(document: Any) -> list[dict[str, Any]]:
        rows = document["rows"]
        return [row for row in rows if (row["id"], str(row["head_dim"])) == (id, dim)]

    found = read_json(path, "what fa tune --static writes", take)
    if not found:
        raise LadderError(f"{path.name} has no rows of '{id}' at head_dim {dim}")
    return found


def occupancy_table(site: Site, page: Path, id: str, dim: str, sms: str) -> str:
    rows = {(row["variant"], str(row["sm"])): row for row in occupancy_rows(site, id, dim)}
    wanted = sms.split(",")
    lines = []
    for tile in sorted({tile for tile, _ in rows}, key=tile_key):
        cards = [rows.get((tile, sm)) for sm in wanted]
        known = [row for row in cards if row]
        if not known:
            raise LadderError(f"table:occupancy: no tile of '{id}' is compiled for {sms}")
        registers = " / ".join(dict.fromkeys(str(row["registers"]) for row in known))
        cells = [
            f"{row['blocks_per_sm']}: {limit_names(row['limited_by'])}" if row else NOTHING
            for row in cards
        ]
        lines.append([tile, registers, f"{known[0]['shared_bytes'] / 1024:.0f}", *cells])
    versions = [f"{sm[:-1]}.{sm[-1]}" for sm in wanted]
    table = markdown_table(["tile", "registers", "shared KiB", *versions], lines)
    source = f"computed from the report of ptxas; `plots/results/{OCCUPANCY}.json`"
    return f"{table}\nHead_dim {dim}, {source}.\n"


def who_is(site: Site, page: Path, kind: str, id: str, short: bool = False) -> str:
    """`short`: a rung's number alone, where a column is narrow."""
    rung = site.catalogue.find(id) if kind == "rung" else None
    if rung is None:
        return ladder.PEER_NAMES.get(id, id)
    return rung_link(site, rung, page, id if short else "")


def memory_table(site: Site, page: Path, name: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    tried = ladder.tried_to_the_end(results, problem)
    lengths = sorted({row.problem.seq_q for rows in tried.values() for row in rows})
    if not lengths:
        raise LadderError(f"{results.name} has no time like {problem.label}")
    lines = []
    for seq in lengths:
        cells = [str(seq)]
        for rows in tried.values():
            row = next((row for row in rows if row.problem.seq_q == seq), None)
            cells += [memory_cell(row, "ms"), memory_cell(row, "peak_gb")]
        lines.append(cells)
    names = [who_is(site, page, *who) for who in tried]
    heads = ["N", *(f"{who}, {unit}" for who in names for unit in ("ms", "GB"))]
    source = source_line(results, problem).replace(f" N={problem.seq_q}", "", 1)
    return markdown_table(heads, lines, left=0) + source


def memory_cell(row: Row | None, name: str) -> str:
    value = FIELDS[name][0](row) if row else None
    if value is not None:
        return FIELDS[name][1](value)
    return "does not fit" if row and name == "ms" else NOTHING


def small_table(site: Site, page: Path, name: str, field_name: str) -> str:
    results = site.results(name)
    if field_name not in FIELDS:
        raise LadderError(f"unknown field '{field_name}'; known: {', '.join(FIELDS)}")
    rows = [row for row in results.timed() if not row.ablation and "matmul" not in row.data]
    columns = list(dict.fromkeys((row.kind, row.id) for row in rows))
    lines = []
    for problem in sorted({row.problem for row in rows}, key=lambda p: (p.causal, p)):
        here = {(row.kind, row.id): row for row in rows if row.problem == problem}
        cells = [heads_text(problem), str(problem.seq_q), "causal" if problem.causal else "all"]
        for who in columns:
            value = FIELDS[field_name][0](here[who]) if who in here else None
            cells.append(NOTHING if value is None else FIELDS[field_name][1](value))
        lines.append(cells)
    if not lines:
        raise LadderError(f"{results.name} has no times")
    heads = [HEADS, "N", "keys", *(who_is(site, page, *who, short=True) for who in columns)]
    return markdown_table(heads, lines, left=3) + source_line(results, None)


# The post's table: lengths and head_dims, and the A100's rate and bandwidth that it divides.
POST_SHAPES = [(n, d) for d in (64, 128, 256) for n in (256, 2048, 4096)]
POST_RIDGE = 312e12 / 1555e9


def intensity_table(site: Site, page: Path, name: str) -> str:
    results, problem = site.results(name), Problem.parse(ladder.MAIN_PROBLEM)
    roof = intensity.ceilings(results, problem)
    lines = []
    for n, d in POST_SHAPES:
        work = intensity.scores_product(n, d)
        bounds = (intensity.bound(work.intensity, ridge) for ridge in (POST_RIDGE, roof.ridge))
        amounts = (f"{work.flops / 1e6:.2f} M", f"{work.bytes / 1e3:.1f} K")
        lines.append([str(n), str(d), *amounts, f"{work.intensity:.0f}", *bounds])
    heads = ["N", "d", "FLOP", "bytes", "FLOP/byte"]
    heads += ["the post's A100, ridge 201", f"{results.gpu}, ridge {roof.ridge:.0f}"]
    source = (
        f"{results.gpu}: {digits(roof.tflops)} TFLOPS ({roof.arithmetic[0][0]}) over "
        f"{digits(roof.gbs)} GB/s of {roof.traffic}, both measured; "
        f"`{ladder.source_text(results)}`.\n"
    )
    return f"{markdown_table(heads, lines, left=0)}\n{source}"


def compared_name(site: Site, id: str) -> str:
    return id if site.catalogue.find(id) else short_names([id])[0]


def rates_table(site: Site, page: Path, name: str, problem_text: str, ids: str) -> str:
    """A few rungs and peers at one problem, with the circumstances."""
    problem = parse_problem(problem_text)
    fields = ("tflops_spaced", "tflops_back_to_back", "clock_mhz", "power_w")
    lines = []
    for id in ids.split(","):
        try:
            row = find_row(site, site.results(name), id, problem)
            cells = [FIELDS[field][1](read_field(row, field)) for field in fields]
        except NotMeasured as reason:
            cells = [str(reason), *[NOTHING] * (len(fields) - 1)]
        lines.append([compared_name(site, id), *cells])
    dim = f", head_dim {problem.head_dim}" if problem.head_dim != 128 else ""
    shape = f"at N = {problem.seq_q}{dim}{', causal' if problem.causal else ''}"
    return markdown_table(
        [shape, "TFLOPS, spaced", "back to back", "SM clock, MHz", "power, W"], lines
    )


SPREAD_RATES = {"tflops_spaced": "TFLOPS, spaced", "tflops_back_to_back": "back to back"}


def spread_table(site: Site, page: Path, name: str, problem_text: str, ids: str) -> str:
    """Rates of rungs and peers by the spread of the scores, spaced and back to back."""
    results, plain = site.results(name), parse_problem(problem_text)
    problems = {row.problem for row in results.timed() if row.problem.plain == plain}
    columns = sorted(problems, key=lambda problem: (problem.inputs != "normal", problem.spread))
    if not columns:
        raise LadderError(f"{results.name} has no time at {plain.label} with any spread")
    names = [f"{p.spread:g}" if p.inputs == "normal" else p.inputs for p in columns]
    timed = {row.id for row in results.timed() if row.problem in problems}
    missing = [compared_name(site, id) for id in ids.split(",") if id not in timed]
    tables = []
    for field, title in SPREAD_RATES.items():
        lines = [
            [compared_name(site, id), *(spread_cell(site, results, id, p, field) for p in columns)]
            for id in ids.split(",")
            if id in timed
        ]
        tables.append(markdown_table([f"{title}; spread", *names], lines))
    note = f"\nNot measured in this run: {', '.join(missing)}.\n" if missing else ""
    return "\n".join(tables) + note


def spread_cell(site: Site, results: Results, id: str, problem: Problem, field: str) -> str:
    known = site.catalogue.find(id) is not None
    row = results.rung(id, problem) if known else results.peer(id, problem)
    return FIELDS[field][1](read_field(row, field)) if row else NOTHING
