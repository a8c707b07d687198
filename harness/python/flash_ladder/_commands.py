# SPDX-License-Identifier: MIT
"""The commands of fa as functions. Each runs in a process of its own: a kernel that breaks the
GPU's context, or takes all memory, does not take the caller with it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flash_ladder import _paths
from flash_ladder._errors import EnvironmentFailure, Refused, raise_for

WRONG = 1  # exit code of fa


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
        sys.exit(f"fa: error: {error}")
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
    """--name value for what is given, --name alone for True."""
    words = []
    for name, value in named.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(
                ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            )
    return words


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


def check(*words: str, device: str = "auto", suite: str = "quick") -> CheckReport:
    """Checks rungs (all, if none is named) over a suite of shapes and inputs, "quick" or "full", on
    "gpu", "vm" or "auto", the GPU where there is one."""
    code, text = run(["check", *words, *options(device=device, suite=suite)], (0, WRONG))
    return CheckReport(code == 0, text.rstrip())


# --- explain --------------------------------------------------------------------------------------


class Explanation(dict[str, int]):
    """Counts of one launch by name, exact; a count that is 0 is left out. Prints as a table."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row["counts"])
        self.rung: str = row["id"]
        self.tile: str = row["variant"]
        self.problem: dict[str, Any] = row["problem"]
        #: Counts of each line of the kernel's source; empty unless asked for.
        self.by_line: dict[int, dict[str, int]] = {
            line["line"]: line["counts"] for line in row.get("lines", ())
        }

    def __str__(self) -> str:
        problem = ", ".join(f"{name} {value}" for name, value in self.problem.items())
        width = max(map(len, self), default=0)
        rows = [f"  {name:{width}} {count:>15,}" for name, count in self.items()]
        return "\n".join([f"{self.rung} {self.tile}: {problem}", *rows])


def explain(
    rung: str,
    *,
    batch: int | None = None,
    heads: int | None = None,
    seq: int | None = None,
    seq_kv: int | None = None,
    dim: int | None = None,
    causal: bool = False,
    tile: str | None = None,
    by_line: bool = False,
) -> Explanation:
    """Runs a rung on the virtual machine, checks its output, and returns what it did: instructions,
    shared-memory wavefronts and those that would be ideal, sectors of global memory."""
    words = options(
        batch=batch,
        heads=heads,
        seq=seq,
        seq_kv=seq_kv,
        dim=dim,
        causal=causal,
        tile=tile,
        by_line=by_line,
    )
    rows = json.loads(run(["explain", rung, *words, "--json"], (0, WRONG))[1])["rows"]
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
        head = f"{'rung':6} {'tile':16} {'problem':34} {'ms':>9} {'TFLOPS':>8}"
        return "\n".join([head, *(self.line(row) for row in self)])

    @staticmethod
    def line(row: Mapping[str, Any]) -> str:
        of = row["problem"]
        problem = "{batch}x{heads}x{seq_q}x{seq_kv}x{head_dim}".format(**of)
        problem += " causal" if of["causal"] else ""
        start = f"{row['id']:6} {row['variant'] or '':16} {problem:34}"
        if row["status"] != "ok":
            return f"{start} {row['status']}: {row['reason']}"
        return f"{start} {row['time_ms']['median']:9.4f} {row['tflops']:8.1f}"


def bench(
    *words: str,
    seqs: Sequence[int] | None = None,
    batch: int | None = None,
    heads: int | None = None,
    dim: int | None = None,
    causal: bool = False,
    dtype: str | None = None,
) -> Bench:
    """Verifies and times rungs (all float16 ones, if none is named) on the GPU."""
    chosen = options(seqs=seqs, batch=batch, heads=heads, dim=dim, causal=causal, dtype=dtype)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        run(["bench", *words, *chosen, "--json", file], (0, WRONG))
        return Bench(json.loads(file.read_text(encoding="utf-8"))["rows"])
