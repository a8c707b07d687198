# SPDX-License-Identifier: MIT
"""flash_ladder.attention of numpy arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flash_ladder
import numpy as np
import ptxvm
import pytest

HALF, SINGLE = 2e-3, 2e-5  # several times what the formats' rounding makes of N(0, 1)


@pytest.mark.parametrize(
    ("rung", "shape", "seq_kv", "dtype", "causal"),
    [
        ("06", (1, 2, 128, 128), 192, "float16", False),
        ("batched", (2, 1, 128, 64), 128, "float16", False),
        ("9", (1, 2, 77, 128), 91, "float16", True),
        ("22", (1, 1, 128, 64), 128, "float16", False),
        ("33", (1, 2, 100, 128), 200, "float16", True),
        ("best", (1, 1, 130, 64), 70, "float16", True),  # the first 60 rows see no key
        ("best", (2, 2, 128, 32), 128, "float32", False),
        ("a0_standard", (1, 1, 128, 64), 128, "float32", True),  # has scratch memory
    ],
)
def test_it_is_attention(
    case: Any, rung: str, shape: Any, seq_kv: int, dtype: str, causal: bool
) -> None:
    given = case(shape, seq_kv, dtype)
    o = flash_ladder.attention(given.q, given.k, given.v, rung=rung, causal=causal)
    assert o.dtype == np.dtype(dtype) and o.shape == shape
    error = abs(o - given.expected(causal)[0]).max()
    assert error < (HALF if dtype == "float16" else SINGLE)


@pytest.mark.parametrize("rung", ["09", "33", "41", "best"])
def test_query_heads_share_keys(case: Any, rung: str) -> None:
    queries = 1 if rung == "41" else 70
    given = case((2, 6, queries, 128), 100)
    k, v = (np.ascontiguousarray(each[:, ::3]) for each in (given.k, given.v))
    o = flash_ladder.attention(given.q, k, v, rung=rung)
    each_own = flash_ladder.attention(given.q, k.repeat(3, axis=1), v.repeat(3, axis=1), rung=rung)
    assert abs(o - each_own).max() < (HALF if rung == "best" else 1e-6)
    assert abs(o - flash_ladder.attention(given.q, given.k, given.v, rung=rung)).max() > 0.1


def test_scale_and_log_sum_exp(case: Any) -> None:
    given = case((1, 2, 64, 128), 100)
    o, lse = flash_ladder.attention(given.q, given.k, given.v, scale=0.25, return_lse=True)
    expected, expected_lse = given.expected(scale=0.25)
    assert abs(o - expected).max() < HALF
    assert lse.dtype == np.float32 and abs(lse - expected_lse).max() < 1e-3
    other = flash_ladder.attention(given.q, given.k, given.v)
    assert abs(other - expected).max() > 0.1  # the scale is not ignored


def test_views_are_read_where_they_lie(case: Any) -> None:
    """As transformers have them: [batch, seq, heads, dim] transposed, and slices of one tensor."""
    given = case((2, 3, 70, 64))
    fused = np.stack([given.q, given.k, given.v], axis=2).transpose(0, 3, 2, 1, 4).copy()
    q, k, v = (fused[:, :, at].swapaxes(1, 2) for at in range(3))
    contiguous = flash_ladder.attention(given.q, given.k, given.v, rung="36")
    for rung in ("36", "best"):
        o = flash_ladder.attention(q, k, v, rung=rung)
        assert (o == contiguous).all() if rung == "36" else abs(o - contiguous).max() < HALF
        assert o.swapaxes(1, 2).flags.c_contiguous
    assert abs(contiguous - given.expected()[0]).max() < HALF
    with pytest.raises(flash_ladder.Refused, match="06_batched takes contiguous tensors only; 36,"):
        flash_ladder.attention(q, k, v, rung="06")
    one = [each[:1, :, :64] for each in (given.q, given.k, given.v)]
    one = [each[:, :1] for each in one]  # contiguous, with the strides of what it was cut from
    assert one[0].strides != one[0].copy().strides
    flash_ladder.attention(*one, rung="09")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [(5, 0), (7, 3), (-1, 9), (None, 0), (200, 200), [4, None]])
def test_windows_and_sinks(case: Any, window: Any, causal: bool) -> None:
    given = case((1, 2, 50, 64), 90)
    sinks = [1.5, -2.0]
    o, lse = flash_ladder.attention(
        given.q, given.k, given.v, window=window, causal=causal, sinks=sinks, return_lse=True
    )
    expected, expected_lse = given.expected(causal, window=window, sinks=sinks)
    assert abs(o - expected).max() < HALF and abs(lse - expected_lse).max() < 1e-3
    o = flash_ladder.attention(given.q, given.k, given.v, window=window, causal=causal)
    assert abs(o - given.expected(causal, window=window)[0]).max() < HALF


def test_a_window_of_all_keys_is_none(case: Any) -> None:
    """So that every rung takes it; so does a window without keys behind, which is the mask."""
    given = case((1, 1, 64, 128), 96)
    for window, causal in (((95, 63), False), ((None, None), False), ((-1, 0), True)):
        o = flash_ladder.attention(given.q, given.k, given.v, rung="09", window=window)
        same = flash_ladder.attention(given.q, given.k, given.v, rung="09", causal=causal)
        assert (o == same).all()
    with pytest.raises(flash_ladder.Refused, match="09_ragged computes no window; 37"):
        flash_ladder.attention(given.q, given.k, given.v, rung="09", window=(94, 63))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rung": "77"}, "rung '77' is unknown; allowed: best, or an id or name that"),
        ({"rung": "hopper"}, "rung 'hopper' is not a single rung; allowed: best, or an id"),
        ({"rung": "06", "causal": True}, "06_batched computes no causal mask; 08, 09,"),
        ({"scale": 0.0}, "scale is 0.0; allowed: a finite number above 0"),
        ({"scale": float("nan")}, "scale is nan; allowed: a finite number above 0"),
        ({"scale": 10**400}, "allowed: a finite number above 0"),
        ({"q": np.zeros((2, 64, 128), np.float16)}, r"q has shape \(2, 64, 128\); allowed: 4"),
        ({"q": np.zeros((1, 3, 64, 128), np.float16)}, "q has heads 3 and k 2; those of k must"),
        ({"rung": "06", "q": np.zeros((1, 4, 64, 128), np.float16)}, "06_batched takes no heads"),
        ({"q": np.zeros((1, 2, 64, 64), np.float16)}, "q has dim 64 and k 128; they must be"),
        ({"v": np.zeros((1, 2, 32, 128), np.float16)}, r"k has shape .* and v .*must be the same"),
        ({"v": np.zeros((1, 2, 64, 128), np.float32)}, "dtypes float16, float16, float32; allowed"),
        ({"scale": "1"}, "scale is '1'; allowed: a finite number above 0"),
        ({"scale": 1e-320}, "scale is 1e-320; allowed: a finite number above 0, from 2.*-126"),
        ({"scale": 1e300}, "scale is 1e.300; allowed: a finite number above 0, from 2.*-126"),
        ({"scale": 1e30}, r"scale is 1e.30; allowed: .* above 0, from .* to 2\*\*13 \(8192\)"),
        ({"scale": 1j}, "scale is 1j; allowed: a finite number above 0"),
        ({"scale": np.ones(2)}, r"scale is array\(.*; allowed: a finite number above 0"),
        ({"causal": "no"}, "causal is 'no'; allowed: True or False"),
        ({"causal": None}, "causal is None; allowed: True or False"),
        ({"window": 3}, r"window is 3; allowed: \(left, right\), the keys"),
        ({"window": (1, -2)}, r"window is \(1, -2\); allowed"),
        ({"window": (1, 2.5)}, r"window is \(1, 2.5\); allowed"),
        ({"sinks": [1.0]}, r"sinks has shape \(1,\); allowed: \(2,\)"),
        ({"sinks": "x"}, "sinks is 'x'; allowed: an array of float32"),
        (
            {"k": np.broadcast_to(np.float16(1), (1, 2, 64, 128))},
            r"k has strides \(0, 0, 0, 0\) for .* \(16 bytes\) above 0: .* pass a contiguous copy",
        ),
        (
            {"k": np.zeros((1, 2, 128, 64), np.float16).swapaxes(2, 3)},
            "k has strides .* last one 1",
        ),
        ({"k": np.zeros((1, 2, 64, 132), np.float16)[..., :128]}, "k has strides .* of 8 "),
        ({"v": np.zeros((1, 2, 64, 128), np.float16)[:, ::-1]}, "v has strides .* above 0"),
        ({"causal": np.ones(2)}, r"causal is array\(.*; allowed: True or False"),
        ({"rung": None}, "rung is None; allowed: the number or name of a rung"),
        ({"rung": "09\0"}, r"rung is '09.x00'; allowed: the number or name of a rung"),
        ({"rung": "\ud800"}, r"rung is '.ud800'; allowed: the number or name of a rung"),
        ({"rung": "x" * 1000}, r"rung is 'x{79}\.\.\.; allowed: the number or name of a rung"),
        ({"q": np.zeros((0, 2, 64, 128), np.float16)}, r"q has shape \(0, .*extents of at least 1"),
        (
            {"q": np.zeros((1, 0, 64, 128), np.float16)},
            r"q has shape \(1, 0, .*extents of at least",
        ),
        ({"v": np.zeros((1, 2, 0, 128), np.float16)}, r"v has shape \(1, 2, 0, .*extents of at"),
        ({"q": np.zeros((1, 2, 64, 128), ">f2")}, "dtypes >f2, float16, float16; allowed: all"),
        ({"k": np.zeros((1, 2, 64, 128), ">f2")}, "dtypes float16, >f2, float16; allowed: all"),
        ({"q": np.ma.zeros((1, 2, 64, 128), np.float16)}, "q is a MaskedArray; allowed: an array"),
        ({"k": [1.0]}, "k is a list; allowed: as q, a numpy array"),
        ({"q": "text"}, "q is a str; allowed: "),
    ],
)
def test_what_is_refused(case: Any, change: dict[str, Any], message: str) -> None:
    given = case((1, 2, 64, 128))
    arguments = {"q": given.q, "k": given.k, "v": given.v} | change
    with pytest.raises(flash_ladder.Refused, match=message):
        flash_ladder.attention(**arguments)


def test_a_rung_may_be_a_number(case: Any) -> None:
    given = case((1, 1, 128, 128))
    o, same = (flash_ladder.attention(given.q, given.k, given.v, rung=rung) for rung in ("06", 6))
    assert (o == same).all()


def test_no_dimension_is_cut_to_32_bits() -> None:
    """A dim of 2^32 + 64 is no 64: views of one number, and nothing is copied."""
    q = np.broadcast_to(np.float16(1), (1, 1, 64, 2**32 + 64))
    with pytest.raises(flash_ladder.Refused, match="q has dim 4294967360; allowed: at most 65536"):
        flash_ladder.attention(q, q, q)


def test_arrays_that_are_read_only_stay(case: Any) -> None:
    given = case((1, 1, 128, 128))
    for array in (given.q, given.k, given.v):
        array.flags.writeable = False
    o = flash_ladder.attention(given.q, given.k, given.v, rung="06")
    assert abs(o - given.expected()[0]).max() < HALF
    o[:] = 0


def test_no_rung_takes_it() -> None:
    q = np.zeros((1, 1, 64, 96), np.float16)
    with pytest.raises(ValueError, match=r"no rung takes this problem; the best one says: .* 96 "):
        flash_ladder.attention(q, q, q)


def test_without_ptx(case: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FA_PTX_DIR", str(tmp_path))
    given = case((1, 1, 128, 128))
    with pytest.raises(flash_ladder.EnvironmentFailure, match=r"none of the 0 \.ptx files in"):
        flash_ladder.attention(given.q, given.k, given.v, rung="06")


def test_a_rung_by_hand_with_tensor_maps(case: Any, build: Path) -> None:
    """22_wgmma as its planner launches it: the same bits as through the package."""
    given = case((1, 2, 128, 64))
    module = ptxvm.Module.load(build / "ptx" / "22_wgmma.ptx")
    row = next(rung for rung in flash_ladder.rungs() if rung.id == "22")
    kernel = module.kernel(f"fa_{row.name}_d64")

    def panels(array: Any, rows: int) -> ptxvm.TensorMap:
        heads = array.reshape(2, 128, 1, 64).swapaxes(1, 2)
        return ptxvm.TensorMap(heads, (1, 1, rows, 64), swizzle=128)

    o = np.full_like(given.q, np.nan)
    threads, keys = kernel.max_threads[0], 128
    rows = threads // 128 * 64
    maps = [panels(given.q, 64), panels(given.k, keys), panels(given.v, keys), panels(o, 16)]
    scale_log2 = 64**-0.5 * np.log2(np.e)
    values = (*maps, o, 0, given.k, 0, 2, 1, 1, 128, 128, 0, float(scale_log2))
    kernel.launch(*values, grid=(128 // rows, 2, 1), block=threads, shared=200 * 1024)
    assert (o == flash_ladder.attention(given.q, given.k, given.v, rung="22")).all()
