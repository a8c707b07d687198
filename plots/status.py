# SPDX-License-Identifier: MIT
"""Whether a rung is faster than its parent, slower or flat, and whether it is a branch.

The rule. A rung is compared with its parent on its own problems: the main one of its dtype and, if it
takes the causal mask, the same with the mask; a rung that takes views in bfloat16 too; gradients also
with 64 heads that share 8; a rung against a cache on a batch of 16 and a single sequence of 8192 keys,
and on a batch of 64 with random lengths. A problem that was not timed of both is left out. The quotient
of a problem is the parent's time over the rung's time in the same run, with the faster of two parents:
at the parent's own tile, and at the rung's tile where that was timed. A parent that does not take the
mask has its time without it. The change in a run is the geometric mean of its quotients, and over the
runs it has a 95 % interval (interval.py). A rung is faster when all of the interval is above 1, slower
when all of it is below, else flat. A single run has no interval: not measured. A rung is a branch when
no other is built on it while its family has later ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import ladder
from ladder import (
    BACKWARD,
    DECODE,
    DECODE_LENGTHS,
    DECODE_PROBLEMS,
    MAIN_PROBLEMS,
    SHARED_PROBLEM,
    Catalogue,
    Interval,
    Problem,
    Results,
    Row,
    Rung,
    time_of,
)

FASTER, FLAT, SLOWER = "faster", "flat", "slower"
FIRST, UNKNOWN = "first", "not measured"


@dataclass(frozen=True)
class Status:
    change: str  # one of the words above
    branch: bool

    @property
    def text(self) -> str:
        return f"{self.change}, branch" if self.branch else self.change

    @property
    def is_known(self) -> bool:
        return self.change != UNKNOWN

    @property
    def is_up(self) -> bool:
        """False for what is kept for its lesson."""
        return self.change not in (FLAT, SLOWER)


def statuses(results: Results, catalogue: Catalogue) -> dict[str, Status]:
    return {rung.id: status_of(rung, results, catalogue) for rung in catalogue.rungs}


def status_of(rung: Rung, results: Results, catalogue: Catalogue) -> Status:
    return Status(change_of(rung, results, catalogue), is_branch(rung, catalogue))


def is_branch(rung: Rung, catalogue: Catalogue) -> bool:
    family = [other for other in catalogue.rungs if other.family == rung.family]
    built_on = any(other.parent == rung.id for other in catalogue.rungs)
    return not built_on and family[-1] != rung


def change_of(rung: Rung, results: Results, catalogue: Catalogue) -> str:
    parent = catalogue.find(rung.parent)
    if parent is None:
        (first, *_) = problems_of(rung, results)
        return FIRST if results.rung(rung.id, rung.typed(first)) else UNKNOWN
    change = interval_of(rung, parent, results)
    if change is None:
        return UNKNOWN
    if change.has_one:
        return FLAT
    return FASTER if change.mean > 1 else SLOWER


def interval_of(rung: Rung, parent: Rung, results: Results) -> Interval | None:
    """Of the change; None where it is not measured."""
    pairs = [
        (min(parents, key=time_of), row)
        for problem in problems_of(rung, results)
        if (row := results.rung(rung.id, rung.typed(problem)))
        and (parents := list(rows_of(parent, results, problem, row.variant)))
    ]
    return ladder.mean_ratio(results, pairs, time_of) if pairs else None


def problems_of(rung: Rung, results: Results) -> list[Problem]:
    if rung.family == DECODE:
        fixed = [Problem.parse(text) for text in DECODE_PROBLEMS]
        plain = Problem.parse(DECODE_LENGTHS)
        found = {row.problem.lengths for row in results.timed()}
        drawn = (replace(plain, lengths=lengths) for lengths in sorted(found) if lengths)
        return [*fixed, *drawn]
    main = Problem.parse(MAIN_PROBLEMS[rung.dtype])
    mains = [main, replace(main, dtype="bfloat16")] if rung.takes("strided") else [main]
    masks = (False, True) if rung.takes("causal") else (False,)
    problems = [replace(each, causal=causal) for each in mains for causal in masks]
    shared = [Problem.parse(SHARED_PROBLEM)] if rung.family == BACKWARD else []
    return problems + shared


def rows_of(parent: Rung, results: Results, problem: Problem, tile: str) -> Iterator[Row]:
    """The parent at its own tile, and at this one."""
    problem = parent.typed(problem)
    if not parent.takes("causal"):
        problem = replace(problem, causal=False)
    rows = results.rung(parent.id, problem), results.ablation(parent.id, problem, tile)
    return filter(None, rows)
