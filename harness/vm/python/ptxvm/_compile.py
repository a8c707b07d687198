# SPDX-License-Identifier: MIT
"""CUDA C++ to a module, through nvcc."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxvm._errors import Error
from ptxvm._module import Module

PLACES = ("CUDA_HOME", "CUDA_PATH")


def find_nvcc() -> str:
    """The compiler: $CUDACXX, that of $CUDA_HOME or $CUDA_PATH, on PATH, in /usr/local/cuda."""
    folders = [Path(os.environ[each]) / "bin/nvcc" for each in PLACES if each in os.environ]
    candidates = [os.environ.get("CUDACXX"), *map(str, folders), "nvcc", "/usr/local/cuda/bin/nvcc"]
    for each in candidates:
        found = shutil.which(each) if each else None
        if found:
            return found
    raise Error("nvcc is not found; put it on PATH, or set CUDACXX or CUDA_HOME")


def nvcc(
    source: str | Path, arch: str = "sm_80", options: Sequence[str] = (), lineinfo: bool = True
) -> Module:
    """Compiles a .cu file to PTX and reads it. Needs no GPU.

    arch      the card: "sm_80", "sm_90a"
    options   further options of nvcc: "-O3", "-Iinclude", "-DN=4"
    lineinfo  messages and counts name lines of the source

    Raises Error with nvcc's messages, and ParseError.
    """
    path = Path(source)
    if not path.is_file():
        raise Error(f"{path}: no such file")
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / f"{path.stem}.ptx"
        target = arch.replace("sm_", "compute_")
        words = [find_nvcc(), "-ptx", f"-arch={target}", *(["-lineinfo"] if lineinfo else [])]
        done = subprocess.run(
            [*words, *options, str(path), "-o", str(ptx)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Error(f"nvcc: {path} does not compile\n{done.stderr}{done.stdout}".rstrip())
        return Module.parse(ptx.read_bytes(), str(path.with_suffix(".ptx")))
