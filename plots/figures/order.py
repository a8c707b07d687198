#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes down in which order the warps of a thread block work on the virtual machine.

  plots/figures/order.py --write     runs fa run RUNG --trace and writes order.json
  plots/figures/order.py --check     exit 1 when the machine does something else

A span is [begin, length, kind]; its unit is one PTX instruction that the machine executes for a
warp. Of a warpgroup the first warp is kept, of the producers warp 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ORDER = HERE / "order.json"
REPOSITORY = HERE.parent.parent
RUNGS = ("22", "23", "24", "25", "33", "35")
SHAPE = ("--batch", "1", "--heads", "1", "--seq", "512", "--dim", "128")
KINDS = {"matrix": "product", "arithmetic": "arithmetic", "copy": "copy"}


def trace(rung: str) -> dict[str, Any]:
    fa = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build") / "fa"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "trace.json"
        words = [str(fa), "run", rung, "--device", "vm", *SHAPE, "--trace", str(out)]
        subprocess.run(words, check=True, capture_output=True)
        return dict(json.loads(out.read_text(encoding="utf-8")))


def kind_of(name: str) -> str:
    """product, arithmetic, copy, wait_data, wait_products, wait_turn, other."""
    if name.startswith("wait: mbarrier"):
        return "wait_data"
    if name.startswith("wait: wgmma"):
        return "wait_products"
    if name.startswith("wait: barrier"):
        return "wait_turn"
    return KINDS.get(name, "other")


def spans(document: dict[str, Any], warp: int) -> list[list[Any]]:
    """Neighbours of one kind are one span."""
    found: list[list[Any]] = []
    events = [each for each in document["traceEvents"] if each["ph"] == "X" and each["tid"] == warp]
    for event in sorted(events, key=lambda each: each["ts"]):
        kind = kind_of(event["name"])
        if found and found[-1][2] == kind and found[-1][0] + found[-1][1] == event["ts"]:
            found[-1][1] += event["dur"]
        else:
            found.append([event["ts"], event["dur"], kind])
    return found


def text() -> str:
    lines = []
    for rung in RUNGS:
        document = trace(rung)
        warps = (
            {"producer": 0, "consumer 0": 4, "consumer 1": 8}
            if rung != "22"
            else {"warps 0-3": 0, "warps 4-7": 4}
        )
        of_rung = {name: spans(document, warp) for name, warp in warps.items()}
        lines.append(f"  {json.dumps(rung)}: {json.dumps(of_rung)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write order.json")
    action.add_argument("--check", action="store_true", help="exit 1 when it is out of date")
    arguments = parser.parse_args(argv)
    found = text()
    if arguments.write:
        ORDER.write_text(found, encoding="utf-8")
        return 0
    if ORDER.read_text(encoding="utf-8") != found:
        print(
            "order.py: order.json is out of date; run plots/figures/order.py --write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
