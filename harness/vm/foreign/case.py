# SPDX-License-Identifier: MIT
"""One foreign kernel: how it is run and what is right."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import ptxvm
from numpy.typing import ArrayLike

from foreign.differential import Different, every_way

# What depends on the order of warps: a loop that waits runs as often as that order makes it.
WAITS = ("counts",)
# e2m1, by its bits.
FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FLOAT4 = np.concatenate([FLOAT4, -FLOAT4])


@dataclass(frozen=True)
class Case:
    """`run` launches the kernel on the machine, compares with numpy, and gives all results."""

    name: str
    origin: str
    run: Callable[[int], Sequence[ptxvm.Result]]
    architectures: tuple[int, ...] = (80, 90)
    by_order: tuple[str, ...] = ()  # what depends on the order of warps: "output", "counts"


@dataclass
class Outcome:
    """What became of a case."""

    name: str
    origin: str
    arch: int
    ran: bool = False
    right: bool = False
    reason: str = ""
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.ran and self.right


class Wrong(AssertionError):
    """The kernel ran and its result is not numpy's."""


def expect(got: ArrayLike, expected: ArrayLike, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Throws Wrong where an element differs by more than is allowed."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    if got.shape != expected.shape:
        raise Wrong(f"shape {got.shape}, expected {expected.shape}")
    wrong = ~np.isclose(got, expected, rtol=rtol, atol=atol)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        many = f"{int(wrong.sum())} of {wrong.size} elements"
        raise Wrong(f"{many} are wrong: {got[at]} at {at}, expected {expected[at]}")


def one_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].removeprefix("error: ")


def try_case(case: Case, arch: int, verbose: bool = False, differential: bool = False) -> Outcome:
    """Runs a case, each launch in every way where `differential`; whatever goes wrong is its
    reason."""
    outcome = Outcome(case.name, case.origin, arch)
    begin = time.monotonic()
    try:
        with every_way(case.by_order) if differential else nullcontext():
            results = case.run(arch)
        outcome.ran = outcome.right = True
        outcome.findings = [
            f"{each.severity}: {each.checker}" for result in results for each in result.findings
        ]
    except (Wrong, Different) as error:
        outcome.ran, outcome.reason = True, one_line(error)
    except Exception as error:  # compilers and kernels of others fail in many ways
        outcome.reason = one_line(error)
        if verbose:
            traceback.print_exc()
    outcome.seconds = time.monotonic() - begin
    return outcome


def table(outcomes: Sequence[Outcome]) -> str:
    """kernel - ran - right - findings - time, as Markdown."""
    lines = ["| kernel | from | sm | ran | right | findings | time | reason |", "|---" * 8 + "|"]
    for each in outcomes:
        marks = ["yes" if each.ran else "no", "yes" if each.right else "no"]
        findings = ", ".join(sorted(set(each.findings))) or "none"
        reason = each.reason.replace("|", "\\|")
        cells = [each.name, each.origin, str(each.arch), *marks, findings if each.ran else ""]
        lines.append("| " + " | ".join([*cells, f"{each.seconds:.1f} s", reason]) + " |")
    good = sum(each.good for each in outcomes)
    return "\n".join([*lines, "", f"{good} of {len(outcomes)} ran and are right."])
