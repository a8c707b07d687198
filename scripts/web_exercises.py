# SPDX-License-Identifier: MIT
"""The exercises in CUDA as the pages have them: the gaps are formulas.

A page has no CUDA compiler. So each gap of docs/exercises becomes a call of an external
function, the build compiles that to PTX, and the page writes the function from the formula that the
reader has typed. scripts/exercise.py says where an exercise is described.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import exercise as exercises
from exercise import Exercise

ROOT = Path(__file__).resolve().parent.parent
KERNELS = tuple(each for each in exercises.ALL if each.file.endswith(".cu"))
FUNCTION = re.compile(r"(int|float) (\w+)\((.*)\)")

Json = dict[str, Any]


def formulas(exercise: Exercise) -> list[Json]:
    """The gaps, each a function of whole numbers or of floats."""
    found = []
    for gap in exercise.data["gaps"]:
        match = FUNCTION.fullmatch(gap["function"])
        assert match, f"{exercise.file}: {gap['function']}"
        kind, name, parameters = match.groups()
        head = {"name": name, "parameters": parameters.split(", "), "type": kind}
        tail = {key: gap[key] for key in ("shipped", "answer", "says")} | {"function": f"gap_{name}"}
        found.append(head | tail)
    return found


def answers(exercise: Exercise) -> dict[str, str]:
    """A right formula for each gap."""
    return {formula["name"]: formula["answer"] for formula in formulas(exercise)}


def source(exercise: Exercise) -> str:
    """The file with calls in its gaps."""
    declarations = ""
    for formula in formulas(exercise):
        kind = formula["type"]
        parameters = ", ".join(f"{kind} {each}" for each in formula["parameters"])
        declarations += f'extern "C" __device__ {kind} {formula["function"]}({parameters});\n'
    text = exercises.fill(exercise.file, exercise.data["code"])
    return text.replace("namespace {\n", f"{declarations}\nnamespace {{\n", 1)


def document(exercise: Exercise, fa: Path) -> Json:
    """What the page loads."""
    trials = []
    options = exercises.options_of(fa, exercise)
    for trial, words in zip(exercise.data["trials"], options, strict=True):
        shape = words[: words.index("--spread")] if "--spread" in words else words
        plan = exercises.ask(fa, "plan", exercise.id, *shape)["plans"][0]
        if "refused" in plan:
            raise exercises.Missing(f"{exercise.file}: {plan['refused']}")
        launches = {key: plan[key] for key in ("launches", "scratch", "deterministic")}
        problem, spread = plan["problem"], trial.get("spread", 1)
        trials.append({"problem": problem, "plan": launches, "spread": spread})
    rules = exercise.data["rules"] + exercise.data.get("page_rules", [])
    thread = exercise.data["thread"].replace("//", "/")
    shown = {"formulas": formulas(exercise), "trials": trials, "rules": rules, "thread": thread}
    return {"number": exercise.number} | shown


def cached(build: Path, name: str) -> str:
    """A variable of the build's CMakeCache.txt."""
    text = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def nvcc_words(build: Path, exercise: Exercise, *more: str) -> list[str]:
    """What compiles an exercise to PTX, as cmake/kernels.cmake has it, up to the names of its files."""
    host = cached(build, "CMAKE_CUDA_HOST_COMPILER")
    architecture = "compute_90a" if exercise.file.startswith("hopper/") else "compute_80"
    # nvcc ignores -c beside -ptx; a compiler cache takes no command without it.
    words = [cached(build, f"CMAKE_CUDA_COMPILER{each}") for each in ("_LAUNCHER", "")]
    words = [*filter(None, words), "-c", "-ptx", *more, "-std=c++20", "-O3", "-DNDEBUG"]
    return [*words, f"-arch={architecture}", f"-I{ROOT}", *([f"-ccbin={host}"] if host else [])]


def compile_ptx(build: Path, exercise: Exercise, work: Path) -> str:
    """PTX of an exercise; kept in `work` for as long as its source is the same."""
    work.mkdir(parents=True, exist_ok=True)
    file, output = work / f"{exercise.id}.cu", work / f"{exercise.id}.ptx"
    text = source(exercise)
    if output.is_file() and file.is_file() and file.read_text(encoding="utf-8") == text:
        return output.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    words = nvcc_words(build, exercise, "-rdc=true")
    output.unlink(missing_ok=True)
    done = subprocess.run([*words, file, "-o", output], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"web.py: error: {exercise.file} does not compile: {done.stderr}")
    return output.read_text(encoding="utf-8")


def write_exercises(build: Path, out: Path, work: Path) -> int:
    """Returns how many there are; none where the build has no CUDA compiler, or not their program."""
    fa = build / "exercises/fa"
    if not Path(cached(build, "CMAKE_CUDA_COMPILER")).is_file():
        return 0
    if not fa.is_file():
        print(f"web.py: {fa} is not built (target fa_exercises): no exercises", file=sys.stderr)
        return 0
    folder = out / "exercises"
    folder.mkdir(parents=True, exist_ok=True)
    for exercise in KERNELS:
        ptx = compile_ptx(build, exercise, work)
        (folder / f"{exercise.id}.ptx.gz").write_bytes(gzip.compress(ptx.encode(), 9, mtime=0))
        try:
            text = json.dumps(document(exercise, fa), separators=(",", ":"))
        except exercises.Missing as error:
            raise SystemExit(f"web.py: error: {error}") from None
        (folder / f"{exercise.id}.json").write_text(text, encoding="utf-8")
    return len(KERNELS)
