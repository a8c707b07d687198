#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one file of Python tests: run.py PATH. Exit 77 when all of it was skipped, for CTest.

Files that need torch run under the python3 that has it, where this one has not.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SKIPPED = 77
HARNESS = Path(__file__).resolve().parents[1]
NEED_TORCH = ("test_gpu.py", "test_torch.py", "test_transformers.py")


class Outcomes:
    """A pytest plug-in that counts what ran."""

    def __init__(self) -> None:
        self.ran = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran += report.when == "call" and not report.skipped


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def run_elsewhere(file: Path) -> int:
    """Under the system's python3, without pytest if need be (test_gpu.py is a unittest)."""
    words = [] if file.name == "test_gpu.py" else [__file__]
    probe = subprocess.run(["python3", "-c", "import torch, numpy"], capture_output=True)
    if probe.returncode or os.environ.get("FA_TESTS_ELSEWHERE"):
        print("skipped: torch is not installed")
        return SKIPPED
    packages = f"{HARNESS / 'python'}:{HARNESS / 'vm/python'}"
    environment = {**os.environ, "FA_TESTS_ELSEWHERE": "1", "PYTHONPATH": packages}
    return subprocess.run(["python3", *words, file], env=environment, check=False).returncode


def main(file: Path) -> int:
    if file.name in NEED_TORCH and not has("torch"):
        return run_elsewhere(file)
    if not has("pytest"):
        print("skipped: pytest is not installed (scripts/setup.sh)")
        return SKIPPED
    import pytest

    outcomes = Outcomes()
    code = int(pytest.main(["-rs", str(file)], plugins=[outcomes]))
    return SKIPPED if code in (0, 5) and outcomes.ran == 0 else code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
