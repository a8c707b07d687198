#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads hardware counters of every rung's kernels with ncu, one launch each.

  scripts/profile_kernels.py --out plots/results/h200/ncu.json
  scripts/profile_kernels.py --out plots/results/h200/ncu_decode.json --family decode

The counters are those that the virtual machine counts too, under the machine's names; a test
compares the two. Called by scripts/profile.sh, which builds first.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

import ladder  # noqa: E402
from files import document_text, require_writable, write_atomically  # noqa: E402
from ladder import Catalogue, LadderError, Problem, Rung, Unable  # noqa: E402
from sanitize import first_match, gpu_info, source_state  # noqa: E402

# What plots/results/vm/counts.json, counts_decode.json and counts_backward.json are counted at.
PROBLEMS = {
    "forward": Problem.parse("1,2,1024,128"),
    ladder.DECODE: Problem.parse("2,8/2,1/2048,128"),
    ladder.BACKWARD: Problem.parse("1,2,1024,128,backward"),
}
TIMEOUT = 300  # seconds for one kernel

# Name in the file -> metric of ncu (summed over the chip).
METRICS = {
    # mma and wgmma, and HFMA2, with which ptxas loads constants
    "tensor_pipe": "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "tensor_pipe_hfma2": "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
    "ldmatrix": "smsp__inst_executed_op_ldsm.sum",
    "cp_async": "smsp__inst_executed_op_ldgsts.sum",
    "wgmma": "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "bulk_load": "smsp__inst_executed_op_tma_ld.sum",
    "xu": "smsp__inst_executed_pipe_xu.sum",
    "instructions": "smsp__inst_executed.sum",
    # ld.global and cp.async
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "bulk_load_bytes": "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "wgmma_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
    "wgmma_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}


def parse_number(text: str | None) -> int | None:
    """ "1,234.00" -> 1234; None where ncu does not know the metric on this card."""
    try:
        return round(float((text or "").replace(",", "")))
    except ValueError:
        return None


def parse_report(text: str) -> list[dict[str, Any]]:
    """The rows of `ncu --csv --page raw`: one a launch, after a line of units."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise LadderError("ncu printed no table; its output was:\n" + text[-2000:])
    rows = list(csv.DictReader(lines[start:]))[1:]
    return [
        {
            "entry": row["Kernel Name"].split("(")[0],
            "counters": {name: parse_number(row.get(metric)) for name, metric in METRICS.items()},
        }
        for row in rows
    ]


def profile(rung: Rung, instance: Mapping[str, Any], problem: Problem) -> list[dict[str, Any]]:
    shape = {
        "--batch": problem.batch,
        "--heads": problem.heads,
        "--kv-heads": problem.kv_heads or problem.heads,
        "--seq": problem.seq_q,
        "--seq-kv": problem.seq_kv,
        "--dim": problem.head_dim,
        "--tile": instance["tile"],
    }
    options = [str(word) for pair in shape.items() for word in pair]
    command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none"]
    command += ["--metrics", ",".join(METRICS.values())]
    command += [str(ladder.find_fa()), "run", rung.id, "--device", "gpu", "--launch-only", *options]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unable(f"ncu on {rung.name}: {error}") from error
    if done.returncode != 0:
        raise Unable(f"ncu on {rung.name} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return [
        {"id": rung.id, "variant": instance["tile"], "ablation": instance["ablation"], **launch}
        for launch in parse_report(done.stdout)
        if launch["entry"].startswith(f"fa_{rung.id}_")  # a large O of gradients is another rung's
    ]


def kernel_state() -> tuple[str, bool]:
    """Commit, and whether the kernels differ from it: the rest of the tree cannot change a count."""
    sha, dirty = source_state(ladder.find_fa().parent)
    compare = ["git", "-C", str(REPOSITORY), "diff", "--quiet", sha, "--", "kernels/*.cu*"]
    if (REPOSITORY / ".git").exists():
        dirty = subprocess.run(compare, check=False, capture_output=True).returncode != 0
    return sha, dirty


def capture(catalogue: Catalogue, family: str, problem: Problem) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    rungs = [
        rung
        for rung in catalogue.rungs
        if (rung.family if rung.family in PROBLEMS else "forward") == family
    ]
    for rung in rungs:
        for instance in rung.data["instances"]:
            if instance["refused"] or instance["head_dim"] != problem.head_dim:
                continue
            if instance["dtype"] != rung.data["dtype"]:
                continue  # another type at the same tile would be the same launch again
            print(f"{rung.name} {instance['tile']}", file=sys.stderr)
            rows += profile(rung, instance, problem)
    sha, dirty = kernel_state()
    sources = {
        rung.file: hashlib.sha256((REPOSITORY / rung.file).read_bytes()).hexdigest()
        for rung in rungs
    }
    return {
        "schema": 1,
        "kind": "ncu",
        "generator": {
            "git_sha": sha,
            "git_dirty": dirty,
            "sources_sha256": sources,
            "ncu": first_match(["ncu", "--version"], r"Version ([0-9.]+)"),
            "options": "--clock-control none",
        },
        "device": gpu_info(),
        "problem": {name: getattr(problem, name) for name in Problem.__dataclass_fields__},
        "metrics": METRICS,
        "rows": rows,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0], allow_abbrev=False  # profile.sh reads --family
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file")
    parser.add_argument("--family", default="forward", choices=PROBLEMS, help="default forward")
    arguments = parser.parse_args(argv)
    try:
        catalogue = Catalogue.load(None)
        require_writable(arguments.out)
        document = capture(catalogue, arguments.family, PROBLEMS[arguments.family])
        write_atomically(arguments.out, document_text(document))
    except (LadderError, OSError) as error:
        print(f"profile_kernels.py: error: {error}", file=sys.stderr)
        return 3 if isinstance(error, OSError) else error.code
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
