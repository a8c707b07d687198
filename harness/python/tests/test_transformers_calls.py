# SPDX-License-Identifier: MIT
"""What flash_ladder.transformers makes of a call by transformers; needs neither it nor torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import flash_ladder
import flash_ladder.transformers as ours
import numpy as np
import pytest

PLAIN = {"rung": "best", "causal": True, "window": None, "sinks": None, "scale": None}


class Mask:
    """What is used of a tensor."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def __eq__(self, other: object) -> Any:
        return self.values == other

    def all(self) -> Any:
        return self.values.all()

    def __getitem__(self, index: Any) -> Mask:
        return Mask(self.values[index])


def call(is_causal: bool = True, mask: Any = None, **options: Any) -> dict[str, Any]:
    """The options with which flash_ladder.attention is called."""
    with mock.patch.object(flash_ladder, "attention") as called:
        module = SimpleNamespace(is_causal=is_causal)
        o, weights = ours.attention(module, "q", "k", "v", mask, **options)
    assert called.call_args.args == ("q", "k", "v") and weights is None
    called.return_value.transpose.assert_called_once_with(1, 2)
    assert o is called.return_value.transpose.return_value
    return dict(called.call_args.kwargs)


def test_arguments() -> None:
    sinks = mock.Mock()
    assert call() == PLAIN
    assert call(scaling=0.5, rung="36") == PLAIN | {"scale": 0.5, "rung": "36"}
    assert call(s_aux=sinks) == PLAIN | {"sinks": sinks.float.return_value}
    assert call(sliding_window=4) == PLAIN | {"window": (3, 0)}
    both = PLAIN | {"causal": False, "window": (3, 3)}
    assert call(is_causal=False, sliding_window=4) == both
    assert call(is_causal=False) == PLAIN | {"causal": False} == call(**{"is_causal": False})
    assert call(position_ids="what the kernel need not know", use_cache=True, softcap=None) == PLAIN
    assert call(mask=Mask(np.ones((2, 9), bool))) == PLAIN
    for seen in (np.ones((1, 1, 9, 9), bool), np.zeros((1, 1, 9, 9), np.float32)):
        assert call(mask=Mask(seen)) == PLAIN | {"causal": False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 0.1}, "dropout is 0.1; allowed: 0"),
        ({"softcap": 30.0}, "softcap is given"),
        ({"output_attentions": True}, "output_attentions is given"),
        ({"mask": Mask([[0, 1], [1, 1]])}, r"attention_mask of shape \(2, 2\) hides keys"),
        ({"mask": Mask(np.full((1, 1, 1, 1), -1e9))}, r"attention_mask of shape .* hides keys"),
    ],
)
def test_calls_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(flash_ladder.Refused, match=message):
        call(**options)


SEQ = {"batch_size": 2, "q_length": 4, "kv_length": 9, "q_offset": 5}


def test_there_is_no_mask() -> None:
    assert ours.mask(**SEQ) is None
    assert ours.mask(**SEQ, attention_mask=Mask(np.ones((2, 9)))) is None
    hidden = np.ones((2, 12))
    hidden[:, :3] = 0  # behind the window of the cache
    sliding = SEQ | {"kv_offset": 3, "q_offset": 8, "local_size": 6}
    assert ours.mask(**sliding, attention_mask=Mask(hidden)) is None
    cross = SEQ | {"q_offset": 0, "allow_is_causal_skip": False}
    assert ours.mask(**cross, allow_is_bidirectional_skip=True) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_mask": Mask([[0, 1, 1, 1, 1, 1, 1, 1, 1]])}, "hides keys"),
        ({"kv_length": 32}, "the cache has 32 keys, and not all are there"),
        ({"q_offset": np.array(5)}, "the cache has 9 keys, and not all are there"),
        ({"allow_is_causal_skip": False}, "the model asks for a mask of its own"),
        ({"local_size": 6, "config": SimpleNamespace(attention_chunk_size=6)}, "as for chunks"),
    ],
)
def test_masks_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(flash_ladder.Refused, match=message):
        ours.mask(**SEQ | options)
