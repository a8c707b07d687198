#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one test file: run.py NAME. Exit 77 when all of it was skipped, for CTest."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

SKIPPED = 77


def main(name: str) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    if not result.wasSuccessful():
        return 1
    if result.skipped and len(result.skipped) == result.testsRun:
        print(f"skipped: {result.skipped[0][1]}")
        return SKIPPED
    return 0 if result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
