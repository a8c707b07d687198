# SPDX-License-Identifier: MIT
"""The charts: they draw 7 to 25 rungs without overlapping labels, and the same bytes each time."""

from __future__ import annotations

import errno
import itertools
import os
import re
import unittest
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

import support
import synthetic

support.need("numpy")
support.need("matplotlib")

import cache  # noqa: E402
import colours  # noqa: E402
import ladder  # noqa: E402
import limits  # noqa: E402
import lines  # noqa: E402
import memory  # noqa: E402
import parent  # noqa: E402
import render  # noqa: E402
import roofline  # noqa: E402
import spread  # noqa: E402
import style  # noqa: E402
import themes  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

SIZES = {7: (("ampere",), 7), 25: (("fp32", "ampere", "hopper"), 11)}
MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)
DRAWN = [
    chart
    for chart in render.CHARTS
    if chart.problem == ladder.MAIN_PROBLEM and not chart.varied
]


def figures_of(
    test: unittest.TestCase,
    charts: Iterable[render.Chart],
    results: ladder.Results,
    catalogue: ladder.Catalogue,
    more: str = "",
) -> Iterator[tuple[str, style.Figure]]:
    """Each chart in each of its forms."""
    for chart, (suffix, form) in itertools.product(charts, render.FORMS.items()):
        problem = ladder.Problem.parse(chart.problem)
        figure = chart.draw(results, catalogue, problem, "a note", form)
        test.addClassCleanup(style.plt.close, figure)
        yield f"{chart.name}{suffix}{more}", figure


def inputs(folder: Path, size: int) -> tuple[ladder.Results, ladder.Catalogue]:
    families, limit = SIZES[size]
    listing, results = synthetic.write(folder, families, limit)
    return ladder.Results.load(results), ladder.Catalogue.load(listing)


def of_runs(folder: Path, size: int) -> tuple[ladder.Results, ladder.Catalogue]:
    """The same as two cards measured it."""
    families, limit = SIZES[size]
    listing, results = synthetic.write(folder, families, limit)
    document = ladder.json.loads(results.read_text(encoding="utf-8"))
    runs = synthetic.write_runs(folder / f"synthetic_results_{size}", document)
    return ladder.Results.load(runs), ladder.Catalogue.load(listing)


def visible_texts(figure: style.Figure) -> list:
    """All texts but the labels of ticks beyond the ends of an axis, which are not drawn."""
    hidden = set()
    every = [each for axes in figure.axes for each in (axes, *axes.child_axes)]
    for axis in (axis for axes in every for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        outside = (tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high)
        hidden |= {tick.label1 for tick in outside}
    texts = figure.findobj(style.matplotlib.text.Text)
    drawn = (text for text in texts if text.get_visible() and text not in hidden)
    return [text for text in drawn if text.get_text().strip()]


def ground_of(text: style.matplotlib.text.Text, figure: style.Figure) -> str:
    """The colour behind a text: that of a bar, or of the page."""
    box = text.get_window_extent()
    middle = (box.y0 + box.y1) / 2
    for bar in (bar for axes in figure.axes for bar in axes.patches if bar.get_zorder() == 2):
        edge = bar.get_window_extent()
        if edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= middle <= edge.y1:
            return to_hex(bar.get_facecolor())
    return style.BACKGROUND


class DrawingTest(support.FolderTest):
    def drawn(self) -> list[tuple[str, style.Figure]]:
        """Drawn once for all tests of a class."""
        own = type(self)
        if "all_drawn" not in vars(own):
            own.all_drawn = list(self.figures())
            for _, figure in own.all_drawn:
                figure.canvas.draw()
        return own.all_drawn

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        for size in SIZES:
            yield from figures_of(self, DRAWN, *inputs(self.folder, size), f" with {size} rungs")

    def test_no_two_labels_overlap(self) -> None:
        for name, figure in self.drawn():
            boxes = [(text, text.get_window_extent()) for text in visible_texts(figure)]
            for (text, box), (other, other_box) in itertools.combinations(boxes, 2):
                overlap = style.matplotlib.transforms.Bbox.intersection(box, other_box)
                area = overlap.width * overlap.height if overlap else 0
                self.assertLess(area, 1, f"{name}: {text.get_text()!r} on {other.get_text()!r}")

    def test_letters_have_eleven_pixels_and_numbers_on_bars_stand_out(self) -> None:
        """A figure's points are the pixels of a page. A number on a bar: its place is on the bar."""
        on_bars = 0
        for name, figure in self.drawn():
            for text in visible_texts(figure):
                said = f"{name}: {text.get_text()!r}"
                self.assertGreaterEqual(text.get_size(), 11, said)
                ink, under = to_hex(text.get_color()), ground_of(text, figure)
                on_bars += under != style.BACKGROUND
                self.assertGreaterEqual(colours.contrast(ink, under), 4.5, said)
                dark = themes.DARK[ink], themes.DARK[under]
                self.assertGreaterEqual(colours.contrast(*dark), 4.5, f"{said} in the dark")
            if name.startswith("progression"):
                self.assertGreater(on_bars, 3, name)

    def test_no_label_leaves_the_figure(self) -> None:
        for name, figure in self.drawn():
            page = figure.bbox
            for text in visible_texts(figure):
                box = text.get_window_extent()
                inside = box.x0 >= 0 and box.x1 <= page.x1 and box.y0 >= 0 and box.y1 <= page.y1
                self.assertTrue(inside, f"{name}: {text.get_text()!r} is cut off")

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.drawn():
            words = " ".join(" ".join(text.get_text().split()) for text in visible_texts(figure))
            for word in ("Synthetic GPU", "float16", "synthetic_results.json", "L2 flushed", "MHz"):
                self.assertIn(word, words, name)


class LimitsTest(DrawingTest):
    """The same charts where the limits of the card are known."""

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        text = ladder.json.dumps(synthetic.limits())
        (self.folder / limits.FILE).write_text(text, encoding="utf-8")
        return super().figures()

    def test_words_that_must_be_there(self) -> None:
        wanted = {
            "progression": ("percent of bare wgmma, 900 TFLOPS",),
            "roofline": ("limit: wgmma: 900", "limit: mma.sync: 640", "4500 GB/s", "7000 GB/s"),
        }
        for name, figure in self.drawn():
            words = " ".join(" ".join(text.get_text().split()) for text in visible_texts(figure))
            self.assertNotIn(limits.NOT_MEASURED, words)
            for word in wanted.get(name.partition(" ")[0], ()):
                self.assertIn(word, words, name)


class RunsTest(DrawingTest):
    """The same charts of a folder of runs."""

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        for size in SIZES:
            yield from figures_of(self, DRAWN, *of_runs(self.folder, size), f" with {size} rungs")

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.drawn():
            words = " ".join(" ".join(text.get_text().split()) for text in visible_texts(figure))
            for word in ("means of 10 runs on 2 cards, 95 % intervals", "Synthetic GPU", "a note"):
                self.assertIn(word, words, name)
            if name.startswith(("progression", "seq_len")):
                self.assertIn("Means of the runs", words, name)
                self.assertNotIn("Median of the launches", words, name)

    def error_bars(self, name: str, results: ladder.Results, catalogue: ladder.Catalogue) -> list:
        """The ends of each, left and right."""
        (chart,) = (chart for chart in DRAWN if chart.name == name)
        figure = chart.draw(results, catalogue, MAIN, "")
        self.addCleanup(style.plt.close, figure)
        bars = [each for each in figure.axes[0].containers if hasattr(each, "has_xerr")]
        ends = [line.get_segments()[0] for bar in bars for line in bar.lines[2]]
        return [sorted(x for x, _ in each) for each in ends]

    def test_error_bars_are_the_intervals(self) -> None:
        results, catalogue = of_runs(self.folder, 7)
        steps = [ladder.step_of(rung, catalogue, results, MAIN) for rung in catalogue.rungs]
        changes = [step.change for step in steps if step]
        found = self.error_bars("parent", results, catalogue)
        shown = [change for change in changes if change.high < parent.MOST]  # the others are cut off
        self.assertLess(len(shown), len(changes))
        for (low, high), change in zip(found, shown, strict=True):
            self.assertAlmostEqual(low, change.low)
            self.assertAlmostEqual(high, change.high)
        found = self.error_bars("progression", results, catalogue)
        for (low, high), rung in zip(found, catalogue.rungs, strict=True):
            row = results.rung(rung.id, MAIN)
            level = ladder.level(results, row)
            self.assertAlmostEqual(low / row.tflops, level.low / level.mean)
            self.assertAlmostEqual(high / row.tflops, level.high / level.mean)

    def test_a_chart_of_parents_has_none_of_a_single_run(self) -> None:
        results, catalogue = of_runs(self.folder, 7)
        self.assertEqual(self.error_bars("parent", results.runs[0], catalogue), [])


class StatusTest(support.FolderTest):
    def test_a_change_at_equal_tile_stands_only_where_it_was_timed(self) -> None:
        results, catalogue = inputs(self.folder, 7)
        steps = [ladder.step_of(rung, catalogue, results, MAIN) for rung in catalogue.rungs]
        timed = [step for step in steps if step and step.parent_at_tile]
        self.assertTrue(0 < len(timed) < sum(step is not None for step in steps))
        for chart in DRAWN:
            if chart.name not in ("progression", "parent"):
                continue
            figure = chart.draw(results, catalogue, MAIN, "")
            self.addCleanup(style.plt.close, figure)
            left = style.right_of(figure.axes[0], style.IDEA)
            texts = [text for text in visible_texts(figure) if text.get_position()[0] == left]
            changes = [text.get_text() for text in texts if "tile" not in text.get_text()]
            self.assertEqual(changes, [ladder.percent(step.idea_factor) for step in timed], chart.name)

    def test_no_label_crosses_the_outline_of_the_parent(self) -> None:
        results, catalogue = inputs(self.folder, 7)
        for row in results.rows:
            if row.ablation:
                row.data["tflops"] = 20.0  # an outline that ends where a label would stand
        figure = next(c for c in DRAWN if c.name == "progression").draw(results, catalogue, MAIN, "")
        self.addCleanup(style.plt.close, figure)
        figure.canvas.draw()
        dashed = [bar for bar in figure.axes[0].patches if not isinstance(bar.get_linestyle(), str)]
        self.assertTrue(dashed)
        for bar, text in itertools.product(dashed, visible_texts(figure)):
            edge, box = bar.get_window_extent(), text.get_window_extent()
            beside = box.y1 < edge.y0 or box.y0 > edge.y1
            self.assertTrue(beside or not box.x0 < edge.x1 < box.x1, text.get_text())

    def test_what_is_no_step_says_so_and_is_pale(self) -> None:
        results, catalogue = of_runs(self.folder, 7)
        figure = render.CHARTS[0].draw(results, catalogue, MAIN, "")
        self.addCleanup(style.plt.close, figure)
        words = [text.get_text() for text in visible_texts(figure)]
        said = [word.partition(", ")[2] for word in words if re.match(r"\d+, ", word)]
        self.assertEqual(said, ["slower", "slower"])  # 04 and 07
        bars = [bar for bar in figure.axes[0].patches if bar.get_zorder() == 2]
        fills = [to_hex(bar.get_facecolor()) for bar in bars]
        soft = colours.of_family("ampere", soft=True)
        self.assertEqual([place for place, fill in enumerate(fills) if fill == soft], [3, 6])


class HopperCountsTest(support.FolderTest):
    def test_wgmma_is_drawn_against_the_same_work(self) -> None:
        listing = synthetic.catalogue(("hopper",), 2)
        path = self.folder / "counts.json"
        path.write_text(ladder.json.dumps(synthetic.counted()), encoding="utf-8")
        (chart,) = (chart for chart in render.CHARTS if chart.counted)
        catalogue = ladder.Catalogue.from_json(ladder.json.dumps(listing), "synthetic")
        problem = ladder.Problem.parse(chart.problem)
        figure = chart.draw(ladder.Results.load(path), catalogue, problem, "")
        self.addCleanup(style.plt.close, figure)
        words = [text.get_text() for text in visible_texts(figure)]
        # PTX instructions of 20 and 21, wgmma's wavefronts, the TMA's sectors of both.
        self.assertLessEqual({"4", "2", "0.5"}, set(words))
        self.assertEqual(words.count("3"), 2)


class CountsChartTest(DrawingTest):
    """The same of the chart of counts, drawn from the committed ones."""

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        _, catalogue = inputs(self.folder, 7)
        committed = support.REPOSITORY / "plots/results/vm/counts.json"
        (chart,) = (chart for chart in render.CHARTS if chart.counted)
        results = ladder.Results.load(committed)
        figure = chart.draw(results, catalogue, ladder.Problem.parse(chart.problem), "a note")
        self.addCleanup(style.plt.close, figure)
        yield chart.name, figure

    def test_words_that_must_be_there(self) -> None:
        for _, figure in self.drawn():
            words = "\n".join(text.get_text() for text in visible_texts(figure))
            for word in ("vm/counts.json", "not timed", "wavefronts", "01 base", "a note"):
                self.assertIn(word, words)


class ThemeTest(support.FolderTest):
    """A chart's file has a dark form of every colour that it is drawn in."""

    def saved(self) -> str:
        results, catalogue = inputs(self.folder, 25)
        figure = render.progression.draw(results, catalogue, MAIN, "")
        style.save(figure, self.folder / "chart.svg", results, catalogue)
        return (self.folder / "chart.svg").read_text(encoding="utf-8")

    def test_every_colour_is_an_attribute_with_a_rule_for_the_dark(self) -> None:
        svg = self.saved()
        body = svg[svg.index("</style>") :]
        self.assertNotIn("style=", body)
        for name, colour in set(re.findall(r' (fill|stroke)="(#[0-9a-f]{6})"', body)):
            self.assertIn(f'[{name}="{colour}"]{{{name}:{themes.DARK[colour]}}}', svg)

    def test_a_viewer_without_style_sheets_shows_the_light_form(self) -> None:
        """Such as librsvg or cairosvg: attributes alone say colours and sizes, and text is text."""
        svg = re.sub(r"<style>.*?</style>", "", self.saved(), flags=re.S)
        self.assertNotIn("var(", svg)
        for text in re.findall(r"<text [^>]*>", svg):
            self.assertRegex(text, r' font-size="[\d.]+px"')
            self.assertRegex(text, r' fill="#[0-9a-f]{6}"')
        self.assertNotRegex(svg, r"<path(?![^>]* (fill|stroke|clip-path)=)(?![^>]* id=)[^>]*>")

    def test_every_rung_is_a_link_that_says_its_idea_and_rate(self) -> None:
        svg = self.saved()
        links = re.findall(r'<a href="\.\./(\w+\.md)">\s*<title>([^<]*)</title>', svg)
        _, catalogue = inputs(self.folder, 25)
        self.assertEqual([f"docs/{page}" for page, _ in links], [r.chapter for r in catalogue.rungs])
        for (_, words), rung in zip(links, catalogue.rungs, strict=True):
            self.assertIn(rung.idea, words)
            self.assertRegex(words, r"\d TFLOPS")

    def test_no_group_and_no_name_is_without_a_use(self) -> None:
        svg = self.saved()
        self.assertNotIn("<g>", svg)
        for name in re.findall(r' id="([^"]*)"', svg):
            self.assertRegex(svg, rf"#{name}\b")


class SingleChartTest(DrawingTest):
    """The charts of float32, whose longest problems do not all fit."""

    def results(self) -> tuple[ladder.Results, ladder.Catalogue]:
        listing = synthetic.catalogue(("fp32", "ampere"), 6)
        for name, document in (("catalogue", listing), ("results", synthetic.single_results(listing))):
            path = self.folder / f"synthetic_{name}.json"
            path.write_text(ladder.json.dumps(document), encoding="utf-8")
        results = ladder.Results.load(self.folder / "synthetic_results.json")
        return results, ladder.Catalogue.load(self.folder / "synthetic_catalogue.json")

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        results, catalogue = self.results()
        charts = render.charts_of(results)
        names = ["progression_fp32", "roofline_fp32", "memory"]
        self.assertEqual([chart.name for chart in charts], names)
        yield from figures_of(self, charts, results, catalogue)

    def test_words_that_must_be_there(self) -> None:
        wanted = {
            "progression_fp32": ("PyTorch efficient 12", "cuBLAS matmul 50", "a2 kvpipe"),
            "progression_fp32.narrow": ("PyTorch 12", "cuBLAS 50", "a2 kvpipe"),
            "roofline_fp32": ("cuBLAS product: 50", "limits not measured", "4000 GB/s", "12.5 FLOP/byte", "a5 batched", "a1 swizzle"),
            "memory": ("a0 base", "out of memory at 65536", "144 GB", "PyTorch standard"),
        }
        for name, figure in self.drawn():
            words = " ".join(" ".join(text.get_text().split()) for text in visible_texts(figure))
            for word in (*wanted.get(name, ()), "Synthetic GPU", "float32", "a note"):
                self.assertIn(word, words, name)

    def test_memory_draws_those_that_were_tried_at_the_greatest_length(self) -> None:
        results, catalogue = self.results()
        problem = ladder.Problem.parse(memory.PROBLEM)
        lines = {line.name: line for line in memory.lines_of(results, catalogue, problem)}
        first, last = (catalogue.find(id).title for id in ("a0", "a5"))
        self.assertEqual(list(lines), [first, last, "PyTorch efficient", "PyTorch standard"])
        self.assertEqual(lines[first].limit, 65536)
        self.assertEqual(len(lines[first].timed), 5)
        self.assertIsNone(lines[last].limit)

    def test_memory_needs_a_length_that_does_not_fit(self) -> None:
        results, catalogue = self.results()
        fitting = tuple(row for row in results.rows if row.status == "ok")
        without = ladder.Results(results.path, "", results.document, fitting)
        with self.assertRaisesRegex(ladder.LadderError, "does not fit"):
            memory.draw(without, catalogue, ladder.Problem.parse(memory.PROBLEM), "")

    def test_roofline_needs_both_ceilings(self) -> None:
        results, catalogue = self.results()
        for peer, words in (("cublas", "float32 matrix product"), ("copy", "time of a copy")):
            rows = tuple(row for row in results.rows if row.id != peer)
            without = ladder.Results(results.path, "", results.document, rows)
            with self.assertRaisesRegex(ladder.LadderError, words):
                roofline.draw(without, catalogue, ladder.Problem.parse(ladder.SINGLE), "")

    def test_places_under_the_roof(self) -> None:
        results, catalogue = self.results()
        problem = ladder.Problem.parse(ladder.SINGLE)
        points = {point.name: point for point in roofline.rung_points(results, catalogue, problem)}
        standard = points[catalogue.find("a0").title]
        self.assertEqual(standard.low, standard.high)
        self.assertAlmostEqual(standard.low, 64 / 4, delta=0.3)
        fused = points[catalogue.find("a5").title]
        self.assertAlmostEqual(fused.low, 32 / 2, delta=0.1)
        self.assertAlmostEqual(fused.high, 8192 / 4)
        (efficient,) = (
            point for point in roofline.peer_points(results, problem, style.WIDE) if "efficient" in point.name
        )
        self.assertIsNone(efficient.low)


class CacheChartTest(DrawingTest):
    """The chart of a file of new queries against caches."""

    def results(self) -> tuple[ladder.Results, ladder.Catalogue]:
        listing = synthetic.catalogue(("ampere",), 3)
        for rung in listing["rungs"]:
            rung |= {"family": ladder.DECODE}
        shape = {"batch": 1, "heads": 32, "kv_heads": 8, "seq_q": 1}
        rows = []
        for keys in (1, 1024, 8192):
            at = synthetic.problem(keys) | shape
            rows += [synthetic.timed_row("rung", rung["id"], at, 0.1) for rung in listing["rungs"]]
            rows.append(synthetic.timed_row("peer", "cudnn", at, 0.2))
        rows = [row for row in rows if (row["id"], row["problem"]["seq_kv"]) != ("03", 1024)]
        path = self.folder / "synthetic_results.json"
        path.write_text(ladder.json.dumps(synthetic.document(rows)), encoding="utf-8")
        catalogue = ladder.Catalogue.from_json(ladder.json.dumps(listing), "synthetic")
        return ladder.Results.load(path), catalogue

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        results, catalogue = self.results()
        charts = render.charts_of(results)
        self.assertEqual([chart.name for chart in charts], ["progression_decode", "cache"])
        yield from figures_of(self, charts[1:], results, catalogue)

    def test_lines_and_floor(self) -> None:
        results, catalogue = self.results()
        problem = ladder.Problem.parse(cache.PROBLEM)
        (line, *others) = cache.lines_of(results, catalogue, problem, style.WIDE)
        self.assertEqual((line.name, line.xs), ("01 base", [1024, 8192]))
        self.assertAlmostEqual(line.ys[1], 8 * line.ys[0])
        # 03 was timed at one length: a point and no line.
        self.assertEqual([other.name for other in others], ["02 swizzle", "cuDNN"])
        for name, figure in self.drawn():
            words = " ".join(text.get_text() for text in visible_texts(figure))
            for word in ("1k", "8k", "a single key", "02 swizzle", "cuDNN"):
                self.assertIn(word, words, name)

    def test_other_files_do_not_draw_it(self) -> None:
        results, _ = inputs(self.folder, 7)
        self.assertNotIn("cache", [chart.name for chart in render.charts_of(results)])


class SpreadChartTest(DrawingTest):
    """The chart of a file that compares inputs."""

    def results(self, document: dict | None = None) -> tuple[ladder.Results, ladder.Catalogue]:
        listing = synthetic.catalogue(("hopper",), 8)
        path = self.folder / "synthetic_results.json"
        path.write_text(ladder.json.dumps(document or synthetic.spread_results()), encoding="utf-8")
        text = ladder.json.dumps(listing)
        return ladder.Results.load(path), ladder.Catalogue.from_json(text, "synthetic")

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        results, catalogue = self.results()
        charts = render.charts_of(results)
        self.assertEqual([chart.name for chart in charts], ["spread"])
        yield from figures_of(self, charts, results, catalogue)

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.drawn():
            words = [text.get_text().partition(":")[0] for text in visible_texts(figure)]
            fa3 = "FA3" if name.endswith(".narrow") else "FlashAttention-3"
            for word in ("1", "2", "4", "8", "16", "rising", "20 base", fa3, "cuDNN"):
                self.assertIn(word, words, name)

    def test_a_line_has_the_times_of_its_kernel(self) -> None:
        results, catalogue = self.results()
        axis = spread.problems_of(results, MAIN)
        self.assertEqual([each.spread for each in axis], [1, 2, 4, 8, 16, 1])
        self.assertEqual([each.inputs for each in axis], 5 * ["normal"] + ["rising"])
        found = {each.name: each for each in spread.lines_of(results, catalogue, axis, style.WIDE)}
        self.assertEqual([name[:2] for name in found if name[0] == "2"], ["20", "21"])
        (rung,) = (each for name, each in found.items() if name.startswith("21"))
        self.assertAlmostEqual(rung.ys[-1], 600 * 0.9 * 0.999)
        self.assertEqual(found["FlashAttention-3"].xs, [0, 1, 2, 3, 4])

    def test_other_files_do_not_draw_it(self) -> None:
        results, _ = inputs(self.folder, 7)
        self.assertNotIn("spread", [chart.name for chart in render.charts_of(results)])

    def test_one_spread_is_no_axis(self) -> None:
        document = synthetic.spread_results()
        document["rows"] = [row for row in document["rows"] if row["problem"].get("spread") == 2]
        results, catalogue = self.results(document)
        with self.assertRaisesRegex(ladder.LadderError, "fewer than two spreads"):
            spread.draw(results, catalogue, MAIN, "")


class FileTest(support.FolderTest):
    def render(self, out: str, *options: object) -> tuple[int, str, str]:
        paths = (self.folder / f"synthetic_{name}.json" for name in ("catalogue", "results"))
        listing, results = paths
        arguments = ("--results", results, "--catalogue", listing, "--out", self.folder / out)
        return support.run_main(render.main, *arguments, *options)

    def test_same_input_same_bytes(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        self.assertEqual(self.render("one")[0], 0)
        self.assertEqual(self.render("two")[0], 0)
        for chart, suffix in itertools.product(DRAWN, render.FORMS):
            name = f"{chart.name}{suffix}.svg"
            first, second = ((self.folder / out / name).read_bytes() for out in ("one", "two"))
            self.assertEqual(first, second, name)

    def test_an_interrupt_leaves_the_last_charts(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        self.render("out")
        before = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        drawn = style.Figure.savefig

        def interrupted(figure: style.Figure, target: object, **options: object) -> None:
            drawn(figure, target, **options)
            raise KeyboardInterrupt

        synthetic.write(self.folder, ("ampere",), 5)
        with mock.patch.object(style.Figure, "savefig", interrupted):
            with self.assertRaises(KeyboardInterrupt):
                self.render("out")
        after = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertEqual(after, before)

    def test_svg_says_what_it_was_drawn_from(self) -> None:
        _, results = synthetic.write(self.folder, *SIZES[7])
        self.render("out")
        text = (self.folder / "out" / "progression.svg").read_text()
        self.assertIn(ladder.Results.load(results).sha256, text)
        self.assertIsNone(re.search("dc:date", text))

    def test_a_chart_without_data_is_named_and_the_others_are_drawn(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        code, out, err = self.render("out")
        self.assertEqual(code, 0)
        self.assertIn("progression_d64 not drawn", err)
        self.assertIn("seq_len.svg", out)

    def test_a_disk_that_is_full_leaves_the_last_charts(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        self.render("out")
        before = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        written = Path.write_text

        def full(path: Path, text: str, **options: str) -> int:
            written(path, text[:1000], **options)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        synthetic.write(self.folder, ("ampere",), 5)
        with mock.patch.object(Path, "write_text", full):
            code, _, err = self.render("out")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"^render.py: error: cannot write \S+: No space left on device\n$")
        after = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertEqual(after, before)

    def test_a_folder_that_cannot_be_made(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        (self.folder / "file").touch()
        code, _, err = self.render("file/out")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"^render.py: error: cannot write \S+: Not a directory\n$")

    def test_bad_input(self) -> None:
        code, _, err = self.render("out")
        self.assertEqual(code, 2)
        self.assertRegex(err, "^render.py: error: cannot read .*\n$")

    def test_json_nested_without_end(self) -> None:
        listing, results = synthetic.write(self.folder, *SIZES[7])
        for path, what in ((listing, "a catalogue"), (results, "a result file")):
            good = path.read_text(encoding="utf-8")
            path.write_text('{"schema":' + "[" * 200_000, encoding="utf-8")
            said = rf"^\S+ error: {path} is not {what}: it is nested too deeply\n$"
            words = ("--results", results, "--catalogue", listing, "--out", self.folder / "out")
            code, _, err = support.run_main(render.main, *words)
            self.assertEqual(code, 2)
            self.assertRegex(err, said)
            path.write_text(good, encoding="utf-8")


class LinesTest(unittest.TestCase):
    def test_five_lines_are_named_the_ends_and_those_that_are_farthest_apart(self) -> None:
        self.assertEqual(sorted(lines.outstanding([0, 1, 2, 50, 51, 30, 98, 100])), [0, 2, 3, 5, 7])
        self.assertEqual(len(set(lines.outstanding(range(9)).values())), 5)
        self.assertEqual(sorted(lines.outstanding([3.0, 1.0])), [0, 1])


class SpreadTest(unittest.TestCase):
    def test_moves_apart_as_little_as_possible(self) -> None:
        self.assertEqual(style.spread_labels([1, 5, 9], 2), [1, 5, 9])
        self.assertEqual(style.spread_labels([5, 5], 2), [4, 6])
        self.assertEqual(style.spread_labels([5, 1, 5.5], 2), [4.25, 1, 6.25])

    def test_limits(self) -> None:
        self.assertEqual(style.spread_labels([9, 9.5], 2, high=10), [8, 10])
        self.assertEqual(style.spread_labels([0, 0.5], 2, low=0), [0, 2])


if __name__ == "__main__":
    unittest.main()
