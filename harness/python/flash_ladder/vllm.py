# SPDX-License-Identifier: MIT
"""The call that vLLM makes of FlashAttention, computed by a rung: packed batches, and new queries
against pages of keys.

  from flash_ladder.vllm import flash_attn_varlen_func
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flash_ladder
from flash_ladder._errors import Refused

# Arguments of FlashAttention that no rung has, with the values that say so.
NEITHER: dict[str, tuple[Any, ...]] = {
    "dropout_p": (0, None),
    "softcap": (0, None),
    "alibi_slopes": (None,),
    "return_attn_probs": (False,),
    "q_descale": (None,),
    "k_descale": (None,),
    "v_descale": (None,),
}
# Advice about the work and its order, which rungs do not need.
ADVICE = {"deterministic", "scheduler_metadata", "num_splits", "fa_version", "max_seqlen_k"}


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    max_seqlen_q: int,
    cu_seqlens_q: Any,
    *,
    cu_seqlens_k: Any = None,
    seqused_k: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Sequence[int] | None = None,
    block_table: Any = None,
    return_softmax_lse: bool = False,
    out: Any = None,
    s_aux: Any = None,
    rung: str = "best",
    **others: Any,
) -> Any:
    """[rows, heads, dim] of q [rows, heads, dim], the rows of all sequences one behind another.

    Without block_table k and v are [keys, kv_heads, dim], and cu_seqlens_k says where sequences
    begin. With it they are [pages, page, kv_heads, dim]: key j of sequence b lies in page
    block_table[b, j // page], seqused_k has the number of keys of each sequence, and every sequence
    has max_seqlen_q rows of q, at most 16. Nothing is copied but the result, where `out` is given.
    return_softmax_lse adds the log-sum-exp, [heads, rows]. Raises Refused as flash_ladder.attention
    does, and for what no rung computes.
    """
    for name, value in others.items():
        if name in ADVICE:
            continue
        if name not in NEITHER:
            raise TypeError(f"flash_attn_varlen_func() has no argument '{name}'")
        is_number = isinstance(value, (int, float))
        if not any(value is each or (is_number and value == each) for each in NEITHER[name]):
            given = repr(value) if is_number else f"a {type(value).__name__}"
            raise Refused(f"{name} is {given}; allowed: {NEITHER[name][0]!r}")
    window = None if window_size is None else (int(window_size[0]), int(window_size[1]))
    options = {
        "rung": rung,
        "causal": causal,
        "window": None if window == (-1, -1) else window,
        "sinks": s_aux,
        "scale": softmax_scale,
        "return_lse": return_softmax_lse,
    }
    if block_table is None:
        if seqused_k is not None:
            raise Refused("seqused_k is given without block_table; allowed: cu_seqlens_k alone")
        result = flash_ladder.attention(
            q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, **options
        )
    else:
        result = paged(q, k, v, max_seqlen_q, block_table, seqused_k, options)
    o, lse = result if return_softmax_lse else (result, None)
    if out is not None:
        out[...] = o
        o = out
    return (o, lse) if return_softmax_lse else o


def paged(
    q: Any, k: Any, v: Any, queries: int, block_table: Any, lengths: Any, options: dict[str, Any]
) -> Any:
    """O, or with a log-sum-exp a pair, of the same number of queries in each sequence."""
    batch = block_table.shape[0]
    rows, heads, dim = q.shape
    # None has more than `queries`, so all have as many if together they have all rows.
    if rows != batch * queries:
        raise Refused(
            f"{batch} sequences of at most {queries} queries have {rows} rows; allowed with pages:"
            " as many queries in each"
        )
    result = flash_ladder.attention(
        q.reshape(batch, queries, heads, dim).swapaxes(1, 2),
        k.swapaxes(1, 2),
        v.swapaxes(1, 2),
        lengths=lengths,
        page_table=block_table,
        **options,
    )
    o, lse = result if options["return_lse"] else (result, None)
    o = o.swapaxes(1, 2).reshape(rows, heads, dim)
    return (o, lse.swapaxes(0, 1).reshape(heads, rows)) if lse is not None else o
