# SPDX-License-Identifier: MIT
"""Memories: how large and how fast they are, what lives where, what is moved, the roofline's words."""

from __future__ import annotations

import functools
from pathlib import Path

import limits
from canvas import SMALL, Canvas, begin
from ladder import Results

RESULTS = Path(__file__).resolve().parent.parent / "results"
CARD = RESULTS / "h200" / "limits.json"
COUNTS = RESULTS / "vm" / "counts.json"
REGISTER_BYTES, SHARED_BYTES = 256 << 10, 228 << 10  # of an SM of compute capability 9.0


@functools.cache
def card() -> limits.Limits:
    return limits.Limits.load(CARD)


def size_text(value: float) -> str:
    return f"{value / 1e9:.0f} GB" if value >= 1e9 else f"{value / 2**20:.0f} MB"


def sm() -> Canvas:
    """What a thread block meets: four schedulers with their units, and the memory that they share."""
    canvas, y = begin(
        "An SM, one of 132",
        "Four equal parts, each with a scheduler, 16,384 registers, 32 FP32 units, 4 special function units "
        "and a tensor core. Below them 228 KB of shared memory for all four, a thread block of eight warps "
        "above, two warps in each part, and outside the L2 and the device memory.",
        note="Colour: the warps of a thread block, spread over four schedulers.",
    )
    hues = ("blue", "orange", "green", "violet")
    canvas.text(14, y + 11, "block", size=SMALL, bold=True)
    for warp in range(8):
        canvas.cell(62 + warp * 45.5, y, 43, 22, f"w{warp}", f"{hues[warp % 4]}-soft", size=SMALL)
    y += 40
    top = y
    canvas.rect(14, top, 412, 254, "none", "muted", radius=6)
    width, gap = 94.0, 6.0
    for part, hue in enumerate(hues):
        x = 24 + part * (width + gap)
        y = top + 10
        for lines, height, fill in (
            (("scheduler",), 24, f"{hue}-soft"),
            (("16,384", "registers"), 38, "grey-soft"),
            (("32 FP32", "units"), 38, "grey-soft"),
            (("4 special", "function units"), 38, "grey-soft"),
            (("tensor core",), 26, "grey-soft"),
        ):
            canvas.rect(x, y, width, height, fill)
            for place, line in enumerate(lines):
                middle = y + height / 2 + (place - (len(lines) - 1) / 2) * 15
                canvas.text(x + width / 2, middle, line, size=SMALL, anchor="middle")
            y += height + 4
    canvas.rect(24, y + 4, 394, 40, "teal-soft", "teal")
    canvas.text(221, y + 24, "shared memory, 228 KB", size=SMALL, anchor="middle")
    y = top + 254
    for below in ("L2, 60 MB: all SMs", "device memory, 150 GB"):
        canvas.line([(221, y), (221, y + 16)], "muted", arrow=True)
        canvas.rect(64, y + 17, 314, 26, "grey-soft", "line")
        canvas.text(221, y + 30, below, size=SMALL, anchor="middle")
        y += 43
    return canvas


def pyramid() -> Canvas:
    """Sizes as areas, rates as lengths."""
    measured, device = card(), card().document["device"]
    shared, l2, memory = map(measured.traffic, ("shared_load", "l2_read", "memory_read"))
    canvas, y = begin(
        "The memories of an H200, to scale",
        f"Rates as bars: shared memory {shared / 1e3:.0f}, L2 {l2 / 1e3:.0f}, device memory "
        f"{memory / 1e3:.1f} terabytes per second. Sizes as areas: device memory is a large square "
        "in which L2, all shared memory and all registers are squares of a few pixels.",
        note="Bars: measured reads. Areas: capacity, all SMs together.",
    )
    sms = device["sms"]
    rows = (
        ("registers", sms * REGISTER_BYTES, None, "violet"),
        ("shared memory", sms * SHARED_BYTES, shared, "green"),
        ("L2", device["l2"], l2, "blue"),
        ("device memory", device["memory"], memory, "orange"),
    )
    fastest = max(rate for *_, rate, _ in rows if rate)
    for name, size, rate, hue in rows:
        canvas.text(14, y + 8, name, size=SMALL, bold=True)
        canvas.text(128, y + 8, size_text(size), size=SMALL)
        if rate:
            canvas.rect(196, y, 160 * rate / fastest, 16, hue)
            canvas.text(200 + 160 * rate / fastest, y + 8, f"{rate / 1e3:.1f} TB/s", size=SMALL)
        else:
            canvas.text(196, y + 8, "not measured", "muted", size=SMALL)
        y += 26
    y += 6
    side = 200.0
    canvas.rect(14, y, side, side, "orange-soft", "orange")
    canvas.text(24, y + 18, "device memory", "orange", size=SMALL)
    canvas.text(24, y + 36, size_text(device["memory"]), "orange", size=SMALL)
    for index, (name, size, _, hue) in enumerate(rows[:3]):
        edge = side * (size / device["memory"]) ** 0.5
        place = y + 84 + index * 40
        canvas.rect(150, place - edge / 2, edge, edge, hue, radius=0)
        canvas.line([(158 + edge / 2, place), (236, place)], hue)
        canvas.text(242, place, f"{name}, {size_text(size)}", hue, size=SMALL)
    canvas.lines(
        242,
        y + 14,
        ["The same scale: the small", "squares are the memory", "that is fast."],
        "muted",
        size=SMALL,
    )
    return canvas


@functools.cache
def counted_results() -> Results:
    return Results.load(COUNTS)


@functools.cache
def counts(rung: str, dim: int) -> dict[str, int]:
    (row,) = (
        row
        for row in counted_results().rows
        if row.id == rung and row.problem.head_dim == dim and not row.ablation
    )
    return dict(row.data["counts"])


TRAFFIC_DIM, TRAFFIC_TILES, TRAFFIC_TENSOR = 64, 1024 // 32, 2 * 1024 * 64 * 4


def traffic() -> Canvas:
    """How often a2 and a3 read and write each tensor; totals are the machine's counts."""
    canvas, y = begin(
        "What a2 and a3 move: N = 1024, d = 64, 2 heads",
        "a2 reads K and V once, and Q and O 32 times each, and writes O 32 times. a3 reads K "
        "and V 32 "
        "times and Q once, and writes O once. Reads are nearly equal, writes fall from 19 to "
        "half a "
        "megabyte.",
        note="32 tiles of 32 rows. Totals: sectors counted by the machine.",
    )
    n = TRAFFIC_TILES
    rows: tuple[tuple[str, str, str, tuple[tuple[str, int, str], ...]], ...] = (
        (
            "a2",
            "load",
            "reads",
            (("K", 1, "green"), ("V", 1, "teal"), ("Q", n, "blue"), ("O", n, "orange")),
        ),
        ("a2", "store", "writes", (("O", n, "orange"),)),
        ("a3", "load", "reads", (("Q", 1, "blue"), ("K", n, "green"), ("V", n, "teal"))),
        ("a3", "store", "writes", (("O", 1, "orange"),)),
    )
    unit = 290 / (counts("a2", TRAFFIC_DIM)["global_load_sectors"] * 32)
    for rung, key, name, parts in rows:
        total = counts(rung, TRAFFIC_DIM)[f"global_{key}_sectors"] * 32
        canvas.text(14, y + 16, f"{rung} {name}", size=SMALL, bold=True)
        x = 92.0
        for tensor, times, hue in parts:
            width = times * TRAFFIC_TENSOR * unit
            canvas.rect(x, y, width, 32, f"{hue}-soft", "paper")
            if times > 1:
                canvas.text(
                    x + width / 2, y + 16, f"{tensor} x {times}", size=SMALL, anchor="middle"
                )
            x += width
        rest = total - sum(times for _, times, _ in parts) * TRAFFIC_TENSOR
        if rest > 0:
            canvas.rect(x, y, rest * unit, 32, "grey-soft", "paper")
            x += rest * unit
        label = " ".join(tensor for tensor, times, _ in parts if times == 1)
        total_text(canvas, x, y, total, label)
        y += 52
    canvas.text(
        14, y + 2, "Grey: row maxima and sums, in device memory in a2.", "muted", size=SMALL
    )
    canvas.text(
        14,
        y + 20,
        "All thread blocks of a3 read the same K and V: L2 serves them.",
        "muted",
        size=SMALL,
    )
    return canvas


def total_text(canvas: Canvas, x: float, y: float, total: int, once: str) -> None:
    text = f"{total / 1e6:.1f} MB" + (f" ({once} x 1)" if once else "")
    if x < 250:
        canvas.text(x + 6, y + 16, text, size=SMALL)
    else:
        canvas.text(92, y + 41, text, "muted", size=SMALL)


def coalescing() -> Canvas:
    """Sectors of 32 bytes that one load of 32 lanes touches."""
    canvas, y = begin(
        "One load of a warp, 4 bytes per lane: sectors",
        "Neighbouring floats: 32 lanes touch 4 sectors of 32 bytes. Every eighth float: each lane "
        "touches a sector of its own, 32 sectors, seven eighths of which are not used.",
        note="One cell: a float. A frame: a sector of 32 bytes.",
    )
    for stride, name in ((1, "lane i reads float i"), (8, "lane i reads float 8 i")):
        sectors = len({lane * stride * 4 // 32 for lane in range(32)})
        canvas.text(14, y + 8, name, size=SMALL, bold=True)
        used = f"{sectors} sectors, {'all' if sectors == 4 else f'1/{sectors * 32 // 128}'} of them used"
        canvas.text(
            426,
            y + 8,
            used,
            "green" if sectors == 4 else "red",
            size=SMALL,
            anchor="end",
            bold=True,
        )
        y += 24
        for cell in range(40):
            lane = cell // stride if cell % stride == 0 and cell // stride < 32 else None
            fill = "grey-soft" if lane is None else "green-soft" if sectors == 4 else "red-soft"
            canvas.rect(20 + cell * 10, y, 10, 24, fill, "paper")
        for sector in range(5):
            canvas.rect(20 + sector * 80, y, 80, 24, "none", "muted")
        if stride == 8:
            canvas.text(14, y + 38, "and 27 sectors more", "muted", size=SMALL)
        y += 56
    return canvas


def operands() -> Canvas:
    """Bytes that wgmma reads from shared memory in an iteration of one consumer, 26 and 27."""
    canvas, y = begin(
        "27: reads from shared memory per iteration",
        "Reads per consumer and iteration. 26: Q 16, K 32 and V 32 kilobytes, 80 in all. 27: Q is "
        "in registers, and 64 remain.",
        note="One consumer: 64 queries x 128 keys, head_dim 128.",
    )
    tile, query = 128 * 128 * 2 // 1024, 64 * 128 * 2 // 1024
    for rung, with_query in (("26", True), ("27", False)):
        x = 50.0
        canvas.text(14, y + 15, rung, bold=True)
        parts = [("Q", query, "red"), ("K", tile, "green"), ("V", tile, "teal")]
        total = 0
        for name, size, hue in parts:
            if name == "Q" and not with_query:
                continue
            canvas.cell(x, y, size * 4, 30, f"{name} {size} KB", f"{hue}-soft")
            x += size * 4
            total += size
        canvas.text(x + 6, y + 15, f"{total}", size=SMALL, bold=True)
        y += 42
    canvas.text(
        14,
        y + 4,
        "S, P and O are in registers in both. Two consumers, and the",
        "muted",
        size=SMALL,
    )
    canvas.text(
        14,
        y + 21,
        f"TMA writes {2 * tile} KB: {2 * (2 * tile + query) + 2 * tile} KB per iteration become {2 * 2 * tile + 2 * tile}.",
        "muted",
        size=SMALL,
    )
    return canvas


def reads_of_warps() -> Canvas:
    """20 and 21: who reads the K tile of an iteration."""
    canvas, y = begin(
        "21: who reads K in an iteration of 128 x 128",
        "20: each of eight warps loads the whole K tile into its registers. 21: each of two "
        "warpgroups passes a descriptor of the tile, and the tensor cores read the tile.",
    )
    for x, name in ((14.0, "20: eight warps, ldmatrix"), (232.0, "21: warpgroups, wgmma")):
        canvas.text(x, y + 6, name, size=SMALL, bold=True)
    top = y + 26
    for warp in range(8):
        canvas.cell(14, top + warp * 26, 70, 22, f"warp {warp}", "blue-soft")
        canvas.line([(138, top + 104), (88, top + warp * 26 + 11)], "orange", thick=1.3, arrow=True)
    canvas.rect(138, top + 64, 64, 80, "green-soft", "green")
    canvas.lines(170, top + 96, ["K tile", "32 KB"], size=SMALL, anchor="middle")
    for group in range(2):
        canvas.cell(
            232, top + group * 104, 84, 96, f"warps {4 * group}-{4 * group + 3}", "blue-soft"
        )
        canvas.line(
            [(318, top + group * 104 + 48), (360, top + 104 + (group * 2 - 1) * 12)],
            "blue",
            thick=1.3,
            dashed=True,
            arrow=True,
        )
    canvas.rect(362, top + 64, 64, 80, "green-soft", "green")
    canvas.lines(394, top + 96, ["K tile", "32 KB"], size=SMALL, anchor="middle")
    canvas.lines(14, top + 8 * 26 + 14, ["8 x 32 KB into", "registers"], "orange", size=SMALL)
    canvas.lines(
        232,
        top + 8 * 26 + 14,
        ["64-bit descriptors; the", "tensor cores read K"],
        "blue",
        size=SMALL,
    )
    return canvas


FIGURES = {
    "sm": sm,
    "pyramid": pyramid,
    "traffic": traffic,
    "coalescing": coalescing,
    "operands": operands,
    "reads_of_warps": reads_of_warps,
}
