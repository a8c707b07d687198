# SPDX-License-Identifier: MIT
"""rungs, explain, check and bench."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import flash_ladder
import pytest


def test_rungs() -> None:
    rungs = {rung.id: rung for rung in flash_ladder.rungs()}
    assert rungs["09"].name == "09_ragged" and rungs["09"].parent == "08"
    assert rungs["09"].capabilities == {"causal", "ragged", "lse", "grouped"}
    assert rungs["06"].head_dims == (64, 128) and rungs["06"].dtype == "float16"


def test_explain_counts_what_the_program_counts(build: Path) -> None:
    counts = flash_ladder.explain("01", seq=128, heads=1, by_line=True)
    words = [str(build / "fa"), "explain", "01", "--seq", "128", "--heads", "1", "--json"]
    environment = {**os.environ, "FA_PTX_DIR": str(build / "ptx")}
    program = subprocess.run(words, capture_output=True, check=True, env=environment)
    assert counts == json.loads(program.stdout)["rows"][0]["counts"]
    assert counts["ldmatrix_wavefronts"] > 4 * counts["ldmatrix_ideal"]  # its conflicts
    assert sum(line["instructions"] for line in counts.by_line.values()) == counts["instructions"]
    assert f"{counts['tensor']:,}" in str(counts) and str(counts).startswith("01 ")


def test_explain_refuses() -> None:
    with pytest.raises(flash_ladder.Refused, match="'ampere' means 14 rungs; explain takes one"):
        flash_ladder.explain("ampere", seq=128)
    with pytest.raises(flash_ladder.Refused, match="seq_q 100 is not a multiple"):
        flash_ladder.explain("06", seq=100)
    with pytest.raises(flash_ladder.Refused, match="'77'"):
        flash_ladder.explain("77")


def test_check() -> None:
    report = flash_ladder.check("01", device="vm")
    assert report and "passed    0 wrong" in str(report)
    with pytest.raises(
        flash_ladder.Refused, match="--suite 'some' is unknown; allowed: quick, full"
    ):
        flash_ladder.check("06", suite="some")


def test_bench_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(flash_ladder.EnvironmentFailure, match="no GPU found"):
        flash_ladder.bench("06", seqs=[512])


def test_bench_prints_its_rows() -> None:
    problem = {"batch": 1, "heads": 2, "seq_q": 8, "seq_kv": 8, "head_dim": 64, "causal": True}
    row = {"id": "06", "variant": "64x64w4", "problem": problem, "reason": "too short"}
    good = row | {"status": "ok", "time_ms": {"median": 0.5}, "tflops": 321.04}
    text = str(flash_ladder.Bench([row | {"status": "unsupported"}, good])).splitlines()
    assert text[1].endswith("unsupported: too short") and "1x2x8x8x64 causal" in text[1]
    assert text[2].split()[-2:] == ["0.5000", "321.0"]
