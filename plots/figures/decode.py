#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes down what the decode rungs launch and read, for their figures.

  plots/figures/decode.py --write     runs fa plan and fa explain and writes decode.json
  plots/figures/decode.py --check     exit 1 when they answer something else

`plans` has the launches for one sequence of 8192 keys on a card of 132 SMs, `reads` the bytes that
the machine counts on a smaller problem.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ladder import LadderError, run_fa  # noqa: E402

FACTS = HERE / "decode.json"
PLANNED = ("42", "43", "47", "50")
LONG = ("--batch", "1", "--heads", "32", "--kv-heads", "8", "--seq", "1", "--seq-kv", "8192")
COUNTED = ("40", "41")
SHORT = ("--batch", "1", "--heads", "8", "--kv-heads", "2", "--seq", "1", "--seq-kv", "1024")


def fa(*words: str) -> dict[str, Any]:
    return dict(json.loads(run_fa(*words, "--dim", "128", "--json")))


def launches(plan: dict[str, Any]) -> list[dict[str, Any]]:
    kept = ("grid", "block", "dynamic_shared")
    return [{name: launch[name] for name in kept} for launch in plan["launches"]]


def text() -> str:
    plans = {
        plan["rung"].split("_")[0]: launches(plan) for plan in fa("plan", *PLANNED, *LONG)["plans"]
    }
    kinds = ("global_load_bytes", "global_copy_bytes")
    reads = {
        row["id"]: {kind: row["counts"].get(kind, 0) for kind in kinds}
        for row in fa("explain", *COUNTED, *SHORT)["rows"]
    }
    found = {"plans": plans, "reads": reads}
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write decode.json")
    action.add_argument("--check", action="store_true", help="exit 1 when it is out of date")
    arguments = parser.parse_args(argv)
    try:
        found = text()
    except LadderError as error:
        print(f"decode.py: error: {error}", file=sys.stderr)
        return error.code
    if arguments.write:
        FACTS.write_text(found, encoding="utf-8")
        return 0
    if FACTS.read_text(encoding="utf-8") != found:
        print(
            "decode.py: decode.json is out of date; run plots/figures/decode.py --write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
