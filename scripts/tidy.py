#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over the host sources; a file that has not changed since it passed is skipped.

  scripts/tidy.py [--build BUILD_DIR] [--jobs N] [FILE...]

Most of the time goes into headers that files share, so files of one command are checked as one
text first. Where that has a finding, or does not compile, each of its files is checked alone; what
is printed always comes from there.

"Changed" includes every header that the build saw the file read; what is remembered is a hash of
them, of the command, of .clang-tidy and of the tool's version. Exit 77 without clang-tidy.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
HARNESS = ("attention", "bench", "capi", "cli", "command", "device", "environment", "io", "limits",
           "measure", "python", "results", "timeline", "timing", "vm")  # fmt: skip
FOLDERS = ("kernels", *(f"harness/{folder}" for folder in HARNESS))
SKIPPED = 77

FILES_IN_A_BUNDLE = 12
HIDDEN = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
HIDDEN_NAME = re.compile(
    r"^(?:(?:class|struct|union|enum(?: class)?)\s+(\w+)|using\s+(\w+)\s*="
    r"|(?!class|struct|union|enum|using|template|namespace)[A-Za-z_][^;={(\[]*?(\w+)\s*[;={(\[])",
    re.MULTILINE,
)


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


@dataclass
class Bundle:
    """Sources of one command, and the names that their anonymous namespaces declare."""

    sources: list[Source] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def has_room_for(self, names: set[str]) -> bool:
        return len(self.sources) < FILES_IN_A_BUNDLE and not self.names & names

    def add(self, source: Source, names: set[str]) -> None:
        self.sources.append(source)
        self.names |= names

    def as_source(self, tool: str, folder: Path) -> Source:
        """One source with the text of all of them, in a folder of its own, under their rules."""
        first = self.sources[0]
        if len(self.sources) == 1:
            return first
        folder.mkdir(exist_ok=True)
        file = folder / "bundle.cpp"
        texts = [source.path.read_text(encoding="utf-8") for source in self.sources]
        file.write_text("\n".join(texts), encoding="utf-8")
        ask = [tool, "--dump-config", str(first.path), "--"]
        rules = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        (folder / ".clang-tidy").write_text(rules, encoding="utf-8")
        command = list(first.command)
        command[command.index("-c") + 1] = str(file)
        return Source(file, first.directory, command)


def hidden_names(text: str) -> set[str]:
    """What the anonymous namespaces of a file declare."""
    found = (match for part in HIDDEN.findall(text) for match in HIDDEN_NAME.findall(part))
    return {name for match in found for name in match if name}


def common_command(source: Source) -> tuple[str, ...]:
    """The command without what names the file and its object, and the rules."""
    file, output = (source.command[source.command.index(option) + 1] for option in ("-c", "-o"))
    own = (file, output, f"{output}.d")
    words = (word for word in source.command if word not in own)
    return (str(source.directory), *map(str, rules_of(source)), *words)


def rules_of(source: Source) -> list[Path]:
    """The files .clang-tidy that hold for it."""
    folders = (each for each in source.path.parents if each.is_relative_to(REPOSITORY))
    return [each / ".clang-tidy" for each in folders if (each / ".clang-tidy").is_file()]


def bundle(sources: list[Source]) -> list[Bundle]:
    """Those of most files first, so that no job is left with one at the end."""
    groups: dict[tuple[str, ...], list[Bundle]] = defaultdict(list)
    for source in sources:
        names = hidden_names(source.path.read_text(encoding="utf-8"))
        bundles = groups[common_command(source)]
        fitting = next((each for each in bundles if each.has_room_for(names)), None)
        if fitting is None:
            fitting = Bundle()
            bundles.append(fitting)
        fitting.add(source, names)
    found = (each for bundles in groups.values() for each in bundles)
    return sorted(found, key=lambda each: -len(each.sources))


def write_commands(sources: list[Source], folder: Path) -> None:
    """FOLDER/compile_commands.json, which clang-tidy reads."""
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
        self.version = asked.stdout
        self.read = read_files(build)

    def fingerprint(self, source: Source) -> str | None:
        """Nothing where the build does not know what the file reads."""
        files = self.read.get(source.command[source.command.index("-o") + 1])
        if not files:
            return None
        parts = [self.version, *source.command]
        parts += [f"{path} {content(path)}" for path in (*rules_of(source), *files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def has_passed(self, source: Source) -> bool:
        stamp = stamp_path(source, self.build)
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == self.fingerprint(source)

    def remember(self, source: Source) -> None:
        current = self.fingerprint(source)
        if current:
            stamp_path(source, self.build).write_text(current, encoding="utf-8")

    def run(self, source: Source) -> str:
        """Output of clang-tidy where it found something, else empty."""
        command = [self.tool, "--quiet", "-p", str(self.build / "tidy"), str(source.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr if done.returncode != 0 else ""

    def check(self, sources: list[Source], whole: Source) -> list[str]:
        """What clang-tidy says of each file in which it found something."""
        found = self.run(whole)
        outputs = [found] * len(sources)
        if found and len(sources) > 1:
            outputs = [self.run(each) for each in sources]
        for source, output in zip(sources, outputs, strict=True):
            if not output:
                self.remember(source)
        return list(filter(None, outputs))


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
    build = os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build"
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
    folder = arguments.build.resolve() / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    tidy = Tidy(tool, folder.parent)
    bundles = bundle([source for source in sources if not tidy.has_passed(source)])
    wholes = [each.as_source(tool, folder / str(index)) for index, each in enumerate(bundles)]
    write_commands([*sources, *(each for each in wholes if each not in sources)], folder)
    with ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        files = [each.sources for each in bundles]
        outputs = [each for found in pool.map(tidy.check, files, wholes) for each in found]
    for output in outputs:
        print(output)
    failed = len(outputs)
    print(f"clang-tidy: {len(sources) - failed} of {len(sources)} files are clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
