# SPDX-License-Identifier: MIT
"""scripts/docs.py on a small copy of the repository with synthetic results."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import support
import synthetic

import diff_budget
import docs
import ladder
import profile_kernels
from book import source
from pages import prose
from page import PASSED_ON, cache_entry

README = """\
# Synthetic
<!-- table:families -->
<!-- /table -->
<!-- table:ladder synthetic/ladder 8192 -->
<!-- /table -->
Rung 02 runs at ?<!-- synthetic/ladder 02 8192 tflops --> TFLOPS.
"""
CONFIG = """\
extra:
  changes:
    # changes: begin (generated)
    # changes: end
nav:
  # chapters: begin (generated)
  # chapters: end
"""


class DocsTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
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

    def numbers(self, *keys: str) -> tuple[int, list[str], str]:
        """(exit code, the text of each key in a page of them, messages)."""
        lines = (f"Line {i} has ?<!-- {key} -->, and ends.\n" for i, key in enumerate(keys))
        self.put("docs/page.md", "\n".join(lines))
        code, said = self.docs("--write")
        page = self.read("docs/page.md")
        return code, re.findall(r"^Line \d+ has (.*)<!-- .* -->, and ends\.$", page, re.M), said

    def write(self, text: str) -> tuple[int, str]:
        """(exit code, messages and what the page then is)."""
        self.put("docs/page.md", text)
        code, said = self.docs("--write")
        return code, said + self.read("docs/page.md")

    def docs(self, action: str) -> tuple[int, str]:
        with mock.patch.multiple("docs", REPOSITORY=self.folder):
            with mock.patch.multiple("ladder", REPOSITORY=self.folder):
                catalogue = self.folder / "catalogue.json"
                code, out, err = support.run_main(docs.main, action, "--catalogue", catalogue)
        return code, out + err


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
        self.assertIn("<summary>Ampere: tensor cores, 01 to 03</summary>", readme)
        self.assertIn("\n- [02 swizzle](docs/02_swizzle.md): synthetic idea of 02\n", readme)
        self.assertIn("| FlashAttention-2 (torch 0.0) |", readme)
        self.assertIn("| 100 % |", readme)
        self.assertIn("Synthetic GPU, B=16 H=16 N=8192 D=128", readme)
        self.assertIn("\nRung 02 runs at 273<!-- synthetic/ladder 02 8192 tflops --> TFLOPS.\n", readme)
        part = "  - 'Ampere: tensor cores':\n" + '      - "Tensor cores": background/tensor_cores.md\n'
        config = self.read("mkdocs.yml")
        self.assertIn(part + '      - "01 base": 01_base.md\n', config)
        self.assertIn('(generated)\n    not measured: "01 02 03"\n', config)

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

    def test_problems_of_a_model_are_in_a_file_of_their_own(self) -> None:
        keys = ("02 8192,bfloat16 tflops", "02 8192,causal,window=1023 tflops", "02 8192,bnhd tflops")
        code, texts, _ = self.numbers(*keys)
        self.assertEqual((code, texts), (0, ["not measured yet"] * 3))
        shape = synthetic.problem(8192)
        dim, row, head = 128, 16 * 128, 16 * 128 * 8192
        shapes = (
            shape | {"dtype": "bfloat16"},
            shape | {"causal": True, "window_left": 1023},
            shape | {"strides": [head, dim, row] * 4},
        )
        rows = [synthetic.timed_row("rung", "02", each, 100 + i) for i, each in enumerate(shapes)]
        self.put("plots/results/h200/model.json", json.dumps(synthetic.document(rows)))
        self.assertEqual(self.numbers(*keys)[:2], (0, ["100", "101", "102"]))
        self.assertEqual(self.numbers("02 8192,sinks tflops")[0], 2)

    def test_drift_of_one_number_is_a_diff(self) -> None:
        self.docs("--write")
        self.put("README.md", self.read("README.md").replace("at 273<", "at 274<"))
        code, diff = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("-Rung 02 runs at 274<", diff)
        self.assertIn("+Rung 02 runs at 273<", diff)

    def test_a_rung_without_a_chapter_is_named(self) -> None:
        self.docs("--write")
        (self.folder / "docs" / "03_kvpipe.md").unlink()
        code, text = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("03_kvpipe has no chapter: docs/03_kvpipe.md does not exist", text)

    def test_links_are_relative_to_the_page(self) -> None:
        page = "<!-- table:families -->\n<!-- /table -->\n"
        self.put("docs/how/page.md", page)
        self.docs("--write")
        self.assertIn("[01 base](../01_base.md)", self.read("docs/how/page.md"))

    def caches(self, rows: list[dict], listing: dict) -> list[list[str]]:
        """The cells of table:caches of these rows."""
        self.put("catalogue.json", json.dumps(listing))
        self.put("plots/results/synthetic/decode.json", json.dumps(synthetic.document(rows)))
        self.put("docs/page.md", "<!-- table:caches synthetic/decode -->\n<!-- /table -->\n")
        self.docs("--write")
        lines = self.read("docs/page.md").partition("\n\n")[0].splitlines()[1:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def test_table_of_caches_has_the_parent_at_the_cache_that_it_takes(self) -> None:
        """02 reads 8 bits and its parent 16: the same keys. 03 and its parent both read 8."""
        listing = synthetic.catalogue(("ampere",), 3)
        for rung in listing["rungs"]:
            rung |= {"family": "decode", "e4m3": rung["id"] != "01"}
        shape = synthetic.problem(8192) | {"heads": 32, "kv_heads": 8, "seq_q": 1}
        narrow = shape | {"cache": "float8_e4m3"}
        times = (("01", shape, 0.1), ("02", narrow, 0.125), ("03", narrow, 0.15))
        rows = [synthetic.timed_row("rung", *each) for each in times]
        changes = [line[3] for line in self.caches(rows, listing)[2:]]
        self.assertEqual(changes, ["\N{EN DASH}", "+25 % against 01", "+20 % against 02"])

    def test_table_of_caches_has_the_peers_that_were_measured(self) -> None:
        listing = synthetic.catalogue(("ampere",), 1)
        listing["rungs"][0]["family"] = "decode"
        shape = synthetic.problem(8192) | {"heads": 32, "kv_heads": 8, "seq_q": 1}
        rows = [synthetic.timed_row("rung", "01", shape, 0.1)]
        for id, names in (("fa3", ["FA3"]), ("flashinfer", ["FA3", "FlashInfer"])):
            rows.append(synthetic.timed_row("peer", id, shape, 0.1))
            self.assertEqual([line[0] for line in self.caches(rows, listing)[3:]], names)

    def test_the_strips_have_rung_parent_and_peers(self) -> None:
        (self.folder / "plots/results/h200").mkdir()
        names = ("plots/results/synthetic/ladder.json", "plots/results/h200/ladder.json")
        shutil.copy(*(self.folder / name for name in names))
        self.assertEqual(self.docs("--write")[0], 0)
        row = json.loads(self.read("docs/assets/strips.json"))["02_swizzle"]
        shown = [(each["kind"], each["name"], each["value"]) for each in row["bars"]]
        self.assertEqual(shown[:2], [("parent", "01", 42.4), ("own", "02", 273.0)])
        self.assertIn(("peer", "FlashAttention-2", 332.0), shown)
        self.assertEqual((row["unit"], row["verdict"]), ("TFLOPS", "not measured"))  # one run
        self.assertEqual(row["change"], "\N{MULTIPLICATION SIGN} 6.4")


class LimitsTest(DocsTest):
    """Tables with and without the limits of the card."""

    TABLE = "<!-- table:ladder synthetic/ladder 8192 -->\n<!-- /table -->\n"

    def write(self, text: str) -> str:
        self.put("docs/page.md", text)
        code, said = self.docs("--write")
        self.assertEqual(code, 0, said)
        return self.read("docs/page.md")

    def test_percent_of_limit(self) -> None:
        text = self.write(self.TABLE)
        self.assertIn("| TFLOPS | of FA2 | change |", text)
        self.assertIn("Limits not measured.", text)
        self.put("plots/results/synthetic/limits.json", json.dumps(synthetic.limits()))
        text = self.write(self.TABLE)
        self.assertNotIn("Limits not measured", text)
        self.assertIn("| 273 | 43 % |", text)  # of 640
        self.assertIn("| % of limit |", text)

    def test_table_and_numbers_of_limits(self) -> None:
        page = (
            "<!-- table:limits h200 -->\n<!-- /table -->\n\n"
            "The loop reaches ?<!-- limit h200 mma_sync rate_back_to_back --> TFLOPS.\n"
        )
        self.assertEqual(self.write(page).count("not measured yet"), 2)
        self.put("plots/results/h200/limits.json", json.dumps(synthetic.limits()))
        text = self.write(page)
        self.assertIn("| synthetic mma_sync | 640 TFLOPS | 576 TFLOPS | 1.00 | 1700 | 690 |", text)
        self.assertIn("The loop reaches 576<!-- ", text)
        code, _, said = self.numbers("limit h200 luck rate")
        self.assertEqual(code, 2)
        self.assertIn("unknown loop 'luck'; known: attention_registers", said)

    def test_the_parent_is_named(self) -> None:
        text = self.write(self.TABLE)
        self.assertIn("+0.3 % against 02", text)

    def test_rate_and_status_in_the_list_of_rungs(self) -> None:
        def item() -> str:
            self.write("")
            return next(line for line in self.read("README.md").split("\n") if "- [03 kv" in line)

        link, idea = "- [03 kvpipe](docs/03_kvpipe.md)", "synthetic idea of 03"
        self.assertEqual(item(), f"{link}: {idea}")  # not measured
        document = json.loads(self.read("plots/results/synthetic/ladder.json"))
        for row in document["rows"]:
            if (row["id"], row["variant"]) == ("03", "64x128w4"):
                row["time_ms"] = {name: 1.1 * time for name, time in row["time_ms"].items()}
        self.put("plots/results/h200/ladder.json", json.dumps(document))
        self.assertEqual(item(), f"{link}, 274 TFLOPS: {idea}")  # a single run
        (self.folder / "plots/results/h200/ladder.json").unlink()
        synthetic.write_runs(self.folder / "plots/results/h200/ladder", document)
        self.assertRegex(item(), rf"^{re.escape(link)}, \d+ TFLOPS, slower: {idea}$")

    def test_a_rung_newer_than_the_file(self) -> None:
        document = json.loads(self.read("plots/results/synthetic/ladder.json"))
        document["rows"] = [row for row in document["rows"] if row["id"] != "03"]
        self.put("plots/results/synthetic/ladder.json", json.dumps(document))
        text = self.write(
            "The rate is ?<!-- synthetic/ladder 03 8192 tflops --> here.\n\n"
            "The step is ?<!-- synthetic/ladder 02 8192 tflops % 03 --> there.\n"
        )
        self.assertIn("The rate is not measured yet<!-- ", text)
        self.assertIn("The step is not measured yet<!-- ", text)


class RunsTest(DocsTest):
    """Tables and numbers of a folder of runs, in which 03 is as fast as 02 and 02 is not as 01."""

    FLAT, FASTER = "synthetic/ladder 03 tflops / 02", "synthetic/ladder 02 tflops / 01@64x128w4"

    def setUp(self) -> None:
        super().setUp()
        file = self.folder / "plots/results/synthetic/ladder.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        speed = {row["problem"]["seq_q"]: row["tflops"] for row in document["rows"] if row["id"] == "02"}
        for row in document["rows"]:
            if row["id"] == "03":
                row |= synthetic.faster(row, speed[row["problem"]["seq_q"]] / row["tflops"])
        self.set = file.with_suffix("")
        synthetic.write_runs(self.set, document)
        self.put("README.md", "")
        self.docs("--write")

    def check(self, text: str) -> tuple[int, list[str]]:
        """(exit code, messages) of a page that is up to date."""
        self.put("docs/page.md", text)
        self.docs("--write")
        code, said = self.docs("--check")
        return code, said.splitlines()

    def test_a_ratio_that_may_be_one_says_so(self) -> None:
        self.assertEqual(self.check(f"It is 1.00<!-- {self.FLAT} flat --> of it.\n"), (0, []))
        for sign, number in (("/", r"1\.00"), ("%", r"[+−]0\.\d %")):
            key = self.FLAT.replace("/ 02", f"{sign} 02")
            code, (line,) = self.check(f"It is ?<!-- {key} --> of it.\n")
            self.assertEqual(code, 1)
            self.assertIn(f"docs.py: docs/page.md: '{key}' is ", line)
            self.assertRegex(line, r"from 0\.99\d\d to 1\.00\d\d with 95 % .* \(10 runs on 2 cards\)")
            self.assertIn("contains 1: end the key with the word flat", line)
            self.assertRegex(self.read("docs/page.md"), f"^It is {number}<!-- ")

    def test_a_ratio_that_is_not_one_does_not_say_flat(self) -> None:
        self.assertEqual(self.check(f"It is ?<!-- {self.FASTER} --> of it.\n"), (0, []))
        self.assertIn("It is 1.25<!-- ", self.read("docs/page.md"))
        code, (line,) = self.check(f"It is ?<!-- {self.FASTER} flat --> of it.\n")
        self.assertEqual(code, 1)
        self.assertIn(f"'{self.FASTER} flat' is 1.25", line)
        self.assertIn("excludes 1: take the word flat out of the key", line)

    def test_a_small_difference_shows(self) -> None:
        """1.003 would be 1.00."""
        key = "synthetic/ladder 03 1024 tflops / 02 1024"
        for path in self.set.iterdir():
            whole = json.loads(path.read_text(encoding="utf-8"))
            for row in whole["rows"]:
                if row["id"] == "03":
                    row |= synthetic.faster(row, 1.003)
            path.write_text(json.dumps(whole), encoding="utf-8")
        self.assertEqual(self.check(f"It is ?<!-- {key} --> of it.\n"), (0, []))
        self.assertRegex(self.read("docs/page.md"), r"^It is 1\.00[2-4]<!-- ")

    def test_rows_of_two_problems(self) -> None:
        key = "synthetic/ladder 02 8192 ms / 02 1024"
        self.assertEqual(self.check(f"It is ?<!-- {key} --> of it.\n"), (0, []))

    def test_what_does_not_vary_is_neither(self) -> None:
        key = "synthetic/ladder 02 8192 clock_mhz / 01"
        self.assertEqual(self.check(f"It is ?<!-- {key} --> of it.\n"), (0, []))
        self.assertIn("It is 1.00<!-- ", self.read("docs/page.md"))

    def test_a_single_file_needs_no_word(self) -> None:
        self.put("plots/results/other/ladder.json", (self.set / "card1_run1.json").read_text())
        for flat in ("", " flat"):
            key = self.FLAT.replace("synthetic", "other") + flat
            self.assertEqual(self.check(f"It is ?<!-- {key} --> of it.\n"), (0, []))

    def test_tables_have_means_and_margins(self) -> None:
        table = "<!-- table:ladder synthetic/ladder 8192 -->\n<!-- /table -->\n"
        self.assertEqual(self.check(table), (0, []))
        text = self.read("docs/page.md")
        margin = r"\d\.\d+ ± \d\.\d+"
        self.assertRegex(text, rf"03 kvpipe\]\(03_kvpipe.md\) \| \d+ \| \d\d.\d ± 0.\d % \| [+−]{margin} % against 02 \|")
        self.assertRegex(text, r"02 swizzle\].* ± 0\.\d % against 01, \+2\d\.\d ± 0\.\d % at equal tile \|")
        self.assertIn("| 100 % |", text)  # FlashAttention-2 of itself
        self.assertIn("means of 10 runs on 2 cards, 95 % intervals, spaced launches", text)
        self.assertIn("`plots/results/synthetic/ladder, commit 000000000`", text)

    def test_a_row_that_failed_once_has_no_number(self) -> None:
        path = self.set / "card2_run3.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        for row in whole["rows"]:
            if row["id"] == "03":
                row |= {"status": "error", "reason": "no", "time_ms": None, "tflops": None}
        path.write_text(json.dumps(whole), encoding="utf-8")
        code, _, said = self.numbers(self.FLAT)
        self.assertEqual(code, 2)
        self.assertIn("has no time of '03'", said)

    def test_table_of_caches(self) -> None:
        listing = synthetic.catalogue(("ampere",), 2)
        for rung in listing["rungs"]:
            rung |= {"family": "decode"}
        self.put("catalogue.json", json.dumps(listing))
        rows = []
        for batch in (16, 1):
            shape = synthetic.problem(8192) | {"heads": 32, "kv_heads": 8, "seq_q": 1, "batch": batch}
            rows += [synthetic.timed_row("rung", id, shape, 0.1) for id in ("01", "02")]
            rows.append(synthetic.timed_row("peer", "fa3", shape, 0.05))
        synthetic.write_runs(self.set.with_name("decode"), synthetic.document(rows))
        self.check("<!-- table:caches synthetic/decode -->\n<!-- /table -->\n")
        text = self.read("docs/page.md")
        self.assertRegex(text, r"\| [+−]0\.\d+ ± 0\.\d+ % against 01 \| .* \| [+−]0\.\d+ ± 0\.\d+ % against 01 \|")


class CausalTest(DocsTest):
    """Rows of the same problem with a mask: rungs 01 and 02 of three take it."""

    def setUp(self) -> None:
        super().setUp()
        listing = synthetic.catalogue(("ampere",), 3)
        for rung in listing["rungs"][:2]:
            rung["causal"] = True
        self.put("catalogue.json", json.dumps(listing))
        document = synthetic.results(listing)
        shape = synthetic.problem(8192, causal=True)
        document["rows"] += synthetic.rung_rows(listing["rungs"][:2], shape, 0.9)
        document["rows"].append(synthetic.timed_row("peer", "fa2", shape, 300, variant="torch 0.0"))
        self.put("plots/results/synthetic/ladder.json", json.dumps(document))

    def test_the_ladder_table_leaves_out_rungs_that_the_file_does_not_have(self) -> None:
        document = json.loads(self.read("plots/results/synthetic/ladder.json"))
        document["rows"] = [row for row in document["rows"] if row["id"] != "03"]
        self.put("plots/results/synthetic/ladder.json", json.dumps(document))
        code, text = self.write("<!-- table:ladder synthetic/ladder 8192 -->\n<!-- /table -->\n")
        self.assertEqual(code, 0)
        self.assertIn("[02 swizzle]", text)
        self.assertNotIn("[03 kvpipe]", text)

    def test_the_ladder_table_leaves_out_rungs_without_the_mask(self) -> None:
        table = "<!-- table:ladder synthetic/ladder 16,16,8192,128,causal -->\n<!-- /table -->\n"
        code, text = self.write(table)
        self.assertEqual(code, 0)
        self.assertIn("[02 swizzle]", text)
        self.assertNotIn("[03 kvpipe]", text)

    def test_a_number_against_another_problem(self) -> None:
        key = "synthetic/ladder 02 16,16,8192,128,causal ms / 02 8192"
        code, texts, said = self.numbers(key)
        self.assertEqual((code, texts), (0, [f"{0.5 * 290 * 8192 / 8692 / 261:.2f}"]), said)


class NumberTest(DocsTest):
    def test_key_language(self) -> None:
        self.put("plots/results/h200/ladder.json", self.read("plots/results/synthetic/ladder.json"))
        cases = {
            "synthetic/ladder 02 8192 tflops": "273",
            "02 tflops": "273",
            "02 8192,causal tflops / 02 8192,causal": "",
            "synthetic/ladder 02 16,16,8192,128 ms": "32.2",
            "synthetic/ladder 02 8192 clock_mhz": "1755",
            "02 tflops / fa2": "0.82",
            "synthetic/ladder 02 8192 tflops % 01@64x128w4": "+25 %",
            "01@64x128w4 tflops": "219",
            "synthetic/ladder cublas 8192 tflops": "690",
            "02 tflops / triton": "not measured in this run",
        }
        missing = [key for key, value in cases.items() if not value]
        code, _, said = self.numbers(*missing)
        self.assertEqual(code, 2)
        self.assertIn("has no time of '02' at B=16 H=16 N=8192 D=128, float16, causal", said)
        found = {key: value for key, value in cases.items() if value}
        code, texts, said = self.numbers(*found)
        self.assertEqual((code, texts), (0, list(found.values())), said)

    def test_lengths_are_those_of_the_file(self) -> None:
        document = json.loads(self.read("plots/results/synthetic/ladder.json"))
        row = next(row for row in document["rows"] if row["id"] == "02" and row["tflops"])
        row["problem"] |= {"seq_kv": 64, "lengths": list(range(1, 17))}
        self.put("plots/results/synthetic/ladder.json", json.dumps(document))
        problem = row["problem"]
        seq = f"{problem['seq_q']}/64"
        key = f"16,16,{seq},{problem['head_dim']}" + ",causal" * problem["causal"]
        code, texts, said = self.numbers(f"synthetic/ladder 02 {key},lengths tflops")
        self.assertEqual((code, texts), (0, [f"{row['tflops']:.0f}"]), said)
        code, _, said = self.numbers(f"synthetic/ladder 02 {key.replace('/64', '/32')},lengths ms")
        self.assertEqual(code, 2)
        self.assertIn("has 0 kinds of lengths at B=16", said)

    def test_bad_keys_are_one_clear_line(self) -> None:
        cases = {
            "synthetic/none 02 8192 tflops": "cannot read",
            "synthetic/ladder 02 8192": "expected [FILE] ID [PROBLEM] FIELD [/ ID or % ID]",
            "synthetic/ladder 02 8192 speed": "unknown field 'speed'; known: tflops",
            "synthetic/ladder 02 77 tflops": "has no time of '02' at B=16 H=16 N=77",
            "synthetic/ladder fa9 8192 tflops": "has no time of 'fa9'",
            "synthetic/ladder fa2 77 tflops": "has no time of 'fa2'",
            "synthetic/ladder 02 8192 registers": "has no registers",
        }
        for key, message in cases.items():
            code, texts, said = self.numbers(key)
            self.assertEqual((code, texts), (2, ["?"]))
            (line,) = (line for line in said.splitlines() if " error: " in line)
            self.assertTrue(line.startswith("docs.py: error: docs/page.md: "), line)
            self.assertIn(message, line)

    def test_one_bad_key_does_not_stop_the_others(self) -> None:
        bad, good = "synthetic/ladder 99 8192 tflops", "synthetic/ladder 02 8192 tflops"
        code, texts, _ = self.numbers(bad, good)
        self.assertEqual((code, texts), (2, ["?", "273"]))

    def test_an_unclosed_table_is_an_error(self) -> None:
        self.put("docs/page.md", "<!-- table:families -->\n")
        code, text = self.docs("--check")
        self.assertEqual(code, 2)
        self.assertIn("docs/page.md: a table: marker has no end", text)


class KeyTest(DocsTest):
    """The comment directly behind a number that says which number it is."""

    KEY = "<!-- synthetic/ladder 02 8192 tflops -->"  # 273

    def write(self, text: str) -> tuple[int, str, str]:
        """(exit code, page, messages)."""
        self.put("docs/page.md", text)
        code, said = self.docs("--write")
        return code, self.read("docs/page.md"), said

    def test_every_form_of_a_number_is_replaced_whole(self) -> None:
        space = "\N{NARROW NO-BREAK SPACE}"
        forms = ["?", "7", "+8.3 %", "\N{MINUS SIGN}0.4 %", "\N{MULTIPLICATION SIGN} 6.9"]
        for form in [*forms, f"1{space}024", "not measured yet", "not measured in this\nrun"]:
            code, page, said = self.write(f"It is **{form}{self.KEY}** of 5.\n")
            self.assertEqual((code, page), (0, f"It is **273{self.KEY}** of 5.\n"), said)

    def test_a_key_without_a_number_is_an_error(self) -> None:
        for text in ("It is 7 {} here.\n", "It is **7**{} here.\n", "It is x7{} here.\n"):
            text = text.format(self.KEY)
            code, page, said = self.write(text)
            self.assertEqual((code, page), (2, text))
            self.assertIn("docs/page.md: 'synthetic/ladder 02 8192 tflops': no number", said)

    def test_code_is_no_page(self) -> None:
        text = f"Write:\n\n```\nx7{self.KEY}\n```\n"
        self.assertEqual(self.write(text)[:2], (0, text))

    def test_code_of_a_kernel_is_written_between_its_markers(self) -> None:
        self.put("kernels/ampere/02_swizzle.cu", "void store() {\n  one();\n}\n")
        page = "<!-- code: kernels/ampere/02_swizzle.cu: store -->\n{}<!-- /code -->\n"
        shown = 'title="kernels/ampere/02_swizzle.cu, store"\nvoid store() {\n  one();\n}\n```\n'
        code, written, said = self.write(page.format(""))
        self.assertEqual((code, written), (0, page.format(f"```cuda {shown}")), said)
        self.put("kernels/ampere/02_swizzle.cu", "void store() {\n  two();\n}\n")
        code, said = self.docs("--check")
        self.assertEqual(code, 1)
        self.assertIn("-  one();\n+  two();", said)
        code, _, said = self.write(page.format("").replace("store", "load"))
        self.assertEqual(code, 2)
        self.assertIn("docs/page.md: kernels/ampere/02_swizzle.cu defines no 'load'", said)


class PagesTest(unittest.TestCase):
    """The committed pages are Markdown that renders."""

    ALONE = re.compile(
        r"<!-- ?(table:[^>]*|/table|/code|/widget|(code|change|also|widget):.*) ?-->"
    )

    def test_a_comment_has_its_line_to_itself(self) -> None:
        """A line that begins with one is HTML to its end: links and emphasis stay as they are."""
        pages = [support.REPOSITORY / "README.md", *(support.REPOSITORY / "docs").rglob("*.md")]
        self.assertGreater(len(pages), 30)
        for page in pages:
            text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
            for line in text.splitlines():
                if "<!--" in prose.KEYED.sub("", line):
                    self.assertIsNotNone(self.ALONE.fullmatch(line), f"{page.name}: {line}")

    def test_every_chart_has_a_page(self) -> None:
        pages = [support.REPOSITORY / "README.md", *(support.REPOSITORY / "docs").rglob("*.md")]
        text = "".join(page.read_text(encoding="utf-8") for page in pages)
        for chart in (support.REPOSITORY / "docs/assets").glob("*.svg"):
            self.assertIn(chart.name.replace(".narrow", ""), text)

    def test_nothing_of_the_source_is_left_in_the_rendered_text(self) -> None:
        markdown = support.need("markdown")
        for page in [support.REPOSITORY / "README.md", *(support.REPOSITORY / "docs").glob("*.md")]:
            html = markdown.markdown(page.read_text(encoding="utf-8"), extensions=["extra"])
            for raw in (r"<!--.*?-->", r"<pre>.*?</pre>", r"<code>.*?</code>", r"<[^>]*>"):
                html = re.sub(raw, "", html, flags=re.S)
            self.assertNotRegex(html, r"\]\(|\*\*|^\|", f"{page.name}")


class CounterSentencesTest(unittest.TestCase):
    """What docs/machine.md says about its tables of hardware counters, which docs.py --check ties to
    the recorded ones."""

    def setUp(self) -> None:
        self.page = (support.REPOSITORY / "docs/machine.md").read_text(encoding="utf-8")
        self.sentences = " ".join(re.sub(r"<!--.*?<!-- /table -->", "", self.page, flags=re.S).split())

    def differences(self, table: str, column: str) -> dict[str, float]:
        """Percent by which the machine differs, by kernel, of those that have the count."""
        lines = self.page.partition(f"<!-- table:ncu {table} -->\n")[2].partition("\n\n")[0].splitlines()
        heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        if column not in heading:
            equal = re.findall(r"Equal in all kernels: (.*?)\. ", self.page)
            self.assertTrue(equal and all(column in names for names in equal), column)
            return {}
        at = heading.index(column)
        cells = {row[0]: row[at].replace("−", "-").removesuffix(" %") for row in rows if row[at] != "–"}
        return {name: 0 if text == "equal" else float(text) for name, text in cells.items()}

    def of(self, table: str, column: str, *ids: str) -> list[float]:
        found = self.differences(table, column)
        return [value for name, value in found.items() if name.split()[0] in ids]

    def beyond(self, table: str, column: str, percent: float) -> list[str]:
        found = self.differences(table, column)
        ids = [name.split()[0] for name, value in found.items() if abs(value) > percent]
        return list(dict.fromkeys(ids))

    def test_those_that_are_open(self) -> None:
        self.assertEqual(self.beyond("ncu", "load sectors", 0), [])
        self.assertEqual(self.beyond("ncu", "store sectors", 0), [])
        (less,) = self.of("ncu", "wavefronts of stores", "a6")
        self.assertEqual(round(-less), 1)
        self.assertIn("1 % more stores of a6 to shared memory", self.sentences)

    def test_those_beside_wgmma(self) -> None:
        loads, stores = "wavefronts of loads", "wavefronts of stores"
        profile = json.loads((support.REPOSITORY / "plots/results/h200/ncu.json").read_text("utf-8"))
        with_wgmma = {row["id"] for row in profile["rows"] if row["counters"].get("wgmma_wavefronts")}
        self.assertLessEqual(set(self.beyond("ncu", loads, 0.045)), with_wgmma)
        self.assertIn("in a few other kernels up to 0.04 % of the loads", self.sentences)
        self.assertLessEqual(set(self.beyond("ncu", stores, 0)) - {"a6"}, with_wgmma)
        fewer = {name.split()[0] for name, of in self.differences("ncu", stores).items() if of > 0}
        self.assertLessEqual(fewer, {str(id) for id in range(34, 40)})
        self.assertIn("does not count stores to another thread block of a cluster (34 to 39)", self.sentences)

    def test_those_of_rungs_that_decode(self) -> None:
        for column in ("load sectors", "store sectors"):
            self.assertEqual(self.beyond("ncu_decode", column, 0), [])
        joined = self.beyond("ncu_decode", "wavefronts of loads", 0.04)
        self.assertIn("In 46 to 53, but not in 49 and 52, ptxas joins two loads", self.sentences)
        ids = [name.split()[0] for name in self.differences("ncu_decode", "wavefronts of loads")]
        expected = [id for id in ids if "46" <= id <= "53" and id not in ("49", "52")]
        self.assertEqual(joined, expected)
        self.assertIn("beside the `wgmma` of 49 the hardware repeats a few stores", self.sentences)
        self.assertEqual(self.beyond("ncu_decode", "wavefronts of stores", 0), ["49"])


class ReportTest(unittest.TestCase):
    """docs/profiling.md quotes two reports of ncu."""

    RESULTS = support.REPOSITORY / "plots/results/h100"

    def setUp(self) -> None:
        self.page = (support.REPOSITORY / "docs/profiling.md").read_text("utf-8")
        self.reports = {id: self.lines(id) for id in ("06", "25")}

    def lines(self, id: str) -> list[str]:
        """Each line of a report, with one space between its words."""
        text = (self.RESULTS / f"profile_{id}.txt").read_text("utf-8")
        return [" ".join(line.split()) for line in text.splitlines()]

    def assert_in_report(self, id: str, name: str, value: str) -> None:
        found = [line for line in self.reports[id] if line.startswith(f"{name} ")]
        self.assertEqual([line.split()[-1] for line in found], [value], f"{name} of {id}")

    def test_each_row_is_a_line_of_both_reports(self) -> None:
        table = self.page.partition("| line | 06 | 25 |")[2].partition("\n\n")[0]
        rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
        self.assertTrue(rows)
        for name, *values in rows:
            for id, value in zip(self.reports, values, strict=True):
                self.assert_in_report(id, name.strip(), value.strip())

    def test_lines_in_sentences(self) -> None:
        quoted = re.findall(r"`([A-Z][^`]*) ([\d.]+)`", self.page)
        self.assertTrue(quoted)
        both = [line for report in self.reports.values() for line in report]
        for name, value in quoted:
            found = [line.split()[-1] for line in both if line.startswith(f"{name} ")]
            self.assertIn(value, found, name)

    def test_sums_divide_by_the_cycles_of_the_reports(self) -> None:
        for sum, percent in re.findall(r"  (993[^=]*|496[^=]*)= (\d+) %", self.page):
            factors, _, cycles = sum.replace(",", "").partition(" / ")
            product = math.prod(map(float, factors.split(" x ")))
            self.assertEqual(round(100 * product / float(cycles)), int(percent), sum)
            self.assertIn(f"{int(cycles):,}", self.page.partition("```\n06")[0])


class SingleTest(DocsTest):
    """The tables of float32 rungs, and what the roofline is made of."""

    def setUp(self) -> None:
        super().setUp()
        listing = synthetic.catalogue(("fp32", "ampere"), 6)
        self.put("catalogue.json", json.dumps(listing))
        for rung in listing["rungs"]:
            self.put(rung["chapter"], f"# {rung['name']}\n")
        document = synthetic.single_results(listing)
        self.put("plots/results/synthetic/fp32.json", json.dumps(document))

    def table(self, key: str) -> tuple[int, str]:
        return self.write(f"<!-- table:{key} -->\n<!-- /table -->\n")

    def test_memory(self) -> None:
        code, text = self.table("memory synthetic/fp32 1,16,8192,64,float32")
        self.assertEqual(code, 0, text)
        self.assertIn("| N | [a0 base](a0_base.md), ms / GB |", text)
        self.assertNotIn("a1", text)
        needed = (65536 * synthetic.TENSORS + 65536**2 * synthetic.SCORES) / 1e9
        self.assertIn(f"| 65536 | does not fit / {needed:.0f} | ", text)
        self.assertIn("| does not fit / \N{EN DASH} |", text)  # a peer says nothing
        self.assertIn("B=1 H=16 D=64, float32", text)  # all lengths

    def test_ceilings_are_numbers(self) -> None:
        keys = ("cublas 1,16,8192,64,float32 tflops", "copy 1,16,8192,64,float32 gbs")
        code, texts, said = self.numbers(*(f"synthetic/fp32 {key}" for key in keys))
        self.assertEqual((code, texts), (0, ["50.0", "4000"]), said)

    def test_numbers_of_the_roofline(self) -> None:
        shape = "1,16,8192,64,float32"
        marks = {
            f"synthetic/fp32 a0 {shape} intensity": "15.9",  # S and P written and read
            f"synthetic/fp32 a1 {shape} intensity": "15.9",  # tiles of 32 rows
            f"synthetic/fp32 a1 {shape} gbs_uncached": "251",  # 4 TFLOPS
            "synthetic/ladder 02 8192 intensity": "63.5",
        }
        code, texts, said = self.numbers(*marks)
        self.assertEqual((code, texts), (0, list(marks.values())), said)
        code, _, said = self.numbers("synthetic/ladder fa2 8192 intensity")
        self.assertEqual(code, 2)
        self.assertIn("'torch 0.0' is not a tile", said)

    def test_mistakes(self) -> None:
        code, text = self.table("memory synthetic/fp32 8192")
        self.assertEqual(code, 2)
        self.assertIn("has no time like", text)


class CountsTest(DocsTest):
    """Counts of the virtual machine, of a rung and of its parent at two tiles."""

    PRODUCTS = 2 * 4 * 1024 * 1024 * 128 // (2 * 16 * 8 * 16)  # B=1 H=2 N=1024 D=128

    def setUp(self) -> None:
        super().setUp()
        shape = synthetic.problem(1024) | {"batch": 1, "heads": 2}
        rows = []
        for id, tile, wavefronts in (("01", "64x32w2", 20), ("01", "64x128w4", 17), ("02", "64x128w4", 2)):
            row = synthetic.empty_row("rung", id, shape, "")
            row |= {"variant": tile, "status": "ok", "ablation": (id, tile) == ("01", "64x128w4")}
            row["check"] = synthetic.CHECK
            counts = {"instructions": 9 * self.PRODUCTS, "tensor": self.PRODUCTS}
            counts |= {"ldmatrix_wavefronts": wavefronts * self.PRODUCTS}
            rows.append(row | {"counts": counts})
        whole = synthetic.document(rows)
        whole["device"] |= {"kind": "vm", "name": "Synthetic machine"}
        self.put("plots/results/vm/counts.json", json.dumps(whole))

    def test_numbers(self) -> None:
        keys = ("02 128 tensor", "01 128 ldmatrix_wavefronts mma")
        keys += ("02 128 ldmatrix_wavefronts 01@64x128w4",)
        code, texts, said = self.numbers(*(f"counts {key}" for key in keys))
        grouped = f"{self.PRODUCTS:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
        self.assertEqual((code, texts), (0, [grouped, "20.0", "0.12"]), said)

    def test_mistakes(self) -> None:
        for key, says in (
            ("counts 02 128 sparkle", "no rung has sparkle; known: instructions, "),
            ("counts 02 96 tensor", "no counts of '02' at head_dim 96"),
        ):
            code, _, said = self.numbers(key)
            self.assertEqual(code, 2)
            self.assertIn(says, said)


class HopperCountsTest(DocsTest):
    """Counts of rungs that use mma, wgmma, and no tensor cores at all."""

    def setUp(self) -> None:
        super().setUp()
        listing = synthetic.catalogue(("fp32", "hopper"), 2)
        self.put("catalogue.json", json.dumps(listing))
        for rung in listing["rungs"]:
            self.put(rung["chapter"], f"# {rung['name']}\n")
        self.put("plots/results/vm/counts.json", json.dumps(synthetic.counted()))
        self.put("README.md", "")

    def test_numbers(self) -> None:
        marks = {"21 128 instructions mma": "2.00", "21 128 mbarrier 20": "2.00"}
        marks |= {"21 128 ldmatrix": "0", "21 128 ldmatrix 20": "0.00"}
        code, texts, said = self.numbers(*(f"counts {key}" for key in marks))
        self.assertEqual((code, texts), (0, list(marks.values())), said)

    def test_mistakes(self) -> None:
        for key, says in (
            ("a0 128 float mma", "'a0' uses no tensor cores"),
            ("20 128 wgmma 20", "wgmma of '20' is 0"),
        ):
            code, _, said = self.numbers(f"counts {key}")
            self.assertEqual(code, 2)
            self.assertIn(says, said)

    def profile(self, seq: int) -> None:
        """Counters of a rung with two launches, which sum up, and of one with wgmma."""
        rows = []
        for id, part in (("20", 1), ("20", 2), ("21", 3)):
            counters = dict.fromkeys(profile_kernels.METRICS, 0)
            counters |= {"tensor_pipe": 131072 * part, "tensor_pipe_hfma2": 43_690}
            counters |= {"ldmatrix": 40960 if id == "20" else 0, "shared_store_wavefronts": 7}
            row = {"id": id, "variant": "128x128w8", "entry": f"fa_{id}", "counters": counters}
            rows.append(row)
        shape = synthetic.problem(seq) | {"batch": 1, "heads": 2}
        profile = {"problem": shape, "rows": rows, "device": {"name": "Synthetic"}}
        self.put("plots/results/h200/ncu.json", json.dumps(profile))

    def test_hardware_counters_beside_the_machine_s(self) -> None:
        self.profile(1024)
        code, text = self.write("<!-- table:ncu ncu -->\n<!-- /table -->\n")
        self.assertEqual(code, 0, text)
        (first,) = (line for line in text.splitlines() if line.startswith("| 20 128x128w8 |"))
        cells = [cell.strip() for cell in first.strip("|").split("|")]
        products = 2 * 4 * 1024 * 1024 * 128 // (2 * 16 * 8 * 16)
        off = 100 * (products / (3 * 131072 - 2 * 43_690) - 1)
        self.assertEqual(cells[1], f"\N{MINUS SIGN}{abs(off):.2f} %")
        self.assertRegex(text, r"Equal in all kernels: `ldmatrix`, `cp.async`, ")
        self.assertEqual(cells[-1], "\N{MINUS SIGN}100.00 %")  # stores that were not counted
        self.assertIn("Synthetic, B=1 H=2 N=1024 D=128.", text)

    def test_hardware_counters_of_another_problem(self) -> None:
        self.profile(2048)
        code, text = self.write("<!-- table:ncu ncu -->\n<!-- /table -->\n")
        self.assertEqual(code, 2)
        self.assertIn("which is not what was counted", text)


class SassTest(DocsTest):
    def test_an_instruction_that_is_not_there_is_0_and_an_entry_that_is_not_there_an_error(self) -> None:
        entries = {"fa_one": {"total": 12, "HGMMA": 2, "MUFU": 4}}
        self.put("plots/results/sass.json", json.dumps({"entries": entries}))
        keys = ("sass fa_one MUFU", "sass fa_one UTMALDG")
        self.assertEqual(self.numbers(*keys)[:2], (0, ["4", "0"]))
        code, _, said = self.numbers("sass fa_two total")
        self.assertEqual(code, 2)
        self.assertIn("sass.json has no entry point 'fa_two'", said)


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

    def test_charts_are_made_of_what_they_draw(self) -> None:
        """Not of a rung that their results do not have; but of names and ideas."""
        self.docs("--write")
        self.put_ladder(4)
        self.assertNotIn("was drawn", self.docs("--check")[1])
        for field in ("name", "idea"):
            listing = json.loads(self.read("catalogue.json"))
            listing["rungs"][0][field] += "_renamed"
            self.put("catalogue.json", json.dumps(listing))
            self.assertIn("was drawn from another catalogue", self.docs("--check")[1])
            self.put_ladder(4)

    def test_charts_of_a_folder_of_runs(self) -> None:
        file = self.folder / "plots/results/h200/ladder.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        self.assertEqual(self.docs("--write")[0], 0)  # nothing to draw
        synthetic.write_runs(file.with_suffix(""), document)
        self.assertIn("plots/results/h200/ladder has no charts in docs/assets", self.docs("--check")[1])
        self.docs("--write")
        self.assertEqual(self.docs("--check"), (0, ""))
        synthetic.write_runs(file.with_suffix(""), document, runs=6)
        self.assertIn("from another version of plots/results/h200/ladder\n", self.docs("--check")[1])

    def test_a_drawing_is_not_a_chart(self) -> None:
        self.docs("--write")
        self.put("docs/assets/banks.svg", "<svg/>")
        self.assertEqual(self.docs("--check"), (0, ""))


class NewRungTest(unittest.TestCase):
    """A rung is its file, its chapter and a line of the ladder: nothing else of the tree is edited."""

    PARENT, NAME = "52_early", "54_throwaway"
    COPIED = ("CMakeLists.txt", "README.md", "mkdocs.yml", "cmake", "docs", "harness", "kernels")
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name in (*cls.COPIED, "plots", "scripts"):
            source, target = support.REPOSITORY / name, cls.folder / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("own", "data", "__pycache__")
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        cls.add_rung()

    @classmethod
    def add_rung(cls) -> None:
        id, short = cls.NAME.split("_")
        kernel = cls.folder / f"kernels/decode/{cls.PARENT}.cu"
        text = kernel.read_text(encoding="utf-8").replace(cls.PARENT, cls.NAME)
        row = re.compile(rf'(FA_RUNG\({cls.NAME}, )"\w+"')
        text = row.sub(rf'\1"{cls.PARENT[:2]}"', text)
        kernel.with_stem(cls.NAME).write_text(text, encoding="utf-8")
        chapter = cls.folder / f"docs/{cls.NAME}.md"
        chapter.write_text(f"# {id} {short}\n", encoding="utf-8")
        with (cls.folder / "kernels/ladder.def").open("a", encoding="utf-8") as lines:
            lines.write(f"RUNG(decode, {cls.NAME})\n")

    def list_rungs(self) -> Path:
        """As fa of this tree lists them; the row of the new rung, but for its name, is the parent's."""
        listing = json.loads(ladder.run_fa("list", "--json"))
        known = {rung["name"]: rung for rung in listing["rungs"]}
        rungs = []
        for rung in source.rungs_of(self.folder):
            names = {"id": rung.id, "name": rung.name, "parent": rung.parent.partition("_")[0]}
            files = {"file": rung.file, "chapter": f"docs/{rung.chapter}"}
            rungs.append((known.get(rung.name) or known[rung.parent]) | names | files)
        path = self.folder / "catalogue.json"
        path.write_text(json.dumps(listing | {"rungs": rungs}), encoding="utf-8")
        return path

    def test_pages_and_charts(self) -> None:
        site = docs.Site(self.folder, ladder.Catalogue.load(self.list_rungs()))
        self.assertIsNotNone(site.catalogue.find(self.NAME[:2]))
        with mock.patch.multiple(docs, render_charts=mock.DEFAULT, draw_figures=mock.DEFAULT):
            written = support.run_main(lambda _: docs.write(site, None))
        self.assertIn("mkdocs.yml", written[1])
        self.assertEqual(support.run_main(lambda _: docs.check(site)), (0, "", ""))
        self.assertEqual(site.errors, [])

    def test_size_of_the_difference(self) -> None:
        words = ("--catalogue", str(self.list_rungs()), "--root", str(self.folder))
        code, out, err = support.run_main(lambda _: diff_budget.main([*words]))
        self.assertIn(self.NAME, out)
        self.assertEqual((code, err), (0, ""))

    def test_configure(self) -> None:
        if not cache_entry("CMAKE_CUDA_COMPILER"):
            self.skipTest("this build has no CUDA compiler")
        entries = {name: cache_entry(name) for name in PASSED_ON}
        command = ["cmake", "-S", self.folder, "-B", self.folder / "build"]
        command += ["-G", entries.pop("CMAKE_GENERATOR")]
        command += [f"-D{name}={value}" for name, value in entries.items() if value]
        done = subprocess.run([*command, "-DBUILD_TESTING=OFF"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        commands = (self.folder / "build/compile_commands.json").read_text(encoding="utf-8")
        self.assertIn(f"/kernels/decode/{self.NAME}.cu", commands)


if __name__ == "__main__":
    unittest.main()
