#!/usr/bin/env python3
"""Keeps the documentation equal to the committed measurements and to the catalogue.

  scripts/docs.py --write     fills tables, numbers, navigation; renders the charts
  scripts/docs.py --check     prints a diff of what is out of date and exits 1

A marker whose measurement is missing keeps its text and is an error (exit code 2); all others are
filled.

Markers, in README.md and docs/**/*.md (FILE is a result file below plots/results without .json;
PROBLEM is a sequence length at B=16 H=16 D=128, or BATCH,HEADS,SEQ,DIM[,causal][,float32] with
the inputs where they are not the usual ones: ,rising or ,spread=8):

  <!-- table:chapters -->                the ladder: rung, idea, parent; links to the chapters
  <!-- table:ladder FILE PROBLEM -->     TFLOPS, share of FA2, change against parent; peers below
  <!-- table:rung FILE ID -->            one rung on every problem of the file, beside its parent
  <!-- table:causal FILE ID -->          its causal problems beside the same ones without a mask
  <!-- table:tune FILE ID PROBLEM -->    one rung at every tile that fa tune swept, fastest in bold
  <!-- table:occupancy ID DIM SM,SM... --> blocks per SM of every tile and what limits them
  <!-- table:memory FILE PROBLEM -->     time and memory at every length, up to what does not fit
  <!-- table:small FILE FIELD -->        a field at every problem of the file, a column a kernel
  <!-- table:intensity FILE -->          the post's table of Q K^T, with its A100's ridge and ours
  <!-- table:sass ENTRY,ENTRY... -->     machine instructions in the main loops (scripts/sass.py)
  <!-- table:counts ID DIM -->           the virtual machine's counts per m16n8k16 product, which is
                                         one mma (without tensor cores per 32 scores), and the parent's
  <!-- table:ncu -->                     these counts against an H200's hardware counters
  <!-- table:mutants -->                 wrong outputs that the check rejects (fa check --mutants)
      ... generated ... <!-- /table -->

  <!-- n:FILE ID PROBLEM FIELD -->value<!-- /n -->             one number
  <!-- n:FILE ID PROBLEM FIELD / ID -->0.92<!-- /n -->         ratio to another row
  <!-- n:FILE ID PROBLEM FIELD % ID -->+4.1 %<!-- /n -->       change against another row
                                                      (either may end in the other row's PROBLEM)
  <!-- n:ridge FILE PROBLEM -->190<!-- /n -->              FLOP/byte where both measured ceilings meet
  <!-- n:sass ENTRY KIND -->256<!-- /n -->                      instructions of a kind in the main loop
  <!-- n:counts ID DIM KEY [REF] -->1 024<!-- /n -->    a count of the machine, 0 if nothing of that name
                                                      happened; REF: mma (for each m16n8k16 product),
                                                      or an ID (times of that rung)
      ID: a rung, ID@TILE for an ablation (01@64x128w4), or a peer (fa2, cudnn, cublas)
      FIELD: see FIELDS below

mkdocs.yml: the lines between "# chapters: begin" and "# chapters: end" are the chapters.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

import intensity  # noqa: E402
import ladder  # noqa: E402
from ladder import Catalogue, LadderError, Problem, Results, Row, Rung  # noqa: E402

TABLE = re.compile(r"(<!-- table:([^>]*?) -->\n)(.*?)(<!-- /table -->)", re.S)
NUMBER = re.compile(r"(<!-- n:([^>]*?) -->)(.*?)(<!-- /n -->)", re.S)
OPENING = re.compile(r"<!-- (?:table|n):[^>]*-->")
NAVIGATION = re.compile(r"( *)(# chapters: begin[^\n]*\n)(.*?)( *# chapters: end)", re.S)
PROVENANCE = re.compile(r"<dc:description>(.*?)</dc:description>", re.S)
MAIN_RESULTS = "h200/ladder"  # docs/assets: charts of this file and of COUNTS
NOTHING = "\N{EN DASH}"
SINGLE_RESULTS = "h200/fp32"  # charts too
SPREAD_RESULTS = "h200/spread"  # and these
COUNTS = "vm/counts"  # fa explain all --seq 1024 --dim 128,64 --ablations --json
COUNTS_AT = "1,2,1024,{}"
NCU = "h200/ncu"
OCCUPANCY = "occupancy"  # fa tune 06 --static --json, for head_dim 64 and 128


@dataclass
class Site:
    """What is documented. Result files are read once."""

    root: Path
    catalogue: Catalogue
    errors: list[str] = field(default_factory=list)
    loaded: dict[str, Results] = field(default_factory=dict)

    def results_path(self, name: str) -> Path:
        return self.root / "plots" / "results" / f"{name}.json"

    def results(self, name: str) -> Results:
        if name not in self.loaded:
            self.loaded[name] = Results.load(self.results_path(name))
        return self.loaded[name]

    def pages(self) -> list[Path]:
        readme = self.root / "README.md"
        return [readme] * readme.is_file() + sorted((self.root / "docs").rglob("*.md"))


# --- numbers --------------------------------------------------------------------------------------


def digits(value: float) -> str:
    """Three significant digits without an exponent: 1234, 352, 45.1, 0.132."""
    magnitude = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(3 - magnitude, 0)}f}"


def number_in(*path: str) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        value: object = row.data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return None if value is None else float(value)  # type: ignore[arg-type]

    return read


def launch_ms(index: int) -> Callable[[Row], float | None]:
    """Median of one launch of a rung that has several."""

    def read(row: Row) -> float | None:
        launches = row.data.get("launches") or []
        time = launches[index]["time_ms"] if index < len(launches) else None
        return None if time is None else float(time["median"])

    return read


def scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


# Name -> (where the number is, how it is written)
FIELDS: dict[str, tuple[Callable[[Row], float | None], Callable[[float], str]]] = {
    "tflops": (number_in("tflops"), digits),
    "tflops_back_to_back": (number_in("tflops_back_to_back"), digits),
    "gbs": (number_in("gbs"), digits),
    "ms": (number_in("time_ms", "median"), digits),
    "clock_mhz": (number_in("clock_mhz"), "{:.0f}".format),
    "power_w": (number_in("power_w"), "{:.0f}".format),
    "registers": (number_in("resources", "registers"), "{:.0f}".format),
    "shared_bytes": (number_in("resources", "shared_bytes"), "{:.0f}".format),
    "spill_bytes": (number_in("resources", "spill_bytes"), "{:.0f}".format),
    "blocks_per_sm": (number_in("resources", "blocks_per_sm"), "{:.0f}".format),
    "peak_gb": (lambda row: scaled(number_in("peak_bytes")(row), 1e-9), digits),
    "ms_launch_1": (launch_ms(0), digits),
    "ms_launch_2": (launch_ms(1), digits),
    "ms_launch_3": (launch_ms(2), digits),
    "intensity": (intensity.uncached, digits),
    "intensity_once": (lambda row: intensity.once(row.problem).intensity, digits),
    "gbs_uncached": (lambda row: 1e3 * row.tflops / intensity.uncached(row), digits),
}


def parse_problem(text: str) -> Problem:
    """ "8192" is short for 16,16,8192,128."""
    main = Problem.parse(ladder.MAIN_PROBLEM)
    return main.with_seq(int(text)) if text.isdigit() else Problem.parse(text)


def find_row(site: Site, results: Results, who: str, problem: Problem) -> Row:
    id, _, tile = who.partition("@")
    if tile:
        row = results.ablation(id, problem, tile)
    elif site.catalogue.find(id):
        row = results.rung(id, problem)
    else:
        row = results.peer(id, problem) or ceiling(results, id, problem)
    if row is None:
        raise LadderError(f"{results.name} has no time of '{who}' at {problem.label}")
    return row


def ceiling(results: Results, id: str, problem: Problem) -> Row | None:
    rows = (results.matmul(problem), results.copy(problem))
    return next((row for row in rows if row and row.id == id), None)


def read_field(row: Row, name: str) -> float:
    if name not in FIELDS:
        raise LadderError(f"unknown field '{name}'; known: {', '.join(FIELDS)}")
    value = FIELDS[name][0](row)
    if value is None:
        raise LadderError(f"'{row.id}' at {row.problem.label} has no {name}")
    return value


def number(site: Site, key: str) -> str:
    """Text of one n: marker."""
    words = key.split()
    if words[0] == "counts" and len(words) in (4, 5):
        return count_number(site, *words[1:])
    if words[0] == "sass" and len(words) == 3:
        return str(instructions(site, words[1], words[2]))
    if words[0] == "ridge" and len(words) == 3:
        return digits(intensity.ceilings(site.results(words[1]), parse_problem(words[2])).ridge)
    if len(words) not in (4, 6, 7) or (len(words) > 4 and words[4] not in "/%"):
        raise LadderError(f"n:{key}: expected FILE ID PROBLEM FIELD, or these and '/ ID' or '% ID'")
    results = site.results(words[0])
    problem = parse_problem(words[2])
    value = read_field(find_row(site, results, words[1], problem), words[3])
    if len(words) == 4:
        return FIELDS[words[3]][1](value)
    other_problem = parse_problem(words[6]) if len(words) == 7 else problem
    other = read_field(find_row(site, results, words[5], other_problem), words[3])
    if other == 0:
        raise LadderError(f"n:{key}: {words[3]} of '{words[5]}' is 0")
    return f"{value / other:.2f}" if words[4] == "/" else ladder.percent(value / other)


def instructions(site: Site, entry: str, kind: str) -> int:
    """How many instructions of a kind (or "total") the main loop of an entry point has."""
    path = site.results_path("sass")
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["entries"]
    except (OSError, ValueError, KeyError) as error:
        raise LadderError(f"{path} cannot be read ({error}); scripts/sass.py makes it") from None
    if entry not in entries:
        raise LadderError(f"{path.name} has no entry point '{entry}'")
    return int(entries[entry].get(kind, 0))


def counted_problem(site: Site, id: str, dim: str) -> Problem:
    """Where a rung is counted, in its own dtype."""
    problem, rung = Problem.parse(COUNTS_AT.format(dim)), site.catalogue.find(id)
    return replace(problem, dtype=rung.data.get("dtype", problem.dtype)) if rung else problem


def counted_row(site: Site, who: str, dim: str) -> Row:
    """Counts of a rung, or of ID@TILE."""
    results, (id, _, tile) = site.results(COUNTS), who.partition("@")
    row = results.counted(id, counted_problem(site, id, dim), tile)
    if row is None:
        raise LadderError(f"{results.name} has no counts of '{who}' at head_dim {dim}")
    return row


def counts_of(site: Site, who: str, dim: str) -> dict[str, int]:
    return dict(counted_row(site, who, dim).data["counts"])


def known_counts(site: Site) -> list[str]:
    """Names of all counts that any rung has; what never happened to a rung is not in its row."""
    rows = site.results(COUNTS).rows
    return sorted({name for row in rows for name in row.data.get("counts") or {}})


def count_number(site: Site, who: str, dim: str, key: str, reference: str = "") -> str:
    row = counted_row(site, who, dim)
    if key not in known_counts(site):
        raise LadderError(f"n:counts: no rung has {key}; known: {', '.join(known_counts(site))}")
    count = row.data["counts"].get(key, 0)
    if not reference:
        return grouped(count)
    if reference == "mma":
        products = ladder.products(row)
        if not products:
            raise LadderError(f"n:counts: '{who}' uses no tensor cores")
        return digits(count / products)
    other = counts_of(site, reference, dim).get(key, 0)
    if other == 0:
        raise LadderError(f"n:counts: {key} of '{reference}' is 0")
    return f"{count / other:.2f}"


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


# --- tables ---------------------------------------------------------------------------------------


def markdown_table(heads: list[str], rows: Iterable[list[str]], left: int = 1) -> str:
    """The first `left` columns are text, the others are numbers."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    lines = [heads, rule, *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def rung_link(site: Site, rung: Rung, page: Path) -> str:
    target = os.path.relpath(site.root / rung.chapter, page.parent)
    return f"[{rung.title}]({target})"


def chapters_table(site: Site, page: Path) -> str:
    rows = (
        [rung_link(site, rung, page), rung.idea, rung.parent or NOTHING, rung.status]
        for rung in site.catalogue.rungs
    )
    return markdown_table(["rung", "the one idea", "on", "kind"], rows, left=4)


def rate(row: Row | None) -> str:
    return digits(row.tflops) if row else NOTHING


def share(row: Row | None, reference: Row | None) -> str:
    return f"{100 * row.tflops / reference.tflops:.0f} %" if row and reference else NOTHING


def peer_name(row: Row) -> str:
    name = ladder.PEER_NAMES.get(row.id, row.id)
    size = row.data.get("matmul")
    product = " " + "\N{MULTIPLICATION SIGN}".join(map(str, size)) if size else ""
    return f"{name}{product} ({row.variant})" if row.variant else f"{name}{product}"


def source_line(results: Results, problem: Problem | None) -> str:
    shape = f", {problem.label}" if problem else ""
    policy = ladder.policy_text(results)
    return f"\n{results.gpu}{shape}; {policy}; `{ladder.source_text(results)}`.\n"


def ladder_row(site: Site, page: Path, results: Results, problem: Problem, rung: Rung) -> list[str]:
    row = results.rung(rung.id, problem)
    step = ladder.step_of(rung, site.catalogue, results, problem)
    changed = step is not None and step.parent_at_tile is not None
    return [
        rung_link(site, rung, page),
        rung.idea,
        rate(row),
        share(row, results.peer("fa2", problem)),
        ladder.percent(step.factor) if step else NOTHING,
        ladder.percent(step.idea_factor) if step and changed else "",
    ]


def ladder_table(site: Site, page: Path, name: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    fa2 = results.peer("fa2", problem)
    peers = [results.peer(id, problem) for id in results.peers()] + [results.matmul(problem)]
    heads = ["rung", "the one idea", "TFLOPS", "of FA2", "against parent", "at equal tile"]
    tried = {row.id for row in results.rows}
    rungs = [
        ladder_row(site, page, results, problem, rung)
        for rung in site.catalogue.rungs
        if rung.id in tried
        and rung.data.get("dtype", problem.dtype) == problem.dtype
        and (rung.data.get("causal") or not problem.causal)
    ]
    others = [[peer_name(row), "", rate(row), share(row, fa2), "", ""] for row in peers if row]
    table = markdown_table(heads, rungs + others, left=2)
    return table + source_line(results, problem)


# What a rung is measured against, by dtype; the first is the reference of the last column.
RUNG_PEERS = {"float16": ("fa2", "fa3", "cudnn"), "float32": ("torch_efficient", "torch_standard")}
SHORT_NAMES = {"fa2": "FA2", "fa3": "FA3"}


def short_names(peers: Iterable[str]) -> list[str]:
    return [SHORT_NAMES.get(peer, ladder.PEER_NAMES[peer]) for peer in peers]


def rung_table(site: Site, page: Path, name: str, id: str) -> str:
    results, rung = site.results(name), site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:rung: the catalogue has no rung '{id}'")
    problems = sorted({row.problem for row in results.timed() if row.id == id and not row.ablation})
    if not problems:
        raise LadderError(f"{results.name} has no time of '{id}'")
    several = len({(problem.batch, problem.heads) for problem in problems}) > 1
    peers = RUNG_PEERS[problems[0].dtype]
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
                rate(step.parent_row) if step else NOTHING,
                rate(step.parent_at_tile) if step else NOTHING,
                *map(rate, others),
                share(row, others[0]),
            ]
        )
    parent = rung.parent or "parent"
    names = short_names(peers)
    heads = [HEADS] if several else []
    heads += ["D", "N", f"{id}", parent, f"{parent} at this tile", *names, f"of {names[0]}"]
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
                share(row, others[0]),
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
            speed = [FIELDS["ms"][1](row.data["time_ms"]["median"]), rate(row), share(row, best)]
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
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        found = [row for row in rows if (row["id"], str(row["head_dim"])) == (id, dim)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LadderError(f"{path} cannot be read ({error}); fa tune --static makes it") from None
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


def who_is(site: Site, page: Path, kind: str, id: str) -> str:
    rung = site.catalogue.find(id) if kind == "rung" else None
    return rung_link(site, rung, page) if rung else ladder.PEER_NAMES.get(id, id)


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
    heads = [HEADS, "N", "keys", *(who_is(site, page, *who) for who in columns)]
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
        f"{results.gpu}: {digits(roof.tflops)} TFLOPS of a matrix product over {digits(roof.gbs)}"
        f" GB/s of a copy, both measured; `{ladder.source_text(results)}`.\n"
    )
    return f"{markdown_table(heads, lines, left=0)}\n{source}"


def mutants_table(site: Site, page: Path) -> str:
    """Made on the CPU by the program itself."""
    return ladder.run_fa("check", "--mutants")


# Those that none of a table's loops has are left out of it.
SASS_KINDS = ("HMMA", "HGMMA", "LDSM", "LDGSTS", "UTMALDG", "SYNCS", "MUFU", "FFMA", "FMUL")
SASS_KINDS += ("FADD", "HADD2", "FMNMX", "F2FP", "R2UR")


def sass_table(site: Site, page: Path, entries: str) -> str:
    names = entries.split(",")
    kinds = [kind for kind in SASS_KINDS if any(instructions(site, name, kind) for name in names)]
    rows = []
    for name in names:
        counts = [instructions(site, name, kind) for kind in kinds]
        total = instructions(site, name, "total")
        rows.append([f"`{name}`", *map(str, counts), str(total - sum(counts)), str(total)])
    return markdown_table(["main loop of", *kinds, "other", "all"], rows)


# Heading -> keys whose sum it is.
COUNT_ROWS = {
    "`wgmma`": ("wgmma",),
    "wavefronts of `wgmma`": ("wgmma_wavefronts",),
    "`ldmatrix`": ("ldmatrix",),
    "wavefronts of `ldmatrix`": ("ldmatrix_wavefronts",),
    "of these, bank conflicts": ("ldmatrix_wavefronts", "-ldmatrix_ideal"),
    "wavefronts of `ld.shared` and `st.shared`": (
        "shared_load_wavefronts",
        "shared_store_wavefronts",
    ),
    "bank conflicts of `ld.shared`": ("shared_load_wavefronts", "-shared_load_ideal"),
    "`cp.async`": ("cp_async",),
    "bulk copies": ("bulk_copy",),
    "mbarrier operations": ("mbarrier",),
    "global sectors": (
        "global_load_sectors",
        "global_copy_sectors",
        "global_store_sectors",
        "bulk_load_sectors",
        "bulk_store_sectors",
    ),
    "float instructions": ("float",),
    "`ex2`": ("exp",),
    "shuffles": ("shuffle",),
    "barriers": ("barrier",),
    "PTX instructions": ("instructions",),
}


def count_sum(counts: dict[str, int], keys: tuple[str, ...]) -> int:
    return sum(
        -counts.get(key[1:], 0) if key.startswith("-") else counts.get(key, 0) for key in keys
    )


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2g}" if 0 < ratio < 0.01 else f"{ratio:.3f}"


def count_columns(site: Site, id: str, dim: str) -> dict[str, Row]:
    """The parent, the parent at this tile where the tile changed, the rung."""
    rung = site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:counts: the catalogue has no rung '{id}'")
    results, problem = site.results(COUNTS), counted_problem(site, id, dim)
    own = counted_row(site, id, dim)
    columns = {}
    if rung.parent and (parent := results.counted(rung.parent, problem)):
        columns[rung.parent] = parent
        at_tile = results.counted(rung.parent, problem, own.variant)
        if at_tile and at_tile.variant != parent.variant:
            columns[f"{rung.parent} at this tile"] = at_tile
    return {**columns, id: own}


def counts_table(site: Site, page: Path, id: str, dim: str) -> str:
    columns, problem = count_columns(site, id, dim), counted_problem(site, id, dim)
    counted = [row.data["counts"] for row in columns.values()]
    heading, units = "for each `mma`", [ladder.products(row) for row in columns.values()]
    if any("wgmma" in counts for counts in counted):
        heading = "for each m16n8k16 product"
    if not units[-1]:
        heading = "for each 32 scores"
        units = [problem.batch * problem.heads * problem.seq_q * problem.seq_kv / 32] * len(columns)
    rows = []
    for name, keys in COUNT_ROWS.items():
        sums = [count_sum(counts, keys) for counts in counted]
        if any(sums):
            ratios = (value / unit for value, unit in zip(sums, units, strict=True) if unit)
            rows.append([name, *map(ratio_text, ratios)])
    table = markdown_table([heading, *columns], rows)
    return f"{table}\nPTX virtual machine, {problem.label}; `{site.results(COUNTS).name}`.\n"


# Heading -> (counters of ncu, counts of the machine), each summed.
NCU_COLUMNS = {
    "`mma`, `wgmma`": (("tensor_pipe", "-tensor_pipe_hfma2"), ("tensor", "wgmma")),
    "`ldmatrix`": (("ldmatrix",), ("ldmatrix",)),
    "`cp.async`": (("cp_async",), ("cp_async",)),
    "bulk copies": (("bulk_load",), ("bulk_load_copies",)),
    "their bytes": (("bulk_load_bytes",), ("bulk_load_bytes",)),
    "load sectors": (("global_load_sectors",), ("global_copy_sectors", "global_load_sectors")),
    "store sectors": (("global_store_sectors",), ("global_store_sectors",)),
    "wavefronts of `wgmma`": (("wgmma_wavefronts",), ("wgmma_wavefronts",)),
    "of loads": (("shared_load_wavefronts",), ("ldmatrix_wavefronts", "shared_load_wavefronts")),
    "of stores": (
        ("shared_store_wavefronts",),
        ("stmatrix_wavefronts", "shared_store_wavefronts"),
    ),
}


def deviation(counted: int, measured: int) -> str:
    if counted == measured:
        return "equal" if measured else NOTHING
    if measured == 0:
        return f"{grouped(counted)} against 0"
    factor = counted / measured
    sign = "\N{MINUS SIGN}" if factor < 1 else "+"
    return f"{sign}{abs(100 * (factor - 1)):.2f} %"


def profiled(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, int]]:
    """Hardware counters of each kernel instance, those of its launches added up."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        own = sums.setdefault((row["id"], row["variant"]), {})
        for name, value in row["counters"].items():
            own[name] = own.get(name, 0) + value
    return sums


def ncu_table(site: Site, page: Path) -> str:
    """Machine / hardware, at the same problem."""
    try:
        profile = json.loads(site.results_path(NCU).read_text(encoding="utf-8"))
        problem = Problem.from_json(profile["problem"])
        device, counters = profile["device"]["name"], profiled(profile["rows"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LadderError(f"{NCU}.json cannot be read ({error})") from None
    if problem != Problem.parse(COUNTS_AT.format(problem.head_dim)):
        raise LadderError(f"{NCU}.json: profiled at {problem.label}, which is not what was counted")
    lines = []
    for (id, variant), measured in counters.items():
        counts = counts_of(site, f"{id}@{variant}", str(problem.head_dim))
        cells = [
            deviation(count_sum(counts, keys), count_sum(measured, names))
            for names, keys in NCU_COLUMNS.values()
        ]
        lines.append([f"{id} {variant}", *cells])
    table = markdown_table(["machine against hardware", *NCU_COLUMNS], lines)
    shape = f"B={problem.batch} H={problem.heads} N={problem.seq_q} D={problem.head_dim}"
    return f"{table}\n{device}, {shape}.\n"


TABLES: dict[str, Callable[..., str]] = {
    "chapters": chapters_table,
    "ladder": ladder_table,
    "rung": rung_table,
    "causal": causal_table,
    "tune": tune_table,
    "occupancy": occupancy_table,
    "memory": memory_table,
    "small": small_table,
    "intensity": intensity_table,
    "mutants": mutants_table,
    "sass": sass_table,
    "counts": counts_table,
    "ncu": ncu_table,
}


def table(site: Site, page: Path, key: str) -> str:
    name, *arguments = key.split()
    if name not in TABLES:
        raise LadderError(f"unknown table '{name}'; known: {', '.join(TABLES)}")
    expected = TABLES[name].__code__.co_argcount - 2
    if len(arguments) != expected:
        raise LadderError(f"table:{key}: {expected} arguments expected, got {len(arguments)}")
    return TABLES[name](site, page, *arguments)


# --- files ----------------------------------------------------------------------------------------


def fill_page(site: Site, page: Path, text: str) -> str:
    """The page with all markers filled; one that cannot be filled stays, and is an error."""
    name = page.relative_to(site.root)
    closed = len(TABLE.findall(text)) + len(NUMBER.findall(text))
    if closed != len(OPENING.findall(text)):
        site.errors.append(f"{name}: a table: or n: marker has no end, or stands inside another")
        return text

    def filler(generate: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
        def fill(match: re.Match[str]) -> str:
            try:
                return match[1] + generate(match[2]) + match[4]
            except LadderError as error:
                site.errors.append(f"{name}: {error}")
                return match[0]

        return fill

    text = TABLE.sub(filler(lambda key: table(site, page, key)), text)
    return NUMBER.sub(filler(lambda key: number(site, key)), text)


def fill_navigation(site: Site, text: str) -> str:
    """mkdocs.yml with one line a chapter."""

    def lines(match: re.Match[str]) -> str:
        entries = (
            f'{match[1]}- "{rung.title}": {rung.chapter.removeprefix("docs/")}\n'
            for rung in site.catalogue.rungs
        )
        return match[1] + match[2] + "".join(entries) + match[4]

    filled, count = NAVIGATION.subn(lines, text)
    if count != 1:
        raise LadderError("mkdocs.yml: '# chapters: begin' and '# chapters: end' are missing")
    return filled


def filled_files(site: Site) -> dict[Path, tuple[str, str]]:
    """File -> (what it holds, what it should hold)."""
    files = {}
    for page in site.pages():
        text = page.read_text(encoding="utf-8")
        files[page] = (text, fill_page(site, page, text))
    config = site.root / "mkdocs.yml"
    if config.is_file():
        text = config.read_text(encoding="utf-8")
        files[config] = (text, fill_navigation(site, text))
    return files


def missing_chapters(site: Site) -> list[str]:
    return [
        f"{rung.name} has no chapter: {rung.chapter} does not exist"
        for rung in site.catalogue.rungs
        if not (site.root / rung.chapter).is_file()
    ]


# --- charts ---------------------------------------------------------------------------------------


def chart_problem(site: Site, chart: Path) -> str:
    """Why a committed chart is out of date; empty when it is not."""
    name = chart.relative_to(site.root)
    described = PROVENANCE.search(chart.read_text(encoding="utf-8"))
    if not described:
        return ""  # a drawing, not a chart
    try:
        made_from = json.loads(unescape(described[1]))
        source = site.root / made_from["results"]
        results = Results.load(source)
    except (ValueError, KeyError, TypeError, LadderError) as error:
        return f"{name}: what it was drawn from cannot be read ({error})"
    if made_from.get("results_sha256") != results.sha256:
        return f"{name} was drawn from another version of {made_from['results']}"
    if made_from.get("catalogue_sha256") != site.catalogue.sha256:
        return f"{name} was drawn from another catalogue"
    return ""


def chart_problems(site: Site) -> list[str]:
    assets = site.root / "docs" / "assets"
    charts = sorted(assets.glob("*.svg"))
    problems = [problem for chart in charts if (problem := chart_problem(site, chart))]
    if not charts and site.results_path(MAIN_RESULTS).is_file():
        problems.append(f"plots/results/{MAIN_RESULTS}.json has no charts in docs/assets")
    return problems


def render_charts(site: Site, catalogue: Path | None) -> None:
    for name in (MAIN_RESULTS, SINGLE_RESULTS, SPREAD_RESULTS, COUNTS):
        results = site.results_path(name)
        if not results.is_file():
            continue
        command = [sys.executable, REPOSITORY / "plots" / "render.py", "--results", results]
        command += ["--out", site.root / "docs" / "assets"]
        command += ["--catalogue", catalogue] if catalogue else []
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode != 0:
            raise LadderError("the charts could not be drawn; the messages above say why")


# --- commands -------------------------------------------------------------------------------------


def check(site: Site) -> int:
    problems = missing_chapters(site) + chart_problems(site)
    drift = False
    for path, (old, new) in filled_files(site).items():
        name = str(path.relative_to(site.root))
        diff = difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), name, f"{name} (generated)", n=1
        )
        for line in diff:
            drift = True
            print(line.rstrip("\n"))
    for problem in problems:
        print(f"docs.py: {problem}", file=sys.stderr)
    if drift or problems:
        print("docs.py: out of date; run scripts/docs.py --write", file=sys.stderr)
    return 1 if drift or problems else 0


def write(site: Site, catalogue: Path | None) -> int:
    for path, (old, new) in filled_files(site).items():
        if old != new:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(site.root))
    render_charts(site, catalogue)
    for problem in missing_chapters(site):
        print(f"docs.py: {problem}", file=sys.stderr)
    return 0


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="bring everything up to date")
    action.add_argument("--check", action="store_true", help="exit 1 when something is not")
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        site = Site(REPOSITORY, Catalogue.load(arguments.catalogue))
        code = check(site) if arguments.check else write(site, arguments.catalogue)
    except (LadderError, OSError) as error:
        print(f"docs.py: error: {error}", file=sys.stderr)
        return 2
    for line in dict.fromkeys(site.errors):
        print(f"docs.py: error: {line}", file=sys.stderr)
    return 2 if site.errors else code


if __name__ == "__main__":
    sys.exit(main())
