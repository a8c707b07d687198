#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs compute-sanitizer's four tools on every rung at a small shape and writes a summary.

  scripts/sanitize.py --out plots/results/h200/sanitize.json

Exit 1 when any tool reports an error. Called by scripts/sanitize.sh, which builds first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

import ladder  # noqa: E402
from files import document_text, require_writable, write_atomically  # noqa: E402
from ladder import Catalogue, LadderError, Unable  # noqa: E402

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ERROR_SUMMARY = re.compile(r"=+ ERROR SUMMARY: (\d+) errors?")
RACE_SUMMARY = re.compile(r"=+ RACECHECK SUMMARY: (\d+) hazards?")
TIMEOUT = 300  # seconds for one run
BATCH, HEADS = 2, 3


@dataclass(frozen=True)
class Target:
    """One kernel instance and its problem; lse: with that second output. queries: against a cache
    of seq keys whose head all query heads share."""

    rung: str
    head_dim: int
    tile: str
    seq: int
    dtype: str = "float16"
    causal: bool = False
    lse: bool = False
    queries: int = 0  # 0: as many as keys
    lengths: bool = False  # that differ over the batch
    page: int = 0  # keys of a page; 0: not paged


@dataclass(frozen=True)
class Finding(Target):
    """What one tool said of one kernel; errors is null when the run itself failed."""

    tool: str = ""
    errors: int | None = None
    reason: str = ""

    @property
    def is_clean(self) -> bool:
        return self.errors == 0


def targets(
    catalogue: Catalogue, dims: Iterable[int], seq: int, with_ablations: bool, rungs: Iterable[str] = ()
) -> list[Target]:
    """Every kernel of these rungs, or of all rungs every one that this GPU runs: in its type, masked,
    with the LSE, and at lengths that end in a tile, if the rung takes these."""
    wanted, ids = set(dims), set(rungs)
    return [
        target(rung, instance, seq)
        for rung in catalogue.rungs
        for instance in rung.data["instances"]
        if (rung.id in ids if ids else not instance["refused"])
        and instance["head_dim"] in wanted
        and (with_ablations or not instance["ablation"])
    ]


def target(rung: ladder.Rung, instance: dict[str, Any], seq: int) -> Target:
    plain = Target(
        rung=rung.id,
        head_dim=instance["head_dim"],
        tile=instance["tile"],
        seq=seq - 5 if rung.data["ragged"] else seq,
        dtype=instance["dtype"],
        causal=rung.data["causal"],
        lse=rung.data["lse"],
    )
    if rung.family != ladder.DECODE:
        return plain
    return replace(
        plain,
        seq=4 * seq - 5,
        queries=5 if rung.data["few_queries"] else 1,
        lengths=rung.data["lengths"],
        page=16 if rung.data["paged"] else 0,
    )


def run_command(fa: Path, target: Target) -> list[str]:
    """One bare launch on buffers without red zones, so that the tool sees every access outside."""
    words = f"run {target.rung} --tile {target.tile} --dim {target.head_dim} --dtype {target.dtype}"
    words += f" --seq {target.queries or target.seq}"
    if target.queries:
        words += f" --seq-kv {target.seq} --kv-heads 1"
        words += " --lengths random" * target.lengths + f" --page {target.page}" * (target.page > 0)
    shape = f"--batch {BATCH} --heads {HEADS} --device gpu --launch-only --exact-buffers"
    more = ["--causal"] * target.causal + ["--lse"] * target.lse
    return [str(fa), *words.split(), *shape.split(), *more]


def count_errors(output: str) -> int | None:
    """Errors of the tool's summary line; None without one. Hazards of all severities count."""
    matches = ERROR_SUMMARY.findall(output) or RACE_SUMMARY.findall(output)
    return sum(map(int, matches)) if matches else None


def judge(output: str, code: int) -> tuple[int | None, str]:
    """(errors, reason) of one run."""
    errors = count_errors(output)
    if errors:
        return errors, next((line for line in output.splitlines() if "=========" in line), "")
    if errors is None or code != 0:
        last = (output.strip().splitlines() or ["no output"])[-1]
        return None, f"exit code {code}: {last}"
    return 0, ""


Run = Callable[[list[str]], tuple[str, int]]


def run_process(command: list[str]) -> tuple[str, int]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT} s", 124
    return done.stdout + done.stderr, done.returncode


def examine(run: Run, sanitizer: str, fa: Path, target: Target, tool: str) -> Finding:
    command = [sanitizer, "--tool", tool, *run_command(fa, target)]
    errors, reason = judge(*run(command))
    return Finding(**asdict(target), tool=tool, errors=errors, reason=reason)


# --- the summary ----------------------------------------------------------------------------------


def source_state(build: Path) -> tuple[str, bool]:
    """Commit and dirtiness that the build recorded."""
    header = build / "harness/environment/generated/fa_git_version.h"
    try:
        text = header.read_text(encoding="utf-8")
    except OSError as error:
        raise LadderError(f"cannot read {header}: {error.strerror}; build first") from error
    sha = re.search(r'FA_BUILD_GIT_SHA "(.*)"', text)
    dirty = re.search(r"FA_BUILD_GIT_DIRTY (\d)", text)
    return (sha[1] if sha else "unknown"), (dirty is None or dirty[1] != "0")


def first_match(command: list[str], pattern: str) -> str:
    found = re.search(pattern, run_process(command)[0])
    return found[1].strip() if found else "unknown"


def gpu_info() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "name": first_match(query, r"^([^,\n]+),"),
        "driver": first_match(query, r", ?([^,\n]+)"),
    }


def document(findings: list[Finding], sanitizer: str, build: Path) -> dict[str, Any]:
    sha, dirty = source_state(build)
    return {
        "schema": 1,
        "kind": "sanitizer",
        "generator": {"git_sha": sha, "git_dirty": dirty},
        "device": gpu_info(),
        "sanitizer": first_match([sanitizer, "--version"], r"[Vv]ersion ([\w.]+)"),
        "problem": {"batch": BATCH, "heads": HEADS},
        "rows": [asdict(finding) for finding in findings],
    }


# --- command line ---------------------------------------------------------------------------------


def find_sanitizer() -> str:
    homes = (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda")
    places = [shutil.which("compute-sanitizer")]
    places += [shutil.which("compute-sanitizer", path=f"{home}/bin") for home in homes if home]
    found = next(filter(None, places), None)
    if found is None:
        raise Unable("compute-sanitizer was not found; it comes with the CUDA toolkit")
    return found


def parse_list(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of integers") from None


def parse_tools(text: str) -> list[str]:
    tools = text.split(",")
    unknown = [tool for tool in tools if tool not in TOOLS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown tool '{unknown[0]}'; allowed: {', '.join(TOOLS)}"
        )
    return tools


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="summary: a JSON file")
    parser.add_argument("--rungs", default="", help="ids, comma-separated (default: all that this GPU runs)")
    parser.add_argument("--dims", type=parse_list, default=[64, 128], help="default 64,128")
    parser.add_argument("--seq", type=int, default=256, help="queries and keys; 5 fewer for ragged rungs (default 256)")
    parser.add_argument("--tools", type=parse_tools, default=list(TOOLS), help="default: all four")
    parser.add_argument("--jobs", type=int, default=8, help="runs at once (default 8)")
    parser.add_argument("--ablations", action="store_true", help="also tiles not the rung's own")
    arguments = parser.parse_args(argv)
    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}; allowed: 1 and more")
    return arguments


def select(catalogue: Catalogue, arguments: argparse.Namespace) -> list[Target]:
    ids = {word for word in arguments.rungs.split(",") if word}
    unknown = ids - {rung.id for rung in catalogue.rungs}
    if unknown:
        raise LadderError(f"unknown rung '{sorted(unknown)[0]}'")
    chosen = targets(catalogue, arguments.dims, arguments.seq, arguments.ablations, ids)
    if not chosen:
        raise LadderError("no kernel has these head_dims")
    return chosen


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    findings = []
    try:
        require_writable(arguments.out)
        fa, sanitizer = ladder.find_fa(), find_sanitizer()
        runs = [(t, tool) for t in select(Catalogue.load(None), arguments) for tool in arguments.tools]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for finding in pool.map(lambda r: examine(run_process, sanitizer, fa, *r), runs):
                findings.append(finding)
                verdict = "failed" if finding.errors is None else f"{finding.errors} errors"
                print(f"{finding.tool:10} {finding.rung} D={finding.head_dim} {finding.tile} {finding.dtype}: "
                      f"{verdict} {finding.reason}".rstrip(), flush=True)  # fmt: skip
        write_atomically(arguments.out, document_text(document(findings, sanitizer, fa.parent)))
    except (LadderError, OSError) as error:
        print(f"sanitize.py: error: {error}", file=sys.stderr)
        return 3 if isinstance(error, OSError) else error.code
    return 0 if all(finding.is_clean for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
