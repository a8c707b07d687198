#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A table of kernels that this project did not write, run on the machine.

  harness/vm/foreign/run.py               Triton's and Numba's kernels, where the packages are, and
                                          some with the libraries of the toolkit, where nvcc is
  harness/vm/foreign/run.py --install     ... installed from PyPI first, into build/foreign-venv
  harness/vm/foreign/run.py --tutorials FOLDER
                                          the kernels of Triton's tutorials alone, out of the
                                          folder python/tutorials of a clone of Triton
  harness/vm/foreign/run.py --cute FOLDER some of CuTe DSL's examples alone, out of the folder
                                          examples/python/CuTeDSL of a clone of CUTLASS
  harness/vm/foreign/run.py --flash-attention
                                          FlashAttention-4's kernels alone
  harness/vm/foreign/run.py --cuda FOLDER every kernel of the .cu files below a folder: does it
                                          compile, and would it run?
  harness/vm/foreign/run.py --cuda FOLDER --recipes FILE.py
                                          ... and run: FILE.py says how, and what is right

  harness/vm/foreign/run.py --differential
                                          ... each launch on one host thread and on two, forward and
                                          reversed: results, counts and findings must be the same

Kernels are compiled as they are, for sm_80, sm_90 and (those of Triton and CuTe DSL) sm_100, and
compared with numpy. No GPU is needed.
Exit codes: 0 all ran and are right (--cuda alone: all compiled kernels would run); 1 one did not;
77 nothing could be tried; 2 usage.
"""

from __future__ import annotations

import argparse
import errno
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

SKIPPED = 77
MACHINE = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "triton", "numba", "numba-cuda[cu12]")
CUTE_PACKAGES = ("numpy", "nvidia-cutlass-dsl")
# Beta releases, of which the next may have other parameters. What comes after --no-deps depends on
# PyTorch for CUDA: gigabytes that the compilation does not need.
FLASH_PACKAGES = ("numpy", "nvidia-cutlass-dsl==4.8.1", "apache-tvm-ffi<0.2")
FLASH_BARE = ("--no-deps", "flash-attn-4==4.0.0b36", "quack-kernels==0.6.5")
MODULES = {"triton": "triton", "numba": "numba_cuda"}
SOURCES = {"triton": ("triton_cases",), "numba": ("numba_cases", "numba_examples")}
ARCHITECTURES = (80, 90, 100)
INSTALL_SECONDS = 600


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def require_writable(path: Path) -> None:
    """OSError unless the file can be written: found out before anything runs for long."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path.parent).close()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--install", action="store_true", help="the packages from PyPI")
    parser.add_argument(
        "--venv", type=Path, default=Path("build/foreign-venv"), help="where to"
    )
    parser.add_argument(
        "--only", choices=("triton", "numba", "toolkit"), help="one kind of kernels"
    )
    parser.add_argument("--arch", type=int, nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES)
    parser.add_argument("--tutorials", type=Path, help="python/tutorials of a clone of Triton")
    parser.add_argument("--cute", type=Path, help="examples/python/CuTeDSL of a clone of CUTLASS")
    parser.add_argument("--flash-attention", action="store_true", help="of PyPI: flash-attn-4")
    parser.add_argument("--cuda", type=Path, help="folder of .cu files")
    parser.add_argument("--recipes", type=Path, help="how to run them: a file with CASES")
    parser.add_argument("--output", type=Path, help="the table as Markdown")
    parser.add_argument("--json", type=Path, help="the same as JSON")
    parser.add_argument("--differential", action="store_true", help="each launch in four ways")
    parser.add_argument("--verbose", action="store_true", help="whole tracebacks")
    options = parser.parse_args()
    for name in ("cuda", "cute", "tutorials"):
        folder = getattr(options, name)
        if folder and not folder.is_dir():
            parser.error(f"--{name} {folder}: no such folder")
    if options.recipes and not options.cuda:
        parser.error("--recipes needs --cuda FOLDER")
    if options.recipes and not options.recipes.is_file():
        parser.error(f"--recipes {options.recipes}: no such file")
    for path in filter(None, (options.output, options.json)):
        try:
            require_writable(path)
        except OSError as error:
            parser.exit(3, f"run.py: error: cannot write {path}: {error.strerror}\n")
    return options


def install(venv: Path, packages: Sequence[str], bare: Sequence[str] = ()) -> str:
    """The Python of an environment that has the packages; empty where they cannot be had."""
    python = venv / "bin/python"
    stamp = venv / "foreign.stamp"
    wanted = "\n".join((*packages, *bare))
    if stamp.is_file() and stamp.read_text() == wanted:
        return str(python)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1"]
    commands = [[sys.executable, "-m", "venv", str(venv)], [*pip, *packages]]
    for command in (*commands, [*pip, *bare]) if bare else commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{command[-1]} cannot be installed: {error}", file=sys.stderr)
            return ""
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            print(f"{' '.join(command[2:4])} failed: {''.join(last)}", file=sys.stderr)
            return ""
    stamp.write_text(wanted)
    return str(python)


def load_recipes(path: Path, folder: Path) -> list:
    """CASES of a Python file, which finds the folder in FOREIGN_FOLDER."""
    os.environ["FOREIGN_FOLDER"] = str(folder.resolve())
    spec = importlib.util.spec_from_file_location("recipes", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"--recipes {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.CASES)


def has_nvcc() -> bool:
    try:
        importlib.import_module("ptxvm._compile").find_nvcc()
    except Exception:
        return False
    return True


def cases(options: argparse.Namespace) -> Iterator:
    if options.tutorials:
        if has("triton"):
            module = importlib.import_module("foreign.tutorial_cases")
            yield from module.cases(options.tutorials)
        else:
            print("triton is not installed; --install fetches it from PyPI", file=sys.stderr)
        return
    if options.cute:
        if has("cutlass"):
            yield from importlib.import_module("foreign.cute_cases").cases(options.cute)
        else:
            print("CuTe DSL is not installed; --install fetches it from PyPI", file=sys.stderr)
        return
    if options.flash_attention:
        if has("flash_attn") and has("cutlass"):
            yield from importlib.import_module("foreign.flash_attention_cases").cases()
        else:
            print("flash-attn-4 is not installed; --install fetches it from PyPI", file=sys.stderr)
        return
    for kind, module in MODULES.items():
        if options.only not in (None, kind) or (options.cuda and not options.only):
            continue
        if has(module):
            for name in SOURCES[kind]:
                yield from importlib.import_module(f"foreign.{name}").CASES
        else:
            print(f"{kind} is not installed; --install fetches it from PyPI", file=sys.stderr)
    if options.only == "toolkit" or not (options.only or options.cuda):
        if has_nvcc():
            yield from importlib.import_module("foreign.toolkit_cases").CASES
        else:
            print("nvcc is not found: no kernels of the toolkit's libraries", file=sys.stderr)
    if options.cuda and options.recipes:
        yield from load_recipes(options.recipes, options.cuda)


def run(options: argparse.Namespace) -> int:
    if not has("numpy"):
        print("skipped: numpy is not installed; --install fetches it from PyPI")
        return SKIPPED
    sys.path[:0] = [str(MACHINE), str(MACHINE / "python")]
    from foreign.case import Outcome, table, try_case

    outcomes: list[Outcome] = []
    for case in cases(options):
        for arch in sorted(set(options.arch) & set(case.architectures)):
            outcomes.append(try_case(case, arch, options.verbose, options.differential))
            each = outcomes[-1]
            print(f"{each.origin}: {each.name}, sm_{arch}: {each.reason or 'right'}", flush=True)
    if options.cuda and not options.recipes:
        from foreign.folder import survey

        outcomes += survey(options.cuda, 90 if 90 in options.arch else max(options.arch))
    if not outcomes:
        print("skipped: nothing to try")
        return SKIPPED
    write(options, outcomes, table(outcomes))
    return 0 if all(each.good for each in outcomes) else 1


def write(options: argparse.Namespace, outcomes: Sequence, text: str) -> None:
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    if options.json:
        rows = ",\n  ".join(json.dumps(asdict(each), ensure_ascii=False) for each in outcomes)
        text = f'{{\n "schema": 1,\n "rows": [\n  {rows}\n ]\n}}\n'
        options.json.write_text(text, encoding="utf-8")


def main() -> int:
    options = parse()
    wanted = tuple(MODULES.values())
    if options.cute or options.flash_attention:
        wanted = ("cutlass", "flash_attn") if options.flash_attention else ("cutlass",)
    if options.install and not all(has(module) for module in wanted):
        if options.flash_attention:
            python = install(options.venv, FLASH_PACKAGES, FLASH_BARE)
        else:
            python = install(options.venv, CUTE_PACKAGES if options.cute else PACKAGES)
        if not python:
            print(f"skipped: {' and '.join(wanted)} cannot be installed")
            return SKIPPED
        words = [each for each in sys.argv if each != "--install"]
        return subprocess.run([python, "-W", "ignore", *words], check=False).returncode
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
