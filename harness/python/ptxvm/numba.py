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
from pathlib import Path
from typing import Any
from unittest import mock

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


def of_cuda(source: str | bytes, name: str, cc: tuple[int, int], **_: Any) -> tuple[bytes, str]:
    """PTX of CUDA C++ by NVRTC. Numba's own way asks the driver, which need not be there."""
    import numba.cuda
    from cuda.bindings import nvrtc
    from numba.cuda.cuda_paths import get_cuda_paths

    def call(function: Callable[..., tuple[Any, ...]], *arguments: object) -> Any:
        status, *values = function(*arguments)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise LaunchError(f"{name}, which Numba links, does not compile: {status.name}")
        return values[0] if values else None

    version = call(lambda: (lambda s, *v: (s, v))(*nvrtc.nvrtcVersion()))[0]
    own = Path(numba.cuda.__file__).parent
    folders = [own / "include" / str(version), get_cuda_paths()["include_dir"].info]
    options = [f"--gpu-architecture=compute_{cc[0]}{cc[1]}", "-rdc=true", "-std=c++17"]
    words = [each.encode() for each in options + [f"-I{each}" for each in folders]]
    data = source.encode() if isinstance(source, str) else source
    program = call(nvrtc.nvrtcCreateProgram, data, name.encode(), 0, [], [])
    call(nvrtc.nvrtcCompileProgram, program, len(words), words)
    text = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, text)
    return text, ""


def texts_of(parts: Sequence[object]) -> list[str]:
    """PTX among what Numba links; of other code the machine says which function it misses."""
    texts = [bytes(each).decode() if isinstance(each, bytes) else each for each in parts]
    return [each.rstrip("\0") for each in texts if isinstance(each, str)]


def compile(
    function: Callable[..., None], *arguments: object, arch: int = 80, lineinfo: bool = True
) -> Module:
    """Compiles a kernel for arguments of these types. `function` is not decorated, or an object of
    @cuda.jit."""
    import numba
    from numba import cuda
    from numba.cuda import compiler

    plain = getattr(function, "py_func", function)
    types = tuple(numba.typeof(each) for each in arguments)
    options = {"lineinfo": lineinfo, "cc": (arch // 10, arch % 10)}
    if hasattr(compiler, "compile_all"):
        # With the CUDA C++ that float16 and others call, which is linked as one text.
        with mock.patch.object(compiler.nvrtc, "compile", of_cuda):
            parts, returned = compiler.compile_all(
                plain, types, device=False, abi="numba", output="ptx", **options
            )
        text = "\n".join(texts_of(parts))
    else:
        text, returned = cuda.compile_ptx(plain, types, device=False, **options)
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
