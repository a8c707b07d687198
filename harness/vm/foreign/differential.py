# SPDX-License-Identifier: MIT
"""Every launch of a kernel in several ways: it is one program, and must do the same in each."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ptxvm
from ptxvm import _module

# Host threads, and whether warps and blocks take their turns last to first.
WAYS = ((1, False), (2, False), (1, True), (2, True))


class Different(AssertionError):
    """The kernel did something else when it was run in another way."""


def places(kernel: ptxvm.Kernel, arguments: Any) -> list[tuple[int, int]]:
    """Address and size of all that a launch may write."""
    variables = kernel.module.variables.values()
    return [(each.data, each.bytes) for each in arguments.buffers] + [
        (each.bytes.ctypes.data, each.bytes.nbytes) for each in variables
    ]


def shown(result: ptxvm.Result) -> dict[str, object]:
    """What must be the same, whichever warps an example of a finding names."""
    return {
        "findings": sorted({(each.severity, each.checker) for each in result.findings}),
        "counts": dict(result.counts),
    }


@contextmanager
def every_way(by_order: Sequence[str]) -> Iterator[None]:
    """Launches in here run once more for each way. `by_order`: what depends on the order of warps
    or blocks ("output", "counts"), and is compared between numbers of threads alone."""
    run = _module.Kernel._run

    def run_all(kernel: ptxvm.Kernel, config: Any, arguments: Any) -> ptxvm.Result:
        written = places(kernel, arguments)
        before = [ctypes.string_at(*each) for each in written]
        given = (config.threads, config.reversed)

        def again(threads: int, reverse: bool) -> ptxvm.Result:
            for (address, size), data in zip(written, before, strict=True):
                ctypes.memmove(address, data, size)
            config.threads, config.reversed = threads, reverse
            return run(kernel, config, arguments)

        firsts: dict[tuple[str, bool], tuple[object, int, bool]] = {}
        for threads, reverse in WAYS:
            seen = shown(again(threads, reverse))
            seen["output"] = [ctypes.string_at(*each) for each in written]
            differ = []
            for what, value in seen.items():
                key = (what, reverse and what in by_order)
                first = firsts.setdefault(key, (value, threads, reverse))
                if first[0] != value:
                    differ.append(f"{what} than with threads={first[1]}, reverse={first[2]}")
            if differ:
                raise Different(
                    f"{kernel.readable}, threads={threads}, reverse={reverse}: "
                    f"other {', '.join(differ)}"
                )
        return again(*given)

    _module.Kernel._run = run_all  # type: ignore[method-assign]
    try:
        yield
    finally:
        _module.Kernel._run = run  # type: ignore[method-assign]
