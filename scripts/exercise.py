#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The exercises of docs/exercises.md: starts one, builds it and says what is still wrong with it.

  scripts/exercise.py             lists them
  scripts/exercise.py 1           copies the file with the gap to kernels/own, once; then builds, checks

Everything is checked on the virtual machine. Exit 0 solved, 1 not yet, 2 usage, 3 fa is not there.
FA_BUILD_DIR names the build folder; FA_OWN_DIR what CMake's FA_OWN_DIR names, if not kernels/own.

An exercise is a section of docs/exercises.md, the file that it names, and beside that the same name
with .toml, whose entries are:

  trials             problems, {seq, seq_kv, kv_heads, causal, spread}, of two heads; the rules hold for
                     the last
  thread             a formula of row and column: the thread of its block that writes this element of O,
                     or of a gradient
  rules              {what, count, most or exactly}: a count of the machine, and a number or another count
  page_rules         those that hold only for the page's version of the gap
  background_copies  true where the copies must be in flight while the warp multiplies
  gaps               of the page: {function, shipped, answer, says}, each a formula of the reader's
  code               of the page: what calls them, in place of each gap of the file
  unsolved           regular expressions of the findings for the file as it ships
  cases              one of each failed case among these findings
  wrong              solutions that are not right, each with a regular expression of the finding that
                     says why: {text, instead, finding} with another text in the gaps, or
                     {instruction, finding} that lacks an instruction, wherever it stands
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
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
    data: dict[str, Any]  # of the .toml

    @property
    def id(self) -> str:
        return f"ex{self.number}"


SECTION = re.compile(r"^## (\d+)\. (.+)\n\n\[`\S+`\]\(exercises/(\S+?)\)", re.M)
GAP = re.compile(r"[ \t]*(?://|#) Your code: begin.*?Your code: end[^\n]*\n", re.S)


def read_exercises() -> Iterator[Exercise]:
    for number, title, file in SECTION.findall(EXERCISES.with_suffix(".md").read_text("utf-8")):
        data = (EXERCISES / file).with_suffix(".toml").read_text(encoding="utf-8")
        yield Exercise(int(number), title, file, tomllib.loads(data))


ALL = tuple(read_exercises())


def fill(file: str | Path, code: list[str]) -> str:
    """A file of docs/exercises with this code in place of its gaps."""
    text = (EXERCISES / file).read_text(encoding="utf-8")
    count = len(GAP.findall(text))
    if not code or count != len(code):
        sys.exit(f"error: {file} has {count} gaps, and {len(code)} are filled")
    rest = iter(code)
    return GAP.sub(lambda _: next(rest), text)


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


ELEMENT = re.compile(r"batch \d+, head \d+, row (\d+), column (\d+)")


def name_threads(exercise: Exercise, text: str) -> str:
    """With the thread that writes it behind each element of O or of a gradient."""

    def named(match: re.Match[str]) -> str:
        places = {"row": int(match[1]), "column": int(match[2])}
        thread = eval(exercise.data["thread"], {"__builtins__": {}}, places)
        return f"{match[0]} (thread {thread}: warp {thread // 32}, lane {thread % 32})"

    return ELEMENT.sub(named, text)


def failed_cases(lines: list[str]) -> list[list[str]]:
    """What fa check says of each case that fails: the reason, and where that is, if the machine has
    seen it."""
    cases: list[list[str]] = []
    heads = 0
    for line in lines:
        if line.startswith("wrong: "):
            cases.append([line.removeprefix("wrong: ")])
            heads = 0
        elif not line.startswith(" "):
            heads += 1  # one for each thing that the machine has found
        elif heads == 1 and line.startswith("  note: "):
            cases[-1].append("  " + line.removeprefix("  note: "))
    return cases


def check_results(fa: Path, exercise: Exercise, fail_fast: bool) -> Finding:
    """The verdict of fa check on the virtual machine."""
    id = exercise.id
    options = ["--device", "vm", "--suite", "quick"] + ["--fail-fast"] * fail_fast
    done = run([fa, "check", id, *options])
    lines = [line for line in done.stdout.splitlines() if line]
    counted = re.search(r"(\d+) passed +(\d+) wrong", lines[-1] if lines else "")
    if done.returncode == 0 and counted:
        return Finding(True, f"results: all {counted[1]} cases of fa check {id}")
    if not counted:
        return Finding(False, f"fa check {id}: {(done.stdout or done.stderr).strip()}")
    cases = failed_cases(lines)
    text = f"results: {counted[2]} cases of fa check {id} fail, {counted[1]} pass"
    for line in itertools.chain.from_iterable(cases[:SHOWN]):
        text += "\n         " + name_threads(exercise, line)
    return Finding(False, text + ("\n         ..." if len(cases) > SHOWN else ""))


def ask(fa: Path, command: str, id: str, *options: str) -> dict[str, Any]:
    """What a command of fa says in JSON."""
    done = run([fa, command, id, *options, "--json"])
    if done.returncode != 0:
        raise Missing(f"fa {command} {id} failed: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def count(fa: Path, id: str, *options: str) -> Counts:
    """What fa explain counts for two heads."""
    return dict(ask(fa, "explain", id, *options)["rows"][0]["counts"])


# --- the kernels ----------------------------------------------------------------------------------


def options_of(fa: Path, exercise: Exercise) -> list[list[str]]:
    """The problem of each trial on fa's command line, at the head_dim that the kernel has."""
    rungs = ask(fa, "list", exercise.id)["rungs"]
    dim = next(max(rung["head_dims"]) for rung in rungs if rung["id"] == exercise.id)

    def options(
        seq: int, seq_kv: int = 0, kv_heads: int = 2, causal: bool = False, spread: int = 1
    ) -> list[str]:
        words = ["--seq", f"{seq}", "--seq-kv", f"{seq_kv or seq}", "--dim", f"{dim}"]
        words += ["--kv-heads", f"{kv_heads}"] * (kv_heads < 2)
        return words + ["--causal"] * causal + ["--spread", f"{spread}"] * (spread > 1)

    return [options(**trial) for trial in exercise.data["trials"]]


def check_spread(fa: Path, exercise: Exercise, options: list[str]) -> Finding:
    """Scores with a large deviation: e^s is infinite for many of them."""
    text = f"results for scores with a deviation of {options[-1]}"
    done = run([fa, "run", exercise.id, "--device", "vm", *options])
    if done.returncode == 0:
        return Finding(True, text)
    lines = (done.stdout or done.stderr).strip().splitlines()
    reasons = [line for line in lines if line.startswith("wrong: ")] or lines
    return Finding(False, f"{text}: {name_threads(exercise, reasons[0])}")


def check_rule(rule: dict[str, Any], counts: Counts) -> Finding:
    what, found = rule["what"], counts.get(rule["count"], 0)
    if "exactly" in rule:
        if found == rule["exactly"]:
            return Finding(True, f"{what}: {found}, as many as there must be")
        return Finding(False, f"{what}: {found}, and there must be {rule['exactly']}")
    most = rule["most"]
    if isinstance(most, str):
        most = counts.get(most, 0)
        if most == 0:
            return Finding(False, f"{what}: none, and there must be some")
    if found <= most:
        return Finding(True, f"{what}: {found}, allowed are {most}")
    return Finding(False, f"{what}: {found}, more than the {most} that are needed")


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


def check_copies(fa: Path, id: str, options: list[str]) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        done = run([fa, "run", id, "--device", "vm", *options, "--trace", trace])
        if done.returncode != 0:
            raise Missing(f"fa run {id} --trace failed: {done.stderr.strip()}")
        groups, covered = copies_of_warp_0(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])
    text = f"groups of copies in flight while warp 0 multiplies: {covered} of {groups}"
    return Finding(groups > 1 and covered >= groups - 1, f"{text}; only the first need not be")


def check_kernel(fa: Path, exercise: Exercise, fail_fast: bool) -> Iterator[Finding]:
    """What comes after a wrong result would not help."""
    finding = check_results(fa, exercise, fail_fast)
    yield finding
    if not finding.good:
        return
    trials = options_of(fa, exercise)
    for options in trials:
        if "--spread" in options:
            finding = check_spread(fa, exercise, options)
            yield finding
            if not finding.good:
                return
    counts = count(fa, exercise.id, *trials[-1])
    yield from (check_rule(rule, counts) for rule in exercise.data["rules"])
    if exercise.data.get("background_copies"):
        yield check_copies(fa, exercise.id, trials[-1])


# --- the benchmark --------------------------------------------------------------------------------


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def committed_rows() -> list[dict[str, Any]]:
    """Every timed forward row of attention in plots/results, but for lengths and windows."""
    rows: list[dict[str, Any]] = []
    for path in sorted((REPOSITORY / "plots/results").rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found = document.get("rows", []) if isinstance(document, dict) else []
        found = [row for row in found if row.get("tflops") and "matmul" not in row]
        other = {"backward", "lengths", "window_left"}
        rows += [row for row in found if not other & row["problem"].keys()]
    return rows


def check_flops(module: ModuleType) -> Finding:
    problem = {"batch": 2, "heads": 3, "seq_q": 64, "seq_kv": 96, "head_dim": 32, "causal": False}
    for causal, wanted in ((False, 4_718_592), (True, 2_359_296)):
        found = module.flops({**problem, "causal": causal})
        if found != wanted:
            asked = problem | {"causal": causal}
            return Finding(False, f"flops: got {found}, expected {wanted} for {asked}")
    return Finding(True, "flops: whole and causal")


def check_rate(module: ModuleType) -> Finding:
    rows = committed_rows()
    for row in rows:
        found = module.rate(row)
        if found is None or abs(found / row["tflops"] - 1) > 1e-4:
            return Finding(False, f"rate: got {found}, expected {row['tflops']} as in the file, for "
                                  f"{row['id']} at {row['problem']}")  # fmt: skip
    for status in ("incorrect", "out_of_memory"):
        found = module.rate({**rows[0], "status": status})
        if found is not None:
            return Finding(False, f"rate: got {found}, expected None for a row of status '{status}'")
    found = module.rate({**rows[0], "status": "ok", "time_ms": None})
    if found is not None:
        return Finding(False, f"rate: got {found}, expected None for a row without a time (the "
                              "virtual machine's)")  # fmt: skip
    return Finding(True, f"rate: all {len(rows)} measured rows of plots/results")


def made_row(id: str, seq: int, median: float, **other: Any) -> dict[str, Any]:
    """A row of a result file, with the milliseconds that `median` names."""
    problem = {"batch": 1, "heads": 2, "seq_q": seq, "seq_kv": seq, "head_dim": 64, "causal": False}
    time = {"median": median, "min": 0.25, "back_to_back": 0.375}  # without a ratio
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
    for key in sorted(found.keys() | wanted.keys(), key=str):
        times, right = found.get(key), wanted.get(key)
        if times is None or right is None or not math.isclose(times, right):
            return Finding(False, f"speed_ups: got {times}, expected {right} for {key} (batch, heads, "
                                  "seq_q, head_dim, causal) of a small made-up file")  # fmt: skip
    return Finding(True, "speed_ups: a made-up file with a wrong and a missing measurement")


def check_bytes_written(module: ModuleType, fa: Path) -> Finding:
    for batch, heads, seq_q, seq_kv in ((1, 1, 128, 128), (2, 3, 64, 192)):
        shape = {"batch": batch, "heads": heads, "seq_q": seq_q, "seq_kv": seq_kv, "head_dim": 32}
        found = module.bytes_written({**shape, "causal": False})
        words = ("--batch", f"{batch}", "--heads", f"{heads}", "--seq", f"{seq_q}", "--seq-kv", f"{seq_kv}")
        wanted = count(fa, "a0", "--dim", "32", *words)["global_store_bytes"]
        if found != wanted:
            return Finding(False, f"bytes_written: got {found}, expected {wanted}, the virtual "
                                  f"machine's count, for {shape}")  # fmt: skip
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


def report(exercise: Exercise, fa: Path, file: Path, fail_fast: bool) -> bool:
    print(f"exercise {exercise.number}. {exercise.title}: {shown(file)}")
    good = True
    kernel = exercise.file.endswith(".cu")
    found = check_kernel(fa, exercise, fail_fast) if kernel else check_benchmark(fa, file)
    for finding in found:
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
    parser.add_argument("--fail-fast", action="store_true", help="end at the first case that is wrong")
    arguments = parser.parse_args(argv)
    if arguments.file and not arguments.fa:
        parser.error("--file needs --fa: without it the exercise in FA_OWN_DIR is built and checked")
    return arguments


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
        return 0 if fa and report(exercise, fa, file, arguments.fail_fast) else 1
    except Missing as error:
        print(f"exercise.py: error: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
