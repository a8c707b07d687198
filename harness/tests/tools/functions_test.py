# SPDX-License-Identifier: MIT
"""No C++ function of the harness is longer than 120 lines."""

from __future__ import annotations

import textwrap
import unittest

import functions
import support

HARNESS = support.REPOSITORY / "harness"
MOST_LINES = 120


def long_functions(most: int) -> dict[str, int]:
    found = {}
    for suffix in ("*.cpp", "*.h", "*.cu", "*.cuh", "*.inc"):
        for path in sorted(HARNESS.rglob(suffix)):
            for each in functions.functions(path.read_text(encoding="utf-8")):
                if each.lines > most:
                    found[f"{path.relative_to(HARNESS)}: {each.name}"] = each.lines
    return found


class Harness(unittest.TestCase):
    def test_no_function_is_longer(self) -> None:
        self.assertEqual(long_functions(MOST_LINES), {})

    def test_functions_are_found_at_all(self) -> None:
        self.assertGreater(len(long_functions(20)), 100)


class Length(unittest.TestCase):
    def lengths(self, text: str) -> dict[str, tuple[int, int]]:
        found = functions.functions(textwrap.dedent(text))
        return {each.name: (each.line, each.lines) for each in found}

    def test_functions_of_all_kinds(self) -> None:
        text = """\
            namespace fa {
            int kTable[] = {1, 2, 3};
            struct A : B {
              A() : x(1) {
                x = 2;
              }
              int x = 0;
              std::vector<int> y{1};
            };
            template <typename T>
            struct C {
              void f() const { return; }
            };
            template <typename T>
            T g(int a,
                int b) {
              const char* brace = "{{{";  // {
              auto lambda = [&](int i) {
                return '{' + i;
              };
              if (a) {
                struct Local { int z; };
              }
              return 1'000'000;
            }
            bool A::operator==(const A& o) const {
              return true;
            }
            }  // namespace fa
            """
        self.assertEqual(
            self.lengths(text), {"A": (4, 3), "f": (12, 1), "g": (14, 12), "A::operator==": (26, 3)}
        )

    def test_members_with_braces(self) -> None:
        text = """\
            A::A(int a)
                : x{a}, y(2), z{{1},
                                {2}} {
              f();
            }
            std::vector<int> v{f(1), 2};
            int after() { return 1; }
            """
        self.assertEqual(self.lengths(text), {"A::A": (1, 5), "after": (7, 1)})

    def test_macros_are_not_code(self) -> None:
        text = """\
            #define F(x) \\
              void x() { \\
              }
            void f() {
            #if 1
            #endif
            }
            """
        self.assertEqual(self.lengths(text), {"f": (4, 4)})
