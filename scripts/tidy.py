#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over the host sources; a file that has not changed since it passed is skipped.

  scripts/tidy.py [--build BUILD_DIR] [--jobs N] [FILE...]

"Changed" includes every header that the file reads: what is remembered is a hash of the source
after preprocessing (comments kept), of .clang-tidy and of the tool's version. Exit 77 without clang-tidy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
HARNESS = ("attention", "bench", "capi", "cli", "command", "device", "environment", "io",
           "measure", "python", "results", "timeline", "timing", "vm")  # fmt: skip
FOLDERS = ("kernels", *(f"harness/{folder}" for folder in HARNESS))
SKIPPED = 77


@dataclass(frozen=True)
class Source:
    path: Path
    directory: Path
    command: list[str]

    @property
    def name(self) -> str:
        return str(self.path.relative_to(REPOSITORY))


class UsageError(Exception):
    pass


def is_ours(path: Path) -> bool:
    if path.suffix != ".cpp" or path.is_relative_to(REPOSITORY / "harness/vm/tests"):
        return False
    return any(path.is_relative_to(REPOSITORY / folder) for folder in FOLDERS)


def load_sources(build: Path) -> list[Source]:
    database = build / "compile_commands.json"
    try:
        entries = json.loads(database.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {database}: {error.strerror}; configure first") from error
    sources = {}
    for entry in entries:
        path = Path(entry["file"]).resolve()
        if is_ours(path):
            command = without_precompiled(shlex.split(entry["command"]))
            sources[path] = Source(path, Path(entry["directory"]), command)
    return sorted(sources.values(), key=lambda source: source.path)


def without_precompiled(command: list[str]) -> list[str]:
    """The command without the header that CMake precompiled with another compiler."""
    kept: list[str] = []
    for word in command:
        if kept and kept[-1] == "-include" and word.endswith("cmake_pch.hxx"):
            kept.pop()
        elif word != "-Winvalid-pch":
            kept.append(word)
    return kept


def write_commands(sources: list[Source], folder: Path) -> None:
    """FOLDER/compile_commands.json, which clang-tidy reads."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        {"directory": str(each.directory), "file": str(each.path), "arguments": each.command}
        for each in sources
    ]
    text = json.dumps(entries, indent=1)
    (folder / "compile_commands.json").write_text(text, encoding="utf-8")


def preprocessed(source: Source) -> bytes:
    command = list(source.command)
    if "-o" in command:
        at = command.index("-o")
        del command[at : at + 2]
    command = [word for word in command if word != "-c"] + ["-E", "-C", "-P"]
    done = subprocess.run(command, cwd=source.directory, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else os.urandom(16)


def fingerprint(source: Source, tool: str) -> str:
    version = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    config = (REPOSITORY / ".clang-tidy").read_bytes()
    parts = (version, config, " ".join(source.command).encode(), preprocessed(source))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stamp_path(source: Source, build: Path) -> Path:
    return build / "tidy" / (source.name.replace("/", "_") + ".ok")


def tidy(source: Source, tool: str, build: Path) -> str:
    """Output of clang-tidy where it found something, else empty."""
    stamp = stamp_path(source, build)
    current = fingerprint(source, tool)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == current:
        return ""
    command = [tool, "--quiet", "-p", str(build / "tidy"), str(source.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stdout + done.stderr
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(current, encoding="utf-8")
    return ""


def select(sources: list[Source], files: list[Path]) -> list[Source]:
    wanted = {file.resolve() for file in files}
    unknown = wanted - {source.path for source in sources}
    if unknown:
        raise UsageError(f"{sorted(unknown)[0]} is not among the host sources of the build")
    return [source for source in sources if not wanted or source.path in wanted]


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    build = os.environ.get("FA_BUILD_DIR", REPOSITORY / "build")
    parser.add_argument("--build", type=Path, default=Path(build), help="build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("files", type=Path, nargs="*", help="default: all")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    tool = shutil.which(os.environ.get("CLANG_TIDY", "clang-tidy"))
    if tool is None:
        print("tidy.py: skipped, clang-tidy is not installed")
        return SKIPPED
    try:
        sources = select(load_sources(arguments.build), arguments.files)
    except UsageError as error:
        print(f"tidy.py: error: {error}", file=sys.stderr)
        return 2
    write_commands(sources, arguments.build / "tidy")
    with ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        outputs = list(pool.map(lambda source: tidy(source, tool, arguments.build), sources))
    for output in filter(None, outputs):
        print(output)
    failed = sum(map(bool, outputs))
    print(f"clang-tidy: {len(sources) - failed} of {len(sources)} files are clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
