# SPDX-License-Identifier: MIT
"""Kernels that use the libraries of the CUDA toolkit; compiled by nvcc."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ptxvm
from numpy.typing import NDArray

from foreign.case import Case, expect

Array = NDArray[Any]
RANDOM = np.random.default_rng(5)


@functools.cache
def kernel(name: str, arch: int) -> ptxvm.Kernel:
    return module(arch).kernel(name)


@functools.cache
def module(arch: int) -> ptxvm.Module:
    return ptxvm.nvcc(Path(__file__).with_name("toolkit.cu"), f"sm_{arch}", ["-std=c++17"])


def integers(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
    return RANDOM.integers(low, high, shape).astype(dtype)


def run_warp_merge_sort(arch: int) -> Sequence[ptxvm.Result]:
    keys, values = integers(0, 99, 512), RANDOM.normal(size=512).astype(np.float32)
    given = keys.reshape(4, 128).copy(), values.reshape(4, 128).copy()
    result = kernel("warp_merge_sort", arch).launch(keys, values, grid=1, block=128)
    expect(keys.reshape(4, 128), np.sort(given[0]))
    expect(values.reshape(4, 128), np.sort(given[1]))
    return [result]


def run_block_sort(arch: int) -> Sequence[ptxvm.Result]:
    keys = integers(0, 300, 1000, dtype=np.uint32)
    out, number = np.zeros_like(keys), np.zeros(1000, np.int32)
    result = kernel("block_sort", arch).launch(keys, out, number, 1000, grid=1, block=256)
    expect(out, np.sort(keys))
    expect(number, np.unique(np.sort(keys), return_inverse=True)[1] + 1)
    return [result]


def run_thrust(arch: int) -> Sequence[ptxvm.Result]:
    keys, below = integers(0, 99, 200), np.zeros(1, np.int32)
    given = np.sort(keys)
    result = kernel("thrust_in_a_thread", arch).launch(keys, 200, below, grid=1, block=32)
    expect(keys, given)
    expect(below, [np.searchsorted(given, 50)])
    return [result]


def run_pipelined(arch: int) -> Sequence[ptxvm.Result]:
    tiles = integers(-9, 9, 6, 256, dtype=np.float32)
    scans, sums = np.zeros((8, 32), np.float32), np.zeros(8, np.float32)
    result = kernel("pipelined", arch).launch(tiles, scans, sums, 6, grid=1, block=256)
    columns = np.roll(tiles.sum(0), -1).reshape(8, 32)
    expect(scans, np.cumsum(columns, 1) - columns)
    expect(sums, columns.sum(1))
    return [result]


def run_reversed(arch: int) -> Sequence[ptxvm.Result]:
    given, out = integers(0, 99, 128, dtype=np.float32), np.zeros(128, np.float32)
    result = kernel("reversed", arch).launch(given, out, grid=1, block=128)
    expect(out, given[::-1])
    return [result]


def run_wmma_bits(arch: int) -> Sequence[ptxvm.Result]:
    out = np.zeros((8, 8), np.int32)
    a, b = integers(-8, 8, 8, 32), integers(-8, 8, 8, 32)
    words = [(x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).astype(np.uint8) for x in (a, b)]
    results = [kernel("wmma_4_bits", arch).launch(*words, out, grid=1, block=32)]
    expect(out, a @ b.T)
    a, b = integers(0, 2, 8, 128), integers(0, 2, 8, 128)
    words = [np.packbits(x, axis=1, bitorder="little") for x in (a, b)]
    results.append(kernel("wmma_1_bit", arch).launch(*words, out, grid=1, block=32))
    expect(out, a @ b.T)
    return results


def run_cluster_histogram(arch: int) -> Sequence[ptxvm.Result]:
    values, bins = integers(0, 256, 5000), np.zeros(256, np.int32)
    result = kernel("cluster_histogram", arch).launch(values, 5000, bins, grid=8, block=128)
    expect(bins, np.bincount(values, minlength=256))
    return [result]


CASES = [
    Case("cub::WarpMergeSort", "CUDA toolkit", run_warp_merge_sort),
    Case("cub: load, radix sort, heads, scan", "CUDA toolkit", run_block_sort),
    Case("Thrust in a thread", "CUDA toolkit", run_thrust),
    Case("cuda::pipeline, cooperative groups", "CUDA toolkit", run_pipelined),
    Case("cuda::barrier, memcpy_async", "CUDA toolkit", run_reversed),
    Case("WMMA of 4 bits and 1 bit", "CUDA toolkit", run_wmma_bits),
    Case("histogram in a cluster", "CUDA toolkit", run_cluster_histogram, (90,)),
]
