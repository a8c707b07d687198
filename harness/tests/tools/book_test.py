# SPDX-License-Identifier: MIT
"""scripts/book: cutting code, differences, glossary, mathematics, figures; on small texts."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

import support

support.need("markdown")

import ladder  # noqa: E402
from book import code, difference, figures, glossary, source, strip  # noqa: E402

KERNEL = """\
// 02_child          parent: 01_parent
struct Attention {
  // Addresses.
  struct Shared {
    int full;

    __device__ explicit Shared(int memory) {
      full = memory;
    }
  };

  // The sum
  // of two.
  template <int N>
  __device__ static int add(int a,
                            int b) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      a += b;
    }
    return a;
  }

  __device__ static int twice(int a) { return add(a, a); }

  __device__ static void run() {
    int x = add(1, 2);
    x = twice(x);
    store(x);
  }
};

#define INSTANCES(X) \\
  X(one)             \\
  X(two)
"""


def kernel(text: str = KERNEL) -> source.Source:
    return source.Source("kernels/ampere/02_child.cu", tuple(text.splitlines()))


def cut(marker: str, text: str = KERNEL) -> str:
    return source.Excerpt.parse(marker).cut(kernel(text)).text


class SourceTest(unittest.TestCase):
    def test_a_function_comes_with_its_comment_and_without_its_indentation(self) -> None:
        text = cut("add")
        self.assertTrue(text.startswith("// The sum\n// of two.\ntemplate <int N>\n__device__"))
        self.assertTrue(text.endswith("  return a;\n}\n"))
        self.assertIn("\n#pragma unroll\n  for (int i", text)

    def test_a_type_hides_its_constructor(self) -> None:
        self.assertEqual(cut("Shared").splitlines()[1], "struct Shared {")

    def test_a_function_in_one_line_and_a_macro(self) -> None:
        self.assertEqual(cut("twice"), "__device__ static int twice(int a) { return add(a, a); }\n")
        self.assertEqual(len(cut("INSTANCES").splitlines()), 3)

    def test_two_lines_of_a_function(self) -> None:
        self.assertEqual(cut('run "int x" .. "twice"'), "int x = add(1, 2);\nx = twice(x);\n")
        self.assertEqual(cut('"store(x)"'), "store(x);\n")

    def test_lines_that_move_are_found_again(self) -> None:
        moved = KERNEL.replace("  // The sum", "  int more;\n\n  // The sum")
        self.assertEqual(cut("add", moved), cut("add"))

    def assert_refused(self, marker: str, words: str) -> None:
        with self.assertRaisesRegex(source.BookError, words):
            cut(marker)

    def test_what_is_not_there_or_twice_there_is_refused(self) -> None:
        self.assert_refused("missing", "defines no 'missing'; it defines .*add.*twice")
        self.assert_refused('run "nowhere"', "'nowhere' is to stand in one line; found: none")
        self.assert_refused('"twice"', "found: 24, 28")
        self.assert_refused('run "store" .. "int x"', "no line with 'int x' after line 29")
        self.assert_refused("12-20", "expected")

    def test_the_catalogue_as_text_is_the_catalogue(self) -> None:
        try:
            listed = ladder.Catalogue.load(None)
        except ladder.LadderError as reason:
            self.skipTest(str(reason))
        names = {rung.id: rung.name for rung in listed.rungs}
        expected = [(rung.name, names.get(rung.parent, ""), rung.file) for rung in listed.rungs]
        found = [
            (rung.name, rung.parent, rung.file) for rung in source.rungs_of(support.REPOSITORY)
        ]
        self.assertEqual(found, expected)


class CodeTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.parent = source.Rung("01_parent", "", "ampere")
        self.child = source.Rung("02_child", "01_parent", "ampere")
        for rung, text in ((self.parent, KERNEL.replace("a += b", "a -= b")), (self.child, KERNEL)):
            path = self.folder / rung.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def page(self, text: str, rung: source.Rung | None = None) -> str:
        return code.with_code(text, self.folder, rung or self.child, self.parent)

    def marked(self, marker: str) -> str:
        return f"<!-- {marker} -->\n```\nold\n```\n<!-- /code -->\n"

    def test_an_excerpt_is_between_its_markers(self) -> None:
        text = self.page(f"Before.\n\n{self.marked('code: twice')}\nAfter.\n")
        self.assertIn('-->\n```cuda title="kernels/ampere/02_child.cu, twice"\n__device__', text)
        self.assertTrue(text.startswith("Before.\n"))
        self.assertTrue(text.endswith("```\n<!-- /code -->\n\nAfter.\n"))
        self.assertNotIn("old", text)
        self.assertEqual(self.page(text), text)

    def test_a_change_shows_both_sides(self) -> None:
        text = self.page(self.marked("change: add"))
        self.assertIn("\n-    a -= b;\n+    a += b;\n", text)
        self.assertIn("against 01_parent", text)

    def test_an_unchanged_part_is_no_change(self) -> None:
        with self.assertRaisesRegex(source.BookError, "the same lines; use code:"):
            self.page(self.marked("change: twice"))

    def test_a_marker_in_a_line_or_without_an_end_is_refused(self) -> None:
        for text in (
            "See <!-- code: twice --> here.\n",
            "<!-- code: twice -->\n",
            "<!-- code: add -->\n\n" + self.marked("code: twice").replace("```\nold\n```\n", ""),
        ):
            with self.assertRaisesRegex(source.BookError, "is to be a line, and <!-- /code -->"):
                self.page(text)

    def test_a_page_that_is_no_chapter_names_the_file(self) -> None:
        marker = self.marked("code: twice").replace("```\nold\n```\n", "")
        with self.assertRaisesRegex(source.BookError, "names the file"):
            code.with_code(marker, self.folder, None, None)
        marker = marker.replace("twice", f"{self.child.file}: twice")
        self.assertIn("02_child.cu", code.with_code(marker, self.folder, None, None))

    def test_the_whole_difference_ends_the_section(self) -> None:
        text = "# Page\n\n## The change\n\nWords.\n\n## Next\n\nMore.\n"
        page = code.with_difference(text, self.folder, self.child, self.parent)
        change, following = page.split("## Next")
        self.assertIn("<summary>The whole difference to 01_parent: 2 lines</summary>", change)
        self.assertEqual(re.findall('class="row (\\w+)"', change), ["removed", "added"])
        self.assertEqual(re.findall(r'data-line="(\d*)"', change), ["19", "", "", "19"])
        self.assertEqual(following, "\n\nMore.\n")
        with self.assertRaisesRegex(source.BookError, "no heading '## The change'"):
            code.with_difference("# Page\n", self.folder, self.child, self.parent)

    def test_the_site_leads_from_an_excerpt_to_its_line(self) -> None:
        text = self.marked("code: twice") + self.marked("change: add") + "## The change\n"
        page = code.with_listings(text, self.folder, self.child, self.parent)
        self.assertIn('```cuda title="kernels/ampere/02_child.cu, twice @24"', page)
        self.assertIn("02_child.cu, add, against 01_parent @12</span>", page)
        self.assertIn('<i data-line="19"></i><i data-line=""></i>- ', page)

    def test_the_page_of_a_header_names_the_files_that_include_it(self) -> None:
        header = self.folder / "kernels/ptx/mma.cuh"
        header.parent.mkdir()
        header.write_text("", encoding="utf-8")
        with (self.folder / self.child.file).open("a", encoding="utf-8") as file:
            file.write('#include "kernels/ptx/mma.cuh"\n')
        self.assertEqual(code.users_of(self.folder, "kernels/ptx/mma.cuh"), [self.child.file])

    def test_a_long_part_shows_the_lines_around_its_changes(self) -> None:
        lines = [f"line {i};" for i in range(100)]
        whole = source.Source("file", tuple(lines))
        changed = source.Source(
            "file", tuple("other;" if i == 50 else x for i, x in enumerate(lines))
        )
        shown = difference.of_part(source.Span(whole, 0, 99), source.Span(changed, 0, 99))
        self.assertEqual(len(shown), 2 + 2 * difference.CONTEXT)


GLOSSARY = """\
# Glossary
## Memory

### bank
One of 32 `parts`.

### bank conflict
<!-- also: conflict; n-way conflict -->
Two lanes, one [bank](x.md).

### `cp.async`
A copy.

### TMA
The copy engine.
"""


def linked(html: str, is_glossary: bool = False) -> str:
    terms = glossary.Glossary.parse(GLOSSARY)
    return glossary.Linker(terms, "../glossary/", is_glossary).of(html)


class GlossaryTest(unittest.TestCase):
    def test_entries(self) -> None:
        terms = glossary.Glossary.parse(GLOSSARY).terms
        self.assertEqual(
            [term.name for term in terms], ["bank", "bank conflict", "cp.async", "TMA"]
        )
        self.assertEqual(terms[0].text, "One of 32 parts.")
        self.assertEqual(terms[1].text, "Two lanes, one bank.")
        self.assertEqual(terms[1].forms, ("bank conflict", "conflict", "n-way conflict"))
        self.assertEqual(terms[2].anchor, "cpasync")

    def test_the_first_use_is_linked_and_no_other(self) -> None:
        html = linked("<p>Banks and the bank.</p><p>bank</p>")
        self.assertEqual(html.count("<a "), 1)
        self.assertIn(
            'href="../glossary/#bank" title="One of 32 parts.">Banks</a> and the bank', html
        )

    def test_the_longest_form_counts(self) -> None:
        html = linked("<p>A bank\nconflict in a bank.</p>")
        self.assertIn(
            '#bank-conflict" title="Two lanes, one bank.">bank\nconflict</a> in a <a', html
        )

    def test_headings_links_and_blocks_of_code_are_left_alone(self) -> None:
        for html in (
            "<h2>bank</h2>",
            '<p><a href="x">the bank</a></p>',
            "<pre><code>bank</code></pre>",
            "<p><code>bank[0]</code> databank sandbank-like banked TMAX tma</p>",
            '<div data-widget="run"><p>bank</p><b>bank</b></div>',
            '<p title="bank">&lt;x&gt; &#8212; <br/><!-- bank --></p>',
        ):
            self.assertEqual(linked(html), html)

    def test_inline_code_that_is_a_term(self) -> None:
        html = linked("<p><code>cp.async.wait</code> <code>cp.async</code></p>")
        self.assertIn('#cpasync" title="A copy."><code>cp.async</code></a></p>', html)
        self.assertEqual(html.count("<a "), 1)

    def test_an_entry_of_the_glossary_links_others_and_not_itself(self) -> None:
        html = linked(
            '<h3 id="bank">bank</h3><p>A bank. TMA</p><h3 id="tma">T</h3><p>TMA, bank</p>', True
        )
        self.assertEqual(html.count("#bank"), 1)
        self.assertEqual(html.count("#tma"), 1)

    def test_two_entries_with_one_form_are_refused(self) -> None:
        with self.assertRaisesRegex(source.BookError, "'conflict' is a form of"):
            glossary.Glossary.parse(GLOSSARY + "\n### conflict\nText.\n")
        with self.assertRaisesRegex(source.BookError, "'empty' has no text"):
            glossary.Glossary.parse("### empty\n\n### full\nText.\n")


class FiguresTest(support.FolderTest):
    def find(self, url: str) -> Path | None:
        path = self.folder / url
        return path if path.is_file() else None


    def shown(self, html: str) -> str:
        return figures.with_charts(html, "page", self.find)

    def test_a_drawing_has_the_size_that_it_asks_for(self) -> None:
        for size, expected in (
            ('width="550" height="375.6"', 'width="550" height="376"'),
            ('width="691.2pt" height="600pt"', 'width="400" height="300"'),
        ):
            svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 400 300.5"></svg>'
            (self.folder / "b.svg").write_text(svg, encoding="utf-8")
            self.assertIn(expected, self.shown('<img src="../b.svg">'))
        self.assertEqual(self.shown('<img src="../c.svg">'), '<img src="../c.svg">')

    def put_charts(self, *names: str) -> None:
        svg = '<svg viewBox="0 0 400 300.5"><metadata>{}</metadata></svg>'
        for name in names:
            (self.folder / f"{name}.svg").write_text(svg, encoding="utf-8")

    def test_a_chart_has_its_narrow_form_where_there_is_one(self) -> None:
        self.put_charts("a")
        page = '<p><img alt="A" src="../a.svg" /></p>'
        image = '<img alt="A" src="../a.svg" loading="lazy" width="400" height="300">'
        chart = '<p><span class="chart"><picture>{}</picture></span></p>'
        self.assertEqual(self.shown(page), chart.format(image))
        self.put_charts("a.narrow")
        source_tag = '<source media="(max-width: 700px)" srcset="../a.narrow.svg">'
        self.assertEqual(self.shown(page), chart.format(source_tag + image))

    def test_charts_with_titles_in_a_row_are_a_switch(self) -> None:
        self.put_charts("a", "b")
        images = [f'<img alt="{name}" src="../{name}.svg" title="The {name}" />' for name in "ab"]
        html = self.shown("\n".join(images))
        self.assertEqual(html.count('type="radio"'), 2)
        self.assertEqual(html.count('<span class="chart"><picture>'), 2)
        self.assertIn('checked><label for="chart-0">The a</label>', html)
        self.assertNotIn('title="The', html)
        self.assertNotIn('type="radio"', self.shown(images[0]))

    def test_long_generated_tables_are_folded(self) -> None:
        def table(kind: str, count: int) -> str:
            rows = "".join(f"| {i} | x |\n" for i in range(count))
            return f"<!-- table:{kind} -->\n| N | ms |\n| --- | --: |\n{rows}<!-- /table -->\n"

        most = figures.MOST_ROWS
        for kind, count, folds in (("caches", most, 0), ("caches", most + 1, 1), ("ladder", most + 1, 0)):
            text = figures.with_folded_tables(table(kind, count))
            self.assertEqual(text.count("<details"), folds)
            self.assertEqual(text.count(f"<summary>{figures.TITLES['caches']}</summary>"), folds)

    def test_a_change_has_the_colour_of_what_it_shows(self) -> None:
        cells = {
            "+7.2 ± 1.1 % against 21": ' class="faster"',
            "−2.9 ± 1.1 % against 29": ' class="slower"',
            "+0.2 ± 1.2 % against 30": "",
            "× 6.5 ± 0.2 % against 01": ' class="faster"',
            "−13 % against 45": ' class="slower"',
            "+1.4 % against 47": "",  # of one run
            "+4.65 %": "",  # no change of a rung
        }
        for text, kind in cells.items():
            html = figures.with_coloured_changes(f"<td>{text}</td>")
            self.assertEqual(html, f"<td{kind}>{text}</td>")

    def test_a_line_of_a_cell_ends_before_an_interval(self) -> None:
        html = figures.with_whole_intervals("<td>+7.2 ± 1.1 % against 21</td><p>1 ± 2 %</p>")
        whole = "<td>+7.2 ±&nbsp;1.1&nbsp;% against&nbsp;21</td>"
        self.assertEqual(html, whole + "<p>1 ± 2 %</p>")


class StripTest(unittest.TestCase):
    RUNG = source.Rung("02_child", "01_parent", "ampere")
    BARS = [
        {"kind": "parent", "name": "01", "value": 50.0},
        {"kind": "own", "name": "02", "value": 100.0},
        {"kind": "peer", "name": "FlashAttention-2", "value": 200.0},
    ]

    def shown(self, **change: object) -> str:
        row = {"unit": "TFLOPS", "parent": "01", "verdict": "faster", "share": "17 % of the limit", "change": "+100 %"}
        return strip.html(row | {"problem": "N=8", "bars": self.BARS} | change, "+90 %", 2, 3)

    def test_it_has_verdict_prediction_measurement_and_place(self) -> None:
        html = self.shown()
        self.assertIn('<b class="faster">faster</b> than 01', html)
        for name, text in {
            "predicted": "+90 %",
            "measured": "100 TFLOPS, +100 %, 17 % of the limit",
            "rung": "2 of 3",
        }.items():
            self.assertIn(f"<dt>{name}</dt><dd>{text}</dd>", html)
        self.assertEqual(re.findall(r"width:([\d.]+)%", html), ["25.0", "50.0", "100.0"])
        self.assertIn("<span>FA2</span>", html)
        self.assertIn("less is faster", self.shown(unit="µs"))
        self.assertIn("one run, against 01", self.shown(verdict="not measured"))

    def test_every_rung_has_its_prediction(self) -> None:
        names = [rung.name for rung in source.rungs_of(support.REPOSITORY)]
        self.assertEqual(list(strip.predictions()), names)

    def test_its_numbers_are_those_of_the_chapter(self) -> None:
        for name, (predicted, _) in strip.predictions().items():
            text = (support.REPOSITORY / f"docs/{name}.md").read_text(encoding="utf-8")
            section = text.partition("\n## Prediction\n")[2].partition("\n## ")[0]
            known = re.findall(r"\d+(?:[.,]\d+)*", re.sub(r"<!--.*?-->", "", section))
            for number in re.findall(r"\d+(?:[.,]\d+)*", predicted):
                with self.subTest(name, number=number):
                    self.assertIn(number, known)


class MathematicsTest(unittest.TestCase):
    def test_formulas_become_mathml(self) -> None:
        support.need("latex2mathml.converter")
        from book import mathematics

        page = (
            '<span class="arithmatex">\\(a &lt; b^2\\)</span><div class="arithmatex">\\[x\\]</div>'
        )
        text = mathematics.typeset(page)
        self.assertEqual(text.count("<math"), 2)
        self.assertIn("<msup>", text)
        self.assertIn('display="block"', text)
        self.assertNotIn("arithmatex", text)
        prime = mathematics.typeset('<span class="arithmatex">\\(m\'\\)</span>')
        self.assertIn('<mi>m</mi><mo lspace="0" rspace="0">&#x02032;</mo>', prime)
        for unknown in (r"\begin{aligned} a &amp;= b \end{aligned}", r"\nonsense{x}", r"\frac{1"):
            with self.assertRaisesRegex(source.BookError, "mathematics: "):
                mathematics.typeset(f'<span class="arithmatex">\\({unknown}\\)</span>')


class OrderTest(unittest.TestCase):
    """The pages are read in the order of the navigation, which begins with index.md."""

    # Section of the glossary -> the page before which none of its terms may occur.
    FIRST = {"Tensor cores": "background/tensor_cores.md", "Hopper": "background/hopper.md"}
    UNSEEN = re.compile(r"<!--.*?-->|```.*?```|\]\([^)]*\)", re.S)  # comments, code, targets of links

    def test_no_term_occurs_before_the_page_that_explains_it(self) -> None:
        navigation = (support.REPOSITORY / "mkdocs.yml").read_text("utf-8").split("\nnav:")[1]
        pages = re.findall(r"([\w/]+\.md)", navigation)
        docs = support.REPOSITORY / "docs"
        sections = re.split(r"^## (.+)\n", (docs / "glossary.md").read_text("utf-8"), flags=re.M)
        for title, body in zip(sections[1::2], sections[2::2], strict=True):
            if title not in self.FIRST:
                continue
            terms = glossary.Glossary.parse(body).terms
            forms = "|".join(glossary.form_pattern(form) for term in terms for form in term.forms)
            words = re.compile(rf"(?<![\w-])(?:{forms})(?![\w-])")
            for page in pages[1 : pages.index(self.FIRST[title])]:
                text = self.UNSEEN.sub("", (docs / page).read_text("utf-8"))
                self.assertEqual(words.findall(text), [], f"{page}, of the section {title}")


if __name__ == "__main__":
    unittest.main()
