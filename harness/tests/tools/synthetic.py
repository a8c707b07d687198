"""Synthetic catalogues and results for tests. Nothing here was measured; it must never be written
below plots/results or docs (the device is called "Synthetic GPU")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FAMILIES = {"fp32": "a0 a1 a2 a3 a4 a5", "ampere": "01 02 03 04 05 06 07 08 09 10 11"}
FAMILIES |= {"hopper": "20 21 22 23 24 25 26 27"}
WORDS = "base swizzle kvpipe vpair exp2f batched dbuf causal ragged static peeled".split()
TILES = ("64x32w2", "64x128w4", "64x128w4", "64x128w4", "64x128w4", "128x64w4")
SPEEDS = (45, 290, 291, 288, 303, 310, 297, 305, 312, 330, 352)

MEASURED = "check time_ms tflops tflops_back_to_back gbs clock_mhz power_w".split()
MEASURED += ["resources", "peak_bytes"]
CHECK = {"max_error": 1e-4, "tolerance": 1e-3, "ratio": 0.1, "rows_checked": 1, "rows_total": 1}
CHECK |= {"finite": True, "repeatable": True, "red_zones_intact": True}
POLICY = {"rounds": 5, "l2": "flush", "inputs": "normal", "seed": 1, "flops": "4*B*H*Nq*Nkv*D"}


def rung(family: str, place: int, id: str, parent: str) -> dict[str, Any]:
    name = f"{id}_{WORDS[place % len(WORDS)]}"
    tile = TILES[min(place, len(TILES) - 1)]
    instances = [{"entry": f"fa_{name}_d128", "head_dim": 128, "tile": tile, "ablation": False}]
    return {
        "id": id,
        "name": name,
        "parent": parent,
        "family": family,
        "status": "regression" if name.endswith("dbuf") else "step",
        "min_sm": 90 if family == "hopper" else 80,
        "dtype": "float16",
        "causal": False,
        "ragged": False,
        "lse": False,
        "diff_budget": 60,
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


def write(folder: Path, families: tuple[str, ...], limit: int, **options: Any) -> tuple[Path, Path]:
    """(catalogue file, result file)"""
    listing = catalogue(families, limit)
    paths = (folder / "synthetic_catalogue.json", folder / "synthetic_results.json")
    for path, document in zip(paths, (listing, results(listing, **options))):
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return paths
