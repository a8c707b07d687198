# SPDX-License-Identifier: MIT
"""Triton kernels on the machine: compiled for a card that need not be there, and run.

  import numpy as np, ptxvm.triton, triton, triton.language as tl

  @triton.jit
  def add(x, y, out, n, BLOCK: tl.constexpr): ...

  result = ptxvm.triton.run(add, (4,), x, y, out, 1000, BLOCK=256)

Needs the package triton, and no GPU. What Triton makes for the `arch` (80, 90 or 100) runs as it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxvm._arguments import SWIZZLES, Address, TensorMap, root_of
from ptxvm._errors import LaunchError
from ptxvm._module import Module
from ptxvm._result import Result

ARCHITECTURES = (80, 86, 89, 90, 100)
FLOATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
SMALL_FLOATS = {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # of a configuration
DIVISOR = 16  # Triton compiles another kernel for pointers and integers that it divides

Grid = int | Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor made outside of the kernel, as Triton's TensorDescriptor is of a tensor.

    block_shape   extents of the block that the kernel loads or stores, those of the array's axes
    """

    array: NDArray[Any]
    block_shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.block_shape) != self.array.ndim:
            axes = self.array.ndim
            raise LaunchError(f"block_shape {self.block_shape} of an array of {axes} axes")

    @property
    def strides(self) -> list[int]:
        """In elements."""
        return [each // self.array.itemsize for each in self.array.strides]


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled for one set of argument types."""

    module: Module
    name: str
    threads: int
    shared: int
    cluster: tuple[int, int, int]
    scratch: tuple[int, ...]  # bytes a block of the buffers that follow the arguments
    signature: Mapping[str, Any]  # Triton's types by parameter; "constexpr" is no argument
    maps: tuple[Mapping[str, Any], ...]  # of the descriptors, where the TMA loads them
    asm: Mapping[str, Any]  # "ttir", "ttgir", "llir", "ptx", ...

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """Those of the machine code, of the values of all parameters."""
        maps = iter(self.maps)
        return [
            each
            for name, kind in self.signature.items()
            for each in passed(values[name], kind, maps)
        ]


def passed(value: Any, kind: Any, maps: Iterator[Mapping[str, Any]]) -> Iterator[Any]:
    """What the machine code takes for one argument of Triton."""
    if isinstance(kind, tuple):
        for member, of_member in zip(value, kind, strict=True):
            yield from passed(member, of_member, maps)
    elif isinstance(value, Descriptor):
        yield from passed_descriptor(value, next(maps, None))
    elif kind != "constexpr":
        yield value


def passed_descriptor(value: Descriptor, layout: Mapping[str, Any] | None) -> Iterator[Any]:
    """A tensor map, or pointer, extents and strides where there is no TMA; extents and strides."""
    shape, strides = value.array.shape, [np.int64(each) for each in value.strides]
    if layout is None:
        no = np.uint8(0)  # neither NaN beyond the end nor tf32
        yield from (Address(value.array), *(np.int64(each) for each in shape), *strides, no, no)
    elif layout.get("is_im2col"):
        raise LaunchError("a descriptor of im2col copies is not supported")
    else:
        padded = bool(layout.get("fp4_padded"))
        *outer, inner = layout["block_size"]
        # Of padded 4-bit floats it counts the bytes of shared memory, twice those of the array.
        box = (*outer, inner // 2 if padded else inner)
        yield TensorMap(value.array, box, SWIZZLES[layout["swizzle"]], packed=padded, gaps=padded)
    yield from (*(np.int32(each) for each in shape), *strides)


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
    if isinstance(value, Descriptor):
        extents = ", ".join(map(str, value.block_shape))
        return f"tensordesc<{type_name(value.array.dtype)}[{extents}]>"
    if isinstance(value, np.generic):
        return type_name(value.dtype)
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    allowed = "allowed: a numpy array, a number, None, a Descriptor, tuples of these"
    raise LaunchError(f"{name} is a {type(value).__name__}; {allowed}")


def is_divisible(value: object) -> bool:
    """The machine's buffers begin at multiples of 256 bytes, views within them where they do."""
    if isinstance(value, np.ndarray):
        return (value.ctypes.data - root_of(value).ctypes.data) % DIVISOR == 0
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        return False
    return value % DIVISOR == 0


def is_function(kernel: Any) -> bool:
    return hasattr(kernel, "params")


def wrappers(kernel: Any) -> list[Any]:
    """@triton.autotune and @triton.heuristics around a kernel, the outermost first."""
    found = []
    while not is_function(kernel) and hasattr(kernel, "fn"):
        found.append(kernel)
        kernel = kernel.fn
    return found


def unwrapped(kernel: Any) -> Any:
    """The function under @triton.jit."""
    while not is_function(kernel) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    if not is_function(kernel):
        raise LaunchError(f"{kernel!r} is not a @triton.jit function")
    return kernel


def chosen(
    kernel: Any, arguments: Sequence[object], named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, options) that decorators choose where they are not given: nothing is timed here,
    so @triton.autotune chooses its first configuration; @triton.heuristics computes."""
    names = [each.name for each in unwrapped(kernel).params]
    values: dict[str, Any] = dict(zip(names, arguments, strict=False)) | dict(named)
    given, more, options = set(values), dict[str, Any](), dict[str, Any]()
    for each in wrappers(kernel):
        if getattr(each, "configs", None):
            first = each.configs[0]
            more |= {k: v for k, v in first.kwargs.items() if k not in given}
            options |= {k: getattr(first, k) for k in OPTIONS if getattr(first, k, None)}
            more |= {k: v for k, v in options.items() if k in names and k not in given}
        elif hasattr(each, "values"):
            for name, function in each.values.items():
                if name not in given:
                    more[name] = function({**values, **more})
        values |= more
    return more, options


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

    arch      compute capability: 80, 90 or 100
    options   num_warps, num_stages, num_ctas, ... of triton.compile
    """
    if arch not in ARCHITECTURES:
        raise LaunchError(f"arch {arch}; allowed: {', '.join(map(str, ARCHITECTURES))}")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = unwrapped(kernel)
    values = bound(kernel, arguments, named or {})
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}

    def kind_of(path: tuple[int, ...], parameter: Any, value: Any) -> Any:
        if isinstance(value, tuple) and not parameter.is_constexpr:
            return tuple(kind_of((*path, i), parameter, each) for i, each in enumerate(value))
        special = not parameter.do_not_specialize
        one = special and isinstance(value, int) and not isinstance(value, bool) and value == 1
        if parameter.is_constexpr or value is None or one:
            constants[path] = value
            return "constexpr"
        if special and not parameter.do_not_specialize_on_alignment and is_divisible(value):
            attributes[path] = [["tt.divisibility", DIVISOR]]
        return type_of(parameter.name, value)

    signature = {
        each.name: kind_of((place,), each, values[each.name])
        for place, each in enumerate(kernel.params)
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    return compiled_of(made, signature, values)


def compiled_of(made: Any, signature: Mapping[str, Any], values: Mapping[str, Any]) -> Compiled:
    data = made.metadata
    module = Module.parse(made.asm["ptx"], f"{data.name}.ptx")
    ctas = getattr(data, "num_ctas", 1)
    scratch = [getattr(data, f"{each}_scratch_size", 0) for each in ("global", "profile")]
    maps = tuple(getattr(data, "tensordesc_meta", None) or ())
    each = iter(maps)
    given = [x for name, kind in signature.items() for x in passed(values[name], kind, each)]
    more = len(module.kernel(data.name).parameters) - len(given)
    return Compiled(
        module=module,
        name=data.name,
        threads=32 * data.num_warps,
        shared=data.shared,
        cluster=tuple(getattr(data, "cluster_dims", (ctas, 1, 1))),
        scratch=tuple(scratch[:more]),
        signature=signature,
        maps=maps,
        asm=made.asm,
    )


def extents_of(grid: Grid, values: Mapping[str, Any]) -> tuple[int, ...]:
    if callable(grid):
        grid = grid(values)
    return (grid,) if isinstance(grid, int) else tuple(grid)


def own_option(name: str, default: Any, parameters: set[str], named: dict[str, Any]) -> Any:
    """An option of `run`, taken out of `named`: name_ where the kernel has a parameter `name`."""
    return named.pop(f"{name}_" if name in parameters else name, default)


def run(
    kernel: Any,
    grid: Grid,
    /,
    *arguments: object,
    num_warps: int | None = None,
    num_stages: int | None = None,
    **named: Any,
) -> Result:
    """Compiles a kernel and runs it. What it writes is in the arrays afterwards.

    kernel     a @triton.jit function
    grid       extents, or a function of the arguments by name, as in kernel[grid]
    arguments  one a parameter: numpy arrays are pointers; numbers; None; a Descriptor; tuples
    arch       compute capability: 80, 90 or 100; 80 if not given
    num_warps, num_stages   as in a launch of Triton; 4 and 3 if not given; where the kernel has a
                            parameter of the same name, it gets the value as well
    launch     further options of ptxvm.Kernel.launch: {"checkers": False}
    named      parameters by name: those that are tl.constexpr

    A name that is one of the kernel's parameters is that parameter; where one is called arch or
    launch, the option is arch_ or launch_.

    Arrays of bfloat16 and float8 are those of the package ml_dtypes. Nothing is timed: of a kernel
    under @triton.autotune the first configuration is taken, where no other one is given by name.
    """
    names = {each.name for each in unwrapped(kernel).params}
    arch, launch = own_option("arch", 80, names, named), own_option("launch", None, names, named)
    named |= {k: v for k, v in (("num_warps", num_warps), ("num_stages", num_stages)) if v}
    options = {k: v for k, v in named.items() if k not in names or k in OPTIONS}
    named = {k: v for k, v in named.items() if k in names}
    more, of_configuration = chosen(kernel, arguments, named)
    named |= more
    options = {"num_warps": 4, "num_stages": 3} | of_configuration | options
    kernel = unwrapped(kernel)
    values = bound(kernel, arguments, named)
    compiled = compile(kernel, arguments, named, arch, **options)
    extents = extents_of(grid, values)
    blocks = int(np.prod(extents))
    scratch = [np.zeros(max(each * blocks, 1), np.uint8) for each in compiled.scratch]
    return compiled.module.kernel(compiled.name).launch(
        *compiled.arguments(values),
        *scratch,
        grid=tuple(n * m for n, m in zip((*extents, 1, 1), compiled.cluster, strict=False)),
        block=compiled.threads,
        cluster=compiled.cluster,
        shared=compiled.shared,
        **(launch or {}),
    )
