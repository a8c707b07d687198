# SPDX-License-Identifier: MIT
"""Kernels as Numba compiles them."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import ptxvm
import ptxvm.numba
from numba import cuda, float32

from foreign.case import WAITS, Case, Wrong, expect

Array = Any  # the functions below are compiled for the card, not run by Python
TILE = 16
BLOCK = 128


def saxpy(a: float, x: Array, y: Array) -> None:
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


def matmul(a: Array, b: Array, c: Array) -> None:
    """Tiles of both matrices in shared memory."""
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range((a.shape[1] + TILE - 1) // TILE):
        left[y, x] = 0
        right[y, x] = 0
        if row < a.shape[0] and tile * TILE + x < a.shape[1]:
            left[y, x] = a[row, tile * TILE + x]
        if column < b.shape[1] and tile * TILE + y < b.shape[0]:
            right[y, x] = b[tile * TILE + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def block_sum(x: Array, out: Array) -> None:
    """A tree in shared memory, then one atomic a block."""
    part = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def histogram(x: Array, low: float, high: float, bins: Array) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        at = math.floor((x[i] - low) / (high - low) * bins.size)
        if 0 <= at < bins.size:
            cuda.atomic.add(bins, at, 1)


def black_scholes(price: Array, strike: Array, years: Array, rate: float, call: Array) -> None:
    """Double precision with log, exp and erf."""
    i = cuda.grid(1)
    if i >= call.size:
        return
    volatility = 0.3
    root = volatility * math.sqrt(years[i])
    d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / root
    d2 = d1 - root
    n1 = 0.5 * (1 + math.erf(d1 / math.sqrt(2.0)))
    n2 = 0.5 * (1 + math.erf(d2 / math.sqrt(2.0)))
    call[i] = price[i] * n1 - strike[i] * math.exp(-rate * years[i]) * n2


def run_saxpy(arch: int) -> Sequence[ptxvm.Result]:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    result = ptxvm.numba.run(saxpy, 8, BLOCK, np.float32(3), x, y, arch=arch)
    expect(y, 3 * x + 1)
    return [result]


def run_matmul(arch: int) -> Sequence[ptxvm.Result]:
    random = np.random.default_rng(2)
    a = random.normal(size=(50, 40)).astype(np.float32)
    b = random.normal(size=(40, 33)).astype(np.float32)
    c = np.zeros((50, 33), np.float32)
    result = ptxvm.numba.run(matmul, (3, 4), (TILE, TILE), a, b, c, arch=arch)
    expect(c, a @ b, rtol=1e-4, atol=1e-5)
    return [result]


def run_block_sum(arch: int) -> Sequence[ptxvm.Result]:
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1, np.float32)
    result = ptxvm.numba.run(block_sum, 8, BLOCK, x, out, arch=arch)
    expect(out, [x.sum()])
    return [result]


def run_histogram(arch: int) -> Sequence[ptxvm.Result]:
    x = np.random.default_rng(3).normal(size=3000)
    bins = np.zeros(20, np.int32)
    result = ptxvm.numba.run(histogram, 4, BLOCK, x, -3.0, 3.0, bins, arch=arch)
    expect(bins, np.histogram(x, 20, (-3, 3))[0])
    return [result]


def run_black_scholes(arch: int) -> Sequence[ptxvm.Result]:
    random = np.random.default_rng(4)
    price, strike, years = (random.uniform(*each, 300) for each in ((5, 30), (1, 100), (0.25, 10)))
    call = np.zeros(300)
    result = ptxvm.numba.run(black_scholes, 3, BLOCK, price, strike, years, 0.02, call, arch=arch)
    root = 0.3 * np.sqrt(years)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / root
    n1, n2 = (0.5 * (1 + np.vectorize(math.erf)(each / np.sqrt(2))) for each in (d1, d1 - root))
    expect(call, price * n1 - strike * np.exp(-0.02 * years) * n2, rtol=1e-9, atol=1e-9)
    return [result]


def halves(a: Array, b: Array, out: Array) -> None:
    """float16 calls CUDA C++ that Numba links."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * b[i] + a[i]


def run_halves(arch: int) -> Sequence[ptxvm.Result]:
    a, b = (np.arange(each, each + 70).astype(np.float16) / 16 for each in (1, 5))
    out = np.zeros_like(a)
    result = ptxvm.numba.run(halves, 1, BLOCK, a, b, out, arch=arch)
    expect(out, a.astype(np.float64) * b + a, rtol=2e-3)
    return [result]


def complexes(a: Array, out: Array) -> None:
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * a[i].conjugate() + cmath.exp(a[i])


def run_complexes(arch: int) -> Sequence[ptxvm.Result]:
    random = np.random.default_rng(6)
    a = (random.normal(size=70) + 1j * random.normal(size=70)).astype(np.complex64)
    out = np.zeros_like(a)
    result = ptxvm.numba.run(complexes, 1, BLOCK, a, out, arch=arch)
    expect(out.view(np.float32), (a * a.conj() + np.exp(a)).view(np.float32), rtol=1e-4, atol=1e-5)
    return [result]


@cuda.jit(device=True)
def polynomial(x: float, factors: Array) -> float:
    """By Horner's rule; called, and with a tuple and a slice of an array."""
    total = 0.0
    for factor in factors:
        total = total * x + factor
    return total


def of_device_functions(x: Array, factors: tuple[float, ...], more: Array, out: Array) -> None:
    i = cuda.grid(1)
    if i < x.size:
        out[i] = polynomial(x[i], factors) + polynomial(x[i], more[i, 1::2])


def run_device_functions(arch: int) -> Sequence[ptxvm.Result]:
    random = np.random.default_rng(6)
    x, more = random.normal(size=140)[::-2], np.asfortranarray(random.normal(size=(70, 6)))
    factors, out = (0.5, -2.0, 3.0), np.zeros((70, 2))
    result = ptxvm.numba.run(
        of_device_functions, 1, BLOCK, x, factors, more, out[:, 1], arch=arch
    )
    pairs = zip(x, more[:, 1::2], strict=True)
    right = [np.polyval(factors, a) + np.polyval(b, a) for a, b in pairs]
    expect(out[:, 1], right)
    expect(out[:, 0], np.zeros(70))
    return [result]


def passed_on(x: Array, rounds: int) -> None:
    """Every block reads what other blocks have written in the round before."""
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(rounds):
        value = x[(i + BLOCK) % x.size]
        grid.sync()
        x[i] = value + 1
        grid.sync()


def run_grid_barrier(arch: int) -> Sequence[ptxvm.Result]:
    x = np.arange(5 * BLOCK)
    result = ptxvm.numba.run(passed_on, 5, BLOCK, x, 3, arch=arch, cooperative=True)
    expect(x, np.roll(np.arange(5 * BLOCK), -3 * BLOCK) + 3)
    try:
        ptxvm.numba.run(passed_on, 5, BLOCK, x, 3, arch=arch)
    except ptxvm.KernelFault as fault:
        if "cooperative launch" not in str(fault):
            raise
    else:
        raise Wrong("the grid of an ordinary launch met")
    return [result]


CASES = [
    Case("saxpy", "Numba", run_saxpy),
    Case("matmul, tiled", "Numba", run_matmul),
    Case("sum", "Numba", run_block_sum),
    Case("histogram", "Numba", run_histogram),
    Case("Black-Scholes, double", "Numba", run_black_scholes),
    Case("float16", "Numba", run_halves),
    Case("complex", "Numba", run_complexes),
    Case("device functions, strided arrays, tuples", "Numba", run_device_functions),
    Case("barrier of the grid", "Numba", run_grid_barrier, by_order=WAITS),
]
