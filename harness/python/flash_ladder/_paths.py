# SPDX-License-Identifier: MIT
"""Where native code, PTX and measurements are: in the package, or in the repository."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
NATIVE = PACKAGE / "native"
REPOSITORY = PACKAGE.parents[2]


def installed() -> bool:
    """Whether this is an installed package; else it is the source tree, beside a build folder."""
    return NATIVE.is_dir()


def build_folder() -> Path:
    return Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build")


def native(name: str) -> Path:
    """The file libfa.so or fa."""
    return (NATIVE if installed() else build_folder()) / name


def ptx_folder() -> Path:
    """The folder with the PTX of the rungs; FA_PTX_DIR names another."""
    chosen = os.environ.get("FA_PTX_DIR")
    if chosen:
        return Path(chosen)
    return (PACKAGE if installed() else build_folder()) / "ptx"


# Folders of results that are installed with the package, those that decide first.
SETS = "cold ladder model decode fp32 backward"


def measurements() -> list[Path]:
    """The result files by which `rung="best"` chooses."""
    results = PACKAGE / "measured" if installed() else REPOSITORY / "plots" / "results"
    card = results if installed() else results / "h200"
    return [run for each in SETS.split() for run in sorted((card / each).glob("*.json"))]
