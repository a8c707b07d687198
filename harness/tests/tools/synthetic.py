# SPDX-License-Identifier: MIT
"""Synthetic catalogues and results for tests. Nothing here was measured; it must never be written
below plots/results or docs (the device is called "Synthetic GPU")."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

FAMILIES = {"fp32": "a0 a1 a2 a3 a4 a5", "ampere": "01 02 03 04 05 06 07 08 09 10 11"}
FAMILIES |= {"hopper": "20 21 22 23 24 25 26 27"}
WORDS = "base swizzle kvpipe vpair exp2f batched dbuf wide_stores ragged static peeled".split()
TILES = ("64x32w2", "64x128w4", "64x128w4", "64x128w4", "64x128w4", "128x64w4")
SPEEDS = (45, 290, 291, 288, 303, 310, 297, 305, 312, 330, 352)

MEASURED = "check time_ms tflops tflops_back_to_back gbs clock_mhz power_w".split()
MEASURED += ["resources", "peak_bytes"]
CHECK = {"max_error": 1e-4, "reference_error": 0, "tolerance": 1e-3, "floor": 0, "ratio": 0.1}
CHECK |= {"rows_checked": 1, "rows_total": 1}
CHECK |= {"finite": True, "repeatable": True, "red_zones_intact": True}
POLICY = {"rounds": 5, "l2": "flush", "seed": 1, "flops": "4*B*H*Nq*Nkv*D"}


def rung(family: str, place: int, id: str, parent: str) -> dict[str, Any]:
    name = f"{id}_{WORDS[place % len(WORDS)]}"
    tile = "128x128w12" if family == "hopper" else TILES[min(place, len(TILES) - 1)]
    dtype = "float32" if family == "fp32" else "float16"
    instances = [{"entry": f"fa_{name}_d128", "head_dim": 128, "tile": tile, "ablation": False}]
    instances[0] |= {"dtype": dtype, "refused": None}
    return {
        "id": id,
        "name": name,
        "parent": parent,
        "family": family,
        "target": "sm_90a" if family == "hopper" else "sm_80",
        "dtype": dtype,
        "causal": False,
        "ragged": False,
        "lse": False,
        "why_large": None,
        "head_dims": [64, 128],
        "idea": f"synthetic idea of {id}",
        "file": f"kernels/{family}/{name}.cu",
        "chapter": f"docs/{name}.md",
        "instances": instances,
    }


def catalogue(families: tuple[str, ...] = ("ampere",), limit: int = 7) -> dict[str, Any]:
    """The document of `fa list --json`, with at most `limit` rungs a family."""
    rungs = []
    for family in families:
        parent = ""
        for place, id in enumerate(FAMILIES[family].split()[:limit]):
            rungs.append(rung(family, place, id, parent))
            parent = id
    return {"schema": 1, "rungs": rungs}


def problem(seq: int, dim: int = 128, causal: bool = False) -> dict[str, Any]:
    return {
        "batch": 16,
        "heads": 16,
        "seq_q": seq,
        "seq_kv": seq,
        "head_dim": dim,
        "causal": causal,
        "dtype": "float16",
    }


def flops(shape: dict[str, Any]) -> float:
    size = shape["batch"] * shape["heads"] * shape["seq_q"] * shape["seq_kv"] * shape["head_dim"]
    return 4.0 * size / (2 if shape["causal"] else 1)


def empty_row(kind: str, id: str, shape: dict[str, Any], reason: str) -> dict[str, Any]:
    """A row that could not be measured."""
    row: dict[str, Any] = {"kind": kind, "id": id, "variant": "", "problem": shape}
    row |= {"status": "unsupported", "reason": reason, "run": "2000-01-01T00:00:00Z"}
    row |= {"ablation": False, "entry": None} if kind == "rung" else {}
    return row | dict.fromkeys(MEASURED)


def timed_row(kind: str, id: str, shape: dict[str, Any], tflops: float, **extra: Any) -> dict:
    median = flops(shape) / tflops / 1e9
    times = {"median": median, "p10": median * 0.992, "p90": median * 1.015, "min": median * 0.99}
    measured = {
        "status": "ok",
        "check": CHECK,
        "time_ms": times | {"n": 200, "back_to_back": median * 1.04},
        "tflops": tflops,
        "tflops_back_to_back": tflops / 1.04,
        "gbs": 100.0,
        "clock_mhz": 1755.0,
        "power_w": 640.0,
    }
    return empty_row(kind, id, shape, "") | measured | extra


def rung_speed(rung: dict[str, Any], place: int) -> float:
    scale = {"fp32": 0.04, "ampere": 1.0, "hopper": 1.2}[rung["family"]]
    step = 60 * place if rung["family"] == "hopper" else SPEEDS[place % len(SPEEDS)]
    return scale * (step + (300 if rung["family"] == "hopper" else 0))


def rung_rows(rungs: list[dict[str, Any]], shape: dict[str, Any], fill: float) -> list[dict]:
    rows = []
    seen: dict[str, int] = {}
    previous: dict[str, Any] | None = None
    for entry in rungs:
        place = seen.get(entry["family"], 0)
        seen[entry["family"]] = place + 1
        tile = entry["instances"][0]["tile"]
        speed = rung_speed(entry, place) * fill
        if previous and entry["parent"] and previous["instances"][0]["tile"] != tile:
            mark = {"variant": tile, "ablation": True}
            rows.append(timed_row("rung", entry["parent"], shape, 0.8 * speed, **mark))
        rows.append(timed_row("rung", entry["id"], shape, speed, variant=tile))
        previous = entry
    return rows


def results(listing: dict[str, Any], seqs: tuple[int, ...] = (512, 1024, 8192)) -> dict[str, Any]:
    """A whole result file."""
    rows: list[dict] = []
    for seq in seqs:
        shape = problem(seq)
        fill = seq / (seq + 500)
        rows += rung_rows(listing["rungs"], shape, fill)
        rows.append(timed_row("peer", "fa2", shape, 352 * fill, variant="torch 0.0"))
        rows.append(timed_row("peer", "cudnn", shape, 598 * fill, variant="cudnn 0.0"))
        rows.append(empty_row("peer", "triton", shape, "not installed"))
    matmul = {"matmul": [8192, 8192, 8192], "variant": "cuda 0.0"}
    rows.append(timed_row("peer", "cublas", problem(seqs[-1]), 690, **matmul))
    rows.append(copy_row(problem(seqs[-1])))
    return document(rows)


def copy_row(shape: dict[str, Any]) -> dict[str, Any]:
    mark = {"variant": "torch 0.0", "copy_bytes": 1 << 30, "gbs": 4000.0, "check": None}
    none = {"tflops": None, "tflops_back_to_back": None}
    return timed_row("peer", "copy", shape, 1.0, **mark) | none


def single(seq: int) -> dict[str, Any]:
    return {"batch": 1, "heads": 16, "head_dim": 64, "dtype": "float32", "causal": False} | {
        "seq_q": seq,
        "seq_kv": seq,
    }


TENSORS, SCORES = 16 * 4 * 64 * 4, 16 * 4  # bytes for N and for N * N, at that shape


def peak(seq: int, scores: int) -> dict[str, Any]:
    return {"peak_bytes": seq * TENSORS + scores * seq * seq * SCORES}


def single_results(listing: dict[str, Any], longest: int = 65536) -> dict[str, Any]:
    """float32: the first rung and torch_standard hold scores and do not fit at the greatest length,
    where only they, the last rung and torch_efficient are tried."""
    rungs = [entry for entry in listing["rungs"] if entry["dtype"] == "float32"]
    rows: list[dict] = []
    for seq in (512, 2048, 8192, 16384, 32768, longest):
        shape, fits = single(seq), seq < longest
        for place, entry in enumerate(rungs):
            if seq > 8192 and entry not in (rungs[0], rungs[-1]):
                continue
            tile = {"variant": "32x32w4", **peak(seq, 1 if place == 0 else 0)}
            if place == 0 and not fits:
                refused = {"status": "out_of_memory", "reason": "needs more than there is"}
                rows.append(empty_row("rung", entry["id"], shape, "") | refused | tile)
            else:
                rows.append(timed_row("rung", entry["id"], shape, 3.0 + place, **tile))
        version = {"variant": "torch 0.0"}
        fused = version | peak(seq, 0)
        rows.append(timed_row("peer", "torch_efficient", shape, 12.0, **fused))
        if fits:
            rows.append(timed_row("peer", "torch_standard", shape, 8.0, **version, **peak(seq, 2)))
        else:
            refused = {"status": "out_of_memory", "reason": "tried to allocate"}
            rows.append(empty_row("peer", "torch_standard", shape, "") | refused | version)
    matmul = {"matmul": [8192, 8192, 8192], "variant": "cuda 0.0"}
    rows.append(timed_row("peer", "cublas", single(8192), 50.0, **matmul))
    rows.append(copy_row(single(8192)))
    whole = document(rows)
    whole["device"]["memory"] = 144_000_000_000
    return whole


SPREAD_SPEEDS = {"20": 500.0, "21": 600.0, "fa2": 350.0, "cudnn": 602.0, "fa3": 590.0}


def spread_results() -> dict[str, Any]:
    """Two rungs and three peers over the spreads of the scores. The last rung is slow where they
    rise; fa3 was not tried there."""
    rows: list[dict] = []
    for change in ({}, *({"spread": 2.0**i} for i in range(1, 5)), {"inputs": "rising"}):
        shape = problem(8192) | change
        for place, (id, speed) in enumerate(SPREAD_SPEEDS.items()):
            if "inputs" in change and id == "fa3":
                continue
            slow = 0.9 if "inputs" in change and id == "21" else 1.0
            kind, variant = ("rung", "128x128w12") if id.isdigit() else ("peer", "0.0")
            fill = slow * (1 - 0.001 * place * change.get("spread", 1.0))
            rows.append(timed_row(kind, id, shape, speed * fill, variant=variant))
    return document(rows)


def document(rows: list[dict]) -> dict[str, Any]:
    return {
        "schema": 1,
        "generator": {
            "version": "0.0.0",
            "git_sha": "0" * 40,
            "git_dirty": False,
            "nvcc": "0.0",
            "flags": "",
            "argv": ["all"],
        },
        "device": {
            "kind": "gpu",
            "name": "Synthetic GPU",
            "sm": 90,
            "sms": 132,
            "memory": 1,
            "l2": 1,
            "driver": "0",
            "power_limit": 700,
        },
        "policy": POLICY,
        "rows": rows,
    }


def counted() -> dict[str, Any]:
    """What `fa explain all --json` writes: a rung with FP32 arithmetic, one with mma, one with wgmma."""
    shape = problem(1024) | {"batch": 1, "heads": 2}
    products = 2 * 4 * 1024 * 1024 * 128 // (2 * 16 * 8 * 16)
    common = {"float": 4096, "mbarrier": 1280, "bulk_copy": 288, "bulk_load_sectors": 3 * products}
    counts = {
        "a0": {"instructions": 27_000_000, "float": 9_000_000},
        "20": common | {"instructions": 4 * products, "tensor": products, "ldmatrix": 81920},
        "21": common
        | {"instructions": 2 * products, "wgmma": 22528, "mbarrier": 2560}
        | {"wgmma_wavefronts": products // 2},
    }
    rows = []
    for id, each in counts.items():
        dtype = {"dtype": "float32"} if id == "a0" else {}
        row = empty_row("rung", id, shape | dtype, "")
        rows.append(row | {"status": "ok", "variant": "128x128w8", "check": CHECK, "counts": each})
    whole = document(rows)
    whole["device"] |= {"kind": "vm", "name": "Synthetic machine"}
    return whole


SWEPT = {"128x64w4": 310.0, "32x32w2": 190.0, "64x64w4": 280.0}


def used(tile: str) -> dict[str, Any]:
    registers = 255 if tile == "128x64w4" else 128
    limited_by = ["registers"] if tile == "128x64w4" else ["registers", "shared memory"]
    resources = {"registers": registers, "shared_bytes": 65536, "spill_bytes": 8}
    return resources | {"local_bytes": 0, "blocks_per_sm": 2, "limited_by": limited_by}


LIMITS = {"attention_registers": 900.0, "attention_shared": 880.0, "mma_sync": 640.0, "fma": 60.0}
LIMITS |= {"memory_read": 4500.0, "memory_copy": 4200.0, "l2_read": 7000.0}


def limits() -> dict[str, Any]:
    """What `fa limits --json` writes. Back to back every loop has 0.9 of its rate."""
    rows = []
    for id, rate in LIMITS.items():
        row = {"id": id, "what": f"synthetic {id}", "entry": f"limit_{id}", "status": "ok"}
        row |= {"reason": "", "unit": "TFLOPS" if rate < 1000 else "GB/s", "threads": 256}
        row |= {"blocks": 132, "shared_bytes": 0, "buffer_bytes": None, "iterations": 1000}
        row |= {"work": rate * 1e10, "rate": rate, "rate_back_to_back": 0.9 * rate}
        times = {"median": 10.0, "p10": 9.9, "p90": 10.1, "min": 9.8, "n": 24, "back_to_back": 11.1}
        rows.append(
            row | {"time_ms": times, "per_clock_sm": 1.0, "clock_mhz": 1700, "power_w": 690}
        )
    whole = document(rows)
    timing = {"rounds": 3, "gap_ms": [3, 25], "lead_ms": 60, "back_to_back_ms": 240, "l2": "warm"}
    return whole | {
        "kind": "limits",
        "policy": timing | {"inputs": "normal", "seed": 1, "launch_ms": 10},
    }


def sweep() -> dict[str, Any]:
    """What `fa tune 06 --json` writes: three tiles, and one that was wrong."""
    rows = []
    for tile, speed in SWEPT.items():
        mark = {"variant": tile, "ablation": tile != "128x64w4", "entry": "fa_06_batched_d128"}
        rows.append(timed_row("rung", "06", problem(8192), speed, **mark, resources=used(tile)))
    wrong = empty_row("rung", "06", problem(8192), "an element is not finite")
    rows.append(wrong | {"status": "incorrect", "variant": "256x64w8", "ablation": True})
    return results(catalogue()) | {"rows": rows}


def write(folder: Path, families: tuple[str, ...], limit: int, **options: Any) -> tuple[Path, Path]:
    """(catalogue file, result file)"""
    listing = catalogue(families, limit)
    paths = (folder / "synthetic_catalogue.json", folder / "synthetic_results.json")
    for path, document in zip(paths, (listing, results(listing, **options))):
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return paths


Speed = Callable[[dict[str, Any], int, int], float]


def noise(row: dict[str, Any], card: int, run: int) -> float:
    """Of a row, within 0.2 %; and the first card is 1 % slower than the second."""
    own = random.Random(f"{row['id']} {row['variant']} {row['problem']} {card} {run}")
    return (1 + 0.01 * card) * own.uniform(0.998, 1.002)


def faster(row: dict[str, Any], factor: float) -> dict[str, Any]:
    """The row as a card that is this much faster has it."""
    changed = dict(row)
    for name in ("tflops", "tflops_back_to_back", "gbs"):
        if row[name] is not None:
            changed[name] = row[name] * factor
    if row["time_ms"]:
        times = row["time_ms"].items()
        changed["time_ms"] = {name: at if name == "n" else at / factor for name, at in times}
    return changed


def write_runs(
    folder: Path, document: dict[str, Any], speed: Speed = noise, cards: int = 2, runs: int = 5
) -> Path:
    """A set: the document as each run of each card measured it."""
    folder.mkdir(parents=True, exist_ok=True)
    for card in range(1, cards + 1):
        for run in range(1, runs + 1):
            own = copy.deepcopy(document)
            own["rows"] = [faster(row, speed(row, card, run)) for row in own["rows"]]
            path = folder / f"card{card}_run{run}.json"
            path.write_text(json.dumps(own), encoding="utf-8")
    return folder
