# SPDX-License-Identifier: MIT
"""What bare loops reach on a card (fa limits): the ceilings of charts and tables.

limits.json, or limits with a file for each run, stands beside the results of its card. Without it there
are no ceilings of ours, and whatever reads this says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ladder import (
    SCHEMA,
    LadderError,
    Results,
    Row,
    load_runs,
    located,
    mean,
    read_json,
)

FILE = "limits.json"
NOT_MEASURED = "limits not measured"

# Family -> loops, any of which a kernel of that family could be built of: the fastest is its limit.
LOOPS = {
    "fp32": ("fma",),
    "ampere": ("mma_sync",),
    "hopper": ("attention_registers", "attention_shared"),
}
NAMES = {"fp32": "FP32 FMA", "ampere": "mma.sync", "hopper": "wgmma"}
FAMILIES = {"float16": ("hopper", "ampere"), "float32": ("fp32",)}  # the faster ones first


@dataclass(frozen=True)
class Rate:
    """TFLOPS of the loop, or GB/s."""

    spaced: float
    back_to_back: float

    def like(self, row: Row) -> float:
        """Timed as the row was."""
        return self.back_to_back if row.steady else self.spaced


@dataclass(frozen=True)
class Limits:
    path: Path
    document: Mapping[str, Any]
    runs: tuple[Limits, ...] = ()  # of a folder

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.document["rows"])

    @property
    def gpu(self) -> str:
        return str(self.document["device"]["name"])

    @property
    def commit(self) -> str:
        return str(self.document["generator"]["git_sha"])

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """Of the loops that the card ran."""
        rows = (row for row in self.rows if row["status"] == "ok")
        return {row["id"]: Rate(row["rate"], row["rate_back_to_back"]) for row in rows}

    @staticmethod
    def load(path: Path) -> Limits:
        """A file, or a folder of runs: the means of the loops, and of one that a run could not do, why."""
        path = located(path)
        if not path.is_dir():
            return Limits.load_run(path)
        runs = load_runs(path, Limits.load_run)
        loops: dict[str, list[dict[str, Any]]] = {}
        for run in runs:
            for row in run.rows:
                loops.setdefault(row["id"], []).append(row)
        rows = [
            next((row for row in loop if row["status"] != "ok"), None) or mean(loop)
            for loop in loops.values()
        ]
        return replace(runs[0], path=path, document={**runs[0].document, "rows": rows}, runs=runs)

    @staticmethod
    def load_run(path: Path) -> Limits:
        def take(document: Any) -> Limits:
            if (document["schema"], document["kind"]) != (SCHEMA, "limits"):
                raise LadderError(f"{path} is not a file of fa limits")
            measured = Limits(path, document)
            if not measured.rates:
                raise LadderError(f"{path} has no loop with a rate")
            return measured

        return read_json(path, "a file of fa limits", take)

    @staticmethod
    def beside(results: Results) -> Limits | None:
        path = located(results.path.parent / FILE)
        return Limits.load(path) if path.exists() else None

    def of_family(self, family: str) -> Rate | None:
        """None where the card could not run the loops."""
        rates = [self.rates[id] for id in LOOPS.get(family, ()) if id in self.rates]
        return max(rates, key=lambda rate: rate.spaced, default=None)

    def traffic(self, id: str) -> float | None:
        """GB/s of memory_read, memory_copy, l2_read, shared_load, ldmatrix."""
        return self.rates[id].spaced if id in self.rates else None


def share_of(limits: Limits | None, family: str, row: Row | None) -> float | None:
    """A rung's rate over the limit of its family: both without gaps, or both spaced."""
    limit = limits.of_family(family) if limits else None
    if limit is None or row is None:
        return None
    return row.tflops / limit.like(row)
