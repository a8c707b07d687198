# SPDX-License-Identifier: MIT
"""Diagnostics of the machine, and the exceptions that carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_MESSAGE = 40  # lines


@dataclass(frozen=True)
class Diagnostic:
    """One message and the line it points at. Lines and columns count from 1; 0 means unknown."""

    file: str
    line: int
    column: int
    length: int  # characters to underline, from `column`
    message: str
    text: str  # the line itself
    notes: tuple[str, ...]  # how the line came to be, where it happened
    formatted: str  # all of it, as a terminal shows it

    def __str__(self) -> str:
        return self.formatted


def diagnostic(data: Mapping[str, Any]) -> Diagnostic:
    return Diagnostic(**{**data, "notes": tuple(data["notes"])})


class Error(Exception):
    """What the machine refuses, or a kernel that failed; the text is that of the diagnostics, cut
    where it is long."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(shortened(message))
        self.diagnostics = tuple(diagnostics)


def shortened(message: str) -> str:
    lines = message.splitlines()
    if len(lines) <= LONGEST_MESSAGE:
        return message
    rest = len(lines) - LONGEST_MESSAGE + 1
    last = f"... {rest} more lines; the exception's `diagnostics` has all of it"
    return "\n".join([*lines[: LONGEST_MESSAGE - 1], last])


class ParseError(Error):
    """The text is not PTX."""


class LaunchError(Error):
    """The launch is refused: arguments that do not fit, a grid out of range, an instruction that
    the machine does not run."""


class KernelFault(Error):
    """The kernel did what no correct kernel does, and was stopped. The arrays are unchanged."""

    def __init__(self, fault: Mapping[str, Any]) -> None:
        where = diagnostic(fault["diagnostic"])
        super().__init__(where.formatted, [where])
        self.kind: str = fault["kind"]  # "out of bounds", "deadlock", ...
        self.block: tuple[int, int, int] = tuple(fault["block"])
        self.warp: int = fault["warp"]  # -1 where it does not apply
        self.lane: int = fault["lane"]


BY_KIND: dict[str, type[Error]] = {"parse": ParseError, "launch": LaunchError}


def error_of(data: Mapping[str, Any]) -> Exception:
    """The exception for an error text of the C interface."""
    if data["kind"] == "memory":
        return MemoryError(data["message"])
    kind = BY_KIND.get(data["kind"], Error)
    return kind(data["message"], [diagnostic(each) for each in data["diagnostics"]])
