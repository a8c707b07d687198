# SPDX-License-Identifier: MIT
"""CuTe DSL's examples for sm_100, out of a clone of CUTLASS that has them; how each is launched."""

from __future__ import annotations

import importlib
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import ptxvm
from ptxvm import Struct, TensorMap

from foreign.case import FLOAT4, Case, expect

ORIGIN = "CuTe DSL's examples"
GEMMS, ATTENTION = "cute/blackwell/tutorial/tutorial_gemm", "cute/blackwell/kernel/attention/fmha"
MOST_SHARED = 227 * 1024
# What make_tiled_mma passes: flags, of which the kernels set that of accumulation, and the lanes
# that are not written.
ONE_BLOCK, PAIR = Struct(bytes(32)), Struct(bytes(64))


class Absent(ModuleType):
    """In place of PyTorch, of which the compilation needs no more than that it can be imported."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Examples:
    """The examples of a folder `examples/python/CuTeDSL`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Read by CuTe DSL when it is imported.
        os.environ |= {"CUTE_DSL_ARCH": "sm_100a", "CUTE_DSL_KEEP": "ptx"}
        os.environ["CUTE_DSL_DUMP_DIR"] = tempfile.mkdtemp()
        self.cutlass = importlib.import_module("cutlass")
        self.cute = importlib.import_module("cutlass.cute")
        for name in ("torch", "cutlass.torch"):
            sys.modules.setdefault(name, Absent(name))
        self.cutlass.torch = sys.modules["cutlass.torch"]

    def module(self, path: str) -> ModuleType:
        sys.path[:0] = [str(self.folder), str((self.folder / path).parent)]
        try:
            return importlib.import_module(Path(path).stem)
        finally:
            del sys.path[:2]

    def tensor(self, *shape: int) -> Any:
        """Of f16, with the last extent side by side."""
        make = importlib.import_module("cutlass.cute.runtime").make_fake_compact_tensor
        order = tuple(reversed(range(len(shape))))
        return make(self.cutlass.Float16, shape, stride_order=order, assumed_align=32)

    def compile(self, function: Callable[..., Any], *given: object, **options: str) -> ptxvm.Kernel:
        ptx = self.cute.compile(function, *given, **options).__ptx__
        (kernel,) = ptxvm.Module.parse(ptx, "cute.ptx").kernels.values()
        return kernel

    def gemm(self, name: str, launch: Callable[..., Iterator[ptxvm.Result]], *more: object) -> Case:
        def run(_: int) -> Sequence[ptxvm.Result]:
            m, n, k = 512, 512, 256
            shapes = (m, k), (n, k), (m, n)
            function = self.module(f"{GEMMS}/{name}.py").host_function
            kernel = self.compile(function, *(self.tensor(*each) for each in shapes), *more)
            generator = np.random.default_rng(5)
            a, b = (generator.normal(size=each).astype(np.float16) for each in shapes[:2])
            c = np.zeros((m, n), np.float16)
            results = []
            for result in launch(kernel, a, b, c):
                results.append(result)
                expect(c, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-3, atol=1e-3)
                c[:] = 0
            return results

        return Case(name, ORIGIN, run, (100,))

    def nvfp4(self, name: str) -> Sequence[ptxvm.Result]:
        """e2m1, and a scale of e4m3 for 16 elements of k."""
        example, types = self.module(f"{GEMMS}/{name}.py"), self.cutlass
        m, n, k = 256, 256, 512
        pointer = importlib.import_module("cutlass.cute.runtime").make_ptr
        given = [pointer(each, 0, self.cute.AddressSpace.gmem, assumed_align=32) for each in
                 (*[types.Float4E2M1FN] * 2, *[types.Float8E4M3FN] * 2, types.Float16)]  # fmt: skip
        kernel = self.compile(
            example.Sm100BlockScaledDenseGemmKernel(),
            *given,
            (m, n, k, 1),
            example.cuda.CUstream(0),
        )
        generator, c = np.random.default_rng(5), np.zeros((m, n), np.float16)
        given, wide = [Struct(bytes(12))], []
        maps = [], []
        for rows, tile in ((m, 128), (n, 256)):
            codes = generator.integers(0, 16, (rows, k))
            powers = generator.integers(-1, 2, (rows, k // 16))
            wide.append(FLOAT4[codes] * np.repeat(np.exp2(powers), 16, 1))
            packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
            # 128 rows by 4 scales are 512 bytes.
            scales = (0x38 + 8 * powers).astype(np.uint8).reshape(rows // 128, 4, 32, k // 64, 4)
            scales = np.ascontiguousarray(scales.transpose(0, 3, 2, 1, 4))
            maps[0].append(TensorMap(packed[None], (1, tile, 128), 128, packed=True))
            pieces = scales.reshape(1, rows // 128, k // 64, 512).view(np.int16)
            maps[1].append(TensorMap(pieces, (1, tile // 128, 4, 256)))
        for each in (*maps[0], *maps[1]):
            given += [each, Struct(*map(np.int32, (m, k, 1)))]
        given.append(Struct(c, *map(np.int32, (m, n, 1, n, m * n, 0))))
        results = []
        for reverse in (False, True):
            c[:] = 0
            results.append(
                kernel.launch(*given, grid=(2, 1), block=128, shared=MOST_SHARED, reverse=reverse)
            )
            expect(c, wide[0] @ wide[1].T, rtol=1e-3, atol=1e-3)
        return results

    def attention(self, causal: bool) -> Sequence[ptxvm.Result]:
        """Forward, two heads of queries for one of keys."""
        example = self.module(f"{ATTENTION}/fmha.py")
        types, kinds = self.cutlass, example.fmha_utils.MaskEnum
        kind = kinds.WINDOW_MASK_INFERENCE if causal else kinds.RESIDUAL_MASK
        n, heads, dim = 256, 2, 128
        scale = dim**-0.5
        scales = [scale / math.log(2), scale, 1.0]
        function = example.BlackwellFusedMultiHeadAttentionForward(
            types.Float32, types.Float32, (128, 128), dim, False, kind, False, False
        )
        q_like, k_like = self.tensor(1, n, 1, heads, dim), self.tensor(1, n, 1, 1, dim)
        kernel = self.compile(
            function, q_like, k_like, k_like, q_like,
            tuple(map(types.Int32, (1, n, n, n, heads, 1, dim, dim))), None, None, None, None,
            *map(types.Float32, scales), None, None, types.Int32(0) if causal else None,
            None, None, example.cuda.CUstream(0), False, options="--opt-level=2",
        )  # fmt: skip
        generator = np.random.default_rng(5)
        q = generator.normal(size=(1, n, 1, heads, dim)).astype(np.float16)
        k, v = generator.normal(size=(2, 1, n, 1, dim)).astype(np.float16)
        k, v, out = k.copy(), v.copy(), np.zeros_like(q)

        def of_queries(x: np.ndarray) -> TensorMap:
            return TensorMap(x.transpose(0, 2, 3, 1, 4), (1, 1, 1, 128, 64), 128)

        def of_keys(x: np.ndarray) -> TensorMap:
            return TensorMap(x.transpose(0, 2, 1, 3), (1, 1, 128, 64), 128)

        shape = Struct(*(np.int32(each) for each in (dim, heads, 1, 1)))
        given = [ONE_BLOCK, ONE_BLOCK, of_queries(q), shape, of_keys(k), shape, of_keys(v), shape]
        given += [of_queries(out), shape, Struct(bytes(40)), *map(np.float32, scales)]
        given += [np.uint32(0)] * causal  # keys to the right of the diagonal
        grid = (1, heads, 1)
        given += [np.uint32(each) for each in grid]
        wide_q, wide_k, wide_v = (each[0].astype(np.float64) for each in (q, k, v))
        scores = np.einsum("sgd,td->gst", wide_q[:, 0], wide_k[:, 0]) * scale
        if causal:
            scores[:, *np.triu_indices(n, 1)] = -np.inf
        p = np.exp(scores - scores.max(2, keepdims=True))
        right = np.einsum("gst,td->sgd", p / p.sum(2, keepdims=True), wide_v[:, 0])
        results = []
        for reverse in (False, True):
            out[:] = 0
            results.append(
                kernel.launch(*given, grid=grid, block=512, shared=MOST_SHARED, reverse=reverse)
            )
            expect(out[0, :, 0], right, rtol=5e-3, atol=1e-3)
        return results


def launched(
    kernel: ptxvm.Kernel, *given: object, block: int, cluster: int
) -> Iterator[ptxvm.Result]:
    """Tiles of 128 rows a block, 256 columns, in both orders of the warps."""
    for reverse in (False, True):
        yield kernel.launch(
            *given, grid=(4, 2), block=block, cluster=cluster, shared=MOST_SHARED, reverse=reverse
        )


def cases(folder: Path) -> list[Case]:
    """A file that the folder lacks fails its case."""
    examples = Examples(folder)

    def tiles(x: np.ndarray, rows: int) -> TensorMap:
        return TensorMap(x, (rows, 64), 128)

    return [
        examples.gemm(
            "fp16_gemm_0",
            lambda kernel, a, b, c: launched(
                kernel, ONE_BLOCK, tiles(a, 128), tiles(b, 256), c, block=128, cluster=1
            ),
        ),
        examples.gemm(
            "fp16_gemm_1",
            lambda kernel, a, b, c: launched(
                kernel, PAIR, tiles(a, 128), tiles(b, 128), c, block=128, cluster=2
            ),
        ),
        examples.gemm(
            "fp16_gemm_2",
            lambda kernel, a, b, c: launched(
                kernel, PAIR, tiles(a, 128), tiles(b, 128), TensorMap(c, (128, 32), 64),
                block=192, cluster=2,
            ),
        ),
        examples.gemm(
            "fp16_gemm_3_1",
            lambda kernel, a, b, c: launched(
                kernel, PAIR, tiles(a, 128), tiles(b, 128), TensorMap(c, (128, 32), 64),
                block=224, cluster=2,
            ),
            4,
        ),
        Case("nvfp4_gemm_0", ORIGIN, lambda _: examples.nvfp4("nvfp4_gemm_0"), (100,)),
        Case("fmha", ORIGIN, lambda _: examples.attention(False), (100,)),
        Case("fmha, causal", ORIGIN, lambda _: examples.attention(True), (100,)),
    ]  # fmt: skip
