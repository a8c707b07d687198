# SPDX-License-Identifier: MIT
"""What is documented, and how rows and numbers of it are found and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import intensity
import ladder
import limits
import status
from ladder import Catalogue, LadderError, Problem, Results, Row, Rung

REPOSITORY = Path(__file__).resolve().parent.parent.parent

MAIN_RESULTS = "h200/ladder"  # docs/assets: charts of this file and of COUNTS
NOTHING = "\N{EN DASH}"
SINGLE_RESULTS = "h200/fp32"  # charts too
SPREAD_RESULTS = "h200/spread"  # and these
DECODE_RESULTS = "h200/decode"  # of the family `decode`
BACKWARD_RESULTS = "h200/backward"  # of the family `backward`
MODEL_RESULTS = "h200/model"  # bfloat16, views, windows, sinks
RESULTS_OF = {"float16": MAIN_RESULTS, "float32": SINGLE_RESULTS, "bfloat16": MODEL_RESULTS}
COUNTS = "vm/counts"  # fa explain fp32 ampere hopper --seq 1024 --dim 128,64 --ablations --json
BLACKWELL_COUNTS = "vm/counts_blackwell"  # the same of the family `blackwell`
COUNTS_AT = "1,2,1024,{}"


def results_of(rung: Rung) -> str:
    """The file that has the rung's main problems."""
    if rung.family == ladder.DECODE:
        return DECODE_RESULTS
    if rung.family == ladder.BACKWARD:
        return BACKWARD_RESULTS
    return RESULTS_OF[rung.dtype]


def results_for(problem: Problem) -> str:
    """The file that has the problem, where a key names none."""
    if problem.backward:
        return BACKWARD_RESULTS
    if problem.seq_q <= ladder.FEW_QUERIES:
        return DECODE_RESULTS
    return MODEL_RESULTS if problem.of_a_model else RESULTS_OF[problem.dtype]


class NotMeasured(Exception):
    """Of a rung that is newer than a result file, limits of a card without any, or another
    implementation that a file has no row of; the pages say so."""

    def __init__(self, text: str = "not measured yet") -> None:
        super().__init__(text)


class Unsaid(Exception):
    """A ratio whose key says `flat` where its interval excludes 1, or does not where it contains 1."""

    def __init__(self, value: str, message: str) -> None:
        super().__init__(message)
        self.value = value


@dataclass
class Site:
    """What is documented. Result files are read once."""

    root: Path
    catalogue: Catalogue
    errors: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)  # ratios whose key is wrong about `flat`
    loaded: dict[Path, Results] = field(default_factory=dict)

    def results_path(self, name: str) -> Path:
        """The folder of runs of this name, or the file."""
        return ladder.located(self.root / "plots" / "results" / f"{name}.json")

    def results(self, name: str) -> Results:
        return self.load(self.results_path(name))

    def load(self, path: Path) -> Results:
        if path not in self.loaded:
            self.loaded[path] = Results.load(path)
        return self.loaded[path]

    @cached_property
    def statuses(self) -> dict[str, status.Status]:
        """Of every rung, by the committed results of its dtype."""
        found: dict[str, status.Status] = {}
        for rung in self.catalogue.rungs:
            name = results_of(rung)
            if self.results_path(name).exists():
                found[rung.id] = status.status_of(rung, self.results(name), self.catalogue)
            else:
                found[rung.id] = status.Status(status.UNKNOWN, status.is_branch(rung, self.catalogue))
        return found

    def pages(self) -> list[Path]:
        readme = self.root / "README.md"
        return [readme] * readme.is_file() + sorted((self.root / "docs").rglob("*.md"))


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
    "tflops": (lambda row: row.tflops if row.is_timed else None, digits),
    "tflops_spaced": (number_in("tflops"), digits),
    "tflops_back_to_back": (number_in("tflops_back_to_back"), digits),
    "gbs": (lambda row: row.gbs, digits),
    "ms": (lambda row: row.ms if row.is_timed else None, digits),
    "us": (lambda row: 1e3 * row.ms if row.is_timed else None, digits),
    "us_spaced": (lambda row: scaled(number_in("time_ms", "median")(row), 1e3), digits),
    "us_back_to_back": (lambda row: scaled(number_in("time_ms", "back_to_back")(row), 1e3), digits),
    "clock_mhz": (number_in("clock_mhz"), "{:.0f}".format),
    "registers": (number_in("resources", "registers"), "{:.0f}".format),
    "spill_bytes": (number_in("resources", "spill_bytes"), "{:.0f}".format),
    "blocks_per_sm": (number_in("resources", "blocks_per_sm"), "{:.0f}".format),
    "peak_gb": (lambda row: scaled(number_in("peak_bytes")(row), 1e-9), digits),
    "ms_launch_1": (launch_ms(0), digits),
    "ms_launch_2": (launch_ms(1), digits),
    "intensity": (intensity.uncached, digits),
    "gbs_uncached": (lambda row: 1e3 * row.tflops / intensity.uncached(row), digits),
}


LIMIT_FIELDS: dict[str, Callable[[float], str]] = {
    "rate": digits,
    "rate_back_to_back": digits,
    "per_clock_sm": digits,
    "clock_mhz": "{:.0f}".format,
    "power_w": "{:.0f}".format,
}


def limits_of(site: Site, card: str) -> limits.Limits:
    path = ladder.located(site.root / "plots" / "results" / card / limits.FILE)
    if not path.exists():
        raise NotMeasured
    return limits.Limits.load(path)


ANY_LENGTHS = (0,)  # of a key: those that the file has


def parse_problem(text: str) -> Problem:
    """ "8192" is short for 16,16,8192,128, and "8192,causal" for that with a mask. With ",lengths" at
    the end: keys of each batch entry, as the result file has them."""
    if text.endswith(",lengths"):
        return replace(parse_problem(text.removesuffix(",lengths")), lengths=ANY_LENGTHS)
    seq, *flags = text.split(",")
    if not seq.isdigit() or (flags and flags[0][:1].isdigit()):
        return Problem.parse(text)
    return Problem.parse(",".join([ladder.MAIN_PROBLEM, *flags])).with_seq(int(seq))


def with_lengths(results: Results, problem: Problem) -> Problem:
    """The problem of the file that differs from this one in the lengths alone."""
    found = {row.problem for row in results.timed() if row.problem.lengths}
    same = [each for each in found if replace(each, lengths=ANY_LENGTHS, query_lengths=()) == problem]
    if len(same) != 1:
        raise LadderError(f"{results.name} has {len(same)} kinds of lengths at {problem.label}")
    return same[0]


def find_row(site: Site, results: Results, who: str, problem: Problem) -> Row:
    id, _, tile = who.partition("@")
    if problem.lengths == ANY_LENGTHS:
        problem = with_lengths(results, problem)
    if tile:
        row = results.ablation(id, problem, tile)
    elif site.catalogue.find(id):
        row = results.rung(id, problem)
    else:
        row = results.peer(id, problem) or ceiling(results, id, problem)
    if row is None:
        if rung_is_missing(site, results, id):
            raise NotMeasured
        if id in ladder.PEER_NAMES and all(row.id != id for row in results.timed()):
            raise NotMeasured("not measured in this run")
        raise LadderError(f"{results.name} has no time of '{who}' at {problem.label}")
    return row


def rung_is_missing(site: Site, results: Results, id: str) -> bool:
    """The ladder has this rung, and the file was measured before it: it has rungs of this dtype,
    and no row of this one."""
    rung = site.catalogue.find(id)
    dtypes = {row.problem.dtype for row in results.rows if row.kind == "rung"}
    return rung is not None and rung.dtype in dtypes and all(row.id != id for row in results.rows)


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
