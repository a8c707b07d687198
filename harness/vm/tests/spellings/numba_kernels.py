# SPDX-License-Identifier: MIT
# Kernels have no annotations that Python could check.
# ruff: noqa: ANN001, ANN201
"""Numba kernels, compiled without a GPU."""

import math
from collections.abc import Callable, Iterator

from numba import cuda, float32, float64, int32, int64, types


def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def matmul(a, b, c):
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    row, column = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // 16):
        tile_a[x, y] = a[row, y + k * 16]
        tile_b[x, y] = b[x + k * 16, column]
        cuda.syncthreads()
        for i in range(16):
            total += tile_a[x, i] * tile_b[i, y]
        cuda.syncthreads()
    c[row, column] = total


def reduce(x, out):
    shared = cuda.shared.array(256, float64)
    i = cuda.threadIdx.x
    shared[i] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 128
    while step > 0:
        if i < step:
            shared[i] += shared[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        cuda.atomic.add(out, 0, shared[0])


def histogram(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, x[i] % 64, 1)
        cuda.atomic.max(out, 64, x[i])
        cuda.atomic.min(out, 65, x[i])
        cuda.atomic.exch(out, 66, x[i])
        cuda.atomic.compare_and_swap(out[67:], 0, x[i])


def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i] = (math.sin(v) + math.cos(v) * math.exp(v) + math.log(math.fabs(v) + 1)
                  + math.pow(v, 1.5) + math.sqrt(v * v) + math.tanh(v) + math.atan2(v, 2.0)
                  + math.erf(v) + math.floor(v) + math.fmod(v, 3.0) + math.lgamma(v))


def warps(x, out):
    lane = cuda.laneid
    v = cuda.shfl_down_sync(0xFFFFFFFF, x[lane], 1) + cuda.shfl_xor_sync(0xFFFFFFFF, x[lane], 4)
    out[lane] = v + cuda.ballot_sync(0xFFFFFFFF, v > 3) + cuda.popc(lane) + cuda.clz(lane)
    out[lane] += cuda.match_any_sync(0xFFFFFFFF, lane % 4) + cuda.ffs(lane) + cuda.brev(lane)
    if cuda.all_sync(0xFFFFFFFF, v > 0) or cuda.any_sync(0xFFFFFFFF, v < 0):
        out[lane] += cuda.syncthreads_count(v > 1)
    cuda.syncwarp()
    cuda.threadfence()


def divides(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] // (i + 1) + x[i] % (i + 3)


def speaks(x):
    print(cuda.grid(1), x[0])


Case = tuple[Callable[..., None], tuple[object, ...]]


def cases() -> Iterator[Case]:
    """Kernels and their signatures."""
    for t in (types.float16, float32, float64, int32, int64):
        yield saxpy, (t, t[:], t[:], t[:])
    yield matmul, (float32[:, :], float32[:, :], float32[:, :])
    yield reduce, (float64[:], float64[:])
    for t in (int32, int64):
        yield histogram, (t[:], t[:])
        yield divides, (t[:], t[:])
    for t in (float32, float64):
        yield functions, (t[:], t[:])
    yield warps, (int32[:], int32[:])
    yield speaks, (int32[:],)


def ptx_texts() -> Iterator[tuple[str, str]]:
    """A name and the PTX of every case, for sm_80 and sm_90, with and without fast mathematics."""
    for kernel, signature in cases():
        for major in (8, 9):
            for fast in (False, True):
                name = f"{kernel.__name__} {signature} sm_{major}0"
                try:
                    yield name, cuda.compile_ptx(kernel, signature, cc=(major, 0), fastmath=fast)[0]
                except Exception as problem:
                    print(f"left out: {name}: {str(problem).strip().splitlines()[-1][:100]}")
