# SPDX-License-Identifier: MIT
"""Attention of arrays in host memory: the rungs' PTX on the virtual machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptxvm._interrupt import interruptible

from flash_ladder import _best, _native, _paths
from flash_ladder._errors import Refused
from flash_ladder._problem import (
    Problem,
    check_packed,
    check_rung,
    check_window,
    make_problem,
    sequence_lengths,
)

Array = NDArray[Any]


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    rung: str,
    causal: bool,
    scale: float | None,
    lse: bool,
    lengths: Any = None,
    page_table: Any = None,
    kv_scales: Any = None,
    window: Any = None,
    sinks: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
) -> Array | tuple[Array, Array]:
    """O or, if asked for, a pair of O and the log-sum-exp of every row."""
    inputs = {name: checked(name, array) for name, array in (("q", q), ("k", k), ("v", v))}
    packed = cu_seqlens_q is not None or cu_seqlens_k is not None
    if packed:
        check_packed([each.shape for each in inputs.values()], lengths, cu_seqlens_q, cu_seqlens_k)
        inputs = {name: each.swapaxes(0, 1)[None] for name, each in inputs.items()}
        q = inputs["q"]
    # Small, and often lists: any integers and numbers that fit will do.
    keys = converted("lengths", lengths, np.int32)
    cache = {
        "page_table": converted("page_table", page_table, np.int32),
        "kv_scales": converted("kv_scales", kv_scales, np.float32),
        "sinks": converted("sinks", sinks, np.float32),
    }
    starts = {
        "cu_seqlens_q": converted("cu_seqlens_q", cu_seqlens_q, np.int32),
        "cu_seqlens_k": converted("cu_seqlens_k", cu_seqlens_k, np.int32),
    }
    lengths_of: dict[str, Sequence[int]] = {}
    if packed:
        rows = {name: in_one_row(name, each) for name, each in starts.items() if each is not None}
        lengths_of = packed_lengths(rows, inputs["q"].shape[2], inputs["k"].shape[2])
    elif keys is not None:
        lengths_of = {"lengths": in_one_row("lengths", keys)}
    described: dict[str, Any] = {
        name: None if each is None else (each.shape, each.dtype.name)
        for name, each in cache.items()
    }
    order = sorted(range(q.ndim), key=lambda axis: -q.strides[axis])  # that of o in memory
    strides = [element_strides(name, array) for name, array in inputs.items()]
    problem = make_problem(
        [array.shape for array in inputs.values()],
        [dtype_name(array) for array in inputs.values()],
        **described,
        lengths=lengths_of.get("lengths"),
        query_lengths=lengths_of.get("query_lengths"),
        strides=[*strides, dense_strides(q.shape, order)],
        window=(-1, -1) if window is None else check_window(window),
        causal=causal,
        scale=scale,
        lse=lse,
    )
    chosen = choose(problem, rung)
    given = dict(inputs)
    made = np.empty([q.shape[axis] for axis in order], q.dtype)
    given["o"] = made.transpose(np.argsort(order))
    if lse:
        given["lse"] = np.empty(q.shape[:3], np.float32)
    given |= {name: array for name, array in (cache | starts).items() if array is not None}
    run(problem, chosen, {name: array.ctypes.data for name, array in given.items()})
    o = given["o"][0].swapaxes(0, 1) if packed else given["o"]
    if not lse:
        return o
    return o, given["lse"][0] if packed else given["lse"]


def packed_lengths(starts: dict[str, list[int]], rows: int, keys: int) -> dict[str, Sequence[int]]:
    """The lengths of both kinds, as make_problem takes them."""
    queries = sequence_lengths("cu_seqlens_q", starts["cu_seqlens_q"], rows)
    lengths = sequence_lengths("cu_seqlens_k", starts["cu_seqlens_k"], keys, len(queries))
    return {"query_lengths": queries, "lengths": lengths}


def checked(name: str, array: object) -> Array:
    if not isinstance(array, np.ndarray):
        raise Refused(f"{name} is a {type(array).__name__}; allowed: as q, a numpy array")
    if isinstance(array, np.ma.MaskedArray):
        raise Refused(f"{name} is a MaskedArray; allowed: an array without a mask")
    return array


def element_strides(name: str, array: Array) -> tuple[int, ...]:
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise Refused(f"{name} has strides {array.strides} bytes; allowed: multiples of {size}")
    return tuple(stride // size for stride in array.strides)


def dense_strides(shape: tuple[int, ...], order: list[int]) -> list[int]:
    """In elements, where the axes lie in memory in this order, the outermost first."""
    strides = [1] * len(shape)
    for inner, axis in zip(reversed(order), reversed(order[:-1]), strict=False):
        strides[axis] = strides[inner] * shape[inner]
    return strides


def dtype_name(array: Array) -> str:
    return array.dtype.name if array.dtype.isnative else array.dtype.str


def converted(name: str, given: Any, dtype: type[np.generic]) -> Array | None:
    """An array of this type with the same values; Refused where they do not fit."""
    if given is None:
        return None
    try:
        array = np.asarray(given)
        if np.can_cast(array.dtype, np.float64, "same_kind"):
            with np.errstate(invalid="ignore"):  # what does not fit is found below
                made = array.astype(dtype, order="C")
            if not np.issubdtype(dtype, np.integer) or (made == array).all():
                return made
    except (TypeError, ValueError, OverflowError):
        pass
    shown = " ".join(repr(given).split())
    shown = shown if len(shown) <= 80 else shown[:80] + "..."
    raise Refused(f"{name} is {shown}; allowed: an array of {np.dtype(dtype).name}")


def in_one_row(name: str, array: Array) -> list[int]:
    if array.ndim != 1:
        raise Refused(f"{name} has shape {array.shape}; allowed: one dimension")
    return [int(each) for each in array]


def choose(problem: Problem, rung: str) -> str:
    """The rung, or the best one. Refused where it does not take the problem, EnvironmentFailure
    where there is no memory for it: nothing has been taken yet."""
    library, message = _native.library(), _native.Message()
    given = _native.problem_text(problem)

    def takes(candidate: str) -> str:
        word = candidate.encode()
        message.check(
            library.fa_attention_machine_takes(given, word, message.buffer, _native.MESSAGE_BYTES)
        )
        return candidate

    return _best.first_that_takes(problem, check_rung(rung), takes)


def run(problem: Problem, rung: str, addresses: dict[str, int]) -> None:
    """Runs the rung on the tensors at these addresses; Ctrl-C ends it."""
    message = _native.Message()
    library = _native.library()
    given = _native.problem_text(problem)
    folder = os.fsencode(_paths.ptx_folder())
    tensors = _native.CTensors(**addresses)
    status = interruptible(
        lambda stop: library.fa_attention_run_on_machine(
            given, rung.encode(), folder, tensors, stop, message.buffer, _native.MESSAGE_BYTES
        )
    )
    message.check(status)
