# SPDX-License-Identifier: MIT
"""Kernel arguments made of numpy arrays, numbers and tensor maps."""

from __future__ import annotations

import ctypes
import operator
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from ptxvm import _native
from ptxvm._errors import LaunchError

Array = NDArray[Any]
SWIZZLES = (0, 32, 64, 128)
MOST_DIMENSIONS = 5
LARGEST_BOX = 256
# Of CUtensorMap; aligned to 128 bytes since CUDA 13, which a struct that holds one says.
MAP_BYTES, MAP_ALIGNMENT, NEW_MAP_ALIGNMENT = 128, 64, 128
BUFFER_ALIGNMENT = 256  # of the machine's buffers, in bytes
# struct's letters for the types that a parameter is declared with
INTEGERS = {"8": "b", "16": "h", "32": "i", "64": "q"}  # upper case: without a sign
FLOATS = {"f16": "e", "f32": "f", "f64": "d"}

# Types that reductions through a tensor map know: 1 + their CUtensorMapDataType.
MAP_ELEMENTS = {
    "uint8": 1, "uint16": 2, "uint32": 3, "int32": 4, "uint64": 5, "int64": 6,
    "float16": 7, "float32": 8, "float64": 10, "bfloat16": 11,
}  # fmt: skip
PACKED, GAPS = 14, 15


@dataclass(frozen=True)
class TensorMap:
    """The view of an array through which bulk tensor copies read or write boxes (PTX ISA 5.5), as
    cuTensorMapEncodeTiled makes it. Dimensions are those of the array, outermost first.

    array    up to 5 dimensions; may be a strided view, its last axis contiguous
    box      extents of the box that one copy moves
    swizzle  bytes: 0, 32, 64 or 128
    packed   a byte of the array is two elements of 4 bits, which coordinates count
    gaps     of packed ones; 16 elements have 16 bytes of shared memory, and the first 8 are used
    """

    array: Array
    box: tuple[int, ...]
    swizzle: int = 0
    packed: bool = False
    gaps: bool = False

    def __post_init__(self) -> None:
        array = self.array
        if fault := fault_of(array):
            raise ValueError(f"a tensor map of {fault}")
        rank = array.ndim
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise ValueError(f"a tensor map of {rank} dimensions; allowed: 1 to {MOST_DIMENSIONS}")
        given = self.box if isinstance(self.box, (Sequence, np.ndarray)) else (None,)
        if not all(isinstance(each, (int, np.integer)) for each in given):
            raise ValueError(f"box {self.box!r}; allowed: extents from 1 to {LARGEST_BOX}")
        if len(self.box) != rank:
            raise ValueError(f"box {self.box} has {len(self.box)} extents, the array {rank}")
        if not all(1 <= each <= LARGEST_BOX for each in self.box):
            raise ValueError(f"box {self.box}; allowed: extents from 1 to {LARGEST_BOX}")
        if array.strides[-1] != array.itemsize or min(array.strides) < 0:
            raise ValueError(
                f"strides {array.strides}; allowed: positive, the last one {array.itemsize}"
            )
        if self.swizzle not in SWIZZLES:
            raise ValueError(f"swizzle {self.swizzle}; allowed: {', '.join(map(str, SWIZZLES))}")
        if self.packed and array.dtype.name != "uint8":
            raise ValueError(f"a packed tensor map of {array.dtype}; allowed: uint8")
        if self.gaps and not self.packed:
            raise ValueError("a tensor map with gaps; allowed: where it is packed")

    def element(self) -> int:
        if self.packed:
            return GAPS if self.gaps else PACKED
        return MAP_ELEMENTS.get(self.array.dtype.name, 0)

    def to_c(self) -> _native.CTensorMap:
        rank, padding = self.array.ndim, [0] * (MOST_DIMENSIONS - self.array.ndim)
        ones = [1] * len(padding)
        return _native.CTensorMap(
            self.array.itemsize,
            rank,
            (ctypes.c_uint64 * 5)(*reversed(self.array.shape), *ones),
            (ctypes.c_uint64 * 5)(*reversed(self.array.strides), *padding),
            (ctypes.c_uint32 * 5)(*reversed(self.box), *ones),
            self.swizzle,
            self.element(),
        )


@dataclass(frozen=True)
class Address:
    """The address of an array's first element, for code that is told the strides as well."""

    array: Array


class Struct:
    """A struct argument: its members as C lays them out. Members are numpy arrays, which are
    pointers, numpy scalars, bytes, TensorMaps, and further Structs.

      ptxvm.Struct(array, np.int32(7))     # struct { float* x; int n; }
    """

    def __init__(self, *members: object) -> None:
        for each in members:
            if not isinstance(each, (np.ndarray, np.generic, bytes, TensorMap, Struct)):
                allowed = "allowed: numpy arrays and scalars, bytes, TensorMap, Struct"
                raise ValueError(f"a struct member of type {type(each).__name__}; {allowed}")
        self.members = members

    def layout(
        self, map_alignment: int = MAP_ALIGNMENT
    ) -> tuple[bytes, list[tuple[int, Array | TensorMap]], int]:
        """(the bytes, of each pointer and tensor map its place and what it is, the alignment)"""
        data, places, widest = bytearray(), list[tuple[int, Array | TensorMap]](), 1
        for member in self.members:
            value, align, inner = b"\0" * 8, 8, list[tuple[int, Array | TensorMap]]()
            if isinstance(member, Struct):
                value, inner, align = member.layout(map_alignment)
            elif isinstance(member, np.generic):
                value, align = member.tobytes(), member.dtype.alignment
            elif isinstance(member, bytes):
                value, align = member, 1
            elif isinstance(member, TensorMap):
                value, align, inner = b"\0" * MAP_BYTES, map_alignment, [(0, member)]
            elif isinstance(member, np.ndarray):
                inner = [(0, member)]
            data += b"\0" * (-len(data) % align)
            places += [(len(data) + at, each) for at, each in inner]
            data += value
            widest = max(widest, align)
        data += b"\0" * (-len(data) % widest)
        return bytes(data), places, widest


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter (PTX ISA 7.1)."""

    name: str
    type: str  # as declared: "u64", "f32", or "b8" for an aggregate
    offset: int
    bytes: int
    align: int


def fault_of(array: object) -> str:
    """What a kernel cannot have of an array, and what is allowed; empty when it can."""
    if not isinstance(array, np.ndarray):
        return f"a {type(array).__name__}; allowed: a numpy array"
    if isinstance(array, np.ma.MaskedArray):
        return "an array with a mask; allowed: one without"
    if root_of(array).dtype.hasobject:
        return f"an array of {array.dtype}; allowed: numbers, not Python objects"
    if not array.dtype.isnative:
        return f"an array of {array.dtype.str}; allowed: the byte order of this machine"
    return ""


def root_of(array: Array) -> Array:
    """The array that owns the memory of this view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Arguments:
    """The C form of a launch's arguments. An array is a buffer of its own, so that what a kernel
    reads or writes beyond it is found, a view too; arrays that overlap are one buffer."""

    def __init__(self, parameters: Sequence[Parameter], values: Sequence[object]) -> None:
        if len(parameters) != len(values):
            names = ", ".join(f"{each.name} ({each.type})" for each in parameters)
            raise LaunchError(f"{len(values)} arguments for the parameters: {names or 'none'}")
        self.kept: list[object] = []  # what the C form points at
        self.buffers: list[_native.Buffer] = []
        self.placed: list[tuple[_native.Argument | _native.Pointer, str, Array]] = []
        self.list = [self.argument(*each) for each in zip(parameters, values, strict=True)]
        self.make_buffers()

    def c_buffers(self) -> Any:
        return (_native.Buffer * len(self.buffers))(*self.buffers)

    def c_arguments(self) -> Any:
        return (_native.Argument * len(self.list))(*self.list)

    def argument(self, parameter: Parameter, value: object) -> _native.Argument:
        if isinstance(value, np.ndarray):
            return self.pointer(parameter, value)
        if isinstance(value, Address):
            return self.pointer(parameter, value.array, strided=True)
        if isinstance(value, TensorMap):
            return self.tensor_map(parameter, value)
        if isinstance(value, Struct):
            return self.structure(parameter, value)
        data = value_bytes(parameter, value)
        self.kept.append(data)
        argument = _native.Argument(kind=_native.VALUE_ARGUMENT, value_bytes=len(data))
        argument.value = data
        return argument

    def pointer(
        self, parameter: Parameter, array: Array, strided: bool = False
    ) -> _native.Argument:
        if parameter.bytes != 8 or parameter.type[0] not in "usb":
            raise refuse(parameter, "an array", "a pointer needs 8 bytes")
        self.check(parameter, array)
        if not (array.flags.c_contiguous or strided):
            raise refuse(
                parameter,
                f"an array with strides {array.strides} for shape {array.shape}",
                "allowed: C-contiguous; pass numpy.ascontiguousarray(array)",
            )
        argument = _native.Argument(kind=_native.POINTER_ARGUMENT)
        self.placed.append((argument, parameter.name, array))
        return argument

    def structure(self, parameter: Parameter, value: Struct) -> _native.Argument:
        new = parameter.align >= NEW_MAP_ALIGNMENT
        data, members, _ = value.layout(NEW_MAP_ALIGNMENT if new else MAP_ALIGNMENT)
        exact_bytes(parameter, data, f"a struct of {len(data)} bytes")
        pointers = (_native.Pointer * len(members))()
        for pointer, (at, each) in zip(pointers, members, strict=True):
            self.member(parameter, pointer, each)
            pointer.at = at
        self.kept += [data, pointers]
        argument = _native.Argument(
            kind=_native.VALUE_ARGUMENT,
            value_bytes=len(data),
            pointers=pointers,
            n_pointers=len(members),
        )
        argument.value = data
        return argument

    def member(
        self, parameter: Parameter, pointer: _native.Pointer, value: Array | TensorMap
    ) -> None:
        if isinstance(value, TensorMap):
            self.map(parameter, pointer, value)
            return
        self.check(parameter, value)
        self.placed.append((pointer, parameter.name, value))

    def tensor_map(self, parameter: Parameter, value: TensorMap) -> _native.Argument:
        argument = _native.Argument(kind=_native.TENSOR_MAP_ARGUMENT)
        self.map(parameter, argument, value)
        return argument

    def map(
        self, parameter: Parameter, target: _native.Argument | _native.Pointer, value: TensorMap
    ) -> None:
        c_map = value.to_c()
        self.kept.append(c_map)
        target.map = ctypes.pointer(c_map)
        self.placed.append((target, parameter.name, value.array))

    @staticmethod
    def check(parameter: Parameter, array: Array) -> None:
        if fault := fault_of(array):
            raise LaunchError(f"{parameter.name} is .{parameter.type}, got {fault}")

    def make_buffers(self) -> None:
        """Gives each pointer and tensor map its buffer, in the order of the arguments."""
        spans = joined(span_of(array) for _, _, array in self.placed)
        numbers = dict[tuple[int, int], int]()
        for target, name, array in self.placed:
            first, end = spans[span_of(array)]
            number = numbers.setdefault((first, end), len(self.buffers))
            if number == len(self.buffers):
                if any(each.name == name.encode() for each in self.buffers):
                    name += f" ({number})"  # of a struct with several pointers
                # No better aligned than in an array whose first element is aligned.
                skew = (first - span_of(root_of(array))[0]) % BUFFER_ALIGNMENT
                buffer = _native.Buffer(name.encode(), first, end - first, skew=skew)
                self.buffers.append(buffer)
            self.buffers[number].written_back |= array.flags.writeable
            target.buffer, target.offset = number, array.ctypes.data - first


def span_of(array: Array) -> tuple[int, int]:
    """The addresses of the array's first byte and of the one after its last."""
    return byte_bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)


def joined(spans: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """For each span the one that it makes with those that it overlaps."""
    groups, reach = list[list[tuple[int, int]]](), 0
    for each in sorted(set(spans)):
        if not groups or each[0] >= reach:
            groups.append([])
        groups[-1].append(each)
        reach = max(reach, each[1])
    return {each: (group[0][0], max(end for _, end in group)) for group in groups for each in group}


def refuse(parameter: Parameter, got: str, why: str) -> LaunchError:
    return LaunchError(f"{parameter.name} is .{parameter.type}, got {got}; {why}")


def value_bytes(parameter: Parameter, value: object) -> bytes:
    """The bytes of a number, a numpy scalar or a bytes object for this parameter."""
    if isinstance(value, np.generic):
        return exact_bytes(parameter, value.tobytes(), f"a {value.dtype.name}")
    if isinstance(value, (bytes, bytearray)):
        return exact_bytes(parameter, bytes(value), f"{len(value)} bytes")
    if isinstance(value, (bool, int, float)):
        return number_bytes(parameter, value)
    allowed = "allowed: a number, a numpy array or scalar, bytes, a Struct, or a TensorMap"
    raise refuse(parameter, f"a {type(value).__name__}", allowed)


def exact_bytes(parameter: Parameter, data: bytes, what: str) -> bytes:
    if len(data) != parameter.bytes:
        raise refuse(parameter, what, f"it has {parameter.bytes} bytes")
    return data


def number_bytes(parameter: Parameter, value: float) -> bytes:
    """A Python number as the declared type; what a .b type holds is that of the number."""
    kind, width = parameter.type[0], parameter.type[1:]
    if parameter.bytes * 8 != int(width):
        raise refuse(parameter, repr(value), f"an aggregate of {parameter.bytes} bytes takes bytes")
    if kind == "f" or (kind == "b" and isinstance(value, float)):
        letter = FLOATS.get(f"f{width}")
    elif isinstance(value, float):
        raise refuse(parameter, repr(value), "an integer is needed")
    else:
        # nvcc declares an int as .u32 too, so the declared sign says nothing.
        letter = INTEGERS[width] if value < 0 else INTEGERS[width].upper()
    try:
        if letter is None:
            raise OverflowError
        return struct.pack("<" + letter, value)
    except (struct.error, OverflowError):
        raise refuse(parameter, repr(value), "out of range") from None


def whole(what: str, value: object, least: int = 0, most: int = 2**31 - 1) -> int:
    """An integer in this range, of Python or numpy."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise LaunchError(f"{what} {value!r}; allowed: {least} to {most}")
    return number


def extents(what: str, given: int | Sequence[int]) -> Any:
    """1 to 3 extents as the C interface has them; missing ones are 1."""
    values = tuple(given) if isinstance(given, (Sequence, np.ndarray)) else (given,)
    try:
        if not 1 <= len(values) <= 3:
            raise LaunchError(what)
        numbers = [whole(what, each, 1, 2**32 - 1) for each in values]
    except LaunchError:
        message = f"{what} {given!r}; allowed: 1 to 3 extents of at least 1"
        raise LaunchError(message) from None
    return (ctypes.c_uint32 * 3)(*numbers, *([1] * (3 - len(numbers))))
