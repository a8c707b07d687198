# SPDX-License-Identifier: MIT
"""`rung="best"`: rungs in the order of their committed times at the nearest measured problem."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from flash_ladder import _native, _paths
from flash_ladder._errors import Refused
from flash_ladder._problem import Problem

BEST = "best"
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """One problem, and the rungs that were timed on it, fastest first."""

    dtype: str
    head_dim: int
    causal: bool
    seq: float  # geometric mean of queries and keys
    heads: int  # batch x heads
    rungs: tuple[str, ...]

    def distance(self, problem: Problem) -> tuple[float, ...]:
        """Small for what is like this problem; the mask counts more than the shape."""
        seq = math.sqrt(max(problem.seq_q * problem.seq_kv, 1))
        heads = max(problem.batch * problem.heads, 1)
        return (
            self.causal != problem.causal,
            abs(math.log2(self.head_dim / max(problem.head_dim, 1))),
            abs(math.log2(self.seq / seq)),
            abs(math.log2(self.heads / heads)),
        )


@functools.cache
def measured() -> tuple[Measured, ...]:
    """What the committed result files say about normal inputs."""
    times: dict[tuple[str, int, bool, float, int], dict[str, float]] = {}
    for path in _paths.measurements():
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            problem = row["problem"]
            plain = problem.get("inputs", "normal") == "normal" and problem.get("spread", 1) == 1
            plain = plain and "lengths" not in problem and "page" not in problem
            if row["kind"] != "rung" or row["status"] != "ok" or row["ablation"] or not plain:
                continue
            heads = problem["batch"] * problem["heads"]
            key = (
                problem["dtype"],
                problem["head_dim"],
                problem["causal"],
                math.sqrt(problem["seq_q"] * problem["seq_kv"]),
                heads,
            )
            times.setdefault(key, {})[row["id"]] = row["time_ms"]["median"]
    return tuple(
        Measured(*key, tuple(sorted(of, key=lambda rung: of[rung]))) for key, of in times.items()
    )


def candidates(problem: Problem) -> Iterator[str]:
    """Every rung once: those timed on the nearest problems first, at last those never timed, the
    latest first."""
    seen: set[str] = set()
    like = [each for each in measured() if each.dtype == problem.dtype]
    for each in sorted(like, key=lambda other: other.distance(problem)):
        for rung in each.rungs:
            if rung not in seen:
                seen.add(rung)
                yield rung
    yield from (rung for rung in reversed(_native.rung_ids()) if rung not in seen)


def first_that_takes(problem: Problem, rung: str, attempt: Callable[[str], T]) -> T:
    """What `attempt` makes of the rung, or of the best that does not refuse the problem."""
    if rung != BEST:
        return attempt(rung)
    refusals = []
    for candidate in candidates(problem):
        try:
            return attempt(candidate)
        except Refused as refusal:
            refusals.append(str(refusal))
    raise Refused(f"no rung takes this problem; the best one says: {refusals[0]}")
