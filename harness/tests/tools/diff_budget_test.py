# SPDX-License-Identifier: MIT
"""scripts/diff_budget.py: changed lines, host lines and repetition of the kernel files."""

from __future__ import annotations

import json
import unittest

import support
import synthetic

import diff_budget

DEVICE = """\
// 01_base
// the header
namespace {
__device__ int f(int n) {
  return n + 1;
}

}  // namespace
"""
HOST = """\

#define INSTANCES(X) \\
  X(fa_01_base_d64, Attention<64>)

INSTANCES(FA_HALF_ENTRY)
FA_RUNG(01_base, "", sm_80, f16, none, "an idea", kInstances, fa::plan_half_tiles);
"""


class HostTest(unittest.TestCase):
    def test_host_code_starts_after_the_device_code_and_blank_lines_do_not_count(self) -> None:
        lines = diff_budget.host_lines(DEVICE + HOST)
        self.assertEqual(lines[0], "#define INSTANCES(X) \\")
        self.assertEqual(len(lines), 4)

    def test_a_file_without_device_code_is_all_host_code(self) -> None:
        self.assertEqual(diff_budget.host_lines("int a;\n\nint b;\n"), ["int a;", "int b;"])

    def test_six_equal_lines_in_a_row_are_a_repetition_and_five_are_not(self) -> None:
        same = [f"line {i};" for i in range(6)]
        self.assertEqual(
            list(diff_budget.repetitions({"a": ["x", *same], "b": [*same, "y"], "c": same[1:]})),
            [("b", "a", "line 0;")],
        )


class CommandTest(support.FolderTest):
    def run_with(self, child: str, why: str | None = None, host: str = HOST) -> tuple[int, str, str]:
        listing = synthetic.catalogue(("ampere",), 2)
        listing["rungs"][1]["why_large"] = why
        path = self.folder / "synthetic_catalogue.json"
        path.write_text(json.dumps(listing))
        kernels = self.folder / "kernels" / "ampere"
        kernels.mkdir(parents=True, exist_ok=True)
        (kernels / "01_base.cu").write_text(DEVICE + host)
        (kernels / "02_swizzle.cu").write_text(child)
        options = ("--root", self.folder, "--catalogue", path)
        return support.run_main(diff_budget.main, *options)

    def test_added_and_removed_lines_count_together(self) -> None:
        child = DEVICE.replace("n + 1", "n + 2") + HOST
        self.assertIn("02_swizzle            2 lines against 01_base\n", self.run_with(child)[1])

    def test_comments_blank_lines_and_indentation_count(self) -> None:
        for child in (
            DEVICE.replace("the header", "the head"),
            DEVICE.replace("  return", "    return"),
            DEVICE.replace("}\n\n", "}\n\n\n\n"),
        ):
            self.assertIn("  2 lines", self.run_with(child + HOST)[1], child)

    def test_more_than_120_lines_have_a_reason_and_fewer_have_none(self) -> None:
        for lines, why, code, says in (
            (120, None, 0, ""),
            (121, None, 1, "above 120, and its row gives no reason"),
            (121, "all is new", 0, ""),
            (120, "all is new", 1, "its row says why it is above 120, which it is not"),
        ):
            added = "".join(f"// {i}\n" for i in range(lines))
            actual, out, _ = self.run_with(added + DEVICE + HOST, why)
            self.assertEqual(actual, code, out)
            self.assertIn(says, out)

    def test_at_most_twenty_lines_of_host_code(self) -> None:
        for lines, code in ((20, 0), (21, 1)):
            host = "".join(f"int a{i};\n" for i in range(lines))
            actual, out, _ = self.run_with(DEVICE + HOST, None, host)
            self.assertEqual(actual, code)
            self.assertEqual(f"{lines} lines of host code" in out, code == 1)

    def test_repeated_host_code(self) -> None:
        host = "".join(f"int a{i};\n" for i in range(6))
        code, out, _ = self.run_with(DEVICE + "int b;\n" + host, None, host)
        self.assertEqual(code, 1)
        self.assertIn("repeats 6 lines of 01_base", out)

    def test_missing_kernel(self) -> None:
        self.run_with(DEVICE)
        (self.folder / "kernels" / "ampere" / "01_base.cu").unlink()
        path = self.folder / "synthetic_catalogue.json"
        code, _, err = support.run_main(
            diff_budget.main, "--root", self.folder, "--catalogue", path
        )
        self.assertEqual(code, 2)
        self.assertIn("01_base.cu: no such file", err)


if __name__ == "__main__":
    unittest.main()
