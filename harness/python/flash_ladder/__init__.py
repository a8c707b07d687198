# SPDX-License-Identifier: MIT
"""Flash Ladder's attention kernels from Python.

  import numpy as np, flash_ladder
  q, k, v = np.random.default_rng(1).normal(size=(3, 1, 2, 256, 128)).astype(np.float16)
  o = flash_ladder.attention(q, k, v, rung="06")

CUDA tensors of PyTorch run on their GPU; numpy arrays, and CPU tensors, run the same kernels' PTX
on the virtual machine, whose checkers watch every access. Neither torch nor a GPU is needed.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

from flash_ladder._commands import (
    Bench,
    CheckReport,
    Explanation,
    Rung,
    bench,
    check,
    explain,
    rungs,
)
from flash_ladder._errors import EnvironmentFailure, KernelError, Refused

__all__ = [
    "Bench",
    "CheckReport",
    "EnvironmentFailure",
    "Explanation",
    "KernelError",
    "Refused",
    "Rung",
    "attention",
    "bench",
    "check",
    "explain",
    "rungs",
]

try:
    __version__ = importlib.metadata.version("flash-ladder")
except importlib.metadata.PackageNotFoundError:  # the source tree
    __version__ = "source"


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    rung: str = "best",
    causal: bool = False,
    window: Any = None,
    sinks: Any = None,
    scale: float | None = None,
    return_lse: bool = False,
    lengths: Any = None,
    page_table: Any = None,
    kv_scales: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
) -> Any:
    """softmax(q k^T * scale) v, computed by one rung of the ladder.

    q is [batch, heads, seq_q, dim], k and v are [batch, kv_heads, seq_kv, dim], all float16, all
    bfloat16 or all float32: torch tensors of one device, or numpy arrays. Query heads share those
    of k and v where kv_heads is a divisor of heads and the rung takes that. The result is like q;
    with return_lse it is a pair, the second [batch, heads, seq_q] in float32: the natural logarithm
    of the sum of the exponentials of each row's scaled scores.

    Some rungs take views, such as x.transpose(1, 2) of [batch, seq, heads, dim], as they lie: the
    last dimension contiguous, the other strides multiples of 16 bytes. Nothing is copied, and the
    result is in q's order in memory.

    rung    its number or name ("06", "06_batched"; see rungs()). "best" is the fastest that takes
            the problem, by the committed times at the nearest measured one; where many queries want
            the log-sum-exp or gradients, it is 39, whose O is the most precise then. So O can
            differ in its last bits from that of a call that wants neither.
    causal  query i sees keys j <= i + keys - seq_q only. A row that sees none is 0.
    window  (left, right): a query sees its own key, i + keys - seq_q, and left keys before and
            right keys after it only. None or -1: no bound.
    sinks   [heads], float32: a score of each head that takes its share of the softmax and has no
            value; the log-sum-exp contains it.
    scale   above 0 and at most 8192; None is 1/sqrt(dim).

    A packed batch, which rung 39 takes: q is [rows, heads, dim], k and v
    are [keys, kv_heads, dim] with the rows of all sequences, one sequence behind another, and the
    log-sum-exp is [heads, rows].

    cu_seqlens_q  [sequences + 1], int32: the first row of each sequence, then the number of rows.
                  On q's GPU if q is: only the kernel reads the values, so a graph may be replayed
                  with others of the same sums. They must begin with 0, end with the number of rows
                  and not fall.
    cu_seqlens_k  the same of k and v. A sequence may have no queries or no keys.

    New queries against a cache of keys, up to 16 an entry, which the rungs from 40 to 53 take:

    lengths     [batch]: the keys of each batch entry, from 0 to seq_kv, one of them above 0. A list
                or an array on the host: the launch depends on the values. An entry without keys
                is 0. None: all have seq_kv.
    page_table  [batch, pages of an entry], int32: k and v are [pages, kv_heads, page, dim], and key
                j of entry b lies in page page_table[b, j // page]. Beyond lengths it may hold
                anything.
    kv_scales   [2, batch, kv_heads], float32: k and v are float8_e4m3fn, in numpy uint8 with its
                bits, and stand for their values times the scale of their head, k's first, then v's.
                A scale is finite and above 0. The bits of NaN (0x7f, 0xff) are read as 480, -480.

    The elements are finite, and no score (scale times a dot product of q and k) exceeds 8000 in
    magnitude: so far every rung is checked. float32 holds larger ones so coarsely that the softmax
    loses accuracy, and from 10**8 on a result may be infinite, NaN or wrong. Nothing looks for such
    scores.

    On a GPU the rung is enqueued on the current stream, and nothing waits for it, nor looks at the
    values of page_table and kv_scales: a page that is out of range reads what is no key.

    The result of torch tensors, not of float32, can be differentiated once by q, k, v and sinks,
    with causal, window, scale and cu_seqlens: the fastest of the rungs 61 to 73 computes the
    gradients, 72 where PyTorch wants deterministic algorithms. The log-sum-exp has no gradient.

    Raises Refused (a ValueError) for a problem that the rung does not take.
    """
    # A call takes microseconds, of which an import that finds its module takes one.
    compute = _COMPUTES.get(type(q)) or _compute_for(q)
    return compute(
        q,
        k,
        v,
        rung=rung,
        causal=causal,
        window=window,
        sinks=sinks,
        scale=scale,
        lse=return_lse,
        lengths=lengths,
        page_table=page_table,
        kv_scales=kv_scales,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
    )


_COMPUTES: dict[type, Callable[..., Any]] = {}  # by the type of q; torch and numpy when first used


def _compute_for(q: Any) -> Callable[..., Any]:
    import numpy as np  # not needed for anything else here

    if isinstance(q, np.ndarray):
        from flash_ladder import _machine

        compute = _machine.attention
    else:
        try:
            import torch

            from flash_ladder import _torch
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise Refused(
                f"q is a {type(q).__name__}; allowed: a numpy array (torch is not installed)"
            ) from error
        if torch.compiler.is_compiling():  # what is stored would have it compiled again
            return _torch.attention
        compute = _torch.attention
    _COMPUTES[type(q)] = compute
    return compute
