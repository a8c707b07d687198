# SPDX-License-Identifier: MIT
"""What the tests of the Python packages share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build")


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def build() -> Path:
    return BUILD


class Case:
    """Inputs and what attention is, in float64."""

    def __init__(
        self, shape: tuple[int, int, int, int], seq_kv: int = 0, dtype: str = "float16"
    ) -> None:
        batch, heads, seq_q, dim = shape
        kv = (batch, heads, seq_kv or seq_q, dim)
        random = np.random.default_rng(7)
        self.q, self.k, self.v = (
            random.normal(size=each).astype(dtype) for each in (shape, kv, kv)
        )

    def expected(
        self,
        causal: bool = False,
        scale: float | None = None,
        window: Sequence[int | None] = (None, None),
        sinks: Sequence[float] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(O, LSE)"""
        q, k, v = (each.astype(np.float64) for each in (self.q, self.k, self.v))
        scores = (q @ k.swapaxes(2, 3)) * (scale or q.shape[3] ** -0.5)
        rows, keys = np.indices(scores.shape[2:])
        behind = keys - (rows + k.shape[2] - q.shape[2])  # the place of a row
        left, right = (np.inf if each in (None, -1) else each for each in window)
        scores[..., (behind < -left) | (behind > (0 if causal else right))] = -np.inf
        if sinks is not None:  # a key of its own, whose value is 0
            sink = np.broadcast_to(np.reshape(sinks, (1, -1, 1, 1)), (*scores.shape[:3], 1))
            scores = np.concatenate([scores, sink], axis=3)
            v = np.concatenate([v, np.zeros_like(v[:, :, :1])], axis=2)
        largest = np.maximum(scores.max(axis=3, keepdims=True), -1e300)
        weights = np.exp(scores - largest)
        total = weights.sum(axis=3, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (np.log(total) + largest)[..., 0]
        return weights @ v / np.where(total > 0, total, 1), lse


@pytest.fixture
def case() -> type[Case]:
    return Case
