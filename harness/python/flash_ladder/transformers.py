# SPDX-License-Identifier: MIT
"""Flash Ladder as an attention of Hugging Face transformers:

  import flash_ladder.transformers
  flash_ladder.transformers.register()
  model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="ladder")

It takes the tensors as the model has them, without a copy. What a mask would hide beyond causality
and a sliding window, such as padding, is refused.
"""

from __future__ import annotations

import inspect
from typing import Any

import flash_ladder
from flash_ladder._errors import EnvironmentFailure, Refused

NAME = "ladder"  # transformers looks for FlashAttention behind every name with "flash"


def register(rung: str = "best") -> str:
    """Makes the attention known to transformers; its name."""
    import transformers
    from transformers import masking_utils, modeling_utils

    if "q_offset" not in inspect.signature(masking_utils.sdpa_mask).parameters:
        raise EnvironmentFailure(
            f"transformers has version {transformers.__version__}; allowed: one whose functions for"
            " masks have an argument q_offset, such as 5.24"
        )

    def with_rung(*given: Any, **options: Any) -> tuple[Any, None]:
        return attention(*given, rung=rung, **options)

    modeling_utils.AttentionInterface.register(NAME, with_rung)
    masking_utils.AttentionMaskInterface.register(NAME, mask)
    return NAME


def attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any = None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    s_aux: Any = None,
    rung: str = "best",
    **others: Any,
) -> tuple[Any, None]:
    """[batch, seq, heads, dim] of query, key and value [batch, heads, seq, dim]."""
    if dropout:
        raise Refused(f"dropout is {dropout}; allowed: 0, as in model.eval()")
    for name in ("softcap", "position_bias", "output_attentions", "cu_seq_lens_q"):
        if others.get(name) is not None and others[name] is not False:
            raise Refused(f"{name} is given; flash_ladder.attention has none")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is not None:
        check_mask(attention_mask)
        causal = causal and attention_mask.ndim == 2  # one of four dimensions is all there is
    window = None
    if sliding_window is not None:
        window = (sliding_window - 1, 0 if causal else sliding_window - 1)
    o = flash_ladder.attention(
        query,
        key,
        value,
        rung=rung,
        causal=bool(causal),
        window=window,
        sinks=None if s_aux is None else s_aux.float(),
        scale=scaling,
    )
    return o.transpose(1, 2), None


def check_mask(mask: Any) -> None:
    """A mask of two dimensions, or of booleans, has 1 where a key is seen; others are added to the
    scores."""
    seen = mask if mask.ndim == 2 or not mask.is_floating_point() else mask == 0
    if not seen.all():
        raise Refused(
            f"attention_mask of shape {tuple(mask.shape)} hides keys; allowed: None, or one that"
            " hides none, as without padding"
        )


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    attention_mask: Any = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    config: Any = None,
    **_: Any,
) -> None:
    """What transformers asks for the mask of a layer: there is none but causality and the window,
    which the kernel knows. Refused where that would not be all."""
    if attention_mask is not None:
        check_mask(attention_mask[:, kv_offset : kv_offset + kv_length])
    if allow_is_bidirectional_skip:
        return
    end = kv_offset + kv_length
    if not isinstance(q_offset, int) or q_offset + q_length != end:
        raise Refused(
            f"the cache has {end} keys, and not all are there; allowed: one that grows, not static"
        )
    chunk = getattr(config, "attention_chunk_size", None)
    chunked = chunk is not None and local_size == chunk and end > chunk
    if chunked or not allow_is_causal_skip:
        raise Refused(
            "the model asks for a mask of its own, as for chunks, images or packed sequences, or"
            " because it is compiled without a cache, where nothing tells if they are; allowed:"
            " causality and a sliding window"
        )
