#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps what ptxas -v says about every kernel: registers, stack, spills, performance warnings.

  ptxas_report.py compile nvcc ... -o X.o     CMake compiler launcher: runs the command and writes
                                              the report to X.o.ptxas
  ptxas_report.py compile --ptx DIR SM nvcc ... -c NAME.cu -o X.o
                                              also keeps the PTX for SM, as DIR/NAME.ptx
  ptxas_report.py merge DIR OUT.json          all reports below DIR as one JSON list
  ptxas_report.py merge DIR OUT.json --forbid '^fa_2'
                                              fails when a matching entry spills or has C75xx
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "plots"))

from files import write_atomically  # noqa: E402

SOURCE_SUFFIXES = (".cu", ".cpp", ".cc", ".c", ".ptx")
SOURCE_LINE = "# source: "

SECTION = re.compile(r"ptxas info\s+: \d+ bytes gmem")
ENTRY = re.compile(r"ptxas info\s+: Compiling entry function '([^']+)' for '([^']+)'")
PROPERTIES = re.compile(r"ptxas info\s+: Function properties for (\S+)")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"ptxas info\s+: Used (\d+) registers")
STATIC_SHARED = re.compile(r"(\d+) bytes smem")
CODED = re.compile(r"ptxas (?:info|warning)\s*: \((C75\d\d)\)\s*(.*)")
IN_FUNCTION = re.compile(r"in (?:the )?function '([^']+)'")
SOURCE_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]+)(")', re.MULTILINE)
INFO = re.compile(r"ptxas info\s+:")


@dataclass
class Entry:
    """One kernel for one architecture, as ptxas compiled it."""

    entry: str
    arch: str
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_shared: int = 0
    file: str = ""
    warnings: list[str] = field(default_factory=list)

    def faults(self) -> list[str]:
        """Why a kernel that must be clean is not."""
        spills = self.spill_stores + self.spill_loads
        return ([f"{spills} bytes of spills"] if spills else []) + self.warnings


# --- reading a report ----------------------------------------------------------------------------


def split_sections(text: str) -> list[list[str]]:
    """ptxas prints one section per architecture: messages, a gmem line, then its entries."""
    sections: list[list[str]] = [[]]
    has_entry = False
    for line in text.splitlines():
        if has_entry and (CODED.search(line) or SECTION.search(line)):
            sections.append([])
            has_entry = False
        has_entry |= bool(ENTRY.search(line))
        sections[-1].append(line)
    return sections


def parse_entries(lines: list[str], file: str) -> list[Entry]:
    """Entries of one section, without its messages."""
    entries: list[Entry] = []
    in_entry = False  # else the properties belong to a device function
    for line in lines:
        if match := ENTRY.search(line):
            entries.append(Entry(match[1], match[2], file=file))
        elif match := PROPERTIES.search(line):
            in_entry = bool(entries) and match[1] == entries[-1].entry
        elif in_entry and (match := STACK.search(line)):
            entry = entries[-1]
            entry.stack, entry.spill_stores, entry.spill_loads = map(int, match.groups())
        elif in_entry and (match := REGISTERS.search(line)):
            entries[-1].registers = int(match[1])
            shared = STATIC_SHARED.search(line)
            entries[-1].static_shared = int(shared[1]) if shared else 0
    return entries


def attach_warnings(lines: list[str], entries: list[Entry]) -> None:
    """Gives each C75xx message to the entry it names, or to all when it names none of them."""
    for match in filter(None, map(CODED.search, lines)):
        named = IN_FUNCTION.search(match[2])
        owners = [entry for entry in entries if named and entry.entry == named[1]]
        for entry in owners or entries:
            entry.warnings.append(f"{match[1]}: {match[2]}")


def parse_report(text: str, file: str = "") -> list[Entry]:
    """Entries of one ptxas -v output."""
    result: list[Entry] = []
    previous: list[Entry] = []
    for lines in split_sections(text):
        entries = parse_entries(lines, file)
        attach_warnings(lines, entries or previous)
        result += entries
        previous = entries or previous
    return result


def report_source(text: str) -> str:
    """The source file named on the report's first line, empty when there is none."""
    first = text.partition("\n")[0]
    return first.removeprefix(SOURCE_LINE) if first.startswith(SOURCE_LINE) else ""


def is_stale(report: Path, source: str) -> bool:
    """True when the object or its source is gone: a deleted or renamed kernel."""
    return not report.with_suffix("").exists() or bool(source and not Path(source).exists())


def relative_to_repository(path: str) -> str:
    return os.path.relpath(path, REPOSITORY) if Path(path).is_relative_to(REPOSITORY) else path


def collect(directory: Path) -> list[Entry]:
    """Entries of all reports below the directory whose object still exists."""
    entries: list[Entry] = []
    for report in sorted(directory.rglob("*.ptxas")):
        text = report.read_text(encoding="utf-8", errors="replace")
        source = report_source(text)
        if not is_stale(report, source):
            entries += parse_report(text, relative_to_repository(source))
    return sorted(entries, key=lambda entry: (entry.file, entry.entry, entry.arch))


# --- the two commands ----------------------------------------------------------------------------


def find_source(command: list[str]) -> str:
    """The file that the command compiles; the last one named, as an absolute path."""
    sources = [word for word in command[1:] if word.endswith(SOURCE_SUFFIXES) and word[0] != "-"]
    return os.path.abspath(sources[-1]) if sources else ""


def find_object(command: list[str]) -> Path | None:
    """What the command writes; None when no -o says so."""
    for option, value in pairwise(command):
        if option in ("-o", "--output-file"):
            return Path(value)
    return None


def is_quiet(line: str, in_info: bool) -> bool:
    """True for the lines of ptxas -v that belong in the report alone."""
    coded = CODED.search(line)
    return not coded and bool(INFO.search(line) or (in_info and STACK.search(line)))


def filter_output(text: str) -> tuple[str, str]:
    """Splits the compiler's stderr into (what the user sees, what the report keeps)."""
    shown: list[str] = []
    report: list[str] = []
    in_info = False
    for line in text.splitlines():
        quiet = is_quiet(line, in_info)
        in_info = quiet
        if quiet or CODED.search(line):
            report.append(line)
        if not quiet:
            shown.append(line)
    return "".join(f"{line}\n" for line in shown), "".join(f"{line}\n" for line in report)


def ptx_command(command: list[str], sm: str, output: Path) -> list[str]:
    """The command that compiles the same source with the same options to PTX. It keeps -c, which
    nvcc ignores beside -ptx: a compiler cache takes no command without it."""
    words = iter(command)
    kept = []
    for word in words:
        if word in ("-o", "-MT", "-MF"):
            next(words)
        elif word != "-MD" and not word.startswith(("--generate-code", "-Xptxas")):
            kept.append(word)
    return [*kept, "-ptx", f"-arch=compute_{sm}", "-o", str(output)]


def with_plain_paths(ptx: str) -> str:
    """A compiler cache may name the sources from the build folder, as in build/../kernels."""
    return SOURCE_FILE.sub(lambda match: match[1] + os.path.normpath(match[2]) + match[3], ptx)


@dataclass
class Ptx:
    """The PTX that nvcc makes on its way to an object, kept as a file."""

    output: Path
    sm: str
    folder: Path  # of all that nvcc makes on the way

    def begin(self) -> list[str]:
        """What the command needs for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        return ["--keep", f"--keep-dir={self.folder}"]

    def end(self, command: list[str]) -> int:
        """A compiler cache that has the object leaves nothing on the way."""
        names = (self.output.name, f"{self.output.stem}.compute_{self.sm}.ptx")
        paths = [self.folder / name for name in names]
        made = next(filter(Path.is_file, paths), None)
        if made is None:
            made = paths[0]
            done = subprocess.run(ptx_command(command, self.sm, made), check=False)
            if done.returncode != 0:
                return done.returncode
        write_atomically(self.output, with_plain_paths(made.read_text(encoding="utf-8")))
        return 0


def compile_command(words: list[str]) -> int:
    """Runs the compiler, shows its messages, writes the report beside the object."""
    has_ptx = words[:1] == ["--ptx"]
    command = words[3:] if has_ptx else words
    if not command:
        return fail("compile: no command given")
    target = find_object(command)
    if not has_ptx or target is None:
        return compile_object(command, [])
    folder = target.with_name(target.name + ".keep")
    ptx = Ptx(Path(words[1]) / (Path(find_source(command)).stem + ".ptx"), words[2], folder)
    try:
        return compile_object(command, ptx.begin()) or ptx.end(command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compile_object(command: list[str], more: list[str]) -> int:
    try:
        done = subprocess.run([*command, *more], stderr=subprocess.PIPE, check=False)
    except OSError as error:
        return fail(f"cannot run {command[0]}: {error.strerror}")
    shown, report = filter_output(done.stderr.decode(errors="replace"))
    sys.stderr.write(shown)
    target = find_object(command)
    if target is not None:
        report_path = target.with_name(target.name + ".ptxas")
        if report and done.returncode == 0:
            write_atomically(report_path, f"{SOURCE_LINE}{find_source(command)}\n{report}")
        else:
            report_path.unlink(missing_ok=True)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def merge_command(directory: Path, output: Path, forbid: re.Pattern[str] | None) -> int:
    """Writes the JSON list; fails when an entry that must be clean is not."""
    if not directory.is_dir():
        return fail(f"{directory} is not a folder")
    entries = collect(directory)
    try:
        write_atomically(output, json.dumps([asdict(entry) for entry in entries], indent=1) + "\n")
    except OSError as error:
        return fail(f"cannot write {output}: {error.strerror}", 3)
    faulty = [
        entry for entry in entries if forbid and forbid.search(entry.entry) and entry.faults()
    ]
    for entry in faulty:
        for fault in entry.faults():
            print(f"{entry.file}: {entry.entry} ({entry.arch}): {fault}", file=sys.stderr)
    return 1 if faulty else 0


def fail(message: str, code: int = 2) -> int:
    print(f"ptxas_report.py: error: {message}", file=sys.stderr)
    return code


def regular_expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {error}") from error


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ptxas_report.py", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    compile_parser = commands.add_parser("compile", help="run a compiler, keep its ptxas report")
    compile_parser.add_argument("words", nargs=argparse.REMAINDER)
    merge_parser = commands.add_parser("merge", help="collect the reports below a folder")
    merge_parser.add_argument("directory", type=Path)
    merge_parser.add_argument("output", type=Path)
    merge_parser.add_argument(
        "--forbid",
        type=regular_expression,
        metavar="REGEX",
        help="fail when a matching entry spills or has C75xx messages",
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    if argv[:1] == ["compile"]:  # the command's own options must not be read as ours
        return compile_command(argv[1:])
    arguments = parse_arguments(argv)
    return merge_command(arguments.directory, arguments.output, arguments.forbid)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
