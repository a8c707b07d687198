#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over the host sources; a file that has not changed since it passed is skipped.

  scripts/tidy.py [--build BUILD_DIR] [--jobs N] [FILE...]

"Changed" includes every header that the build saw the file read; what is remembered is a hash of
them, of the command, of .clang-tidy and of the tool's version. Exit 77 without clang-tidy.
"""

from __future__ import annotations

import argparse
import functools
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
HARNESS = ("attention", "bench", "capi", "cli", "command", "device", "environment", "io", "limits",
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


def read_files(build: Path) -> dict[str, list[Path]]:
    """What ninja knows of each object: the files that the compiler read for it."""
    if shutil.which("ninja") is None:
        return {}
    ask = ["ninja", "-C", str(build), "-t", "deps"]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    found: dict[str, list[Path]] = {}
    files: list[Path] = []
    for line in done.stdout.splitlines():
        if line.startswith(" "):
            files.append(build / line.strip())
        elif line:
            files = found.setdefault(line.split(":")[0], [])
    return found


@functools.cache
def content(path: Path) -> str:
    """Of a file of ours its text; others change with their packages."""
    try:
        if path.resolve().is_relative_to(REPOSITORY):
            return hashlib.sha256(path.read_bytes()).hexdigest()
        return str(path.stat().st_mtime_ns)
    except OSError:
        return "gone"


class Tidy:
    """clang-tidy for the sources of one build."""

    def __init__(self, tool: str, build: Path) -> None:
        self.tool, self.build = tool, build
        asked = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
        config = (REPOSITORY / ".clang-tidy").read_text(encoding="utf-8")
        self.common = (asked.stdout, config)
        self.read = read_files(build)

    def fingerprint(self, source: Source) -> str | None:
        """Nothing where the build does not know what the file reads."""
        files = self.read.get(source.command[source.command.index("-o") + 1])
        if not files:
            return None
        parts = [*self.common, *source.command]
        parts += [f"{path} {content(path)}" for path in files]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def check(self, source: Source) -> str:
        """Output of clang-tidy where it found something, else empty."""
        stamp = stamp_path(source, self.build)
        current = self.fingerprint(source)
        if current and stamp.is_file() and stamp.read_text(encoding="utf-8") == current:
            return ""
        command = [self.tool, "--quiet", "-p", str(self.build / "tidy"), str(source.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stdout + done.stderr
        if current:
            stamp.write_text(current, encoding="utf-8")
        return ""


def stamp_path(source: Source, build: Path) -> Path:
    return build / "tidy" / (source.name.replace("/", "_") + ".ok")


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
    beside = Path(sys.executable).with_name("clang-tidy")  # that of scripts/requirements.txt
    tool = shutil.which(os.environ.get("CLANG_TIDY") or beside)
    if tool is None:
        print("tidy.py: skipped, there is no clang-tidy; scripts/setup.sh puts one into .venv")
        return SKIPPED
    try:
        sources = select(load_sources(arguments.build), arguments.files)
    except UsageError as error:
        print(f"tidy.py: error: {error}", file=sys.stderr)
        return 2
    write_commands(sources, arguments.build / "tidy")
    with ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        outputs = list(pool.map(Tidy(tool, arguments.build.resolve()).check, sources))
    for output in filter(None, outputs):
        print(output)
    failed = sum(map(bool, outputs))
    print(f"clang-tidy: {len(sources) - failed} of {len(sources)} files are clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
