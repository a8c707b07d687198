# SPDX-License-Identifier: MIT
"""The ctypes structures are those of the C headers."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

import flash_ladder
import pytest
from flash_ladder import _native as attention
from flash_ladder import _paths
from ptxvm import _native as machine

CASES = [
    (attention.CTensors, "attention.h", "fa_attention_tensors", 120),
    (machine.Buffer, "ptxvm_c.h", "ptxvm_buffer", 32),
    (machine.CTensorMap, "ptxvm_c.h", "ptxvm_tensor_map", 120),
    (machine.Argument, "ptxvm_c.h", "ptxvm_argument", 56),
    (machine.LaunchConfig, "ptxvm_c.h", "ptxvm_launch_config", 136),
    (machine.Pointer, "ptxvm_c.h", "ptxvm_pointer", 32),
    (machine.Memory, "ptxvm_c.h", "ptxvm_memory", 24),
]


@pytest.mark.parametrize(("structure", "header", "name", "size"), CASES)
def test_layout(repository: Path, structure: Any, header: str, name: str, size: int) -> None:
    folder = "vm/c" if structure.__module__.startswith("ptxvm") else "capi"
    text = (repository / "harness" / folder / header).read_text(encoding="utf-8")
    end = text.index(f"}} {name};")
    body = text[text.rindex("typedef struct", 0, end) : end]
    offsets = [int(number) for number in re.findall(r"offset (\d+)", body)]
    assert offsets == [getattr(structure, field[0]).offset for field in structure._fields_]
    assert ctypes.sizeof(structure) == size


def test_a_problem_is_read_strictly() -> None:
    shape = {"batch": 1, "heads": 1, "seq_q": 128, "seq_kv": 128, "head_dim": 64}
    whole = shape | {"causal": False, "dtype": "float16"}
    takes = attention.library().fa_attention_machine_takes

    def answer(problem: dict[str, Any]) -> str:
        message = attention.Message()
        text = json.dumps(problem).encode()
        status = takes(text, b"06", message.buffer, attention.MESSAGE_BYTES)
        assert status == (2 if message.buffer.value else 0)
        return message.buffer.value.decode()

    assert answer(whole) == ""
    assert answer(shape | {"causal": False}).endswith("key 'dtype' not found")
    for name, value in (("batch", 0), ("heads", 1.5), ("dtype", "int8"), ("causal", 1)):
        assert answer(whole | {name: value}) != "", name
    assert answer(whole | {"softcap": 30}) == 'a problem has no {"softcap":30}'


def test_a_library_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "libfa.so"
    file.write_text("not a library")
    with pytest.raises(flash_ladder.EnvironmentFailure, match="cannot be loaded"):
        attention.load(file)


def test_an_empty_variable_names_no_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("FA_BUILD_DIR", "FA_PTX_DIR"):
        monkeypatch.setenv(value, "")
    assert _paths.build_folder() == repository / "build"
    assert _paths.ptx_folder() == repository / "build" / "ptx"


def test_the_machine_s_library_needs_nothing_of_the_ladder(build: Path) -> None:
    text = (build / "libptxvm_c.so").read_bytes()
    assert b"libcuda" not in text and b"fa_attention" not in text
