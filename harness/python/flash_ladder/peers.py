# SPDX-License-Identifier: MIT
"""The C interface of libfa.so to `fa bench` (capi.h), for a program that times kernels of its own
beside the rungs, such as scripts/peers.py. Needs neither numpy nor torch."""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flash_ladder._errors import Refused
from flash_ladder._problem import DTYPES, Problem, problem_of

API_VERSION = 5
OK, UNSUPPORTED, OUT_OF_MEMORY, ERROR = range(4)
FLOAT16, BFLOAT16, FLOAT32 = DTYPES


@dataclass(frozen=True)
class PeerProblem(Problem):
    """What a callback is asked about."""

    device: int = 0  # the ordinal of the GPU that holds the tensors

    @property
    def q_shape(self) -> tuple[int, int, int, int]:
        if self.query_lengths:  # packed
            return (1, self.heads, sum(self.query_lengths), self.head_dim)
        return (self.batch, self.heads, self.seq_q, self.head_dim)

    @property
    def kv_shape(self) -> tuple[int, int, int, int]:
        if self.query_lengths:
            return (1, self.kv_heads, sum(self.lengths or ()), self.head_dim)
        return (self.batch, self.kv_heads, self.seq_kv, self.head_dim)

    def strides_of(self, name: str) -> tuple[int, int, int, int] | None:
        """Those of a tensor in elements; None: it is contiguous. Without strides of its own a
        gradient has those of its tensor."""
        if self.strides is None or name == "lse":
            return None
        names = ("q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v")
        place = names.index(name if 3 * len(names) == len(self.strides) else name[-1])
        batch, head, row = self.strides[3 * place :][:3]
        return (batch, head, row, 1)


@functools.lru_cache
def peer_problem(text: bytes) -> PeerProblem:
    """The problem that a callback is given."""
    return problem_of(json.loads(text), PeerProblem)


SupportsCallback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32
)


class TensorsStruct(ctypes.Structure):
    """fa_tensors."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "lse", "d_o", "d_q", "d_k", "d_v")
    ]


LaunchCallback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,  # user
    ctypes.c_char_p,
    ctypes.POINTER(TensorsStruct),
    ctypes.c_void_p,  # stream
    ctypes.c_void_p,  # message
    ctypes.c_int32,  # its size
)


class PeerStruct(ctypes.Structure):
    """fa_peer."""

    _fields_ = [
        ("id", ctypes.c_char_p),
        ("variant", ctypes.c_char_p),
        ("unavailable_reason", ctypes.c_char_p),
        ("supports", SupportsCallback),
        ("launch", LaunchCallback),
        ("user", ctypes.c_void_p),
        ("matmul", ctypes.c_int64 * 3),
        ("copy_bytes", ctypes.c_int64),
        ("device_bytes", ctypes.POINTER(ctypes.c_int64)),
    ]


def write_message(address: int | None, size: int, text: str) -> None:
    """Stores text as a NUL-terminated string of at most size bytes, cut at a character."""
    if not address or size <= 0:
        return
    data = text.encode()[: size - 1].decode(errors="ignore").encode()
    ctypes.memmove(address, data + b"\0", len(data) + 1)


def load_library(path: Path) -> ctypes.CDLL:
    """The library at this path; Refused says what is wrong with it."""
    try:
        library = ctypes.CDLL(str(path))
        library.fa_api_version.restype = ctypes.c_int32
        library.fa_bench.restype = ctypes.c_int32
        library.fa_bench.argtypes = [
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(PeerStruct),
            ctypes.c_int32,
        ]
    except (OSError, AttributeError) as error:
        words = str(error).strip().split("\n")[0] or type(error).__name__
        raise Refused(f"cannot load {path}: {words}") from error
    version = library.fa_api_version()
    if version != API_VERSION:
        raise Refused(f"{path} has interface version {version}, this package {API_VERSION}")
    return library


def run_bench(library: ctypes.CDLL, argv: Sequence[str], structs: Sequence[PeerStruct]) -> int:
    arguments = (ctypes.c_char_p * len(argv))(*[word.encode() for word in argv])
    peers = (PeerStruct * len(structs))(*structs)
    return int(library.fa_bench(len(argv), arguments, peers, len(structs)))
