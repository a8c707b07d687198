# SPDX-License-Identifier: MIT
"""The losses of a small transformer that was trained with three attentions, twice each.

plots/training/h200.json is what harness/python/tests/train.py wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from canvas import SMALL, Canvas, begin
from ladder import read_json

LOSSES = Path(__file__).resolve().parent.parent / "training" / "h200.json"
EACH = 5  # steps that a point is the mean of
NAMES = {
    "pytorch_math": ("PyTorch, formula", "muted"),
    "pytorch": ("PyTorch, fused", "blue"),
    "flash_ladder": ("Flash Ladder", "orange"),
}
LEFT, RIGHT = 58.0, 426.0


def panel(
    canvas: Canvas,
    y: float,
    height: float,
    scale: tuple[Sequence[float], str],
    curves: dict[str, Sequence[float]],
) -> None:
    """Curves from the top `y` on. `scale`: values with a line each, highest first, and their format."""
    ticks, form = scale
    unit = height / (ticks[0] - ticks[-1])
    for tick in ticks:
        at = y + (ticks[0] - tick) * unit
        canvas.line([(LEFT, at), (RIGHT, at)])
        canvas.text(LEFT - 6, at, f"{tick:{form}}", "muted", size=SMALL, anchor="end")
    for name, values in curves.items():
        means = [mean(values[at : at + EACH]) for at in range(0, len(values), EACH)]
        across = (RIGHT - LEFT) / len(values) * EACH
        points = [
            (LEFT + (at + 0.5) * across, y + (ticks[0] - value) * unit)
            for at, value in enumerate(means)
        ]
        canvas.line(points, NAMES[name][1], thick=1.6)


def losses() -> Canvas:
    document = read_json(LOSSES, "what train.py writes", dict)
    runs: dict[str, list[list[float]]] = {name: document["losses"][name] for name in NAMES}
    steps = len(runs["pytorch"][0])
    canvas, y = begin(
        "Training with three attentions",
        f"Loss of a transformer of {document['layers']} layers over {steps} steps: three curves that cannot be "
        "told apart. Below them the difference of two runs of each attention: near 0 for 100 steps, then all "
        "three leave it, up and down.",
        note=f"{document['device']}; each point is the mean of {EACH} steps.",
    )
    for i, (name, hue) in enumerate(NAMES.values()):
        canvas.line([(14 + i * 146, y + 2), (32 + i * 146, y + 2)], hue, thick=3)
        canvas.text(38 + i * 146, y + 2, name, size=SMALL)
    y += 28
    canvas.text(14, y, "loss, nats per byte", size=SMALL, bold=True)
    panel(canvas, y + 20, 130, ((5, 4, 3, 2, 1), ".0f"), {name: runs[name][0] for name in NAMES})
    y += 180
    canvas.text(14, y, "difference of two runs with the same attention", size=SMALL, bold=True)
    differences = {
        name: [one - other for one, other in zip(*runs[name], strict=True)] for name in NAMES
    }
    panel(canvas, y + 20, 130, ((0.04, 0.02, 0, -0.02, -0.04, -0.06), ".2f"), differences)
    y += 166
    for step in range(0, steps + 1, 100):
        at = LEFT + (RIGHT - LEFT) * step / steps
        anchor = "end" if step == steps else "middle"
        canvas.text(at, y, f"step {step}" if step == steps else f"{step}", "muted", size=SMALL, anchor=anchor)
    return canvas


FIGURES: dict[str, Callable[[], Canvas]] = {"training": losses}
