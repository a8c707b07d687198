# SPDX-License-Identifier: MIT
"""How charts and result files are written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def regular_target(path: Path) -> Path:
    """Where a chain of links ends. OSError if something is there that is not a regular file."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return target


def require_writable(path: Path) -> None:
    """OSError unless write_atomically() can work there, to be called before a long run. Makes the
    folder."""
    folder = regular_target(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def write_atomically(path: Path, text: str) -> None:
    """The file has its old or its new contents at every moment; a symbolic link stays a link."""
    target = regular_target(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def document_text(document: dict[str, Any]) -> str:
    """The JSON of a document in the layout of harness/results/json_file.h: a line for each row."""

    def lines_of(parent: Any, indent: str, text: Callable[[Any], str]) -> str:
        if isinstance(parent, dict):
            lines = [f"{json.dumps(key)}: {text(value)}" for key, value in parent.items()]
        else:
            lines = [text(value) for value in parent]
        begin, end = "{}" if isinstance(parent, dict) else "[]"
        return begin + ",".join(f"\n{indent} {line}" for line in lines) + f"\n{indent}{end}"

    def element(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    def member(value: Any) -> str:
        return (
            lines_of(value, " ", element)
            if value and isinstance(value, dict | list)
            else element(value)
        )

    return lines_of(document, "", member) + "\n"
