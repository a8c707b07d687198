# SPDX-License-Identifier: MIT
"""What runs when: rows of bars over time. Orders, not measurements: the lengths are drawn by eye
unless a figure says otherwise (measured timelines are in timelines.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from canvas import SMALL, Canvas, begin

Bar = tuple[float, float, str, str]  # begin, length, text, fill

QK, PV, EXP, LOAD, WAIT, STORE = (
    "blue-soft",
    "teal-soft",
    "orange-soft",
    "green-soft",
    "none",
    "violet-soft",
)
NOT_TO_SCALE = "Time runs to the right. Order only, not to scale."


@dataclass(frozen=True)
class Row:
    name: str
    bars: Sequence[Bar]
    gap: float = 8  # below it


def chart(
    title: str,
    description: str,
    rows: Sequence[Row],
    end: float,
    told: Sequence[str] = (),
    *,
    left: float = 104,
    note: str = NOT_TO_SCALE,
) -> Canvas:
    """Rows of bars; `end` is the time at the right edge."""
    canvas, y = begin(title, description, note=note)
    unit = (426 - left) / end
    for row in rows:
        canvas.text(14, y + 14, row.name, size=SMALL, bold=True)
        for start, length, text, fill in row.bars:
            x, width = left + start * unit, length * unit
            if fill == WAIT:
                canvas.rect(x, y, width, 28, "none", "muted", dashed=True)
            else:
                canvas.rect(x, y, width, 28, fill, "paper")
            if len(text) * 5.8 > width + 3:
                raise ValueError(f"{title}: '{text}' is wider than its bar")
            if text:
                canvas.text(x + width / 2, y + 14, text, size=11.5, anchor="middle")
        y += 28 + row.gap
    canvas.lines(14, y + 8, told, "muted", size=SMALL)
    return canvas


def steps(pattern: Sequence[tuple[str, float, str]], times: int, start: float = 0) -> list[Bar]:
    """A pattern of (text, length, fill) again and again; {} in a text is the number of the step."""
    bars: list[Bar] = []
    at = start
    for step in range(times):
        for text, length, fill in pattern:
            if fill:
                bars.append((at, length, text.format(step), fill))
            at += length
    return bars


def pipeline(before: str, after: str) -> Canvas:
    load = steps((("load", 2, LOAD), ("Q K", 2, QK), ("exp", 1.6, EXP), ("P V", 2, PV)), 2)
    warps = steps((("Q K", 2, QK), ("exp", 1.6, EXP), ("P V", 2, PV)), 2, 2)
    copies: list[Bar] = [
        (0, 2, "K 0", LOAD),
        (2, 3.2, "V 0", LOAD),
        (5.7, 1.7, "K 1", LOAD),
        (7.6, 3.2, "V 1", LOAD),
        (11.3, 1.7, "K 2", LOAD),
    ]
    rows = (Row(before, load, 18), Row(f"{after} warps", warps), Row(f"{after} copies", copies))
    return chart(
        f"{after}: loads under the products",
        f"{before} loads, then multiplies. In {after} V arrives under Q K and the softmax, the next K "
        "under P V.",
        rows,
        15.3,
        (
            "V is needed after the softmax, the next K after P V:",
            "each load has a phase in which to arrive.",
        ),
    )


def kvpipe() -> Canvas:
    return pipeline("02", "03")


def float_pipe() -> Canvas:
    return pipeline("a6", "a7")


def dbuf() -> Canvas:
    plain = steps((("ld", 1, LOAD), ("4 mma", 2.4, QK)), 4)
    loads: list[Bar] = [
        (0, 1, "ld 0", LOAD),
        *((1 + i * 2.4, 1, f"ld {(i + 1) % 2}", LOAD) for i in range(4)),
    ]
    products: list[Bar] = [(1 + i * 2.4, 2.4, f"4 mma {i % 2}", QK) for i in range(4)]
    rows = (Row("06", plain, 18), Row("07 loads", loads), Row("07 mma", products))
    return chart(
        "07: two buffers of fragments",
        "06 loads a fragment and multiplies. 07 loads the next fragment into the other buffer "
        "meanwhile.",
        rows,
        13.6,
        ("The number is the buffer: one is filled while the other is used.",),
    )


def sliced() -> Canvas:
    before: list[Bar] = [
        (0, 4, "exp of 64 keys", EXP),
        (4, 0.6, "", WAIT),
        (4.6, 6, "P V of 64 keys", PV),
    ]
    exps: list[Bar] = [(0, 0.6, "", WAIT), *((0.6 + i * 1.5, 1, f"exp {i}", EXP) for i in range(4))]
    products: list[Bar] = [(1.6 + i * 1.5, 1.5, f"P V {i}", PV) for i in range(4)]
    rows = (Row("10", before, 18), Row("11 exp", exps), Row("11 mma", products))
    return chart(
        "11: exponentials among the products",
        "10: all exponentials, a barrier, all products. 11: the exponentials of the next 16 "
        "keys run beside the products of these.",
        rows,
        11,
        ("A slice is 16 keys, the depth of one mma.", "Dashed: the barrier, now ahead of both."),
    )


def stages() -> Canvas:
    before = steps(
        (("", 0.4, WAIT), ("Q K {0}", 2.2, QK), ("", 0.4, WAIT), ("exp, P V {0}", 3.6, PV)), 2
    )
    after = steps((("", 0.4, WAIT), ("Q K {0}", 2.2, QK), ("exp, P V {0}", 3.6, PV)), 2)
    copies_before: list[Bar] = [
        (0.4, 2.4, "V 0", LOAD),
        (3, 3.4, "K 1", LOAD),
        (7, 2.4, "V 1", LOAD),
        (9.6, 3.4, "K 2", LOAD),
    ]
    copies: list[Bar] = [(0.4, 5.6, "K 1 and V 1", LOAD), (6.6, 5.6, "K 2 and V 2", LOAD)]
    rows = (
        Row("12 warps", before),
        Row("12 copies", copies_before, 20),
        Row("13 warps", after),
        Row("13 copies", copies),
    )
    return chart(
        "13: one barrier a step",
        "12 has two barriers a step, one for K and one for V. 13 has two stages of K and V and "
        "one barrier a step.",
        rows,
        13.4,
        ("Dashed: a barrier of the thread block. A stage holds K and V.",),
    )


def slices() -> Canvas:
    before: list[Bar] = [
        (0, 4, "Q K, 64 keys", QK),
        *((4 + i * 2, 0.8, "e", EXP) for i in range(4)),
        *((4.8 + i * 2, 1.2, "P V", PV) for i in range(4)),
    ]
    after: list[Bar] = []
    for i in range(4):
        after += [(i * 3, 1, "Q K", QK), (1 + i * 3, 0.8, "e", EXP), (1.8 + i * 3, 1.2, "P V", PV)]
    rows = (Row("13", before), Row("14", after))
    told = (
        "Registers a thread. 13: O 128, S 64.",
        "14: O 128, S 16, and 64 for Q, which leaves shared memory.",
    )
    return chart(
        "14: Q K, 16 keys at a time",
        "13 computes the scores of 64 keys at once. 14 computes 16 keys, their exponentials and "
        "products, four times.",
        rows,
        12.2,
        told,
    )


def tma() -> Canvas:
    before = steps(
        (
            ("K", 0.8, LOAD),
            ("", 0.3, WAIT),
            ("V", 0.8, LOAD),
            ("Q K, exp", 3, QK),
            ("", 0.3, WAIT),
            ("K", 0.8, LOAD),
            ("P V", 2, PV),
            ("", 0.3, WAIT),
        ),
        1,
    )
    before += steps((("V", 0.8, LOAD), ("Q K, exp", 3, QK), ("", 0.3, WAIT)), 1, 8.3)
    after = steps((("", 0.3, WAIT), ("Q K, exp, P V {0}", 5.2, QK), ("", 0.3, WAIT)), 2)
    asks: list[Bar] = [(5.8, 0.5, "2", LOAD), (11.6, 0.5, "3", LOAD)]
    engine: list[Bar] = [
        (0, 0.3, "", WAIT),
        (0.3, 4.6, "K 1 and V 1 arrive", LOAD),
        (6.3, 4.6, "K 2 and V 2 arrive", LOAD),
    ]
    rows = (
        Row("06 threads", before, 20),
        Row("20 threads", after),
        Row("20 thread 0", asks),
        Row("20 TMA", engine),
    )
    return chart(
        "20: one thread starts the copies",
        "06: all threads copy K and V in pieces, with two barriers a step. 20: one thread "
        "starts a copy of whole tiles two steps ahead, the TMA brings them.",
        rows,
        12.5,
        (
            "Dashed: a wait. In 06 every thread issues its share of each copy;",
            "in 20 thread 0 starts the copies of step j + 2.",
        ),
    )


def two_barriers() -> Canvas:
    copies: list[Bar] = [(0, 2, "K 0", LOAD), (2, 2, "V 0", LOAD)]
    one: list[Bar] = [
        (0, 4, "", WAIT),
        (4, 3, "Q K 0", QK),
        (7, 3, "softmax 0", EXP),
        (10, 3, "P V 0", PV),
    ]
    two: list[Bar] = [(0, 2, "", WAIT), *((at - 2, size, name, hue) for at, size, name, hue in one[1:])]
    rows = (Row("copies", copies), Row("20b: one barrier", one), Row("20c: two", two))
    return chart(
        "20c: the first step of a tile",
        "One barrier: the first product of a tile starts when K and V have arrived. Two barriers: it "
        "starts when K is there, and V arrives under the product.",
        rows,
        13,
        (
            "Dashed: the warps wait. Later steps were loaded a whole step",
            "before, and no warp waits for them in either kernel.",
        ),
        left=140,
    )


def specialized() -> Canvas:
    producer: list[Bar] = [
        (0, 0.9, "K0", LOAD),
        (0.9, 0.9, "V0", LOAD),
        (1.8, 0.9, "K1", LOAD),
        (2.7, 0.9, "V1", LOAD),
        (3.6, 0.9, "K2", LOAD),
        (4.5, 0.9, "V2", LOAD),
        (5.4, 0.7, "", WAIT),
        (6.1, 0.9, "K3", LOAD),
        (7, 2.2, "", WAIT),
        (9.2, 0.9, "V3", LOAD),
    ]
    one = steps((("Q K", 2, QK), ("exp", 2, EXP), ("P V", 2, PV)), 2, 0.9)
    two = steps((("Q K", 2, QK), ("exp", 2, EXP), ("P V", 2, PV)), 2, 2.9)
    rows = (Row("producer", producer), Row("consumer 0", one), Row("consumer 1", two))
    return chart(
        "22: warps with roles",
        "A producer fills a ring of slots ahead of two consumers, which compute at their own pace.",
        rows,
        15,
        (
            "The producer waits (dashed) only for an empty slot.",
            "Consumer 1 may run behind: then the softmax of one stands",
            "under the products of the other. Nothing enforces it yet.",
        ),
    )


def pingpong() -> Canvas:
    zero: list[Bar] = [
        (0, 2, "Q K 0", QK),
        (2, 4, "softmax 0", EXP),
        (6, 2, "P V 0", PV),
        (8, 2, "Q K 1", QK),
        (10, 4, "softmax 1", EXP),
    ]
    one: list[Bar] = [
        (0, 2, "", WAIT),
        (2, 2, "Q K 0", QK),
        (4, 4, "softmax 0", EXP),
        (8, 2, "", WAIT),
        (10, 2, "P V 0", PV),
        (12, 2, "Q K 1", QK),
    ]
    canvas = chart(
        "23: the consumers take turns",
        "A turn is P V of this step and Q K of the next. A consumer takes it, passes it on when "
        "its Q K is issued, and computes its softmax while the other multiplies.",
        (Row("consumer 0", zero), Row("consumer 1", one)),
        14.1,
        (
            "Dashed: waits at a named barrier for its turn.",
            "At most one consumer has products in flight.",
        ),
    )
    return canvas


def overlap() -> Canvas:
    tensor_before: list[Bar] = [
        (0, 2, "Q K 1", QK),
        (4, 2, "P V 1", PV),
        (6, 2, "Q K 2", QK),
        (10, 2, "P V 2", PV),
    ]
    exp_before: list[Bar] = [(2, 2, "exp 1", EXP), (8, 2, "exp 2", EXP)]
    tensor: list[Bar] = [
        (0, 2, "Q K 1", QK),
        (2, 2, "P V 0", PV),
        (4.4, 2, "Q K 2", QK),
        (6.4, 2, "P V 1", PV),
        (8.8, 2, "Q K 3", QK),
    ]
    exps: list[Bar] = [(2, 2.4, "exp 1", EXP), (6.4, 2.4, "exp 2", EXP)]
    rows = (
        Row("22 products", tensor_before),
        Row("22 threads", exp_before, 20),
        Row("24 products", tensor),
        Row("24 threads", exps),
    )
    return chart(
        "24: two products in flight",
        "22: product, softmax, product. 24: Q K of this step and P V of the step before are "
        "issued together; the softmax runs beside P V.",
        rows,
        12.2,
        (
            "One warpgroup. 24 issues Q K and the P V of the step before",
            "together, waits for Q K only; its softmax (exp) runs under P V.",
        ),
    )


def persistent() -> Canvas:
    before: list[Bar] = [
        (0.9, 4, "tile t", QK),
        (4.9, 1.4, "store", STORE),
        (6.3, 1.4, "", WAIT),
        (7.7, 4, "t + 132", QK),
        (11.7, 1.4, "store", STORE),
    ]
    loads_before: list[Bar] = [(0, 4, "Q K V K V", LOAD), (6.6, 4, "Q K V K V", LOAD)]
    after: list[Bar] = [
        (0.9, 4, "tile t", QK),
        (4.9, 1.4, "store", STORE),
        (6.3, 4, "t + 132", QK),
        (10.3, 1.4, "store", STORE),
    ]
    loads: list[Bar] = [
        (0, 4, "K V, tile t", LOAD),
        (4, 4.4, "K V, t + 132", LOAD),
        (8.4, 4.7, "K V, t + 264", LOAD),
    ]
    rows = (
        Row("24 load", loads_before),
        Row("24 compute", before, 20),
        Row("25 load", loads),
        Row("25 compute", after),
    )
    return chart(
        "25: the next tile's loads run under the stores",
        "24: a thread block ends after its tile, the next one sets up and waits. 25: one thread "
        "block goes on, and the producer is already at the next tile.",
        rows,
        13.2,
        ("One SM. Dashed: set-up and first wait of a thread block.",),
    )


def pinned() -> Canvas:
    before: list[Bar] = [
        (0, 1, "issue", QK),
        (1, 1.4, "", WAIT),
        (2.4, 1.6, "2^x 2^x", EXP),
        (4, 2, "", WAIT),
        (6, 1.6, "2^x 2^x", EXP),
        (7.6, 1.2, "pack", STORE),
    ]
    after: list[Bar] = [
        (0, 1, "issue", QK),
        (1, 1.4, "", WAIT),
        (2.4, 3.2, "2^x 2^x 2^x 2^x", EXP),
        (5.6, 0.6, "K", LOAD),
        (6.2, 0.5, "", WAIT),
        (6.7, 1.2, "pack", STORE),
    ]
    product: list[Bar] = [(1, 1.4, "Q K", QK), (2.4, 3.9, "P V", PV)]
    rows = (Row("products", product, 18), Row("28", before), Row("29", after))
    return chart(
        "29: the exponentials stay above the wait",
        "In 28 ptxas moves most of the exponentials below the wait for P V. In 29 the wait for "
        "the next K, which holds a branch, stands above that wait and keeps them there.",
        rows,
        9,
        (
            "Dashed: a wait for products. K: the wait for the next K,",
            "which contains a branch; ptxas moves nothing past it.",
        ),
    )


def stores() -> Canvas:
    before: list[Bar] = [
        (0, 1.2, "O / l", EXP),
        (1.2, 1, "pack", STORE),
        (2.2, 2.4, "32 shuffles", WAIT),
        (4.6, 2.4, "8 stores", STORE),
        (7, 2, "next tile", QK),
    ]
    after: list[Bar] = [
        (0, 1.2, "O / l", EXP),
        (1.2, 1, "pack", STORE),
        (2.2, 1.8, "8 stmatrix", STORE),
        (4, 0.5, "", LOAD),
        (4.5, 4.5, "next tile", QK),
    ]
    engine: list[Bar] = [(4.5, 2.6, "16 rows leave", LOAD)]
    rows = (Row("33", before), Row("34", after), Row("34 TMA", engine))
    return chart(
        "34: O leaves in the background",
        "33: shuffles and stores before the next tile. 34: stmatrix into shared memory, one TMA "
        "store a warp, and the next tile begins while the rows leave.",
        rows,
        9.1,
        ("The TMA has the addresses in its tensor map; one thread", "starts the copy and goes on."),
    )


def dealt() -> Canvas:
    dealer_before: list[Bar] = [
        (1.3, 1.9, "number", LOAD),
        (3.2, 6.6, "", WAIT),
        (9.8, 1.9, "number", LOAD),
    ]
    before: list[Bar] = [
        (0, 1.3, "read", STORE),
        (1.3, 1.9, "divide", EXP),
        (3.2, 0.7, "Q", LOAD),
        (3.9, 4.6, "tile t", QK),
        (8.5, 1.3, "read", STORE),
        (9.8, 1.9, "divide", EXP),
    ]
    dealer: list[Bar] = [
        (1.3, 1.9, "number", LOAD),
        (3.2, 1.9, "divide", EXP),
        (5.1, 2.8, "", WAIT),
        (7.9, 1.9, "number", LOAD),
        (9.8, 1.9, "divide", EXP),
    ]
    after: list[Bar] = [
        (0, 1.3, "read", STORE),
        (1.3, 0.7, "Q", LOAD),
        (2, 4.6, "tile t", QK),
        (6.6, 1.3, "read", STORE),
        (7.9, 0.7, "Q", LOAD),
        (8.6, 3.1, "tile t + 1", QK),
    ]
    rows = (
        Row("36 warp 2", dealer_before),
        Row("36 consumer", before, 20),
        Row("37 warp 2", dealer),
        Row("37 consumer", after),
    )
    return chart(
        "37: the divisions run under the tile before",
        "36: one thread of warp 2 fetches a number and waits; a consumer warp reads the number, "
        "divides, waits for Q and computes. 37: the thread fetches the next number and divides while "
        "the consumers compute; a consumer warp reads its tile, waits for Q and computes.",
        rows,
        11.8,
        (
            "Warp 2 fetches the tile after t; dashed: it waits until all",
            "warps have read that. Q: a warp waits for its rows of Q.",
        ),
        left=114,
    )


# --- the ring -------------------------------------------------------------------------------------

SLOTS, LANDING, READING = 3, 2, 2
ITEMS = ("K0", "V0", "K1", "V1", "K2", "V2")


def ring_times() -> list[tuple[float, float, float, float]]:
    """Of each item: load started, landed, read from, read until; as the two roles wait."""
    times: list[tuple[float, float, float, float]] = []
    for item in range(len(ITEMS)):
        free = times[item - SLOTS][3] if item >= SLOTS else 0.0
        start = max(times[-1][0] + 0.5 if times else 0.0, free)
        landed = start + LANDING
        begin_read = max(landed, times[-1][3] if times else 0.0)
        times.append((start, landed, begin_read, begin_read + READING))
    return times


def ring() -> Canvas:
    canvas, y = begin(
        "A ring of three slots over two rounds",
        "Three slots over time. Each goes from empty to loading, full, read, and empty again, "
        "twice. "
        "The full barrier of a slot completes phase 0 when the first load has landed and phase 1 "
        "after the second; the empty barrier when the consumer has read.",
        note="Time runs to the right; computed from the rules below.",
    )
    times = ring_times()
    left, unit = 66.0, 356.0 / (times[-1][3] + 0.2)
    for slot in range(SLOTS):
        top = y + 24 + slot * 66
        canvas.text(14, top + 14, f"slot {slot}", size=SMALL, bold=True)
        canvas.rect(left, top, 356, 28, "none", "line", dashed=True)
        for turn, item in enumerate(range(slot, len(ITEMS), SLOTS)):
            start, landed, read, done = (left + at * unit for at in times[item])
            canvas.cell(start, top, landed - start, 28, ITEMS[item], "orange-soft")
            if read > landed:
                canvas.rect(landed, top, read - landed, 28, "green-soft", "paper")
            canvas.cell(read, top, done - read, 28, f"read {ITEMS[item]}", "blue-soft", size=11.5)
            for at, hue, name in (
                (landed, "orange", f"full: {turn}"),
                (done, "blue", f"empty: {turn}"),
            ):
                canvas.line([(at, top), (at, top + 36)], hue, thick=1.6)
                anchor = "middle" if at < 400 else "end"
                canvas.text(at if at < 400 else 428, top + 44, name, hue, size=11.5, anchor=anchor)
    y += 24 + SLOTS * 66 + 8
    for hue, text in (
        ("orange-soft", "loading"),
        ("green-soft", "full"),
        ("blue-soft", "being read"),
    ):
        canvas.rect(
            left + (("loading", "full", "being read").index(text)) * 100, y - 7, 14, 14, hue, "line"
        )
        canvas.text(
            left + (("loading", "full", "being read").index(text)) * 100 + 19, y, text, size=11.5
        )
    y += 24
    canvas.text(
        14, y, "full: n, empty: n - phase n of that barrier is complete.", "muted", size=SMALL
    )
    rule = (
        "Round n: the consumer waits for full with parity n mod 2,",
        "the producer for empty with the other parity. In round 0",
        "that is parity 1: on a fresh barrier it does not wait.",
    )
    canvas.lines(14, y + 20, rule, size=SMALL)
    return canvas


FIGURES = {
    "kvpipe": kvpipe,
    "float_pipe": float_pipe,
    "dbuf": dbuf,
    "sliced": sliced,
    "stages": stages,
    "slices": slices,
    "tma": tma,
    "two_barriers": two_barriers,
    "specialized": specialized,
    "pingpong": pingpong,
    "overlap": overlap,
    "persistent": persistent,
    "pinned": pinned,
    "stores": stores,
    "dealt": dealt,
    "ring": ring,
}
