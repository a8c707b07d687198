# SPDX-License-Identifier: MIT
"""The steps from 44 to 46 against a cache: conflicts and whose a tile is; and of 53 two launches."""

from __future__ import annotations


from canvas import Canvas
from orders import QK, STORE, WAIT, Bar, Row, chart


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


FIGURES = {
    "decode_launches": launches,
}
