# SPDX-License-Identifier: MIT
"""Attention of arrays in host memory: the rungs' PTX on the virtual machine."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flash_ladder import _best, _native, _paths
from flash_ladder._errors import Refused
from flash_ladder._problem import Problem, make_problem

Array = NDArray[Any]


def attention(
    q: Array, k: Array, v: Array, *, rung: str, causal: bool, scale: float | None, lse: bool
) -> tuple[Array, Array | None]:
    """O and, if asked for, the log-sum-exp of every row."""
    arrays = {"q": q, "k": k, "v": v}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise Refused(f"{name} is a {type(array).__name__}; allowed: as q, a numpy array")
    problem = make_problem(
        [array.shape for array in arrays.values()],
        [array.dtype.name for array in arrays.values()],
        causal=causal,
        scale=scale,
        lse=lse,
    )
    # Copies only what is strided: arrays on the host are small.
    inputs = [np.ascontiguousarray(array) for array in arrays.values()]
    o = np.empty(q.shape, q.dtype)
    rows = np.empty(q.shape[:3], np.float32) if lse else None
    run(problem, rung, [array.ctypes.data for array in (*inputs, o)], rows)
    return o, rows


def run(problem: Problem, rung: str, addresses: list[int], lse: Array | None) -> None:
    """Runs the rung on q, k, v and o at these addresses."""
    library, message = _native.library(), _native.Message()
    given = _native.c_problem(problem)

    def takes(candidate: str) -> str:
        word = candidate.encode()
        message.check(
            library.fa_attention_machine_takes(given, word, message.buffer, _native.MESSAGE_BYTES)
        )
        return candidate

    chosen = _best.first_that_takes(problem, rung, takes)
    message.check(
        library.fa_attention_run_on_machine(
            given,
            chosen.encode(),
            os.fsencode(_paths.ptx_folder()),
            *addresses,
            lse.ctypes.data if lse is not None else None,
            message.buffer,
            _native.MESSAGE_BYTES,
        )
    )
