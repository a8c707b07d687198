# SPDX-License-Identifier: MIT
"""Numba's CUDA kernels on the machine: compiled for a card that need not be there, and run.

  import numpy as np, ptxvm.numba
  from numba import cuda

  def scale(x, a):
      i = cuda.grid(1)
      if i < x.size:
          x[i] *= a

  result = ptxvm.numba.run(scale, 4, 256, x, np.float32(2))

Needs the packages numba and numba-cuda with its compiler (pip install numba-cuda[cu12]), no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxvm._errors import LaunchError
from ptxvm._module import Extents, Module
from ptxvm._result import Result


def flattened(value: object) -> list[object]:
    """What Numba's kernels take for one argument (PTX parameters in this order)."""
    if isinstance(value, np.ndarray):
        nothing = np.int64(0)
        sizes = [value.size, value.itemsize]
        rest = [np.int64(each) for each in (*value.shape, *value.strides)]
        return [nothing, nothing, *map(np.int64, sizes), value, *rest]
    if isinstance(value, bool):
        return [np.uint8(value)]
    if isinstance(value, int):
        return [np.int64(value)]
    if isinstance(value, float):
        return [np.float64(value)]
    if isinstance(value, np.bool_):
        return [np.uint8(value)]
    if isinstance(value, np.generic):
        return [value]
    allowed = "allowed: numpy arrays and scalars, numbers"
    raise LaunchError(f"an argument of type {type(value).__name__}; {allowed}")


def compile(
    function: Callable[..., None], *arguments: object, arch: int = 80, lineinfo: bool = True
) -> Module:
    """Compiles a kernel for arguments of these types. `function` is not decorated, or an object of
    @cuda.jit."""
    import numba
    from numba import cuda

    plain = getattr(function, "py_func", function)
    types = tuple(numba.typeof(each) for each in arguments)
    text, returned = cuda.compile_ptx(
        plain, types, device=False, lineinfo=lineinfo, cc=(arch // 10, arch % 10)
    )
    if returned != numba.types.void:
        raise LaunchError(f"{plain.__name__} returns a value; a kernel returns none")
    return Module.parse(text, f"{plain.__name__}.ptx")


def run(
    function: Callable[..., None],
    grid: Extents,
    block: Extents,
    *arguments: object,
    arch: int = 80,
    shared: int = 0,
    **launch: Any,
) -> Result:
    """Compiles a kernel and runs it. What it writes is in the arrays afterwards.

    function   the kernel's Python function
    grid, block, shared   as in function[grid, block, 0, shared]
    arguments  numpy arrays and scalars, numbers (int is int64, float float64, as Numba has it)
    arch       compute capability, 80 or 90
    launch     further options of ptxvm.Kernel.launch
    """
    module = compile(function, *arguments, arch=arch)
    values: Sequence[object] = [each for value in arguments for each in flattened(value)]
    return module.kernel().launch(*values, grid=grid, block=block, shared=shared, **launch)
