# SPDX-License-Identifier: MIT
"""table:ncu, the virtual machine's counts against hardware counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ladder import LadderError, Problem, read_json

from pages.numbers import grouped
from pages.results import markdown_table
from pages.site import NOTHING, Site


def count_sum(counts: dict[str, int], keys: tuple[str, ...]) -> int:
    return sum(
        -counts.get(key[1:], 0) if key.startswith("-") else counts.get(key, 0) for key in keys
    )


# Heading -> (counters of ncu, counts of the machine), each summed.
NCU_COLUMNS = {
    "`mma`, `wgmma`": (("tensor_pipe", "-tensor_pipe_hfma2"), ("tensor", "wgmma")),
    "`ldmatrix`": (("ldmatrix",), ("ldmatrix",)),
    "`cp.async`": (("cp_async",), ("cp_async",)),
    "bulk copies": (("bulk_load",), ("bulk_copy", "-bulk_store_copies")),
    "their bytes": (("bulk_load_bytes",), ("bulk_load_bytes",)),
    "load sectors": (("global_load_sectors",), ("global_copy_sectors", "global_load_sectors")),
    "store sectors": (("global_store_sectors",), ("global_store_sectors",)),
    "wavefronts of `wgmma`": (("wgmma_wavefronts",), ("wgmma_wavefronts",)),
    "wavefronts of loads": (
        ("shared_load_wavefronts",),
        ("ldmatrix_wavefronts", "shared_load_wavefronts"),
    ),
    "wavefronts of stores": (
        ("shared_store_wavefronts",),
        ("stmatrix_wavefronts", "shared_store_wavefronts"),
    ),
}


def deviation(counted: int, measured: int) -> str:
    if counted == measured:
        return "equal" if measured else NOTHING
    if measured == 0:
        return f"{grouped(counted)} against 0"
    factor = counted / measured
    sign = "\N{MINUS SIGN}" if factor < 1 else "+"
    return f"{sign}{abs(100 * (factor - 1)):.2f} %"


def profiled(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, int]]:
    """Hardware counters of each kernel instance, those of its launches added up."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        own = sums.setdefault((row["id"], row["variant"]), {})
        for name, value in row["counters"].items():
            own[name] = own.get(name, 0) + value
    return sums


def ncu_table(site: Site, page: Path, name: str) -> str:
    """Machine / hardware, at the same problem: h200/NAME.json and vm/counts.json, where NAME is ncu.
    Kernels and counts without a difference are named below the table."""

    def take(profile: Any) -> tuple[Problem, str, Any]:
        device, counters = profile["device"]["name"], profiled(profile["rows"])
        return Problem.from_json(profile["problem"]), device, counters

    path = site.results_path(f"h200/{name}")
    problem, device, counters = read_json(path, "a file of profile.sh", take)
    counted = {
        (row.id, row.variant): row.data["counts"]
        for row in site.results(f"vm/{name.replace('ncu', 'counts')}").rows
        if replace(row.problem, cache="", dtype=problem.dtype) == problem
    }
    rows: dict[str, list[str]] = {}
    for (id, variant), measured in counters.items():
        if (id, variant) not in counted:
            what = f"{id} {variant} at {problem.label}, which is not what was counted"
            raise LadderError(f"{path.name}: profiled {what}")
        rows[f"{id} {variant}"] = [
            deviation(count_sum(counted[id, variant], keys), count_sum(measured, names))
            for names, keys in NCU_COLUMNS.values()
        ]
    same = [kernel for kernel, cells in rows.items() if set(cells) <= {"equal", NOTHING}]
    columns = list(zip(NCU_COLUMNS, *rows.values(), strict=True))
    shown = [at for at, cells in enumerate(columns) if not set(cells[1:]) <= {"equal", NOTHING}]
    head = ["machine minus hardware", *(columns[at][0] for at in shown)]
    lines = [[kernel, *(cells[at] for at in shown)] for kernel, cells in rows.items() if kernel not in same]
    equal = [column[0] for at, column in enumerate(columns) if at not in shown]
    others = f" Equal in all kernels: {', '.join(equal)}." if equal else ""
    unlike = {kernel.split()[0] for kernel in rows if kernel not in same}
    short = dict.fromkeys(each if each.split()[0] in unlike else each.split()[0] for each in same)
    others += f" Equal in all counts: {', '.join(short)}." if same else ""
    return f"{markdown_table(head, lines)}\n{device}, {shape_of(problem)}.{others}\n"


def shape_of(problem: Problem) -> str:
    heads = f"{problem.heads}/{problem.kv_heads}" if problem.kv_heads else str(problem.heads)
    few = problem.seq_q != problem.seq_kv
    keys = f"Nq={problem.seq_q} Nkv={problem.seq_kv}" if few else f"N={problem.seq_q}"
    return f"B={problem.batch} H={heads} {keys} D={problem.head_dim}"
