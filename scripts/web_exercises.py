# SPDX-License-Identifier: MIT
"""The first six exercises as the pages have them: the gaps are formulas.

A page has no CUDA compiler. So each gap of docs/exercises/exN_*.cu becomes a call of an external
function, the build compiles that to PTX, and the page writes the function from the formula that the
reader has typed.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/exercises"
GAP = re.compile(r"^[ ]*// Your code: begin\..*?// Your code: end\.$", re.MULTILINE | re.DOTALL)
HEADS = 2

Json = dict[str, Any]


@dataclass(frozen=True)
class Formula:
    """A gap: a function of whole numbers or of floats. `shipped` is what the page begins with."""

    name: str
    parameters: tuple[str, ...]
    shipped: str
    answer: str
    says: str
    type: str = "int"

    @property
    def declaration(self) -> str:
        parameters = ", ".join(f"{self.type} {each}" for each in self.parameters)
        return f'extern "C" __device__ {self.type} gap_{self.name}({parameters});\n'


@dataclass(frozen=True)
class Rule:
    """A count of the last trial that has a bound: a number, or another count."""

    what: str
    count: str
    most: int | str


@dataclass(frozen=True)
class Trial:
    seq_q: int
    seq_kv: int
    causal: bool = False
    spread: float = 1.0


@dataclass(frozen=True)
class Exercise:
    number: int
    file: str
    rows: int  # of a thread block
    threads: int
    arguments: str  # behind Q, K, V and O: float, plain or half
    formulas: tuple[Formula, ...]
    code: tuple[str, ...]  # in place of each gap
    trials: tuple[Trial, ...]
    rules: tuple[Rule, ...]
    head_dim: int = 32
    dtype: str = "float32"
    extra: tuple[str, ...] = field(default=())

    @property
    def entry(self) -> str:
        return f"fa_{Path(self.file).stem}"

    def source(self) -> str:
        """The file with calls in its gaps."""
        text = (FOLDER / self.file).read_text(encoding="utf-8")
        code = iter(self.code)
        text, count = GAP.subn(lambda _: next(code), text)
        assert count == len(self.code), f"{self.file} has {count} gaps"
        declarations = "".join(formula.declaration for formula in self.formulas)
        return text.replace("namespace {\n", f"{declarations}\nnamespace {{\n", 1)

    def plan(self, trial: Trial) -> Json:
        """The launch that the file's own planner makes."""
        scale = 1 / math.sqrt(self.head_dim)
        tensors: list[Json] = [{"tensor": name} for name in "qkvo"]
        extents: list[Json] = [{"i32": trial.seq_q}, {"i32": trial.seq_kv}]
        if self.arguments == "half":
            tail = [{"tensor": "lse"}, *extents, {"i32": 0}, {"i32": 1}]
            tail += [{"f32": scale * math.log2(math.e)}]
        elif self.arguments == "float":
            tail = [{"i64": 0}, *extents, {"f32": scale}, {"i32": trial.seq_kv}]
        else:
            tail = [*extents, {"f32": scale}]
            tail += [{"i32": int(trial.causal)}] if "causal" in self.extra else []
        launch = {
            "entry": self.entry,
            "grid": [math.ceil(trial.seq_q / self.rows), HEADS, 1],
            "cluster": [1, 1, 1],
            "block": self.threads,
            "dynamic_shared": 0,
            "arguments": tensors + tail,
        }
        return {"launches": [launch], "scratch": []}

    def problem(self, trial: Trial) -> Json:
        shape = {"batch": 1, "heads": HEADS, "seq_q": trial.seq_q, "seq_kv": trial.seq_kv}
        return shape | {"head_dim": self.head_dim, "causal": trial.causal, "dtype": self.dtype}

    def document(self) -> Json:
        """What the page loads; the answers stay out of it."""
        formulas = []
        for formula in self.formulas:
            shown = asdict(formula) | {"function": f"gap_{formula.name}"}
            formulas.append({key: value for key, value in shown.items() if key != "answer"})
        trials = [
            {"problem": self.problem(each), "plan": self.plan(each), "spread": each.spread}
            for each in self.trials
        ]
        rules = [asdict(rule) for rule in self.rules]
        return {"number": self.number, "formulas": formulas, "trials": trials, "rules": rules}


def floats_of(seq: int, rows: int) -> int:
    """What a kernel loads that reads Q once, and K and V once for each thread block."""
    return HEADS * math.ceil(seq / rows) * (rows + 2 * seq) * 32


RECURRENCE = """    const float new_m = gap_maximum(m, s);
    const float alpha = gap_alpha(m, new_m);
    const float p = gap_p(s, new_m);
    m = new_m;
    l = gap_sum(l, alpha, p);
    for (int d = 0; d < kHeadDim; ++d) o[d] = gap_output(o[d], alpha, p, V[d]);"""
BLOCK_END = "static_cast<int>(blockIdx.x + 1) * kRows"

EXERCISES = (
    Exercise(
        number=1,
        file="ex1_online_softmax.cu",
        rows=64,
        threads=64,
        arguments="plain",
        formulas=(
            Formula("maximum", ("m", "s"), "m", "max(m, s)", "the new maximum", "float"),
            Formula(
                "alpha",
                ("m", "new_m"),
                "1",
                "exp(m - new_m)",
                "the factor on what was before",
                "float",
            ),
            Formula(
                "p", ("s", "new_m"), "exp(s)", "exp(s - new_m)", "the weight of this key", "float"
            ),
            Formula("sum", ("l", "alpha", "p"), "l + p", "l * alpha + p", "the new sum", "float"),
            Formula(
                "output",
                ("o", "alpha", "p", "v"),
                "o + p * v",
                "o * alpha + p * v",
                "a column of the new output",
                "float",
            ),
        ),
        code=(RECURRENCE,),
        trials=(Trial(64, 64, spread=50), Trial(128, 128)),
        rules=(Rule("exponentials (two a key)", "exp", HEADS * 128 // 32 * 128 * 2),),
    ),
    Exercise(
        number=2,
        file="ex2_causal.cu",
        rows=64,
        threads=64,
        arguments="plain",
        extra=("causal",),
        formulas=(
            Formula(
                "end",
                ("rows_end", "seq_q", "seq_kv", "causal"),
                "seq_kv",
                "min(seq_kv, rows_end + (causal ? seq_kv - seq_q : seq_kv))",
                "the first key that no row of the thread block sees; its rows end before rows_end",
            ),
            Formula(
                "hidden",
                ("key", "row", "seq_q", "seq_kv", "causal"),
                "0",
                "causal && key > row + seq_kv - seq_q",
                "1 where this row does not see this key",
            ),
        ),
        code=(
            f"  const int end = gap_end({BLOCK_END}, seq_q, seq_kv, causal);",
            "      if (gap_hidden(j + n, row, seq_q, seq_kv, causal) != 0) continue;",
        ),
        trials=(
            Trial(128, 128),
            Trial(128, 64, causal=True),
            Trial(64, 128, causal=True),
            Trial(256, 256, causal=True),
        ),
        rules=(
            Rule(
                "bytes loaded (20 of 32 tiles are seen)",
                "global_load_bytes",
                HEADS * (256 + 20 * 2 * 32) * 32 * 4,
            ),
        ),
    ),
    Exercise(
        number=3,
        file="ex3_conflict.cu",
        rows=4,
        threads=128,
        arguments="plain",
        formulas=(
            Formula(
                "offset",
                ("row", "column"),
                "row * 32 + column",
                "row * 33 + column",
                "where the element lies, in floats; the tile has 32 x 33",
            ),
        ),
        code=(
            "constexpr int kTileFloats = kKeys * (kHeadDim + 1);\n"
            "__device__ int offset(int row, int column) { return gap_offset(row, column); }",
        ),
        trials=(Trial(128, 128),),
        rules=(
            Rule("wavefronts of reads", "shared_load_wavefronts", "shared_load_ideal"),
            Rule("wavefronts of writes", "shared_store_wavefronts", "shared_store_ideal"),
        ),
    ),
    Exercise(
        number=4,
        file="ex4_any_length.cu",
        rows=64,
        threads=64,
        arguments="float",
        formulas=(
            Formula(
                "load_q", ("row", "seq_q"), "1", "row < seq_q", "1 where this row of Q is loaded"
            ),
            Formula(
                "load_kv",
                ("key", "seq_kv"),
                "1",
                "key < seq_kv",
                "1 where this row of K and V is loaded",
            ),
            Formula("counts", ("key", "seq_kv"), "1", "key < seq_kv", "1 where this score counts"),
            Formula(
                "store", ("row", "seq_q"), "1", "row < seq_q", "1 where this row of O is stored"
            ),
        ),
        code=(
            "    for (int d = 0; d < kHeadDim; ++d) q[d] = gap_load_q(row, seq_q) ? Q[d] : 0.f;",
            "        const bool exists = gap_load_kv(j + i / kHeadDim, seq_kv) != 0;\n"
            "        const int64_t at = int64_t{j} * kHeadDim + i;\n"
            "        k_tile[i / kHeadDim][i % kHeadDim] = exists ? K[at] : 0.f;\n"
            "        v_tile[i / kHeadDim][i % kHeadDim] = exists ? V[at] : 0.f;",
            "        if (gap_counts(j + n, seq_kv) == 0) continue;",
            "    if (gap_store(row, seq_q) == 0) return;\n"
            "    for (int d = 0; d < kHeadDim; ++d) O[d] = o[d] / l;",
        ),
        trials=(Trial(64, 64), Trial(1, 33), Trial(100, 77)),
        rules=(
            Rule(
                "bytes loaded (rows that exist, K and V once for each thread block)",
                "global_load_bytes",
                HEADS * (100 + 2 * 2 * 77) * 32 * 4,
            ),
        ),
    ),
    Exercise(
        number=5,
        file="ex5_sectors.cu",
        rows=64,
        threads=64,
        arguments="float",
        formulas=(
            Formula(
                "element",
                ("thread", "step", "steps"),
                "thread * steps + step",
                "step * 64 + thread",
                "which float of the tile a thread copies in a step; there are 64 threads",
            ),
        ),
        code=(
            "    for (int i = 0; i < Rows * kHeadDim / kRows; ++i) {\n"
            "      const int e = gap_element(threadIdx.x, i, Rows * kHeadDim / kRows);\n"
            "      tile[e / kHeadDim][e % kHeadDim] = rows[e];\n"
            "    }",
        ),
        trials=(Trial(128, 128),),
        rules=(
            Rule("sectors of 32 bytes loaded", "global_load_sectors", floats_of(128, 64) * 4 // 32),
        ),
    ),
    Exercise(
        number=6,
        file="ex6_fragments.cu",
        rows=64,
        threads=128,
        arguments="half",
        head_dim=64,
        dtype="float16",
        formulas=(
            Formula(
                "a_row",
                ("lane", "i"),
                "lane / 4",
                "lane / 4 + i % 2 * 8",
                "row of A in register i of a lane",
            ),
            Formula(
                "a_k",
                ("lane", "i"),
                "lane % 4 * 2",
                "lane % 4 * 2 + i / 2 * 8",
                "column of A in register i",
            ),
            Formula(
                "b_k",
                ("lane", "i"),
                "lane % 4 * 2",
                "lane % 4 * 2 + i * 8",
                "row of B in register i",
            ),
            Formula("b_column", ("lane",), "lane / 4", "lane / 4", "column of B"),
        ),
        code=(
            "  __device__ static int a_row(int lane, int i) { return gap_a_row(lane, i); }\n"
            "  __device__ static int a_k(int lane, int i) { return gap_a_k(lane, i); }\n"
            "  __device__ static int b_k(int lane, int i) { return gap_b_k(lane, i); }\n"
            "  __device__ static int b_column(int lane) { return gap_b_column(lane); }",
        ),
        trials=(Trial(128, 128),),
        rules=(
            Rule("products on tensor cores", "tensor", HEADS * 128 // 16 * 128 // 8 * 64 // 16 * 2),
        ),
    ),
)


def cached(build: Path, name: str) -> str:
    """A variable of the build's CMakeCache.txt."""
    text = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def compile_ptx(build: Path, exercise: Exercise, work: Path) -> str:
    """PTX of an exercise; kept in `work` for as long as its source is the same."""
    work.mkdir(parents=True, exist_ok=True)
    source, output = work / f"ex{exercise.number}.cu", work / f"ex{exercise.number}.ptx"
    text = exercise.source()
    if output.is_file() and source.is_file() and source.read_text(encoding="utf-8") == text:
        return output.read_text(encoding="utf-8")
    source.write_text(text, encoding="utf-8")
    host = cached(build, "CMAKE_CUDA_HOST_COMPILER")
    words = [cached(build, "CMAKE_CUDA_COMPILER"), "-ptx", "-rdc=true", "-std=c++20", "-O3"]
    words += ["-DNDEBUG", "-arch=compute_80", f"-I{ROOT}", *([f"-ccbin={host}"] if host else [])]
    output.unlink(missing_ok=True)
    done = subprocess.run([*words, source, "-o", output], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"web.py: error: {exercise.file} does not compile: {done.stderr}")
    return output.read_text(encoding="utf-8")


def write_exercises(build: Path, out: Path, work: Path) -> int:
    """Returns how many there are; none where the build has no CUDA compiler."""
    if not Path(cached(build, "CMAKE_CUDA_COMPILER")).is_file():
        return 0
    folder = out / "exercises"
    folder.mkdir(parents=True, exist_ok=True)
    for exercise in EXERCISES:
        name = f"ex{exercise.number}"
        ptx = compile_ptx(build, exercise, work)
        (folder / f"{name}.ptx.gz").write_bytes(gzip.compress(ptx.encode(), 9, mtime=0))
        text = json.dumps(exercise.document(), separators=(",", ":"))
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return len(EXERCISES)
