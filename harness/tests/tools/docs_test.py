"""scripts/docs.py on a small copy of the repository with synthetic results."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import support
import synthetic

README = """\
# Synthetic
<!-- table:chapters -->
<!-- /table -->
<!-- table:ladder synthetic/ladder 8192 -->
<!-- /table -->
Rung 02 runs at <!-- n:synthetic/ladder 02 8192 tflops -->0<!-- /n --> TFLOPS.
"""
CONFIG = """\
nav:
  - The ladder:
      # chapters: begin (generated)
      # chapters: end
"""


class DocsTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        for name in ("scripts/docs.py", "plots/ladder.py", "plots/style.py", "plots/render.py",
                     "plots/progression.py", "plots/seq_len.py", "plots/parent.py",
                     "plots/counts.py"):  # fmt: skip
            self.put(name, (support.REPOSITORY / name).read_text(encoding="utf-8"))
        self.put("README.md", README)
        self.put("mkdocs.yml", CONFIG)
        self.put_ladder(3)

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def put_ladder(self, rungs: int) -> None:
        """A catalogue with that many rungs, a page for each, and results."""
        listing = synthetic.catalogue(("ampere",), rungs)
        self.put("catalogue.json", json.dumps(listing))
        document = synthetic.results(listing)
        self.put("plots/results/synthetic/ladder.json", json.dumps(document))
        for rung in listing["rungs"]:
            self.put(rung["chapter"], f"# {rung['name']}\n")

    def docs(self, action: str) -> tuple[int, str]:
        script = self.folder / "scripts" / "docs.py"
        command = [sys.executable, script, action, "--catalogue", self.folder / "catalogue.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class FillTest(DocsTest):
    def test_write_then_check(self) -> None:
        self.assertEqual(self.docs("--check")[0], 1)
        self.assertEqual(self.docs("--write")[0], 0)
        self.assertEqual(self.docs("--check"), (0, ""))
        written = self.read("README.md")
        self.docs("--write")
        self.assertEqual(self.read("README.md"), written)

    def test_tables_numbers_and_navigation(self) -> None:
        self.docs("--write")
        readme = self.read("README.md")
        self.assertIn("| [02 swizzle](docs/02_swizzle.md) | synthetic idea of 02 | 01 |", readme)
        self.assertIn("| FlashAttention-2 (torch 0.0) |", readme)
        self.assertIn("| 100 % |", readme)
        self.assertIn("Synthetic GPU, B=16 H=16 N=8192 D=128", readme)
        self.assertIn("tflops -->273<!-- /n --> TFLOPS.", readme)
        self.assertIn('      - "02 swizzle": 02_swizzle.md\n', self.read("mkdocs.yml"))

    def test_a_new_rung_appears_everywhere_from_the_list_alone(self) -> None:
        self.docs("--write")
        self.assertNotIn("04 vpair", self.read("README.md") + self.read("mkdocs.yml"))
        self.put_ladder(4)
        code, diff = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("+| [04 vpair]", diff)
        self.docs("--write")
        readme = self.read("README.md")
        self.assertEqual(readme.count("[04 vpair](docs/04_vpair.md)"), 2)
        self.assertIn('"04 vpair": 04_vpair.md', self.read("mkdocs.yml"))

    def test_drift_of_one_number_is_a_diff(self) -> None:
        self.docs("--write")
        self.put("README.md", self.read("README.md").replace("-->273<", "-->274<"))
        code, diff = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("-->274<", diff)
        self.assertIn("-->273<", diff)

    def test_a_rung_without_a_chapter_is_named(self) -> None:
        self.docs("--write")
        (self.folder / "docs" / "03_kvpipe.md").unlink()
        code, text = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("03_kvpipe has no chapter: docs/03_kvpipe.md does not exist", text)

    def test_links_are_relative_to_the_page(self) -> None:
        page = "<!-- table:chapters -->\n<!-- /table -->\n"
        self.put("docs/how/page.md", page)
        self.docs("--write")
        self.assertIn("[01 base](../01_base.md)", self.read("docs/how/page.md"))

    def test_rung_and_resources_tables(self) -> None:
        page = "<!-- table:rung synthetic/ladder 02 -->\n<!-- /table -->\n"
        page += "<!-- table:resources synthetic/ladder 8192 -->\n<!-- /table -->\n"
        self.put("docs/02_swizzle.md", page)
        self.assertEqual(self.docs("--write")[0], 0)
        text = self.read("docs/02_swizzle.md")
        self.assertIn("| D | N | 02 | 01 | 01 at this tile | FA2 | cuDNN | of FA2 |", text)
        self.assertEqual(text.count("\n| 128 | "), 3)


class NumberTest(DocsTest):
    def number(self, key: str) -> str:
        self.put("docs/page.md", f"<!-- n:{key} -->x<!-- /n -->")
        code, text = self.docs("--write")
        return self.read("docs/page.md").split("-->")[1].split("<!--")[0] if code == 0 else text

    def test_key_language(self) -> None:
        cases = {
            "synthetic/ladder 02 8192 tflops": "273",
            "synthetic/ladder 02 16,16,8192,128 ms": "32.2",
            "synthetic/ladder 02 8192 clock_mhz": "1755",
            "synthetic/ladder 02 8192 tflops / fa2": "0.82",
            "synthetic/ladder 02 8192 tflops % 01@64x128w4": "+25 %",
            "synthetic/ladder 01@64x128w4 8192 tflops": "219",
            "synthetic/ladder cublas 8192 tflops": "690",
        }
        for key, value in cases.items():
            self.assertEqual(self.number(key), value, key)

    def test_bad_keys_are_one_clear_line(self) -> None:
        cases = {
            "synthetic/none 02 8192 tflops": "cannot read",
            "synthetic/ladder 02 8192": "expected FILE ID PROBLEM FIELD",
            "synthetic/ladder 02 8192 speed": "unknown field 'speed'; known: tflops",
            "synthetic/ladder 02 77 tflops": "has no time of '02' at B=16 H=16 N=77",
            "synthetic/ladder triton 8192 tflops": "has no time of 'triton'",
            "synthetic/ladder 02 8192 registers": "has no registers",
        }
        for key, message in cases.items():
            code, text = self.number_error(key)
            self.assertEqual(code, 2)
            (line,) = (line for line in text.splitlines() if " error: " in line)
            self.assertTrue(line.startswith("docs.py: error: docs/page.md: "), line)
            self.assertIn(message, line)

    def number_error(self, key: str) -> tuple[int, str]:
        self.put("docs/page.md", f"<!-- n:{key} -->x<!-- /n -->")
        return self.docs("--write")

    def test_one_bad_marker_does_not_stop_the_others(self) -> None:
        good = "<!-- n:synthetic/ladder 02 8192 tflops -->x<!-- /n -->"
        self.put("docs/page.md", good.replace("02", "99") + good)
        self.assertEqual(self.docs("--write")[0], 2)
        text = self.read("docs/page.md")
        self.assertIn("99 8192 tflops -->x<", text)
        self.assertIn("02 8192 tflops -->273<", text)

    def test_an_unclosed_marker_is_an_error(self) -> None:
        self.put("docs/page.md", "<!-- n:synthetic/ladder 02 8192 tflops -->1\n")
        code, text = self.docs("--check")
        self.assertEqual(code, 2)
        self.assertIn("docs/page.md: a table: or n: marker has no end", text)


class CountsTest(DocsTest):
    """Counts of the virtual machine; the committed ones, on the synthetic ladder."""

    def setUp(self) -> None:
        super().setUp()
        counts = support.REPOSITORY / "plots/results/vm/counts.json"
        self.put("plots/results/vm/counts.json", counts.read_text(encoding="utf-8"))

    def write(self, text: str) -> tuple[int, str]:
        self.put("docs/counts.md", text)
        code, said = self.docs("--write")
        return code, said + self.read("docs/counts.md")

    def test_table(self) -> None:
        code, text = self.write("<!-- table:counts 02 128 -->\n<!-- /table -->\n")
        self.assertEqual(code, 0)
        self.assertIn("| for each `mma` | 01 | 01 at this tile | 02 |", text)
        self.assertIn("| wavefronts of `ldmatrix` | 20.000 | 17.000 | 2.125 |", text)

    def test_numbers(self) -> None:
        marks = (("02 128 tensor", "262\N{NARROW NO-BREAK SPACE}144"),
                 ("02 128 ldmatrix_wavefronts mma", "2.12"),
                 ("02 128 ldmatrix_wavefronts 01@64x128w4", "0.12"))  # fmt: skip
        code, text = self.write("".join(f"<!-- n:counts {key} -->?<!-- /n -->\n" for key, _ in marks))
        self.assertEqual(code, 0)
        for key, value in marks:
            self.assertIn(f"<!-- n:counts {key} -->{value}<!-- /n -->", text)

    def test_mistakes(self) -> None:
        for key, says in (
            ("n:counts 02 128 sparkle -->1<!-- /n -->", "'02' has no sparkle"),
            ("n:counts 02 96 tensor -->1<!-- /n -->", "no counts of '02' at head_dim 96"),
            ("table:counts 99 128 -->\n<!-- /table -->", "no rung '99'"),
        ):
            code, text = self.write(f"<!-- {key}\n")
            self.assertEqual(code, 2)
            self.assertIn(says, text)


class ChartTest(DocsTest):
    def setUp(self) -> None:
        support.need("matplotlib")
        super().setUp()
        self.move_results()

    def move_results(self) -> None:
        """To where the charts of the documentation are drawn from; in this temporary copy only."""
        source = self.folder / "plots/results/synthetic/ladder.json"
        target = self.folder / "plots/results/h200/ladder.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)

    def test_charts_follow_results_and_catalogue(self) -> None:
        self.assertIn("has no charts in docs/assets", self.docs("--check")[1])
        self.docs("--write")
        self.assertEqual(self.docs("--check"), (0, ""))
        self.put_ladder(4)
        self.docs("--write")  # pages and charts of the new list, results as they were
        self.move_results()
        code, text = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("progression.svg was drawn from another version of plots/results/h200", text)

    def test_a_new_rung_makes_charts_out_of_date(self) -> None:
        self.docs("--write")
        self.put_ladder(4)
        self.assertIn("was drawn from another catalogue", self.docs("--check")[1])

    def test_a_drawing_is_not_a_chart(self) -> None:
        self.docs("--write")
        self.put("docs/assets/banks.svg", "<svg/>")
        self.assertEqual(self.docs("--check"), (0, ""))


if __name__ == "__main__":
    unittest.main()
