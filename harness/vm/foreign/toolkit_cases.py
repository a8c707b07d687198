# SPDX-License-Identifier: MIT
"""Kernels that use the libraries of the CUDA toolkit; compiled by nvcc."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ptxvm
from numpy.typing import NDArray

from foreign.case import WAITS, Case, Wrong, expect

Array = NDArray[Any]
RANDOM = np.random.default_rng(5)


@functools.cache
def kernel(name: str, arch: int, file: str = "toolkit.cu") -> ptxvm.Kernel:
    return module(file, arch).kernel(name)


@functools.cache
def module(file: str, arch: int) -> ptxvm.Module:
    return ptxvm.nvcc(Path(__file__).with_name(file), f"sm_{arch}", ["-std=c++17"])


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


def run_look_back(arch: int) -> Sequence[ptxvm.Result]:
    values, sums = integers(-9, 9, 5000), np.zeros(5000, np.int32)
    tiles, states = 40, np.zeros(1 << 16, np.uint8)
    begin = kernel("look_back_begin", arch).launch(states, tiles, grid=1, block=128)
    scan = kernel("look_back_scan", arch).launch(values, sums, 5000, states, grid=tiles, block=128)
    expect(sums, np.cumsum(values))
    return [begin, scan]


def run_collectives(arch: int) -> Sequence[ptxvm.Result]:
    values = integers(0, 300, 512)
    total, bins = np.zeros(1, np.int32), np.zeros(16, np.int32)
    lists = [np.zeros(512, np.int32) for _ in range(4)]
    result = kernel("block_collectives", arch).launch(
        values, total, bins, *lists, grid=1, block=128
    )
    expect(total, [values.sum()])
    expect(bins, np.bincount(values & 15, minlength=16))
    expect(lists[0], np.diff(values, prepend=0))
    expect(lists[1], np.sort(values))
    expect(lists[2], np.sort(values)[::-1])
    expect(lists[3], np.argsort(-values, kind="stable"))
    return [result]


def run_partitions(arch: int) -> Sequence[ptxvm.Result]:
    values = integers(0, 100, 64)
    eights, bits, thirds = (np.zeros(64, np.int32) for _ in range(3))
    result = kernel("partitions", arch).launch(values, eights, bits, thirds, grid=1, block=64)
    warps = values.reshape(2, 1, 32)
    same_bit = warps % 2 == warps.swapaxes(1, 2) % 2
    same_third = warps % 3 == warps.swapaxes(1, 2) % 3
    expect(eights, np.repeat(values.reshape(8, 8).sum(1), 8))
    expect(bits, (same_bit * warps).sum(2).reshape(64))
    rank = np.tril(same_third, -1).sum(2)
    expect(thirds, (same_third.sum(2) * 100 + rank).reshape(64))
    return [result]


def run_filter(arch: int) -> Sequence[ptxvm.Result]:
    values, out, count = integers(0, 100, 1000), np.zeros(1000, np.int32), np.zeros(1, np.int32)
    result = kernel("filter", arch).launch(values, 1000, out, count, grid=8, block=128)
    expect(np.sort(out[: int(count[0])]), np.sort(values[values > 50]))
    return [result]


def run_meetings(arch: int) -> Sequence[ptxvm.Result]:
    most, total, counts = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(4, np.uint8)
    result = kernel("meetings", arch).launch(most, total, counts, grid=1, block=64)
    expect(most.clip(1, 2), most)
    expect(total, [63 * 32])
    expect(counts, [0, 64, 0, 0])
    return [result]


def run_complex(arch: int) -> Sequence[ptxvm.Result]:
    pairs, out = RANDOM.uniform(-2, 2, (32, 2)), np.zeros((32, 2))
    result = kernel("complex_numbers", arch).launch(pairs, out, grid=1, block=32)
    z = pairs[:, 0] + 1j * pairs[:, 1]
    w = np.exp(z) * np.sqrt(z) / (z + (1 + 2j)) + np.exp(0.3j)
    expect(out, np.stack([w.real, w.imag], 1), rtol=1e-12, atol=1e-13)
    return [result]


def run_bulk_copies(arch: int) -> Sequence[ptxvm.Result]:
    values, out = integers(-99, 99, 512), np.zeros(512, np.int32)
    result = kernel("bulk_copies", arch).launch(values, out, grid=2, block=256)
    expect(out, 2 * np.roll(values, 256))
    return [result]


def run_wide_integers(arch: int) -> Sequence[ptxvm.Result]:
    words = RANDOM.integers(0, 2**64, (32, 4), dtype=np.uint64)
    words[3, 2], words[5, 2:], words[7, 0] = 0, (0, 77), 0
    out = np.zeros((32, 12), np.uint64)
    result = kernel("wide_integers", arch, "types.cu").launch(words, out, grid=1, block=32)
    for given, got in zip(words.tolist(), out.tolist(), strict=True):
        a, b = given[0] << 64 | given[1], given[2] << 64 | given[3]
        signed, divisor = a - (a >> 127 << 128), b >> 3
        quotient = abs(signed) // divisor * (-1 if signed < 0 else 1)
        right = [a * b, a // b, a % b, (a << b % 128) ^ (a >> b % 64), quotient, signed >> b % 128]
        if [each % (1 << 128) for each in right] != [
            high << 64 | low for high, low in zip(got[::2], got[1::2], strict=True)
        ]:
            raise Wrong(f"{a:#x} and {b:#x}")
    return [result]


def run_half_pairs(arch: int) -> Sequence[ptxvm.Result]:
    a, b = (RANDOM.uniform(-4, 4, (32, 2)).astype(np.float16) for _ in range(2))
    out, wide = np.zeros((32, 6, 2), np.float16), np.zeros((32, 2, 2), np.uint16)
    result = kernel("half_pairs", arch, "types.cu").launch(a, b, out, wide, grid=1, block=32)
    x, y, total = a.astype(np.float64), b.astype(np.float64), (a + b).astype(np.float64)
    right = [x * y + total, x / y, 2**x, np.maximum(x * y + x, 0), np.sqrt(abs(x))]
    expect(out, np.stack([*right, np.maximum(x, y)[:, ::-1]], 1), rtol=2e-3, atol=1e-3)
    bfloats = (wide.astype(np.uint32) << 16).view(np.float32)
    expect(bfloats, np.stack([x * x, np.minimum(np.exp(x), x)], 1), rtol=2e-2)
    return [result]


def run_small_floats(arch: int) -> Sequence[ptxvm.Result]:
    values, out = RANDOM.normal(0, 3, (32, 4)).astype(np.float32), np.zeros((32, 8), np.float32)
    values[0] = (1000, 448, -1e-9, 1e6)
    result = kernel("small_floats", arch, "types.cu").launch(values, out, grid=1, block=32)

    def rounded(column: int, mantissa: int, least: int, most: float, half: bool = False) -> Array:
        x = values[:, column]
        x = (x.astype(np.float16) if half else x).astype(np.float64)
        exponent = np.floor(np.log2(np.maximum(abs(x), 2.0**least)))
        step = 2.0 ** (exponent - mantissa)
        return np.copysign(np.minimum(np.rint(abs(x) / step) * step, most), x)

    right = [rounded(0, 3, -6, 448), rounded(3, 3, -6, 448)]
    right += [rounded(0, 2, -14, 57344), rounded(3, 2, -14, 57344), rounded(1, 3, -6, 448, True)]
    right += [rounded(0, 1, 0, 6), rounded(1, 2, -2, 28), rounded(2, 3, 0, 7.5)]
    expect(out, np.stack(right, 1), rtol=0, atol=0)
    return [result]


def philox(key: int, sequence: int) -> list[int]:
    """The first four words of Philox4x32-10 (Salmon et al., 2011) for a seed and a sequence."""
    counter, keys = [0, 0, sequence, 0], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            second >> 32 ^ counter[1] ^ keys[0],
            second & 0xFFFFFFFF,
            first >> 32 ^ counter[3] ^ keys[1],
            first & 0xFFFFFFFF,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def run_random_numbers(arch: int) -> Sequence[ptxvm.Result]:
    words, uniform = np.zeros((256, 4), np.uint32), np.zeros(256, np.float32)
    normal = np.zeros(256)
    result = kernel("random_numbers", arch, "types.cu").launch(
        words, uniform, normal, grid=1, block=256
    )
    expect(words, [philox(1234, i) for i in range(256)], rtol=0)
    expect([uniform.mean(), uniform.std()], [0.5, 12**-0.5], atol=0.05)
    expect([normal.mean(), normal.std()], [0, 1], atol=0.2)
    return [result]


def run_double_functions(arch: int) -> Sequence[ptxvm.Result]:
    values, out = RANDOM.uniform(-3, 3, 64), np.zeros((64, 10))
    result = kernel("double_functions", arch, "types.cu").launch(values, out, grid=1, block=64)
    right = [
        (
            *(math.erf(x), math.lgamma(x), np.cbrt(x), math.hypot(x, 2), math.atan2(x, 1.5)),
            *(math.expm1(x), math.log1p(abs(x)), math.sinh(x)),
            *(math.remainder(x, 0.3), math.fmod(x, 0.7)),
        )
        for x in values
    ]
    expect(out, right, rtol=1e-13, atol=1e-14)
    return [result]


def run_shapes(arch: int) -> Sequence[ptxvm.Result]:
    out = np.zeros(12, np.float32)
    result = kernel("shapes", arch, "types.cu").launch(out, grid=1, block=12)
    areas, weights, names = (3, 2.5, 2), ((3, 4), (5, 6), (7, 8)), b"abc"
    right = [
        areas[i % 3] * (1 if i % 2 else 0.5) + weights[(i + 1) % 3][i % 2] + names[i % 3]
        for i in range(12)
    ]
    expect(out, right)
    return [result]


def run_grid_of_three(arch: int) -> Sequence[ptxvm.Result]:
    values, out = np.arange(64.0), np.zeros(24)
    result = kernel("grid_of_three", arch, "types.cu").launch(
        values, out, grid=(2, 3, 4), block=(4, 4, 4), shared=512
    )
    expect(out, values.sum() * np.arange(24))
    return [result]


CASES = [
    Case("cub::WarpMergeSort", "CUDA toolkit", run_warp_merge_sort),
    Case("cub: load, radix sort, heads, scan", "CUDA toolkit", run_block_sort),
    Case("Thrust in a thread", "CUDA toolkit", run_thrust),
    Case("cuda::pipeline, cooperative groups", "CUDA toolkit", run_pipelined, by_order=WAITS),
    Case("cuda::barrier, memcpy_async", "CUDA toolkit", run_reversed),
    Case("WMMA of 4 bits and 1 bit", "CUDA toolkit", run_wmma_bits),
    Case("histogram in a cluster", "CUDA toolkit", run_cluster_histogram, (90,)),
    Case("cub: scan by look-back", "CUDA toolkit", run_look_back, by_order=WAITS),
    Case("cub: reduce, histogram, exchange, merge and radix sort", "CUDA toolkit", run_collectives),
    Case("cooperative groups: partitions and reduce", "CUDA toolkit", run_partitions),
    Case(
        "cooperative groups: atomics by the warp",
        "CUDA toolkit",
        run_filter,
        by_order=("output", "counts"),  # the values come in the order of the atomics
    ),
    Case("cuda::counting_semaphore, latch, atomic_ref", "CUDA toolkit", run_meetings),
    Case("cuda::std::complex, mdspan", "CUDA toolkit", run_complex),
    Case("cuda::ptx: bulk copies in a cluster", "CUDA toolkit", run_bulk_copies, (90,)),
    Case("__int128", "CUDA toolkit", run_wide_integers),
    Case("__half2, __nv_bfloat162", "CUDA toolkit", run_half_pairs),
    Case("8, 6 and 4 bits: cuda_fp8, fp6, fp4", "CUDA toolkit", run_small_floats),
    Case("cuRAND: Philox, XORWOW", "CUDA toolkit", run_random_numbers),
    Case("functions of double", "CUDA toolkit", run_double_functions),
    Case("virtual functions, new, delete", "CUDA toolkit", run_shapes),
    Case("templates, dynamic shared memory, 3-D grid", "CUDA toolkit", run_grid_of_three),
]
