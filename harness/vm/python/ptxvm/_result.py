# SPDX-License-Identifier: MIT
"""What a launch did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxvm._errors import Diagnostic, diagnostic


class Counts(dict[str, int]):
    """Exact counts by name, in the order of reports. One that is 0 is left out, and 0 when read.

    Warp instructions by class ("tensor", "ldmatrix", "load_shared", ...) and "instructions", their
    sum; of requests to memory "shared_load_wavefronts" (passes over the 32 banks),
    "shared_load_ideal" (the same without conflicts), "global_load_sectors" (of 32 bytes), ...
    """

    def __missing__(self, name: str) -> int:
        return 0

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}} {count:>15,}" for name, count in self.items())


@dataclass(frozen=True)
class Finding:
    """Something that a checker saw: a race, a copy that nobody waits for, and the like."""

    checker: str
    message: str
    count: int  # how often
    where: Diagnostic
    severity: str = "error"  # or "advice"

    def __str__(self) -> str:
        text = self.where.formatted.removeprefix("error: ")
        often = f"\n  seen {self.count} times" if self.count > 1 else ""
        advice = "advice: " if self.severity == "advice" else ""
        return f"{advice}{self.checker}: {text}{often}"


@dataclass(frozen=True)
class Hint:
    """What the counts suggest about one line, as a profiler would put it."""

    section: str  # "shared memory", "global memory", "local memory", "arithmetic"
    message: str
    share: float  # of the section's work that need not be
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.section}: {self.message}; {Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class Line:
    """Counts of one line: of the source where the PTX has -lineinfo, else of the PTX itself."""

    file: str
    line: int
    opcode: str  # of a PTX line
    counts: Counts

    def __str__(self) -> str:
        what = f" {self.opcode}" if self.opcode else ""
        shared = sum(n for name, n in self.counts.items() if name.endswith("_wavefronts"))
        sectors = sum(n for name, n in self.counts.items() if name.endswith("_sectors"))
        parts = [f"{self.counts['instructions']:,} instructions"]
        parts += [f"{shared:,} wavefronts"] if shared else []
        parts += [f"{sectors:,} sectors"] if sectors else []
        return f"{Path(self.file).name}:{self.line}{what}: {', '.join(parts)}"


@dataclass(frozen=True)
class Result:
    """A launch that ran to its end. Prints as a table of its counts."""

    counts: Counts
    findings: tuple[Finding, ...]
    steps: int  # instructions that warps executed
    instructions: tuple[Line, ...]  # in the order of the PTX, also those never executed
    source_lines: tuple[Line, ...]  # by file and line; empty without -lineinfo
    trace: str  # JSON for https://ui.perfetto.dev; empty unless blocks were traced
    hints: tuple[Hint, ...] = ()
    suppressed: int = 0  # findings that `ignore` or a comment left out
    printed: str = ""  # by printf and assert

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are more than advice."""
        return tuple(each for each in self.findings if each.severity == "error")

    @property
    def ok(self) -> bool:
        """No checker found an error."""
        return not self.errors

    def by_line(self) -> tuple[Line, ...]:
        """Lines that did something: of the source where it is known, else of the PTX."""
        lines = self.source_lines or self.instructions
        return tuple(line for line in lines if line.counts["instructions"])

    def __str__(self) -> str:
        return "\n".join([str(self.counts), *map(str, self.findings)])


def result_of(data: Mapping[str, Any], file: str, trace: str) -> Result:
    return Result(
        counts=Counts(data["counts"]),
        findings=tuple(finding_of(each) for each in data["findings"]),
        steps=data["steps"],
        instructions=lines_of(data["by_instruction"], file),
        source_lines=lines_of(data["by_source"], file),
        trace=trace,
        hints=tuple(Hint(**each) for each in data["hints"]),
        suppressed=data["suppressed"],
        printed=data["printed"],
    )


def finding_of(data: Mapping[str, Any]) -> Finding:
    where = diagnostic(data["diagnostic"])
    return Finding(data["checker"], data["message"], data["count"], where, data["severity"])


def lines_of(rows: Sequence[Mapping[str, Any]], file: str) -> tuple[Line, ...]:
    return tuple(
        Line(row.get("file", file), row["line"], row.get("opcode", ""), Counts(row["counts"]))
        for row in rows
    )
