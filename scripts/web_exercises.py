# SPDX-License-Identifier: MIT
"""The exercises in CUDA as the pages have them: the gaps are formulas.

A page has no CUDA compiler. So each gap of docs/exercises becomes a call of an external
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
    arguments: str  # those of its entry: plain, float, half or tma
    formulas: tuple[Formula, ...]
    code: tuple[str, ...]  # in place of each gap
    trials: tuple[Trial, ...]
    rules: tuple[Rule, ...]
    head_dim: int = 32
    dtype: str = "float32"
    extra: tuple[str, ...] = field(default=())
    keys: int = 0  # of a step, where they come through the TMA
    shared: int = 0  # bytes of dynamic shared memory

    @property
    def architecture(self) -> str:
        return "compute_90a" if self.arguments == "tma" else "compute_80"

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
        extents: list[Json] = [{"i32": trial.seq_q}, {"i32": trial.seq_kv}]
        tail = [*extents, {"f32": scale}]
        if self.arguments == "plain":
            tail += [{"i32": int(trial.causal)}] if "causal" in self.extra else []
        elif self.arguments == "float":
            tail = [{"i64": 0}, *tail, {"i32": trial.seq_kv}]
        elif self.arguments == "half":
            tail = [{"tensor": "lse"}, *extents, {"i32": 0}, {"i32": 1}]
            tail += [{"f32": scale * math.log2(math.e)}]
        else:
            tail = [{"tensor": "lse"}, {"tensor": "k"}, {"i64": 0}]
            tail += [{"i32": HEADS}, {"i32": 1}, {"i32": 1}, *extents, {"i32": 0}]
            tail += [{"f32": scale * math.log2(math.e)}]
        launch = {
            "entry": self.entry,
            "grid": [math.ceil(trial.seq_q / self.rows), HEADS, 1],
            "cluster": [1, 1, 1],
            "block": self.threads,
            "dynamic_shared": self.shared,
            "arguments": self.tensors(trial) + tail,
        }
        return {"launches": [launch], "scratch": []}

    def tensors(self, trial: Trial) -> list[Json]:
        if self.arguments != "tma":
            return [{"tensor": name} for name in "qkvo"]
        rows = {"q": self.rows, "k": self.keys, "v": self.keys, "o": 16}
        return [{"map": self.box(trial, *each)} for each in rows.items()] + [{"tensor": "o"}]

    def box(self, trial: Trial, tensor: str, rows: int) -> Json:
        """The map of a tensor, copied in tiles of `rows` rows."""
        seq = trial.seq_kv if tensor in "kv" else trial.seq_q
        panels = self.head_dim // 64
        return {
            "tensor": tensor,
            "rank": 4,
            "extents": [64, seq, panels, HEADS, 0],
            "strides": [1, self.head_dim, 64, seq * self.head_dim, 0],
            "box": [64, rows, panels, 1, 0],
            "swizzle": 3,  # 128 bytes
        }

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

PIPELINE = """    const auto stage_of = [&](int step) { return stages + gap_stage(step) * 2 * kKeys * 128; };
    const auto load_step = [&](int step) {
      load_tile<kKeys>(stage_of(step), K + int64_t{step} * kKeys * kHeadDim);
      load_tile<kKeys>(stage_of(step) + kKeys * 128, V + int64_t{step} * kKeys * kHeadDim);
    };
    load_step(0);
    cp_async_commit();
    for (int step = 0; step < seq_kv / kKeys; ++step) {
      if ((step + 1) * kKeys < seq_kv) load_step(step + 1);
      cp_async_commit();
      const int pending = gap_pending(step);
      if (pending < 2) cp_async_wait_group<1>();
      if (pending < 1) cp_async_wait_group<0>();
      __syncthreads();
      add_step(state, q_tile, stage_of(step), scale_log2);
      __syncthreads();
    }"""
RING = """  struct Position {
    int slot = 0, parity = 0;

    __device__ void advance() {
      if (++slot == kSlots) slot = 0;
      parity = gap_next_parity(slot, parity);
    }
  };

  __device__ static void wait_empty(uint32_t empty, Position at) {
    mbarrier_wait(empty + 8 * at.slot, gap_producer_parity(at.parity));
  }

  __device__ static void release(uint32_t empty, Position at) {
    __syncwarp();
    if (gap_arrives(threadIdx.x % 32) != 0) mbarrier_arrive(empty + 8 * at.slot);
  }"""
# The fences stay: the machine wants one on every path to a wgmma, also on those that a gap rules out.
ORDER = """    const auto order = [&](int place) {
      if (gap_commit(place) != 0) wgmma_commit();
      if (gap_wait(place) != 0) wgmma_wait<0>(S, O);
    };
    order(0);
    wgmma_fence();
    multiply_qk(S, q, k);
    order(1);
    softmax(S, rows, scale_log2);
    rescale(O, rows);
    pack(P, S);
    order(2);
    wgmma_fence();
    multiply_pv(O, P, v);
    order(3);"""
WARPGROUP_STEPS = HEADS * 128 // 16 * 128 // 64  # steps of all warps at N = 128

# Exercises 12 and 13: 64 queries and 64 keys, a warpgroup, tiles of Q, K and V and two mbarriers.
WARPGROUP: dict[str, Any] = {
    "rows": 64,
    "threads": 128,
    "arguments": "tma",
    "keys": 64,
    "head_dim": 128,
    "dtype": "float16",
    "shared": 1024 + 3 * 64 * 128 * 2 + 8 * 2,
}

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
    Exercise(
        number=7,
        file="ex7_registers.cu",
        rows=64,
        threads=128,
        arguments="half",
        head_dim=64,
        dtype="float16",
        shared=(64 + 2 * 32 + 64) * 128,
        formulas=(
            Formula(
                "tile", ("k", "i"), "0", "2 * k + i / 2", "n of the S[n] in register i of P[k]"
            ),
            Formula(
                "first",
                ("k", "i"),
                "0",
                "i % 2 * 2",
                "which element of S[n] comes first; the next one stands beside it",
            ),
        ),
        code=(
            "    for (int k = 0; k < kKeys / 16; ++k)\n"
            "      for (int i = 0; i < 4; ++i) {\n"
            "        const float* const s = S[gap_tile(k, i)] + gap_first(k, i);\n"
            "        P[k][i] = pack(s[0], s[1]);\n"
            "      }",
        ),
        trials=(Trial(128, 128),),
        rules=(),
    ),
    Exercise(
        number=8,
        file="ex8_ldmatrix.cu",
        rows=64,
        threads=128,
        arguments="half",
        head_dim=64,
        dtype="float16",
        shared=(64 + 2 * 32) * 128,
        formulas=tuple(
            Formula(
                f"{name}_{part}", ("lane",), shipped, answer, f"{says} of a lane for {name.upper()}"
            )
            for name, row, chunk in (
                ("q", "lane % 16", "lane / 16"),
                ("k", "lane / 16 * 8 + lane % 8", "lane / 8 % 2"),
                ("v", "lane % 16", "lane / 16"),
            )
            for part, shipped, answer, says in (
                ("row", "lane % 8", row, "the row"),
                ("chunk", "0", chunk, "the chunk"),
            )
        ),
        code=(
            "\n".join(
                f"  __device__ static int {name}(int lane) {{ return gap_{name}(lane); }}"
                for name in ("q_row", "q_chunk", "k_row", "k_chunk", "v_row", "v_chunk")
            ),
        ),
        trials=(Trial(128, 128),),
        rules=(Rule("wavefronts of ldmatrix", "ldmatrix_wavefronts", "ldmatrix_ideal"),),
    ),
    Exercise(
        number=9,
        file="ex9_swizzle.cu",
        rows=64,
        threads=128,
        arguments="half",
        head_dim=64,
        dtype="float16",
        shared=(64 + 2 * 32) * 128,
        formulas=(
            Formula(
                "offset",
                ("row", "chunk"),
                "row * 128 + chunk * 16",
                "row * 128 + ((chunk ^ (row & 7)) << 4)",
                "where the chunk lies, in bytes; a row has 128, a chunk 16",
            ),
        ),
        code=("    return static_cast<uint32_t>(gap_offset(row, chunk));",),
        trials=(Trial(128, 128),),
        rules=(Rule("wavefronts of ldmatrix", "ldmatrix_wavefronts", "ldmatrix_ideal"),),
    ),
    Exercise(
        number=10,
        file="ex10_pipeline.cu",
        rows=64,
        threads=128,
        arguments="half",
        head_dim=64,
        dtype="float16",
        shared=(64 + 4 * 32) * 128,
        formulas=(
            Formula(
                "stage",
                ("step",),
                "0",
                "step % 2",
                "the stage, 0 or 1, of a step; the copies of step + 1 start before its products",
            ),
            Formula(
                "pending",
                ("step",),
                "0",
                "1",
                "how many of the newest groups of copies may be unfinished when a step is multiplied",
            ),
        ),
        code=(PIPELINE,),
        trials=(Trial(128, 128),),
        rules=(
            Rule(
                "commits and waits (a wait more for each step that waits for the newest group, too)",
                "cp_async_group",
                HEADS * 128 // 16 * (1 + 2 * 4),
            ),
        ),
    ),
    Exercise(
        number=11,
        file="hopper/ex11_ring.cu",
        rows=64,
        threads=96,
        arguments="tma",
        keys=32,
        head_dim=64,
        dtype="float16",
        shared=1024 + 64 * 128 + 3 * 32 * 128 + 8 * 7,
        formulas=(
            Formula(
                "next_parity",
                ("slot", "parity"),
                "parity",
                "slot == 0 ? !parity : parity",
                "the parity at the next slot, whose number is slot: 0, 1, 2, 0, ...",
            ),
            Formula(
                "producer_parity",
                ("parity",),
                "1",
                "!parity",
                "the phase of empty that the producer waits for before it fills a slot",
            ),
            Formula(
                "arrives",
                ("lane",),
                "0",
                "lane == 0",
                "1 where this lane arrives at empty when its warp has read a slot",
            ),
        ),
        code=(RING,),
        trials=(Trial(128, 128),),
        rules=(Rule("TMA copies", "bulk_copy", HEADS * 128 // 64 * (1 + 2 * 128 // 32)),),
    ),
    Exercise(
        number=12,
        file="hopper/ex12_descriptor.cu",
        **WARPGROUP,
        formulas=(
            Formula(
                "panels",
                ("panel_bytes",),
                "0",
                "panel_bytes / 16",
                "bits 16 to 29: the distance of two panels, in units of 16 bytes",
            ),
            Formula(
                "groups",
                ("row_bytes",),
                "0",
                "8 * row_bytes / 16",
                "bits 32 to 45: the distance of two groups of eight rows, in units of 16 bytes",
            ),
            Formula(
                "swizzle",
                ("row_bytes",),
                "0",
                "1",
                "bits 62 and 63: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes",
            ),
        ),
        code=(
            "    const auto field = [](int value, int bits, int at) {\n"
            "      return (static_cast<uint64_t>(value) & ((1u << bits) - 1)) << at;\n"
            "    };\n"
            "    return (address & 0x3FFFF) >> 4 | field(gap_panels(panel_bytes), 14, 16) |\n"
            "           field(gap_groups(128), 14, 32) | field(gap_swizzle(128), 2, 62);",
        ),
        trials=(Trial(128, 128),),
        rules=(Rule("wgmma, counted for each warp", "wgmma", WARPGROUP_STEPS * (8 + 4)),),
    ),
    Exercise(
        number=13,
        file="hopper/ex13_wait.cu",
        **WARPGROUP,
        formulas=(
            Formula(
                "commit",
                ("place",),
                "0",
                "place % 2",
                "1 where a commit stands; place 0 is before Q K^T, 1 after it, 2 before P V, 3 after it",
            ),
            Formula(
                "wait",
                ("place",),
                "0",
                "place % 2",
                "1 where a wait for all groups stands; it comes after the commit of its place",
            ),
        ),
        code=(ORDER,),
        trials=(Trial(128, 128),),
        rules=(
            Rule("fences, commits and waits, for each warp", "wgmma_sync", WARPGROUP_STEPS * 2 * 3),
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
    words += [
        "-DNDEBUG",
        f"-arch={exercise.architecture}",
        f"-I{ROOT}",
        *([f"-ccbin={host}"] if host else []),
    ]
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
