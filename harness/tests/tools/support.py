# SPDX-License-Identifier: MIT
"""What the tests of scripts/ and plots/ share."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
for folder in ("scripts", "plots", "harness/python", "harness/vm/python", "harness/tests/tools"):
    sys.path.insert(0, str(REPOSITORY / folder))


def need(module: str) -> Any:
    """The module; where it is not installed, the whole test file is skipped."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise unittest.SkipTest(f"{module} is not installed") from error


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)


def run_main(main: Callable[..., int], *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a script's main."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse
            code = stop.code if isinstance(stop.code, int) else 1
    return code, out.getvalue(), err.getvalue()
