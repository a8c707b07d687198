# SPDX-License-Identifier: MIT
"""FlashAttention-4 for sm_100, out of the package flash-attn-4: forward, and the gradients."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import ptxvm
from ptxvm import Struct, TensorMap

from foreign.case import Case, expect
from foreign.cute_cases import MOST_SHARED, ONE_BLOCK, PAIR, Absent

ORIGIN = "FlashAttention-4"
DIM = 128
SCALE = DIM**-0.5
ROWS = 256  # of queries, in a thread block
ONE = np.uint32(1)
CLASSES = "FlashAttentionForwardSm100", "FlashAttentionBackwardSm100"


def divisor(d: int) -> tuple[Struct, np.uint32]:
    """What CUTLASS divides by fast: the divisor, its reciprocal and two shifts; and the divisor."""
    log = (d - 1).bit_length()
    reciprocal = (((1 << log) - d) << 32) // d + 1
    shifts = bytes((min(log, 1), max(log - 1, 0), 0, 0))
    return Struct(np.uint32(d), np.uint32(reciprocal), shifts), np.uint32(d)


class Kernels:
    """The kernels of `flash_attn.cute`, compiled without a GPU."""

    def __init__(self) -> None:
        # Read by CuTe DSL when it is imported.
        os.environ |= {"CUTE_DSL_ARCH": "sm_100a", "CUTE_DSL_KEEP": "ptx"}
        os.environ["CUTE_DSL_DUMP_DIR"] = tempfile.mkdtemp()
        importlib.import_module("tvm_ffi")  # it would build an extension of PyTorch, were it there
        for name in ("torch", "torch._subclasses", "torch._subclasses.fake_tensor"):
            sys.modules.setdefault(name, Absent(name))
        # These packages import PyTorch's operators when they are imported themselves. The kernel
        # is in a module of theirs that does not.
        for name in ("quack", "flash_attn", "flash_attn.cute"):
            spec = importlib.util.find_spec(name)
            module = ModuleType(name)
            module.__path__ = list(spec.submodule_search_locations or ()) if spec else []
            sys.modules[name] = module
        importlib.import_module("quack.dsl")  # it extends CuTe's tensors
        self.cute = importlib.import_module("cutlass.cute")
        # Persistent kernels ask the driver how many multiprocessors there are, for a grid that
        # the launches below choose themselves.
        hardware = importlib.import_module("cutlass.utils").HardwareInfo
        hardware.__init__ = lambda _: None
        hardware.get_device_multiprocessor_count = lambda _: 1

    def compile(self, kernel: str, tensors: Sequence[object], **options: object) -> ptxvm.Kernel:
        """For tensors of any extents and strides, as `flash_attn_func` has it."""
        module = importlib.import_module(f"flash_attn.cute.{kernel}")
        (name,) = (each for each in vars(module) if each in CLASSES)
        stream, scale = module.cuda.CUstream(0), module.Float32(SCALE)
        function = getattr(module, name)(DIM, **options)
        ptx = self.cute.compile(function, *tensors, scale, stream=stream).__ptx__
        (found,) = ptxvm.Module.parse(ptx, f"{kernel}.ptx").kernels.values()
        return found

    def tensors(self, kind: str, rank: int, divisibility: int, count: int = 1) -> list[object]:
        """Of the type of that name in CUTLASS, in device memory."""
        fake = importlib.import_module("quack.compile_utils").make_fake_tensor
        given = getattr(importlib.import_module("cutlass"), kind)
        extents = [tuple(self.cute.sym_int() for _ in range(rank)) for _ in range(count)]
        return [fake(given, each, divisibility) for each in extents]


def tiles(x: np.ndarray, rows: int = 128) -> TensorMap:
    return TensorMap(x.transpose(0, 2, 1, 3), (1, 1, rows, 64), 128)


def layout(*extents: int, strides: Sequence[int] = (), of: Sequence[np.ndarray] = ()) -> Struct:
    """What CuTe passes for a tensor: its address, unless it is read through a map, its extents,
    and the strides but for that of one."""
    return Struct(*of, *map(np.int32, extents), *map(np.int64, strides))


def by_size(n: int, heads: int, blocks: int) -> list[object]:
    """The parameters of the scheduler that starts with the longest tiles: as many heads follow
    one another as 50 MiB of cache hold."""
    swizzle = 1 << int(math.log2((50 << 20) // (n * 2 * DIM * 2)))
    rest, last = divmod(heads, swizzle)
    counts = (blocks * heads, 1, blocks, heads, 1, swizzle)
    given: list[object] = [*map(np.uint32, counts)]
    for each in (heads, swizzle, swizzle * blocks, max(last, 1)):
        given += divisor(each)
    return [*given, np.uint32(rest), *divisor(1)]


def attention(
    kernels: Kernels, n: int, causal: bool = False, pair: bool = False, group: int = 1
) -> Sequence[ptxvm.Result]:
    """Two heads of queries. Where nothing is masked, one thread block or pair computes all tiles,
    one after the other."""
    heads, group_rows = 2 // group, n * group
    generator = np.random.default_rng(5)
    q = generator.normal(size=(1, n, 2, DIM)).astype(np.float16)
    k, v = generator.normal(size=(2, 1, n, heads, DIM)).astype(np.float16)
    k, v, out, lse = k.copy(), v.copy(), np.zeros_like(q), np.zeros((1, 2, n), np.float32)
    kernel = kernels.compile(
        "flash_fwd_sm100", kernels.tensors("Float16", 4, 8, 4) + kernels.tensors("Float32", 3, 1),
        is_causal=causal, is_static_persistent=not causal, use_2cta_instrs=pair,
        qhead_per_kvhead=group, pack_gqa=group > 1,
    )  # fmt: skip

    def packed(x: np.ndarray) -> TensorMap:
        """The heads of a group are rows of one tile."""
        if group == 1:
            return tiles(x)
        by_group = x.reshape(1, n, heads, group, DIM).transpose(0, 2, 1, 3, 4)
        return TensorMap(by_group, (1, 1, 128 // group, group, 64), 128)

    rows_first, columns_first = layout(n, DIM, heads, 1), layout(DIM, n, heads, 1)
    strides = [n] * (group > 1) + [group_rows, 2 * n]
    sums = layout(n, heads, 1, strides=strides, of=[lse])
    given: list[object] = [rows_first, rows_first, columns_first, rows_first, sums]
    given += [packed(q), tiles(k, 64 if pair else 128), tiles(v), packed(out)]
    given += [np.float32(SCALE * math.log2(math.e)), *[PAIR if pair else ONE_BLOCK] * 2]
    blocks = group_rows // ROWS
    if causal:
        given += [*by_size(n, heads, blocks), ONE]
        given += divisor(group) if group > 1 else ()
    else:
        blocks //= 1 + pair
        given += [*divisor(blocks), *divisor(heads), np.uint32(blocks * heads), ONE]
    grid = (blocks * heads if causal else 1 + pair,)

    wide_q, wide_k, wide_v = (each[0].astype(np.float64) for each in (q, k, v))
    wide_k, wide_v = (each.repeat(group, 1) for each in (wide_k, wide_v))
    scores = np.einsum("sgd,tgd->gst", wide_q, wide_k) * SCALE
    if causal:
        scores[:, *np.triu_indices(n, 1)] = -np.inf
    most = scores.max(2, keepdims=True)
    p = np.exp(scores - most)
    total = p.sum(2, keepdims=True)
    right = np.einsum("gst,tgd->sgd", p / total, wide_v)
    results = []
    for reverse in (False, True):
        out[:], lse[:] = 0, 0
        results.append(
            kernel.launch(
                *given, grid=grid, block=512, cluster=1 + pair, shared=MOST_SHARED, reverse=reverse
            )
        )
        expect(out[0], right, rtol=5e-3, atol=1e-3)
        expect(lse[0], (most + np.log(total))[..., 0], rtol=1e-4, atol=1e-4)
    return results


def gradients(kernels: Kernels, causal: bool) -> Sequence[ptxvm.Result]:
    """Of keys and values as the kernel stores them; of queries as it adds them up in FP32, before
    another kernel scales and rounds them."""
    n, heads = 256, 2
    kernel = kernels.compile(
        "flash_bwd_sm100",
        [
            *kernels.tensors("Float16", 4, 8, 4),
            *kernels.tensors("Float32", 3, 4, 3),
            *kernels.tensors("Float16", 4, 8, 2),
        ],
        is_causal=causal,
    )
    generator = np.random.default_rng(5)
    drawn = generator.normal(size=(4, 1, n, heads, DIM)).astype(np.float16)
    q, k, v, d_out = (each.copy() for each in drawn)
    wide_q, wide_k, wide_v, wide_d = (
        each[0].astype(np.float64).transpose(1, 0, 2) for each in drawn
    )
    scores = wide_q @ wide_k.transpose(0, 2, 1) * SCALE
    if causal:
        scores[:, *np.triu_indices(n, 1)] = -np.inf
    most = scores.max(2, keepdims=True)
    p = np.exp(scores - most)
    total = p.sum(2, keepdims=True)
    p /= total
    of_out = (wide_d * (p @ wide_v)).sum(2)
    d_scores = p * (wide_d @ wide_v.transpose(0, 2, 1) - of_out[..., None]) * SCALE
    # What the kernel before this one makes of the forward pass: base-2 logarithms, and sums.
    lse = ((most + np.log(total))[..., 0] * math.log2(math.e)).astype(np.float32)
    sums = of_out.astype(np.float32)
    d_q, d_k, d_v = np.zeros((heads, n * DIM), np.float32), np.zeros_like(k), np.zeros_like(v)

    def by_rows(x: np.ndarray) -> Struct:
        each = x.shape[1]
        return layout(each, heads, 1, strides=(each, each * heads), of=[x])

    def stored(x: np.ndarray) -> Struct:
        strides = (heads * DIM, DIM, n * heads * DIM)
        return layout(n, DIM, heads, 1, strides=strides, of=[x])

    rows_first, columns_first = layout(n, DIM, heads, 1), layout(DIM, n, heads, 1)
    given: list[object] = [*[rows_first] * 3, by_rows(lse), by_rows(sums), columns_first]
    given += [stored(d_v), stored(d_k), by_rows(d_q), rows_first, rows_first]
    given += [tiles(each) for each in (q, k, v, d_out, d_v, d_k)] + [ONE_BLOCK] * 5
    given += [np.float32(SCALE), np.float32(SCALE * math.log2(math.e))]
    given += [np.uint32(n // 128), np.uint32(heads), ONE, *divisor(1)]
    results = []
    for reverse in (False, True):
        for each in (d_q, d_k, d_v):
            each[:] = 0
        results.append(
            kernel.launch(
                *given, grid=(n // 128, heads), block=512, shared=MOST_SHARED, reverse=reverse
            )
        )
        # Tiles of 128 rows and 32 columns; four columns of all rows come before the next four.
        of_q = d_q.reshape(heads, n // 128, 4, 8, 128, 4).transpose(0, 1, 4, 2, 3, 5)
        expect(of_q.reshape(heads, n, DIM) * SCALE, d_scores @ wide_k, rtol=5e-3, atol=2e-3)
        for got, right in (
            (d_k, d_scores.transpose(0, 2, 1) @ wide_q),
            (d_v, p.transpose(0, 2, 1) @ wide_d),
        ):
            expect(got[0].transpose(1, 0, 2), right, rtol=5e-3, atol=2e-3)
    return results


def cases() -> list[Case]:
    kernels = Kernels()
    return [
        Case("forward", ORIGIN, lambda _: attention(kernels, 256), (100,)),
        Case("forward, pairs", ORIGIN, lambda _: attention(kernels, 512, pair=True), (100,)),
        Case("forward, causal", ORIGIN, lambda _: attention(kernels, 512, causal=True), (100,)),
        Case(
            "forward, causal, a head of keys for two of queries", ORIGIN,
            lambda _: attention(kernels, 256, causal=True, group=2), (100,),
        ),
        Case("gradients", ORIGIN, lambda _: gradients(kernels, False), (100,)),
        Case("gradients, causal", ORIGIN, lambda _: gradients(kernels, True), (100,)),
    ]  # fmt: skip
