# SPDX-License-Identifier: MIT
"""The kernels with clock stamps (harness/measure/timeline) compute what those without them do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import flash_ladder
import numpy as np
import ptxvm
import pytest
from web_exercises import cached

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("rung", "producers"), [("22", 0), ("25", 128)])
def test_the_same_bits(rung: str, producers: int, case: Any, build: Path, tmp_path: Path) -> None:
    name = next(each.name for each in flash_ladder.rungs() if each.id == rung)
    ptx = tmp_path / "stamped.ptx"
    nvcc = cached(build, "CMAKE_CUDA_COMPILER") or pytest.skip("the build has no nvcc")
    words = [nvcc, "-ptx", "-std=c++20", "-O3", "-DNDEBUG", "-arch=compute_90a"]
    words += [f"-I{REPOSITORY}", f"-DFA_PRODUCER_THREADS={producers}"]
    words += ["-include", "harness/measure/timeline/stamps.cuh", f"kernels/hopper/{name}.cu"]
    subprocess.run([*words, "-o", str(ptx)], check=True, cwd=REPOSITORY, capture_output=True)
    assert ptx.read_text().count("%clock") > 20

    given = case((1, 2, 256, 64))
    kernel = ptxvm.Module.load(ptx).kernel(f"fa_{name}_d64")

    def panels(array: Any, rows: int) -> ptxvm.TensorMap:
        heads = array.reshape(2, 256, 1, 64).swapaxes(1, 2)
        return ptxvm.TensorMap(heads, (1, 1, rows, 64), swizzle=128)

    o = np.full_like(given.q, np.nan)
    maps = [panels(given.q, 64), panels(given.k, 128), panels(given.v, 128), panels(o, 16)]
    scale_log2 = float(64**-0.5 * np.log2(np.e))
    values = (*maps, o, 0, given.k, 0, 2, 1, 1, 256, 256, 0, scale_log2)
    threads = kernel.max_threads[0]
    done = kernel.launch(*values, grid=(2, 2, 1), block=threads, shared=220 * 1024)
    assert done.ok, done.findings
    assert (o == flash_ladder.attention(given.q, given.k, given.v, rung=rung)).all()
