# SPDX-License-Identifier: MIT
"""The steps from 44 to 46 against a cache: conflicts and whose a tile is; and of 53 two launches."""

from __future__ import annotations

from collections.abc import Sequence

from canvas import SMALL, Canvas, begin
from decode_figures import BRIEF, counts, tile_of
from orders import QK, STORE, WAIT, Bar, Row, chart


def place_of(row: int, chunk: int, swizzled: bool) -> int:
    """The 16-byte place in which a chunk of a row lies, modulo the eight that the banks have."""
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
        "Two launches back to back. In 45 the second starts when the first has ended. In 53 it "
        "starts while the last thread blocks of the first merge, waits for their end, and then loads "
        "its tiles.",
        (
            Row("45, first", first),
            Row("45, second", after, 20),
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
    "decode_banks": banks,
    "decode_launches": launches,
}
