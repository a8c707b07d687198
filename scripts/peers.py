#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the rungs beside other people's kernels: `fa bench` with PyTorch in the same process.

  PYTHONPATH=harness/python:harness/vm/python python3 scripts/peers.py --seqs 512,8192 --json runs/ladder.json

The arguments are those of `fa bench` (see `fa bench --help`). Rungs and peers share device buffers,
timing policy, interleaved rounds and result file; libfa.so does all of it and calls back here only
to launch a peer on given pointers. Runs under the python3 that has PyTorch.

  --peers fa2,cudnn   only these (default: all; "--peers list" prints what is available here)
  --then              what follows is another bench, in the same process

Peers in float16 and bfloat16, on contiguous tensors and on views: fa2 and cudnn (backends of
PyTorch's scaled_dot_product_attention) and fa3 (FlashAttention-3, from its own package or from
xformers 0.0.34; also with windows; against a cache with the split count that is fastest). In
float16: triton (its fused-attention tutorial kernel, where it can be imported) and flashinfer (new
queries against a cache only; whichever of its kernels is fastest, planned before it is timed). In
float32: torch_efficient (the memory-efficient backend). In all: torch_standard (matrix product,
softmax, matrix product) and the ceilings, cublas (a matrix product) and copy (device memory to
device memory). A peer that is not installed gives rows that say so. Spaced launches find the L2
flushed, those of the peers as well as ours, so that a cache of any size is read from memory.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import itertools
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    from flash_ladder._errors import Refused
    from flash_ladder._problem import FEW_QUERIES
    from flash_ladder.peers import (
        BFLOAT16,
        ERROR,
        FLOAT16,
        FLOAT32,
        OK,
        OUT_OF_MEMORY,
        UNSUPPORTED,
        LaunchCallback,
        PeerProblem,
        PeerStruct,
        SupportsCallback,
        TensorsStruct,
        load_library,
        peer_problem,
        run_bench,
        write_message,
    )
except ModuleNotFoundError as missing:
    advice = "run pip install . or set PYTHONPATH=harness/python:harness/vm/python"
    print(f"peers.py: error: {missing}; {advice}", file=sys.stderr)
    sys.exit(2)

INCORRECT, USAGE, ENVIRONMENT = 1, 2, 3  # exit codes of fa
REPOSITORY = Path(__file__).resolve().parent.parent

# --- peers ----------------------------------------------------------------------------------------


class Unsupported(Exception):
    """The peer does not take this problem; the text says why."""


class Unavailable(Exception):
    """The peer is not installed here; the text says what is missing."""


@dataclass(frozen=True)
class Tensors:
    """The inputs of one problem as tensors over the benchmark's own device memory."""

    q: Any
    k: Any
    v: Any
    o: Any = None  # of a backward pass, as its log-sum-exp and the gradient of O
    lse: Any = None
    d_o: Any = None


# Returns O, contiguous or not, [B, H, N, D], or the gradients of q, k and v.
Forward = Callable[[PeerProblem, Tensors], Any]


@dataclass(frozen=True)
class Peer:
    """Someone else's kernel. `unavailable` is empty when it can run."""

    id: str
    variant: str = ""
    unavailable: str = ""
    check: Callable[[PeerProblem], None] = lambda problem: None  # raises Unsupported
    forward: Forward | None = None
    backward: Forward | None = None
    # What forward returned, as [B, H, N, D]: applied to a result that is looked at, never timed.
    arrange: Callable[[PeerProblem, Any], Any] = lambda problem, result: result
    matmul: tuple[int, int, int] = (0, 0, 0)
    copy_bytes: int = 0
    takes_views: bool = False
    takes_windows: bool = False
    takes_packed: bool = False

    @property
    def is_ceiling(self) -> bool:
        """Runs no attention."""
        return any(self.matmul) or self.copy_bytes > 0


def require_nothing_more(peer: Peer, problem: PeerProblem) -> None:
    """Refuses what no peer takes, and what this one does not."""
    if problem.backward and peer.backward is None:
        raise Unsupported("timed without gradients only")
    if problem.query_lengths and not peer.takes_packed:
        raise Unsupported("timed without packed batches only")
    if problem.page > 0 or (problem.lengths and not problem.query_lengths):
        raise Unsupported("timed without pages and without lengths only")
    if problem.sinks:
        raise Unsupported("timed without sinks only")
    if problem.windowed and not peer.takes_windows:
        raise Unsupported("timed without windows only")
    if problem.strides and not peer.takes_views:
        raise Unsupported("timed on contiguous tensors only")


def require_all_heads(problem: PeerProblem) -> None:
    if problem.kv_heads != problem.heads:
        raise Unsupported("timed with as many heads of K and V as of Q only")


def require_half(problem: PeerProblem) -> None:
    if problem.dtype not in (FLOAT16, BFLOAT16):
        raise Unsupported("timed in float16 and bfloat16 only")


def require_float16(problem: PeerProblem) -> None:
    if problem.dtype != FLOAT16:
        raise Unsupported("timed in float16 only")


def require_square_causal(problem: PeerProblem) -> None:
    """For kernels whose causal mask is aligned to the top left, unlike ours."""
    if problem.causal and problem.seq_q != problem.seq_kv:
        raise Unsupported("its causal mask with seq_q != seq_kv is aligned differently")


def require_half_square_causal(problem: PeerProblem) -> None:
    require_half(problem)
    require_square_causal(problem)


def require_single_square_causal(problem: PeerProblem) -> None:
    if problem.dtype != FLOAT32:
        raise Unsupported("timed in float32 only")
    require_square_causal(problem)


def require_visible_keys(problem: PeerProblem) -> None:
    """For a softmax of the masked scores: a row without a visible key has none."""
    require_all_heads(problem)
    if problem.causal and problem.seq_q > problem.seq_kv:
        raise Unsupported("its softmax of a row without a visible key is NaN")


def sdpa_peer(
    torch: Any,
    id: str,
    backend_name: str,
    version: str,
    check: Callable[[PeerProblem], None] = require_half_square_causal,
) -> Peer:
    """One backend of PyTorch's scaled_dot_product_attention."""
    attention = importlib.import_module("torch.nn.attention")
    backend = getattr(attention.SDPBackend, backend_name, None)
    if backend is None:
        raise Unavailable(f"torch {torch.__version__} has no {backend_name} backend")
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        with torch.no_grad(), attention.sdpa_kernel(backend):
            try:
                return sdpa(
                    tensors.q,
                    tensors.k,
                    tensors.v,
                    is_causal=problem.causal,
                    scale=problem.scale,
                    enable_gqa=problem.kv_heads != problem.heads,
                )
            except RuntimeError as error:
                if "No available kernel" not in str(error):
                    raise
                raise Unsupported(f"PyTorch's {backend_name} does not take it") from error

    backward = sdpa_backward(torch, *SDPA_GRADIENTS[id]) if id in SDPA_GRADIENTS else None
    return Peer(id, version, check=check, forward=forward, backward=backward, takes_views=True)


# The operators behind scaled_dot_product_attention, and arguments of the forward one.
SDPA_GRADIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "fa2": ("flash", {}),
    "cudnn": ("cudnn", {"attn_bias": None, "compute_log_sumexp": True}),
}


def sdpa_backward(torch: Any, name: str, options: dict[str, Any]) -> Forward:
    """Gradients by the operator that autograd would call, from the O and log-sum-exp that all get.
    What else a forward pass leaves for it is made at the first launch, which is not timed."""
    forward = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention")
    gradients = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention_backward")
    left: dict[PeerProblem, Any] = {}

    def backward(problem: PeerProblem, tensors: Tensors) -> Any:
        q, k, v = tensors.q, tensors.k, tensors.v
        own = {"is_causal": problem.causal, "scale": problem.scale}
        with torch.no_grad():
            if problem not in left:
                left.clear()
                left[problem] = forward(q, k, v, **options, **own)
            _, _, cu_q, cu_k, most_q, most_k, seed, offset, _ = left[problem]
            places = [cu_q, cu_k, most_q, most_k, 0.0, problem.causal]
            lse = tensors.lse
            if name == "flash":
                places += [seed, offset]
            else:
                places = [seed, offset, None, *places]
                lse = lse.unsqueeze(-1)
            saved = (tensors.d_o, q, k, v, tensors.o, lse)
            return gradients(*saved, *places, scale=problem.scale)[:3]

    return backward


def fa2_peer(torch: Any) -> Peer:
    return sdpa_peer(torch, "fa2", "FLASH_ATTENTION", f"torch {torch.__version__}")


def cudnn_peer(torch: Any) -> Peer:
    if not torch.backends.cudnn.is_available():
        raise Unavailable("this torch has no cuDNN")
    version = dotted_cudnn_version(torch.backends.cudnn.version())
    return sdpa_peer(torch, "cudnn", "CUDNN_ATTENTION", f"cudnn {version}")


def dotted_cudnn_version(number: int) -> str:
    """91900 -> 9.19.0 (cuDNN 9 and newer)."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def efficient_peer(torch: Any) -> Peer:
    version = f"torch {torch.__version__}"
    check = require_single_square_causal
    return sdpa_peer(torch, "torch_efficient", "EFFICIENT_ATTENTION", version, check)


def standard_peer(torch: Any) -> Peer:
    """Attention as its formula reads: S and P are matrices in device memory."""
    masks: dict[tuple[Any, ...], Any] = {}

    def mask_of(problem: PeerProblem, like: Any) -> Any:
        """True where a key is hidden; one at a time, made before anything is timed."""
        key = (problem.seq_q, problem.seq_kv, like.device)
        if key not in masks:
            masks.clear()
            ones = torch.ones(problem.seq_q, problem.seq_kv, dtype=torch.bool, device=like.device)
            masks[key] = ones.triu(problem.seq_kv - problem.seq_q + 1)
        return masks[key]

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        with torch.no_grad():
            scores = torch.matmul(tensors.q, tensors.k.transpose(-2, -1)).mul_(problem.scale)
            if problem.causal:
                scores.masked_fill_(mask_of(problem, scores), -torch.inf)
            probabilities = torch.softmax(scores, dim=-1)
            del scores
            return torch.matmul(probabilities, tensors.v)

    version = f"torch {torch.__version__}"
    return Peer("torch_standard", version, check=require_visible_keys, forward=forward)


def torch_dtype(torch: Any, problem: PeerProblem) -> Any:
    return getattr(torch, problem.dtype)


MATMUL_SIZE = 8192
COPY_BYTES = 1 << 30
# What identifies the row of a ceiling, also where it is not installed.
CEILINGS: dict[str, dict[str, Any]] = {
    "cublas": {"matmul": (MATMUL_SIZE, MATMUL_SIZE, MATMUL_SIZE)},
    "copy": {"copy_bytes": COPY_BYTES},
}


def cublas_peer(torch: Any) -> Peer:
    """A large matrix product on normal inputs: what the card sustains on dense tiles. In float32
    that is IEEE arithmetic on the CUDA cores, not TF32."""
    buffers: dict[Any, tuple[Any, Any, Any]] = {}
    torch.set_float32_matmul_precision("highest")

    def operands(dtype: Any) -> tuple[Any, Any, Any]:
        if dtype not in buffers:
            buffers.clear()
            generator = torch.Generator(device="cuda").manual_seed(1)
            options = {"device": "cuda", "dtype": dtype}
            a, b = (
                torch.randn(MATMUL_SIZE, MATMUL_SIZE, generator=generator, **options)
                for _ in range(2)
            )
            buffers[dtype] = (a, b, torch.empty(MATMUL_SIZE, MATMUL_SIZE, **options))
        return buffers[dtype]

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        a, b, c = operands(torch_dtype(torch, problem))
        return torch.matmul(a, b, out=c)

    version = f"cuda {torch.version.cuda}"
    return Peer("cublas", version, forward=forward, **CEILINGS["cublas"])


def copy_peer(torch: Any) -> Peer:
    """Device memory to device memory: what the card moves when nothing else is done."""
    buffers: list[Any] = []

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        if not buffers:
            options = {"dtype": torch.uint8, "device": "cuda"}
            buffers.extend(torch.zeros(COPY_BYTES, **options) for _ in range(2))
        return buffers[1].copy_(buffers[0])

    return Peer("copy", f"torch {torch.__version__}", forward=forward, **CEILINGS["copy"])


def import_or_unavailable(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:  # an installed package may fail in many ways while it loads
        raise Unavailable(f"{name} cannot be imported: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return text or type(error).__name__


def triton_attention() -> Any:
    """The tutorial's autograd function, from wherever this installation keeps it."""
    for name in ("triton.ops.flash_attention", "flash_attn.flash_attn_triton", "fused_attention"):
        try:
            return importlib.import_module(name).attention
        except (ImportError, AttributeError):
            continue
    raise Unavailable(
        "the fused-attention tutorial (06-fused-attention.py) is not importable; put it on"
        " PYTHONPATH as fused_attention.py"
    )


def triton_peer(torch: Any) -> Peer:
    version = import_or_unavailable("triton").__version__
    attention = triton_attention()

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        with torch.no_grad():
            return attention(tensors.q, tensors.k, tensors.v, problem.causal, problem.scale)

    def check(problem: PeerProblem) -> None:
        require_float16(problem)
        require_all_heads(problem)
        if problem.seq_q != problem.seq_kv:
            raise Unsupported("the tutorial kernel takes seq_q == seq_kv only")

    return Peer("triton", f"triton {version}", check=check, forward=forward)


# Packages with a module that registers FlashAttention-3's operator: its own, and xformers, whose
# wheel of version 0.0.34 contains a build of it.
FA3_MODULES = {"flash_attn_3": "flash_attn_3._C", "xformers": "xformers.flash_attn_3._C"}


def fa3_version() -> str:
    """Imports the first package that has the operator; its name and version."""
    missing = []
    for package, module in FA3_MODULES.items():
        try:
            import_or_unavailable(module)
        except Unavailable as reason:
            missing.append(str(reason))
            continue
        try:
            return f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            return package
    raise Unavailable("; ".join(missing))


def fa3_peer(torch: Any) -> Peer:
    version = fa3_version()
    if torch.cuda.get_device_capability()[0] != 9:  # on others it ends the process
        raise Unavailable("FlashAttention-3 runs on compute capability 9.0 alone")
    attention = torch.ops.flash_attn_3.fwd

    splits: dict[tuple[Any, ...], int] = {}
    packed: dict[PeerProblem, dict[str, Any]] = {}  # what it is told of a packed batch

    def given(problem: PeerProblem, *tensors: Any) -> tuple[list[Any], dict[str, Any]]:
        """The tensors with a row of all heads after another, and what else it is told."""
        rows_first = [tensor.transpose(1, 2) for tensor in tensors]
        options = {"softmax_scale": problem.scale, "is_causal": problem.causal}
        if problem.windowed:
            options["window_size_left"] = problem.window_left
            options["window_size_right"] = 0 if problem.causal else problem.window_right
        if problem.query_lengths:
            if problem not in packed:  # at the first launch, which is not timed
                packed[problem] = cu_seqlens(torch, problem, tensors[0].device)
            rows_first = [tensor.squeeze(0) for tensor in rows_first]
            options |= packed[problem]
        return rows_first, options

    def heads_first(problem: PeerProblem, tensor: Any) -> Any:
        return (tensor.unsqueeze(0) if problem.query_lengths else tensor).transpose(1, 2)

    def run(problem: PeerProblem, tensors: Tensors, num_splits: int) -> Any:
        inputs, options = given(problem, tensors.q, tensors.k, tensors.v)
        with torch.no_grad():
            out, *_ = attention(*inputs, num_splits=num_splits, **options)
        return heads_first(problem, out)

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        key = (problem.q_shape, problem.kv_shape, problem.causal, problem.window_left)
        if problem.seq_q > FEW_QUERIES:
            splits[key] = 1
        elif key not in splits:  # the first launch, which is not timed
            seconds = {n: timed(torch, lambda n=n: run(problem, tensors, n)) for n in FA3_SPLITS}
            splits[key] = min(FA3_SPLITS, key=lambda n: seconds[n])
        return run(problem, tensors, splits[key])

    gradients = torch.ops.flash_attn_3.bwd

    def backward(problem: PeerProblem, tensors: Tensors) -> Any:
        inputs, options = given(problem, tensors.d_o, tensors.q, tensors.k, tensors.v, tensors.o)
        lse = tensors.lse.squeeze(0) if problem.query_lengths else tensors.lse
        with torch.no_grad():
            found = gradients(*inputs, lse, **options)
        return tuple(heads_first(problem, tensor) for tensor in found[:3])

    return Peer(
        "fa3",
        version,
        check=require_half,
        forward=forward,
        backward=backward,
        takes_views=True,
        takes_windows=True,
        takes_packed=True,
    )


def cu_seqlens(torch: Any, problem: PeerProblem, device: Any) -> dict[str, Any]:
    """The first row of each sequence of a packed batch, and the longest one."""
    told: dict[str, Any] = {"max_seqlen_q": problem.seq_q, "max_seqlen_k": problem.seq_kv}
    for name, lengths in (("q", problem.query_lengths), ("k", problem.lengths)):
        starts = [0, *itertools.accumulate(lengths or ())]
        told[f"cu_seqlens_{name}"] = torch.tensor(starts, dtype=torch.int32, device=device)
    return told


FA3_SPLITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # 0: its own choice


def flashinfer_peer(torch: Any) -> Peer:
    """The fastest of FlashInfer's kernels for a problem. A plan, which is made on the host, and the
    rows of the queries in the order that it takes belong to the problem and are made once, before
    anything is timed."""
    package = import_or_unavailable("flashinfer")
    chosen: list[Callable[[Tensors], Any]] = []

    def check(problem: PeerProblem) -> None:
        chosen.clear()
        require_float16(problem)
        if problem.seq_q > FEW_QUERIES:
            raise Unsupported(f"timed with at most {FEW_QUERIES} queries only")
        if problem.causal and problem.seq_q > problem.seq_kv:
            raise Unsupported("its causal mask takes no more queries than keys")
        if problem.head_dim not in FLASHINFER_HEAD_DIMS:
            dims = ", ".join(map(str, FLASHINFER_HEAD_DIMS))
            raise Unsupported(f"takes head_dim {dims} only")

    def forward(problem: PeerProblem, tensors: Tensors) -> Any:
        with torch.no_grad():
            if not chosen:  # the first launch, which is not timed
                calls = flashinfer_calls(torch, package, problem, tensors.q.device)
                chosen.append(min(calls, key=lambda call: timed(torch, lambda: call(tensors))))
            return chosen[0](tensors)

    def arrange(problem: PeerProblem, result: Any) -> Any:
        group = problem.heads // problem.kv_heads
        rows = (problem.batch, problem.kv_heads, problem.seq_q, group, problem.head_dim)
        return result.reshape(rows).transpose(2, 3).reshape(problem.q_shape)

    version = f"flashinfer {package.__version__}"
    return Peer("flashinfer", version, check=check, forward=forward, arrange=arrange)


FLASHINFER_HEAD_DIMS = (64, 128, 256)
FLASHINFER_GROUPS = (1, 2, 3, 4, 8)  # query heads of one of K and V, without tensor cores
FLASHINFER_PAGE = 16  # keys at most; it splits a cache between pages
FLASHINFER_WORKSPACE = 128 << 20  # bytes, as its documentation recommends


def flashinfer_calls(
    torch: Any, package: Any, problem: PeerProblem, device: Any
) -> list[Callable[[Tensors], Any]]:
    """Its kernels that take a problem, planned. A request is one sequence's K and V of one head with
    the queries that read them: so pages, and rows of K and V, have one distance, as it wants them,
    and nothing of the cache is copied."""
    count, group = problem.batch * problem.kv_heads, problem.heads // problem.kv_heads
    queries, keys, dim = problem.seq_q, problem.seq_kv, problem.head_dim
    page = math.gcd(keys, FLASHINFER_PAGE)
    # One problem has one Q, whose rows are arranged once; its caches are views of any copy.
    arranged: list[Any] = []

    def q_of(tensors: Tensors) -> Any:
        if not arranged:
            q = tensors.q.reshape(count, group, queries, dim).transpose(1, 2)
            arranged.append(q.reshape(-1, group, dim))
        return arranged[0]

    def cache_of(tensors: Tensors, *shape: int) -> tuple[Any, Any]:
        return tensors.k.reshape(*shape, dim), tensors.v.reshape(*shape, dim)

    workspace = torch.zeros(FLASHINFER_WORKSPACE, dtype=torch.uint8, device=device)
    types = {"q_data_type": torch.float16, "kv_data_type": torch.float16}
    options = {"sm_scale": problem.scale, **types}

    def upto(end: int, step: int = 1) -> Any:
        return torch.arange(0, end, step, dtype=torch.int32)

    def single(tensors: Tensors) -> Any:
        rows = q_of(tensors).reshape(-1, dim)
        return package.single_decode_with_kv_cache(
            rows, tensors.k[0], tensors.v[0], kv_layout="HND", sm_scale=problem.scale
        )

    def decode(tensor_cores: bool) -> Callable[[Tensors], Any]:
        wrapper = package.BatchDecodeWithPagedKVCacheWrapper(
            workspace, "HND", use_tensor_cores=tensor_cores, backend="fa2"
        )
        pages = keys // page
        wrapper.plan(
            upto((count + 1) * pages, pages),
            upto(count * pages),
            torch.full((count,), page, dtype=torch.int32),
            group,
            1,
            dim,
            page,
            q_len_per_req=queries,
            **options,
        )
        return lambda tensors: wrapper.run(q_of(tensors), cache_of(tensors, -1, 1, page))

    def prefill(backend: str) -> Callable[[Tensors], Any]:
        wrapper = package.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend=backend)
        offsets = (upto((count + 1) * step, step) for step in (queries, keys))
        wrapper.plan(*offsets, group, 1, dim, causal=problem.causal, **options)
        return lambda tensors: wrapper.run(q_of(tensors), *cache_of(tensors, -1, 1))

    calls = [prefill("fa2")]
    if torch.cuda.get_device_capability(device)[0] == 9:
        calls.append(prefill("fa3"))
    if queries == 1 or problem.causal:  # the mask of its decoding
        calls.append(decode(tensor_cores=True))
    if queries == 1 and group in FLASHINFER_GROUPS:
        calls.append(decode(tensor_cores=False))
        if problem.batch == 1:
            calls.append(single)
    return calls


HELD_CLOCKS = 10_000_000  # some 5 ms, in which the host queues the launches that are timed


def timed(torch: Any, call: Callable[[], Any], launches: int = 10) -> float:
    """Milliseconds of a launch on the current stream, waited for: not while anything is timed. The
    device is held until all are queued, so that the host's time does not count."""
    call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(HELD_CLOCKS)
    start.record()
    for _ in range(launches):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / launches


FACTORIES: dict[str, Callable[[Any], Peer]] = {
    "fa2": fa2_peer,
    "cudnn": cudnn_peer,
    "cublas": cublas_peer,
    "triton": triton_peer,
    "fa3": fa3_peer,
    "flashinfer": flashinfer_peer,
    "torch_standard": standard_peer,
    "torch_efficient": efficient_peer,
    "copy": copy_peer,
}


def unavailable_peer(id: str, reason: str) -> Peer:
    return Peer(id, unavailable=reason, **CEILINGS.get(id, {}))


def load_torch() -> Any:
    torch = import_or_unavailable("torch")
    if not torch.cuda.is_available():
        raise Unavailable("torch sees no GPU")
    return torch


def make_peers(ids: Sequence[str]) -> tuple[Any, list[Peer]]:
    """(torch or None, the peers in order); one that cannot run says why."""
    try:
        torch = load_torch()
    except Unavailable as reason:
        return None, [unavailable_peer(id, str(reason)) for id in ids]
    return torch, [make_peer(torch, id) for id in ids]


def make_peer(torch: Any, id: str) -> Peer:
    try:
        return FACTORIES[id](torch)
    except Unavailable as reason:
        return unavailable_peer(id, str(reason))


# --- launching a peer on the benchmark's memory ---------------------------------------------------


TYPES = {FLOAT16: "<f2", BFLOAT16: "<i2", FLOAT32: "<f4"}  # the interface knows no bfloat16


class DeviceArray:
    """A raw device pointer in the form that torch.as_tensor takes without a copy; strides are in
    elements."""

    def __init__(
        self, address: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None
    ) -> None:
        typestr = TYPES[dtype]
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "strides": strides and tuple(stride * int(typestr[2]) for stride in strides),
            "typestr": typestr,
            "version": 3,
            "stream": None,  # order is kept by launching on the benchmark's own stream
        }


@dataclass
class Launcher:
    """Turns the library's callbacks into calls of one peer. A graph that was recorded of them writes
    where its tensors lay, though PyTorch has them back, so no other peer may be given that memory:
    each has a pool of its own for a problem."""

    torch: Any
    peer: Peer
    inputs: dict[tuple[Any, ...], Tensors] = field(default_factory=dict)
    device_bytes: ctypes.c_int64 = field(default_factory=lambda: ctypes.c_int64(-1))
    pool: Any = None

    def tensor(self, address: int, name: str, problem: PeerProblem) -> Any:
        """One of the fields of fa_tensors."""
        shape: tuple[int, ...] = problem.kv_shape if name[-1] in "kv" else problem.q_shape
        dtype = problem.dtype
        if name == "lse":
            shape, dtype = problem.q_shape[:3], FLOAT32
        array = DeviceArray(address, shape, dtype, problem.strides_of(name))
        tensor = self.torch.as_tensor(array, device=f"cuda:{problem.device}")
        return tensor.view(self.torch.bfloat16) if dtype == BFLOAT16 else tensor

    def tensors(self, problem: PeerProblem, given: TensorsStruct) -> Tensors:
        """The inputs; kept for each copy of the cache, so that timing calls are cheap."""
        key = (given.q, given.k, given.v, problem)
        if key not in self.inputs:
            names = ["q", "k", "v", *(["o", "lse", "d_o"] if problem.backward else [])]
            self.inputs[key] = Tensors(
                *(self.tensor(getattr(given, name), name, problem) for name in names)
            )
        return self.inputs[key]

    def supports(self, problem: PeerProblem) -> None:
        """Raises Unsupported. Asked before the library allocates a problem's buffers, so what
        PyTorch keeps of the problem before is given back here."""
        self.inputs.clear()
        try:
            if not self.peer.is_ceiling:
                self.peer.check(problem)
                require_nothing_more(self.peer, problem)
        finally:
            self.pool = None
            self.torch.cuda.empty_cache()
            self.pool = self.torch.cuda.MemPool()

    def launch(self, problem: PeerProblem, given: TensorsStruct, stream: int) -> None:
        gradients = problem.backward and not self.peer.is_ceiling
        call = self.peer.backward if gradients else self.peer.forward
        assert call is not None
        inputs = Tensors(None, None, None)
        if not self.peer.is_ceiling:
            inputs = self.tensors(problem, given)
        names = ("d_q", "d_k", "d_v") if problem.backward else ("o",)
        cuda = self.torch.cuda
        external = cuda.ExternalStream(stream, device=f"cuda:{problem.device}")
        with cuda.stream(external), cuda.use_mem_pool(self.pool, problem.device):
            if not getattr(given, names[0]) or self.peer.is_ceiling:
                call(problem, inputs)
                return
            results = self.watched(call, problem, inputs)
            if not problem.backward:
                results = (self.peer.arrange(problem, results),)
            for name, result in zip(names, results, strict=True):
                self.tensor(getattr(given, name), name, problem).copy_(result)

    def watched(self, call: Forward, problem: PeerProblem, inputs: Tensors) -> Any:
        """A pass; device_bytes becomes what PyTorch allocated for it at most, its result
        included. The allocator counts on the host, so nothing waits for the device."""
        cuda = self.torch.cuda
        before = cuda.memory_allocated(problem.device)
        cuda.reset_peak_memory_stats(problem.device)
        result = call(problem, inputs)
        self.device_bytes.value = cuda.max_memory_allocated(problem.device) - before
        return result


def guarded(
    call: Callable[[], None], out_of_memory: tuple[type[BaseException], ...] = ()
) -> tuple[int, str]:
    """Runs a callback's body; whatever happens becomes a code and a message."""
    try:
        call()
        return OK, ""
    except Unsupported as reason:
        return UNSUPPORTED, str(reason)
    except out_of_memory as error:
        return OUT_OF_MEMORY, first_line(error)
    except BaseException as error:  # an exception must not leave a C callback
        traceback.print_exc()
        return ERROR, f"{type(error).__name__}: {first_line(error)}"


def out_of_memory_types(torch: Any) -> tuple[type[BaseException], ...]:
    kind = getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    return (kind,) if kind else ()


def peer_struct(torch: Any, peer: Peer) -> PeerStruct:
    """The C form of a peer. It owns its callbacks, so keep it until fa_bench returns."""
    struct = PeerStruct(id=peer.id.encode(), matmul=(ctypes.c_int64 * 3)(*peer.matmul))
    struct.copy_bytes = peer.copy_bytes
    struct.variant = peer.variant.encode() or None
    if peer.unavailable:
        struct.unavailable_reason = peer.unavailable.encode()
        return struct
    launcher = Launcher(torch, peer)
    memory_errors = out_of_memory_types(torch)

    def supports(_user: int, problem: bytes, message: int, size: int) -> int:
        code, text = guarded(lambda: launcher.supports(peer_problem(problem)))
        write_message(message, size, text)
        return code

    def launch(
        _user: int,
        problem: bytes,
        tensors: Any,
        stream: int,
        message: int,
        size: int,
    ) -> int:
        code, text = guarded(
            lambda: launcher.launch(peer_problem(problem), tensors.contents, stream or 0),
            memory_errors,
        )
        write_message(message, size, text)
        return code

    if not peer.is_ceiling:
        struct.device_bytes = ctypes.pointer(launcher.device_bytes)
    struct.supports = SupportsCallback(supports)
    struct.launch = LaunchCallback(launch)
    return struct


# --- command line ---------------------------------------------------------------------------------


@dataclass
class Options:
    peers: list[str]
    list_only: bool
    bench: list[str]  # what fa bench gets


class UsageError(Exception):
    pass


def parse_peers(text: str) -> list[str]:
    ids = [word for word in text.split(",") if word]
    unknown = [id for id in ids if id not in FACTORIES]
    if unknown or not ids:
        named = f"unknown peer '{unknown[0]}'" if unknown else "--peers names no peer"
        raise UsageError(f"{named}; allowed: {', '.join(FACTORIES)}")
    return list(dict.fromkeys(ids))


def parse_arguments(argv: Sequence[str]) -> Options:
    """Takes out our option; all else belongs to fa bench, so argparse cannot do this."""
    options = Options(list(FACTORIES), False, [])
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name != "--peers":
            options.bench.append(word)
            continue
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{name} needs a value")
        if value == "list":
            options.list_only = True
        else:
            options.peers = parse_peers(value)
    return options


def find_library() -> Path:
    library = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build") / "libfa.so"
    if library.is_file():
        return library.resolve()
    raise UsageError(f"{library} not found; build the project first (scripts/bench.sh)")


def print_availability(peers: Sequence[Peer]) -> None:
    for peer in peers:
        print(f"{peer.id:15} {peer.unavailable or peer.variant}")


def split_benches(argv: Sequence[str]) -> list[list[str]]:
    benches: list[list[str]] = [[]]
    for word in argv:
        if word == "--then":
            benches.append([])
        else:
            benches[-1].append(word)
    if not all(benches):
        raise UsageError("--then stands between two benches, and one of them has no words")
    return benches


def main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if argv else USAGE
    try:
        benches = [parse_arguments(words) for words in split_benches(argv)]
        ids = list(dict.fromkeys(id for options in benches for id in options.peers))
        # PyTorch first: it must find its own CUDA libraries before ours are in the process.
        torch, made = make_peers(ids)
        if any(options.list_only for options in benches):
            print_availability(made)
            return 0
        library = load_library(find_library())
    except (UsageError, Refused) as error:
        print(f"peers.py: error: {error}", file=sys.stderr)
        return USAGE
    structs = {peer.id: peer_struct(torch, peer) for peer in made}
    worst = 0
    for options in benches:
        code = run_bench(library, options.bench, [structs[id] for id in options.peers])
        # A wrong row or one that could not run says so, and the next bench may go on.
        if code not in (0, INCORRECT, ENVIRONMENT):
            return code
        worst = worst if worst == INCORRECT else code or worst
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
