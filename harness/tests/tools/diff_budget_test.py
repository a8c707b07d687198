"""scripts/diff_budget.py: what counts as a changed line."""

from __future__ import annotations

import json
import unittest

import support
import synthetic

import diff_budget

PARENT = """\
// 01_base: the header
__global__ void fa_01_base_d64(int n) {
  int a = 1;  /* a comment
                 of two lines */
  const char* url = "http://x";

  work(a, n);
}
"""


class CountTest(unittest.TestCase):
    def changed(self, child: str) -> int:
        old = diff_budget.code_lines(PARENT, "01_base")
        return diff_budget.changed_lines(old, diff_budget.code_lines(child, "02_swizzle"))

    def test_the_rung_s_name_comments_and_blank_lines_do_not_count(self) -> None:
        child = PARENT.replace("01_base", "02_swizzle").replace("of two lines", "otherwise put")
        self.assertEqual(self.changed(child.replace("  int a", "\n\n    // new\n  int   a")), 0)

    def test_changed_added_and_removed_lines(self) -> None:
        child = PARENT.replace("01_base", "02_swizzle")
        self.assertEqual(self.changed(child.replace("a = 1", "a = 2")), 1)
        self.assertEqual(self.changed(child.replace("  work", "  one();\n  two();\n  work")), 2)
        self.assertEqual(self.changed(child.replace("  work(a, n);\n", "")), 1)

    def test_a_string_is_no_comment(self) -> None:
        child = PARENT.replace("01_base", "02_swizzle")
        self.assertEqual(self.changed(child.replace("http://x", "http://y")), 1)


class CommandTest(support.FolderTest):
    def run_with(self, child: str, budget: int) -> tuple[int, str, str]:
        listing = synthetic.catalogue(("ampere",), 2)
        listing["rungs"][1]["diff_budget"] = budget
        path = self.folder / "synthetic_catalogue.json"
        path.write_text(json.dumps(listing))
        kernels = self.folder / "kernels" / "ampere"
        kernels.mkdir(parents=True, exist_ok=True)
        (kernels / "01_base.cu").write_text(PARENT)
        (kernels / "02_swizzle.cu").write_text(child)
        options = ("--root", self.folder, "--catalogue", path)
        return support.run_main(diff_budget.main, *options)

    def test_over_and_under_budget(self) -> None:
        child = PARENT.replace("01_base", "02_swizzle").replace("a = 1", "a = 2")
        self.assertEqual(self.run_with(child, 1)[0], 0)
        code, out, _ = self.run_with(child, 0)
        self.assertEqual(code, 1)
        self.assertIn("OVER BUDGET", out)

    def test_missing_kernel(self) -> None:
        self.run_with(PARENT, 1)
        (self.folder / "kernels" / "ampere" / "01_base.cu").unlink()
        path = self.folder / "synthetic_catalogue.json"
        code, _, err = support.run_main(
            diff_budget.main, "--root", self.folder, "--catalogue", path
        )
        self.assertEqual(code, 2)
        self.assertIn("cannot read kernels/ampere/01_base.cu", err)


if __name__ == "__main__":
    unittest.main()
