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
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from ptxvm._arguments import Address
from ptxvm._errors import LaunchError
from ptxvm._module import Extents, Module
from ptxvm._result import Result

# What Numba's cooperative groups call, and the toolkit's device runtime defines in machine code:
# the blocks of a cooperative launch count in 31 bits of a word, and the last one turns the 32nd.
DEVICE_RUNTIME = """
.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b32 %high, %low;
  .reg .b64 %workspace;
  mov.u32 %high, %envreg1;
  mov.u32 %low, %envreg2;
  mov.b64 %workspace, {%low, %high};
  st.param.b64 [result], %workspace;
  ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %id, %part, %blocks, %step, %before, %now;
  .reg .b64 %at;
  .reg .pred %none, %other, %waits;
  ld.param.b64 %at, [handle];
  setp.eq.u64 %none, %at, 0;
  @%none trap;
  bar.sync 0;
  mov.u32 %id, %tid.x;
  mov.u32 %part, %tid.y;
  or.b32 %id, %id, %part;
  mov.u32 %part, %tid.z;
  or.b32 %id, %id, %part;
  setp.ne.u32 %other, %id, 0;
  @%other bra $done;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %part, %nctaid.y;
  mul.lo.u32 %blocks, %blocks, %part;
  mov.u32 %part, %nctaid.z;
  mul.lo.u32 %blocks, %blocks, %part;
  mov.u32 %id, %ctaid.x;
  mov.u32 %part, %ctaid.y;
  or.b32 %id, %id, %part;
  mov.u32 %part, %ctaid.z;
  or.b32 %id, %id, %part;
  setp.ne.u32 %other, %id, 0;
  sub.u32 %step, 0x80000001, %blocks;
  @%other mov.u32 %step, 1;
  fence.acq_rel.gpu;
  atom.add.release.gpu.u32 %before, [%at+4], %step;
$wait:
  ld.acquire.gpu.u32 %now, [%at+4];
  xor.b32 %now, %now, %before;
  setp.ge.s32 %waits, %now, 0;
  @%waits bra $wait;
  fence.acq_rel.gpu;
$done:
  bar.sync 0;
  st.param.b32 [result], 0;
  ret;
}
"""


def flattened(value: object) -> list[object]:
    """What Numba's kernels take for one argument (PTX parameters in this order)."""
    if isinstance(value, np.ndarray):
        nothing = np.int64(0)
        sizes = [value.size, value.itemsize]
        rest = [np.int64(each) for each in (*value.shape, *value.strides)]
        return [nothing, nothing, *map(np.int64, sizes), Address(value), *rest]
    if isinstance(value, tuple):
        return [each for member in value for each in flattened(member)]
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
    allowed = "allowed: numpy arrays and scalars, numbers, tuples of them"
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
    from numba.cuda import compiler, dispatcher

    plain = getattr(function, "py_func", function)
    types = tuple(numba.typeof(each) for each in arguments)
    options = {"lineinfo": lineinfo, "cc": (arch // 10, arch % 10)}
    # Device functions are compiled for the current device, which need not be there.
    card = SimpleNamespace(compute_capability=options["cc"])
    with mock.patch.object(dispatcher, "get_current_device", lambda: card):
        if hasattr(compiler, "compile_all"):
            # With the CUDA C++ that float16 and others call, which is linked as one text.
            with mock.patch.object(compiler.nvrtc, "compile", of_cuda):
                parts, returned = compiler.compile_all(
                    plain, types, device=False, abi="numba", output="ptx", **options
                )
            text = "\n".join(texts_of(parts))
        else:
            text, returned = cuda.compile_ptx(plain, types, device=False, **options)
    if "cudaCGSynchronize" in text:
        text += DEVICE_RUNTIME
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
    arguments  numpy arrays, also strided ones, and scalars; numbers (int is int64, float
               float64, as Numba has it); tuples of these
    arch       compute capability, 80 or 90
    launch     further options of ptxvm.Kernel.launch
    """
    module = compile(function, *arguments, arch=arch)
    values: Sequence[object] = [each for value in arguments for each in flattened(value)]
    return module.kernel().launch(*values, grid=grid, block=block, shared=shared, **launch)
