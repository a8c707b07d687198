# SPDX-License-Identifier: MIT
"""table: markers made from result files of a card."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import ladder
import limits
from ladder import MAIN_PROBLEMS, LadderError, Problem, Results, Row, Rung

from pages.site import (
    FIELDS,
    NOTHING,
    Site,
    LIMIT_FIELDS,
    digits,
    limits_of,
    parse_problem,
    results_of,
)


def markdown_table(heads: list[str], rows: Iterable[list[str]], left: int = 1) -> str:
    """The first `left` columns are text, the others are numbers."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    lines = [heads, rule, *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def rung_link(site: Site, rung: Rung, page: Path) -> str:
    target = os.path.relpath(site.root / rung.chapter, page.parent)
    return f"[{rung.title}]({target})"


# Family -> title of its part of the book.
PARTS = {
    "fp32": "FP32: finding the algorithm",
    "ampere": "Ampere: tensor cores",
    "hopper": "Hopper",
    "decode": "Decode: long caches",
    "backward": "Backward: gradients",
    "blackwell": "Blackwell: tensor memory",
}


def families_list(site: Site, page: Path) -> str:
    """A folded list for each family: rungs with their rates and ideas."""
    parts = []
    for family, group in groupby(site.catalogue.rungs, lambda rung: rung.family):
        rungs = list(group)
        title = f"{PARTS[family]}, {rungs[0].id} to {rungs[-1].id}"
        opening = f'<details markdown="1"><summary>{title}</summary>'
        items = "".join(rung_item(site, page, rung) for rung in rungs)
        parts.append(f"{opening}\n\n{items}\n</details>\n")
    return "\n".join(parts)


def rung_item(site: Site, page: Path, rung: Rung) -> str:
    """Its link, its rate on the problem that it is judged by first, its idea."""
    name, kind = results_of(rung), site.statuses[rung.id]
    problem = rung.typed(Problem.parse(MAIN_PROBLEMS[rung.dtype]))
    if rung.family == ladder.DECODE:
        problem = rung.typed(Problem.parse(ladder.DECODE_PROBLEMS[0]))
    row = site.results(name).rung(rung.id, problem) if site.results_path(name).exists() else None
    words = [rung_link(site, rung, page)]
    if row:
        rate = f"{digits(row.gbs or 0)} GB/s" if rung.family == ladder.DECODE else f"{digits(row.tflops)} TFLOPS"
        words.append(rate)
    if rung.data["target"] == ladder.NEVER_TIMED:
        words.append("never timed by us")
    if kind.is_known and not (kind.is_up and not kind.branch):
        words.append(kind.text)
    return f"- {', '.join(words)}: {rung.idea}\n"


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
    change = f"{ladder.percent(step.factor, step.change)} against {step.parent.id}" if step else NOTHING
    if step and step.parent_at_tile:
        change += f", {ladder.percent(step.idea_factor, step.idea_change)} at equal tile"
    return [
        rung_link(site, rung, page),
        rate(row),
        *limit_cells(limits.Limits.beside(results), rung, row),
        share(results, row, results.peer("fa2", problem)),
        change,
    ]


def ladder_table(site: Site, page: Path, name: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    measured = limits.Limits.beside(results)
    fa2 = results.peer("fa2", problem)
    peers = [results.peer(id, problem) for id in results.peers()] + [results.matmul(problem)]
    heads = ["rung", "TFLOPS", *([OF_LIMIT] if measured else []), "of FA2", "change"]
    tried = {row.id for row in results.rows if row.status != "unsupported"}
    rungs = [
        ladder_row(site, page, results, problem, rung)
        for rung in site.catalogue.rungs
        if rung.id in tried
        and rung.dtype == problem.dtype
        and (rung.takes("causal") or not problem.causal)
    ]
    others = [
        [peer_name(row), rate(row), *limit_cells(measured, None, row), share(results, row, fa2), ""]
        for row in peers
        if row
    ]
    table = markdown_table(heads, rungs + others)
    unknown = "" if measured else f"\n{limits.NOT_MEASURED.capitalize()}.\n"
    return table + source_line(results, problem) + unknown


def limits_table(site: Site, page: Path, card: str) -> str:
    measured = limits_of(site, card)
    lines = []
    for row in measured.rows:
        values = [row[name] for name in ("rate", "rate_back_to_back")]
        cells = [NOTHING if value is None else f"{digits(value)} {row['unit']}" for value in values]
        for name in ("per_clock_sm", "clock_mhz", "power_w"):
            cells.append(NOTHING if row[name] is None else LIMIT_FIELDS[name](row[name]))
        lines.append([row["what"], *cells])
    heads = ["loop", "spaced", "back to back", "per clock and SM", "MHz", "W"]
    runs = f"; means of {ladder.runs_text(measured.runs)}" if measured.runs else ""
    file = f"`plots/results/{card}/{measured.path.name}`"
    source = f"{measured.gpu}{runs}; {file}, commit {measured.commit[:9]}"
    return f"{markdown_table(heads, lines)}\n{source}.\n"


def who_is(site: Site, page: Path, kind: str, id: str) -> str:
    rung = site.catalogue.find(id) if kind == "rung" else None
    if rung is None:
        return ladder.PEER_NAMES.get(id, id)
    return rung_link(site, rung, page)


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
            cells.append(f"{memory_cell(row, 'ms')} / {memory_cell(row, 'peak_gb')}")
        lines.append(cells)
    names = [who_is(site, page, *who) for who in tried]
    heads = ["N", *(f"{who}, ms / GB" for who in names)]
    source = source_line(results, problem).replace(f" N={problem.seq_q}", "", 1)
    return markdown_table(heads, lines, left=0) + source


def memory_cell(row: Row | None, name: str) -> str:
    value = FIELDS[name][0](row) if row else None
    if value is not None:
        return FIELDS[name][1](value)
    return "does not fit" if row and name == "ms" else NOTHING
