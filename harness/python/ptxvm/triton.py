# SPDX-License-Identifier: MIT
"""Triton kernels on the machine: compiled for a card that need not be there, and run.

  import numpy as np, ptxvm.triton, triton, triton.language as tl

  @triton.jit
  def add(x, y, out, n, BLOCK: tl.constexpr): ...

  result = ptxvm.triton.run(add, (4,), x, y, out, 1000, BLOCK=256)

Needs the package triton, and no GPU. What Triton makes for the `arch`, 80 or 90, runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxvm._errors import LaunchError
from ptxvm._module import Module
from ptxvm._result import Result

ARCHITECTURES = (80, 86, 89, 90)
FLOATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
SMALL_FLOATS = {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
DIVISOR = 16  # Triton compiles another kernel for pointers and integers that it divides

Grid = int | Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled for one set of argument types."""

    module: Module
    name: str
    threads: int
    shared: int
    cluster: tuple[int, int, int]
    scratch: tuple[int, ...]  # bytes a block of the buffers that follow the arguments
    given: tuple[str, ...]  # parameters that are arguments of the machine code
    asm: Mapping[str, Any]  # "ttir", "ttgir", "llir", "ptx", ...


def type_name(dtype: np.dtype[Any]) -> str:
    """Triton's name of an element type."""
    name = dtype.name
    if name in FLOATS or name in SMALL_FLOATS:
        return FLOATS.get(name) or SMALL_FLOATS[name]
    if name == "bool":
        return "i1"
    if dtype.kind in "iu":
        return f"{dtype.kind}{8 * dtype.itemsize}"
    raise LaunchError(f"an array of {name}; allowed: integers, bool, {', '.join(FLOATS)}")


def type_of(name: str, value: object) -> str:
    """Triton's type of an argument."""
    if isinstance(value, np.ndarray):
        return "*" + type_name(value.dtype)
    if isinstance(value, np.generic):
        return type_name(value.dtype)
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    raise LaunchError(f"{name} is a {type(value).__name__}; allowed: a numpy array, a number, None")


def is_divisible(value: object) -> bool:
    """The machine's buffers begin at multiples of 256 bytes, views within them where they do."""
    if isinstance(value, np.ndarray):
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        return (value.ctypes.data - root.ctypes.data) % DIVISOR == 0
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value % 16 == 0


def unwrapped(kernel: Any) -> Any:
    """The function under @triton.jit; autotuning and heuristics choose nothing here."""
    while not hasattr(kernel, "params") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    if not hasattr(kernel, "params"):
        raise LaunchError(f"{kernel!r} is not a @triton.jit function")
    return kernel


def bound(kernel: Any, arguments: Sequence[object], named: Mapping[str, object]) -> dict[str, Any]:
    """Arguments by parameter name, in the order of the parameters."""
    names = [each.name for each in kernel.params]
    values = dict(zip(names, arguments, strict=False))
    if len(arguments) > len(names) or any(each in values for each in named):
        raise LaunchError(f"{len(arguments)} arguments for the parameters {', '.join(names)}")
    values |= named
    for each in kernel.params:
        if each.name not in values and each.has_default:
            values[each.name] = each.default
    wrong = [each for each in values if each not in names]
    missing = [each for each in names if each not in values]
    if wrong or missing:
        what = f"no parameter {wrong[0]}" if wrong else f"no value for {missing[0]}"
        raise LaunchError(f"{what}; the parameters are {', '.join(names)}")
    return {each: values[each] for each in names}


def compile(
    kernel: Any,
    arguments: Sequence[object],
    named: Mapping[str, object] | None = None,
    arch: int = 80,
    **options: Any,
) -> Compiled:
    """Compiles a @triton.jit function for these arguments, as a launch with them would.

    arch      compute capability, 80 or 90
    options   num_warps, num_stages, num_ctas, ... of triton.compile
    """
    if arch not in ARCHITECTURES:
        raise LaunchError(f"arch {arch}; allowed: {', '.join(map(str, ARCHITECTURES))}")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = unwrapped(kernel)
    values = bound(kernel, arguments, named or {})
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for place, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        special = not parameter.do_not_specialize
        one = special and isinstance(value, int) and not isinstance(value, bool) and value == 1
        if parameter.is_constexpr or value is None or one:
            signature[parameter.name] = "constexpr"
            constants[(place,)] = value
            continue
        signature[parameter.name] = type_of(parameter.name, value)
        if special and not parameter.do_not_specialize_on_alignment and is_divisible(value):
            attributes[(place,)] = [["tt.divisibility", DIVISOR]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    return compiled_of(made, [each for each, kind in signature.items() if kind != "constexpr"])


def compiled_of(made: Any, given: Sequence[str]) -> Compiled:
    data = made.metadata
    module = Module.parse(made.asm["ptx"], f"{data.name}.ptx")
    ctas = getattr(data, "num_ctas", 1)
    scratch = [getattr(data, f"{each}_scratch_size", 0) for each in ("global", "profile")]
    more = len(module.kernel(data.name).parameters) - len(given)
    return Compiled(
        module=module,
        name=data.name,
        threads=32 * data.num_warps,
        shared=data.shared,
        cluster=tuple(getattr(data, "cluster_dims", (ctas, 1, 1))),
        scratch=tuple(scratch[:more]),
        given=tuple(given),
        asm=made.asm,
    )


def extents_of(grid: Grid, values: Mapping[str, Any]) -> tuple[int, ...]:
    if callable(grid):
        grid = grid(values)
    return (grid,) if isinstance(grid, int) else tuple(grid)


def run(
    kernel: Any,
    grid: Grid,
    *arguments: object,
    arch: int = 80,
    num_warps: int = 4,
    num_stages: int = 3,
    launch: Mapping[str, Any] | None = None,
    **named: Any,
) -> Result:
    """Compiles a kernel and runs it. What it writes is in the arrays afterwards.

    kernel     a @triton.jit function
    grid       extents, or a function of the arguments by name, as in kernel[grid]
    arguments  one a parameter: numpy arrays are pointers; numbers; None
    arch       compute capability, 80 or 90
    num_warps, num_stages   as in a launch of Triton
    launch     further options of ptxvm.Kernel.launch: {"checkers": False}
    named      parameters by name: those that are tl.constexpr

    Arrays of bfloat16 and float8 are those of the package ml_dtypes.
    """
    kernel = unwrapped(kernel)
    names = {each.name for each in kernel.params}
    options = {each: named.pop(each) for each in list(named) if each not in names}
    values = bound(kernel, arguments, named)
    options |= {"num_warps": num_warps, "num_stages": num_stages}
    compiled = compile(kernel, arguments, named, arch, **options)
    extents = extents_of(grid, values)
    blocks = int(np.prod(extents))
    scratch = [np.zeros(max(each * blocks, 1), np.uint8) for each in compiled.scratch]
    return compiled.module.kernel(compiled.name).launch(
        *(values[each] for each in compiled.given),
        *scratch,
        grid=tuple(n * m for n, m in zip((*extents, 1, 1), compiled.cluster, strict=False)),
        block=compiled.threads,
        cluster=compiled.cluster,
        shared=compiled.shared,
        **(launch or {}),
    )
