# SPDX-License-Identifier: MIT
"""What rung="best" means."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from flash_ladder import _best, _machine, _native, _paths
from flash_ladder._errors import Refused
from flash_ladder._problem import Problem


def row(rung: str, ms: float, seq: int, **changes: Any) -> dict[str, Any]:
    problem = {
        "batch": 16,
        "heads": 16,
        "seq_q": seq,
        "seq_kv": seq,
        "head_dim": 128,
        "causal": False,
        "dtype": "float16",
    }
    made = {"kind": "rung", "id": rung, "status": "ok", "ablation": False}
    made |= {"problem": problem, "time_ms": {"median": ms, "back_to_back": 10 - ms}} | changes
    return made


ROWS = [
    row("06", 1.0, 512),
    row("29", 2.0, 512),
    row("29", 5.0, 8192),
    row("06", 9.0, 8192),
    row("33", 0.1, 8192, status="incorrect"),
    row("32", 0.1, 8192, ablation=True),
    row("fa2", 0.1, 8192, kind="peer"),
]


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ladder.json"
    policy = {"l2_back_to_back": "as the launch before left it"}
    file.write_text(json.dumps({"policy": policy, "rows": ROWS}))
    monkeypatch.setattr(_paths, "measurements", lambda: [file])
    _best.measured.cache_clear()
    yield
    _best.measured.cache_clear()


def problem(seq: int, dtype: str = "float16") -> Problem:
    return Problem(16, 16, seq, seq, 128, False, dtype, False, 0.1, 16)


@pytest.mark.usefixtures("measurements")
def test_the_nearest_measured_problem_decides() -> None:
    assert list(_best.candidates(problem(600)))[:2] == ["06", "29"]
    with_lse = replace(problem(600), lse=True)
    assert list(_best.candidates(with_lse))[:3] == [_best.PRECISE, "06", "29"]
    assert list(_best.candidates(problem(9000)))[:2] == ["29", "06"]


def test_runs_are_averaged_and_cold_launches_without_gaps_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "run1.json", tmp_path / "run2.json"]
    policy = {"l2_back_to_back": "copies of K and V in turn"}
    for file, slow in zip(files, ("06", "29"), strict=True):
        # Without gaps 29 takes 9 ms in both runs, 06 takes 9.5 and 1.
        rows = [row("29", 1.0, 512), row("06", 0.5 if slow == "06" else 9.0, 512)]
        file.write_text(json.dumps({"policy": policy, "rows": rows}))
    monkeypatch.setattr(_paths, "measurements", lambda: files)
    _best.measured.cache_clear()
    assert list(_best.candidates(problem(512)))[:2] == ["06", "29"]
    monkeypatch.setattr(_paths, "measurements", lambda: files[:1])
    _best.measured.cache_clear()
    assert list(_best.candidates(problem(512)))[:2] == ["29", "06"]
    _best.measured.cache_clear()
    # Where the L2 held all copies, the spaced launches decide: 0.5 ms and 1.
    rows = [row("29", 1.0, 512), row("06", 0.5, 512)]
    for each in rows:
        each["time_ms"]["hot"] = True
    files[0].write_text(json.dumps({"policy": policy, "rows": rows}))
    _best.measured.cache_clear()
    assert list(_best.candidates(problem(512)))[:2] == ["06", "29"]
    _best.measured.cache_clear()


def test_shapes_without_the_latest_rung_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "one.json"
    rows = [row("29", 2.0, 512), row("33", 1.0, 512), row("29", 0.5, 1024), row("06", 0.1, 1024)]
    file.write_text(json.dumps({"policy": {"l2_back_to_back": ""}, "rows": rows}))
    monkeypatch.setattr(_paths, "measurements", lambda: [file])
    _best.measured.cache_clear()
    assert list(_best.candidates(problem(1000)))[:3] == ["33", "29", "06"]
    _best.measured.cache_clear()


def test_a_rung_that_only_slow_cards_ran_is_not_slower_for_that() -> None:
    runs = [{"06": 1.1, "29": 1.0}, {"06": 1.65, "33": 1.35}]
    times = _best.mean_times(runs)
    assert sorted(times, key=times.__getitem__) == ["33", "29", "06"]
    assert times["06"] == pytest.approx(mean([1.1, 1.65]))
    assert _best.mean_times([{"06": 1.0}, {"29": 3.0}]) == {"06": 1.0, "29": 3.0}


def test_a_percent_of_a_long_sequence_does_not_decide_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = _best.kind_of(problem(8192))
    monkeypatch.setattr(_best, "measured", lambda: {long: {"29": 1.01, "33": 1.0, "06": 1.1}})
    first = [list(_best.candidates(problem(seq)))[:3] for seq in (8192, 4096, 512)]
    assert first == [["33", "29", "06"], ["33", "29", "06"], ["29", "33", "06"]]


@pytest.mark.usefixtures("measurements")
def test_every_rung_is_a_candidate_once() -> None:
    for each in (replace(problem(600), lse=True), problem(600, "float32")):
        found = list(_best.candidates(each))
        assert sorted(found) == sorted(_native.rung_ids())
    assert found[0] == _native.rung_ids()[-1]  # nothing is known: the last of the ladder


@pytest.mark.usefixtures("measurements")
def test_those_that_refuse_are_passed_over() -> None:
    def attempt(rung: str) -> str:
        if rung == "06":
            raise Refused("not this one")
        return rung

    assert _best.first_that_takes(problem(600), "best", attempt) == "29"
    with pytest.raises(Refused, match="not this one"):
        _best.first_that_takes(problem(600), "06", attempt)


def test_the_committed_measurements_are_read() -> None:
    kinds = _best.measured()
    assert {(each.dtype, each.e4m3) for each in kinds} >= {("float16", True), ("float32", False)}
    like = [each for each in kinds if each.seq == 8192 and each.dtype == "float16" and not each.few]
    assert all(len(kinds[each]) >= 3 for each in like) and like


@pytest.mark.parametrize("changes", [{}, {"seq_q": 4}, {"page": 16}, {"lengths": (9, 9)}])
@pytest.mark.parametrize("e4m3", [False, True])
def test_few_queries_take_a_rung_for_a_cache(changes: dict[str, Any], e4m3: bool) -> None:
    shape = {"batch": 2, "heads": 32, "kv_heads": 8, "seq_q": 1, "seq_kv": 8192, "head_dim": 128}
    plain = {"causal": False, "dtype": "float16", "lse": False, "scale": 0.1}
    plain["cache"] = "float8_e4m3" if e4m3 else None
    first = next(_best.candidates(Problem(**shape | plain | changes)))
    reads_e4m3 = e4m3 and "seq_q" not in changes
    assert first == "51" if reads_e4m3 else "40" <= first <= "53"


def test_bfloat16_has_the_order_of_float16_until_it_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ladder.json"
    rows = [*ROWS, row("37", 1.0, 512), row("36", 2.0, 512)]
    for each in rows[-2:]:
        each["problem"] |= {"dtype": "bfloat16"}
    monkeypatch.setattr(_paths, "measurements", lambda: [file])
    for kept, first in ((ROWS, ["29", "06"]), (rows, ["37", "36", "29", "06"])):
        file.write_text(json.dumps({"policy": {"l2_back_to_back": "as it was"}, "rows": kept}))
        _best.measured.cache_clear()
        assert list(_best.candidates(problem(9000, "bfloat16")))[: len(first)] == first
        assert next(_best.candidates(problem(9000))) == "29"
    _best.measured.cache_clear()


@pytest.mark.parametrize(
    ("changes", "takes"),
    [
        ({}, set()),
        ({"dtype": "bfloat16"}, {"36", "37", "38", "39"}),
        ({"strides": (64, 64, 128) * 4}, {"36", "37", "38", "39"}),
        ({"window_left": 100}, {"37", "38", "39"}),
        ({"window_right": 100}, {"37", "38", "39"}),
        ({"sinks": True}, {"38", "39"}),
        ({"query_lengths": (8192,), "lengths": (8192,)}, {"39"}),
        ({"query_lengths": (8192,), "lengths": (8192,), "backward": True}, {"71", "72", "73"}),
        ({"strides": (64, 64, 128) * 8, "backward": True}, {"71", "72", "73"}),
    ],
)
def test_the_first_that_takes_bfloat16_views_windows_and_sinks(
    changes: dict[str, Any], takes: set[str]
) -> None:
    given = replace(problem(8192), batch=1, heads=1, kv_heads=1, head_dim=64, **changes)
    found = _machine.choose(given, "best")
    assert found in takes or not takes
    like = _best.kind_of(given)
    plain = _best.kind_of(replace(problem(8192), batch=1, heads=1, kv_heads=1, head_dim=64))
    assert (like == plain) == (not takes)


def test_many_queries_take_none() -> None:
    assert not "40" <= next(_best.candidates(problem(512))) <= "53"
