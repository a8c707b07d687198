# SPDX-License-Identifier: MIT
"""`rung="best"`: rungs in the order of their committed times at the nearest measured problems."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, mean
from typing import TypeVar

from flash_ladder import _native, _paths
from flash_ladder._errors import Refused
from flash_ladder._problem import FEW_QUERIES, Problem, check_rung, problem_of

BEST = "best"
FAR = 3  # between lengths, as a quotient
EQUAL = 0.02  # of the time, where only a length that is far was measured
PRECISE = "39"  # asked for the log-sum-exp, it gives the O that gradients need (docs/39_varlen.md)
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """What a problem is like, for looking up the measured one that is most like it."""

    backward: bool
    dtype: str
    e4m3: bool
    few: bool  # new queries against a cache
    head_dim: int
    causal: bool  # few queries: whether there are several; one sees every key in any case
    lengths: bool
    packed: bool
    paged: bool
    windowed: bool
    sinks: bool
    strided: bool
    rows: int  # few queries, or gradients of a query: of Q that share a head of K and V
    seq: float  # keys; of many queries the geometric mean of both
    heads: int  # batch x heads, of K and V where queries are few

    def unlike(self, other: Kind) -> tuple[float, ...]:
        """How far another kernel is needed; counts before the shape."""
        return (
            self.backward != other.backward,
            (self.few != other.few) + (self.e4m3 != other.e4m3),
            self.dtype != other.dtype,
            (self.windowed != other.windowed) + (self.sinks != other.sinks),
            self.causal != other.causal,
            (self.lengths != other.lengths) + (self.paged != other.paged),
            self.strided != other.strided,
            abs(math.log2(self.head_dim / other.head_dim)),
        )

    def distance(self, other: Kind) -> float:
        """Of the shapes."""
        return (
            abs(math.log2(self.rows / other.rows))
            + abs(math.log2(self.seq / other.seq))
            + abs(math.log2(self.heads / other.heads))
        )


def kind_of(problem: Problem) -> Kind:
    packed = problem.query_lengths is not None
    few = problem.seq_q <= FEW_QUERIES and not packed and not problem.backward
    shared = problem.heads // problem.kv_heads
    return Kind(
        backward=problem.backward,
        dtype=problem.dtype,
        e4m3=problem.cache is not None,
        few=few,
        head_dim=problem.head_dim,
        causal=problem.seq_q > 1 and (few or problem.causal),
        lengths=problem.lengths is not None and problem.batch > 1,
        packed=packed,
        paged=problem.page > 0,
        windowed=problem.windowed,
        sinks=problem.sinks,
        strided=problem.strides is not None,
        rows=shared * (problem.seq_q if few else 1) if few or problem.backward else 1,
        seq=problem.seq_kv if few else math.sqrt(problem.seq_q * problem.seq_kv),
        heads=problem.batch * (problem.kv_heads if few else problem.heads),
    )


@functools.cache
def measured() -> Mapping[Kind, Mapping[str, float]]:
    """What the committed result files say about normal inputs: the time of each rung."""
    runs: dict[Kind, dict[tuple[Path, str], dict[str, float]]] = {}
    for path in _paths.measurements():
        document = json.loads(path.read_text(encoding="utf-8"))
        # Launches without gaps that found no cache in the L2 are those of a model.
        cold = document["policy"]["l2_back_to_back"].startswith("copies")
        for row in document["rows"]:
            problem = row["problem"]
            plain = problem.get("inputs", "normal") == "normal" and problem.get("spread", 1) == 1
            if row["kind"] != "rung" or row["status"] != "ok" or row["ablation"] or not plain:
                continue
            kind = kind_of(problem_of(problem, Problem))
            time = row["time_ms"]
            ms = time["back_to_back" if cold and not time.get("hot") else "median"]
            run = runs.setdefault(kind, {}).setdefault((path, json.dumps(problem)), {})
            run[row["id"]] = ms
    return {kind: mean_times(list(of.values())) for kind, of in runs.items()}


def mean_times(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean time of each rung over the runs that have it. Cards of one kind differ by percents,
    so a run counts by its times relative to those of the rungs that all runs have."""
    common = sorted(set.intersection(*(set(run) for run in runs)))
    levels = [geometric_mean([run[rung] for rung in common]) if common else 1.0 for run in runs]
    relative: dict[str, list[float]] = {}
    for run, level in zip(runs, levels, strict=True):
        for rung, ms in run.items():
            relative.setdefault(rung, []).append(ms / level)
    return {rung: mean(values) * mean(levels) for rung, values in relative.items()}


def candidates(problem: Problem) -> Iterator[str]:
    """Every rung once. First those timed on the problems that are most alike, by how much slower
    than the fastest each was there, the nearest three shapes weighed by their distance; then those
    timed on others; at last those never timed, the latest first, so that Blackwell, where nothing
    was timed, gets a kernel for Ampere. PRECISE comes before them where many queries want the
    log-sum-exp."""
    seen: set[str] = set()
    kind = kind_of(problem)
    if problem.lse and problem.dtype != "float32" and not (kind.few or kind.backward):
        seen.add(PRECISE)
        yield PRECISE
    # A kernel of bfloat16 is the one of float16 with another type of element.
    alike = {kind.dtype, "float16"} if kind.dtype == "bfloat16" else {kind.dtype}
    groups: dict[tuple[float, ...], list[Kind]] = {}
    for each in measured():
        if each.dtype in alike:
            groups.setdefault(kind.unlike(each), []).append(each)
    for _, group in sorted(groups.items()):
        rest = [
            rung
            for each in sorted(group, key=kind.distance)
            for rung in sorted(measured()[each], key=measured()[each].__getitem__)
        ]
        for rung in [*order_near(kind, group), *rest]:
            if rung not in seen:
                seen.add(rung)
                yield rung
    yield from (rung for rung in reversed(_native.rung_ids()) if rung not in seen)


def order_near(kind: Kind, group: list[Kind]) -> list[str]:
    """Rungs that were timed on the nearest shape, by their times on the nearest three, the best
    first. Where the latest rung of the group was not timed, nothing is known about it: such shapes
    are left out."""
    ids = _native.rung_ids()
    latest = max((rung for each in group for rung in measured()[each]), key=ids.index)
    with_it = [each for each in group if latest in measured()[each]]
    nearest = sorted(with_it, key=kind.distance)[:3]
    slower: dict[str, list[tuple[float, float]]] = {rung: [] for rung in measured()[nearest[0]]}
    for each in nearest:
        times = measured()[each]
        weight = 1 / (kind.distance(each) + 0.1)
        for rung in slower.keys() & times.keys():
            slower[rung].append((weight, math.log(times[rung] / min(times.values()))))

    def expected(rung: str) -> float:
        return sum(w * x for w, x in slower[rung]) / sum(w for w, _ in slower[rung])

    # A percent at one length says little about another, where the fixed costs of rungs that take
    # more have another share: there the earliest of those that are nearly equal goes first.
    least = min(map(expected, slower))
    far = not kind.few and max(kind.seq / nearest[0].seq, nearest[0].seq / kind.seq) > FAR

    def order(rung: str) -> tuple[float, int]:
        loss = expected(rung) - least
        return (0, ids.index(rung)) if far and loss < EQUAL else (loss, 0)

    return sorted(slower, key=order)


def first_that_takes(problem: Problem, rung: str, attempt: Callable[[str], T]) -> T:
    """What `attempt` makes of the rung, or of the best that does not refuse the problem."""
    if rung != BEST:
        return attempt(check_rung(rung))
    refusals = []
    for candidate in candidates(problem):
        try:
            return attempt(candidate)
        except Refused as refusal:
            refusals.append(str(refusal))
    raise Refused(f"no rung takes this problem; the best one says: {refusals[0]}")
