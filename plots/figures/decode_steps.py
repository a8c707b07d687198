# SPDX-License-Identifier: MIT
"""The steps from 44 to 46 against a cache: conflicts, the ring between two heads, whose a tile is;
and of 53 two launches."""

from __future__ import annotations

from collections.abc import Sequence

import decode
from canvas import HUES, SMALL, Canvas, begin
from decode_figures import BRIEF, DIM, KB, decode_facts, require_formula, strip
from orders import QK, STORE, WAIT, Bar, Row, chart


def place_of(row: int, chunk: int, swizzled: bool) -> int:
    """The 16-byte place in which a chunk of a row lies, modulo the eight that the banks have."""
    require_formula("44g", "row * D * 2 + ((chunk ^ (row & 7)) << 4)")
    return (chunk ^ (row & 7) if swizzled else chunk) % 8


def banks() -> Canvas:
    """Eight rows and the first eight places of each: what one phase of a load reads."""
    rows = range(8)
    phases = (
        ("K, no swizzle", False, [(row, 0) for row in rows]),
        ("44g: K, ldmatrix", True, [(row, 0) for row in rows]),
        ("44g: row 5 of V", True, [(5, chunk) for chunk in rows]),
    )
    canvas, y = begin(
        "44g: a column and a row, one wavefront each",
        "Eight rows by eight places of 16 bytes. Without the swizzle a phase of ldmatrix reads chunk 0 of "
        "eight rows, all in place 0: eight wavefronts. With it they are in eight different places: one "
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
        text = f"{most} wavefront{'s' if most > 1 else ''}"
        ink = "red" if most > 1 else "green"
        canvas.text(left, y + 20 + 8 * size + 14, text, ink, size=SMALL, bold=True)
    y += 20 + 8 * size + 34
    canvas.text(
        14, y, "A place: four banks. One wavefront serves each place once.", "muted", size=SMALL
    )
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
    require_formula("45c", "part < parts; part += gridDim.x")
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
    ahead = decode.constant("45e", "kStages") - 1
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
    require_formula("45d", "for (int i = 0; i < kStages - 1; ++i) load_step(at.key + i * Bc);")
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
    ring = decode.constant("45d", "kStages") * 2 * decode.tile_keys("45d") * DIM * 2 // KB
    states = decode_facts()["plans"]["46"][0]["dynamic_shared"] / KB - ring
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
    require_formula("45e", "load_step(tile + kStages - 1);")
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
    tiles, far = TILES_OF_HEAD * HEADS_OF_BLOCK, decode.constant("45e", "kStages") - 1
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
    require_formula("53", "launch_next();\n    wait_for_last();")
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
    require_formula("46", "return (length_of(in, entry) + Bc - 1) / Bc * (in.heads / in.group);")
    require_formula("46", "at.head = (tile - before) / tiles;")
    keys = 64
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
    "decode_banks": banks,
    "decode_queue": queue,
    "decode_early": early,
    "decode_ahead": ahead,
    "decode_launches": launches,
}
