# SPDX-License-Identifier: MIT
"""The examples of Numba's manual, as the package numba-cuda brings them with its tests."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba.cuda
import numpy as np
import ptxvm
import ptxvm.numba
from numba import cuda
from numba.cuda import random as generators

from foreign.case import WAITS, Case, Wrong, expect

ORIGIN = "Numba's manual"
FOLDER = Path(numba.cuda.__file__).parent / "tests/doc_examples"


def function(file: str, name: str, **names: object) -> Callable[..., Any]:
    """A function of an example, wherever it stands in the file, which stays as it is. `names` are
    those of the lines around it that it uses. Its decorator is left out: it wants a GPU."""
    path = FOLDER / file
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = []
            scope: dict[str, Any] = {"cuda": cuda, "np": np, "math": math, **names}
            exec(compile(ast.Module([node], []), str(path), "exec"), scope)
            return scope[name]
    raise ValueError(f"{path} has no function {name}")


def states(n: int, seed: int) -> Any:
    """What create_xoroshiro128p_states makes on a GPU."""
    made = np.empty(n, dtype=generators.xoroshiro128p_dtype)
    generators.init_xoroshiro128p_states_cpu(made, np.uint64(seed), np.uint64(0))
    return made


def run_vecadd(arch: int) -> Sequence[ptxvm.Result]:
    n = 10000
    a, b = np.random.default_rng(1).random((2, n))
    c = np.zeros(n)
    kernel = function("test_vecadd.py", "f")
    result = ptxvm.numba.run(kernel, n // 256 + 1, 256, a.copy(), b.copy(), c, arch=arch)
    expect(c, a + b, rtol=0, atol=0)
    return [result]


def run_matmul(arch: int) -> Sequence[ptxvm.Result]:
    x, y, z = np.arange(16.0).reshape(4, 4), np.ones((4, 4)), np.zeros((4, 4))
    kernel = function("test_matmul.py", "matmul")
    result = ptxvm.numba.run(kernel, (1, 1), (16, 16), x, y, z, arch=arch)
    expect(z, x @ y, rtol=0, atol=0)
    return [result]


def run_fast_matmul(arch: int) -> Sequence[ptxvm.Result]:
    results = []
    kernel = function("test_matmul.py", "fast_matmul", TPB=16, float32=numba.cuda.float32)
    for rows, inner, columns in ((4, 4, 4), (5, 23, 7)):
        x, y = np.arange(float(rows * inner)).reshape(rows, inner), np.ones((inner, columns))
        z = np.zeros((rows, columns))
        grid = (math.ceil(max(inner, columns) / 16), math.ceil(max(rows, inner) / 16))
        results.append(ptxvm.numba.run(kernel, grid, (16, 16), x, y, z, arch=arch))
        expect(z, x @ y, rtol=0, atol=0)
    return results


def run_reduction(arch: int) -> Sequence[ptxvm.Result]:
    a = np.arange(1024)
    kernel = function("test_reduction.py", "array_sum", nelem=len(a), int32=numba.cuda.int32)
    result = ptxvm.numba.run(kernel, 1, len(a), a, arch=arch)
    expect(a[0], 523776)
    return [result]


def run_laplace(arch: int) -> Sequence[ptxvm.Result]:
    """A barrier of the grid a step; some threads have left."""
    data, steps = np.zeros(1001), 100
    data[500] = 10000
    buffers, expected = (data.copy(), np.zeros(1001)), data.copy()
    kernel = function("test_laplace.py", "solve_heat_equation")
    result = ptxvm.numba.run(kernel, 4, 256, *buffers, steps, 0.25, arch=arch, cooperative=True)
    for _ in range(steps):
        wide = np.pad(expected, 1)
        expected = expected + 0.25 * (wide[:-2] - 2 * expected + wide[2:])
    expect(buffers[0], expected)
    return [result]


def run_sessionize(arch: int) -> Sequence[ptxvm.Result]:
    random = np.random.default_rng(3)
    ids = np.sort(random.integers(0, 8, 100))
    times = np.zeros(100, np.int64)
    for user in np.unique(ids):
        times[ids == user] = np.sort(random.integers(0, 20000, (ids == user).sum()))
    results = np.zeros(100)
    kernel = function("test_sessionize.py", "sessionize", session_timeout=np.int64(3600))
    result = ptxvm.numba.run(kernel, 1, 128, ids, times, results, arch=arch, cooperative=True)
    first = np.ones(100, bool)
    first[1:] = (ids[1:] != ids[:-1]) | (times[1:] - times[:-1] > 3600)
    expect(results, np.maximum.accumulate(np.where(first, np.arange(100), 0)))
    return [result]


def run_rows(arch: int) -> Sequence[ptxvm.Result]:
    rows = np.zeros((64, 128), np.int32)
    kernel = function("test_cg.py", "sequential_rows")
    result = ptxvm.numba.run(kernel, 4, 32, rows, arch=arch, cooperative=True)
    expect(rows, np.tile(np.arange(64), (128, 1)).T)
    return [result]


def run_montecarlo(arch: int) -> Sequence[ptxvm.Result]:
    n = 20000
    out = np.zeros(n, np.float32)
    kernel = function(
        "test_montecarlo.py",
        "mc_integrator_kernel",
        xoroshiro128p_uniform_float32=generators.xoroshiro128p_uniform_float32,
        func=numba.jit(function("test_montecarlo.py", "func")),
    )
    result = ptxvm.numba.run(kernel, n // 256 + 1, 256, out, states(n, 42), 1, 2, arch=arch)
    expect(out.sum() / (n - 1), math.log(2), rtol=1e-2)
    return [result]


def run_random(arch: int) -> Sequence[ptxvm.Result]:
    out = np.full((21, 30, 19), -1, np.float32)
    kernel = function(
        "test_random.py",
        "random_3d",
        xoroshiro128p_uniform_float32=generators.xoroshiro128p_uniform_float32,
    )
    result = ptxvm.numba.run(kernel, (2, 2, 2), (8, 8, 8), out, states(4096, 1), arch=arch)
    if not (out.min() >= 0 and out.max() < 1 and 0.49 < out.mean() < 0.51):
        raise Wrong(f"from {out.min()} to {out.max()}, {out.mean()} on average")
    return [result]


def run_shared_function(arch: int) -> Sequence[ptxvm.Result]:
    """A function for CPU and GPU alike."""
    x, y, z = np.array([1, 10, 234]), np.array([2, 2, 4014]), np.array([3, 14, 2211])
    out, names = np.zeros(3), {"pi": math.pi}
    logic = function("test_cpu_gpu_compat.py", "business_logic", **names)
    kernel = function("test_cpu_gpu_compat.py", "f", business_logic=numba.jit(logic))
    result = ptxvm.numba.run(kernel, 1, 32, out, x, y, z, arch=arch)
    expect(out, [logic(*each) for each in zip(x, y, z, strict=True)], rtol=1e-12)
    return [result]


EXAMPLES = [
    Case("vector addition", ORIGIN, run_vecadd),
    Case("matrix product", ORIGIN, run_matmul),
    Case("matrix product, shared memory", ORIGIN, run_fast_matmul),
    Case("sum, shared memory", ORIGIN, run_reduction),
    Case("heat equation, barriers of the grid", ORIGIN, run_laplace, by_order=WAITS),
    Case("sessions, a barrier of the grid", ORIGIN, run_sessionize),
    Case("rows, barriers of the grid", ORIGIN, run_rows),
    Case("Monte Carlo integration", ORIGIN, run_montecarlo),
    Case("random numbers, 3-D grid", ORIGIN, run_random),
    Case("a function of the CPU", ORIGIN, run_shared_function),
]
CASES = EXAMPLES if FOLDER.is_dir() else []  # a package without its tests
