"""The charts: they draw 7 to 25 rungs without overlapping labels, and the same bytes each time."""

from __future__ import annotations

import itertools
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

import support
import synthetic

support.need("numpy")
support.need("matplotlib")

import ladder  # noqa: E402
import render  # noqa: E402
import style  # noqa: E402

SIZES = {7: (("ampere",), 7), 25: (("fp32", "ampere", "hopper"), 11)}
MAIN = ladder.Problem.parse(ladder.MAIN_PROBLEM)
DRAWN = [chart for chart in render.CHARTS if chart.problem == ladder.MAIN_PROBLEM]


def inputs(folder: Path, size: int) -> tuple[ladder.Results, ladder.Catalogue]:
    families, limit = SIZES[size]
    listing, results = synthetic.write(folder, families, limit)
    return ladder.Results.load(results), ladder.Catalogue.load(listing)


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

    def test_bad_input(self) -> None:
        code, _, err = self.render("out")
        self.assertEqual(code, 2)
        self.assertRegex(err, "^render.py: error: cannot read .*\n$")


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
