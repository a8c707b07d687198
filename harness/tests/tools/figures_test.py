# SPDX-License-Identifier: MIT
"""The figures of docs/: drawn from today's sources, used, described, light and dark."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

import support

FIGURES = support.REPOSITORY / "plots" / "figures"
DOCS = support.REPOSITORY / "docs"
FOLDER = DOCS / "assets" / "figures"
sys.path[:0] = [str(FIGURES), str(FIGURES.parent)]

import canvas  # noqa: E402
import draw  # noqa: E402
import layouts  # noqa: E402
import memory_figures  # noqa: E402
import timelines  # noqa: E402
from colours import contrast  # noqa: E402

IMAGE = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?assets/figures/(\w+)\.svg\)")
SVG = "{http://www.w3.org/2000/svg}"


class FilesTest(unittest.TestCase):
    def test_every_figure_is_up_to_date(self) -> None:
        self.assertEqual(draw.main(["--check"]), 0)

    def test_a_figure_that_differs_is_named(self) -> None:
        name, figure = next(iter(draw.figures().items()))
        other = {name: lambda: canvas.Canvas("another", "another")}
        self.assertEqual(draw.check({name: figure}, draw.figures()), 0)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(draw.check(other, draw.figures()), 1)
        self.assertIn(f"{name}.svg is out of date", told.getvalue())

    def test_json_nested_without_end_is_one_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "deep.json"
            path.write_text("[" * 200_000, encoding="utf-8")
            reads = {(layouts, "FACTS"): layouts.facts, (timelines, "STAMPS"): timelines.stamps,
                     (memory_figures, "COUNTS"): memory_figures.counted_results}  # fmt: skip
            for (module, name), read in reads.items():
                read.cache_clear()
                self.addCleanup(read.cache_clear)
                with mock.patch.object(module, name, path):
                    code, _, err = support.run_main(draw.main, "--check")
                self.assertEqual(code, 2)
                self.assertRegex(err, rf"^draw.py: error: {path} is not .* nested too deeply\n$")
                read.cache_clear()

    def test_figures_are_drawings_with_words_and_load_nothing(self) -> None:
        for path in FOLDER.glob("*.svg"):
            with self.subTest(path.name):
                text = path.read_text(encoding="utf-8")
                root = xml.fromstring(text)
                self.assertGreater(len(root.findtext(f"{SVG}title") or ""), 8)
                self.assertGreater(len(root.findtext(f"{SVG}desc") or ""), 40)
                self.assertIn("prefers-color-scheme:dark", text)
                self.assertNotRegex(text, r"href|url\(|var\(|@import|<script|<image")

    def test_letters_are_large_enough_for_a_phone(self) -> None:
        """A figure is shown 390 pixels wide there; 11 pixels are the least."""
        for path in FOLDER.glob("*.svg"):
            root = xml.fromstring(path.read_text(encoding="utf-8"))
            width = float(root.attrib["viewBox"].split()[2])
            sizes = [
                float(each.attrib.get("font-size", canvas.SIZE)) for each in root.iter(f"{SVG}text")
            ]
            self.assertGreaterEqual(min(sizes) * 390 / width, 11, path.name)

    def test_letters_stand_out_in_both_forms(self) -> None:
        for form in (0, 1):
            colours = {name: values[form] for name, values in canvas.COLOURS.items()}
            for name in ("ink", "muted", *canvas.HUES):
                self.assertGreater(contrast(colours[name], colours["paper"]), 4.5, (name, form))
            for hue in canvas.HUES:
                self.assertGreater(
                    contrast(colours["ink"], colours[f"{hue}-soft"]), 4.5, (hue, form)
                )

    def test_a_text_that_does_not_fit_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "does not fit"):
            canvas.Canvas("a", "b").text(400, 10, "far too long for what is left")


class PagesTest(unittest.TestCase):
    def used(self) -> dict[str, list[str]]:
        """Figure -> what pages say in its place."""
        found: dict[str, list[str]] = {}
        for page in DOCS.rglob("*.md"):
            for words, name in IMAGE.findall(page.read_text(encoding="utf-8")):
                found.setdefault(name, []).append(words)
        return found

    def test_every_chapter_has_a_figure(self) -> None:
        chapters = sorted(DOCS.glob("[a0-9][0-9]*_*.md"))
        self.assertGreater(len(chapters), 30)
        for page in chapters:
            if page.name[:3] in ("03_", "07_", "73_"):
                continue  # they gain nothing that a figure could show, or give up what one shows
            self.assertRegex(page.read_text(encoding="utf-8"), IMAGE, page.name)

    def test_a_timeline_is_that_of_its_chapter(self) -> None:
        for page in DOCS.glob("[0-9][0-9]_*.md"):
            text = page.read_text(encoding="utf-8")
            for name in (found[1] for found in IMAGE.findall(text)):
                if name.startswith("timeline_"):
                    self.assertEqual(name, f"timeline_{page.name[:2]}", page.name)

    def test_figures_are_used_and_described_where_they_are(self) -> None:
        used = self.used()
        self.assertEqual(sorted(used), sorted(draw.figures()))
        for name, words in used.items():
            for each in words:
                self.assertGreater(len(each), 40, name)


class TimelineTest(unittest.TestCase):
    """What stamps become, on a few made by hand."""

    KINDS = ("none", "commit", "products_wait", "products_done", "wait_begin", "wait_end")

    def test_products_in_flight_together_run_one_after_the_other(self) -> None:
        events = [[0, 1, 0], [10, 1, 0], [20, 2, 1], [100, 3, 1], [300, 2, 0], [340, 3, 0]]
        found = timelines.product_spans("25", events, self.KINDS, key_blocks=2)
        self.assertEqual([(s.begin, s.end) for s in found], [(0, 100), (100, 340)])

    def test_which_product_a_commit_closes(self) -> None:
        names = [timelines.product_name("25", i, key_blocks=3) for i in range(7)]
        self.assertEqual(names, ["QK", "QK", "PV", "QK", "PV", "PV", "QK"])
        self.assertEqual([timelines.product_name("23", i, 3) for i in range(3)], ["QK", "PV", "QK"])

    def test_the_card_is_drawn_as_soon_as_it_is_measured(self) -> None:
        events = [[100 * at, 1 + 2 * (at % 2), 0] for at in range(40)]  # commit, products_done
        warps = [{"warp": warp, "complete": True, "events": events} for warp in (0, 4, 8)]
        row = {"problem": {"seq_q": 512, "seq_kv": 512}, "warps": warps}
        row |= {"plain_ms": {"back_to_back": 1.0}, "stamped_ms": {"back_to_back": 1.04}}
        document = {"kinds": self.KINDS, "device": {"name": "a card"}}
        document |= {"generator": {"git_sha": "0" * 40}}
        document |= {"rows": [row | {"id": rung} for rung in timelines.TITLES]}
        for rung in timelines.TITLES:
            with mock.patch.object(timelines, "stamps", lambda: document):
                text = timelines.timeline(rung).svg()
            self.assertIn("a card, N = 512, commit 000000000", text)
            self.assertIn("stamps cost 4 %", text)

    def test_threads_work_where_they_do_not_wait(self) -> None:
        events = [[0, 1, 0], [5, 2, 0], [80, 3, 0], [200, 4, 0], [230, 5, 0]]
        found = [(s.begin, s.end, s.kind) for s in timelines.thread_spans(events, self.KINDS)]
        waits = [(5, 80, "wait_products"), (200, 230, "wait_data")]
        work = [(0, 0, "arithmetic"), (0, 5, "arithmetic"), (80, 200, "arithmetic")]
        self.assertEqual(sorted(found), sorted(waits + work))


class MachineTest(unittest.TestCase):
    def test_the_machine_plans_decode_the_same_way(self) -> None:
        if not (
            pathlib.Path(os.environ.get("FA_BUILD_DIR") or support.REPOSITORY / "build") / "fa"
        ).is_file():
            self.skipTest("fa is not built")
        import decode

        self.assertEqual(decode.main(["--check"]), 0)

    def test_the_machine_still_says_so(self) -> None:
        try:
            import probe
        except (ImportError, OSError) as reason:
            self.skipTest(f"numpy or the machine's library is missing: {reason}")
        self.assertEqual(probe.main(["--check"]), 0)


if __name__ == "__main__":
    unittest.main()
