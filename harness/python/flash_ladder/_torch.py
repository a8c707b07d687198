# SPDX-License-Identifier: MIT
"""Attention of PyTorch tensors: flash_ladder::attention and flash_ladder::attention_lse.

On CUDA tensors they launch a rung on the current stream of the tensors' device and wait for
nothing; on CPU tensors they run the rung's PTX on the virtual machine.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import Any

import torch
from torch import Tensor

from flash_ladder import _best, _machine, _native
from flash_ladder._errors import Refused
from flash_ladder._problem import Problem, make_problem

ALIGNMENT = 16  # bytes: the kernels load 16 at a time, and tensor maps ask for it
ARGUMENTS = "Tensor q, Tensor k, Tensor v, str rung, bool causal, float? scale"


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, rung: str, causal: bool, scale: float | None, lse: bool
) -> Any:
    if not isinstance(q, torch.Tensor):
        raise Refused(f"q is a {type(q).__name__}; allowed: a torch tensor or a numpy array")
    if torch.is_grad_enabled():
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            if tensor.requires_grad:
                raise Refused(
                    f"{name} requires a gradient, and flash_ladder.attention has none yet; call it"
                    " under torch.no_grad() or on tensor.detach()"
                )
    if is_plain(q, k, v):
        o, rows = on_gpu(q, k, v, rung, causal, scale, lse)
        return (o, rows) if lse else o
    return (WITH_LSE if lse else WITHOUT_LSE)(q, k, v, rung, causal, scale)


def is_plain(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether nothing but the kernel has to see a call: no compiler, no tracer, no transform, no
    kind of tensor of its own. The way through PyTorch's dispatcher would take longer than the
    launch."""
    return (
        not torch.compiler.is_compiling()
        and type(q) is type(k) is type(v) is Tensor
        and q.is_cuda
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


# --- one plan a problem ---------------------------------------------------------------------------


class Plan:
    """What a rung does for one problem on one GPU."""

    def __init__(self, problem: Problem, rung: str, device: int) -> None:
        library, message = _native.library(), _native.Message()
        handle, given = ctypes.c_void_p(), _native.c_problem(problem)
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

    def launch(self, addresses: tuple[int, int, int, int], lse: int | None) -> None:
        """Enqueues it on the current stream; the addresses are those of q, k, v and o."""
        # Dropped after the launch: the allocator hands it out again in the order of the stream.
        held = [self.allocate(*each) for each in self.scratch]
        scratch = None
        if held:
            pointers = (tensor.data_ptr() if tensor is not None else None for tensor in held)
            scratch = (ctypes.c_void_p * len(held))(*pointers)
        stream = torch._C._cuda_getCurrentRawStream(self.device)
        if self.enqueue(self.handle, *addresses, lse, scratch, stream, None, 0):
            # Once more, for the message: a launch that fails has enqueued nothing.
            message, size = _native.Message(), _native.MESSAGE_BYTES
            again = self.enqueue(
                self.handle, *addresses, lse, scratch, stream, message.buffer, size
            )
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
) -> Plan:
    problem = problem_of(shapes, dtypes, causal=causal, scale=scale, lse=lse)
    return _best.first_that_takes(problem, rung, lambda chosen: Plan(problem, chosen, device))


def problem_of(
    shapes: tuple[torch.Size, ...], dtypes: tuple[torch.dtype, ...], **options: Any
) -> Problem:
    return make_problem(shapes, [str(dtype).removeprefix("torch.") for dtype in dtypes], **options)


# --- the operators --------------------------------------------------------------------------------


def check_layout(name: str, tensor: Tensor, device: torch.device) -> None:
    """Refuses what the kernels would read wrongly."""
    if tensor.device != device:
        raise Refused(f"{name} is on {tensor.device} and q on {device}; they must be the same")
    if not tensor.is_contiguous():
        raise Refused(
            f"{name} has strides {tensor.stride()} for shape {tuple(tensor.shape)}; allowed:"
            f" contiguous (batch, heads, seq, dim); pass {name}.contiguous()"
        )
    if tensor.data_ptr() % ALIGNMENT:
        raise Refused(
            f"{name} starts at an address that is not a multiple of {ALIGNMENT} bytes, in the"
            f" middle of another tensor; pass {name}.clone()"
        )


def outputs(q: Tensor, lse: bool) -> tuple[Tensor, Tensor | None]:
    return torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32) if lse else None


def on_gpu(
    q: Tensor, k: Tensor, v: Tensor, rung: str, causal: bool, scale: float | None, lse: bool
) -> tuple[Tensor, Tensor | None]:
    # A call takes microseconds, and so would every line that is not needed here.
    index = q.get_device()
    inputs = q.data_ptr(), k.data_ptr(), v.data_ptr()
    if not (
        index == k.get_device() == v.get_device()
        and q.is_contiguous()
        and k.is_contiguous()
        and v.is_contiguous()
        and (inputs[0] | inputs[1] | inputs[2]) % ALIGNMENT == 0
    ):
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            check_layout(name, tensor, q.device)
    if torch._C._cuda_getDevice() != index:
        with torch.cuda.device(index):
            return on_gpu(q, k, v, rung, causal, scale, lse)
    shapes, dtypes = (q.shape, k.shape, v.shape), (q.dtype, k.dtype, v.dtype)
    plan = plan_for(shapes, dtypes, index, rung, causal, scale, lse)
    o, rows = outputs(q, lse)
    plan.launch((*inputs, o.data_ptr()), None if rows is None else rows.data_ptr())
    return o, rows


def on_machine(
    q: Tensor, k: Tensor, v: Tensor, rung: str, causal: bool, scale: float | None, lse: bool
) -> tuple[Tensor, Tensor | None]:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_layout(name, tensor, q.device)
    shapes, dtypes = (q.shape, k.shape, v.shape), (q.dtype, k.dtype, v.dtype)
    problem = problem_of(shapes, dtypes, causal=causal, scale=scale, lse=lse)
    o, rows = outputs(q, lse)
    _machine.run(
        problem,
        rung,
        [tensor.data_ptr() for tensor in (q, k, v, o)],
        rows.numpy() if rows is not None else None,
    )
    return o, rows


def define() -> torch.library.Library:
    """Registers both operators for CUDA, for the CPU, and for tensors without data."""
    library = torch.library.Library("flash_ladder", "DEF")
    # The compiler must not change the layout of what it passes.
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
    tags = (torch.Tag.pt2_compliant_tag, exact)
    library.define(f"attention({ARGUMENTS}) -> Tensor", tags=tags)
    library.define(f"attention_lse({ARGUMENTS}) -> (Tensor, Tensor)", tags=tags)
    for key, run in (("CUDA", on_gpu), ("CPU", on_machine)):
        library.impl("attention", lambda *arguments, run=run: run(*arguments, False)[0], key)
        library.impl("attention_lse", lambda *arguments, run=run: run(*arguments, True), key)
    register = torch.library.register_fake
    register("flash_ladder::attention", lambda q, *_: outputs(q, False)[0], lib=library)
    register("flash_ladder::attention_lse", lambda q, *_: outputs(q, True), lib=library)
    return library


LIBRARY = define()
# With the overload named, a call does not look it up.
WITHOUT_LSE = torch.ops.flash_ladder.attention.default
WITH_LSE = torch.ops.flash_ladder.attention_lse.default
