# SPDX-License-Identifier: MIT
"""The attention problem, and what is wrong with the arguments that should make one."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from flash_ladder._errors import Refused

Shape = tuple[int, ...]
Described = tuple[Sequence[int], str]  # shape and dtype
LONGEST_NAME = 80
DTYPES = ("float16", "bfloat16", "float32")
E4M3 = ("float8_e4m3fn", "uint8")  # of k and v; uint8 holds its bits, for numpy has no such type
MOST_DIM = 65536
MOST_KEYS = 2**30  # of a window; more are all there can be
ALIGNMENT = 16  # bytes: the kernels load 16 at a time, and tensor maps ask for it
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}  # bytes of an element; of others 1
FEW_QUERIES = 16  # new queries that a rung against a cache takes at most
# The least is a normal number of float32. Beyond the greatest even a dot product of 1 is a score
# that float32 holds too coarsely for a softmax.
LEAST_SCALE, GREATEST_SCALE = 2.0**-126, 2.0**13


@dataclass(frozen=True)
class Problem:
    """One pass, forward or backward, with the names that the C interface and result files have.
    Query i of a causal one sees keys j <= i + keys - seq_q. A packed batch has query_lengths."""

    batch: int
    heads: int
    seq_q: int
    seq_kv: int
    head_dim: int
    causal: bool
    dtype: str
    lse: bool
    scale: float
    kv_heads: int  # a divisor of heads
    page: int = 0  # keys of a page; 0: k and v are not paged
    pages: int = 0  # that are stored
    lengths: tuple[int, ...] | None = None  # keys of each batch entry; None: seq_kv
    cache: str | None = None  # type of k and v where they have scales
    # Of q, k, v and o, 3 each, and of the gradients of o, q, k and v; None: all are contiguous.
    strides: tuple[int, ...] | None = None
    window_left: int = -1  # keys before its own place that a query sees; -1: all
    window_right: int = -1  # keys after it; the mask has none
    sinks: bool = False  # each query head has one
    query_lengths: tuple[int, ...] | None = None  # queries of each entry of a packed batch
    backward: bool = False

    @property
    def windowed(self) -> bool:
        return self.window_left >= 0 or (self.window_right >= 0 and not self.causal)


P = TypeVar("P", bound=Problem)


def problem_of(given: Mapping[str, Any], kind: type[P]) -> P:
    """The problem that a row of a result file, or the library, names."""
    known = {each.name: given[each.name] for each in fields(kind) if each.name in given}
    known = {name: tuple(each) if isinstance(each, list) else each for name, each in known.items()}
    absent = {"lse": False, "scale": given["head_dim"] ** -0.5, "kv_heads": given["heads"]}
    return kind(**absent | known)


def make_problem(
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
    *,
    lengths: Sequence[int] | None = None,
    query_lengths: Sequence[int] | None = None,
    page_table: Described | None = None,
    kv_scales: Described | None = None,
    strides: Sequence[Sequence[int]] | None = None,
    window: tuple[int, int] = (-1, -1),
    sinks: Described | None = None,
    causal: bool,
    scale: float | None,
    lse: bool,
    backward: bool = False,
) -> Problem:
    """The problem of q, k and v with these shapes and dtypes; Refused where they make none. Strides
    are those of q, k, v and o in elements, and for a backward pass of the gradients of o, q, k and
    v; None: all are contiguous. Of a packed batch q, k and v are [1, heads, rows, dim], and both
    lengths are given."""
    if query_lengths is not None and (page_table is not None or kv_scales is not None):
        raise Refused("cu_seqlens are given with page_table or kv_scales; allowed: without them")
    q, k, v = (tuple(int(extent) for extent in shape) for shape in shapes)
    check_shapes(q, k, v, paged=page_table is not None)
    e4m3 = dtypes[1] in E4M3
    if dtypes[1] != dtypes[2] or dtypes[0] not in DTYPES or not (e4m3 or dtypes[1] == dtypes[0]):
        raise Refused(
            f"q, k and v have dtypes {', '.join(dtypes)}; allowed: all three"
            f" {', '.join(DTYPES[:-1])} or {DTYPES[-1]}, or k and v {' or '.join(E4M3)} with"
            " kv_scales"
        )
    if e4m3 != (kv_scales is not None):
        raise Refused(
            f"k has dtype {dtypes[1]} and kv_scales {'is None' if e4m3 else 'are given'}; allowed:"
            f" kv_scales with k and v of {' or '.join(E4M3)}, and only with them"
        )
    pages, page, width = 0, 0, 0
    if page_table is not None:
        pages, page = k[0], k[2]
        width = check_array("page_table", page_table, (q[0], None), "int32")[1]
    if kv_scales is not None:
        check_array("kv_scales", kv_scales, (2, q[0], k[1]), "float32")
    if lengths is not None and query_lengths is None:
        check_array("lengths", ((len(lengths),), "int32"), (q[0],), "int32")
    if sinks is not None:
        check_array("sinks", sinks, (q[1],), "float32")
    batch, seq_q, seq_kv = q[0], q[2], page * width or k[2]
    if query_lengths is not None and lengths is not None:
        batch, seq_q, seq_kv = len(lengths), max(query_lengths), max(lengths)
    causal = check_flag("causal", causal)
    causal, left, right = seen_of(causal, window, seq_q, seq_kv)
    return Problem(
        batch=batch,
        heads=q[1],
        seq_q=seq_q,
        seq_kv=seq_kv,
        head_dim=q[3],
        causal=causal,
        dtype=dtypes[0],
        lse=check_flag("return_lse", lse),
        scale=check_scale(scale, q[3]),
        kv_heads=k[1],
        page=page,
        pages=pages,
        lengths=None if lengths is None else tuple(lengths),
        cache="float8_e4m3" if e4m3 else None,
        strides=None if strides is None else known_strides((q, k, v), dtypes, strides),
        window_left=left,
        window_right=right,
        sinks=sinks is not None,
        query_lengths=None if query_lengths is None else tuple(query_lengths),
        backward=backward,
    )


def check_packed(
    shapes: Sequence[Sequence[int]], lengths: object, cu_seqlens_q: object, cu_seqlens_k: object
) -> None:
    """Of a call with cu_seqlens."""
    for name, given in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        if given is None:
            raise Refused(f"{name} is None; allowed: cu_seqlens_q and cu_seqlens_k, or neither")
    if lengths is not None:
        raise Refused("lengths are given with cu_seqlens_k; allowed: one of them")
    for name, shape in zip("qkv", shapes, strict=True):
        if len(shape) != 3:
            what = "3 dimensions (rows, heads, dim) with cu_seqlens"
            raise Refused(f"{name} has shape {tuple(shape)}; allowed: {what}")


def sequence_lengths(
    name: str, starts: Sequence[int], rows: int, sequences: int | None = None
) -> tuple[int, ...]:
    """Those that cu_seqlens say of a tensor with so many rows."""
    pairs = list(itertools.pairwise(starts))
    wrong = not pairs or starts[0] != 0 or starts[-1] != rows or any(a > b for a, b in pairs)
    if wrong or len(pairs) != (sequences or len(pairs)):
        shown = str(list(starts)) if len(starts) <= 8 else f"{len(starts)} numbers"
        many = f"{sequences + 1} numbers" if sequences else "numbers"
        raise Refused(
            f"{name} is {shown}; allowed: {many} from 0 to the {rows} rows, none below the one"
            " before"
        )
    return tuple(b - a for a, b in pairs)


def check_window(window: Any) -> tuple[int, int]:
    """Keys to the left and to the right that a query sees, -1 for all."""
    try:
        left, right = (-1 if each is None else operator.index(each) for each in window)
    except (TypeError, ValueError):
        left, right = -2, -2
    if left < -1 or right < -1:
        raise Refused(
            f"window is {window!r}; allowed: (left, right), the keys before and after its own that"
            " a query sees, None or -1 for all"
        )
    return min(left, MOST_KEYS), min(right, MOST_KEYS)


def seen_of(
    causal: bool, window: tuple[int, int], seq_q: int, seq_kv: int
) -> tuple[bool, int, int]:
    """The mask and the window without what changes nothing: more rungs take that."""
    left, right = window
    causal = causal or right == 0
    left = -1 if left >= seq_kv - 1 else left
    return causal, left, -1 if causal or right >= seq_q - 1 else right


def known_strides(
    shapes: Sequence[Shape], dtypes: Sequence[str], strides: Sequence[Sequence[int]]
) -> tuple[int, ...] | None:
    """Those of batch, head and row of each tensor; None where all are contiguous. Refused where the
    kernels do not take them. In a dimension of extent 1 nothing uses them."""
    made: list[int] = []
    plain: list[int] = []
    of = {"q": 0, "k": 1, "v": 2, "o": 0, "d_o": 0, "d_q": 0, "d_k": 1, "d_v": 2}
    for (name, index), given in zip(of.items(), strides, strict=False):
        shape, kind = shapes[index], dtypes[index]
        steps = ALIGNMENT // SIZES.get(kind, 1)
        contiguous = (shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1)
        used = [
            stride if extent > 1 else own
            for stride, extent, own in zip(given, shape, contiguous, strict=True)
        ]
        plain += contiguous[:3]
        made += used[:3]
        if used == list(contiguous):
            continue
        if used[3] != 1 or any(each <= 0 or each % steps for each in used[:3]):
            raise Refused(
                f"{name} has strides {tuple(given)} for shape {shape}; allowed: the last one 1 and"
                f" the others multiples of {steps} ({ALIGNMENT} bytes) above 0: rows are contiguous"
                f" and aligned, and none are shared, as expanded ones are; pass a contiguous copy"
            )
    return None if made == plain else tuple(made)


def check_shapes(q: Shape, k: Shape, v: Shape, *, paged: bool) -> None:
    for name, shape in (("q", q), ("k", k), ("v", v)):
        what = "pages, kv_heads, page, dim" if paged and name != "q" else "batch, heads, seq, dim"
        if len(shape) != 4:
            raise Refused(f"{name} has shape {shape}; allowed: 4 dimensions ({what})")
        if min(shape) < 1:
            raise Refused(f"{name} has shape {shape}; allowed: extents of at least 1 ({what})")
    if k != v:
        raise Refused(f"k has shape {k} and v {v}; they must be the same")
    if q[1] % k[1]:
        raise Refused(f"q has heads {q[1]} and k {k[1]}; those of k must divide those of q")
    for what, axis in (("dim", 3),) if paged else (("batch", 0), ("dim", 3)):
        if q[axis] != k[axis]:
            raise Refused(f"q has {what} {q[axis]} and k {k[axis]}; they must be the same")
    if q[3] > MOST_DIM:
        raise Refused(f"q has dim {q[3]}; allowed: at most {MOST_DIM}")


def check_array(name: str, given: Described, shape: tuple[int | None, ...], dtype: str) -> Shape:
    """The shape of an array; None allows any extent above 0."""
    found = tuple(int(extent) for extent in given[0])
    fits = len(found) == len(shape) and all(
        extent > 0 if wanted is None else extent == wanted
        for extent, wanted in zip(found, shape, strict=True)
    )
    if not fits:
        text = ", ".join("pages of an entry" if each is None else str(each) for each in shape)
        raise Refused(f"{name} has shape {found}; allowed: ({text}{',' * (len(shape) == 1)})")
    if given[1] != dtype:
        raise Refused(f"{name} has dtype {given[1]}; allowed: {dtype}")
    return found


def check_flag(name: str, value: object) -> bool:
    try:
        known = bool(value) == value
    except (TypeError, ValueError):  # an array with several elements
        known = False
    if not known:
        raise Refused(f"{name} is {value!r}; allowed: True or False")
    return bool(value)


def check_scale(scale: float | None, head_dim: int) -> float:
    if scale is None:
        return 1 / math.sqrt(head_dim)
    try:
        value = math.nan if isinstance(scale, (str, bytes)) else float(scale)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not LEAST_SCALE <= value <= GREATEST_SCALE:
        raise Refused(
            f"scale is {scale!r}; allowed: a finite number above 0, from 2**-126 to 2**13 (8192),"
            " or None: 1/sqrt(dim)"
        )
    return value


def check_rung(rung: object) -> str:
    """The word for a rung: its number may be an integer."""
    if isinstance(rung, int) and not isinstance(rung, bool):
        return str(rung)
    if isinstance(rung, str) and len(rung) <= LONGEST_NAME and rung.isprintable():
        return rung
    shown = repr(rung)
    shown = shown if len(shown) <= LONGEST_NAME else shown[:LONGEST_NAME] + "..."
    raise Refused(
        f"rung is {shown}; allowed: the number or name of a rung, such as '06' or 'batched'"
    )
