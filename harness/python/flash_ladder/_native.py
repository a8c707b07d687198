# SPDX-License-Identifier: MIT
"""The C interface of libfa.so to one pass, forward or backward (harness/capi/attention.h)."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_void_p
from pathlib import Path

from flash_ladder import _paths
from flash_ladder._errors import EnvironmentFailure, raise_for
from flash_ladder._problem import Problem

VERSION = 8
MESSAGE_BYTES = 4096


class CTensors(ctypes.Structure):
    """fa_attention_tensors: addresses, None for what the problem does not have."""

    _fields_ = [
        ("q", c_void_p),
        ("k", c_void_p),
        ("v", c_void_p),
        ("o", c_void_p),
        ("lse", c_void_p),
        ("lengths", c_void_p),
        ("page_table", c_void_p),
        ("kv_scales", c_void_p),
        ("sinks", c_void_p),
        ("cu_seqlens_q", c_void_p),
        ("cu_seqlens_k", c_void_p),
        ("d_o", c_void_p),
        ("d_q", c_void_p),
        ("d_k", c_void_p),
        ("d_v", c_void_p),
    ]


FAILURE = [c_char_p, c_int32]  # message, size
SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "fa_attention_version": (c_int32, []),
    "fa_attention_rungs": (c_char_p, []),
    "fa_attention_plan_make": (
        c_int32,
        [c_char_p, c_char_p, c_int32, POINTER(c_void_p), *FAILURE],
    ),
    "fa_attention_plan_free": (None, [c_void_p]),
    "fa_attention_scratch_count": (c_int32, [c_void_p]),
    "fa_attention_scratch": (None, [c_void_p, c_int32, POINTER(c_int64), POINTER(c_int32)]),
    "fa_attention_launch": (
        c_int32,
        [c_void_p, POINTER(CTensors), POINTER(c_void_p), c_void_p, *FAILURE],
    ),
    "fa_attention_run_on_machine": (
        c_int32,
        [c_char_p, c_char_p, c_char_p, POINTER(CTensors), POINTER(c_uint8), *FAILURE],
    ),
    "fa_attention_machine_takes": (c_int32, [c_char_p, c_char_p, *FAILURE]),
}


def load(path: Path) -> ctypes.CDLL:
    """The library at this path, or EnvironmentFailure that says what is wrong with it."""
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        advice = (
            ""
            if _paths.installed()
            else "; build the project (scripts/bench.sh) or set FA_BUILD_DIR"
        )
        raise EnvironmentFailure(f"{path} cannot be loaded ({error}){advice}") from error
    version = library.fa_attention_version()
    if version != VERSION:
        raise EnvironmentFailure(f"{path} has interface version {version}, this package {VERSION}")
    return library


@functools.cache
def library() -> ctypes.CDLL:
    return load(_paths.native("libfa.so"))


@functools.cache
def rung_ids() -> tuple[str, ...]:
    """All rungs in ladder order."""
    return tuple(library().fa_attention_rungs().decode().split(","))


def problem_text(problem: Problem) -> bytes:
    """The problem as the library reads it."""
    return json.dumps(dataclasses.asdict(problem)).encode()


class Message:
    """Where the library stores why something failed."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(MESSAGE_BYTES)

    def check(self, status: int) -> None:
        if status:
            raise_for(status, self.buffer.value.decode(errors="replace").strip())
