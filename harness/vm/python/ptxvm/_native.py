# SPDX-License-Identifier: MIT
"""The C interface of libptxvm_c.so (harness/vm/c/ptxvm_c.h)."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from ctypes import POINTER, c_char_p, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from ptxvm._errors import error_of

VERSION = 5
POINTER_ARGUMENT, VALUE_ARGUMENT, TENSOR_MAP_ARGUMENT = range(3)


class Buffer(ctypes.Structure):
    """ptxvm_buffer."""

    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("written_back", c_int32),
        ("skew", c_uint32),
    ]


class CTensorMap(ctypes.Structure):
    """ptxvm_tensor_map."""

    _fields_ = [
        ("element_bytes", c_uint32),
        ("rank", c_uint32),
        ("extents", c_uint64 * 5),
        ("strides", c_uint64 * 5),
        ("box", c_uint32 * 5),
        ("swizzle", c_uint32),
        ("element", c_uint32),
    ]


class Pointer(ctypes.Structure):
    """ptxvm_pointer."""

    _fields_ = [
        ("at", c_uint64),
        ("buffer", c_int32),
        ("offset", c_uint64),
        ("map", POINTER(CTensorMap)),
    ]


class Memory(ctypes.Structure):
    """ptxvm_memory."""

    _fields_ = [
        ("buffers", POINTER(Buffer)),
        ("variables", POINTER(Buffer)),
        ("n_buffers", c_int32),
        ("n_variables", c_int32),
    ]


class Argument(ctypes.Structure):
    """ptxvm_argument."""

    _fields_ = [
        ("kind", c_int32),
        ("buffer", c_int32),
        ("offset", c_uint64),
        ("value", c_char_p),
        ("value_bytes", c_uint64),
        ("map", POINTER(CTensorMap)),
        ("pointers", POINTER(Pointer)),
        ("n_pointers", c_int32),
    ]


class LaunchConfig(ctypes.Structure):
    """ptxvm_launch_config."""

    _fields_ = [
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("cluster", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("threads", c_int32),
        ("reversed", c_int32),
        ("checkers", c_int32),
        ("traced", c_int32),
        ("trace_blocks", POINTER(c_uint32)),
        ("max_warp_steps", c_uint64),
        ("ignored", POINTER(c_char_p)),
        ("n_ignored", c_int32),
        ("comments", c_int32),
        ("card", c_char_p),
        ("max_steps", c_uint64),
        ("cooperative", c_int32),
        ("global_races", c_int32),
        ("registers", c_uint32),
        ("stop", POINTER(c_uint8)),
        ("max_local_bytes", c_uint64),
    ]


# Texts come as addresses: they must be given back.
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "ptxvm_version": (c_int32, []),
    "ptxvm_module_parse": (c_void_p, [c_char_p, c_uint64, c_char_p, POINTER(c_void_p)]),
    "ptxvm_module_free": (None, [c_void_p]),
    "ptxvm_module_describe": (c_void_p, [c_void_p, POINTER(c_void_p)]),
    "ptxvm_module_find": (c_void_p, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "ptxvm_module_variable": (
        c_void_p,
        [c_void_p, c_char_p, c_void_p, c_uint64, POINTER(c_void_p)],
    ),
    "ptxvm_launch": (
        c_void_p,
        [
            c_void_p,
            c_char_p,
            POINTER(LaunchConfig),
            POINTER(Memory),
            POINTER(Argument),
            c_int32,
            POINTER(c_void_p),
            POINTER(c_void_p),
        ],
    ),
    "ptxvm_text_free": (None, [c_void_p]),
}


def find() -> Path:
    """Beside this file in an installed package; else in the build folder of the source tree."""
    here = Path(__file__).resolve().parent
    installed = here / "libptxvm_c.so"
    build = Path(os.environ.get("FA_BUILD_DIR") or here.parents[3] / "build")
    return installed if installed.is_file() else build / "libptxvm_c.so"


@functools.cache
def library() -> ctypes.CDLL:
    path = find()
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded ({error}); build the target ptxvm_c") from error
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    version = loaded.ptxvm_version()
    if version != VERSION:
        raise ImportError(f"{path} has interface version {version}, this package {VERSION}")
    return loaded


def take_text(address: int | None) -> str:
    """The text at this address, which is given back to the library."""
    if not address:
        return ""
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        library().ptxvm_text_free(address)


def call(function: str, *arguments: Any) -> int:
    """What the function returns, an address; what it stores in *error is raised."""
    error = c_void_p()
    result = getattr(library(), function)(*arguments, ctypes.byref(error))
    if not result:
        raise error_of(json.loads(take_text(error.value)))
    return int(result)
