# SPDX-License-Identifier: MIT
"""The steps from 44 to 45e against a cache: waits of the merge, who loads a row, whose states are
added up, conflicts, when references move, what a shuffle brings, the ring between two heads, and of
53 two launches."""

from __future__ import annotations

from collections.abc import Sequence

from canvas import HUES, SMALL, Canvas, begin
from decode_figures import BRIEF, DIM, KB, counts, decode_facts, stages, strip, tile_of
from orders import EXP, PV, QK, STORE, WAIT, Bar, Row, chart

CHUNK = 16  # bytes
PASS_KEYS = 16  # that a warp computes at a time


def merge() -> Canvas:
    """The waits of the last thread block of a head, one sequence of 8192 keys."""
    (launch,) = decode_facts()["plans"]["44"]
    parts, merged = launch["grid"][0], 16  # that 44b loads together
    canvas, y = begin(
        "44b: sixteen parts in one wait",
        "The merge of a head of 49 parts. 44 waits once for the log-sum-exps and thirteen times for "
        "four parts: fourteen waits. 44b waits four times for sixteen parts and their log-sum-exps.",
        note=f"Each box: a wait for the L2. A head of {parts} parts.",
    )
    for name, before, each in (("44", ["L"], 4), ("44b", [], merged)):
        counts = [min(each, parts - first) for first in range(0, parts, each)]
        cells = before + [str(count) for count in counts]
        canvas.text(14, y + 6, f"{name}: {len(cells)} waits", size=SMALL, bold=True)
        filled = [(text, "orange-soft" if text == "L" else "blue-soft") for text in cells]
        y = strip(canvas, y + 18, filled, unit=29) + 10
    told = (
        "L: all log-sum-exps, for their maximum. Number: parts that",
        "are loaded together; in 44b with their log-sum-exps.",
    )
    canvas.lines(14, y, told, "muted", size=SMALL)
    return canvas


def group() -> Canvas:
    """What a warp loads of K for 16 keys and a group of four."""
    rows, heads = 32 * CHUNK // (DIM * 2), 4  # of one load; of the group
    loads = PASS_KEYS // rows
    wavefronts = loads * 32 * CHUNK // 128
    canvas, y = begin(
        "44d: a row is loaded once for the group",
        "A warp, 16 keys, four query heads. In 44c each head loads and converts all rows of K: 32 "
        "loads. In 44d a load and its conversions are followed by the multiply-adds of all four "
        "heads: 8 loads.",
        note=f"A warp, {PASS_KEYS} keys of K. Time runs to the right, row by row.",
    )
    left, unit = 74.0, 44.0
    canvas.text(
        14,
        y + 6,
        f"44c: {heads * loads} loads, {heads * wavefronts} wavefronts",
        size=SMALL,
        bold=True,
    )
    y += 18
    for head in range(heads):
        canvas.text(66, y + 11, f"head {head}", "muted", size=BRIEF, anchor="end")
        for load in range(loads):
            x = left + load * unit
            canvas.cell(x, y, 20, 22, "ld", "grey-soft", size=BRIEF)
            canvas.cell(x + 20, y, 22, 22, str(head), f"{HUES[head]}-soft", size=BRIEF)
        y += 26
    y += 14
    canvas.text(14, y + 6, f"44d: {loads} loads, {wavefronts} wavefronts", size=SMALL, bold=True)
    y += 18
    per_row = loads // heads
    unit = 352 / per_row
    for first in range(0, loads, per_row):
        canvas.text(66, y + 11, f"loads {first}, {first + 1}", "muted", size=BRIEF, anchor="end")
        for load in range(per_row):
            x = left + load * unit
            canvas.cell(x, y, 34, 22, "ld", "grey-soft", size=BRIEF)
            for head in range(heads):
                fill = f"{HUES[head]}-soft"
                canvas.cell(x + 35 + head * 34, y, 34, 22, str(head), fill, size=BRIEF)
        y += 26
    told = (
        f"ld: one load and its conversions, {rows} rows of K.",
        "Number: the multiply-adds of a query head with them.",
    )
    canvas.lines(14, y + 14, told, "muted", size=SMALL)
    return canvas


def states() -> Canvas:
    (launch,), (_, _, warps) = decode_facts()["plans"]["44e"], tile_of("44e")
    blocks = launch["grid"][0]
    canvas, y = begin(
        "44e: four states become one part",
        "One thread block and one query head. In 44d each of four warps writes its own part to "
        "memory: 132 parts a head. In 44e the warps leave their states in shared memory, one of them "
        "adds up all four and writes one part: 33 parts a head.",
        note=f"One query head, one sequence: {blocks} thread blocks of {warps} warps.",
    )
    unit = 100.0
    for name in ("44d", "44e"):
        canvas.text(14, y + 6, name, size=SMALL, bold=True)
        for warp in range(warps):
            x = 30 + warp * unit
            canvas.cell(x, y + 18, unit - 12, 26, f"warp {warp}", f"{HUES[warp]}-soft", size=BRIEF)
            middle = x + unit / 2 - 6
            canvas.line([(middle, y + 44), (middle, y + 62)], "muted", thick=1.4, arrow=True)
            if name == "44d":
                canvas.cell(x, y + 64, unit - 12, 26, "part", "orange-soft", size=BRIEF)
        wide = warps * unit - 12
        if name == "44e":
            text = "shared memory: four states, added up by their weights"
            canvas.cell(30, y + 64, wide, 26, text, "green-soft", size=BRIEF)
            canvas.line(
                [(30 + wide / 2, y + 90), (30 + wide / 2, y + 108)], "muted", thick=1.4, arrow=True
            )
            canvas.cell(
                30 + (wide - unit + 12) / 2,
                y + 110,
                unit - 12,
                26,
                "part",
                "orange-soft",
                size=BRIEF,
            )
            y += 46
        each = warps if name == "44d" else 1
        text = f"parts a head: {blocks} x {each} = {blocks * each}"
        canvas.text(30, y + 106, text, "orange", size=SMALL)
        y += 128
    return canvas


def place_of(row: int, chunk: int, swizzled: bool) -> int:
    """The 16-byte place in which a chunk of a row lies, modulo the eight that the banks have."""
    return (chunk ^ (row & 7) if swizzled else chunk) % 8


def banks() -> Canvas:
    """Eight rows and the first eight places of each: what one phase of a load reads."""
    rows = range(8)
    phases = (
        ("44f: ldmatrix, K", False, [(row, 0) for row in rows]),
        ("44g: ldmatrix, K", True, [(row, 0) for row in rows]),
        ("44g: row 5 of V", True, [(5, chunk) for chunk in rows]),
    )
    canvas, y = begin(
        "44g: a column and a row, one wavefront each",
        "Eight rows by eight places of 16 bytes. In 44f a phase of ldmatrix reads chunk 0 of eight "
        "rows, all in place 0: eight wavefronts. In 44g they are in eight different places: one "
        "wavefront. A row of V takes all eight places, in another order: one wavefront.",
        note="Number: the chunk in the place. Filled: read together.",
    )
    size = 16.0
    for index, (name, swizzled, read) in enumerate(phases):
        left = 14 + index * 144
        canvas.text(left, y + 6, name, size=SMALL, bold=True)
        taken = [place_of(row, chunk, swizzled) for row, chunk in read]
        for row in rows:
            for chunk in rows:
                place = place_of(row, chunk, swizzled)
                mine = (row, chunk) in read
                at = left + place * size, y + 20 + row * size
                canvas.rect(*at, size, size, "blue" if mine else "grey-soft", "paper", radius=0)
                ink = "paper" if mine else "muted"
                middle = at[0] + size / 2, at[1] + size / 2
                canvas.text(*middle, str(chunk), ink, size=BRIEF, anchor="middle")
        most = max(taken.count(place) for place in taken)
        if "ldmatrix" in name:
            found = counts(name[:3])
            assert most == found["ldmatrix_wavefronts"] / found["ldmatrix_ideal"]
        text = f"{most} wavefront{'s' if most > 1 else ''}"
        ink = "red" if most > 1 else "green"
        canvas.text(left, y + 20 + 8 * size + 14, text, ink, size=SMALL, bold=True)
    y += 20 + 8 * size + 34
    canvas.text(
        14, y, "A place: four banks. One wavefront serves each place once.", "muted", size=SMALL
    )
    return canvas


def vote() -> Canvas:
    """44h against 44i, four passes of which the second has a score that is too large."""
    old: list[Bar] = []
    new: list[Bar] = []
    at = 0.0
    for _ in range(3):
        for name, size, hue in (("S", 0.6, QK), ("max, scale O", 3.0, EXP), ("P V", 1.0, PV)):
            old.append((at, size, name, hue))
            at += size
    end, at = at, 0.0
    for index in range(3):
        new.append((at, 0.6, "S", QK))
        new.append((at + 0.6, 0.35, "", WAIT))
        at += 0.95
        if index == 1:
            new.append((at, 3.0, "max, scale O", EXP))
            at += 3.0
        new.append((at, 1.0, "P V", PV))
        at += 1.0
    return chart(
        "44i: a vote decides whether O is rescaled",
        "Three passes of 16 keys. 44h computes the maxima and rescales O in every pass. 44i compares "
        "and votes in every pass, and computes maxima and rescales only where a score is too large, "
        "here in the second.",
        (Row("44h", old, 14), Row("44i", new)),
        end,
        (
            "Dashed: four comparisons and the vote. In the second pass of 44i",
            "a score exceeds its reference by more than 8.",
        ),
        left=54,
    )


def halves() -> Canvas:
    canvas, y = begin(
        "44j: one shuffle for two heads",
        "P of key 1 and heads 2 and 3, both in lane 5. In 44i each is a float in a register of its own "
        "and takes a shuffle. In 44j both are halves of one register, and one shuffle brings them to "
        "the lanes that have key 1 of V, where they become floats again.",
        note="Key 1. Left: lane 5. Right: lanes 16 to 31, with its row of V.",
    )
    for name, cells in (
        ("44i", (("head 2 as a float",), ("head 3 as a float",))),
        ("44j", (("head 2", "head 3"),)),
    ):
        canvas.text(
            14,
            y + 6,
            f"{name}: {len(cells)} shuffle{'s' if len(cells) > 1 else ''}",
            size=SMALL,
            bold=True,
        )
        y += 18
        for register in cells:
            for x in (14.0, 282.0):
                width = 144 / len(register)
                for place, text in enumerate(register):
                    fill = f"{HUES[int(text[5])]}-soft"
                    canvas.cell(x + place * width, y, width, 28, text, fill, size=BRIEF)
            canvas.line([(166, y + 14), (276, y + 14)], "muted", thick=1.6, arrow=True)
            y += 34
        y += 10
    canvas.text(14, y + 2, "A row: one register of 32 bits.", "muted", size=SMALL)
    return canvas


# --- 45c to 45e: one thread block after another head --------------------------------------------

HEAD_TILES, PLACES = (9, 2, 7, 3, 8, 6, 1, 5), 4  # an example


def draw_places(canvas: Canvas, y: float, name: str, heads: Sequence[Sequence[int]]) -> float:
    """A row for each place, its heads one after the other."""
    canvas.text(14, y + 6, name, size=SMALL, bold=True)
    y, unit = y + 18, 19.5
    top = y
    for place, mine in enumerate(heads):
        canvas.text(14, y + 9, f"place {place}", "muted", size=BRIEF)
        x = 72.0
        for head in mine:
            width = HEAD_TILES[head] * unit
            canvas.cell(x, y, width, 19, str(head), f"{HUES[head]}-soft", size=BRIEF)
            x += width
        y += 21
    longest = max(sum(HEAD_TILES[head] for head in mine) for mine in heads)
    x = 72 + longest * unit
    canvas.line([(x, top), (x, y)], "red", thick=1.8)
    canvas.text(72, y + 9, f"all done after {longest} tiles", "red", size=SMALL)
    return y + 30


def queue() -> Canvas:
    free: list[list[int]] = [[] for _ in range(PLACES)]
    for head in range(len(HEAD_TILES)):
        free.sort(key=lambda mine: sum(HEAD_TILES[each] for each in mine))
        free[0].append(head)
    free.sort()
    fixed = [list(range(place, len(HEAD_TILES), PLACES)) for place in range(PLACES)]
    canvas, y = begin(
        "45c: who computes which head",
        "Eight heads of different lengths and four places for thread blocks. In 45b a new thread block "
        "starts wherever one has ended: all is done after 13 tiles. In 45c the thread block of place i "
        "computes the heads i and i + 4, and the longest two meet: 17 tiles.",
        note="Number: a head, here one part. Length: its tiles. Four places.",
    )
    y = draw_places(canvas, y, "45b: a new thread block where one ends", free)
    draw_places(canvas, y, "45c: thread block i, parts i and i + 4", fixed)
    return canvas


TILES_OF_HEAD, HEADS_OF_BLOCK = 4, 2


def slots(rung: str) -> list[tuple[str, int]]:
    """What a thread block does, and how many tiles are on their way meanwhile."""
    ahead = stages("45e") - 1
    tiles, shown = TILES_OF_HEAD * HEADS_OF_BLOCK, []
    for tile in range(tiles):
        head_end = (tile // TILES_OF_HEAD + 1) * TILES_OF_HEAD
        loaded = min(tiles if rung == "45e" else head_end, tile + 1 + ahead)
        shown.append((str(tile), loaded - tile - 1))
        if tile + 1 == head_end:
            more = 0 if rung == "45c" else min(ahead, tiles - tile - 1)
            shown.append(("store", more))
            if rung == "45c" and tile + 1 < tiles:
                shown.append(("wait", ahead))
    return shown


def draw_slots(canvas: Canvas, y: float, rung: str) -> float:
    steps = slots(rung)
    canvas.text(14, y + 6, rung, size=SMALL, bold=True)
    cells = []
    for name, _ in steps:
        head = int(name) // TILES_OF_HEAD if name.isdigit() else -1
        cells.append((name, {0: "blue-soft", 1: "green-soft"}.get(head, "grey-soft")))
    y = strip(canvas, y + 18, cells, unit=37)
    for place, (_, count) in enumerate(steps):
        ink = "muted" if count else "red"
        canvas.text(14 + 37 * place + 17, y + 4, str(count), ink, size=SMALL, anchor="middle")
    return y + 26


def early() -> Canvas:
    canvas, y = begin(
        "45d: copies start before the store",
        "A thread block with two heads of four tiles, and below each step the number of tiles on their "
        "way. 45c has none while it computes the last tile of a head and stores it, and then waits "
        "for the first tile of the next. 45d starts two copies before it stores. Its states lie beside "
        "the ring of 96 KB, not in it.",
        note="Below each step: tiles on their way during it.",
    )
    for rung in ("45c", "45d"):
        y = draw_slots(canvas, y, rung)
    plans = decode_facts()["plans"]
    ring = plans["45"][0]["dynamic_shared"] // KB
    states = plans["46"][0]["dynamic_shared"] / KB - ring
    canvas.text(14, y + 8, "Shared memory of a thread block", size=SMALL, bold=True)
    y += 22
    for rung, inside in (("45c", True), ("45d", False)):
        canvas.text(14, y + 14, rung, size=SMALL)
        unit = 3.0
        canvas.cell(54, y, ring * unit, 28, "", "blue-soft")
        canvas.text(64 + states * unit, y + 14, f"ring, {ring} KB", size=SMALL)
        at = 54.0 if inside else 54 + ring * unit + 4
        canvas.cell(at, y, states * unit, 28, "states", "orange-soft", size=BRIEF)
        y += 36
    return canvas


def ahead() -> Canvas:
    canvas, y = begin(
        "45e: the ring runs on",
        "A thread block with two heads of four tiles, and below each step the number of tiles on their "
        "way. In 45d the copies stop at the end of a head: one tile is on its way during tile 2 and "
        "none during tile 3. In 45e they have a position of their own, and two are on their way until "
        "the last tiles.",
        note="Below each step: tiles on their way during it.",
    )
    for rung in ("45d", "45e"):
        y = draw_slots(canvas, y, rung)
    canvas.text(14, y + 6, "45e, two positions", size=SMALL, bold=True)
    y += 20
    tiles, far = TILES_OF_HEAD * HEADS_OF_BLOCK, stages("45e") - 1
    hues = ("blue-soft", "green-soft")
    for name, first in (("products", 0), ("copies", far)):
        canvas.text(14, y + 12, name, size=SMALL)
        cells = [
            (str(tile), hues[tile // TILES_OF_HEAD]) if tile < tiles else ("-", "grey-soft")
            for tile in range(first, first + tiles)
        ]
        y = strip(canvas, y, cells, unit=37, left=88)
    canvas.text(
        14,
        y + 10,
        "The copies reach the next head two steps before the products.",
        "muted",
        size=SMALL,
    )
    return canvas


# --- 46: whose a tile is --------------------------------------------------------------------------

LENGTHS, KV_HEADS, WANTED = (500, 60, 0, 900, 130, 64), 2, 20


def launches() -> Canvas:
    """Two launches back to back, with and without an early begin."""
    start, tiles, merged = 2.4, 6.0, 2.6
    end = start + tiles + merged

    def work(begin: float) -> list[Bar]:
        return [(begin, tiles, "tiles", QK), (begin + tiles, merged, "merge", STORE)]

    first = [(0.0, start, "start", "grey-soft"), *work(start)]
    after = [(end, start, "start", "grey-soft"), *work(end + start)]
    came = start + tiles - 0.6  # as the first blocks leave
    waits = (came + start, end - came - start, "", WAIT)
    early = [(came, start, "start", "grey-soft"), waits, *work(end)]
    return chart(
        "53: the second launch starts under the first",
        "Two launches back to back. In 45b the second starts when the first has ended. In 53 it "
        "starts while the last thread blocks of the first merge, waits for their end, and then loads "
        "its tiles.",
        (
            Row("45b, first", first),
            Row("45b, second", after, 20),
            Row("53, first", first),
            Row("53, second", early),
        ),
        2 * end,
        (
            "start: until the thread blocks run on their SMs.",
            "Dashed: griddepcontrol.wait.",
        ),
    )


def search() -> Canvas:
    keys = tile_of("46")[1]
    each = [-(-length // keys) for length in LENGTHS]
    tiles = [count * KV_HEADS for count in each]
    upto = [sum(tiles[: lane + 1]) for lane in range(len(tiles))]
    behind = [total > WANTED for total in upto]
    own = behind.index(True)
    before = upto[own] - tiles[own]
    head = (WANTED - before) // each[own]
    place = WANTED - before - head * each[own]
    canvas, y = begin(
        f"46: a warp finds tile {WANTED}",
        f"Six sequences of {', '.join(map(str, LENGTHS))} keys and two heads of K and V. Each lane "
        f"counts the tiles of a sequence; a prefix sum makes {', '.join(map(str, upto))} of them. "
        f"Lane {own} is the first whose sum is above {WANTED}: tile {WANTED} is tile {place} of its "
        f"head {head}.",
        note=f"Six sequences, {KV_HEADS} heads of K and V, tiles of {keys} keys.",
    )
    left, unit = 128.0, 50.0
    rows: list[tuple[str, Sequence[object], str]] = [
        ("lane", range(len(LENGTHS)), ""),
        ("1: keys", LENGTHS, "grey-soft"),
        ("2: tiles, all heads", tiles, "blue-soft"),
        ("3: sum up to here", upto, "blue-soft"),
        (f"4: above {WANTED}?", ["yes" if each else "no" for each in behind], "grey-soft"),
    ]
    for name, values, fill in rows:
        canvas.text(14, y + 12, name, size=BRIEF)
        for lane, value in enumerate(values):
            chosen = "green-soft" if lane == own and fill else fill or "paper"
            canvas.cell(left + lane * unit, y, unit - 3, 24, str(value), chosen, size=SMALL)
        y += 30
    told = (
        f"5: The first yes is lane {own}: sequence {own}. {before} tiles stand before it.",
        f"6: {WANTED} - {before} = {WANTED - before}, and a head of it has {each[own]} tiles:",
        f"head {head}, tile {place}, from key {place * keys} on.",
    )
    canvas.lines(14, y + 12, told, size=SMALL)
    return canvas


FIGURES = {
    "decode_search": search,
    "decode_merge": merge,
    "decode_group": group,
    "decode_states": states,
    "decode_banks": banks,
    "decode_vote": vote,
    "decode_halves": halves,
    "decode_queue": queue,
    "decode_early": early,
    "decode_ahead": ahead,
    "decode_launches": launches,
}
