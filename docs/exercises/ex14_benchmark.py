"""Exercise 14: flash attention against standard attention, out of a result file of fa bench.

  python3 ex14_benchmark.py FILE.json [STANDARD [FLASH]]     ids of two rungs (default a0 and a3)

See docs/exercises.md.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Problem = dict[str, Any]  # batch, heads, seq_q, seq_kv, head_dim, causal
Key = tuple[int, int, int, int, bool]  # batch, heads, seq_q, head_dim, causal
Row = dict[str, Any]  # id, problem, status, ablation, time_ms, tflops...


def flops(problem: Problem) -> float:
    """Floating-point operations of one forward pass, as the papers count them: those of the two
    matrix products, and half of them when causal."""
    # Your code: begin.
    raise NotImplementedError("flops")
    # Your code: end.


def rate(row: Row) -> float | None:
    """TFLOPS at the median time; None for a row that is no valid measurement. A row is valid only
    when its status is "ok": a wrong kernel's time says nothing."""
    # Your code: begin.
    raise NotImplementedError("rate")
    # Your code: end.


def speed_ups(rows: list[Row], standard: str, flash: str) -> dict[Key, float]:
    """How many times as fast the rung with id `flash` is as the one with id `standard`, for each
    (batch, heads, seq_q, head_dim, causal) at which both have a valid row. Rows with "ablation"
    true are of another tile and do not count."""
    # Your code: begin.
    raise NotImplementedError("speed_ups")
    # Your code: end.


def bytes_written(problem: Problem) -> int:
    """Bytes that the standard attention of kernels/fp32/a0_standard.cu stores to global memory.
    Count the stores of its three kernels; a float has 4 bytes."""
    # Your code: begin.
    raise NotImplementedError("bytes_written")
    # Your code: end.


def main(path: str, standard: str = "a0", flash: str = "a3") -> None:
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    print(f"{flash} against {standard}")
    for (batch, heads, seq, dim, causal), times in speed_ups(rows, standard, flash).items():
        mask = " causal" if causal else ""
        print(f"B={batch} H={heads} N={seq} d={dim}{mask}: {times:.2f} times as fast")


if __name__ == "__main__":
    main(*sys.argv[1:])
