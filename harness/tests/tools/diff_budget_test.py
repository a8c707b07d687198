# SPDX-License-Identifier: MIT
"""scripts/diff_budget.py: changed lines, host lines and repetition of the kernel files."""

from __future__ import annotations

import json
import unittest

import support
import synthetic

import diff_budget

DEVICE = """\
// 01_base  parent: none
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
FA_RUNG(01_base, INSTANCES, fa::plan_half_tiles);
"""
HEADER = 2  # the first lines, which name the files, always differ


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
    def run_with(
        self, child: str, budget: int, host: str = HOST, parent: str = "01_base"
    ) -> tuple[int, str, str]:
        listing = synthetic.catalogue(("ampere",), 2)
        listing["rungs"][1]["diff_budget"] = budget
        path = self.folder / "synthetic_catalogue.json"
        path.write_text(json.dumps(listing))
        kernels = self.folder / "kernels" / "ampere"
        kernels.mkdir(parents=True, exist_ok=True)
        (kernels / "01_base.cu").write_text(DEVICE + host)
        child = child.replace("01_base  parent: none", f"02_swizzle  parent: {parent}", 1)
        (kernels / "02_swizzle.cu").write_text(child)
        options = ("--root", self.folder, "--catalogue", path)
        return support.run_main(diff_budget.main, *options)

    def test_added_and_removed_lines_count_together(self) -> None:
        child = DEVICE.replace("n + 1", "n + 2") + HOST
        self.assertEqual(self.run_with(child, HEADER + 2)[0], 0)
        code, out, _ = self.run_with(child, HEADER + 1)
        self.assertEqual(code, 1)
        self.assertIn("4 of   3 lines", out)
        self.assertIn("OVER BUDGET", out)

    def test_comments_blank_lines_and_indentation_count(self) -> None:
        for child in (
            DEVICE.replace("the header", "the head"),
            DEVICE.replace("  return", "    return"),
            DEVICE.replace("}\n\n", "}\n\n\n\n"),
        ):
            self.assertEqual(self.run_with(child + HOST, HEADER + 1)[0], 1, child)
            self.assertEqual(self.run_with(child + HOST, HEADER + 2)[0], 0, child)

    def test_an_equal_file_differs_in_its_name_alone(self) -> None:
        self.assertEqual(self.run_with(DEVICE + HOST, HEADER)[0], 0)

    def test_the_first_line_names_the_parent_of_the_catalogue(self) -> None:
        code, out, _ = self.run_with(DEVICE + HOST, 100, parent="02_swizzle")
        self.assertEqual(code, 1)
        self.assertIn("02_swizzle         names 02 as its parent, which is 01", out)
        self.assertEqual(self.run_with("\n" + DEVICE + HOST, 100)[0], 1)

    def test_at_most_twenty_lines_of_host_code(self) -> None:
        for lines, code in ((20, 0), (21, 1)):
            host = "".join(f"int a{i};\n" for i in range(lines))
            actual, out, _ = self.run_with(DEVICE + HOST, 100, host)
            self.assertEqual(actual, code)
            self.assertEqual(f"{lines} lines of host code" in out, code == 1)

    def test_repeated_host_code(self) -> None:
        host = "".join(f"int a{i};\n" for i in range(6))
        code, out, _ = self.run_with(DEVICE + "int b;\n" + host, 100, host)
        self.assertEqual(code, 1)
        self.assertIn("repeats 6 lines of 01_base", out)

    def test_missing_kernel(self) -> None:
        self.run_with(DEVICE, 100)
        (self.folder / "kernels" / "ampere" / "01_base.cu").unlink()
        path = self.folder / "synthetic_catalogue.json"
        code, _, err = support.run_main(
            diff_budget.main, "--root", self.folder, "--catalogue", path
        )
        self.assertEqual(code, 2)
        self.assertIn("01_base.cu: no such file", err)


if __name__ == "__main__":
    unittest.main()
