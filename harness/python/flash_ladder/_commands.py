# SPDX-License-Identifier: MIT
"""The commands of fa as functions. Each runs in a process of its own: a kernel that breaks the
GPU's context, or takes all memory, does not take the caller with it."""

from __future__ import annotations

import functools
import json
import operator
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flash_ladder import _paths
from flash_ladder._errors import EnvironmentFailure, Refused, raise_for
from flash_ladder._problem import check_flag, check_rung

WRONG, ENVIRONMENT = 1, 3  # exit codes of fa


def environment() -> dict[str, str]:
    return {**os.environ, "FA_PTX_DIR": str(_paths.ptx_folder())}


def fa_program() -> Path:
    program = _paths.native("fa")
    if not program.is_file():
        raise EnvironmentFailure(f"{program} is not there; build the project or set FA_BUILD_DIR")
    return program


def main() -> None:
    """The command `fa` of an installed package: becomes the program."""
    try:
        program = fa_program()
    except EnvironmentFailure as error:
        print(f"fa: error: {error}", file=sys.stderr)
        sys.exit(ENVIRONMENT)
    # Python ignores it, and what runs next would inherit that: `fa list | head` would fail.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execve(program, [str(program), *sys.argv[1:]], environment())


def run(words: Sequence[object], allowed: Iterable[int] = (0,)) -> tuple[int, str]:
    """(exit code, stdout) of `fa WORD...`; another exit code is raised as what it stands for."""
    done = subprocess.run(
        [str(fa_program()), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), "NO_COLOR": "1"},
    )
    if done.returncode not in allowed:
        message = done.stderr.strip() or done.stdout.strip()
        raise_for(done.returncode, message.removeprefix("fa: error: ")[-4000:])
    return done.returncode, done.stdout


def options(**named: object) -> list[str]:
    """--name value for what is given, --name alone for True. Refused for what is no number where
    one is needed; fa judges the numbers."""
    words = []
    for name, value in named.items():
        if value is None:
            continue
        if name in FLAGS:
            words += [FLAGS[name]] if check_flag(name, value) else []
        else:
            words += ["--" + name.replace("_", "-"), option_text(name, value)]
    return words


FLAGS = {"causal": "--causal", "by_line": "--by-line"}
LISTS = ("seqs", "lengths")
TEXTS = ("device", "suite", "dtype", "tile", "inputs", "lengths")


def option_text(name: str, value: object) -> str:
    if isinstance(value, str) and name in TEXTS and value:
        return value
    several = name in LISTS and not isinstance(value, (str, bytes)) and hasattr(value, "__iter__")
    numbers = [number_text(name, each) for each in (value if several else (value,))]  # type: ignore[attr-defined]
    if not numbers:
        raise Refused(f"{name} is {value!r}; allowed: at least one whole number")
    return ",".join(numbers)


def number_text(name: str, value: object) -> str:
    if name == "spread" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    try:
        if isinstance(value, bool):
            raise TypeError
        return str(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        what = "text" if name in TEXTS and name not in LISTS else "a whole number"
        what = "a number" if name == "spread" else what
        several = ", or several" if name in LISTS else ""
        raise Refused(f"{name} is {value!r}; allowed: {what}{several}") from None


def rung_words(words: Iterable[object]) -> list[str]:
    """The words for rungs; none of them is an option."""
    checked = [check_rung(word) for word in words]
    for word in checked:
        if word.startswith("-"):
            raise Refused(f"rung is {word!r}; allowed: a number, a name, a family, or all")
    return checked


# --- rungs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """One row of the catalogue."""

    id: str
    name: str
    parent: str | None
    family: str
    target: str
    dtype: str
    head_dims: tuple[int, ...]
    capabilities: frozenset[str]
    idea: str


@functools.cache
def rungs() -> tuple[Rung, ...]:
    """All rungs in ladder order."""
    rows = json.loads(run(["list", "--json"])[1])["rungs"]
    return tuple(rung_of(row) for row in rows)


def rung_of(row: Mapping[str, Any]) -> Rung:
    return Rung(
        id=row["id"],
        name=row["name"],
        parent=row["parent"],
        family=row["family"],
        target=row["target"],
        dtype=row["dtype"],
        head_dims=tuple(row["head_dims"]),
        capabilities=frozenset(name for name, value in row.items() if value is True),
        idea=row["idea"],
    )


# --- check ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckReport:
    """True when every case passed; `text` names each kernel and what was wrong."""

    ok: bool
    text: str

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text


def check(*words: str | int, device: str = "auto", suite: str = "quick") -> CheckReport:
    """Checks rungs (all, if none is named) over a suite of shapes and inputs, "quick" or "full", on
    "gpu", "vm" or "auto", the GPU where there is one."""
    chosen = options(device=device, suite=suite)
    code, text = run(["check", *rung_words(words), *chosen], (0, WRONG))
    return CheckReport(code == 0, text.rstrip())


# --- explain --------------------------------------------------------------------------------------


class Explanation(dict[str, int]):
    """Counts of one launch by name, exact; a count that is 0 is left out. Prints as a table."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row["counts"])
        self.rung: str = row["id"]
        self.tile: str = row["variant"]
        self.problem: dict[str, Any] = row["problem"]
        #: What bounds it on `card`: `resource`, its `clocks` of each SM and its `share` of them;
        #: `launches`, each with the clocks of all resources. None for code that no such card runs.
        self.bound: dict[str, Any] | None = row.get("bound")
        #: Counts of each line of the kernel's source; empty unless asked for.
        self.by_line: dict[int, dict[str, int]] = {
            line["line"]: line["counts"] for line in row.get("lines", ())
        }

    def __str__(self) -> str:
        problem = ", ".join(f"{name} {value}" for name, value in self.problem.items())
        width = max(map(len, self), default=0)
        rows = [f"  {name:{width}} {count:>15,}" for name, count in self.items()]
        bound = "no bound: no card was measured that runs this code"
        if self.bound:
            bound = "bound by {}: {:.0f} clocks of each SM of an {}".format(
                self.bound["resource"].replace("_", " "), self.bound["clocks"], self.bound["card"]
            )
        return "\n".join([f"{self.rung} {self.tile}: {problem}", bound, *rows])


def explain(
    rung: str | int,
    *,
    batch: int | None = None,
    heads: int | None = None,
    seq: int | None = None,
    seq_kv: int | None = None,
    dim: int | None = None,
    causal: bool = False,
    kv_heads: int | None = None,
    lengths: Sequence[int] | str | None = None,
    page: int | None = None,
    tile: str | None = None,
    by_line: bool = False,
) -> Explanation:
    """Runs a rung on the virtual machine, checks its output, and returns what it did: instructions,
    shared-memory wavefronts and those that would be ideal, sectors of global memory; and in
    `bound`, which of these takes longest on an H200.

    Of a cache: kv_heads heads of K and V, lengths keys of each batch entry, or "random", and pages
    of `page` keys."""
    (word,) = rung_words([rung])
    if word in {"all", *(each.family for each in rungs())}:
        raise Refused(f"'{word}' means several rungs; explain takes one")
    words = options(
        batch=batch,
        heads=heads,
        seq=seq,
        seq_kv=seq_kv,
        dim=dim,
        causal=causal,
        kv_heads=kv_heads,
        lengths=lengths,
        page=page,
        tile=tile,
        by_line=by_line,
    )
    rows = json.loads(run(["explain", word, *words, "--json"], (0, WRONG))[1])["rows"]
    if len(rows) != 1:
        raise Refused(f"'{rung}' means {len(rows)} rungs; explain takes one")
    row = rows[0]
    if row["status"] != "ok":
        raise_for(2 if row["status"] == "unsupported" else WRONG, row["reason"])
    return Explanation(row)


# --- bench ----------------------------------------------------------------------------------------


class Bench(list[dict[str, Any]]):
    """Rows of a result file (plots/results), one a rung and problem. Prints as a table."""

    def __str__(self) -> str:
        head = f"{'rung':6} {'tile':16} {'problem':34} {'ms':>9} {'TFLOPS':>8} {'GB/s':>8}"
        return "\n".join([head, *(self.line(row) for row in self)])

    @staticmethod
    def line(row: Mapping[str, Any]) -> str:
        of = row["problem"]
        problem = "{batch}x{heads}x{seq_q}x{seq_kv}x{head_dim}".format(**of)
        problem += " causal" if of["causal"] else ""
        for name in ("kv_heads", "page"):
            problem += f" {name} {of[name]}" if name in of else ""
        problem += " lengths" if "lengths" in of else ""
        start = f"{row['id']:6} {row['variant'] or '':16} {problem:34}"
        if row["status"] != "ok":
            return f"{start} {row['status']}: {row['reason']}"
        return f"{start} {row['time_ms']['median']:9.4f} {row['tflops']:8.1f} {row['gbs']:8.0f}"


def bench(
    *words: str | int,
    seqs: int | Sequence[int] | None = None,
    batch: int | None = None,
    heads: int | None = None,
    dim: int | None = None,
    causal: bool = False,
    dtype: str | None = None,
    queries: int | None = None,
    kv_heads: int | None = None,
    lengths: Sequence[int] | str | None = None,
    page: int | None = None,
    inputs: str | None = None,
    spread: float | None = None,
    json_file: str | os.PathLike[str] | None = None,
) -> Bench:
    """Verifies and times rungs (all float16 ones, if none is named) on the GPU.

    queries new queries are against a cache of seqs keys; kv_heads, lengths and page are as for
    explain. Rows that json_file has already are not measured again, and an interrupt leaves those
    that are finished there."""
    chosen = options(
        seqs=seqs,
        batch=batch,
        heads=heads,
        dim=dim,
        causal=causal,
        dtype=dtype,
        queries=queries,
        kv_heads=kv_heads,
        lengths=lengths,
        page=page,
        inputs=inputs,
        spread=spread,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json" if json_file is None else Path(json_file)
        run(["bench", *rung_words(words), *chosen, "--json", file], (0, WRONG))
        return Bench(json.loads(file.read_text(encoding="utf-8"))["rows"])
