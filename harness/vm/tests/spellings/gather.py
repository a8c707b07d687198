#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gathers the spellings of instructions that compilers write, with counts.

    python3 -m venv env && env/bin/pip install triton numba-cuda
    git clone --depth 1 https://github.com/NVIDIA/cuda-samples
    CUDA_HOME=/usr/local/cuda env/bin/python gather.py --folder cuda-samples --out spellings.txt

Sources: the kernels beside this script, compiled by Triton and Numba; the .cu files of any folder,
compiled by nvcc; the inline assembly in CUDA's own headers. What cannot be compiled or is not
installed is named and left out. Only spellings and counts are kept, no text of anybody's.
"""

import argparse
import collections
import concurrent.futures
import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

Counts = collections.Counter[str]

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
ASM = re.compile(r"\basm\b\s*(?:volatile|__volatile__)?\s*\(((?:\s*\"(?:[^\"\\]|\\.)*\")+)")
HEADERS = ("cuda_fp16.hpp", "cuda_bf16.hpp", "cuda_fp8.hpp", "cuda_awbarrier_helpers.h",
           "cuda_pipeline_helpers.h", "crt/*.hpp", "cooperative_groups/**/*.h",
           "cccl/cuda/__ptx/**/*.h", "cccl/cuda/__memcpy_async/*.h", "cccl/cub/**/*.cuh")


def spellings(ptx: str) -> Iterator[str]:
    """Mnemonics of all statements in the bodies of a PTX text."""
    text = COMMENT.sub(" ", ptx)
    for statement in re.split(r"[;{}]", text[text.find("{"):]):
        words = re.sub(r"^(?:\s*[\w$]+\s*:)*\s*(?:@!?%?[\w$]+\s+)?", "", statement).split(None, 1)
        if words and re.fullmatch(r"[a-z]\w*(\.[\w:]+)*", words[0]):
            yield words[0]


def of_module(name: str) -> Counts:
    """What Triton or Numba makes of the kernels in a module beside this script."""
    counts: Counts = collections.Counter()
    try:
        module = importlib.import_module(name)
    except ImportError as problem:
        print(f"left out: {name}: {problem}")
        return counts
    for _, ptx in module.ptx_texts():
        counts.update(spellings(ptx))
    return counts


def compile_file(nvcc: str, source: Path, sm: str, includes: list[str]) -> Counts:
    """What nvcc makes of one file."""
    counts: Counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        command = [nvcc, "-ptx", "-std=c++17", f"-arch={sm}", *includes, str(source)]
        command += ["-o", str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            done = None
        if done is None or done.returncode != 0 or not out.exists():
            print(f"left out: {source.name} for {sm}: nvcc fails")
            return counts
        counts.update(spellings(out.read_text(errors="replace")))
    return counts


def of_folder(nvcc: str, folder: Path, targets: list[str], jobs: int) -> Counts:
    """What nvcc makes of all .cu files below a folder."""
    counts: Counts = collections.Counter()
    includes = [f"-I{path}" for path in sorted({p.parent for p in folder.rglob("*.h")})
                if path.name.lower() in ("common", "inc", "include")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(compile_file, nvcc, source, sm, [f"-I{source.parent}", *includes])
                   for source in sorted(folder.rglob("*.cu")) for sm in targets]
        for future in futures:
            counts.update(future.result())
    return counts


def of_headers(include: Path) -> Counts:
    """Inline assembly in CUDA's headers, where the whole mnemonic is in one string."""
    counts: Counts = collections.Counter()
    for pattern in HEADERS:
        for path in sorted(include.glob(pattern)):
            for match in ASM.finditer(path.read_text(errors="replace")):
                text = "".join(STRING.findall(match.group(1)))
                text = text.encode().decode("unicode_escape")
                counts.update(m for m in spellings("{" + text) if "." in m)
    return counts


def kept(path: Path, source: str) -> Counts:
    """What a list has of a source."""
    counts: Counts = collections.Counter()
    for line in path.read_text().splitlines():
        name, *found = line.split()
        for each in found:
            if each.startswith(f"{source}:"):
                counts[name] = int(each.partition(":")[2])
    return counts


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the list to write")
    parser.add_argument("--folder", type=Path, action="append", default=[], help="of .cu files")
    parser.add_argument("--targets", default="sm_80,sm_90a", help="for the files of the folders")
    parser.add_argument("--cuda", type=Path, help="the toolkit; $CUDA_HOME or /usr/local/cuda")
    parser.add_argument("--only", help="gathers these of headers, triton, numba, nvcc; the others "
                        "keep their counts in the list")
    parser.add_argument("--jobs", type=int, default=2, help="nvcc processes at once")
    return parser.parse_args()


def main() -> int:
    """Writes the list."""
    wanted = arguments()
    cuda = wanted.cuda or Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    for folder in wanted.folder:
        if not folder.is_dir():
            print(f"gather.py: --folder {folder} is no folder", file=sys.stderr)
            return 2
    nvcc, targets = str(cuda / "bin" / "nvcc"), wanted.targets.split(",")

    def of_folders() -> Counts:
        counts: Counts = collections.Counter()
        for folder in wanted.folder:
            counts.update(of_folder(nvcc, folder, targets, wanted.jobs))
        return counts

    ways = {"headers": lambda: of_headers(cuda / "include"),
            "triton": lambda: of_module("triton_kernels"),
            "numba": lambda: of_module("numba_kernels"), "nvcc": of_folders}
    only = wanted.only.split(",") if wanted.only else list(ways)
    if unknown := set(only) - set(ways):
        print(f"gather.py: --only {', '.join(sorted(unknown))}: no source", file=sys.stderr)
        return 2
    sources = {name: way() if name in only else kept(wanted.out, name)
               for name, way in ways.items()}
    names = sorted({name for counts in sources.values() for name in counts})
    with wanted.out.open("w") as out:
        out.write("# Spellings that compilers write, from gather.py: mnemonic, then how often each "
                  "source has it.\n")
        for name in names:
            found = [f"{source}:{counts[name]}" for source, counts in sources.items()
                     if counts[name]]
            out.write(f"{name} {' '.join(found)}\n")
    print(f"{len(names)} spellings in {wanted.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
