#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over the host sources; what has not changed since it passed is skipped.

  scripts/tidy.py      those of the build in FA_BUILD_DIR; exit 77 without clang-tidy or ninja

Most of the time goes into headers that files share, so up to twelve files of one command are checked
as one text first. Where that has a finding, or does not compile, each of its files is checked alone;
what is printed always comes from there. ninja remembers what has passed, and the headers that the
build saw its files read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
RULE = """rule tidy
  command = $tool --quiet --config="$$($tool --dump-config $first --)" $in -- $flags >/dev/null 2>&1 $
    || $tool --quiet $files -- $flags && touch $out # $version
build always: phony
"""
# A name that a line without indent declares: files that declare the same in their anonymous
# namespaces do not compile together.
NAME = re.compile(
    r"^(?=\w)(?!namespace)[\w<>:,&* ]*?[ &*:](\w+)\s*(?:[;={(\[]|final|:[^:])", re.MULTILINE
)


@dataclass
class Bundle:
    """Sources of the same flags and the same files .clang-tidy."""

    flags: list[str]
    rules: list[Path]
    sources: list[Path] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


def flags_of(words: list[str]) -> Iterator[str]:
    """All but the file, its object, and the header that was precompiled with another compiler."""
    rest = iter(words)
    for word in rest:
        if word in ("-c", "-o", "-MF", "-MT", "-include"):
            next(rest)
        elif word not in ("-MD", "-Winvalid-pch"):
            yield word


def files_read(build: Path) -> dict[str, list[str]]:
    """What ninja knows of each object: the files that the compiler read for it."""
    ask = ["ninja", "-C", str(build), "-t", "deps"]
    found = {}
    for block in subprocess.run(ask, capture_output=True, text=True).stdout.split("\n\n"):
        output, *files = block.splitlines() or [""]
        found[output.partition(":")[0]] = [os.path.join(build, file.strip()) for file in files]
    return found


def bundles(build: Path) -> list[Bundle]:
    """The .cpp files of the build below kernels/ and harness/, without the tests."""
    found: list[Bundle] = []
    read = files_read(build)
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for file, command in sorted({entry["file"]: entry["command"] for entry in entries}.items()):
        source, words = Path(file).resolve(), shlex.split(command)
        folders = [each for each in source.parents if each.is_relative_to(REPOSITORY)]
        ours = {REPOSITORY / "kernels", REPOSITORY / "harness"} & set(folders)
        if source.suffix != ".cpp" or not ours or "tests" in source.parts:
            continue
        rules = [each / ".clang-tidy" for each in folders if (each / ".clang-tidy").is_file()]
        flags = list(flags_of(words[1:]))
        names = set(NAME.findall(source.read_text(encoding="utf-8")))
        for each in found:
            fits = len(each.sources) < 12 and not each.names & names
            if fits and (each.flags, each.rules) == (flags, rules):
                break
        else:
            found.append(each := Bundle(flags, rules))
        each.sources.append(source)
        each.names |= names
        each.read.update(read.get(words[words.index("-o") + 1], ["always"]))
    # Those of most files first, so that no job is left with one at the end.
    return sorted(found, key=lambda each: -len(each.sources))


def listed(*paths: Path | str) -> str:
    """As ninja has the files of an edge."""
    return " ".join(re.sub(r"([$: ])", r"$\1", str(path)) for path in paths)


def shell(*words: Path | str) -> str:
    """As ninja has words of a command."""
    return shlex.join(map(str, words)).replace("$", "$$")


def main() -> int:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.parse_args()
    beside = Path(sys.executable).with_name("clang-tidy")  # that of scripts/requirements.txt
    tool = shutil.which(os.environ.get("CLANG_TIDY") or beside)
    if tool is None or shutil.which("ninja") is None:
        print("tidy.py: skipped, no clang-tidy or no ninja; scripts/setup.sh installs both")
        return 77
    build = Path(os.environ.get("FA_BUILD_DIR") or REPOSITORY / "build").resolve()
    if not (build / "compile_commands.json").is_file():
        parser.exit(3, f"tidy.py: error: {build} has no compile_commands.json; configure first\n")
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    text = f"tool = {shell(tool)}\nversion = {' '.join(said.split())}\n{RULE}"
    for each in bundles(build):
        file = folder / str(each.sources[0].relative_to(REPOSITORY)).replace("/", "_")
        together = "\n".join(source.read_text(encoding="utf-8") for source in each.sources)
        if not file.is_file() or file.read_text(encoding="utf-8") != together:
            file.write_text(together, encoding="utf-8")
        known = sorted({file if os.path.exists(file) else "always" for file in each.read})
        read = listed(*each.sources, *each.rules, *known)
        text += f"build {listed(file)}.ok: tidy {listed(file)} | {read}\n"
        text += f"  files = {shell(*each.sources)}\n  first = {shell(each.sources[0])}\n"
        text += f"  flags = {shell(*each.flags)}\n"
    (folder / "build.ninja").write_text(text, encoding="utf-8")
    return subprocess.run(["ninja", "--quiet", "-k", "0", "-C", folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
