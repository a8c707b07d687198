#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The licence line of every source file. scripts/format.sh calls this.

  scripts/spdx.py            puts the line first (behind "#!") where it is missing
  scripts/spdx.py --check    lists the files that lack it, exit 1

Files whose line numbers are quoted, in chapters, exercises and expected output, do without: kernels,
the pages and their exercises, and the kernels of tests; so does the project that a page shows whole. LICENSE covers them like all others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LINE = "SPDX-License-Identifier: MIT"
COMMENTS = {".cmake": "#", ".cpp": "//", ".cu": "//", ".cuh": "//", ".def": "//", ".h": "//"}
COMMENTS |= {".inc": "//", ".py": "#", ".sh": "#", "CMakeLists.txt": "#"}
WITHOUT = ("kernels/", "docs/", "harness/vm/tests/kernels/", "harness/vm/tests/consumer/",
           "harness/tests/exercises/project/")  # fmt: skip


def comment_of(name: str) -> str:
    """What begins a comment in this file; empty where no line is wanted."""
    path = Path(name)
    wanted = not name.startswith(WITHOUT)
    return (COMMENTS.get(path.name) or COMMENTS.get(path.suffix, "")) if wanted else ""


def sources(root: Path) -> list[str]:
    """Files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if comment_of(name) and (root / name).is_file()]


def lacks_line(text: str) -> bool:
    return not any(LINE in line for line in text.splitlines()[:3])


def with_line(text: str, comment: str) -> str:
    first, newline, rest = text.partition("\n")
    line = f"{comment} {LINE}\n"
    return first + newline + line + rest if first.startswith("#!") else line + text


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 for a file without")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        names = sources(arguments.root)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"spdx.py: skipped, git cannot list the files ({error})", file=sys.stderr)
        return 77
    code = 0
    for name in names:
        path = arguments.root / name
        text = path.read_text(encoding="utf-8")
        if not lacks_line(text):
            continue
        if arguments.check:
            print(f"{name}: no '{LINE}'; run scripts/format.sh")
            code = 1
        else:
            path.write_text(with_line(text, comment_of(name)), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
