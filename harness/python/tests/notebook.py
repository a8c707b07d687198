# SPDX-License-Identifier: MIT
"""Runs a notebook's code as Jupyter does, without Jupyter: one namespace, text outputs only."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any


def source_lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run_cell(code: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell: what it printed, and the value of its last line if that has one."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": source_lines(text)})
    if value is not None:
        data = {"text/plain": source_lines(repr(value))}
        result = {"data": data, "execution_count": None, "metadata": {}}
        outputs.append(result | {"output_type": "execute_result"})
    return outputs


def execute(file: Path) -> dict[str, Any]:
    """The notebook with the outputs that it has now."""
    notebook: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = run_cell("".join(cell["source"]), namespace)
    return notebook


def write(notebook: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
