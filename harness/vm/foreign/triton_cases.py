# SPDX-License-Identifier: MIT
"""Kernels as Triton compiles them: the kinds of its tutorials, written for this test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ptxvm
import ptxvm.triton
import triton
import triton.language as tl

from foreign.case import FLOAT4, Case, Wrong, expect


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, rows, columns, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201
    """A program takes every so many rows, and keeps a row in registers."""
    at = tl.arange(0, BLOCK)
    mask = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(x + row * stride + at, mask=mask, other=-float("inf"))
        weights = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride + at, weights / tl.sum(weights, axis=0), mask=mask)


@triton.jit
def matmul(a, b, c, m, n, k, stride_a, stride_b, stride_c,  # noqa: ANN001, ANN201
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """Programs that run at the same time share rows of A and columns of B in the L2 cache."""
    program = tl.program_id(0)
    across, down = tl.cdiv(n, BN), tl.cdiv(m, BM)
    first = program // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    tile_m = first + program % (GROUP * across) % height
    tile_n = program % (GROUP * across) // height
    rows, columns = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    at_a = a + (rows % m)[:, None] * stride_a + inner[None, :]
    at_b = b + inner[:, None] * stride_b + (columns % n)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(k, BK)):
        left = tl.load(at_a, mask=inner[None, :] < k - step * BK, other=0.0)
        right = tl.load(at_b, mask=inner[:, None] < k - step * BK, other=0.0)
        total = tl.dot(left, right, total)
        at_a += BK
        at_b += BK * stride_b
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201
    """Which elements stay is a function of the seed: nothing is stored for the way back."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    values = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(keep, values / (1 - p), 0.0), mask=at < n)


@triton.jit
def layer_norm(x, out, weight, bias, mean_out, rstd_out, stride, columns, epsilon,  # noqa: ANN001, ANN201
               BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    x += row * stride
    out += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        away = tl.where(at < columns, values - mean, 0.0)
        squares += away * away
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        mask = at < columns
        values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        scale, shift = tl.load(weight + at, mask=mask), tl.load(bias + at, mask=mask)
        tl.store(out + at, (values - mean) * rstd * scale + shift, mask=mask)


@triton.jit
def attention(q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # noqa: ANN001, ANN201
    """Causal: full blocks left of the diagonal, then the masked ones on it."""
    tile, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * n * D
    rows, columns, dims = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + dims[None, :])
    largest = tl.full([BM], -float("inf"), dtype=tl.float32)
    weight = tl.zeros([BM], dtype=tl.float32)
    total = tl.zeros([BM, D], dtype=tl.float32)
    for first in range(0, (tile + 1) * BM, BN):
        keys = tl.load(k + base + (first + columns)[None, :] * D + dims[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        scores = tl.where(rows[:, None] >= (first + columns)[None, :], scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        shrink = tl.exp2(largest - larger)
        p = tl.exp2(scores - larger[:, None])
        weight = weight * shrink + tl.sum(p, axis=1)
        values = tl.load(v + base + (first + columns)[:, None] * D + dims[None, :])
        total = tl.dot(p.to(tl.float16), values, total * shrink[:, None])
        largest = larger
    result = (total / weight[:, None]).to(tl.float16)
    tl.store(out + base + rows[:, None] * D + dims[None, :], result)


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(5).normal(size=shape).astype(dtype)


@triton.jit
def fill(out, BLOCK: tl.constexpr, num_stages: tl.constexpr, num_warps: tl.constexpr):  # noqa: ANN001, ANN201
    """Parameters that have the names of the compiler's options get their values."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, num_stages * 10000 + num_warps * 100 + tl.extra.cuda.num_warps())


tuned_fill = triton.autotune([triton.Config({"BLOCK": 64}, num_stages=5, num_warps=8)], [])(fill)


def run_fill(arch: int) -> Sequence[ptxvm.Result]:
    results = []
    for kernel, given, right in (
        (fill, {"BLOCK": 64, "num_stages": 2, "num_warps": 1}, 20101),
        (tuned_fill, {}, 50808),
        (tuned_fill, {"num_stages": 2, "num_warps": 1}, 20101),
    ):
        out = np.zeros(128, np.int32)
        results.append(ptxvm.triton.run(kernel, 2, out, **given, arch=arch))
        expect(out, np.full(128, right))
    return results


def run_add(arch: int) -> Sequence[ptxvm.Result]:
    x, y, out = normal(1000), normal(1000) + 1, np.zeros(1000, np.float32)
    result = ptxvm.triton.run(
        add, lambda given: (triton.cdiv(1000, given["BLOCK"]),), x, y, out, 1000, BLOCK=256,
        arch=arch,
    )  # fmt: skip
    expect(out, x + y)
    return [result]


def run_softmax(arch: int) -> Sequence[ptxvm.Result]:
    x = 3 * normal(9, 781)
    out = np.zeros_like(x)
    result = ptxvm.triton.run(softmax, 4, x, out, 781, *x.shape, BLOCK=1024, num_warps=8, arch=arch)
    weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expect(out, weights / weights.sum(1, keepdims=True))
    return [result]


def run_matmul(arch: int) -> Sequence[ptxvm.Result]:
    m, n, k = 150, 136, 200
    a, b = normal(m, k, dtype="float16"), normal(k, n, dtype="float16")
    c = np.zeros((m, n), np.float16)
    result = ptxvm.triton.run(
        matmul, (3 * 3,), a, b, c, m, n, k, k, n, n, BM=64, BN=64, BK=32, GROUP=2, arch=arch
    )
    expect(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-3)
    return [result]


@triton.jit
def ordered(x, sums, sorted_rows, counts,  # noqa: ANN001, ANN201
            ROWS: tl.constexpr, COLUMNS: tl.constexpr, BINS: tl.constexpr):  # fmt: skip
    """A scan and a sort of each row, and how often each small number occurs."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, axis=1))
    tl.store(sorted_rows + at, tl.sort(values, dim=1))
    found = tl.histogram(tl.reshape(values, (ROWS * COLUMNS,)), BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), found, sem="relaxed")


@triton.jit
def pile(x, out, SIZE: tl.constexpr):  # noqa: ANN001, ANN201
    """Every program adds to the same values: on sm_90 several by one instruction."""
    at = tl.arange(0, SIZE)
    tl.atomic_add(out + at, tl.load(x + tl.program_id(0) * SIZE + at))


@triton.jit
def pile_by_descriptor(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: ANN001, ANN201
    """The same by the TMA, where there is one."""
    target = tl.make_tensor_descriptor(out, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    target.atomic_add([0, 0], tl.load(x + tl.program_id(0) * ROWS * COLUMNS + at))


@triton.jit
def gather_rows(source, indices, out, column, m, n,  # noqa: ANN001, ANN201
                ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    rows = tl.load(indices + tl.arange(0, ROWS))
    tile = tl.make_tensor_descriptor(source, [m, n], [n, 1], [1, COLUMNS]).gather(rows, column)
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tile)


@triton.jit
def scatter_rows(source, indices, out, column, m, n,  # noqa: ANN001, ANN201
                 ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    rows = tl.load(indices + tl.arange(0, ROWS))
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [1, COLUMNS])
    target.scatter(tl.load(source + at), rows, column)


@triton.jit
def persistent_matmul(a, b, c, m, n, k,  # noqa: ANN001, ANN201
                      BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """As many programs as a card has SMs; tiles come and go by descriptors."""
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0)):
        row, column = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(tl.cdiv(k, BK)):
            left = of_a.load([row, step * BK])
            total = tl.dot(left, of_b.load([column, step * BK]).T, total)
        of_c.store([row, column], total.to(tl.float16))


@triton.jit
def dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,  # noqa: ANN001, ANN201
        PRECISION: tl.constexpr):  # fmt: skip
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + inner[None, :])
    right = tl.load(b + inner[:, None] * N + columns[None, :])
    result = tl.dot(left, right, input_precision=PRECISION)
    tl.store(c + rows[:, None] * N + columns[None, :], result)


def run_ordered(arch: int) -> Sequence[ptxvm.Result]:
    x = np.random.default_rng(7).integers(0, 32, (8, 64)).astype(np.int32)
    sums, rows, counts = np.zeros_like(x), np.zeros_like(x), np.zeros(32, np.int32)
    result = ptxvm.triton.run(
        ordered, 1, x, sums, rows, counts, ROWS=8, COLUMNS=64, BINS=32, arch=arch
    )
    expect(sums, np.cumsum(x, 1))
    expect(rows, np.sort(x, 1))
    expect(counts, np.bincount(x.ravel(), minlength=32))
    return [result]


def run_pile(arch: int) -> Sequence[ptxvm.Result]:
    results = []
    for kind in (np.float32, np.float16):
        x = np.random.default_rng(7).integers(-8, 8, (3, 512)).astype(kind)
        out = np.zeros(512, kind)
        results.append(ptxvm.triton.run(pile, 3, x, out, SIZE=512, arch=arch))
        expect(out, x.sum(0))
    return results


def run_pile_by_descriptor(arch: int) -> Sequence[ptxvm.Result]:
    x = np.random.default_rng(7).integers(-8, 8, (3, 32, 64)).astype(np.float32)
    out = np.ones((32, 64), np.float32)
    given = (x, out)
    result = ptxvm.triton.run(pile_by_descriptor, 3, *given, ROWS=32, COLUMNS=64, arch=arch)
    expect(out, 1 + x.sum(0))
    return [result]


def run_rows(arch: int) -> Sequence[ptxvm.Result]:
    """Rows by their numbers, some of which the matrix does not have, and columns beyond its last."""
    numbers, results = np.random.default_rng(7), []
    m, n, sizes = 50, 96, {"ROWS": 16, "COLUMNS": 32}
    for kind, column in ((np.float16, 80), (np.float32, 16)):
        matrix = numbers.standard_normal((m, n)).astype(kind)
        rows, out = numbers.integers(-3, m + 4, 16).astype(np.int32), np.ones((16, 32), kind)
        given = (matrix, rows, out, column, m, n)
        results.append(ptxvm.triton.run(gather_rows, 1, *given, **sizes, arch=arch))
        wide = np.zeros((m + 8, n + 32), kind)
        wide[4 : m + 4, :n] = matrix
        expect(out, wide[rows + 4, column : column + 32])

        rows = numbers.permutation(m + 4)[:16].astype(np.int32)
        given = (out, rows, matrix, column, m, n)
        wanted = np.pad(matrix, ((0, 4), (0, 32)))
        wanted[rows, column : column + 32] = out
        results.append(ptxvm.triton.run(scatter_rows, 1, *given, **sizes, arch=arch))
        expect(matrix, wanted[:m, :n])
    return results


def run_persistent(arch: int) -> Sequence[ptxvm.Result]:
    m, n, k = 192, 128, 96
    a, b = normal(m, k).astype(np.float16), normal(n, k).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    result = ptxvm.triton.run(
        persistent_matmul, 2, a, b, c, m, n, k, BM=64, BN=64, BK=32, arch=arch
    )
    expect(c, a.astype(np.float64) @ b.T.astype(np.float64), rtol=2e-3, atol=2e-2)
    return [result]


def run_dots(arch: int) -> Sequence[ptxvm.Result]:
    results = []
    for precision, error in (("tf32", 5e-3), ("tf32x3", 1e-5), ("bf16x3", 1e-3), ("ieee", 1e-5)):
        a, b, c = normal(64, 32), normal(32, 64), np.zeros((64, 64), np.float32)
        results.append(
            ptxvm.triton.run(dot, 1, a, b, c, M=64, N=64, K=32, PRECISION=precision, arch=arch)
        )
        expect(c, a.astype(np.float64) @ b, rtol=error, atol=10 * error)
    return results


@triton.jit
def dot_float8(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # noqa: ANN001, ANN201
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + inner[None, :]).to(tl.float8e4nv)
    right = tl.load(b + inner[:, None] * N + columns[None, :]).to(tl.float8e4nv)
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(left, right))


def run_dot_float8(arch: int) -> Sequence[ptxvm.Result]:
    """Small integers, which float8 holds and whose sums are exact."""
    m, n, k = 128, 64, 64
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-4, 5, each).astype(np.float32) for each in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    result = ptxvm.triton.run(dot_float8, 1, a, b, c, M=m, N=n, K=k, arch=arch)
    expect(c, a @ b, rtol=0, atol=0)
    return [result]


@triton.jit
def dot_scaled(a, b, a_scales, b_scales, c, M: tl.constexpr, N: tl.constexpr,  # noqa: ANN001, ANN201
               K: tl.constexpr, A_TYPE: tl.constexpr, B_TYPE: tl.constexpr,
               SIZE: tl.constexpr):  # fmt: skip
    """Rows of bytes, of which each holds an element of 8 bits or two of 4; a scale for SIZE elements."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    A_BYTES: tl.constexpr = K // 2 if A_TYPE == "e2m1" else K
    B_BYTES: tl.constexpr = K // 2 if B_TYPE == "e2m1" else K
    scales = tl.arange(0, K // SIZE)
    left = tl.load(a + rows[:, None] * A_BYTES + tl.arange(0, A_BYTES)[None, :])
    right = tl.load(b + columns[:, None] * B_BYTES + tl.arange(0, B_BYTES)[None, :])
    of_left = tl.load(a_scales + rows[:, None] * (K // SIZE) + scales[None, :])
    of_right = tl.load(b_scales + columns[:, None] * (K // SIZE) + scales[None, :])
    if SIZE == 16:  # else they are exponents
        of_left = of_left.to(tl.float8e4nv, bitcast=True)
        of_right = of_right.to(tl.float8e4nv, bitcast=True)
    result = tl.dot_scaled(left, of_left, A_TYPE, right.T, of_right, B_TYPE)
    tl.store(c + rows[:, None] * N + columns[None, :], result)


# e4m3 with the values of FLOAT4 from 0 on.
FLOAT8 = np.array([0, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C])


def run_dot_scaled(arch: int) -> Sequence[ptxvm.Result]:
    m, n, k = 128, 64, 128
    generator, results = np.random.default_rng(5), []
    for a_type, b_type, size in (("e4m3", "e4m3", 32), ("e2m1", "e4m3", 32), ("e2m1", "e2m1", 32),
                                 ("e2m1", "e2m1", 16)):  # fmt: skip
        given, values = [], []
        for rows, of in ((m, a_type), (n, b_type)):
            codes = generator.integers(0, 16, (rows, k))
            values.append(FLOAT4[codes])
            packed = codes[:, ::2] | codes[:, 1::2] << 4
            given.append(
                (packed if of == "e2m1" else FLOAT8[codes % 8] | codes // 8 << 7).astype(np.uint8)
            )
        scales = generator.integers(-1, 2, (m + n, k // size))  # of two to that power
        codes = (127 + scales if size == 32 else 0x38 + 8 * scales).astype(np.uint8)
        wide = np.repeat(np.exp2(scales), size, 1)
        c = np.zeros((m, n), np.float32)
        given += [codes[:m], codes[m:], c]
        results.append(ptxvm.triton.run(dot_scaled, 1, *given, M=m, N=n, K=k, A_TYPE=a_type,
                                        B_TYPE=b_type, SIZE=size, arch=arch))  # fmt: skip
        expect(c, (values[0] * wide[:m]) @ (values[1] * wide[m:]).T, rtol=0, atol=0)
    return results


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 512})], ["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def line(x, out, n, factors, used, BLOCK: tl.constexpr, EVEN: tl.constexpr):  # noqa: ANN001, ANN201
    """Parameters that decorators choose, and a tuple of numbers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at) if EVEN else tl.load(x + at, mask=at < n)
    tl.store(out + at, values * factors[0] + factors[1], mask=at < n)
    tl.store(used, BLOCK)
    tl.store(used + 1, EVEN)


@triton.jit
def matmul_by_descriptors(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr,  # noqa: ANN001, ANN201
                          BK: tl.constexpr):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, k, BK):
        total = tl.dot(a.load([row, step]), b.load([column, step]).T, total)
    c.store([row, column], total.to(tl.float16))


def run_decorated(arch: int) -> Sequence[ptxvm.Result]:
    results = []
    # The first configuration, one that is given, and what the heuristic makes of each.
    for n, block, chosen in ((1000, 0, (64, 0)), (1024, 0, (64, 1)), (1000, 8, (8, 1))):
        given = {"BLOCK": block} if block else {}
        x, out, used = normal(n), np.zeros(n, np.float32), np.zeros(2, np.int32)

        def grid(values: dict[str, int], n: int = n) -> tuple[int]:
            return (triton.cdiv(n, values["BLOCK"]),)

        results.append(ptxvm.triton.run(line, grid, x, out, n, (2.0, 1), used, arch=arch, **given))
        expect(out, 2 * x + 1)
        expect(used, chosen)
    return results


def run_descriptors(arch: int) -> Sequence[ptxvm.Result]:
    """Ragged: what is beyond the end reads as zeros and is not stored."""
    m, n, k = 72, 100, 88
    a, b = normal(m, k).astype(np.float16), normal(n, k).astype(np.float16)
    c = np.zeros((m, 104), np.float16)
    given = [(a, (64, 32)), (b, (64, 32)), (c[:, :n], (64, 64))]
    result = ptxvm.triton.run(
        matmul_by_descriptors, (2, 2), *(ptxvm.triton.Descriptor(*each) for each in given), k,
        BM=64, BN=64, BK=32, arch=arch,
    )  # fmt: skip
    expect(c[:, :n], a.astype(np.float64) @ b.T.astype(np.float64), rtol=2e-3, atol=2e-2)
    expect(c[:, n:], np.zeros((m, 4)))
    return [result]


def run_dropout(arch: int) -> Sequence[ptxvm.Result]:
    x = normal(5000)
    outs, results = [np.zeros_like(x) for _ in range(3)], []
    for out, seed in zip(outs, (123, 123, 512), strict=True):
        given = (x, out, 5000, 0.25, seed)
        results.append(ptxvm.triton.run(dropout, 5, *given, BLOCK=1024, arch=arch))
    kept = outs[0] != 0
    expect(outs[0][kept], (x / 0.75)[kept])
    expect(outs[1], outs[0])
    if (outs[2] == outs[0]).all() or not 0.7 < kept.mean() < 0.8:
        raise Wrong(f"{kept.mean():.3f} of the elements are kept, or the seed changes nothing")
    return results


def run_layer_norm(arch: int) -> Sequence[ptxvm.Result]:
    x = (2 * normal(6, 300) + 0.5).astype(np.float16)
    weight, bias = normal(300), normal(300) - 1
    out, mean, rstd = np.zeros_like(x), np.zeros(6, np.float32), np.zeros(6, np.float32)
    given = (x, out, weight, bias, mean, rstd, 300, 300, 1e-5)
    result = ptxvm.triton.run(layer_norm, 6, *given, BLOCK=128, arch=arch)
    wide = x.astype(np.float64)
    expected = 1 / np.sqrt(wide.var(1) + 1e-5)
    expect(mean, wide.mean(1), atol=1e-5)
    expect(rstd, expected)
    scaled = (wide - wide.mean(1, keepdims=True)) * expected[:, None]
    expect(out, scaled * weight + bias, rtol=2e-3, atol=2e-3)
    return [result]


def run_attention(arch: int) -> Sequence[ptxvm.Result]:
    heads, n, dim = 2, 192, 64
    q, k, v = (0.5 * normal(3, heads, n, dim)).astype(np.float16)
    out = np.zeros_like(q)
    q, k, v = (np.ascontiguousarray(each) for each in (q, k, v))
    given = (q, k, v, out, dim**-0.5, n)
    result = ptxvm.triton.run(
        attention, (n // 64, heads), *given, D=dim, BM=64, BN=32, num_stages=2, arch=arch
    )
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(1, 2) * dim**-0.5
    scores[:, *np.triu_indices(n, 1)] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    expect(out, weights @ wide[2] / weights.sum(2, keepdims=True), rtol=5e-3, atol=2e-3)
    return [result]


@triton.jit
def planes_sum(planes, out, COUNT: tl.constexpr):  # noqa: ANN001, ANN201
    rows = tl.program_id(0) * out.block_shape[0]
    total = tl.zeros(out.block_shape, tl.float32)
    for each in range(COUNT):
        plane = planes.load([each, rows, 0])
        total += plane.reshape(out.block_shape)
    out.store([rows, 0], total)


def run_ranks(arch: int) -> Sequence[ptxvm.Result]:
    """Descriptors of three and of two dimensions."""
    planes, out = normal(3, 64, 32), np.zeros((64, 32), np.float32)
    given = ptxvm.triton.Descriptor(planes, (1, 16, 32)), ptxvm.triton.Descriptor(out, (16, 32))
    result = ptxvm.triton.run(planes_sum, 4, *given, COUNT=3, arch=arch)
    expect(out, planes.sum(0), atol=1e-5)
    return [result]


ALL = (80, 90, 100)

CASES = [
    Case("vector add", "Triton", run_add, ALL),
    Case("softmax", "Triton", run_softmax, ALL),
    Case("matmul, grouped", "Triton", run_matmul, ALL),
    Case("dropout", "Triton", run_dropout, ALL),
    Case("layer norm", "Triton", run_layer_norm, ALL),
    Case("fused attention", "Triton", run_attention, ALL),
    Case("scan, sort, histogram", "Triton", run_ordered, ALL),
    Case("atomic vectors", "Triton", run_pile, ALL),
    Case("atomics by descriptor", "Triton", run_pile_by_descriptor, ALL),
    Case("rows by descriptor: gather, scatter", "Triton", run_rows, (100,)),
    Case("persistent matmul, descriptors", "Triton", run_persistent, ALL),
    Case("autotune, heuristics, tuples", "Triton", run_decorated, ALL),
    Case("parameters named as options", "Triton", run_fill, ALL),
    Case("matmul, descriptors from outside", "Triton", run_descriptors, ALL),
    Case("descriptors of several ranks", "Triton", run_ranks, ALL),
    Case("tl.dot of float32: tf32, 3 x tf32, 3 x bf16, exact", "Triton", run_dots, ALL),
    Case("tl.dot of float8", "Triton", run_dot_float8, (90, 100)),
    Case("tl.dot_scaled: mxfp8, mxfp4, nvfp4", "Triton", run_dot_scaled, (100,)),
]
