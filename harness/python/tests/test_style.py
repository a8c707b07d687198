# SPDX-License-Identifier: MIT
"""ruff and mypy, as pyproject.toml configures them, have nothing to say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "format", "--no-cache", "--check", "harness/python", "harness/vm/python"],
        ["mypy"],
    ],
    ids=" ".join,
)
def test_style(words: list[str], repository: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    cache = ["--cache-dir", str(tmp_path)] if words == ["mypy"] else []
    command = [sys.executable, "-m", *words, *cache]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
