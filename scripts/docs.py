#!/usr/bin/env python3
"""Keeps the documentation equal to the committed measurements and to the catalogue.

  scripts/docs.py --write     fills tables, numbers, navigation; renders the charts
  scripts/docs.py --check     prints a diff of what is out of date and exits 1

Markers, in README.md and docs/**/*.md (FILE is a result file below plots/results without .json;
PROBLEM is a sequence length at B=16 H=16 D=128, or BATCH,HEADS,SEQ,DIM[,causal][,float32]):

  <!-- table:chapters -->                the ladder: rung, idea, parent; links to the chapters
  <!-- table:ladder FILE PROBLEM -->     TFLOPS, share of FA2, change against parent; peers below
  <!-- table:rung FILE ID -->            one rung on every problem of the file, beside its parent
  <!-- table:resources FILE PROBLEM -->  registers, shared memory, spills, blocks per SM
  <!-- table:sass ENTRY,ENTRY... -->     machine instructions in the main loops (scripts/sass.py)
  <!-- table:counts ID DIM -->           the virtual machine's counts per mma, beside the parent's
  <!-- table:ncu -->                     these counts against an H200's hardware counters
  <!-- table:mutants -->                 wrong outputs that the check rejects (fa check --mutants)
      ... generated ... <!-- /table -->

  <!-- n:FILE ID PROBLEM FIELD -->value<!-- /n -->             one number
  <!-- n:FILE ID PROBLEM FIELD / ID -->0.92<!-- /n -->         ratio to another row
  <!-- n:FILE ID PROBLEM FIELD % ID -->+4.1 %<!-- /n -->       change against another row
  <!-- n:sass ENTRY KIND -->256<!-- /n -->                      instructions of a kind in the main loop
  <!-- n:counts ID DIM KEY [REF] -->1 024<!-- /n -->    a count of the machine; REF: mma (for each),
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

import ladder  # noqa: E402
from ladder import Catalogue, LadderError, Problem, Results, Row, Rung  # noqa: E402

TABLE = re.compile(r"(<!-- table:([^>]*?) -->\n)(.*?)(<!-- /table -->)", re.S)
NUMBER = re.compile(r"(<!-- n:([^>]*?) -->)(.*?)(<!-- /n -->)", re.S)
OPENING = re.compile(r"<!-- (?:table|n):[^>]*-->")
NAVIGATION = re.compile(r"( *)(# chapters: begin[^\n]*\n)(.*?)( *# chapters: end)", re.S)
PROVENANCE = re.compile(r"<dc:description>(.*?)</dc:description>", re.S)
MAIN_RESULTS = "h200/ladder"  # docs/assets: charts of this file and of COUNTS
NOTHING = "\N{EN DASH}"
COUNTS = "vm/counts"  # fa explain all --seq 1024 --dim 128,64 --ablations --json
COUNTS_AT = "1,2,1024,{}"
NCU = "h200/ncu"


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


# Name -> (where the number is, how it is written)
FIELDS: dict[str, tuple[Callable[[Row], float | None], Callable[[float], str]]] = {
    "tflops": (number_in("tflops"), digits),
    "tflops_back_to_back": (number_in("tflops_back_to_back"), digits),
    "gbs": (number_in("gbs"), digits),
    "ms": (number_in("time_ms", "median"), digits),
    "ms_p10": (number_in("time_ms", "p10"), digits),
    "ms_p90": (number_in("time_ms", "p90"), digits),
    "ms_back_to_back": (number_in("time_ms", "back_to_back"), digits),
    "clock_mhz": (number_in("clock_mhz"), "{:.0f}".format),
    "power_w": (number_in("power_w"), "{:.0f}".format),
    "registers": (number_in("resources", "registers"), "{:.0f}".format),
    "shared_bytes": (number_in("resources", "shared_bytes"), "{:.0f}".format),
    "spill_bytes": (number_in("resources", "spill_bytes"), "{:.0f}".format),
    "blocks_per_sm": (number_in("resources", "blocks_per_sm"), "{:.0f}".format),
    "max_error": (number_in("check", "max_error"), "{:.2g}".format),
    "tolerance": (number_in("check", "tolerance"), "{:.2g}".format),
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
        row = results.peer(id, problem) or peer_matmul(results, id, problem)
    if row is None:
        raise LadderError(f"{results.name} has no time of '{who}' at {problem.label}")
    return row


def peer_matmul(results: Results, id: str, problem: Problem) -> Row | None:
    row = results.matmul(problem)
    return row if row and row.id == id else None


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
    if len(words) not in (4, 6) or (len(words) == 6 and words[4] not in "/%"):
        raise LadderError(f"n:{key}: expected FILE ID PROBLEM FIELD, or these and '/ ID' or '% ID'")
    results = site.results(words[0])
    problem = parse_problem(words[2])
    value = read_field(find_row(site, results, words[1], problem), words[3])
    if len(words) == 4:
        return FIELDS[words[3]][1](value)
    other = read_field(find_row(site, results, words[5], problem), words[3])
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


def counts_of(site: Site, who: str, dim: str) -> dict[str, int]:
    """Counts of a rung, or of ID@TILE."""
    results, (id, _, tile) = site.results(COUNTS), who.partition("@")
    row = results.counted(id, Problem.parse(COUNTS_AT.format(dim)), tile)
    if row is None:
        raise LadderError(f"{results.name} has no counts of '{who}' at head_dim {dim}")
    return dict(row.data["counts"])


def count_number(site: Site, who: str, dim: str, key: str, reference: str = "") -> str:
    counts = counts_of(site, who, dim)
    if key not in counts:
        raise LadderError(f"n:counts: '{who}' has no {key}; it has {', '.join(counts)}")
    if not reference:
        return grouped(counts[key])
    if reference == "mma":
        return digits(counts[key] / counts["tensor"])
    other = counts_of(site, reference, dim).get(key, 0)
    if other == 0:
        raise LadderError(f"n:counts: {key} of '{reference}' is 0")
    return f"{counts[key] / other:.2f}"


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
    rungs = [
        ladder_row(site, page, results, problem, rung)
        for rung in site.catalogue.rungs
        if rung.data.get("dtype", problem.dtype) == problem.dtype
    ]
    others = [[peer_name(row), "", rate(row), share(row, fa2), "", ""] for row in peers if row]
    table = markdown_table(heads, rungs + others, left=2)
    return table + source_line(results, problem)


def rung_table(site: Site, page: Path, name: str, id: str) -> str:
    results, rung = site.results(name), site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:rung: the catalogue has no rung '{id}'")
    rows = []
    for problem in sorted({row.problem for row in results.timed() if row.id == id}):
        row, step = results.rung(id, problem), None
        step = ladder.step_of(rung, site.catalogue, results, problem)
        fa2, cudnn = results.peer("fa2", problem), results.peer("cudnn", problem)
        rows.append(
            [
                f"{problem.head_dim}{' causal' if problem.causal else ''}",
                str(problem.seq_q),
                rate(row),
                rate(step.parent_row) if step else NOTHING,
                rate(step.parent_at_tile) if step else NOTHING,
                rate(fa2),
                rate(cudnn),
                share(row, fa2),
            ]
        )
    parent = rung.parent or "parent"
    heads = ["D", "N", f"{id}", parent, f"{parent} at this tile", "FA2", "cuDNN", "of FA2"]
    return markdown_table(heads, rows, left=1) + source_line(results, None)


def resources_table(site: Site, page: Path, name: str, problem_text: str) -> str:
    results, problem = site.results(name), parse_problem(problem_text)
    fields = ("registers", "shared_bytes", "spill_bytes", "blocks_per_sm")
    rows = []
    for rung in site.catalogue.rungs:
        row = results.rung(rung.id, problem)
        if row:
            values = [FIELDS[name][0](row) for name in fields]
            cells = [NOTHING if value is None else f"{value:.0f}" for value in values]
            rows.append([rung_link(site, rung, page), row.variant, *cells])
    heads = ["rung", "tile", "registers", "shared bytes", "spilled bytes", "blocks per SM"]
    return markdown_table(heads, rows, left=2) + source_line(results, problem)


def mutants_table(site: Site, page: Path) -> str:
    """Made on the CPU by the program itself."""
    return ladder.run_fa("check", "--mutants")


SASS_KINDS = ("HMMA", "LDSM", "LDGSTS", "MUFU", "FFMA", "FMUL", "FADD", "FMNMX", "F2FP")


def sass_table(site: Site, page: Path, entries: str) -> str:
    rows = []
    for entry in entries.split(","):
        counts = [instructions(site, entry, kind) for kind in SASS_KINDS]
        total = instructions(site, entry, "total")
        rows.append([f"`{entry}`", *map(str, counts), str(total - sum(counts)), str(total)])
    return markdown_table(["main loop of", *SASS_KINDS, "other", "all"], rows)


# Heading -> keys whose sum it is.
COUNT_ROWS = {
    "`ldmatrix`": ("ldmatrix",),
    "wavefronts of `ldmatrix`": ("ldmatrix_wavefronts",),
    "of these, bank conflicts": ("ldmatrix_wavefronts", "-ldmatrix_ideal"),
    "wavefronts of `ld.shared` and `st.shared`": (
        "shared_load_wavefronts",
        "shared_store_wavefronts",
    ),
    "`cp.async`": ("cp_async",),
    "global sectors": ("global_load_sectors", "global_copy_sectors", "global_store_sectors"),
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


def counts_table(site: Site, page: Path, id: str, dim: str) -> str:
    results, rung = site.results(COUNTS), site.catalogue.find(id)
    if rung is None:
        raise LadderError(f"table:counts: the catalogue has no rung '{id}'")
    problem = Problem.parse(COUNTS_AT.format(dim))
    columns = {id: counts_of(site, id, dim)}
    parent = results.counted(rung.parent, problem) if rung.parent else None
    own = results.counted(id, problem)
    if parent and own:
        at_tile = results.counted(rung.parent, problem, own.variant)
        if at_tile and at_tile.variant != parent.variant:
            columns = {f"{rung.parent} at this tile": dict(at_tile.data["counts"]), **columns}
        columns = {rung.parent: dict(parent.data["counts"]), **columns}
    rows = []
    for heading, keys in COUNT_ROWS.items():
        sums = [count_sum(counts, keys) for counts in columns.values()]
        if any(sums):
            ratios = (value / c["tensor"] for value, c in zip(sums, columns.values(), strict=True))
            rows.append([heading, *(f"{ratio:.3f}" for ratio in ratios)])
    table = markdown_table(["for each `mma`", *columns], rows)
    return f"{table}\nPTX virtual machine, {problem.label}; `{results.name}`.\n"


# Heading -> (counters of ncu, counts of the machine), each summed.
NCU_COLUMNS = {
    "tensor": (("tensor",), ("tensor",)),
    "ldmatrix": (("ldmatrix",), ("ldmatrix",)),
    "cp.async": (("cp_async",), ("cp_async",)),
    "load sectors": (("global_load_sectors",), ("global_copy_sectors", "global_load_sectors")),
    "store sectors": (("global_store_sectors",), ("global_store_sectors",)),
    "shared wavefronts": (
        ("shared_load_wavefronts", "shared_store_wavefronts"),
        (
            "ldmatrix_wavefronts",
            "stmatrix_wavefronts",
            "shared_load_wavefronts",
            "shared_store_wavefronts",
        ),
    ),
}


def ncu_table(site: Site, page: Path) -> str:
    """Machine / hardware, from counts at one problem scaled to the other: whole blocks repeat."""
    try:
        profile = json.loads(site.results_path(NCU).read_text(encoding="utf-8"))
        counted = Problem.parse(COUNTS_AT.format(profile["problem"]["head_dim"]))
        there = Problem.from_json(profile["problem"])
        device, rows = profile["device"]["name"], profile["rows"]
    except (OSError, ValueError, KeyError) as error:
        raise LadderError(f"{NCU}.json cannot be read ({error})") from None
    if (there.seq_q, there.seq_kv) != (counted.seq_q, counted.seq_kv):
        raise LadderError(f"{NCU}.json: counts scale with batch and heads only")
    scale = there.batch * there.heads // (counted.batch * counted.heads)
    lines = []
    for row in rows:
        counts = counts_of(site, f"{row['id']}@{row['variant']}", str(there.head_dim))
        cells = []
        for counters, keys in NCU_COLUMNS.values():
            measured = sum(row["counters"][name] for name in counters)
            factor = scale * count_sum(counts, keys) / measured
            sign = "\N{MINUS SIGN}" if factor < 1 else "+"
            cells.append("equal" if factor == 1 else f"{sign}{abs(100 * (factor - 1)):.2f} %")
        lines.append([f"`{row['entry']}`", *cells])
    table = markdown_table(["machine against hardware", *NCU_COLUMNS], lines)
    return f"{table}\n{device}, {there.label}; counts scaled from {counted.label}.\n"


TABLES: dict[str, Callable[..., str]] = {
    "chapters": chapters_table,
    "ladder": ladder_table,
    "rung": rung_table,
    "resources": resources_table,
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
    for name in (MAIN_RESULTS, COUNTS):
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
