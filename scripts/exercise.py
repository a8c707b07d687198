#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The exercises of docs/exercises.md: starts one, builds it and says what is still wrong with it.

  scripts/exercise.py             lists them
  scripts/exercise.py 1           copies the file with the gap to kernels/own, once; then builds, checks

Everything is checked on the virtual machine. Exit 0 solved, 1 not yet, 2 usage, 3 fa is not there.
FA_BUILD_DIR names the build folder; FA_OWN_DIR what CMake's FA_OWN_DIR names, if not kernels/own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
EXERCISES = REPOSITORY / "docs/exercises"
OWN = Path(os.environ.get("FA_OWN_DIR") or REPOSITORY / "kernels/own")
BUILD = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build")
TIMEOUT = 300  # seconds for one run of fa; a kernel may loop for ever
SHOWN = 3  # failures of fa check

Counts = dict[str, int]


class Missing(Exception):
    """fa cannot be run; one line for the user."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    good: bool
    text: str


@dataclass(frozen=True)
class Exercise:
    number: int
    title: str
    file: str
    check: Callable[[Path, Path], Iterator[Finding]]  # of the program and the reader's file

    @property
    def id(self) -> str:
        return f"ex{self.number}"


# --- running fa -----------------------------------------------------------------------------------


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              env=environment, timeout=TIMEOUT)  # fmt: skip
    except OSError as error:
        raise Missing(f"cannot run {command[0]}: {error.strerror}; build it first") from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, f"no end after {TIMEOUT} seconds\n", "")


def check_results(fa: Path, id: str) -> Finding:
    """The verdict of fa check on the virtual machine."""
    done = run([fa, "check", id, "--device", "vm", "--suite", "quick"])
    lines = [line for line in done.stdout.splitlines() if line]
    counted = re.search(r"(\d+) passed +(\d+) wrong", lines[-1] if lines else "")
    if done.returncode == 0 and counted:
        return Finding(True, f"results: all {counted[1]} cases of fa check {id}")
    if not counted:
        return Finding(False, f"fa check {id}: {(done.stdout or done.stderr).strip()}")
    wrong = [line for line in lines if line.startswith("wrong: ")]
    text = f"results: {counted[2]} cases of fa check {id} fail, {counted[1]} pass"
    for line in wrong[:SHOWN]:
        text += "\n         " + line.removeprefix("wrong: ")
    return Finding(False, text + ("\n         ..." if len(wrong) > SHOWN else ""))


def count(fa: Path, id: str, *options: str, dim: int = 32) -> Counts:
    """What fa explain counts for two heads."""
    done = run([fa, "explain", id, "--dim", f"{dim}", *options, "--json"])
    if done.returncode != 0:
        raise Missing(f"fa explain {id} failed: {done.stderr.strip()}")
    return dict(json.loads(done.stdout)["rows"][0]["counts"])


def at_most(what: str, found: int, most: int) -> Finding:
    if found <= most:
        return Finding(True, f"{what}: {found}, allowed are {most}")
    return Finding(False, f"{what}: {found}, more than the {most} that are needed")


def exactly(what: str, found: int, wanted: int) -> Finding:
    if found == wanted:
        return Finding(True, f"{what}: {found}, as many as there must be")
    return Finding(False, f"{what}: {found}, and there must be {wanted}")


# --- the kernels ----------------------------------------------------------------------------------


def write_npy(path: Path, values: list[float], shape: tuple[int, ...]) -> None:
    """A float32 .npy file (version 1.0), without NumPy."""
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}f", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def check_large_scores(fa: Path, id: str) -> Finding:
    """One head whose scores have a deviation of 50: e^s is infinite for many of them."""
    random_numbers = random.Random(1)
    shape = (1, 1, 64, 32)
    with tempfile.TemporaryDirectory() as folder:
        words: list[str | Path] = [fa, "run", id, "--device", "vm"]
        for name, deviation in (("q", 50.0), ("k", 1.0), ("v", 1.0)):
            values = [random_numbers.gauss(0, deviation) for _ in range(math.prod(shape))]
            write_npy(Path(folder, f"{name}.npy"), values, shape)
            words += [f"--{name}", Path(folder, f"{name}.npy")]
        done = run(words)
    if done.returncode == 0:
        return Finding(True, "scores beyond 88, where e^s overflows")
    lines = (done.stdout or done.stderr).strip().splitlines()
    reasons = [line for line in lines if line.startswith("wrong: ")] or lines
    return Finding(False, f"scores beyond 88, where e^s overflows: {reasons[0]}")


def check_online_softmax(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex1")
    yield result
    if not result.good:
        return
    large = check_large_scores(fa, "ex1")
    yield large
    if not large.good:
        return
    seq, dim, heads = 128, 32, 2
    warps = heads * seq // 32
    counts = count(fa, "ex1", "--seq", f"{seq}")
    yield at_most("warp loads (every row of K and V is read once)", counts["global_load_requests"],
                  warps * (dim + seq * 2 * dim))  # fmt: skip
    yield at_most("exponentials (two a key)", counts["exp"], warps * seq * 2)


def check_causal(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex2")
    yield result
    if not result.good:
        return
    seq, dim, heads, rows, keys = 256, 32, 2, 64, 32
    tiles = sum(math.ceil(end / keys) for end in range(rows, seq + 1, rows))
    counts = count(fa, "ex2", "--seq", f"{seq}", "--causal")
    yield at_most(f"bytes loaded ({tiles} of {seq // rows * seq // keys} tiles are seen)",
                  counts["global_load_bytes"], heads * (seq + tiles * 2 * keys) * dim * 4)  # fmt: skip


def check_conflict(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex3")
    yield result
    if not result.good:
        return
    seq, heads, rows, keys = 128, 2, 4, 32
    counts = count(fa, "ex3", "--seq", f"{seq}")
    for kind, what in (("load", "reads"), ("store", "writes")):
        ideal = counts.get(f"shared_{kind}_ideal", 0)
        wavefronts = counts.get(f"shared_{kind}_wavefronts", 0)
        if ideal == 0:
            yield Finding(False, f"no {what} of shared memory: the tiles belong there")
        else:
            yield at_most(f"wavefronts of shared-memory {what}", wavefronts, ideal)
    blocks = heads * seq // rows
    yield at_most("warp loads (every tile is read once a block)", counts["global_load_requests"],
                  blocks * (rows + seq // keys * 2 * keys))  # fmt: skip


def check_any_length(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex4")
    yield result
    if not result.good:
        return
    queries, keys, dim, heads, rows = 100, 77, 32, 2, 64
    counts = count(fa, "ex4", "--seq", f"{queries}", "--seq-kv", f"{keys}")
    blocks = math.ceil(queries / rows)
    yield at_most("bytes loaded (rows that exist, K and V once for each thread block)",
                  counts["global_load_bytes"], heads * (queries + blocks * 2 * keys) * dim * 4)  # fmt: skip


def check_sectors(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex5")
    yield result
    if not result.good:
        return
    seq, dim, heads, rows, sector = 128, 32, 2, 64, 32
    counts = count(fa, "ex5", "--seq", f"{seq}")
    floats = heads * seq // rows * (rows + 2 * seq) * dim
    yield at_most("sectors of 32 bytes loaded", counts["global_load_sectors"], floats * 4 // sector)


# --- the kernels on tensor cores: 64 columns, 16 query rows a warp, steps of 32 keys --------------

SEQ, HEADS, HEAD_DIM = 128, 2, 64
WARP_STEPS = HEADS * SEQ // 16 * SEQ // 32
LDMATRIX = WARP_STEPS * (4 + 8 + 8)  # Q, K, V


def tensor_counts(fa: Path, id: str, dim: int = HEAD_DIM) -> Counts:
    return count(fa, id, "--seq", f"{SEQ}", dim=dim)


def check_fragments(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex6")
    yield result
    if not result.good:
        return
    products = HEADS * SEQ // 16 * SEQ // 8 * HEAD_DIM // 16 * 2
    yield exactly("products on tensor cores", tensor_counts(fa, "ex6").get("tensor", 0), products)


def check_registers(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex7")
    yield result
    if not result.good:
        return
    counts = tensor_counts(fa, "ex7")
    yield at_most("stores to shared memory", counts.get("shared_store_requests", 0), 0)
    yield at_most("ldmatrix (of Q, K and V)", counts["ldmatrix_requests"], LDMATRIX)
    yield at_most("shuffles (of maxima and sums)", counts["shuffle"], WARP_STEPS * 4 + WARP_STEPS)


def check_ldmatrix(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex8")
    yield result
    if not result.good:
        return
    counts = tensor_counts(fa, "ex8")
    yield exactly("ldmatrix", counts["ldmatrix_requests"], LDMATRIX)
    yield at_most("wavefronts of ldmatrix", counts["ldmatrix_wavefronts"], counts["ldmatrix_ideal"])


def check_swizzle(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex9")
    yield result
    if not result.good:
        return
    counts = tensor_counts(fa, "ex9")
    yield at_most("wavefronts of ldmatrix", counts["ldmatrix_wavefronts"], counts["ldmatrix_ideal"])


def copies_of_warp_0(trace: list[dict[str, Any]]) -> tuple[int, int]:
    """How many groups of cp.async the warp started, and how many of them were in flight while it
    multiplied."""
    events = [event for event in trace if event.get("tid") == 0]
    matrix = [event["ts"] for event in events if event["ph"] == "X" and event["cat"] == "matrix"]
    begin, end = (
        {event["id"]: event["ts"] for event in events if event["ph"] == phase} for phase in "be"
    )
    covered = [id for id in begin if any(begin[id] <= at < end[id] for at in matrix)]
    return len(begin), len(covered)


def check_pipeline(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex10")
    yield result
    if not result.good:
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        done = run([fa, "run", "ex10", "--device", "vm", "--heads", "1", "--seq", "256",
                    "--dim", f"{HEAD_DIM}", "--trace", trace])  # fmt: skip
        if done.returncode != 0:
            raise Missing(f"fa run ex10 --trace failed: {done.stderr.strip()}")
        groups, covered = copies_of_warp_0(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])
    text = f"groups of copies in flight while warp 0 multiplies: {covered} of {groups}"
    yield Finding(groups > 1 and covered >= groups - 1, f"{text}; only the first need not be")


def check_ring(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex11")
    yield result
    if not result.good:
        return
    counts, blocks, warps, slots = tensor_counts(fa, "ex11"), HEADS * SEQ // 64, 3, 2 * SEQ // 32
    yield exactly("TMA copies", counts["bulk_copy"], blocks * (1 + slots))
    yield at_most("barriers (__syncthreads for the set-up, __syncwarp for each slot that a warp releases)",
                  counts["barrier"], blocks * (warps + 2 * slots))  # fmt: skip


def check_descriptor(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex12")
    yield result
    if not result.good:
        return
    products = HEADS * SEQ // 16 * SEQ // 64 * (8 + 4)
    yield exactly("wgmma, counted for each warp", tensor_counts(fa, "ex12", 128)["wgmma"], products)


def check_wait(fa: Path, _: Path) -> Iterator[Finding]:
    result = check_results(fa, "ex13")
    yield result
    if not result.good:
        return
    steps = HEADS * SEQ // 16 * SEQ // 64
    yield at_most("fences, commits and waits, for each warp", tensor_counts(fa, "ex13", 128)["wgmma_sync"],
                  steps * 2 * 3)  # fmt: skip


# --- the benchmark --------------------------------------------------------------------------------


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def committed_rows() -> list[dict[str, Any]]:
    """Every timed row of attention in plots/results, but for lengths that differ over the batch."""
    rows: list[dict[str, Any]] = []
    for path in sorted((REPOSITORY / "plots/results").glob("*/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found = document.get("rows", []) if isinstance(document, dict) else []
        found = [row for row in found if row.get("tflops") and "matmul" not in row]
        rows += [row for row in found if "lengths" not in row["problem"]]
    return rows


def check_flops(module: ModuleType) -> Finding:
    problem = {"batch": 2, "heads": 3, "seq_q": 64, "seq_kv": 96, "head_dim": 32, "causal": False}
    for causal, wanted in ((False, 4_718_592), (True, 2_359_296)):
        found = module.flops({**problem, "causal": causal})
        if found != wanted:
            return Finding(False, f"flops: {found} for {problem | {'causal': causal}}, not {wanted}")
    return Finding(True, "flops: whole and causal")


def check_rate(module: ModuleType) -> Finding:
    rows = committed_rows()
    for row in rows:
        found = module.rate(row)
        if found is None or abs(found / row["tflops"] - 1) > 1e-4:
            return Finding(False, f"rate: {found} for {row['id']} at {row['problem']}, "
                                  f"the file says {row['tflops']}")  # fmt: skip
    for status in ("incorrect", "out_of_memory"):
        if module.rate({**rows[0], "status": status}) is not None:
            return Finding(False, f"rate: a row whose status is '{status}' must have none")
    if module.rate({**rows[0], "status": "ok", "time_ms": None}) is not None:
        return Finding(False, "rate: a row without a time (the virtual machine's) must have none")
    return Finding(True, f"rate: all {len(rows)} measured rows of plots/results")


def made_row(id: str, seq: int, median: float, **other: Any) -> dict[str, Any]:
    """A row of a result file, with the milliseconds that `median` names."""
    problem = {"batch": 1, "heads": 2, "seq_q": seq, "seq_kv": seq, "head_dim": 64, "causal": False}
    time = {"median": median, "min": median / 2, "back_to_back": median / 3}
    return {"kind": "rung", "id": id, "status": "ok", "ablation": False, "time_ms": time,
            "problem": {**problem, **other.pop("problem", {})}, **other}  # fmt: skip


def check_speed_ups(module: ModuleType) -> Finding:
    rows = [
        made_row("slow", 256, 6.0), made_row("fast", 256, 2.0),
        made_row("fast", 256, 0.5, ablation=True),
        made_row("slow", 256, 9.0, problem={"head_dim": 128}),
        made_row("fast", 256, 2.0, problem={"head_dim": 128}),
        made_row("slow", 512, 10.0), made_row("fast", 512, 4.0, status="incorrect"),
        made_row("slow", 1024, 1.0, status="out_of_memory", time_ms=None),
        made_row("fast", 1024, 8.0), made_row("other", 256, 1.0),
        made_row("fast", 256, 1.0, problem={"batch": 4}),
        made_row("slow", 256, 10.0, problem={"causal": True}),
        made_row("fast", 256, 2.0, problem={"causal": True}),
    ]  # fmt: skip
    wanted = {(1, 2, 256, 64, False): 3.0, (1, 2, 256, 128, False): 4.5,
              (1, 2, 256, 64, True): 5.0}  # fmt: skip
    found = module.speed_ups(rows, "slow", "fast")
    near = found.keys() == wanted.keys() and all(
        math.isclose(found[key], wanted[key]) for key in wanted
    )
    if not near:
        return Finding(False, f"speed_ups: {found} for a small made-up file, not {wanted}")
    return Finding(True, "speed_ups: a made-up file with a wrong and a missing measurement")


def check_bytes_written(module: ModuleType, fa: Path) -> Finding:
    for seq, heads in ((128, 1), (192, 3)):
        problem = {"batch": 1, "heads": heads, "seq_q": seq, "seq_kv": seq, "head_dim": 32}
        found = module.bytes_written({**problem, "causal": False})
        counts = count(fa, "a0", "--seq", f"{seq}", "--heads", f"{heads}")
        wanted = counts["global_store_bytes"]
        if found != wanted:
            return Finding(False, f"bytes_written: {found} for N={seq}, H={heads}, d=32; "
                                  f"the virtual machine counts {wanted}")  # fmt: skip
    return Finding(True, "bytes_written: equal to what the virtual machine counts")


def check_benchmark(fa: Path, file: Path) -> Iterator[Finding]:
    try:
        module = load_module(file)
    except (Exception, SystemExit) as error:  # whatever the reader's file does
        yield Finding(False, f"{file.name} cannot be imported: {error!r}")
        return
    checks: list[Callable[[], Finding]] = [
        lambda: check_flops(module),
        lambda: check_rate(module),
        lambda: check_speed_ups(module),
        lambda: check_bytes_written(module, fa),
    ]
    for check in checks:
        try:
            yield check()
        except NotImplementedError as gap:
            yield Finding(False, f"{gap}: not written yet")
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            yield Finding(False, f"{file.name} fails: {error!r}")


ALL = (
    Exercise(1, "online softmax from the recurrence", "ex1_online_softmax.cu", check_online_softmax),
    Exercise(2, "a causal mask for a kernel without one", "ex2_causal.cu", check_causal),
    Exercise(3, "break a bank conflict", "ex3_conflict.cu", check_conflict),
    Exercise(4, "any number of queries and keys", "ex4_any_length.cu", check_any_length),
    Exercise(5, "loads that use every byte of a sector", "ex5_sectors.cu", check_sectors),
    Exercise(6, "tensor-core fragments", "ex6_fragments.cu", check_fragments),
    Exercise(7, "P stays in registers", "ex7_registers.cu", check_registers),
    Exercise(8, "the addresses of ldmatrix", "ex8_ldmatrix.cu", check_ldmatrix),
    Exercise(9, "a swizzle", "ex9_swizzle.cu", check_swizzle),
    Exercise(10, "copies in the background", "ex10_pipeline.cu", check_pipeline),
    Exercise(11, "a ring of mbarriers", "hopper/ex11_ring.cu", check_ring),
    Exercise(12, "the descriptor of a wgmma operand", "hopper/ex12_descriptor.cu", check_descriptor),
    Exercise(13, "fence, commit, wait", "hopper/ex13_wait.cu", check_wait),
    Exercise(14, "benchmark flash against standard", "ex14_benchmark.py", check_benchmark),
)


# --- command line ---------------------------------------------------------------------------------


def shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path


def start(exercise: Exercise, file: Path) -> None:
    """Gives the reader a copy of the file with the gap."""
    if file.exists():
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(EXERCISES / exercise.file, file)
    except OSError as error:
        raise Missing(f"cannot write {file}: {error.strerror}; set FA_OWN_DIR, and CMake's FA_OWN_DIR,"
                      " to a folder that can be written") from None  # fmt: skip
    print(f"new: {shown(file)}; the gap is between 'Your code: begin' and 'Your code: end'")


def build_target(target: str) -> str:
    """What is wrong; empty when it is built."""
    done = subprocess.run(["cmake", "--build", BUILD, "--target", target], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)  # fmt: skip
    return done.stdout if done.returncode else ""


def build(exercise: Exercise) -> Path | None:
    """fa with all of the reader's kernels, or, where another one of them does not compile, with this
    one alone; None after a message where this one does not compile."""
    if not (BUILD / "CMakeCache.txt").is_file():
        raise Missing(f"{BUILD} is no build folder; run scripts/bench.sh, or set FA_BUILD_DIR")
    failure = build_target("fa")
    if not failure:
        return BUILD / "fa"
    fa = BUILD / "fa"
    if exercise.file.endswith(".cu"):
        fa = BUILD / "own" / f"fa_{Path(exercise.file).stem}"
        failure = build_target(fa.name)
    elif fa.is_file():  # an earlier one will do: it need not have the reader's kernels
        failure = ""
    if failure:
        print(f"the build fails:\n{failure}")
        return None
    print(f"another kernel in {shown(OWN)} does not compile; checked with {shown(fa)}")
    return fa


def report(exercise: Exercise, fa: Path, file: Path) -> bool:
    print(f"exercise {exercise.number}, {exercise.title}: {shown(file)}")
    good = True
    for finding in exercise.check(fa, file):
        print(f"  {'ok   ' if finding.good else 'wrong'}  {finding.text}")
        good &= finding.good
    print("solved" if good else "not solved yet")
    return good


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    numbers = [exercise.number for exercise in ALL]
    parser.add_argument("number", type=int, nargs="?", choices=numbers, help="the exercise")
    parser.add_argument("--fa", type=Path, help="this program, without building anything")
    parser.add_argument("--file", type=Path, help="this file, with --fa")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    if arguments.number is None:
        for exercise in ALL:
            print(f"{exercise.number:2}  {exercise.title:40}  docs/exercises/{exercise.file}")
        return 0
    exercise = next(each for each in ALL if each.number == arguments.number)
    file = arguments.file or OWN / exercise.file
    try:
        fa = arguments.fa
        if fa is None:
            start(exercise, file)
            fa = build(exercise)
        return 0 if fa and report(exercise, fa, file) else 1
    except Missing as error:
        print(f"exercise.py: error: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
