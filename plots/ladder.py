# SPDX-License-Identifier: MIT
"""What the charts and the documentation read: results and the catalogue of rungs.

A run is a JSON file that `fa bench` writes (harness/results/row.h): one process on one card. A result
set is a folder of runs; a single file is read too. The catalogue is the output of `fa list --json`.
Nothing here knows a rung by name.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from interval import Interval, interval

REPOSITORY = Path(__file__).resolve().parent.parent
SCHEMA = 1


T = TypeVar("T")


class LadderError(Exception):
    """Bad input; the text is one line for the user."""

    code = 2  # of the process


class Unable(LadderError):
    """What this computer cannot do, as with fa."""

    code = 3


# --- JSON -----------------------------------------------------------------------------------------


def parse_json(text: str | bytes, source: object, what: str, take: Callable[[Any], T]) -> T:
    """take() of the document. LadderError where the text is no JSON, nested beyond reason, or not
    what take() expects: "SOURCE is not WHAT"."""
    try:
        return take(json.loads(text))
    except RecursionError as error:
        raise LadderError(f"{source} is not {what}: it is nested too deeply") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LadderError(f"{source} is not {what}: {error!r}") from error


def read_bytes(path: Path) -> bytes:
    try:
        # What is no file may be without an end, or wait for somebody who writes to it.
        if path.exists() and not path.is_file() and not path.is_dir():
            raise LadderError(f"cannot read {path}: not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise LadderError(f"cannot read {path}: {error.strerror}") from error


def read_json(path: Path, what: str, take: Callable[[Any], T]) -> T:
    """parse_json() of a file."""
    return parse_json(read_bytes(path), path, what, take)


# --- runs -----------------------------------------------------------------------------------------

# What the headers of all runs of a set agree on.
SAME = (("generator", "git_sha"), ("generator", "nvcc"), ("device", "name"), ("policy", "l2"))


def located(path: Path) -> Path:
    """The folder of runs NAME in the place of NAME.json, where there is one."""
    folder = path.with_suffix("")
    if path.suffix != ".json" or not folder.is_dir():
        return path
    if path.exists():
        raise LadderError(f"{path} stands beside the folder of runs {folder.name}: remove one of them")
    return folder


def run_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise LadderError(f"cannot read {folder}: a folder without runs")
    return files


def load_runs(folder: Path, load: Callable[[Path], T]) -> tuple[T, ...]:
    """load() of each file, which has a `document`. LadderError where their headers differ."""
    runs: dict[Path, Any] = {path: load(path) for path in run_files(folder)}
    first = next(iter(runs))
    for path, run in runs.items():
        for part, name in SAME:
            own, other = (each.document.get(part, {}).get(name) for each in (run, runs[first]))
            if own != other:
                differs = f"{first.name} has {other}, {path.name} has {own}"
                raise LadderError(f"{folder}: runs of different {part}.{name}: {differs}")
    return tuple(runs.values())


def card_of(run: Any) -> str:
    """By the header, where it says; else by the name of the file: card1_run3.json. Files without a card
    in their names, run3.json, are of one."""
    card, separator, _ = run.path.stem.partition("_")
    return str(run.document["device"].get("uuid") or (card if separator else ""))


def runs_text(runs: Sequence[Any]) -> str:
    """ "10 runs on 2 cards", or "up to 10" where some do not have all rows; empty for a single file."""
    cards = {card_of(run) for run in runs}
    numbers = ((len(runs), "run"), (len(cards), "card"))
    text = " on ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in numbers if count)
    some_lack_rows = len({frozenset(getattr(run, "by_key", ())) for run in runs}) > 1
    return f"up to {text}" if some_lack_rows else text


def sha256_of(path: Path) -> str:
    """Of a file, or of all runs of a folder and their names."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    text = "".join(f"{each.name} {sha256_of(each)}\n" for each in run_files(path))
    return hashlib.sha256(text.encode()).hexdigest()


def mean(values: Sequence[Any]) -> Any:
    """Of numbers, of the numbers of objects and of those of lists, each; all else is as in the first."""
    first = values[0]
    if all(each == first for each in values):
        return first
    if all(isinstance(each, dict) for each in values):
        return {name: mean([each.get(name) for each in values]) for name in first}
    if all(isinstance(each, list) and len(each) == len(first) for each in values):
        return [mean(each) for each in zip(*values)]
    if all(type(each) in (int, float) for each in values):
        return statistics.fmean(values)
    return None if None in values else first


# --- problems -------------------------------------------------------------------------------------


E4M3 = "float8_e4m3"
DTYPES = ("float16", "bfloat16", "float32")
BNHD = "bnhd"  # views of tensors [batch, rows, heads, head_dim], as models have them


@dataclass(frozen=True, order=True)
class Problem:
    batch: int
    heads: int
    seq_q: int
    seq_kv: int
    head_dim: int
    causal: bool
    dtype: str
    inputs: str = "normal"  # distribution of Q, K and V
    spread: float = 1.0  # factor on Q
    lse: bool = False  # the log-sum-exp of every row too
    kv_heads: int = 0  # of K and V, which query heads share; 0: as many as heads
    lengths: tuple[int, ...] = ()  # keys of each batch entry; empty: seq_kv
    page: int = 0  # keys of a page of K and V; 0: not paged
    cache: str = ""  # type of K and V, where it is not that of Q
    window_left: int = -1  # keys before its own place that a query sees; -1: all
    window_right: int = -1  # keys behind it
    sinks: bool = False  # a score of each query head that has no value
    query_lengths: tuple[int, ...] = ()  # queries of each entry of a packed batch; empty: not packed
    layout: str = ""  # BNHD, or the strides of another one; empty: contiguous [B, H, N, D]
    backward: bool = False  # the gradients of Q, K and V

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Problem:
        required = [name for name, field in PROBLEM_FIELDS.items() if field.default is MISSING]
        optional = [name for name in PROBLEM_FIELDS if name in data]
        values = {name: data[name] for name in dict.fromkeys(required + optional)}
        for name, value in values.items():
            if name not in LENGTHS and type(value) not in TYPES[str(PROBLEM_FIELDS[name].type)]:
                raise TypeError(f"{name} is {value!r}")
        problem = Problem(**values | {name: tuple(data.get(name, ())) for name in LENGTHS})
        strides = tuple(data.get("strides", ()))
        layout = BNHD if strides == problem.row_major_strides else ",".join(map(str, strides))
        return replace(problem, layout=layout)

    @staticmethod
    def parse(text: str) -> Problem:
        """ "16,16,8192,128", optionally followed by ",causal", ",bfloat16", ",float32", ",e4m3",
        ",sinks", ",bnhd", ",backward", a distribution of the inputs such as ",rising", ",spread=8", ",page=16" and
        ",window=1023" or ",window=63/70", keys before and behind. "16,32/8,1/8192,128": heads of Q and
        of K and V, queries and keys."""
        words = text.split(",")
        flags = [word for word in words[4:] if "=" not in word]
        spreads, pages, windows = (
            [word.removeprefix(name) for word in words[4:] if word.startswith(name)]
            for name in ("spread=", "page=", "window=")
        )
        inputs = [flag for flag in flags if flag in DISTRIBUTIONS]
        unknown = set(flags) - {"causal", "e4m3", "sinks", "backward", BNHD, *DTYPES, *DISTRIBUTIONS}
        known = len(words[:4]) + len(flags) + len(spreads[:1]) + len(pages[:1]) + len(windows[:1])
        if len(words) < 4 or unknown or len(inputs) > 1 or known != len(words):
            allowed = f"[,{'|'.join(DISTRIBUTIONS)}][,spread=S][,page=P][,window=LEFT[/RIGHT]]"
            flag = f"[,causal][,{'|'.join(DTYPES)}][,e4m3][,sinks][,{BNHD}][,backward]"
            raise LadderError(f"problem '{text}': expected BATCH,HEADS,SEQ,DIM{flag}{allowed}")
        try:
            batch, dim = int(words[0]), int(words[3])
            heads, kv_heads = numbers_of(words[1])
            seq_q, seq_kv = numbers_of(words[2])
            spread = float(spreads[0]) if spreads else 1.0
            page = int(pages[0]) if pages else 0
            left, _, right = windows[0].partition("/") if windows else ("-1", "", "")
            window = {"window_left": int(left), "window_right": int(right or -1)}
        except ValueError:
            numbers = "the first four, the page and the window must be integers, the spread a number"
            raise LadderError(f"problem '{text}': {numbers}") from None
        dtype = next((flag for flag in flags if flag in DTYPES), "float16")
        shape = (batch, heads, seq_q, seq_kv, dim, "causal" in flags, dtype)
        own_heads = 0 if kv_heads == heads else kv_heads
        cache = E4M3 if "e4m3" in flags else ""
        kind = (*(inputs or ["normal"]), spread)
        problem = Problem(*shape, *kind, kv_heads=own_heads, page=page, cache=cache, **window)
        layout = BNHD if BNHD in flags else ""
        backward = "backward" in flags
        return replace(problem, sinks="sinks" in flags, layout=layout, backward=backward)

    @property
    def label(self) -> str:
        seq = f"{self.seq_q}" if self.seq_q == self.seq_kv else f"{self.seq_q}/{self.seq_kv}"
        causal = "causal" if self.causal else "non-causal"
        heads = f"{self.heads}/{self.kv_heads}" if self.kv_heads else f"{self.heads}"
        shape = f"B={self.batch} H={heads} N={seq} D={self.head_dim}, {self.dtype}, {causal}"
        cache = [f"lengths {min(self.lengths)} to {max(self.lengths)}"] if self.lengths else []
        cache += ["packed"] * bool(self.query_lengths)
        cache += [f"pages of {self.page}"] if self.page else []
        cache += [f"K and V {self.cache}"] if self.cache else []
        sides = ((self.window_left, "before"), (self.window_right, "behind"))
        window = " and ".join(f"{keys} {side}" for keys, side in sides if keys >= 0)
        cache += [f"a window of {window}"] if window else []
        cache += ["sinks"] * self.sinks
        cache += ["backward"] * self.backward
        cache += [{"": "", BNHD: "[B, N, H, D]"}.get(self.layout, "strided")]
        spread = "" if self.spread == 1 else f"spread {self.spread:g}"
        inputs = "" if self.inputs == "normal" else self.inputs
        lse = "with LSE" if self.lse else ""
        return ", ".join(filter(None, (shape, *cache, inputs, spread, lse)))

    @property
    def kv_bytes(self) -> int:
        """Of the keys and values that there are, once for each head of K and V."""
        keys = sum(self.lengths) if self.lengths else self.batch * self.seq_kv
        element = 1 if self.cache == E4M3 else 4 if self.dtype == "float32" else 2
        return 2 * element * self.head_dim * (self.kv_heads or self.heads) * keys

    @property
    def row_major_strides(self) -> tuple[int, ...]:
        """Of batch, head and row in Q, K, V and O, where a row has those of all heads."""
        kv = (self.seq_kv, self.kv_heads or self.heads)
        rows = self.seq_q
        if self.query_lengths:
            rows, kv = sum(self.query_lengths), (sum(self.lengths), kv[1])
        tensors = ((rows, self.heads), kv, kv, (rows, self.heads))
        dim = self.head_dim
        each = ((rows * heads * dim, dim, heads * dim) for rows, heads in tensors)
        return tuple(stride for strides in each for stride in strides)

    @property
    def of_a_model(self) -> bool:
        """What the rungs from 36 on are measured for: not float16 alone, not all keys, not contiguous."""
        windowed = self.window_left >= 0 or self.window_right >= 0
        views = bool(self.layout or self.query_lengths)
        return self.dtype == "bfloat16" or windowed or self.sinks or views

    def with_seq(self, seq: int) -> Problem:
        return replace(self, seq_q=seq, seq_kv=seq)

    @property
    def plain(self) -> Problem:
        """The same shape with the inputs of every other file."""
        return replace(self, inputs="normal", spread=1.0)


def numbers_of(text: str) -> tuple[int, int]:
    """ "32/8" -> (32, 8), "16" -> (16, 16)."""
    first, _, second = text.partition("/")
    return int(first), int(second or first)


PROBLEM_FIELDS = Problem.__dataclass_fields__
LENGTHS = ("lengths", "query_lengths")
# What JSON may hold for a field of this type.
TYPES = {"int": (int,), "bool": (bool,), "str": (str,), "float": (int, float)}
DISTRIBUTIONS = ("uniform", "large", "needle", "rising", "spike", "low", "high")  # besides normal
MAIN_PROBLEM = "16,16,8192,128"
SINGLE = "1,16,8192,64,float32"
SHARED_PROBLEM = "1,64/8,8192,128,causal"  # and gradients by this, too
MAIN_PROBLEMS = {"float16": MAIN_PROBLEM, "float32": SINGLE}  # what a rung is judged by
FEW_QUERIES = 16  # new ones, against a cache
BACKWARD = "backward"  # the family of gradients
NEVER_TIMED = "sm_100a"  # the target that no card of ours runs
DECODE = "decode"  # the family of new queries against a cache, judged by these
DECODE_PROBLEMS = ("16,32/8,1/8192,128", "1,32/8,1/8192,128")
DECODE_LENGTHS = "64,32/8,1/32768,128"  # and this with random lengths

# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of a result file; the fields that are read often, the rest in `data`."""

    kind: str
    id: str
    variant: str
    ablation: bool
    problem: Problem
    status: str
    data: Mapping[str, Any]
    # Its time is that of launches without gaps: they took copies of K and V in turn, so that no cache
    # was found in the L2. Earlier files did not, and their time is that of spaced launches.
    steady: bool = False

    @staticmethod
    def from_json(data: Mapping[str, Any], steady: bool = False) -> Row:
        if data["status"] == "ok" and data.get("tflops") is not None:
            numbers = [
                data["tflops"],
                *(data["time_ms"][name] for name in ("median", "p10", "p90")),
            ]
            if not all(math.isfinite(each) for each in numbers):
                raise ValueError(f"the times of {data['id']} are not finite")
        return Row(
            kind=data["kind"],
            id=data["id"],
            variant=data.get("variant", ""),
            ablation=bool(data.get("ablation", False)),
            problem=Problem.from_json(data["problem"]),
            status=data["status"],
            data=data,
            steady=steady and is_cold(data.get("time_ms") or {}),
        )

    @property
    def key(self) -> tuple[object, ...]:
        """What the rows of several runs are joined by."""
        return self.kind, self.id, self.variant, self.ablation, self.problem

    @property
    def gbs_back_to_back(self) -> float | None:
        """The bytes of `gbs` over the time without gaps."""
        time, gbs = self.data.get("time_ms"), self.data.get("gbs")
        if not time or not gbs or not time.get("back_to_back"):
            return None
        return float(gbs) * float(time["median"]) / float(time["back_to_back"])

    @property
    def is_timed(self) -> bool:
        return self.status == "ok" and self.data.get("tflops") is not None

    @property
    def ms(self) -> float:
        return float(self.data["time_ms"]["back_to_back" if self.steady else "median"])

    @property
    def tflops(self) -> float:
        return float(self.data["tflops_back_to_back" if self.steady else "tflops"])

    @property
    def gbs(self) -> float | None:
        return self.gbs_back_to_back if self.steady else self.data.get("gbs")

    @property
    def spread(self) -> tuple[float, float]:
        """TFLOPS at the p90 and the p10 time of spaced launches: the slow and the fast end."""
        time = self.data["time_ms"]
        if self.steady:
            return self.tflops, self.tflops
        return (
            self.tflops * time["median"] / time["p90"],
            self.tflops * time["median"] / time["p10"],
        )


def is_cold(time: Mapping[str, Any]) -> bool:
    """Whether launches without gaps were timed and all copies together did not fit into the L2."""
    return bool(time.get("back_to_back")) and not time.get("hot")


TOO_FEW_RUNS = "missing"  # the status of a row that fewer than two runs of a set have


def joined(rows: Sequence[Row | None]) -> Row:
    """A row of the runs that have it: the mean of each number, of p10 and p90 too, so that they are
    those of a typical run. A row that failed in a run, or that only one of several has, is not timed."""
    known = [row for row in rows if row]
    failed = [row for row in known if row.status != "ok"]
    if failed:
        return failed[0]
    if len(known) == 1 < len(rows):
        return replace(known[0], status=TOO_FEW_RUNS)
    return replace(known[0], data=mean([row.data for row in known]))


# How a policy says that launches without gaps take copies of K and V in turn.
COPIES = "copies"

# What captions say of a result file.
SAID = (("device", "name"), ("device", "kind"), ("generator", "git_sha"))


@dataclass(frozen=True)
class Results:
    path: Path
    sha256: str
    document: Mapping[str, Any]  # of a set: that of its first run
    rows: tuple[Row, ...]
    runs: tuple[Results, ...] = ()  # of a set; empty for a single file

    @staticmethod
    def load(path: Path) -> Results:
        """A run's file, or a folder of runs; NAME.json may be the folder NAME."""
        path = located(path)
        if not path.is_dir():
            return Results.load_run(path)
        runs = load_runs(path, Results.load_run)
        keys = dict.fromkeys(row.key for run in runs for row in run.rows)
        rows = tuple(joined([run.by_key.get(key) for run in runs]) for key in keys)
        return Results(path, sha256_of(path), runs[0].document, rows, runs)

    @staticmethod
    def load_run(path: Path) -> Results:
        raw = read_bytes(path)

        def take(document: Any) -> Results:
            if document.get("schema") != SCHEMA:
                raise LadderError(f"{path}: schema {document.get('schema')}, expected {SCHEMA}")
            for part, name in SAID:
                if not isinstance(document[part][name], str):
                    raise TypeError(f"{part}.{name} is no text")
            steady = str(document["policy"].get("l2_back_to_back", "")).startswith(COPIES)
            rows = tuple(Row.from_json(row, steady) for row in document["rows"])
            return Results(path, hashlib.sha256(raw).hexdigest(), document, rows)

        return parse_json(raw, path, "a result file", take)

    @cached_property
    def by_key(self) -> dict[tuple[object, ...], Row]:
        return {row.key: row for row in reversed(self.rows)}

    @property
    def gpu(self) -> str:
        return str(self.document["device"]["name"])

    @property
    def name(self) -> str:
        """The file or folder as the repository names it, for captions."""
        path = self.path.resolve()
        return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else path.name

    @property
    def is_counted(self) -> bool:
        """Made by the virtual machine: counts, and no times."""
        return self.document["device"]["kind"] == "vm"

    def counted(self, id: str, problem: Problem, tile: str = "") -> Row | None:
        """The rung's counts at its own tile, or at another one."""
        for row in self.rows:
            wanted = row.variant == tile if tile else not row.ablation
            if (row.id, row.problem) == (id, problem) and wanted and row.data.get("counts"):
                return row
        return None

    @property
    def varies_inputs(self) -> bool:
        """Made to compare inputs: its rows do not all have the usual ones."""
        return any(row.problem != row.problem.plain for row in self.rows)

    @property
    def has_caches(self) -> bool:
        """Made of new queries against caches."""
        return any(row.problem.seq_q <= FEW_QUERIES < row.problem.seq_kv for row in self.rows)

    def timed(self) -> Iterable[Row]:
        return (row for row in self.rows if row.is_timed)

    def rung(self, id: str, problem: Problem) -> Row | None:
        """The rung at its own tile."""
        return self._find("rung", id, problem, lambda row: not row.ablation)

    def ablation(self, id: str, problem: Problem, tile: str) -> Row | None:
        """The rung at another tile."""
        return self._find("rung", id, problem, lambda row: row.ablation and row.variant == tile)

    def peer(self, id: str, problem: Problem) -> Row | None:
        return self._find("peer", id, problem, lambda row: "matmul" not in row.data)

    def matmul(self, problem: Problem | None = None) -> Row | None:
        """The ceiling, a plain matrix product: timed beside this problem, else the fastest of its
        dtype."""
        rows = [row for row in self.timed() if row.kind == "peer" and "matmul" in row.data]
        if problem:
            rows = [row for row in rows if row.problem.dtype == problem.dtype]
        beside = [row for row in rows if row.problem == problem]
        return max(beside or rows, key=lambda row: row.tflops, default=None)

    def copy(self, problem: Problem | None = None) -> Row | None:
        """The ceiling of memory traffic: timed beside this problem, else the fastest."""
        rows = [row for row in self.rows if row.status == "ok" and "copy_bytes" in row.data]
        beside = [row for row in rows if row.problem == problem]
        return max(beside or rows, key=lambda row: float(row.data["gbs"]), default=None)

    def peers(self) -> list[str]:
        """Ids of the attention peers that have a time, in file order."""
        rows = (row for row in self.timed() if row.kind == "peer" and "matmul" not in row.data)
        return list(dict.fromkeys(row.id for row in rows))

    def _find(self, kind: str, id: str, problem: Problem, accept: Any) -> Row | None:
        for row in self.timed():
            if (row.kind, row.id, row.problem) == (kind, id, problem) and accept(row):
                return row
        return None


# --- catalogue ------------------------------------------------------------------------------------

OWN = "own"  # the family of the reader's kernels


@dataclass(frozen=True)
class Rung:
    id: str
    name: str
    parent: str
    family: str
    idea: str
    file: str
    chapter: str
    data: Mapping[str, Any]

    @property
    def short_name(self) -> str:
        """ "06_batched" -> "batched"."""
        return self.name.partition("_")[2] or self.name

    @property
    def title(self) -> str:
        return f"{self.id} {self.short_name}"

    @property
    def dtype(self) -> str:
        return str(self.data["dtype"])

    def takes(self, capability: str) -> bool:
        """A capability of `fa list --json`."""
        return bool(self.data.get(capability))

    def typed(self, problem: Problem) -> Problem:
        """The problem with K and V of the type that the rung takes, and its pass."""
        cache = E4M3 if self.takes("e4m3") else ""
        return replace(problem, cache=cache, backward=self.family == BACKWARD)


@dataclass(frozen=True)
class Catalogue:
    """The ladder, without the reader's own kernels."""

    rungs: tuple[Rung, ...]

    @staticmethod
    def from_json(text: str | bytes, source: str) -> Catalogue:
        names = [name for name in Rung.__dataclass_fields__ if name != "data"]

        def take(document: Any) -> Catalogue:
            rungs = (rung for rung in document["rungs"] if rung["family"] != OWN)
            return Catalogue(
                tuple(
                    Rung(**{name: rung[name] or "" for name in names}, data=rung) for rung in rungs
                )
            )

        return parse_json(text, source, "a catalogue", take)

    @staticmethod
    def load(path: Path | None) -> Catalogue:
        """From a file, or without one from the built `fa list --json`."""
        if path is None:
            return Catalogue.from_json(run_fa("list", "--json"), "fa list --json")
        return Catalogue.from_json(read_bytes(path), str(path))

    def find(self, id: str) -> Rung | None:
        return next((rung for rung in self.rungs if rung.id == id), None)

    def of(self, results: Results) -> Catalogue:
        """The rungs that a file has rows of: a rung that is added changes no chart of the others."""
        ids = {row.id for row in results.rows if row.kind == "rung"}
        return Catalogue(tuple(rung for rung in self.rungs if rung.id in ids))

    @property
    def sha256(self) -> str:
        """Of what charts show of the list: one made from another list is out of date."""
        shown = [(rung.id, rung.name, rung.parent, rung.family, rung.idea) for rung in self.rungs]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def find_fa() -> Path:
    build = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build")
    if (build / "fa").is_file():
        return build / "fa"
    raise LadderError("fa is not built; run scripts/bench.sh, or give --catalogue FILE")


def run_fa(*arguments: str) -> str:
    """Standard output of the built fa."""
    try:
        command = [find_fa(), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LadderError(f"fa {' '.join(arguments)} failed: {error}") from error
    if done.returncode != 0:
        raise LadderError(f"fa {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


# --- comparisons that charts and tables share -----------------------------------------------------


Metric = Callable[[Row], float | None]


def rate(row: Row) -> float:
    return row.tflops


def time_of(row: Row) -> float:
    return row.ms


def level(results: Results, row: Row, metric: Metric = rate) -> Interval | None:
    """Of a row's own number, in the runs that have it."""
    runs = [run for run in results.runs if row.key in run.by_key]
    return interval([metric(run.by_key[row.key]) or 0 for run in runs], list(map(card_of, runs)))


def ratio(results: Results, row: Row, other: Row, metric: Metric = rate) -> Interval | None:
    """Of the quotients row / other, each of two rows of the same run; None where that is not known."""
    return mean_ratio(results, [(row, other)], metric)


def mean_ratio(
    results: Results, pairs: Sequence[tuple[Row, Row]], metric: Metric = rate
) -> Interval | None:
    """The same of the geometric mean of several quotients, in the runs that have all these rows."""

    def of_run(run: Results) -> float:
        numbers = [[metric(run.by_key[row.key]) or 0 for row in pair] for pair in pairs]
        if not all(map(all, numbers)):
            return 0
        return statistics.geometric_mean([first / second for first, second in numbers])

    keys = {row.key for pair in pairs for row in pair}
    runs = [run for run in results.runs if keys <= run.by_key.keys()]
    return interval(list(map(of_run, runs)), list(map(card_of, runs)))


@dataclass(frozen=True)
class Step:
    """A rung against its parent on one problem: factors of TFLOPS, 1.0 = no change."""

    rung: Rung
    row: Row
    parent: Rung
    parent_row: Row
    parent_at_tile: Row | None  # the parent at this rung's tile, where the tile changed
    change: Interval | None  # of `factor`
    idea_change: Interval | None

    @property
    def factor(self) -> float:
        return self.change.mean if self.change else self.row.tflops / self.parent_row.tflops

    @property
    def idea_factor(self) -> float:
        """The idea's own share: against the parent at the same tile."""
        if self.idea_change:
            return self.idea_change.mean
        return self.row.tflops / (self.parent_at_tile or self.parent_row).tflops


def step_of(rung: Rung, catalogue: Catalogue, results: Results, problem: Problem) -> Step | None:
    """None where there is no parent or one of the two has no time."""
    parent = catalogue.find(rung.parent)
    row = results.rung(rung.id, rung.typed(problem))
    parent_row = results.rung(parent.id, parent.typed(problem)) if parent else None
    if parent is None or row is None or parent_row is None:
        return None
    at_tile = None
    if parent_row.variant != row.variant:
        at_tile = results.ablation(parent.id, problem, row.variant)
    changes = (ratio(results, row, other) for other in (parent_row, at_tile or parent_row))
    return Step(rung, row, parent, parent_row, at_tile, *changes)


# --- counts of the virtual machine ----------------------------------------------------------------

PRODUCT = 2 * 16 * 8 * 16  # FLOP of m16n8k16, what one mma.sync does


def products(row: Row) -> float:
    """How much work a row of counts is, in m16n8k16 products; 0 without tensor cores. A wgmma does
    many of them at once, so there it is the work that the problem asks for."""
    counts, problem = row.data["counts"], row.problem
    if "wgmma" not in counts:
        return float(counts.get("tensor", 0))
    if problem.causal:
        raise LadderError(f"the products of wgmma are not known for {problem.label}")
    scores = problem.batch * problem.heads * problem.seq_q * problem.seq_kv
    return 4.0 * scores * problem.head_dim / PRODUCT


WHOLE_TILES = 64  # what divides a length that rungs with whole tiles take


def alike(row: Row, problem: Problem) -> bool:
    """The same problem at some length; the others are for the chapters of ragged lengths."""
    square = row.problem.seq_q == row.problem.seq_kv and row.problem.seq_q % WHOLE_TILES == 0
    return square and row.problem == problem.with_seq(row.problem.seq_q)


def by_length(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.problem.seq_q)


def tried_to_the_end(results: Results, problem: Problem) -> dict[tuple[str, str], list[Row]]:
    """(kind, id) -> rows by length, timed or out of memory, of the rungs and attention peers that
    were tried at the greatest length."""
    rows = [row for row in results.rows if alike(row, problem) and not row.ablation]
    rows = [row for row in rows if row.is_timed or row.status == "out_of_memory"]
    rows = [row for row in rows if "matmul" not in row.data and "copy_bytes" not in row.data]
    longest = max((row.problem.seq_q for row in rows), default=0)
    found: dict[tuple[str, str], list[Row]] = {}
    for row in by_length(rows):
        found.setdefault((row.kind, row.id), []).append(row)
    return {who: own for who, own in found.items() if own[-1].problem.seq_q == longest}


# --- words that charts and tables share ----------------------------------------------------------

PEER_NAMES = {"fa2": "FlashAttention-2", "fa3": "FlashAttention-3", "cudnn": "cuDNN"}
PEER_NAMES |= {"flashinfer": "FlashInfer"}
PEER_NAMES |= {"triton": "Triton", "cublas": "cuBLAS matmul", "copy": "copy"}
PEER_NAMES |= {"torch_standard": "PyTorch standard", "torch_efficient": "PyTorch efficient"}
SHORT_NAMES = {"fa2": "FA2", "fa3": "FA3", "cublas": "cuBLAS", "torch_efficient": "PyTorch"}


def percent(factor: float, change: Interval | None = None) -> str:
    """1.234 -> "+23 %", 7.1 -> "x 7.1": a change against a reference; with its interval, whose mean the
    factor is, "+23.4 ± 0.3 %"."""
    margin = "" if change is None or change.is_exact else f" ± {100 * change.half / factor:.1f}"
    if factor >= 3:
        return f"\N{MULTIPLICATION SIGN} {factor:.1f}{margin}{' %' * bool(margin)}"
    percents = 100 * (factor - 1)
    digits = 0 if abs(percents) >= 9.95 else 1
    if change and margin:
        digits = change.decimals
        margin = f" ± {100 * change.half:.{digits}f}"
    sign = "+" if percents >= 0 else "\N{MINUS SIGN}"
    return f"{sign}{abs(percents):.{digits}f}{margin} %"


def share(quotient: float, of_runs: Interval | None) -> str:
    """0.823 -> "82 %"; with its interval "82.3 ± 0.4 %"."""
    if of_runs is None or of_runs.is_exact:
        return f"{100 * quotient:.0f} %"
    digits = of_runs.decimals
    return f"{100 * of_runs.mean:.{digits}f} ± {100 * of_runs.half:.{digits}f} %"


def timed_text(results: Results) -> str:
    """What a number of a row is."""
    return "Means of the runs" if results.runs else "Median of the launches"


def policy_text(results: Results) -> str:
    """How the card was timed, in the words of the result file."""
    if results.is_counted:
        return "counted by the PTX virtual machine, not timed"
    l2 = {"flush": ", L2 flushed", "warm": ", L2 warm"}.get(
        str(results.document["policy"].get("l2")), ""
    )
    steady = any(row.steady for row in results.rows)
    limit = results.document["device"].get("power_limit")
    timed = [row for run in results.runs or (results,) for row in run.timed()]
    clocks = [row.data["clock_mhz"] for row in timed if row.data.get("clock_mhz")]
    parts = (
        f"means of {runs_text(results.runs)}, 95 % intervals" if results.runs else "",
        "back to back, K and V cold" if steady else f"spaced launches{l2}",
        f"SM clock of all kernels in the file {number_range(clocks)} MHz" if clocks else "",
        f"power limit {limit:.0f} W" if limit else "",
    )
    return ", ".join(part for part in parts if part)


def number_range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def source_text(results: Results) -> str:
    return f"{results.name}, commit {str(results.document['generator']['git_sha'])[:9]}"


def limits_sha256(results: Results) -> str:
    """Of the limits of the same card; empty where there are none."""
    path = located(results.path.parent / "limits.json")
    return sha256_of(path) if path.exists() else ""


def provenance(results: Results, catalogue: Catalogue) -> str:
    """What a chart was made from; scripts/docs.py compares it."""
    made_from = {
        "results": results.name,
        "results_sha256": results.sha256,
        "limits_sha256": limits_sha256(results),
        "catalogue_sha256": catalogue.sha256,
    }
    return json.dumps(made_from)
