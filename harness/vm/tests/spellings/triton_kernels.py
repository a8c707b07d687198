# SPDX-License-Identifier: MIT
# Kernels have no annotations that Python could check.
# ruff: noqa: ANN001, ANN201
"""Triton kernels that make its compiler write as many different instructions as possible."""

from collections.abc import Iterator

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def elementwise(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = i < n
    a = tl.load(x + i, mask=mask, other=0)
    b = tl.load(y + i, mask=mask, eviction_policy="evict_last")
    tl.store(out + i, a * b + a, mask=mask)


@triton.jit
def hinted(x, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    a = tl.load(x + i, mask=i < n, cache_modifier=".cg", eviction_policy="evict_first")
    b = tl.load(x + i + n, cache_modifier=".ca") + tl.load(x + i + 2 * n, volatile=True)
    tl.store(out + i, a, cache_modifier=".cs", eviction_policy="evict_first")
    tl.store(out + i + n, b, cache_modifier=".wt")


@triton.jit
def functions(x, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    a = tl.load(x + i, mask=i < n, other=1.0)
    b = tl.exp(a) + tl.log(a) + tl.sin(a) + tl.cos(a) + tl.sqrt(a) + tl.rsqrt(a) + tl.exp2(a)
    c = tl.log2(a) + tl.erf(a) + tl.floor(a) + tl.ceil(a) + tl.abs(a) + tl.fma(a, b, a)
    d = tl.where(a > b, a, tl.maximum(b, c)) + tl.minimum(a, c) + tl.math.div_rn(a, b)
    tl.store(out + i, d + tl.math.sqrt_rn(a) + tl.sigmoid(a) + tl.clamp(a, 0.0, 1.0), mask=i < n)


@triton.jit
def integers(x, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    a = tl.load(x + i, mask=i < n, other=1)
    b = (a // 7) ^ (a % 5) | (a << 3) & (a >> 2)
    tl.store(out + i, b + tl.abs(a) - ~a + tl.minimum(a, b) * tl.maximum(a, 3), mask=i < n)


@triton.jit
def converts(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    tl.store(out + i, a.to(out.dtype.element_ty))


@triton.jit
def softmax(x, out, columns, SIZE: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, SIZE)
    a = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(a - tl.max(a, axis=0))
    tl.store(out + row * columns + i, (e / tl.sum(e, axis=0)).to(out.dtype.element_ty), i < columns)


@triton.jit
def layer_norm(x, w, b, out, columns, eps, SIZE: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, SIZE)
    a = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(a, axis=0) / columns
    centred = tl.where(i < columns, a - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    y = centred * scale * tl.load(w + i, mask=i < columns) + tl.load(b + i, mask=i < columns)
    tl.store(out + row * columns + i, y.to(out.dtype.element_ty), mask=i < columns)


@triton.jit
def dropout(x, out, n, p, seed, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, a / (1 - p), 0.0), mask=i < n)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    at = a + rows[:, None] * k + depth[None, :]
    bt = b + depth[:, None] * n + columns[None, :]
    kind: tl.constexpr = tl.int32 if a.dtype.element_ty.is_int() else tl.float32
    acc = tl.zeros((M, N), dtype=kind)
    for i in range(0, tl.cdiv(k, K)):
        x = tl.load(at, mask=depth[None, :] < k - i * K, other=0)
        y = tl.load(bt, mask=depth[:, None] < k - i * K, other=0)
        acc = tl.dot(x, y, acc, out_dtype=kind)
        at += K
        bt += K * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        columns = start + tl.arange(0, N)
        s = tl.dot(x, tl.trans(tl.load(k + columns[:, None] * D + d[None, :]))) * scale
        s = tl.where(rows[:, None] >= columns[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        y = tl.load(v + columns[:, None] * D + d[None, :])
        acc = tl.dot(p.to(y.dtype), y, acc * shrink[:, None])
        top = new
    acc = acc / total[:, None]
    tl.store(out + rows[:, None] * D + d[None, :], acc.to(out.dtype.element_ty))


@triton.jit
def orders(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    tl.store(out + i, tl.sort(a) + tl.cumsum(a, 0) + tl.argmax(a, 0))
    tl.store(out + SIZE + i, tl.flip(a) + tl.histogram(a.to(tl.int32), SIZE).to(a.dtype))


@triton.jit
def atomics(x, out, SIZE: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    tl.atomic_add(out + i % 7, a, sem=SEM, scope=SCOPE)
    b = tl.atomic_xchg(out + 8 + i % 7, a, sem=SEM, scope=SCOPE)
    tl.store(out + 64 + i, b)
    tl.atomic_max(out + 16 + i % 7, a, sem=SEM, scope=SCOPE)
    tl.atomic_min(out + 24 + i % 7, a, sem=SEM, scope=SCOPE)


@triton.jit
def integer_atomics(x, out, SIZE: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    tl.atomic_and(out + i % 7, a, sem=SEM, scope=SCOPE)
    tl.atomic_or(out + 8 + i % 7, a, sem=SEM, scope=SCOPE)
    tl.atomic_xor(out + 16 + i % 7, a, sem=SEM, scope=SCOPE)
    tl.store(out + 64 + i, tl.atomic_cas(out + 24 + i, a, a + 1, sem=SEM, scope=SCOPE))
    tl.store(out + 128 + i, tl.atomic_add(out + 32, 1, sem=SEM, scope=SCOPE) + a)


@triton.jit
def speaks(x, SIZE: tl.constexpr):
    a = tl.load(x + tl.arange(0, SIZE))
    tl.device_print("a", a)
    tl.device_assert(a > 0, "must be positive")


@triton.jit
def by_descriptor(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [M, N])
    a = source.load([tl.program_id(0) * M, tl.program_id(1) * N])
    target.store([tl.program_id(0) * M, tl.program_id(1) * N], a + a)


@triton.jit
def reduces_by_descriptor(x, out, HOW: tl.constexpr, SIZE: tl.constexpr):
    target = tl.make_tensor_descriptor(out, [SIZE, SIZE], [SIZE, 1], [SIZE, SIZE])
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a = tl.load(x + at)
    if HOW == "add":
        target.atomic_add([0, 0], a)
    elif HOW == "min":
        target.atomic_min([0, 0], a)
    elif HOW == "max":
        target.atomic_max([0, 0], a)
    elif HOW == "and":
        target.atomic_and([0, 0], a)
    elif HOW == "or":
        target.atomic_or([0, 0], a)
    else:
        target.atomic_xor([0, 0], a)


@triton.jit
def piles(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.atomic_add(out + i, tl.load(x + i), sem="relaxed")


@triton.jit
def precise(a, b, c, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


@triton.jit
def steps(a, b):
    return a * 2 + b


@triton.jit
def moves(x, index, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    b = tl.gather(a, tl.load(index + i), 0)
    even, odd = tl.split(tl.reshape(a + b, (SIZE // 2, 2)))
    tl.store(out + i, tl.interleave(odd, even))
    tl.store(out + SIZE + i, tl.associative_scan(a, 0, steps))
    noise = tl.rand(7, i) + tl.randn(8, i)
    tl.store(out + 2 * SIZE + i, tl.where(noise > 0.5, a, b))
    tl.store(out + 3 * SIZE + i, tl.cumprod(a, 0) + tl.argmin(a, 0) + tl.xor_sum(i, 0))


Case = tuple[object, dict[str, str], dict[str, object]]


def cases() -> Iterator[Case]:
    """Kernel, its signature and its constants."""
    for t in ("fp16", "bf16", "fp32", "fp64", "i8", "i16", "i32", "i64"):
        yield elementwise, {"x": f"*{t}", "y": f"*{t}", "out": f"*{t}", "n": "i32"}, {"SIZE": 1024}
    for t in ("fp16", "fp32"):
        yield hinted, {"x": f"*{t}", "out": f"*{t}", "n": "i32"}, {"SIZE": 512}
        for size in (256, 4096):
            yield softmax, {"x": f"*{t}", "out": f"*{t}", "columns": "i32"}, {"SIZE": size}
    for t in ("fp32", "fp64"):
        yield functions, {"x": f"*{t}", "out": f"*{t}", "n": "i32"}, {"SIZE": 256}
    for t in ("i32", "u32", "i64"):
        yield integers, {"x": f"*{t}", "out": f"*{t}", "n": "i32"}, {"SIZE": 256}
    kinds = ("fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64", "i8", "u8", "i16", "i32", "i64")
    for source in kinds:
        for target in kinds:
            yield converts, {"x": f"*{source}", "out": f"*{target}"}, {"SIZE": 512}
    pointers = {"x": "*fp16", "w": "*fp16", "b": "*fp16", "out": "*fp16"}
    yield layer_norm, {**pointers, "columns": "i32", "eps": "fp32"}, {"SIZE": 1024}
    scalars = {"n": "i32", "p": "fp32", "seed": "i32"}
    yield dropout, {"x": "*fp32", "out": "*fp32", **scalars}, {"SIZE": 1024}
    for t, out in (("fp16", "fp16"), ("bf16", "fp32"), ("fp32", "fp32"), ("i8", "i32"),
                   ("fp8e4nv", "fp16"), ("fp8e5", "fp32"), ("fp64", "fp64")):
        for tile in (64, 128):
            sizes = {"m": "i32", "n": "i32", "k": "i32"}
            yield (matmul, {"a": f"*{t}", "b": f"*{t}", "c": f"*{out}", **sizes},
                   {"M": tile, "N": tile, "K": 32})
    for t in ("fp16", "bf16"):
        for depth in (64, 128):
            tensors = {"q": f"*{t}", "k": f"*{t}", "v": f"*{t}", "out": f"*{t}"}
            yield (attention, {**tensors, "n": "i32", "scale": "fp32"},
                   {"M": 64, "N": 64, "D": depth})
    for t in ("fp32", "i32"):
        yield orders, {"x": f"*{t}", "out": f"*{t}"}, {"SIZE": 256}
    for sem in ("relaxed", "acquire", "release", "acq_rel"):
        for scope in ("cta", "gpu", "sys"):
            how = {"SIZE": 128, "SEM": sem, "SCOPE": scope}
            for t in ("fp16", "bf16", "fp32", "fp64", "i32", "u32", "i64"):
                yield atomics, {"x": f"*{t}", "out": f"*{t}"}, how
            for t in ("i32", "i64"):
                yield integer_atomics, {"x": f"*{t}", "out": f"*{t}"}, how
    yield speaks, {"x": "*fp32"}, {"SIZE": 64}
    for t in ("fp16", "fp32"):
        yield (by_descriptor, {"x": f"*{t}", "out": f"*{t}", "m": "i32", "n": "i32"},
               {"M": 64, "N": 64})
    for t in ("fp16", "bf16", "fp32", "i32", "u32", "i64", "u64"):
        for how in ("add", "min", "max", "and", "or", "xor"):
            yield (reduces_by_descriptor, {"x": f"*{t}", "out": f"*{t}"},
                   {"HOW": how, "SIZE": 64})
    for t in ("fp16", "bf16", "fp32", "fp64"):
        for size in (256, 1024, 2048):
            yield piles, {"x": f"*{t}", "out": f"*{t}"}, {"SIZE": size}
    for precision in ("tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"):
        yield (precise, {"a": "*fp32", "b": "*fp32", "c": "*fp32"},
               {"SIZE": 64, "PRECISION": precision})
    for t in ("fp32", "i32"):
        yield moves, {"x": f"*{t}", "index": "*i32", "out": f"*{t}"}, {"SIZE": 256}


def ptx_texts() -> Iterator[tuple[str, str]]:
    """A name and the PTX of every case that this Triton compiles, for sm_80 and sm_90."""
    for kernel, signature, constants in cases():
        for sm in (80, 90):
            # Pointers and sizes that are multiples of 16 give wide accesses.
            keys = [(i,) for i, t in enumerate(signature.values()) if t[0] == "*" or t == "i32"]
            divisible = {key: [["tt.divisibility", 16]] for key in keys}
            full = signature | {name: "constexpr" for name in constants}
            source = ASTSource(kernel, full, constants, divisible)
            name = f"{kernel.fn.__name__} {signature} {constants} sm_{sm}"  # type: ignore[attr-defined]
            try:
                compiled = triton.compile(source, target=GPUTarget("cuda", sm, 32))
            except Exception as problem:  # a type that this Triton refuses for this card
                lines = str(problem).strip().splitlines() or [type(problem).__name__]
                print(f"left out: {name}: {lines[-1][:100]}")
                continue
            yield name, compiled.asm["ptx"]
