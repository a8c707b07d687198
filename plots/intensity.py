# SPDX-License-Identifier: MIT
"""Arithmetic intensity: operations for each byte of memory traffic, from the shapes alone.

All functions count every head; element sizes follow the problem's dtype. They model traffic between
memory and the multiprocessors; what a cache saves of it is not in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import limits
from ladder import LadderError, Problem, Results, Row

ELEMENT = {"float16": 2, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True)
class Work:
    flops: float
    bytes: float

    @property
    def intensity(self) -> float:
        """FLOP/byte."""
        return self.flops / self.bytes


def standard(problem: Problem) -> Work:
    """Both products with the softmax between them as separate steps: S written and read, P written
    and read, Q, K, V and O once."""
    heads, element = _heads(problem), ELEMENT[problem.dtype]
    matrices = 4 * problem.seq_q * problem.seq_kv
    return Work(_flops(problem), once(problem).bytes + heads * element * matrices)


def fused(problem: Problem, rows: int) -> Work:
    """A block for every tile of `rows` queries: Q and O once, K and V once for each tile."""
    if rows < 1:
        raise LadderError(f"a tile of {rows} rows")
    heads, element = _heads(problem), ELEMENT[problem.dtype]
    tiles = -(-problem.seq_q // rows)
    elements = 2 * problem.seq_q + tiles * 2 * problem.seq_kv
    return Work(_flops(problem), heads * element * elements * problem.head_dim)


def once(problem: Problem) -> Work:
    """Q, K, V and O moved once: no kernel can do with less."""
    heads, element = _heads(problem), ELEMENT[problem.dtype]
    elements = 2 * (problem.seq_q + problem.seq_kv) * problem.head_dim
    return Work(_flops(problem), heads * element * elements)


def _heads(problem: Problem) -> int:
    if problem.causal:
        raise LadderError(f"intensity is not modelled for {problem.label}")
    return problem.batch * problem.heads


def _flops(problem: Problem) -> float:
    return 4.0 * _heads(problem) * problem.seq_q * problem.seq_kv * problem.head_dim


# --- of measured rows -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ceilings:
    """What the card was measured to sustain: by bare loops (fa limits), else by a large matrix
    product and a large copy in the same result file."""

    arithmetic: tuple[tuple[str, float], ...]  # name and TFLOPS, the highest first
    traffic: str  # what gbs is the rate of
    gbs: float
    l2_gbs: float | None = None

    @property
    def tflops(self) -> float:
        return self.arithmetic[0][1]

    @property
    def ridge(self) -> float:
        """FLOP/byte from which on arithmetic is the limit."""
        return 1e3 * self.tflops / self.gbs


def ceilings(results: Results, problem: Problem) -> Ceilings:
    return bare_loops(results, problem) or large_operations(results, problem)


def bare_loops(results: Results, problem: Problem) -> Ceilings | None:
    """None where limits.json is missing or has not all of them."""
    measured = limits.Limits.beside(results)
    read = measured.traffic("memory_read") if measured else None
    if measured is None or read is None:
        return None
    families = ((family, measured.of_family(family)) for family in limits.FAMILIES[problem.dtype])
    steady = any(row.steady for row in results.rows)
    lines = tuple(
        (f"limit: {limits.NAMES[family]}", rate.back_to_back if steady else rate.spaced)
        for family, rate in families
        if rate
    )
    return Ceilings(lines, "reads", read, measured.traffic("l2_read")) if lines else None


def large_operations(results: Results, problem: Problem) -> Ceilings:
    matmul = results.matmul(problem)
    copy = results.copy(problem)
    if matmul is None or matmul.problem.dtype != problem.dtype:
        raise LadderError(f"{results.name} has no time of a {problem.dtype} matrix product")
    if copy is None:
        raise LadderError(f"{results.name} has no time of a copy")
    product = (("cuBLAS product", matmul.tflops),)
    return Ceilings(product, "a copy", float(copy.data["gbs"]))


def stores_scores(row: Row) -> bool:
    """Whether the row's memory holds at least one matrix of scores beside the tensors."""
    shape = row.problem
    matrix = shape.batch * shape.heads * shape.seq_q * shape.seq_kv * ELEMENT[shape.dtype]
    beside = (row.data.get("peak_bytes") or 0) - tensor_bytes(shape)
    return beside >= matrix


def tensor_bytes(problem: Problem) -> int:
    """Q, K, V and O."""
    elements = 2 * (problem.seq_q + problem.seq_kv) * problem.head_dim
    return problem.batch * problem.heads * elements * ELEMENT[problem.dtype]


def tile_rows(data: Mapping[str, Any]) -> int:
    """ "64x128w4" -> 64."""
    rows, _, rest = str(data.get("variant", "")).partition("x")
    if not rows.isdigit() or not rest:
        raise LadderError(f"'{data.get('variant')}' is not a tile")
    return int(rows)


def uncached(row: Row) -> float:
    """FLOP/byte of a rung if all that its tiles read came from memory."""
    if stores_scores(row):
        return standard(row.problem).intensity
    return fused(row.problem, tile_rows(row.data)).intensity
