# SPDX-License-Identifier: MIT
"""Whether a rung is a step, flat or a regression, and whether it is a branch: from the results.

The rule. A rung is compared with its parent on its own problems: the main one of its dtype and, if it
takes the causal mask, the same with the mask; a rung against a cache on a batch of 16 and a single
sequence of 8192 keys. A parent between two numbers (20b) that has no time is passed over. The quotient
of a problem is parent's time over rung's time, with the faster of two parents: at the parent's own
tile, and at the rung's tile where that was timed. A parent that does not take the mask has its time
without it. The change is the geometric mean of the quotients. A rung is a step when the change exceeds the spread, a regression when it falls
short by more, else flat. The spread of a row is the distance of p10 and p90 over the median and the
number of rounds; that of the noisiest row compared counts, at least 1 %. A rung is a branch when no
other is built on it while its family has later ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ladder import (
    DECODE,
    DECODE_PROBLEMS,
    MAIN_PROBLEMS,
    Catalogue,
    Problem,
    Results,
    Row,
    Rung,
    timed_parent,
)

STEP, FLAT, REGRESSION = "step", "flat", "regression"
FIRST, UNKNOWN = "first", "not measured"
LEAST_SPREAD = 0.01


@dataclass(frozen=True)
class Status:
    change: str  # one of the words above
    branch: bool

    @property
    def text(self) -> str:
        return f"{self.change}, branch" if self.branch else self.change

    @property
    def is_up(self) -> bool:
        """False for what is kept for its lesson."""
        return self.change not in (FLAT, REGRESSION)


def statuses(results: Results, catalogue: Catalogue) -> dict[str, Status]:
    return {rung.id: status_of(rung, results, catalogue) for rung in catalogue.rungs}


def status_of(rung: Rung, results: Results, catalogue: Catalogue) -> Status:
    return Status(change_of(rung, results, catalogue), is_branch(rung, catalogue))


def is_branch(rung: Rung, catalogue: Catalogue) -> bool:
    family = [other for other in catalogue.rungs if other.family == rung.family]
    built_on = any(other.parent == rung.id for other in catalogue.rungs)
    return not built_on and family[-1] != rung


def change_of(rung: Rung, results: Results, catalogue: Catalogue) -> str:
    parent = timed_parent(rung, catalogue, results)
    if parent is None:
        return FIRST if results.rung(rung.id, rung.typed(problems_of(rung)[0])) else UNKNOWN
    compared = [compare(rung, parent, results, problem) for problem in problems_of(rung)]
    known = [each for each in compared if each is not None]
    if not known:
        return UNKNOWN
    change = math.prod(quotient for quotient, _ in known) ** (1 / len(known))
    allowed = max(LEAST_SPREAD, *(spread for _, spread in known))
    if abs(change - 1) <= allowed:
        return FLAT
    return STEP if change > 1 else REGRESSION


def problems_of(rung: Rung) -> list[Problem]:
    if rung.family == DECODE:
        return [Problem.parse(text) for text in DECODE_PROBLEMS]
    main = Problem.parse(MAIN_PROBLEMS[rung.dtype])
    return [main, replace(main, causal=True)] if rung.takes("causal") else [main]


def compare(
    rung: Rung, parent: Rung, results: Results, problem: Problem
) -> tuple[float, float] | None:
    """(quotient, spread); None where one of the two has no time."""
    row = results.rung(rung.id, rung.typed(problem))
    of_parent = parent.typed(problem)
    if not parent.takes("causal"):
        of_parent = replace(of_parent, causal=False)
    rows = [results.rung(parent.id, of_parent)]
    if row:
        rows.append(results.ablation(parent.id, of_parent, row.variant))
    parents = [each for each in rows if each is not None]
    if row is None or not parents:
        return None
    quotient = min(map(median, parents)) / median(row)
    rounds = results.document["policy"]["rounds"]
    return quotient, max(spread(each) for each in (row, *parents)) / rounds


def median(row: Row) -> float:
    return float(row.data["time_ms"]["median"])


def spread(row: Row) -> float:
    """What the middle 80 % of the launches cover."""
    time = row.data["time_ms"]
    return float(time["p90"] - time["p10"]) / median(row)
