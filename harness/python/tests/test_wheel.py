# SPDX-License-Identifier: MIT
"""The wheel, of what this build folder holds, in a virtual environment of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import flash_ladder
import numpy as np
import pytest

if importlib.util.find_spec("scikit_build_core") is None:
    pytest.skip("scikit-build-core is not installed", allow_module_level=True)

FOUR_LINES = """
import numpy as np, flash_ladder
q, k, v = np.random.default_rng(1).normal(size=(3, 1, 2, 128, 128)).astype(np.float16)
o = flash_ladder.attention(q, k, v, rung="06")
s = np.einsum("bhqd,bhkd->bhqk", q.astype("f8"), k.astype("f8")) / 128**0.5
p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
assert abs(o - p @ v.astype("f8")).max() < 2e-3
import ptxvm, sys
assert "torch" not in sys.modules
print(flash_ladder.__file__, flash_ladder.__version__, len(flash_ladder.rungs()))
print(flash_ladder.explain("01", seq=128)["tensor"], ptxvm.Module.parse(
    ".version 8.0\\n.target sm_80\\n.address_size 64\\n.entry f() { ret; }").kernels)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from conftest import BUILD, REPOSITORY

    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", str(REPOSITORY), "--no-build-isolation"]
    words += [
        "--no-deps",
        "--wheel-dir",
        str(folder),
        "--config-settings",
        f"build-dir={folder}/build",
    ]
    words += ["--config-settings", f"cmake.define.FA_PREBUILT={BUILD}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("*.whl")
    return file


def run_elsewhere(*words: object, folder: Path) -> str:
    """Stdout of a command that knows nothing of the repository."""
    hidden = ("FA_", "PYTHON", "LD_LIBRARY_PATH")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_holds_the_ptx_and_is_for_any_python(wheel: Path, build: Path) -> None:
    assert wheel.name.startswith("flash_ladder-0.") and "-py3-none-linux" in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"flash_ladder/ptx/{rung.name}.ptx" for rung in flash_ladder.rungs()} <= names
    assert {"flash_ladder/native/libfa.so", "flash_ladder/native/fa", "ptxvm/py.typed"} <= names
    assert not [name for name in names if "test" in name or "/build/" in name]


def test_it_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"]
    run_elsewhere(*install, "--no-index", "--quiet", wheel, folder=tmp_path)
    # numpy is the one thing that it may need from outside.
    (site,) = environment.glob("lib/python*/site-packages")
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    first, second = run_elsewhere(python, "-c", FOUR_LINES, folder=tmp_path).splitlines()
    assert first.startswith(str(site)) and int(first.split()[-1]) == len(flash_ladder.rungs())
    assert second.startswith("4096 ") and "<Kernel f()>" in second
    listed = run_elsewhere(environment / "bin" / "fa", "list", folder=tmp_path)
    assert "06_batched" in listed
    linked = run_elsewhere("ldd", site / "flash_ladder/native/libfa.so", folder=tmp_path)
    assert "libcuda" not in linked and "not found" not in linked
    assert all(str(site) in line for line in linked.splitlines() if "libfmt" in line)


def test_a_build_folder_that_is_none(tmp_path: Path, repository: Path) -> None:
    words = ["cmake", "-S", str(repository), "-B", str(tmp_path / "b"), f"-DFA_PREBUILT={tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    message = " ".join(done.stderr.split())
    assert done.returncode == 1 and "is not a build folder of this project" in message


def test_packages_that_are_not_installed_are_named(tmp_path: Path, repository: Path) -> None:
    words = ["cmake", "-S", str(repository), "-B", str(tmp_path)]
    words += [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("CLI11", "fmt")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    message = " ".join(done.stderr.split())
    assert done.returncode == 1 and "CLI11, fmt not found. Run scripts/setup.sh build" in message


def test_what_a_build_folder_lacks_is_built_there(tmp_path: Path, repository: Path) -> None:
    """scripts/bench.sh builds `fa` alone."""
    project, prebuilt = tmp_path / "project", tmp_path / "prebuilt"
    (project / "harness" / "python").mkdir(parents=True)
    (project / "harness" / "python" / "CMakeLists.txt").touch()
    libraries = ("libfa.so", "libptxvm_c.so")
    touch = f"${{CMAKE_COMMAND}} -E touch {' '.join(libraries)}"
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(stub LANGUAGES NONE)\n"
        "add_subdirectory(harness/python)\n"
        f"add_custom_target(fa_python COMMAND {touch} WORKING_DIRECTORY ${{CMAKE_BINARY_DIR}})\n"
    )

    def cmake(*words: object) -> None:
        done = subprocess.run(["cmake", *map(str, words)], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    cmake("-S", project, "-B", prebuilt)
    (prebuilt / "fa").touch()
    cmake("-S", repository, "-B", tmp_path / "b", f"-DFA_PREBUILT={prebuilt}")
    cmake("--build", tmp_path / "b", "--target", "fa_python")
    assert all((prebuilt / name).exists() for name in libraries)
    before = (prebuilt / "libfa.so").stat().st_mtime_ns
    cmake("-S", repository, "-B", tmp_path / "b", f"-DFA_PREBUILT={prebuilt}")
    cmake("--build", tmp_path / "b", "--target", "fa_python")
    assert (prebuilt / "libfa.so").stat().st_mtime_ns == before, "nothing was missing"
