# SPDX-License-Identifier: MIT
"""The attention problem, and what is wrong with the arguments that should make one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flash_ladder._errors import Refused

DTYPES = ("float16", "float32")  # as the C interface numbers them


@dataclass(frozen=True)
class Problem:
    """One forward pass. Query i of a causal one sees keys j <= i + seq_kv - seq_q."""

    batch: int
    heads: int
    seq_q: int
    seq_kv: int
    head_dim: int
    causal: bool
    dtype: str
    lse: bool
    scale: float
    kv_heads: int  # a divisor of heads


def make_problem(
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
    *,
    causal: bool,
    scale: float | None,
    lse: bool,
) -> Problem:
    """The problem of q, k and v with these shapes and dtypes; Refused where they make none."""
    q, k, v = (tuple(int(extent) for extent in shape) for shape in shapes)
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) != 4:
            raise Refused(
                f"{name} has shape {shape}; allowed: 4 dimensions (batch, heads, seq, dim)"
            )
    if k != v:
        raise Refused(f"k has shape {k} and v {v}; they must be the same")
    if not k[1] or q[1] % k[1]:
        raise Refused(f"q has heads {q[1]} and k {k[1]}; those of k must divide those of q")
    for what, axis in (("batch", 0), ("dim", 3)):
        if q[axis] != k[axis]:
            raise Refused(f"q has {what} {q[axis]} and k {k[axis]}; they must be the same")
    if len(set(dtypes)) != 1 or dtypes[0] not in DTYPES:
        raise Refused(
            f"q, k and v have dtypes {', '.join(dtypes)}; allowed: all three {' or '.join(DTYPES)}"
        )
    return Problem(
        batch=q[0],
        heads=q[1],
        seq_q=q[2],
        seq_kv=k[2],
        head_dim=q[3],
        causal=bool(causal),
        dtype=dtypes[0],
        lse=lse,
        scale=check_scale(scale, q[3]),
        kv_heads=k[1],
    )


def check_scale(scale: float | None, head_dim: int) -> float:
    if scale is None:
        return 1 / math.sqrt(head_dim) if head_dim > 0 else 1.0
    if not 0 < scale < math.inf:
        raise Refused(f"scale is {scale}; allowed: a finite number above 0, or None: 1/sqrt(dim)")
    return float(scale)
