# SPDX-License-Identifier: MIT
"""rungs, explain, check and bench, and the command fa."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import flash_ladder
import numpy as np
import pytest
from flash_ladder import _commands


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
    (row,) = json.loads(program.stdout)["rows"]
    assert counts == row["counts"] and counts.bound == row["bound"]
    assert counts.bound["resource"] == "shared_memory" and counts.bound["share"] == 1
    assert str(counts).splitlines()[1].startswith("bound by shared memory: ")
    assert counts["ldmatrix_wavefronts"] > 4 * counts["ldmatrix_ideal"]  # its conflicts
    assert sum(line["instructions"] for line in counts.by_line.values()) == counts["instructions"]
    assert f"{counts['tensor']:,}" in str(counts) and str(counts).startswith("01 ")


def test_explain_refuses() -> None:
    for word in ("ampere", "all"):
        with pytest.raises(flash_ladder.Refused, match=f"'{word}' means several rungs; explain"):
            flash_ladder.explain(word, seq=1 << 20)  # would take all day
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
    good = row | {"status": "ok", "time_ms": {"median": 0.5}, "tflops": 321.04, "gbs": 7}
    text = str(flash_ladder.Bench([row | {"status": "unsupported"}, good])).splitlines()
    assert text[1].endswith("unsupported: too short") and "1x2x8x8x64 causal" in text[1]
    assert text[2].split()[-3:] == ["0.5000", "321.0", "7"]
    cached = good | {"problem": problem | {"kv_heads": 1, "page": 16, "lengths": [1]}}
    assert " causal kv_heads 1 page 16 lengths " in str(flash_ladder.Bench([cached]))


def test_explain_of_a_cache() -> None:
    shape = {"batch": 2, "heads": 8, "kv_heads": 2, "seq": 1, "seq_kv": 4096}
    whole = flash_ladder.explain(47, **shape)
    part = flash_ladder.explain("47", lengths=[4096, 7], page=np.int64(16), **shape)
    assert part.problem["page"] == 16 and part.problem["lengths"] == [4096, 7]
    assert 1.7 < whole["global_load_sectors"] / part["global_load_sectors"] < 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flash_ladder.explain("--help"), "rung is '--help'; allowed: a number, a name"),
        (lambda: flash_ladder.explain("06", seq=128.5), "seq is 128.5; allowed: a whole number"),
        (lambda: flash_ladder.explain("06", seq="128"), "seq is '128'; allowed: a whole number"),
        (lambda: flash_ladder.explain("06", seq=True), "seq is True; allowed: a whole number"),
        (
            lambda: flash_ladder.explain("06", dim=[64, 128]),
            r"dim is \[64, 128\]; allowed: a whole",
        ),
        (lambda: flash_ladder.explain("08", causal="no"), "causal is 'no'; allowed: True or False"),
        (lambda: flash_ladder.explain("06", tile=6.5), "tile is 6.5; allowed: text"),
        (lambda: flash_ladder.explain("46", lengths=[]), r"lengths is \[\]; allowed: at least one"),
        (lambda: flash_ladder.explain("46", seq=1, lengths="some"), "--lengths 'some'"),
        (lambda: flash_ladder.explain("46", seq=1, lengths=[2]), "length 2 is not between 0 and"),
        (lambda: flash_ladder.explain(None), "rung is None; allowed: the number or name"),
        (lambda: flash_ladder.explain("06\0"), r"rung is '06.x00'; allowed: the number or name"),
        (lambda: flash_ladder.check("--mutants"), "rung is '--mutants'; allowed: a number, a name"),
        (lambda: flash_ladder.check(["06"]), r"rung is \['06'\]; allowed: the number or name"),
        (lambda: flash_ladder.check("06", device=0.5), "device is 0.5; allowed: text"),
        (lambda: flash_ladder.bench("06", "--json", "x"), "rung is '--json'; allowed: a number"),
        (lambda: flash_ladder.bench("06", seqs=[]), r"seqs is \[\]; allowed: at least one"),
        (lambda: flash_ladder.bench("06", seqs=[5.5]), "seqs is 5.5; allowed: a whole number, or"),
        (lambda: flash_ladder.bench("06", spread="2"), "spread is '2'; allowed: a number"),
    ],
)
def test_what_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(flash_ladder.Refused, match=message):
        call()


def test_bench_passes_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def run(words: Sequence[object], allowed: object) -> tuple[int, str]:
        seen.extend(map(str, words))
        Path(seen[-1]).write_text('{"rows": []}')
        return 0, ""

    monkeypatch.setattr(_commands, "run", run)
    file = tmp_path / "mine.json"
    options = {"queries": 1, "kv_heads": 8, "lengths": "random", "page": 16, "spread": 2}
    assert flash_ladder.bench(47, seqs=4096, json_file=file, **options) == []
    assert " ".join(seen) == (
        "bench 47 --seqs 4096 --queries 1 --kv-heads 8 --lengths random --page 16 --spread 2.0"
        f" --json {file}"
    )
    assert file.exists()


def program(*words: str, build: Path, repository: Path) -> subprocess.Popen[bytes]:
    """The command `fa` of the package."""
    environment = os.environ | {"FA_BUILD_DIR": str(build)}
    packages = ("harness/python", "harness/vm/python")
    environment["PYTHONPATH"] = ":".join(str(repository / each) for each in packages)
    return subprocess.Popen(
        [sys.executable, "-m", "flash_ladder", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,
        env=environment,
    )


def test_a_reader_that_leaves_is_no_error(build: Path, repository: Path) -> None:
    """`fa list --json | head -1`: the pipe holds less than the list."""
    process = program("list", "--json", build=build, repository=repository)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"{\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == -signal.SIGPIPE


def test_a_program_that_is_not_there(tmp_path: Path, repository: Path) -> None:
    process = program("list", build=tmp_path, repository=repository)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, b"")
    assert err.startswith(b"fa: error: ") and b"set FA_BUILD_DIR" in err
