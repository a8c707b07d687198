# SPDX-License-Identifier: MIT
"""The kernels of Triton's own tutorials, out of a folder that has them; how each is launched."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import ptxvm
import ptxvm.triton
import triton

from foreign.case import Case, Wrong, expect

ORIGIN = "Triton's tutorials"
ALL = (80, 90, 100)


def is_jit(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and decorator.attr == "jit"


def is_import_of_triton(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "triton"
    return isinstance(node, ast.Import) and all(
        each.name.split(".")[0] == "triton" for each in node.names
    )


def kernels(path: Path) -> SimpleNamespace:
    """The @triton.jit functions of a file, which stays as it is. What surrounds them is not run:
    it wants PyTorch and a GPU. Nor is @triton.autotune, which times; a case gives the constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(is_jit, node.decorator_list)):
            node.decorator_list = [each for each in node.decorator_list if is_jit(each)]
            body.append(node)
        elif is_import_of_triton(node):
            body.append(node)
    tree.body = body
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    # The file name stays, so Triton reads the text of a function from the file itself.
    exec(compile(tree, str(path), "exec"), names)
    return SimpleNamespace(**names)


def normal(*shape: int, seed: int = 5, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


class Tutorials:
    """The cases of a folder `python/tutorials`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, name: str) -> SimpleNamespace:
        return kernels(self.folder / name)

    def add(self, arch: int) -> Sequence[ptxvm.Result]:
        n = 9843
        x, y, out = normal(n), normal(n, seed=6), np.zeros(n, np.float32)
        result = ptxvm.triton.run(
            self.of("01-vector-add.py").add_kernel,
            lambda given: (triton.cdiv(n, given["BLOCK_SIZE"]),),
            x, y, out, n, BLOCK_SIZE=1024, arch=arch,
        )  # fmt: skip
        expect(out, x + y)
        return [result]

    def softmax(self, arch: int) -> Sequence[ptxvm.Result]:
        rows, columns = 23, 781
        x = 3 * normal(rows, columns)
        out = np.zeros_like(x)
        # num_stages is a parameter of this kernel as well as an option of the compiler.
        result = ptxvm.triton.run(
            self.of("02-fused-softmax.py").softmax_kernel, 5,
            out, x, columns, columns, rows, columns, BLOCK_SIZE=1024,
            num_stages=4 if arch >= 90 else 2, num_warps=8, arch=arch,
        )  # fmt: skip
        weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        expect(out, weights / weights.sum(1, keepdims=True))
        return [result]

    def matmul(self, arch: int) -> Sequence[ptxvm.Result]:
        """Ragged in all extents, with and without the function that it calls at the end."""
        m, n, k = 200, 328, 136
        a, b = normal(m, k, dtype="float16"), normal(k, n, seed=6, dtype="float16")
        wide = a.astype(np.float64) @ b.astype(np.float64)
        kernel, results = self.of("03-matrix-multiplication.py").matmul_kernel, []
        leaky = np.where(wide >= 0, wide, wide / 100)
        for activation, right in (("", wide), ("leaky_relu", leaky)):
            c = np.zeros((m, n), np.float16)
            results.append(
                ptxvm.triton.run(
                    kernel,
                    lambda given: (
                        triton.cdiv(m, given["BLOCK_SIZE_M"])
                        * triton.cdiv(n, given["BLOCK_SIZE_N"]),
                    ),
                    a, b, c, m, n, k, k, 1, n, 1, n, 1,
                    BLOCK_SIZE_M=128, BLOCK_SIZE_N=256, BLOCK_SIZE_K=64, GROUP_SIZE_M=8,
                    ACTIVATION=activation, num_stages=3, num_warps=8, arch=arch,
                )
            )  # fmt: skip
            expect(c, right, rtol=2e-3, atol=1e-2)
        return results

    def dropout(self, arch: int) -> Sequence[ptxvm.Result]:
        module, n, p = self.of("04-low-memory-dropout.py"), 2000, 0.25
        x, results = normal(n), []
        keep = (np.random.default_rng(7).random(n) > p).astype(np.int32)
        out = np.zeros_like(x)
        given = (x, keep, out, n, p)
        results.append(ptxvm.triton.run(module._dropout, 2, *given, BLOCK_SIZE=1024, arch=arch))
        expect(out, np.where(keep, x / (1 - p), 0))
        outs = [np.zeros_like(x) for _ in range(3)]
        for out, seed in zip(outs, (123, 123, 512), strict=True):
            given = (x, out, n, p, seed)
            run = ptxvm.triton.run(module._seeded_dropout, 2, *given, BLOCK_SIZE=1024, arch=arch)
            results.append(run)
        kept = outs[0] != 0
        expect(outs[0][kept], (x / (1 - p))[kept])
        expect(outs[1], outs[0])
        if (outs[2] == outs[0]).all() or not 0.7 < kept.mean() < 0.8:
            raise Wrong(f"{kept.mean():.3f} are kept, or the seed changes nothing")
        return results

    def layer_norm(self, arch: int) -> Sequence[ptxvm.Result]:
        """Forward and backward; the gradients of blocks are added under locks."""
        module, (m, n), group = self.of("05-layer-norm.py"), (37, 300), 8
        x, dy = (normal(m, n) / 2 - 2.3).astype(np.float16), (normal(m, n, seed=6) / 10)
        dy = dy.astype(np.float16)
        w, b = (np.random.default_rng(8).random((2, n))).astype(np.float16)
        w, b = w.copy(), b.copy()
        y, mean, rstd = np.zeros_like(x), np.zeros(m, np.float32), np.zeros(m, np.float32)
        options = {"num_warps": 2, "arch": arch}
        forward = ptxvm.triton.run(
            module._layer_norm_fwd_fused, m, x, y, w, b, mean, rstd, n, n, 1e-5,
            BLOCK_SIZE=512, **options,
        )  # fmt: skip
        wide, wide_dy, wide_w = (each.astype(np.float64) for each in (x, dy, w))
        sigma = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        hat = (wide - wide.mean(1, keepdims=True)) / sigma
        expect(y, hat * wide_w + b, rtol=2e-3, atol=2e-3)

        dx, locks = np.zeros_like(x), np.zeros(2 * group, np.int32)
        parts = [np.zeros((group, n), np.float16) for _ in range(2)]
        backward = ptxvm.triton.run(
            module._layer_norm_bwd_dx_fused, m, dx, dy, *parts, x, w, mean, rstd, locks, n, n,
            GROUP_SIZE_M=group, BLOCK_SIZE_N=512, **options,
        )  # fmt: skip
        dw, db = np.zeros(n, np.float16), np.zeros(n, np.float16)
        summed = ptxvm.triton.run(
            module._layer_norm_bwd_dwdb, 3, *parts, dw, db, group, n,
            BLOCK_SIZE_M=32, BLOCK_SIZE_N=128, arch=arch,
        )  # fmt: skip
        g = wide_dy * wide_w
        expected = (g - hat * (g * hat).mean(1, keepdims=True) - g.mean(1, keepdims=True)) / sigma
        expect(dx, expected, rtol=5e-3, atol=5e-3)
        expect(dw, (wide_dy * hat).sum(0), rtol=5e-3, atol=1e-2)
        expect(db, wide_dy.sum(0), rtol=5e-3, atol=1e-2)
        return [forward, backward, summed]

    def attention(self, arch: int) -> Sequence[ptxvm.Result]:
        """Forward and backward, causal and not, with descriptors that the kernel makes and, where
        there is a TMA, with those from outside; on sm_100 with warps of several kinds, too."""
        results = []
        for causal in (False, True):
            for outside in (False, True) if arch >= 90 else (False,):
                results += self.attend(arch, causal, outside)
            if arch == 100:
                results += self.attend(arch, causal, True, specialize=True)
        return results

    def attend(
        self, arch: int, causal: bool, outside: bool, specialize: bool = False
    ) -> list[ptxvm.Result]:
        module, (heads, n, dim) = self.of("06-fused-attention.py"), (2, 256, 64)
        scale, block_m, block_n = 0.5, 128, 64
        q, k, v, do = ((normal(heads, n, dim, seed=i) / 2).astype(np.float16) for i in range(4))
        out, m = np.zeros_like(q), np.zeros((heads, n), np.float32)
        tensors: list[Any] = [each.reshape(-1, dim) for each in (q, k, v, out)]
        if outside:
            blocks = (block_m, block_n, block_n, block_m)
            tensors = [
                ptxvm.triton.Descriptor(each, (rows, dim))
                for each, rows in zip(tensors, blocks, strict=True)
            ]
        forward = ptxvm.triton.run(
            module._attn_fwd, (n // block_m, heads), scale, m, 1, heads, *tensors, N_CTX=n,
            HEAD_DIM=dim, BLOCK_M=block_m, BLOCK_N=block_n, FP8_OUTPUT=False,
            STAGE=3 if causal else 1, warp_specialize=specialize, IS_HOPPER=arch == 90,
            num_warps=4, num_stages=2, arch=arch,
        )  # fmt: skip
        wide_q, wide_k, wide_v, wide_do = (each.astype(np.float64) for each in (q, k, v, do))
        scores = wide_q @ wide_k.swapaxes(1, 2) * scale
        if causal:
            scores[:, *np.triu_indices(n, 1)] = -np.inf
        p = np.exp(scores - scores.max(2, keepdims=True))
        p /= p.sum(2, keepdims=True)
        expect(out, p @ wide_v, rtol=5e-3, atol=2e-3)

        delta = np.zeros_like(m)
        before = ptxvm.triton.run(
            module._attn_bwd_preprocess, (n // 128, heads), out, do, delta, 1, heads, n,
            BLOCK_M=128, HEAD_DIM=dim, arch=arch,
        )  # fmt: skip
        scaled = (k * (scale * 1.4426950408889634)).astype(np.float16)
        dq, dk, dv = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
        backward = ptxvm.triton.run(
            module._attn_bwd, (n // 128, 1, heads), q, scaled, v, scale, do, dq, dk, dv, m, delta,
            heads * n * dim, n * dim, dim, 1, heads, n,
            BLOCK_M1=32, BLOCK_N1=128, BLOCK_M2=128, BLOCK_N2=32, BLK_SLICE_FACTOR=2,
            HEAD_DIM=dim, CAUSAL=causal, num_warps=4, num_stages=5, arch=arch,
        )  # fmt: skip
        dp = wide_do @ wide_v.swapaxes(1, 2)
        ds = p * (dp - (dp * p).sum(2, keepdims=True)) * scale
        expect(dv, p.swapaxes(1, 2) @ wide_do, rtol=0, atol=1e-2)
        expect(dk, ds.swapaxes(1, 2) @ wide_q, rtol=0, atol=1e-2)
        expect(dq, ds @ wide_k, rtol=0, atol=1e-2)
        return [forward, before, backward]


def cases(folder: Path) -> list[Case]:
    """The six tutorials; a file that the folder lacks fails its case."""
    tutorials = Tutorials(folder)
    return [
        Case("01 vector add", ORIGIN, tutorials.add, ALL),
        Case("02 fused softmax", ORIGIN, tutorials.softmax, ALL),
        Case("03 matrix multiplication", ORIGIN, tutorials.matmul, ALL),
        Case("04 low-memory dropout", ORIGIN, tutorials.dropout, ALL),
        Case("05 layer norm, backward too", ORIGIN, tutorials.layer_norm, ALL),
        Case("06 fused attention, backward too", ORIGIN, tutorials.attention, ALL),
    ]
