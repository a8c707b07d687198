# SPDX-License-Identifier: MIT
"""The ctypes structures are those of the C headers."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import flash_ladder
import pytest
from flash_ladder import _native as attention
from flash_ladder import _paths
from ptxvm import _native as machine

CASES = [
    (attention.CProblem, "attention.h", "fa_attention_problem", 96),
    (attention.CTensors, "attention.h", "fa_attention_tensors", 64),
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
