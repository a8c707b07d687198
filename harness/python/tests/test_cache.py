# SPDX-License-Identifier: MIT
"""flash_ladder.attention against a cache: lengths, pages, float8."""

from __future__ import annotations

from typing import Any

import flash_ladder
import numpy as np
import pytest
from flash_ladder.vllm import flash_attn_varlen_func

HALF = 2e-3
E4M3 = 0.04  # what three bits of mantissa make of N(0, 1)


def bits_of_e4m3(values: Any) -> Any:
    """The nearest e4m3 of each value, from the table of all of them."""
    patterns = np.arange(127, dtype=np.uint8)
    exponents, mantissas = patterns >> 3, patterns & 7
    table = np.where(
        exponents == 0, mantissas * 2.0**-9, (8 + mantissas) * 2.0 ** (exponents - 10.0)
    )
    nearest = np.abs(np.abs(values)[..., None] - table).argmin(axis=-1).astype(np.uint8)
    return nearest | np.where(values < 0, 128, 0).astype(np.uint8)


class Cache:
    """A batch of three entries whose keys are in pages, in a table, and contiguous."""

    LENGTHS = (70, 0, 33)

    def __init__(self, page: int = 16, width: int = 5, queries: int = 1) -> None:
        random = np.random.default_rng(5)
        self.q = random.normal(size=(3, 8, queries, 128)).astype(np.float16)
        self.pages = random.normal(size=(2, 3 * width + 2, 2, page, 128)).astype(np.float16)
        self.table = random.permutation(3 * width).astype(np.int32).reshape(3, width)
        self.k, self.v = (
            each[self.table].swapaxes(1, 2).reshape(3, 2, width * page, 128) for each in self.pages
        )

    def expected(self, k: Any = None, v: Any = None, lengths: Any = LENGTHS) -> Any:
        k, v = (self.k if k is None else k), (self.v if v is None else v)
        o = np.zeros(self.q.shape)
        for b, length in enumerate(lengths):
            if length:
                keys, values = (
                    each[b, :, :length].astype(np.float64).repeat(4, 0) for each in (k, v)
                )
                scores = self.q[b].astype(np.float64) @ keys.swapaxes(1, 2) / 128**0.5
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                o[b] = weights / weights.sum(-1, keepdims=True) @ values
        return o


@pytest.mark.parametrize("rung", ["46", "47", "48", "50", "best"])
def test_lengths(rung: str) -> None:
    cache = Cache()
    given = (cache.q, cache.k, cache.v)
    o, lse = flash_ladder.attention(*given, rung=rung, lengths=[70, 0, 33], return_lse=True)
    assert abs(o - cache.expected()).max() < HALF
    assert (o[1] == 0).all() and (lse[1] == -np.inf).all()
    whole = flash_ladder.attention(*given, rung=rung)
    assert abs(whole - cache.expected(lengths=(80, 80, 80))).max() < HALF


def test_a_length_leaves_most_thread_blocks_without_keys() -> None:
    """Fewer tiles than the card has thread blocks."""
    random = np.random.default_rng(2)
    q, k, v = (random.normal(size=(2, 8, n, 64)).astype(np.float16) for n in (1, 4096, 4096))
    for lengths in ([1, 0], [0, 1], [1, 4096]):
        o = flash_ladder.attention(q, k, v, rung="46", lengths=lengths)
        for b, length in enumerate(lengths):
            if length == 1:
                assert abs(o[b] - v[b, :, :1]).max() < HALF
            elif length == 0:
                assert (o[b] == 0).all()
            else:
                alone = flash_ladder.attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], rung="46")
                assert abs(o[b] - alone[0]).max() < HALF


@pytest.mark.parametrize("rung", ["47", "48", "49", "best"])
@pytest.mark.parametrize("page", [16, 32])
def test_pages(rung: str, page: int) -> None:
    cache = Cache(page)
    o = flash_ladder.attention(cache.q, *cache.pages, rung=rung, page_table=cache.table)
    assert abs(o - cache.expected(lengths=[5 * page] * 3)).max() < HALF
    table = cache.table.copy()
    for entry, length in enumerate(cache.LENGTHS):
        table[entry, -(-length // page) :] = -1  # what has no key is not looked at
    options = {"page_table": table, "lengths": np.array(cache.LENGTHS)}
    o = flash_ladder.attention(cache.q, *cache.pages, rung=rung, **options)
    assert abs(o - cache.expected()).max() < HALF


def test_few_queries_with_the_mask() -> None:
    cache = Cache(queries=2)
    options = {"lengths": [70, 9, 33], "causal": True}
    o = flash_ladder.attention(cache.q, cache.k, cache.v, rung="48", **options)
    both = cache.expected(lengths=[70, 9, 33])
    assert abs(o[:, :, 1] - both[:, :, 1]).max() < HALF
    earlier = cache.expected(lengths=[69, 8, 32])
    assert abs(o[:, :, 0] - earlier[:, :, 0]).max() < HALF
    assert abs(both - earlier)[:, :, 0].max() > 5 * HALF


@pytest.mark.parametrize("rung", ["51", "best"])
def test_float8_with_scales(rung: str) -> None:
    cache = Cache()
    scales = np.random.default_rng(3).uniform(0.5, 2, size=(2, 3, 2)).astype(np.float32)
    bits = [bits_of_e4m3(each) for each in (cache.k, cache.v)]
    k, v = (
        each.astype(np.float64) * scale[:, :, None, None]
        for each, scale in zip((cache.k, cache.v), scales, strict=True)
    )
    options = {"rung": rung, "kv_scales": scales, "lengths": cache.LENGTHS}
    o = flash_ladder.attention(cache.q, *bits, **options)
    error = abs(o - cache.expected(k, v))
    assert error.max() < 5 * E4M3 and error.mean() < E4M3
    pages = [bits_of_e4m3(each) for each in cache.pages]
    paged = flash_ladder.attention(cache.q, *pages, page_table=cache.table, **options)
    assert abs(paged - o).max() < HALF


def case(**changes: Any) -> dict[str, Any]:
    cache = Cache()
    return {"q": cache.q, "k": cache.k, "v": cache.v} | changes


def paged(**changes: Any) -> dict[str, Any]:
    cache = Cache()
    k, v = cache.pages
    return {"q": cache.q, "k": k, "v": v, "page_table": cache.table} | changes


def float8(**changes: Any) -> dict[str, Any]:
    k = np.zeros((3, 2, 80, 128), np.uint8)
    return {"q": Cache().q, "k": k, "v": k, "kv_scales": np.ones((2, 3, 2))} | changes


def with_scale(scale: float) -> Any:
    scales = np.ones((2, 3, 2), np.float32)
    scales[1, 2, 0] = scale
    return scales


def with_page(entry: int, column: int, page: int) -> Any:
    table = Cache().table
    table[entry, column] = page
    return table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (case(lengths=[81, 0, 1]), "length 81 is not between 0 and seq_kv 80"),
        (case(lengths=[-1, 0, 1]), "length -1 is not between 0 and seq_kv 80"),
        (case(lengths=[0, 0, 0]), "all lengths are 0; at least one must be above"),
        (case(lengths=[1, 2]), r"lengths has shape \(2,\); allowed: \(3,\)"),
        (case(lengths=7), r"lengths has shape \(\); allowed: one dimension"),
        (case(lengths=[1.5, 2, 3]), r"lengths is \[1.5, 2, 3\]; allowed: an array of int32"),
        (case(lengths=[1, 2, 2**40]), r"lengths is .*; allowed: an array of int32"),
        (case(lengths=["a", 2, 3]), r"lengths is \['a', 2, 3\]; allowed: an array of int32"),
        (case(lengths=[1, 2, 3], rung="33"), "33_tma_store takes no lengths"),
        (case(kv_scales=np.ones((2, 3, 2))), "k has dtype float16 and kv_scales are given"),
        (paged(page_table=with_page(1, 2, 17)), "page 17 of batch entry 1 is not one of the 17"),
        (paged(page_table=with_page(2, 0, -1)), "page -1 of batch entry 2 is not one of the 17"),
        (paged(page_table=Cache().table[:2]), r"page_table has shape \(2, 5\); allowed: \(3,"),
        (paged(page_table=Cache().table[:, :0]), r"page_table has shape \(3, 0\); allowed: \(3,"),
        (paged(page_table=Cache().table / 2), r"page_table is array.*; allowed: an array"),
        (paged(lengths=[81, 1, 1]), "length 81 is not between 0 and seq_kv 80"),
        (paged(rung="46"), "46_even takes no pages; 47, 48"),
        (paged(k=np.zeros((17, 3, 16, 128), np.float16)), "k has shape .* and v .*must be"),
        (float8(kv_scales=None), "k has dtype uint8 and kv_scales is None; allowed: kv_"),
        (float8(kv_scales=np.ones((2, 3))), r"kv_scales has shape \(2, 3\); allowed: \(2, 3, 2\)"),
        (float8(kv_scales=1j * np.ones((2, 3, 2))), "kv_scales is .*; allowed: an array"),
        *(
            (float8(kv_scales=with_scale(scale)),
             rf"kv_scales\[1, 2, 0\] is {text}.*; allowed: finite numbers above 0")
            for scale, text in ((0, "0"), (-1, "-1"), (np.nan, "nan"), (np.inf, "inf"))
        ),
        (float8(rung="50"), "50_one takes no K and V of float8_e4m3; 51 does"),
        (float8(v=Cache().v), "dtypes float16, uint8, float16; allowed: all three"),
        (float8(q=Cache().q.astype(np.float32)), "no rung takes this problem"),
        ({"q": np.zeros((1, 2, 17, 64), np.float16)} | {
            name: np.zeros((1, 2, 64, 64), np.float16) for name in "kv"
        } | {"lengths": [3]}, "no rung takes this problem"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(flash_ladder.Refused, match=message):
        flash_ladder.attention(**arguments)


def test_pages_that_are_no_power_of_two() -> None:
    q, pages = np.zeros((1, 2, 1, 64), np.float16), np.zeros((2, 2, 12, 64), np.float16)
    with pytest.raises(flash_ladder.Refused, match="a page of 12 keys is no power of two"):
        flash_ladder.attention(q, pages, pages, rung="47", page_table=[[0, 1]])


def test_nothing_is_taken_that_is_not_there() -> None:
    """Refused from the shapes alone: these arrays say that they are larger than their memory."""
    one = np.zeros(8, np.float16)
    q, k = (
        np.lib.stride_tricks.as_strided(
            one, (1024, 64, n, 128), (64 * n * 256, n * 256, 256, 2), writeable=False
        )
        for n in (1, 1 << 20)
    )
    with pytest.raises(
        flash_ladder.EnvironmentFailure, match=r"needs 70368\d+ bytes of host memory"
    ):
        flash_ladder.attention(q, k, k)


class Called:
    """A cache as vLLM has it: [pages, page, kv_heads, dim], and q with one row behind another."""

    def __init__(self, queries: int) -> None:
        self.cache = Cache(queries=queries)
        self.rows = 3 * queries
        self.q = self.cache.q.swapaxes(1, 2).reshape(self.rows, 8, 128).copy()
        self.k, self.v = (each.swapaxes(1, 2).copy() for each in self.cache.pages)
        self.options = {
            "max_seqlen_q": queries,
            "cu_seqlens_q": np.arange(0, self.rows + 1, queries, dtype=np.int32),
            "max_seqlen_k": 80,
            "block_table": self.cache.table,
            "seqused_k": np.array(Cache.LENGTHS, np.int32),
        }

    def __call__(self, **more: Any) -> Any:
        return flash_attn_varlen_func(self.q, self.k, self.v, **(self.options | more))


@pytest.mark.parametrize("queries", [1, 3])
def test_pages_as_vllm_has_them(queries: int) -> None:
    called = Called(queries)
    expected = called.cache.expected().swapaxes(1, 2).reshape(called.rows, 8, 128)
    o, lse = called(return_softmax_lse=True, dropout_p=0.0, fa_version=3, window_size=[-1, -1])
    assert abs(o - expected).max() < HALF
    assert lse.shape == (8, called.rows)
    assert (lse[:, queries : 2 * queries] == -np.inf).all() and np.isfinite(lse[:, :queries]).all()
    out = np.full_like(o, np.nan)
    assert called(out=out) is out and (out == o).all()


def test_a_window_and_sinks_as_vllm_gives_them() -> None:
    called = Called(1)
    sinks = np.linspace(-1, 1, 8, dtype=np.float32)
    o = called(causal=True, window_size=(15, 0), s_aux=sinks, softmax_scale=0.1)
    same = flash_ladder.attention(
        called.cache.q,
        *called.cache.pages,
        page_table=called.cache.table,
        lengths=list(Cache.LENGTHS),
        causal=True,
        window=(15, 0),
        sinks=sinks,
        scale=0.1,
    )
    assert (o == same.swapaxes(1, 2).reshape(called.rows, 8, 128)).all()


def test_a_packed_batch_as_vllm_gives_it() -> None:
    random = np.random.default_rng(7)
    q, k, v = (random.normal(size=(60, heads, 64)).astype(np.float16) for heads in (4, 2, 2))
    starts = np.array([0, 20, 20, 60], np.int32)
    o = flash_attn_varlen_func(q, k, v, 40, starts, cu_seqlens_k=starts, max_seqlen_k=40)
    assert (o == flash_ladder.attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts)).all()


def test_what_no_rung_computes_for_vllm() -> None:
    called = Called(2)
    uneven = {"max_seqlen_q": 3}
    for options, words in (
        ({"softcap": 30.0}, "softcap is 30.0; allowed: 0"),
        ({"k_descale": np.ones(2)}, "k_descale is a ndarray; allowed: None"),
        ({"block_table": None}, "seqused_k is given without block_table; allowed: cu_seqlens_k"),
        (uneven, "3 sequences of at most 3 queries have 6 rows; allowed with pages"),
    ):
        with pytest.raises(flash_ladder.Refused, match=words):
            called(**options)
    with pytest.raises(TypeError, match="has no argument 'nonsense'"):
        called(nonsense=1)
