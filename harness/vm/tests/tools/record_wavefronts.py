#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records how many wavefronts a GPU takes for patterns of shared-memory accesses.

  record_wavefronts.py OUT.jsonl     needs a GPU, nvcc and ncu

Compiles wavefronts.cu, runs it under ncu, and joins its patterns with the counters. The first line
names the GPU, its driver and ncu.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

METRIC = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "wavefronts")
        source = str(Path(__file__).with_name("wavefronts.cu"))
        output("nvcc", "-std=c++20", "-arch=native", "-o", program, source)
        report = output("ncu", "--csv", "--metrics", f"{METRIC}ld.sum,{METRIC}st.sum", program)
    patterns, counts = [], []
    for line in report.splitlines():
        if line.startswith("{"):
            patterns.append(json.loads(line))
        elif METRIC in line:
            *_, name, _, value = next(csv.reader([line]))
            counts.append((name, int(value)))
    if len(counts) != 2 * len(patterns):
        print(f"{len(patterns)} patterns, but {len(counts)} counters", file=sys.stderr)
        return 1
    lines = [
        {
            "gpu": output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").split("\n")[0],
            "driver": output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
            .split("\n")[0],
            "ncu": re.findall(r"Version (\S+)", output("ncu", "--version"))[0],
        }
    ]  # fmt: skip
    for i, pattern in enumerate(patterns):
        values = dict(counts[2 * i : 2 * i + 2])
        lines.append(pattern | {"wavefronts": values[f"{METRIC}{pattern['op']}.sum"]})
    Path(sys.argv[1]).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
