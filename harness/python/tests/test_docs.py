# SPDX-License-Identifier: MIT
"""What the pages and the notebook show is what happens. FA_HOWTO=write fills in the outputs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from notebook import execute, run_cell, write


def python_block(page: Path, contains: str) -> str:
    """The one block of Python on the page with this text."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    (block,) = [each for each in blocks if contains in each]
    return str(block)


def test_notebook(repository: Path) -> None:
    file = repository / "docs/first_kernel.ipynb"
    now = execute(file)
    if os.environ.get("FA_HOWTO") == "write":
        write(now, file)
    assert json.loads(file.read_text(encoding="utf-8"))["cells"] == now["cells"]


def test_a_cache_in_pages(repository: Path) -> None:
    namespace: dict[str, Any] = {}
    run_cell(python_block(repository / "docs" / "running.md", "page_table"), namespace)
    table, q = namespace["table"], namespace["q"].astype(np.float64)
    for entry, length in enumerate((300, 77)):
        k, v = (
            namespace[name][table[entry]]
            .swapaxes(0, 1)
            .reshape(2, -1, 128)[:, :length]
            .repeat(4, 0)
            for name in "kv"
        )
        weights = np.exp(q[entry] @ k.swapaxes(1, 2).astype(np.float64) * 128**-0.5)
        expected = weights @ v.astype(np.float64) / weights.sum(axis=2, keepdims=True)
        assert abs(namespace["o"][entry] - expected).max() < 2e-3


def test_readme_runs_rung_06_in_four_lines(repository: Path) -> None:
    block = python_block(repository / "README.md", "flash_ladder.attention")
    namespace: dict[str, Any] = {}
    run_cell(block, namespace)
    assert len(block.splitlines()) == 4 and 'rung="06"' in block
    q, k, v = (namespace[name].astype(np.float64) for name in "qkv")
    weights = np.exp(q @ k.swapaxes(2, 3) * q.shape[3] ** -0.5)
    expected = weights @ v / weights.sum(axis=3, keepdims=True)
    assert abs(namespace["o"] - expected).max() < 2e-3
