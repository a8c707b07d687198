# SPDX-License-Identifier: MIT
"""All .cu files below a folder: what compiles, and which kernels would run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import ptxvm

from foreign.case import Outcome, one_line


def survey_file(path: Path, folder: Path, arch: int) -> Iterator[Outcome]:
    """One row a kernel that has a reason, one for all that would run."""
    name = str(path.relative_to(folder))
    begin = time.monotonic()
    includes = [f"-I{path.parent}", *(f"-I{each}" for each in (folder, folder / "Common"))]
    try:
        module = ptxvm.nvcc(path, "sm_90a" if arch == 90 else f"sm_{arch}", includes)
    except ptxvm.Error as error:
        reason = str(error).splitlines()
        said = next((each for each in reason if "error" in each), reason[0])
        yield Outcome(name, folder.name, arch, reason=said, seconds=time.monotonic() - begin)
        return
    refused = [each for each in module.kernels.values() if each.errors or each.unsupported]
    seconds = time.monotonic() - begin
    if len(refused) < len(module.kernels):
        count = len(module.kernels) - len(refused)
        outcome = Outcome(f"{name}: {count} would run", folder.name, arch, True, True)
        outcome.seconds = seconds
        yield outcome
    for kernel in refused:
        reason = one_line(Exception(str((*kernel.errors, *kernel.unsupported)[0])))
        yield Outcome(f"{name}: {kernel.readable}", folder.name, arch, reason=reason)


def survey(folder: Path, arch: int) -> list[Outcome]:
    """Rows of all files, in the order of their names; "ran" says that kernels would run."""
    outcomes: list[Outcome] = []
    for path in sorted(folder.rglob("*.cu")):
        outcomes += survey_file(path, folder, arch)
        print(f"{path.relative_to(folder)}: {outcomes[-1].reason or 'would run'}", flush=True)
    return outcomes
