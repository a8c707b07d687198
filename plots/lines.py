# SPDX-License-Identifier: MIT
"""What charts with a line for every rung and peer share: which lines are named, and how all are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import style
from colours import INK, LINE, OUTSTANDING, light
from ladder import PEER_NAMES, SHORT_NAMES, Results, Row, Rung
from matplotlib.axes import Axes
from style import Form, Room

PEER_DASHES = {"fa2": (5, 2), "cudnn": (2, 2), "triton": (1, 2), "fa3": (7, 2, 1, 2)}
PEER_DASHES |= {"flashinfer": (7, 2, 1, 2, 1, 2)}
HEIGHT = 4.2  # inches of a plot
ROOM = {False: Room(0.55, 2.45), True: Room(0.55, 2.05)}  # is_narrow ->
KEY = "Five rungs are named, and grey are the others. Dashed: other implementations."


@dataclass(frozen=True)
class Line:
    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    rung: Rung | None = None  # None: a peer
    dashes: tuple[int, ...] = ()
    words: str = ""  # where it is pointed at


def of_rungs(
    results: Results, rungs: Iterable[Rung], points: Callable[[list[Row]], tuple], unit: str
) -> list[Line]:
    """`points` gives the places of a rung's rows, and the values there."""
    found = []
    for rung in rungs:
        rows = [row for row in results.timed() if (row.kind, row.id) == ("rung", rung.id)]
        xs, ys = points([row for row in rows if not row.ablation])
        words = f"{ys[-1]:.0f} {unit} at the right end" if ys else ""
        found.append(Line(rung.title, xs, ys, rung, words=words))
    return [line for line in found if line.xs]


def of_peers(
    results: Results, points: Callable[[list[Row]], tuple], form: Form
) -> list[Line]:
    names = PEER_NAMES | (SHORT_NAMES if form.is_narrow else {})
    found = []
    for id in results.peers():
        xs, ys = points([row for row in results.timed() if (row.kind, row.id) == ("peer", id)])
        found.append(Line(names.get(id, id), xs, ys, dashes=PEER_DASHES.get(id, (3, 2))))
    return [line for line in found if line.xs]


def outstanding(values: Sequence[float]) -> dict[int, str]:
    """Of lines that end at these values, those that are named, with their colours: the first, the
    last, and then one by one those that end farthest from all of these."""
    chosen = {0, len(values) - 1} if values else set()

    def distance(index: int) -> float:
        return min(abs(values[index] - values[other]) for other in chosen)

    while len(chosen) < min(len(OUTSTANDING), len(values)):
        left = [index for index in range(len(values)) if index not in chosen]
        chosen.add(max(left, key=distance))
    return dict(zip(sorted(chosen), map(light, OUTSTANDING)))


def look_of(line: Line, colour: str | None) -> dict[str, object]:
    """`colour` is that of a rung that is named."""
    if line.rung is None:
        return {"color": INK, "linewidth": 1.3, "dashes": line.dashes, "zorder": 3}
    if colour is None:
        return {"color": LINE, "linewidth": 1.3, "zorder": 2}
    return {"color": colour, "linewidth": 2.2, "marker": "o", "markersize": 4.5, "zorder": 4}


def draw(
    axes: Axes,
    lines: Sequence[Line],
    place: Callable[[float], float] = float,
    whole: Callable[[Line], int] = lambda line: len(line.xs),
) -> list[style.End]:
    """Draws lines, rungs first, and answers with what is written at the ends of those that are named.
    `place` is the height of a value; `whole` the number of points that a line leads through: a thin one
    leads to those behind."""
    rungs = [line for line in lines if line.rung]
    named = outstanding([place(line.ys[-1]) for line in rungs])
    ends = []
    for index, line in enumerate(lines):
        colour = named.get(index) if line.rung else INK
        look = look_of(line, colour)
        heights = [place(value) for value in line.ys]
        most = whole(line)
        axes.plot(line.xs[:most], heights[:most], clip_on=False, **look)
        if most < len(line.xs):
            thin = look | {"linewidth": 0.7, "dashes": (1, 2)}
            axes.plot(line.xs[most - 1 :], heights[most - 1 :], clip_on=False, **thin)
        if line.rung:
            style.link_line(axes, line.xs, heights, line.rung, line.words)
        if colour:
            ends.append(style.End(line.name, colour, (line.xs[-1], heights[-1]), line.ys[-1]))
    return ends
