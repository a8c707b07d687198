# SPDX-License-Identifier: MIT
"""The charts: they draw 7 to 25 rungs without overlapping labels, and the same bytes each time."""

from __future__ import annotations

import errno
import functools
import itertools
import os
import re
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import support
import synthetic

support.need("numpy")
support.need("matplotlib")

import cache  # noqa: E402
import ladder  # noqa: E402
import limits  # noqa: E402
import memory  # noqa: E402
import render  # noqa: E402
import roofline  # noqa: E402
import spread  # noqa: E402
import style  # noqa: E402
import themes  # noqa: E402

SIZES = {7: (("ampere",), 7), 25: (("fp32", "ampere", "hopper"), 11)}
MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)
DRAWN = [
    chart
    for chart in render.CHARTS
    if chart.problem == ladder.MAIN_PROBLEM and not chart.varied
]


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
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        outside = (tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high)
        hidden |= {tick.label1 for tick in outside}
    texts = figure.findobj(style.matplotlib.text.Text)
    drawn = (text for text in texts if text.get_visible() and text not in hidden)
    return [text for text in drawn if text.get_text().strip()]


class DrawingTest(support.FolderTest):
    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        for size in SIZES:
            results, catalogue = inputs(self.folder, size)
            for chart in DRAWN:
                figure = chart.draw(results, catalogue, MAIN, "a note")
                self.addCleanup(style.plt.close, figure)
                yield f"{chart.name} with {size} rungs", figure

    def test_no_two_labels_overlap(self) -> None:
        for name, figure in self.figures():
            figure.canvas.draw()
            boxes = [(text, text.get_window_extent()) for text in visible_texts(figure)]
            for (text, box), (other, other_box) in itertools.combinations(boxes, 2):
                overlap = style.matplotlib.transforms.Bbox.intersection(box, other_box)
                area = overlap.width * overlap.height if overlap else 0
                self.assertLess(area, 1, f"{name}: {text.get_text()!r} on {other.get_text()!r}")

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

    def test_no_label_leaves_the_figure(self) -> None:
        for name, figure in self.figures():
            figure.canvas.draw()
            page = figure.bbox
            for text in visible_texts(figure):
                box = text.get_window_extent()
                inside = box.x0 >= 0 and box.x1 <= page.x1 and box.y0 >= 0 and box.y1 <= page.y1
                self.assertTrue(inside, f"{name}: {text.get_text()!r} is cut off")

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.figures():
            words = "\n".join(text.get_text() for text in visible_texts(figure))
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
            "progression": ("percent of the limit: bare wgmma, 900 TFLOPS",),
            "roofline": ("limit: wgmma", "limit: mma.sync", "900", "640", "4500 GB/s", "7000 GB/s"),
        }
        for name, figure in self.figures():
            words = "\n".join(text.get_text() for text in visible_texts(figure))
            self.assertNotIn(limits.NOT_MEASURED, words)
            for word in wanted.get(name.partition(" ")[0], ()):
                self.assertIn(word, words, name)


class RunsTest(DrawingTest):
    """The same charts of a folder of runs."""

    def figures(self) -> Iterator[tuple[str, style.Figure]]:
        for size in SIZES:
            results, catalogue = of_runs(self.folder, size)
            for chart in DRAWN:
                figure = chart.draw(results, catalogue, MAIN, "a note")
                self.addCleanup(style.plt.close, figure)
                yield f"{chart.name} with {size} rungs", figure

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.figures():
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
        for (low, high), change in zip(found, changes, strict=True):
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
    def test_what_is_no_step_says_so_and_is_pale(self) -> None:
        results, catalogue = of_runs(self.folder, 7)
        figure = render.CHARTS[0].draw(results, catalogue, MAIN, "")
        self.addCleanup(style.plt.close, figure)
        words = [text.get_text() for text in visible_texts(figure)]
        said = [word.partition("  ")[2] for word in words if "  " in word]
        self.assertEqual(said, ["slower", "slower"])  # 04 and 07
        colour = style.rung_colours(catalogue)[catalogue.find("07").id]
        fills = [bar.get_facecolor()[:3] for bar in figure.axes[0].patches]
        self.assertIn(style.pale(colour), fills)
        self.assertNotIn(colour, fills)


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
        for _, figure in self.figures():
            words = "\n".join(text.get_text() for text in visible_texts(figure))
            for word in ("vm/counts.json", "not timed", "wavefronts", "01 base", "a note"):
                self.assertIn(word, words)


class ThemeTest(support.FolderTest):
    """A chart's file has a dark form of every colour that it is drawn in."""

    def saved(self) -> tuple[str, ladder.Catalogue]:
        results, catalogue = inputs(self.folder, 25)
        figure = render.progression.draw(results, catalogue, MAIN, "")
        style.save(figure, self.folder / "chart", results, catalogue)
        return (self.folder / "chart.svg").read_text(encoding="utf-8"), catalogue

    def test_every_colour_is_an_attribute_with_a_rule_for_the_dark(self) -> None:
        svg, catalogue = self.saved()
        body = svg[svg.index("</style>") :]
        self.assertNotIn("style=", body)
        dark = themes.dark_colours(catalogue)
        for name, colour in set(re.findall(r' (fill|stroke)="(#[0-9a-f]{6})"', body)):
            if colour in dark:
                self.assertIn(f'[{name}="{colour}"]{{{name}:{dark[colour]}}}', svg)

    def test_no_group_and_no_name_is_without_a_use(self) -> None:
        svg, _ = self.saved()
        self.assertNotIn("<g>", svg)
        for name in re.findall(r' id="([^"]*)"', svg):
            self.assertRegex(svg, rf"#{name}\b")

    def test_the_dark_form_can_be_read(self) -> None:
        _, catalogue = self.saved()
        for light, dark in themes.dark_colours(catalogue).items():
            if light not in (style.HAIRLINE, style.BACKGROUND, "#ffffff"):
                least = 1.5 if themes.is_pale(light, catalogue) else 4.5
                self.assertGreater(themes.contrast(dark, style.DARK_BACKGROUND), least, f"{light} {dark}")


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
        names = ["progression_fp32", "progression_fp32.narrow", "roofline_fp32", "memory"]
        self.assertEqual([chart.name for chart in charts], names)
        for chart in charts:
            figure = chart.draw(results, catalogue, ladder.Problem.parse(chart.problem), "a note")
            self.addCleanup(style.plt.close, figure)
            yield chart.name, figure

    def test_words_that_must_be_there(self) -> None:
        wanted = {
            "progression_fp32": ("PyTorch efficient\n12", "cuBLAS matmul\n50", "a2 kvpipe"),
            "progression_fp32.narrow": ("PyTorch\nefficient\n12", "cuBLAS\n50", "a2 kvpipe"),
            "roofline_fp32": ("cuBLAS product\n50", "limits not measured", "4000 GB/s", "12.5 FLOP/byte", "a5 batched", "a1 swizzle"),
            "memory": ("a0 base", "out of memory at 65536", "144 GB", "PyTorch standard"),
        }
        for name, figure in self.figures():
            words = "\n".join(text.get_text() for text in visible_texts(figure))
            for word in (*wanted[name], "Synthetic GPU", "float32", "a note"):
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
            point for point in roofline.peer_points(results, problem) if "efficient" in point.name
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
        self.assertEqual([chart.name for chart in charts], ["cache", "cache.narrow"])
        for chart in charts:
            figure = chart.draw(results, catalogue, ladder.Problem.parse(chart.problem), "a note")
            self.addCleanup(style.plt.close, figure)
            yield chart.name, figure

    def test_lines_and_floor(self) -> None:
        results, catalogue = self.results()
        problem = ladder.Problem.parse(cache.PROBLEM)
        (line, *others) = cache.rung_lines(results, catalogue, problem)
        self.assertEqual((line.name, line.keys), ("01 base", [1024, 8192]))
        self.assertAlmostEqual(line.values[1], 8 * line.values[0])
        self.assertEqual(len(others), 2)
        for name, figure in self.figures():
            words = " ".join(text.get_text() for text in visible_texts(figure))
            keys = ("1k", "8k") if name == "cache.narrow" else ("1024", "8192")
            for word in (*keys, "a cache of one key", "02 swizzle", "cuDNN"):
                self.assertIn(word, words, name)
            self.assertNotIn("03", words)  # timed at one length: a point and no line

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
        self.assertEqual([chart.name for chart in charts], ["spread", "spread.narrow"])
        for chart in charts:
            figure = chart.draw(results, catalogue, MAIN, "a note")
            self.addCleanup(style.plt.close, figure)
            yield chart.name, figure

    def test_words_that_must_be_there(self) -> None:
        for name, figure in self.figures():
            words = [text.get_text() for text in visible_texts(figure)]
            for word in ("1", "2", "4", "8", "16", "rising", "20 base", "FlashAttention-3", "cuDNN"):
                self.assertIn(word, words, name)

    def test_a_line_has_the_times_of_its_kernel(self) -> None:
        results, catalogue = self.results()
        axis = spread.problems_of(results, MAIN)
        self.assertEqual([each.spread for each in axis], [1, 2, 4, 8, 16, 1])
        self.assertEqual([each.inputs for each in axis], 5 * ["normal"] + ["rising"])
        rungs = {line.name[:2]: line for line in spread.rung_lines(results, catalogue, axis)}
        self.assertEqual(list(rungs), ["20", "21"])
        self.assertAlmostEqual(rungs["21"].values[-1], 600 * 0.9 * 0.999)
        peers = {line.name: line.places for line in spread.peer_lines(results, axis)}
        self.assertEqual(peers["FlashAttention-3"], [0, 1, 2, 3, 4])

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
        for chart in DRAWN:
            for suffix in (".svg", ".png"):
                first, second = (
                    (self.folder / out / (chart.name + suffix)).read_bytes()
                    for out in ("one", "two")
                )
                self.assertEqual(first, second, chart.name + suffix)

    def test_an_interrupt_leaves_the_last_charts(self) -> None:
        synthetic.write(self.folder, *SIZES[7])
        self.render("out")
        before = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        drawn = style.Figure.savefig

        def interrupted(figure: style.Figure, target: object, **options: object) -> None:
            drawn(figure, target, **options)
            if options.get("format") == "png" or str(target).endswith(".png"):
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
        written = Path.write_bytes

        def full(path: Path, data: bytes) -> int:
            written(path, data[:1000])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        synthetic.write(self.folder, ("ampere",), 5)
        with mock.patch.object(Path, "write_bytes", full):
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
            one = functools.partial(style.chart_main, "one chart", DRAWN[0].draw)
            for main in (render.main, one):
                code, _, err = support.run_main(main, *words)
                self.assertEqual(code, 2)
                self.assertRegex(err, said)
            path.write_text(good, encoding="utf-8")


class ColourTest(unittest.TestCase):
    def colours(self, limit: int) -> dict[str, style.Colour]:
        document = synthetic.catalogue(("ampere", "hopper"), limit)
        text = ladder.json.dumps(document)
        return style.rung_colours(ladder.Catalogue.from_json(text, "synthetic"))

    def test_a_rung_keeps_its_colour_when_others_join(self) -> None:
        few, many = self.colours(4), self.colours(8)
        for id, colour in few.items():
            self.assertEqual(colour, many[id])

    def test_neighbours_differ(self) -> None:
        colours = list(self.colours(8).values())
        for first, second in itertools.pairwise(colours):
            self.assertGreater(sum(abs(a - b) for a, b in zip(first, second)), 0.05)


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
