# SPDX-License-Identifier: MIT
"""Attention of PyTorch tensors: flash_ladder::attention, flash_ladder::attention_lse and the
gradients of both, flash_ladder::attention_backward.

On CUDA tensors they launch a rung on the current stream of the tensors' device and wait for
nothing; on CPU tensors they run the rung's PTX on the virtual machine.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import _C, Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.compiler import is_compiling

from flash_ladder import _best, _machine, _native
from flash_ladder._errors import Refused
from flash_ladder._problem import (
    ALIGNMENT,
    Problem,
    check_flag,
    check_packed,
    check_rung,
    check_scale,
    check_window,
    make_problem,
)

MOST = 2**31 - 1
# Tensors that a call may have. With the last two q, k and v are [1, heads, rows, dim] here.
OTHERS = ("lengths", "page_table", "kv_scales", "sinks", "cu_seqlens_q", "cu_seqlens_k")
STARTS = OTHERS[-2:]
ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, str rung, bool causal, float? scale, "
    + "".join(f"Tensor? {name}=None, " for name in OTHERS)
    + "int window_left=-1, int window_right=-1"
)
DEFAULTS = (*(None for _ in OTHERS), -1, -1)
GRADIENT_ARGUMENTS = (
    "Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal, float? scale, "
    "int window_left=-1, int window_right=-1, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None"
)
DETERMINISTIC = "72"  # the last rung whose gradients have the same bits in each call
Others = tuple[Tensor | None, ...]  # in the order of OTHERS


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    rung: str,
    causal: bool,
    scale: float | None,
    lse: bool,
    lengths: Any = None,
    page_table: Tensor | None = None,
    kv_scales: Tensor | None = None,
    window: Any = None,
    sinks: Tensor | None = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
) -> Any:
    if cu_seqlens_q is not None or cu_seqlens_k is not None:
        check_tensors(q, k, v, (lengths, page_table, kv_scales, sinks, cu_seqlens_q, cu_seqlens_k))
        check_packed((q.shape, k.shape, v.shape), lengths, cu_seqlens_q, cu_seqlens_k)
        q, k, v = (each.transpose(0, 1).unsqueeze(0) for each in (q, k, v))
    # A call takes microseconds: what is right is told apart first, and what is wrong then named.
    if lengths is not None and not isinstance(lengths, Tensor):
        lengths = torch.from_numpy(_machine.converted("lengths", lengths, np.int32))
    others = (lengths, page_table, kv_scales, sinks, cu_seqlens_q, cu_seqlens_k)
    few = (
        lengths is None
        and page_table is None
        and kv_scales is None
        and sinks is None
        and cu_seqlens_q is None
    )
    if not (few and isinstance(q, Tensor) and isinstance(k, Tensor) and isinstance(v, Tensor)):
        check_tensors(q, k, v, others)
    gradients = torch.is_grad_enabled() and (
        q.requires_grad or k.requires_grad or v.requires_grad or needs_gradient(*others)
    )
    if type(rung) is not str:
        rung = check_rung(rung)
    if type(causal) is not bool:
        causal = check_flag("causal", causal)
    if type(lse) is not bool:
        lse = check_flag("return_lse", lse)
    if scale is not None and type(scale) is not float:
        scale = check_scale(scale, 1)
    sides = (-1, -1) if window is None else check_window(window)
    if (
        not gradients
        and is_plain(q, k, v)
        and (few or all(each is None or type(each) is Tensor for each in others))
    ):
        o, rows = on_gpu(q, k, v, rung, causal, scale, *others, *sides, lse)
    elif gradients and not is_compiling():
        # Not from within the operator, where torch.func's transforms do not see it.
        check_differentiable((*others, *sides))
        o, rows = Differentiable.apply(q, k, v, *others[3:], rung, causal, scale, *sides)
    else:
        result = (WITH_LSE if lse else WITHOUT_LSE)(q, k, v, rung, causal, scale, *others, *sides)
        o, rows = result if lse else (result, None)
    if cu_seqlens_q is not None:
        o, rows = o.squeeze(0).transpose(0, 1), rows if rows is None else rows.squeeze(0)
    return (o, rows) if lse else o


def check_tensors(q: Any, k: Any, v: Any, others: tuple[Any, ...]) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v), *zip(OTHERS, others, strict=True)):
        if not isinstance(tensor, Tensor) and (name not in OTHERS or tensor is not None):
            allowed = "a torch tensor or a numpy array" if name == "q" else "a torch tensor, as q"
            raise Refused(f"{name} is a {type(tensor).__name__}; allowed: {allowed}")


def named(*tensors: Tensor | None) -> list[tuple[str, Tensor]]:
    """Those that a call has, in the order of the operator's arguments."""
    pairs = zip(("q", "k", "v", *OTHERS), tensors, strict=False)
    return [(name, tensor) for name, tensor in pairs if tensor is not None]


def needs_gradient(*tensors: Tensor | None) -> bool:
    return any(isinstance(each, Tensor) and each.requires_grad for each in tensors)


def check_differentiable(others: tuple[Any, ...]) -> None:
    """Refuses calls whose gradients no rung computes, by the operator's arguments behind scale."""
    given = [name for name, each in zip(OTHERS, others, strict=False) if each is not None]
    for name in given:
        if name not in ("sinks", *STARTS):
            raise Refused(
                f"a tensor requires a gradient, and {name} is given; allowed: causal, scale,"
                " window, sinks and cu_seqlens; or call it under torch.no_grad()"
            )


def check_tangents(*tensors: Tensor | None) -> None:
    """PyTorch would drop a tangent that the operator says nothing about, and answer without it."""
    for name, tensor in named(*tensors):
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise Refused(
                f"{name} has a tangent (torch.func.jvp, or a dual tensor), and"
                " flash_ladder.attention has no derivative yet; call it on tensor.detach()"
            )


def is_plain(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether nothing but the kernel has to see a call: no compiler, no tracer, no transform, no
    kind of tensor of its own. The way through PyTorch's dispatcher would take longer than the
    launch."""
    return (
        not is_compiling()
        and type(q) is type(k) is type(v) is Tensor
        and q.is_cuda
        and not _C._len_torch_dispatch_stack()
        and peek_interpreter_stack() is None
        and forward_ad._current_level < 0
    )


# --- one plan a problem ---------------------------------------------------------------------------


class Plan:
    """What a rung does for one problem on one GPU."""

    def __init__(self, problem: Problem, rung: str, device: int) -> None:
        library, message = _native.library(), _native.Message()
        handle, given = ctypes.c_void_p(), _native.problem_text(problem)
        message.check(
            library.fa_attention_plan_make(
                given, rung.encode(), device, handle, message.buffer, _native.MESSAGE_BYTES
            )
        )
        self.handle, self.device = handle, device
        self.enqueue = library.fa_attention_launch
        weakref.finalize(self, library.fa_attention_plan_free, handle).atexit = False
        self.scratch = [self.scratch_of(index) for index in range(self.scratch_count())]

    def scratch_count(self) -> int:
        return int(_native.library().fa_attention_scratch_count(self.handle))

    def scratch_of(self, index: int) -> tuple[int, bool]:
        """(bytes, whether it must hold zeros)"""
        size, zeroed = ctypes.c_int64(), ctypes.c_int32()
        _native.library().fa_attention_scratch(self.handle, index, size, zeroed)
        return size.value, bool(zeroed.value)

    def launch(self, *addresses: int | None, **named: int) -> None:
        """Enqueues it on the current stream; the addresses are those of CTensors."""
        tensors = _native.CTensors(*addresses, **named)
        scratch = None
        if self.scratch:
            # Dropped after the launch: the allocator hands it out again in the order of the stream.
            held = [self.allocate(*each) for each in self.scratch]
            pointers = (tensor.data_ptr() if tensor is not None else None for tensor in held)
            scratch = (ctypes.c_void_p * len(held))(*pointers)
        stream = _C._cuda_getCurrentRawStream(self.device)
        if self.enqueue(self.handle, tensors, scratch, stream, None, 0):
            # Once more, for the message: a launch that fails has enqueued nothing.
            message, size = _native.Message(), _native.MESSAGE_BYTES
            again = self.enqueue(self.handle, tensors, scratch, stream, message.buffer, size)
            message.check(again)

    def allocate(self, size: int, zeroed: bool) -> Tensor | None:
        """Scratch memory. None: the library has zeros for this stream, but a graph that is captured
        needs its own."""
        if not zeroed:
            return torch.empty(size, dtype=torch.uint8, device=f"cuda:{self.device}")
        if torch.cuda.is_current_stream_capturing():
            return torch.zeros(size, dtype=torch.uint8, device=f"cuda:{self.device}")
        return None


@functools.lru_cache(maxsize=4096)
def plan_for(
    shapes: tuple[torch.Size, ...],
    dtypes: tuple[torch.dtype, ...],
    device: int,
    rung: str,
    causal: bool,
    scale: float | None,
    lse: bool,
    more: tuple[tuple[str, Any], ...] = (),
) -> Plan:
    problem = problem_of(shapes, dtypes, more, causal=causal, scale=scale, lse=lse)
    return _best.first_that_takes(problem, rung, lambda chosen: Plan(problem, chosen, device))


def problem_of(
    shapes: tuple[torch.Size, ...],
    dtypes: tuple[torch.dtype, ...],
    more: tuple[tuple[str, Any], ...],
    **options: Any,
) -> Problem:
    return make_problem(shapes, [dtype_name(dtype) for dtype in dtypes], **dict(more), **options)


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# --- the operators --------------------------------------------------------------------------------


def check_layout(name: str, tensor: Tensor, device: torch.device) -> None:
    """Refuses what the kernels would read wrongly. The strides of q, k and v belong to the
    problem."""
    if tensor.device != device:
        raise Refused(f"{name} is on {tensor.device} and q on {device}; they must be the same")
    if name in OTHERS and not tensor.is_contiguous():
        raise Refused(
            f"{name} has strides {tensor.stride()} for shape {tuple(tensor.shape)}; allowed:"
            f" contiguous; pass {name}.contiguous()"
        )
    if name not in ("sinks", *STARTS) and tensor.data_ptr() % ALIGNMENT:
        raise Refused(
            f"{name} starts at an address that is not a multiple of {ALIGNMENT} bytes, in the"
            f" middle of another tensor; pass {name}.clone()"
        )


def outputs(q: Tensor, lse: bool) -> tuple[Tensor, Tensor | None]:
    """O in q's order in memory, and the log-sum-exp."""
    return torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32) if lse else None


def check_layouts(q: Tensor, k: Tensor, v: Tensor, others: Others) -> None:
    for name, tensor in named(q, k, v, None, *others[1:]):
        check_layout(name, tensor, q.device)


def described(
    inputs: tuple[Tensor, ...], others: Others, window: tuple[int, int]
) -> tuple[tuple[str, Any], ...]:
    """What make_problem is told of a call besides shapes and dtypes; `inputs` are q, k, v, o and,
    of a backward pass, the gradients of o, q, k and v."""
    lengths, *arrays = others
    *arrays, first_queries, first_keys = arrays
    more: list[tuple[str, Any]] = [("window", window)]
    if first_queries is not None and first_keys is not None:
        more += packed_lengths(inputs, first_queries, first_keys)
    if lengths is not None:
        longest = lengths.is_cuda and longest_lengths(lengths, inputs, arrays[0])
        more.append(("lengths", longest or host_lengths(lengths)))
    for name, each in zip(OTHERS[1:-2], arrays, strict=True):
        if each is not None:
            more.append((name, (each.shape, dtype_name(each.dtype))))
    if not all(each.is_contiguous() for each in inputs):
        more.append(("strides", tuple(each.stride() for each in inputs)))
    return tuple(more)


def packed_lengths(
    inputs: tuple[Tensor, ...], first_queries: Tensor, first_keys: Tensor
) -> list[tuple[str, Any]]:
    """For starts that only the kernel reads, any lengths with their sums: the launch depends on
    nothing else. The machine has those that there are."""
    q, k, *_ = inputs
    for name, each in zip(STARTS, (first_queries, first_keys), strict=True):
        if each.dtype != torch.int32 or each.dim() != 1 or len(each) < 2:
            raise Refused(
                f"{name} has dtype {dtype_name(each.dtype)} and shape {tuple(each.shape)}; allowed:"
                " int32 of shape (sequences + 1,)"
            )
    count, queries, keys = len(first_queries) - 1, int(q.shape[2]), int(k.shape[2])
    if len(first_keys) != count + 1:
        raise Refused(
            f"cu_seqlens_q has {count + 1} numbers and cu_seqlens_k {len(first_keys)}; they must be"
            " as many"
        )
    if not first_queries.is_cuda:
        starts = {"cu_seqlens_q": first_queries.tolist(), "cu_seqlens_k": first_keys.tolist()}
        return list(_machine.packed_lengths(starts, queries, keys).items())
    rest = (0,) * (count - 1)
    return [("query_lengths", (queries, *rest)), ("lengths", (keys, *rest))]


def longest_lengths(
    lengths: Tensor, inputs: tuple[Tensor, ...], page_table: Tensor | None
) -> tuple[int, ...]:
    """For lengths that only the kernel reads: the launch has the thread blocks for the longest that
    the cache holds."""
    q, k, *_ = inputs
    if lengths.dtype != torch.int32 or lengths.shape != q.shape[:1] or lengths.device != q.device:
        raise Refused(
            f"lengths has dtype {dtype_name(lengths.dtype)} and shape {tuple(lengths.shape)} on"
            f" {lengths.device}; allowed: on the CPU, or int32 of shape {tuple(q.shape[:1])} on"
            f" {q.device}"
        )
    check_layout("lengths", lengths, q.device)
    keys = int(k.shape[2] if page_table is None else k.shape[2] * page_table.shape[1])
    return (keys,) * len(q)


def host_lengths(lengths: Tensor) -> tuple[int, ...]:
    if lengths.device.type != "cpu":
        raise Refused(f"lengths is on {lengths.device} and q is not; allowed: the CPU, or q's GPU")
    if lengths.dim() != 1:
        raise Refused(
            f"lengths has shape {tuple(lengths.shape)}; allowed: one dimension, the batch"
        )
    kind = lengths.dtype
    whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    values = lengths.tolist()
    if not whole or not all(-MOST <= each <= MOST for each in values):
        raise Refused(f"lengths has dtype {lengths.dtype}; allowed: integers that int32 holds")
    return tuple(values)


# on_gpu and on_machine have the operator's parameters, ARGUMENTS, and whether it returns the LSE.
def on_gpu(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rung: str,
    causal: bool,
    scale: float | None,
    lengths: Tensor | None,
    page_table: Tensor | None,
    kv_scales: Tensor | None,
    sinks: Tensor | None,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    window_left: int,
    window_right: int,
    lse: bool,
) -> tuple[Tensor, Tensor | None]:
    index = q.get_device()
    inputs = q.data_ptr(), k.data_ptr(), v.data_ptr()
    others = (lengths, page_table, kv_scales, sinks, cu_seqlens_q, cu_seqlens_k)
    window = (window_left, window_right)
    plain = (
        lengths is None
        and page_table is None
        and kv_scales is None
        and sinks is None
        and cu_seqlens_q is None
        and window == (-1, -1)
        and q.is_contiguous()
        and k.is_contiguous()
        and v.is_contiguous()
    )
    if not (
        plain
        and index == k.get_device() == v.get_device()
        and (inputs[0] | inputs[1] | inputs[2]) % ALIGNMENT == 0
    ):
        check_layouts(q, k, v, others)
    if _C._cuda_getDevice() != index:
        with torch.cuda.device(index):
            return on_gpu(q, k, v, rung, causal, scale, *others, *window, lse)
    shapes, dtypes = (q.shape, k.shape, v.shape), (q.dtype, k.dtype, v.dtype)
    if plain:
        plan = plan_for(shapes, dtypes, index, rung, causal, scale, lse)
        o, rows = outputs(q, lse)
        plan.launch(*inputs, o.data_ptr(), None if rows is None else rows.data_ptr())
        return o, rows
    o, rows = outputs(q, lse)
    more = described((q, k, v, o), others, window)
    plan = plan_for(shapes, dtypes, index, rung, causal, scale, lse, more)
    # Dropped after the launch, as scratch memory is.
    held = (lengths if lengths is None else on_device(lengths, q.device), *others[1:])
    addresses = (each if each is None else each.data_ptr() for each in (rows, *held))
    plan.launch(*inputs, o.data_ptr(), *addresses)
    return o, rows


def on_device(lengths: Tensor, device: torch.device) -> Tensor:
    """Copied in the order of the stream, from memory that the copy need not wait for."""
    if lengths.is_cuda:
        return lengths
    if torch.cuda.is_current_stream_capturing():
        raise Refused(
            f"lengths on the CPU cannot be captured into a graph; its replays would not read them;"
            f" allowed: int32 on {device}"
        )
    return lengths.to(torch.int32).pin_memory().to(device, non_blocking=True)


def on_machine(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rung: str,
    causal: bool,
    scale: float | None,
    lengths: Tensor | None,
    page_table: Tensor | None,
    kv_scales: Tensor | None,
    sinks: Tensor | None,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    window_left: int,
    window_right: int,
    lse: bool,
) -> tuple[Tensor, Tensor | None]:
    others = (lengths, page_table, kv_scales, sinks, cu_seqlens_q, cu_seqlens_k)
    check_layouts(q, k, v, others)
    shapes, dtypes = (q.shape, k.shape, v.shape), (q.dtype, k.dtype, v.dtype)
    o, rows = outputs(q, lse)
    more = described((q, k, v, o), others, (window_left, window_right))
    problem = problem_of(shapes, dtypes, more, causal=causal, scale=scale, lse=lse)
    chosen = _machine.choose(problem, rung)
    given = {"q": q, "k": k, "v": v, "o": o, "lse": rows}
    given |= dict(zip(OTHERS[1:], others[1:], strict=True))
    addresses = {name: each.data_ptr() for name, each in given.items() if each is not None}
    _machine.run(problem, chosen, addresses)
    return o, rows


def padded(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with those that the dispatcher leaves out: defaults."""
    return given + DEFAULTS[len(given) - 6 :]


class Gradients(torch.autograd.Function):  # type: ignore[misc]
    """Those of q, k and v, by which nothing can be differentiated again."""

    @staticmethod
    def forward(*given: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return torch.ops.flash_ladder.attention_backward.default(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise Refused(
            "flash_ladder.attention has no second derivative; allowed: to differentiate it once"
        )


class Differentiable(torch.autograd.Function):  # type: ignore[misc]
    """Attention whose gradients are computed by a rung. The log-sum-exp has none."""

    @staticmethod
    def forward(q: Any, k: Any, v: Any, *given: Any) -> Any:
        *others, rung, causal, scale, left, right = given
        with _C._AutoDispatchBelowAutograd():
            return torch.ops.flash_ladder.attention_lse.default(
                q, k, v, rung, causal, scale, None, None, None, *others, left, right
            )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, _, ctx.causal, ctx.scale, ctx.left, ctx.right = inputs
        ctx.save_for_backward(*tensors, *output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, d_o: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, sinks, *starts, o, lse = ctx.saved_tensors
        options = (ctx.causal, ctx.scale, ctx.left, ctx.right)
        gradients = Gradients.apply(d_o, q, k, v, o, lse, *options, *starts)
        d_sinks = gradient_of_sinks(sinks, d_o, o, lse) if ctx.needs_input_grad[3] else None
        return *gradients, d_sinks, *(None for _ in ctx.needs_input_grad[4:])


def gradient_of_sinks(sinks: Tensor, d_o: Tensor, o: Tensor, lse: Tensor) -> Tensor:
    """A sink's weight in a row is exp(sink - lse), and its value is 0."""
    weights = torch.exp(sinks[:, None] - lse)
    return -(weights * (d_o.float() * o.float()).sum(-1)).sum((0, 2))


def differentiable(name: str, *given: Any) -> Any:
    """For tensors that PyTorch may differentiate by."""
    q, k, v, *options = padded(given)
    others = options[3:]
    if forward_ad._current_level >= 0:
        check_tangents(q, k, v, *others[: len(OTHERS)])
    if torch.is_grad_enabled() and needs_gradient(q, k, v, *others[: len(OTHERS)]):
        check_differentiable(tuple(others))
        pair = Differentiable.apply(q, k, v, *others[3:6], *options[:3], *others[len(OTHERS) :])
        return pair if name == "attention_lse" else pair[0]
    with _C._AutoDispatchBelowAutograd():
        return getattr(torch.ops.flash_ladder, name).default(*given)


def gradients_of(
    d_o: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float | None,
    left: int = -1,
    right: int = -1,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Those of q, k and v, in their order in memory. Where PyTorch wants deterministic algorithms,
    each call gives the same bits."""
    inputs = [
        each.clone() if each.data_ptr() % ALIGNMENT else each
        for each in (q, k, v, o, readable(d_o, o))
    ]
    made = tuple(torch.empty_like(each) for each in (q, k, v))
    starts = (cu_seqlens_q, cu_seqlens_k)
    names = ("q", "k", "v", "o", "d_o", "lse", "d_q", "d_k", "d_v", *STARTS)
    given = zip(names, (*inputs, lse, *made, *starts), strict=True)
    at = {name: each.data_ptr() for name, each in given if each is not None}
    shapes, dtypes = (q.shape, k.shape, v.shape), (q.dtype, k.dtype, v.dtype)
    tensors = (*inputs, *made)
    others = (None, None, None, None, *starts)
    more = (("backward", True), *described(tensors, others, (left, right)))
    rung = DETERMINISTIC if torch.are_deterministic_algorithms_enabled() else _best.BEST
    if q.is_cuda:
        with torch.cuda.device(q.device):
            plan = plan_for(shapes, dtypes, q.get_device(), rung, causal, scale, False, more)
            plan.launch(**at)
    else:
        problem = problem_of(shapes, dtypes, more, causal=causal, scale=scale, lse=False)
        _machine.run(problem, _machine.choose(problem, rung), at)
    return made[0], made[1], made[2]


def readable(d_o: Tensor, o: Tensor) -> Tensor:
    """The gradient of o: a copy in o's order in memory where the kernels cannot read it as it lies,
    as that of a sum, all of whose elements are one."""
    steps = ALIGNMENT // d_o.element_size()
    *outer, inner = zip(d_o.stride(), d_o.shape, strict=True)
    if inner[0] == 1 and all(n == 1 or (s > 0 and s % steps == 0) for s, n in outer):
        return d_o
    return torch.empty_like(o).copy_(d_o)


def fake_gradients(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(each) for each in (q, k, v))


def mapped(name: str, info: Any, in_dims: tuple[Any, ...], *given: Any) -> Any:
    """torch.vmap: one more dimension of the batch."""
    others = padded(given)[6:]
    if any(each is not None for each in (*others[:3], *others[4:6], *in_dims[6:])):
        raise Refused(
            "torch.vmap over flash_ladder.attention with lengths, page_table, kv_scales or"
            " cu_seqlens, or over sinks; allowed: over q, k and v without them"
        )
    size = info.batch_size

    def folded(tensor: Tensor, dim: int | None) -> Tensor:
        if dim is None:
            return tensor.repeat(size, 1, 1, 1)
        return tensor.movedim(dim, 0).flatten(0, 1)

    inputs = (folded(*pair) for pair in zip(given[:3], in_dims[:3], strict=True))
    result = getattr(torch.ops.flash_ladder, name).default(*inputs, *given[3:])
    if isinstance(result, Tensor):
        return result.unflatten(0, (size, -1)), 0
    return tuple(each.unflatten(0, (size, -1)) for each in result), (0, 0)


def define() -> torch.library.Library:
    """Registers the operators for CUDA, for the CPU, for tensors without data, and for PyTorch's
    transforms."""
    library = torch.library.Library("flash_ladder", "DEF")
    # The compiler must not change the layout of what it passes.
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
    tags = (torch.Tag.pt2_compliant_tag, exact)
    returned: dict[str, tuple[str, Callable[..., Any]]] = {
        "attention": ("Tensor", lambda pair: pair[0]),
        "attention_lse": ("(Tensor, Tensor)", lambda pair: pair),
    }
    for name, (type_, of) in returned.items():
        lse = name == "attention_lse"
        library.define(f"{name}({ARGUMENTS}) -> {type_}", tags=tags)
        for key, run in (("CUDA", on_gpu), ("CPU", on_machine)):
            library.impl(
                name, lambda *given, run=run, of=of, lse=lse: of(run(*padded(given), lse)), key
            )
        library.impl(name, functools.partial(differentiable, name), "Autograd")
        torch.library.register_fake(
            f"flash_ladder::{name}", lambda q, *_, of=of, lse=lse: of(outputs(q, lse)), lib=library
        )
        if hasattr(torch.library, "register_vmap"):  # from 2.5 on; before, PyTorch loops
            torch.library.register_vmap(
                f"flash_ladder::{name}", functools.partial(mapped, name), lib=library
            )
    library.define(
        f"attention_backward({GRADIENT_ARGUMENTS}) -> (Tensor, Tensor, Tensor)", tags=tags
    )
    for key in ("CUDA", "CPU"):
        library.impl("attention_backward", gradients_of, key)
    torch.library.register_fake("flash_ladder::attention_backward", fake_gradients, lib=library)
    return library


LIBRARY = define()
# With the overload named, a call does not look it up.
WITHOUT_LSE = torch.ops.flash_ladder.attention.default
WITH_LSE = torch.ops.flash_ladder.attention_lse.default
