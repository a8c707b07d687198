# SPDX-License-Identifier: MIT
"""The operator on an NVIDIA GPU: FlashAttention's own shapes, a model, graphs, streams, overhead.

Where pytest is not installed:
  PYTHONPATH=harness/python:harness/vm/python python3 harness/python/tests/test_gpu.py
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import importlib
import itertools
import math
import random
import sys
import time
import unittest
import unittest.mock
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flash_ladder
from flash_ladder import _native
from flash_ladder.vllm import flash_attn_varlen_func

try:
    import torch
    from flash_ladder import _torch
except ImportError:
    torch = None

WHY_NOT = "" if torch else "torch is not installed"
if torch and not torch.cuda.is_available():
    WHY_NOT = "torch sees no GPU"
elif torch and torch.cuda.get_device_capability() != (9, 0):
    WHY_NOT = "most of what is tested is for compute capability 9.0"

# Those of FlashAttention-2 and -3 (tests/test_flash_attn.py, hopper/test_flash_attn.py).
LENGTHS = [
    *[(1, 1), (64, 128), (128, 192), (256, 256), (239, 1), (799, 3), (113, 203), (113, 128)],
    *[(128, 217), (113, 211), (108, 256), (256, 512), (384, 256), (640, 128), (512, 256)],
    *[(1024, 1024), (1023, 1024), (1024, 1023), (2048, 2048), (4096, 4096), (4224, 4224)],
]
HEADS = 6
FORWARD = [r for r in flash_ladder.rungs() if r.family not in ("backward", "blackwell")]
ANY_LENGTH = ["best", *(r.id for r in FORWARD if "ragged" in r.capabilities)]
WINDOWED = [
    "best",
    *(r.id for r in FORWARD if r.family == "hopper" and "windowed" in r.capabilities),
]
WHOLE_TILES = [r for r in FORWARD if "ragged" not in r.capabilities]
# An RMS error of gradients by that of PyTorch's fused attention or of FlashAttention-3: an H200
# measured 0.800 to 1.026.
MOST_RMS = 1.05
NO_WINDOW = (-1, -1)
MODEL_SIZES = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}
MODELS = {
    "Llama": {},
    "Mistral": {"sliding_window": 200},
    "GptOss": {
        "head_dim": 64,
        "sliding_window": 128,
        # With two experts, rounding sends a token to the other one now and then.
        "num_local_experts": 1,
        "num_experts_per_tok": 1,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    },
}
PROMPT, NEW_TOKENS = 700, 100


def inputs(batch: int, heads: int, seq: tuple[int, int], dim: int, dtype: Any) -> list[Any]:
    torch.manual_seed(0)
    q, kv = (batch, heads, seq[0], dim), (batch, heads, seq[1], dim)
    return [torch.randn(shape, device="cuda", dtype=dtype) for shape in (q, kv, kv)]


def formula(
    q: Any, k: Any, v: Any, causal: bool, window: tuple[int, int] = NO_WINDOW
) -> tuple[Any, Any]:
    """(O, LSE) in the precision of q; a row that sees no key is 0."""
    scores = (q * q.shape[3] ** -0.5) @ k.mT
    left, right = window
    right = 0 if causal else right
    seen = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device)
    if right >= 0:
        seen = seen.tril(k.shape[2] - q.shape[2] + right)
    if left >= 0:
        seen = seen.triu(k.shape[2] - q.shape[2] - left)
    scores.masked_fill_(~seen, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ v, scores.logsumexp(-1)


def worst(one: Any, other: Any) -> float:
    return float((one.double() - other.double()).abs().max())


@unittest.skipIf(WHY_NOT, WHY_NOT)
class MatrixTest(unittest.TestCase):
    """Their criterion: the error is at most twice that of PyTorch's formula in the same format.
    Where that formula is exact, with a single key, a rung whose softmax reference is not the
    maximum still rounds P: one unit in the last place of the largest O is allowed, and those cases
    are counted."""

    beyond = 0  # cases that needed the unit

    def compare(
        self, rung: str, given: list[Any], causal: bool, window: tuple[int, int] = NO_WINDOW
    ) -> None:
        wider = torch.float64 if given[0].dtype == torch.float32 else torch.float32
        exact, exact_lse = formula(*(each.to(wider) for each in given), causal, window)
        rounded = formula(*given, causal, window)[0]
        allowed = 2 * worst(rounded, exact) + 2 * worst(exact + 0.3 - 0.3, exact)
        call = {"rung": rung, "causal": causal}
        call |= {} if window == NO_WINDOW else {"window": window}
        o = flash_ladder.attention(*given, **call)
        error = worst(o, exact)
        unit = torch.finfo(o.dtype).eps * float(exact.abs().max())
        self.beyond += allowed < error <= allowed + unit
        self.assertLessEqual(error, allowed + unit)
        if given[0].dtype == torch.float32:
            return  # no rung of it writes the LSE
        with_lse, lse = flash_ladder.attention(*given, return_lse=True, **call)
        if rung in ("39", "best"):  # 39 takes another reference, and best another rung
            self.assertLessEqual(worst(with_lse, exact), allowed + unit)
        else:
            self.assertTrue(torch.equal(with_lse, o))
        finite = exact_lse.isfinite()
        self.assertTrue(torch.equal(lse.isfinite(), finite))
        if finite.any():
            self.assertLess(worst(lse[finite], exact_lse[finite]), 1e-3)

    def takes(self, rung: str) -> bool:
        """Whether this card runs the rung."""
        try:
            flash_ladder.attention(*inputs(1, 1, (128, 128), 128, torch.float16), rung=rung)
        except flash_ladder.Refused:
            return False
        return True

    def test_shapes_of_flash_attention(self) -> None:
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        rungs = [rung for rung in ANY_LENGTH if self.takes(rung)]
        cases = 0
        for seq, dim, causal in itertools.product(LENGTHS, (64, 128), (False, True)):
            given = inputs(9 if seq[1] <= 2048 else 2, HEADS, seq, dim, torch.float16)
            for rung in rungs:
                with self.subTest(seq=seq, dim=dim, causal=causal, rung=rung):
                    self.compare(rung, given, causal)
                    cases += 1
        print(f"{cases} cases: {len(LENGTHS)} shapes, d 64 and 128, masks, {', '.join(rungs)};")
        print(f"{cases - self.beyond} by their criterion, {self.beyond} by one unit more")

    def test_views_in_both_types_with_windows(self) -> None:
        """Rows of [batch, seq, heads, dim]."""
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        rungs = [rung for rung in WINDOWED if self.takes(rung)]
        cases, windows = 0, (NO_WINDOW, (50, 10), (200, 0))
        for seq, dim, causal, dtype, window in itertools.product(
            LENGTHS, (64, 128), (False, True), (torch.bfloat16, torch.float16), windows
        ):
            given = inputs(9 if seq[1] <= 2048 else 2, HEADS, seq, dim, dtype)
            views = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in given]
            for rung in rungs:
                with self.subTest(seq=seq, dim=dim, causal=causal, dtype=dtype, window=window):
                    self.compare(rung, views, causal, window)
                    cases += 1
        print(
            f"{cases} cases in views and windows, {', '.join(rungs)}; {self.beyond} by a unit more"
        )

    def test_float32(self) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        for seq, dim, causal in itertools.product(
            [(256, 512), (512, 512)], (32, 64), (False, True)
        ):
            with self.subTest(seq=seq, dim=dim, causal=causal):
                self.compare("best", inputs(2, HEADS, seq, dim, torch.float32), causal)

    def test_every_other_rung(self) -> None:
        for rung in WHOLE_TILES:
            with self.subTest(rung=rung.id):
                dtype = torch.float16 if rung.dtype == "float16" else torch.float32
                given = inputs(2, 3, (768, 1536), 64, dtype)
                try:
                    o = flash_ladder.attention(*given, rung=rung.id)
                except flash_ladder.Refused as refusal:
                    self.assertIn("compute capability", str(refusal))
                    continue
                expected = formula(*(each.float() for each in given), False)[0]
                self.assertLess(worst(o, expected), 2e-3)


def differentiated(attention: Any, given: list[Any], d_o: Any) -> tuple[Any, ...]:
    """The gradients of q, k and v."""
    leaves = [each.detach().requires_grad_() for each in given]
    return torch.autograd.grad(attention(*leaves), leaves, d_o)


def rms(one: Any, other: Any) -> float:
    return float((one.double() - other.double()).square().mean().sqrt())


@functools.cache
def flash_attention_3() -> bool:
    """Whether its operators are there, from its own package or from xformers."""
    for module in ("flash_attn_3._C", "xformers.flash_attn_3._C"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
            return True
    return False


def gradients_of_3(q: Any, k: Any, v: Any, d_o: Any, causal: bool) -> list[Any]:
    """The gradients of q, k and v by FlashAttention-3, after its own forward pass."""
    options = {"softmax_scale": q.shape[3] ** -0.5, "is_causal": causal}
    q, k, v, d_o = (each.transpose(1, 2) for each in (q, k, v, d_o))
    o, lse, *_ = torch.ops.flash_attn_3.fwd(q, k, v, **options)
    found = torch.ops.flash_attn_3.bwd(d_o, q, k, v, o, lse, **options)
    return [each.transpose(1, 2) for each in found[:3]]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class GradientTest(unittest.TestCase):
    """The criterion of FlashAttention-3 (hopper/test_flash_attn.py): the error is at most twice
    that of PyTorch's formula in the same format, plus twice what adding and subtracting 0.3 in that
    format changes in the exact gradient. With Q times 4 one key dominates many rows."""

    def test_shapes_of_flash_attention(self) -> None:
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        cases, ratios = 0, collections.defaultdict(list)
        for seq, dim, causal, dtype, kv_heads, spread in itertools.product(
            LENGTHS, (64, 128), (False, True), (torch.float16, torch.bfloat16), (1, HEADS), (1, 4)
        ):
            # PyTorch's mask is another one where lengths differ.
            compared = seq[0] == seq[1] >= 256
            if spread > 1 and not compared:
                continue
            q, *kv = inputs(4 if seq[1] <= 2048 else 1, HEADS, seq, dim, dtype)
            given = [q * spread, *(each[:, :kv_heads].contiguous() for each in kv)]
            d_o = torch.randn_like(q)
            seen = torch.ones(seq, dtype=torch.bool, device="cuda")
            seen = seen.tril(seq[1] - seq[0]) if causal else seen

            def plain(q: Any, k: Any, v: Any, seen: Any = seen) -> Any:
                k, v = (each.expand(-1, q.shape[1], -1, -1) for each in (k, v))
                scores = (q * q.shape[3] ** -0.5) @ k.mT
                scores = scores.masked_fill(~seen, torch.finfo(q.dtype).min)
                return (torch.softmax(scores, dim=-1) * seen.any(-1, keepdim=True)) @ v

            def fused(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
                k, v = (each.expand(-1, q.shape[1], -1, -1) for each in (k, v))
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            def ours(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
                return flash_ladder.attention(q, k, v, causal=causal)

            exact = differentiated(plain, [each.double() for each in given], d_o.double())
            rounded = differentiated(plain, given, d_o)
            found = differentiated(ours, given, d_o)
            of = {"seq": seq, "dim": dim, "causal": causal, "dtype": dtype, "kv_heads": kv_heads}
            with self.subTest(**of, spread=spread):
                for name, one, other, reference in zip("qkv", found, rounded, exact, strict=True):
                    if seq[1] == 1 and name != "v":
                        continue  # the formula's error is 0 in every row
                    near = reference.to(dtype)
                    allowed = 2 * worst(other, reference) + 2 * worst(near + 0.3 - 0.3, near)
                    self.assertLessEqual(worst(one, reference), allowed, f"d_{name}")
                cases += 1
            if not compared:
                continue
            peers = {"PyTorch's fused attention": differentiated(fused, given, d_o)}
            if flash_attention_3():
                peers["FlashAttention-3"] = gradients_of_3(*given, d_o, causal)
            for peer, theirs in peers.items():
                for name, one, other, reference in zip("qkv", found, theirs, exact, strict=True):
                    ratio = rms(one, reference) / rms(other, reference)
                    ratios[f"d_{name}, Q times {spread}, by {peer}"].append(ratio)
                    self.assertLess(ratio, MOST_RMS)
        print(f"gradients: {cases} cases; RMS errors by those of a peer:")
        for what, all_of in ratios.items():
            average = sum(all_of) / len(all_of)
            print(f"  {what}: {min(all_of):.3f} to {max(all_of):.3f}, mean {average:.3f}")

    def test_a_captured_graph_is_replayed(self) -> None:
        given = inputs(1, 2, (256, 256), 128, torch.bfloat16)
        d_o = torch.randn_like(given[0])
        leaves = [each.detach().requires_grad_() for each in given]

        def step() -> Any:
            return torch.autograd.grad(flash_ladder.attention(*leaves, causal=True), leaves, d_o)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step()
        for each in leaves:
            each.data.copy_(torch.randn_like(each))
        graph.replay()
        for one, other in zip(found, step(), strict=True):
            self.assertLess(worst(one, other), 1e-2 * float(other.abs().max()))

    def test_deterministic(self) -> None:
        """1000 calls with the same bits, where two heads of K and V serve six query heads."""
        q, *kv = inputs(2, HEADS, (1500, 1500), 128, torch.bfloat16)
        given = [q, *(each[:, :2].contiguous() for each in kv)]

        def found() -> Any:
            return differentiated(
                functools.partial(flash_ladder.attention, causal=True), given, given[0]
            )

        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        first = found()
        for _ in range(1000):
            for one, other in zip(first, found(), strict=True):
                self.assertTrue(torch.equal(one, other))

    def test_packed_views(self) -> None:
        """Sequences one behind another, of a model's views, beside each of them alone; both orders
        of additions."""
        lengths, heads, kv_heads = (1500, 1, 0, 700, 64), 8, 2
        ends = torch.tensor((0, *lengths), device="cuda").cumsum(0).int()
        for dim, dtype in itertools.product((64, 128), (torch.float16, torch.bfloat16)):
            rows = torch.randn(sum(lengths), heads + 2 * kv_heads, dim, device="cuda", dtype=dtype)
            q, k, v = rows.split([heads, kv_heads, kv_heads], dim=1)
            d_o = torch.randn_like(q)
            packed = functools.partial(
                flash_ladder.attention, causal=True, cu_seqlens_q=ends, cu_seqlens_k=ends
            )
            alone = functools.partial(flash_ladder.attention, causal=True)
            for deterministic in (False, True):
                torch.use_deterministic_algorithms(deterministic)
                self.addCleanup(torch.use_deterministic_algorithms, False)
                found = differentiated(packed, [q, k, v], d_o)
                for start, length in zip(ends.tolist(), lengths, strict=False):
                    if length == 0:
                        continue
                    own = [
                        each[start : start + length].transpose(0, 1)[None]
                        for each in (q, k, v, d_o)
                    ]
                    expected = differentiated(alone, own[:3], own[3])
                    for one, other in zip(found, expected, strict=True):
                        largest = float(one.abs().max())  # of a sequence of one row dQ is nearly 0
                        one = one[start : start + length].transpose(0, 1)[None]
                        self.assertLess(worst(one, other), 1e-2 * largest)

    def test_compiled(self) -> None:
        given = inputs(1, 2, (300, 300), 64, torch.float16)
        d_o = torch.randn_like(given[0])

        def layer(q: Any, k: Any, v: Any) -> Any:
            return flash_ladder.attention(q * 2, k, v, causal=True)

        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        found, expected = (differentiated(each, given, d_o) for each in (compiled, layer))
        self.assertTrue(torch.equal(found[1], expected[1]) and torch.equal(found[2], expected[2]))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class CacheTest(unittest.TestCase):
    """New queries against a cache, beside PyTorch's formula on each batch entry's own keys."""

    LENGTHS = (4000, 0, 17, 2048)

    def setUp(self) -> None:
        torch.manual_seed(1)
        self.q = torch.randn(4, 32, 1, 128, device="cuda").half()
        self.pages = torch.randn(2, 4 * 256 + 3, 8, 16, 128, device="cuda").half()
        self.table = torch.randperm(4 * 256, device="cuda").view(4, 256).to(torch.int32)
        self.k, self.v = (self.gathered(each) for each in self.pages)

    def gathered(self, pages: Any) -> Any:
        return pages[self.table.long()].transpose(1, 2).reshape(4, 8, 4096, -1).contiguous()

    def check(self, o: Any, k: Any, v: Any, tolerance: float = 2e-3) -> None:
        for entry, length in enumerate(self.LENGTHS):
            with self.subTest(entry=entry):
                if length == 0:
                    self.assertFalse(o[entry].any())
                    continue
                keys, values = (x[entry, :, :length].repeat_interleave(4, 0) for x in (k, v))
                given = (x[None].float() for x in (self.q[entry], keys, values))
                self.assertLess(worst(o[entry], formula(*given, False)[0][0]), tolerance)

    def attention(self, *given: Any, **options: Any) -> Any:
        return flash_ladder.attention(self.q, *given, lengths=self.LENGTHS, **options)

    def test_lengths_and_pages(self) -> None:
        for rung in ("46", "47", "50", "best"):
            with self.subTest(rung=rung):
                self.check(self.attention(self.k, self.v, rung=rung), self.k, self.v)
        for rung in ("47", "50", "best"):
            with self.subTest(rung=rung):
                o = self.attention(*self.pages, rung=rung, page_table=self.table)
                self.check(o, self.k, self.v)

    def test_pages_as_vllm_has_them(self) -> None:
        rows, heads, dim = self.q.shape[0], self.q.shape[1], self.q.shape[3]
        o = flash_attn_varlen_func(
            self.q.view(rows, heads, dim),
            *(each.transpose(1, 2).contiguous() for each in self.pages),
            max_seqlen_q=1,
            cu_seqlens_q=torch.arange(rows + 1, device="cuda", dtype=torch.int32),
            max_seqlen_k=4096,
            seqused_k=torch.tensor(self.LENGTHS, device="cuda", dtype=torch.int32),
            block_table=self.table,
            causal=True,
        )
        self.check(o.unsqueeze(2), self.k, self.v)

    def test_float8(self) -> None:
        k, v = (each.to(torch.float8_e4m3fn) for each in self.pages)
        scales = torch.rand(2, 4, 8, device="cuda") + 0.5
        o = self.attention(k, v, page_table=self.table, kv_scales=scales)
        wide = [
            self.gathered(each.half()).float() * scale[:, :, None, None]
            for each, scale in zip((k, v), scales, strict=True)
        ]
        self.check(o, *wide)

    def test_nothing_waits_for_the_lengths(self) -> None:
        self.attention(self.k, self.v)
        torch.cuda.synchronize()
        done = torch.cuda.Event()
        torch.cuda._sleep(2_000_000_000)
        self.attention(self.k, self.v)
        done.record()
        self.assertFalse(done.query())
        torch.cuda.synchronize()

    def test_a_graph_whose_cache_grows(self) -> None:
        """What may change between replays: values of all tensors, lengths and pages among them."""
        lengths = torch.ones(4, device="cuda", dtype=torch.int32)
        table = self.table.clone()
        for rung in ("47", "50", "best"):
            with self.subTest(rung=rung):
                call = {"rung": rung, "lengths": lengths, "page_table": table}
                flash_ladder.attention(self.q, *self.pages, **call)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    o = flash_ladder.attention(self.q, *self.pages, **call)
                for shift in range(3):
                    now = self.LENGTHS[shift:] + self.LENGTHS[:shift]
                    lengths.copy_(torch.tensor(now))
                    table.copy_(self.table.roll(shift, 0))
                    graph.replay()
                    given = {"page_table": table, "lengths": now, "rung": rung}
                    expected = flash_ladder.attention(self.q, *self.pages, **given)
                    self.assertLess(worst(o, expected), 1e-3)

    def test_what_is_refused(self) -> None:
        for options, message in [
            ({"lengths": torch.ones(4, device="cuda")}, "lengths has dtype float32 and shape"),
            (
                {"lengths": torch.ones(3, device="cuda", dtype=torch.int32)},
                "int32 of shape .4,. on",
            ),
            ({"lengths": [4097, 1, 1, 1]}, "length 4097 is not between 0 and seq_kv 4096"),
            ({"lengths": [0, 0, 0, 0]}, "all lengths are 0"),
            ({"kv_scales": torch.ones(2, 4, 8)}, "kv_scales is on cpu and q on cuda:0"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(flash_ladder.Refused, message):
                flash_ladder.attention(self.q, self.k, self.v, **options)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class ViewTest(unittest.TestCase):
    """q, k and v as slices of one tensor [batch, seq, 3, heads, dim], which is how models have
    them."""

    def test_bfloat16_windows_and_sinks(self) -> None:
        torch.manual_seed(2)
        behind = torch.arange(500, device="cuda") - torch.arange(500, device="cuda")[:, None]
        sinks = torch.randn(6, device="cuda")
        for dtype, dim, window in itertools.product(
            (torch.bfloat16, torch.float16), (64, 128), ((-1, -1), (100, 30), (100, 0))
        ):
            fused = torch.randn(2, 500, 3, 6, dim, device="cuda", dtype=dtype)
            given = [each.transpose(1, 2) for each in fused.unbind(2)]
            left, right = (each if each >= 0 else 500 for each in window)
            for some in (sinks, None):
                with self.subTest(dtype=dtype, dim=dim, window=window, sinks=some is not None):
                    o = flash_ladder.attention(*given, window=window, sinks=some)
                    self.assertTrue(o.transpose(1, 2).is_contiguous())
                    q, k, v = (each.double() for each in given)
                    scores = q @ k.mT * dim**-0.5
                    scores.masked_fill_((behind < -left) | (behind > right), -torch.inf)
                    none = torch.full_like(sinks, -torch.inf)
                    sink = (none if some is None else some).double().view(1, 6, 1, 1)
                    sink = sink.expand(2, 6, 500, 1)
                    weights = torch.softmax(torch.cat([scores, sink], dim=3), dim=3)
                    tolerance = 16e-3 if dtype == torch.bfloat16 else 2e-3
                    self.assertLess(worst(o, weights[..., :-1] @ v), tolerance)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class TransformersTest(unittest.TestCase):
    """Random models of Hugging Face transformers in bfloat16: a prompt, then 100 new tokens."""

    def generated(self, model: Any, tokens: Any) -> tuple[Any, Any]:
        """(logits, tokens): greedily, or along given tokens, one at a time with a cache."""
        along, logits, cache = tokens.shape[1] > PROMPT, [], None
        now = tokens[:, :PROMPT]
        for step in range(NEW_TOKENS):
            result = model(now, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            logits.append(result.logits[:, -1].float())
            end = PROMPT + step
            now = tokens[:, end : end + 1] if along else logits[-1].argmax(-1, keepdim=True)
            if not along:
                tokens = torch.cat([tokens, now], dim=1)
        return torch.stack(logits), tokens

    def test_models(self) -> None:
        try:
            import transformers
        except ImportError:
            self.skipTest("transformers is not installed")
        import flash_ladder.transformers as ours

        for name, sizes in MODELS.items():
            with self.subTest(model=name), torch.no_grad():
                torch.manual_seed(3)
                config = getattr(transformers, f"{name}Config")(**MODEL_SIZES | sizes)
                model = transformers.AutoModelForCausalLM.from_config(
                    config, attn_implementation="eager"
                )
                for parameter, values in model.named_parameters():
                    if parameter.endswith("sinks"):
                        torch.nn.init.normal_(values)
                model = model.eval().cuda()
                prompt = torch.randint(1000, (2, PROMPT), device="cuda")
                model.bfloat16().set_attn_implementation(ours.register())
                with counted_allocations() as excess:
                    logits, tokens = self.generated(model, prompt)
                self.assertEqual(max(excess), 0, "copies")
                model.set_attn_implementation("eager" if name == "GptOss" else "sdpa")
                own, _ = self.generated(model, tokens)
                model.float().set_attn_implementation("eager")
                exact, _ = self.generated(model, tokens)
                error, allowed = ((x - exact).square().mean().sqrt() for x in (logits, own))
                print(f"{name}: RMS error {error:.5f}, of PyTorch's own attention {allowed:.5f}")
                self.assertLess(float(error), 1.05 * float(allowed))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class UseTest(unittest.TestCase):
    def test_a_model_with_its_attention_swapped(self) -> None:
        from model import swapped

        sizes = {"layers": 4, "width": 512, "heads": 4, "seq": 500, "words": 1000}
        logits, ours, exact = swapped(
            lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True
            ),
            lambda q, k, v: flash_ladder.attention(q, k, v, causal=True),  # the one line
            "cuda",
            **sizes,
        )
        self.assertFalse(torch.equal(ours, logits))
        self.assertLessEqual(worst(ours, exact), 2 * worst(logits, exact))

    def test_compile_keeps_one_graph(self) -> None:
        def layer(q: Any, k: Any, v: Any) -> Any:
            return flash_ladder.attention(q * 2, k, v, causal=True) + 1

        for mode in ("default", "reduce-overhead"):
            compiled = torch.compile(layer, fullgraph=True, mode=mode)
            for seq in (512, 500):
                given = inputs(1, 4, (seq, seq), 128, torch.float16)
                with self.subTest(mode=mode, seq=seq):
                    for _ in range(3):  # the second records a graph, the third replays it
                        o = compiled(*given).clone()
                    self.assertLess(worst(o, layer(*given)), 2e-3)

    def test_graphs_replay_on_new_values(self) -> None:
        given = inputs(1, 4, (500, 500), 128, torch.float16)
        flash_ladder.attention(*given, causal=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            o = flash_ladder.attention(*given, causal=True)
        for _ in range(3):
            given[0].mul_(-0.5)
            graph.replay()
            self.assertTrue(torch.equal(o, flash_ladder.attention(*given, causal=True)))

    def test_streams_run_beside_each_other(self) -> None:
        """Every stream has its own counter and its own order."""
        given = inputs(2, 8, (2048, 2048), 128, torch.float16)
        expected = flash_ladder.attention(*given, causal=True)
        streams = [torch.cuda.Stream() for _ in range(4)]
        torch.cuda.synchronize()
        results = []
        for _ in range(8):
            for stream in streams:
                with torch.cuda.stream(stream):
                    results.append(flash_ladder.attention(*given, causal=True))
        torch.cuda.synchronize()
        self.assertTrue(all(torch.equal(each, expected) for each in results))

    def test_nothing_waits_for_the_gpu(self) -> None:
        given = inputs(1, 4, (512, 512), 128, torch.float16)
        flash_ladder.attention(*given)
        torch.cuda.synchronize()
        done = torch.cuda.Event()
        torch.cuda._sleep(2_000_000_000)  # clock cycles: about a second
        flash_ladder.attention(*given)
        done.record()
        self.assertFalse(done.query())
        torch.cuda.synchronize()

    def test_what_is_refused(self) -> None:
        q, k, v = inputs(1, 2, (128, 128), 64, torch.float16)
        for arguments, message in [
            ((q.mT.contiguous().mT, k, v), "q has strides"),
            ((q, k[:, :1].expand_as(k), v), "k has strides"),
            ((q, k.cpu(), v), "k is on cpu and q on cuda:0"),
            ((q.bfloat16(), k.bfloat16(), v), "bfloat16"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(flash_ladder.Refused, message):
                flash_ladder.attention(*arguments)

    def test_overhead_of_a_call(self) -> None:
        """What Python adds to the launch, on the host, behind work that keeps the GPU busy."""
        given = inputs(1, 2, (128, 128), 64, torch.float16)
        out = torch.empty_like(given[0])
        sizes, kinds = tuple(x.shape for x in given), tuple(x.dtype for x in given)
        plan = _torch.plan_for(sizes, kinds, 0, "06", False, None, False)
        addresses = (*(x.data_ptr() for x in given), out.data_ptr())
        tensors = _native.CTensors(*addresses)
        stream = torch.cuda.current_stream().cuda_stream

        def launch() -> None:
            plan.enqueue(plan.handle, tensors, None, stream, None, 0)

        times = {
            "the whole call": host_us(lambda: flash_ladder.attention(*given, rung="06")),
            "the library's launch alone": host_us(launch),
            "PyTorch's own attention": host_us(
                lambda: torch.nn.functional.scaled_dot_product_attention(*given)
            ),
        }
        print(", ".join(f"{what} {time:.1f} us" for what, time in times.items()))
        added = times["the whole call"] - times["the library's launch alone"]
        # A slow host is slow in both: two added 19 and 20 us, where PyTorch's call took 29 and 19.
        self.assertLess(added, 1.5 * times["PyTorch's own attention"])


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A problem with few new queries, as a model may pose it."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    dtype: str
    ragged: bool

    @classmethod
    def draw(cls, dice: random.Random) -> Drawn:
        """One whose K and V take 0.5 MB to 1 GB."""
        while True:
            kv_heads, group = dice.choice([1, 2, 4, 8, 16, 32]), dice.choice([1, 2, 4, 5, 7, 8])
            drawn = cls(
                batch=dice.choice([1, 1, 1, 2, 4, 8, 16, 32, 64]),
                heads=kv_heads * group,
                kv_heads=kv_heads,
                queries=dice.choice([1, 1, 1, 1, 2, 4, 8]),
                keys=int(2 ** dice.uniform(8, 16)),
                dim=dice.choice([64, 128, 128]),
                dtype=dice.choice(["float16", "bfloat16"]),
                ragged=dice.random() < 0.2,
            )
            if 2**19 <= drawn.bytes() <= 2**30:
                return drawn

    def bytes(self) -> int:
        return 4 * self.batch * self.kv_heads * self.keys * self.dim


@unittest.skipIf(WHY_NOT, WHY_NOT)
class BestTest(unittest.TestCase):
    """The rung that "best" is, beside all that take a problem, on caches that are not in the L2.
    Where another one is faster, there are more rounds: at times all launches of a second take up to
    twice as long. Of two rungs that are equally fast, one may still be slower by 3 to 7 % in one
    process and not in the next: two problems of the sixty may exceed the margin."""

    PROBLEMS, ROUNDS, MOST_ROUNDS, MARGIN = 60, 5, 15, 1.03
    EXCEPTIONS, MOST = 2, 1.1
    L2_BYTES = 64 << 20
    LAUNCHES = 60  # at least, in a window

    def setUp(self) -> None:
        self.dice = random.Random(2026)
        self.hold = 8_000_000  # clocks
        self.memory = torch.randn(1 << 30, device="cuda", dtype=torch.float16)  # 2 GB

    def calls(self, drawn: Drawn) -> tuple[dict[str, Callable[[int], Any]], str]:
        """For each rung a call with the n-th copy of K and V; and the best."""
        dtype = getattr(torch, drawn.dtype)
        shape = (drawn.batch, drawn.kv_heads, drawn.keys, drawn.dim)
        size, pool = drawn.bytes() // 4, self.memory.to(dtype)
        copies = min(pool.numel() // (2 * size), 2 * self.L2_BYTES // drawn.bytes() + 2)
        caches = [each.view(2, *shape) for each in pool[: copies * 2 * size].chunk(copies)]
        q = torch.randn(drawn.batch, drawn.heads, drawn.queries, drawn.dim, device="cuda").to(dtype)
        # In the GPU's memory: the time of a copy from the host's would hide that of the rungs.
        lengths = torch.tensor([self.dice.randint(1, drawn.keys) for _ in range(drawn.batch)])
        options = {"lengths": lengths.to("cuda", torch.int32) if drawn.ragged else None}

        def call(rung: str, n: int) -> Any:
            k, v = caches[n % copies]
            return flash_ladder.attention(q, k, v, rung=rung, causal=drawn.queries > 1, **options)

        found = {}
        for rung in (r.id for r in flash_ladder.rungs() if "40" <= r.id < "60"):
            with contextlib.suppress(flash_ladder.Refused):
                call(rung, 0)
                found[rung] = functools.partial(call, rung)
        _torch.plan_for.cache_clear()
        with unittest.mock.patch.object(_torch, "Plan", wraps=_torch.Plan) as plan:
            call("best", 0)
        return found, plan.call_args.args[1]

    def window_us(self, call: Callable[[int], Any]) -> float:
        """Microseconds of a launch among launches that are queued before the first begins."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        queued = False
        while not queued and self.hold < 1 << 32:
            torch.cuda._sleep(self.hold)
            begin.record()
            for n in range(self.LAUNCHES):
                call(n)
            end.record()
            queued = not begin.query()
            self.hold *= 1 if queued else 2  # the host was slower
            torch.cuda.synchronize()
        self.assertTrue(queued)
        return begin.elapsed_time(end) * 1000 / self.LAUNCHES

    def test_best_is_the_best(self) -> None:
        ratios = []
        for number in range(self.PROBLEMS):
            drawn = Drawn.draw(self.dice)
            calls, best = self.calls(drawn)
            times = dict.fromkeys(calls, math.inf)
            for done in range(self.MOST_ROUNDS):
                if done >= self.ROUNDS and times[best] < self.MARGIN * min(times.values()):
                    break
                for rung, call in calls.items():
                    times[rung] = min(times[rung], self.window_us(call))
            fastest = min(times, key=times.__getitem__)
            ratios.append(times[best] / times[fastest])
            print(f"{number:2} {ratios[-1]:.3f} {drawn}: {best}; {fastest}")
            print("  ", " ".join(f"{rung} {us:.2f}" for rung, us in sorted(times.items())))
            with self.subTest(drawn=drawn):
                self.assertLess(ratios[-1], self.MOST)
        slower = sum(each >= self.MARGIN for each in ratios)
        print(f"{len(ratios) - slower} of {len(ratios)}, {max(ratios):.3f}")
        self.assertLessEqual(slower, self.EXCEPTIONS)


def host_us(call: Any) -> float:
    """Microseconds of a call on the host, median of 20 rounds of 200."""
    calls, times = 200, []
    for _ in range(100):
        call()
    for _ in range(20):
        torch.cuda.synchronize()
        torch.cuda._sleep(50_000_000)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return sorted(times)[len(times) // 2]


@contextlib.contextmanager
def counted_allocations() -> Iterator[list[int]]:
    """How many tensors each call of flash_ladder.attention allocates beyond O and, with a single
    query, beyond what it allocates for contiguous tensors: copies of q, k or v."""
    original, excess = flash_ladder.attention, []

    def allocated(given: Sequence[Any], options: Any) -> tuple[Any, int]:
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        o = original(*given, **options)
        return o, torch.cuda.memory_stats()["allocation.all.allocated"] - before

    def counting(*given: Any, **options: Any) -> Any:
        o, taken = allocated(given, options)
        allowed = 1
        if o.shape[2] == 1:
            contiguous = [each.clone(memory_format=torch.contiguous_format) for each in given]
            _, allowed = allocated(contiguous, options)
        excess.append(taken - allowed)
        return o

    flash_ladder.attention = counting
    try:
        yield excess
    finally:
        flash_ladder.attention = original


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=2).result.wasSuccessful())
