# SPDX-License-Identifier: MIT
"""How long the functions of a C++ file are, by its braces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What is not code: comments, raw strings, strings, characters (not the ' of 1'000).
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'',
    re.DOTALL,
)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
NAME = re.compile(r"([\w:~]+(?:<[^()]*>)?(?:\s*operator\s*[^\s(]+)?)\s*\(")


@dataclass(frozen=True)
class Function:
    name: str
    line: int  # of its first line
    lines: int


def blanked(text: str) -> str:
    """The text with everything that is not code, and preprocessor lines, as spaces."""

    def spaces(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    code = NOT_CODE.sub(spaces, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", spaces, code, flags=re.MULTILINE)


def is_scope(head: str) -> bool:
    """Whether the braces behind these words hold declarations: `namespace fa`, `class A : B`."""
    words = re.sub(r"\btemplate\s*<[^{;]*?>\s*(?=\w)", "", head)
    return bool(SCOPE.search(words)) and "(" not in re.sub(r"\balignas\s*\([^)]*\)", "", words)


def is_member_initialiser(head: str) -> bool:
    """Whether a brace opens the value of a member: `A::A() : x(1), y`."""
    return bool(re.search(r"\)\s*(?:noexcept\s*)?:(?!:).*\w\s*$", head, re.DOTALL))


def functions(text: str) -> Iterator[Function]:
    """Function definitions in namespaces and classes, lambdas and local classes within them
    included in their length. Declarations and initialisers are none."""
    code = blanked(text)
    open_braces: list[str] = []  # "scope" where declarations are read, "body", or "value"
    start = 0  # of the declaration that is being read
    name, line = "", 0  # of the function whose body is the outermost one
    for found in re.finditer(r"[{};]", code):
        at, mark = found.start(), found[0]
        reading = all(kind == "scope" for kind in open_braces)
        if mark == "{":
            head = code[start:at]
            if not reading or is_member_initialiser(head):
                open_braces.append("value")
            elif is_scope(head):
                open_braces.append("scope")
                start = at + 1
            elif "(" in head:
                open_braces.append("body")
                named = NAME.search(head)
                name = named[1] if named else "?"
                line = code.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
            else:
                open_braces.append("value")
        elif mark == "}" and open_braces:
            kind = open_braces.pop()
            if kind == "body":
                yield Function(name, line, code.count("\n", 0, at) + 2 - line)
            if kind != "value":
                start = at + 1
        elif mark == ";" and reading:
            start = at + 1
