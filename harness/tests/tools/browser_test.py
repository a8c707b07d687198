# SPDX-License-Identifier: MIT
"""The site in a real browser: every page, and what the live parts show.

The site is the one that `scripts/docs.sh check` built into FA_BUILD_DIR/site. Pictures for a person
to look at are written to the folder that FA_SCREENSHOTS names.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import threading
import unittest
from pathlib import Path
from typing import Any

from support import REPOSITORY, need

playwright = need("playwright.sync_api")

BUILD = Path(os.environ.get("FA_BUILD_DIR", REPOSITORY / "build"))
SITE = BUILD / "site"
DATA = SITE / "assets/web/data"
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
STOPS_WITHIN_MS = 200

if BROWSER is None:
    raise unittest.SkipTest(f"none of {', '.join(BROWSERS)} is installed")
if not (SITE / "index.html").is_file():
    raise unittest.SkipTest("the site was not built (scripts/docs.sh check)")

live = unittest.skipUnless(DATA.is_dir(), "the site has no live parts (scripts/docs.sh says why)")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class BrowserTest(unittest.TestCase):
    """A browser and the site on a port of this host."""

    @classmethod
    def setUpClass(cls) -> None:
        handler = functools.partial(Quiet, directory=SITE)
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        cls.host = f"http://127.0.0.1:{cls.server.server_port}"
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.playwright = playwright.sync_playwright().start()
        cls.addClassCleanup(cls.server.shutdown)
        cls.addClassCleanup(cls.playwright.stop)
        cls.browser = cls.playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

    def setUp(self) -> None:
        self.problems: list[str] = []

    def open(self, path: str = "", **options: Any) -> Any:
        """A page in a fresh context; what goes wrong in it is collected."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(60_000)  # other tests have the processors, too
        page = context.new_page()

        def note(text: object) -> None:
            self.problems.append(f"{page.url}: {text}")

        page.on("console", lambda message: message.type == "error" and note(message.text))
        page.on("pageerror", note)
        page.on("requestfailed", lambda request: note(f"{request.url} failed"))
        page.on("request", self.expect_own_host)
        if path is not None:
            page.goto(f"{self.host}/{path}")
        return page

    def expect_own_host(self, request: Any) -> None:
        if not request.url.startswith((self.host, "data:", "blob:")):
            self.problems.append(f"{request.frame.url} asks {request.url}")

    def expect_no_problems(self) -> None:
        self.assertEqual(self.problems, [])

    def picture(self, page: Any, name: str) -> None:
        folder = os.environ.get("FA_SCREENSHOTS")
        if folder:
            page.screenshot(path=Path(folder) / f"{name}.png")

    def widget(self, page: Any, name: str) -> Any:
        """The first widget of that kind, started."""
        place = page.locator(f"[data-widget={name}]").first
        place.scroll_into_view_if_needed()
        page.wait_for_selector(f"[data-widget={name}][data-live=yes]")
        return place

    def press_run(self, place: Any, until: str = "done", nth: int = 0) -> None:
        """`until`: the states, separated by |, of which one must come."""
        place.locator(".fa-run:visible").nth(nth).click()
        page, name = place.page, place.get_attribute("data-widget")
        states = (f"[data-widget={name}][data-state={state}]" for state in until.split("|"))
        page.wait_for_selector(",".join(states))


def pages() -> list[str]:
    """Addresses below the host, of every page that a reader can reach."""
    found = sorted(file.parent.relative_to(SITE) for file in SITE.rglob("index.html"))
    return ["" if path == Path(".") else f"{path}/" for path in found]


class PagesTest(BrowserTest):
    def test_every_page_loads_and_fits(self) -> None:
        page = self.open(None)
        wide = []
        for path in pages():
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(f"{self.host}/{path}")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                for scheme in ("light", "dark"):
                    page.emulate_media(color_scheme=scheme)
                    over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    if over > 0:
                        wide.append(f"{path} at {width} px, {scheme}: {over} px too wide")
        self.assertEqual(wide, [])
        self.expect_no_problems()

    def test_no_serious_finding_of_axe(self) -> None:
        axe = need("axe_core_python")
        script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
        found = []
        for path in ("", "02_swizzle/", "21_wgmma/", "live/", "playground/"):
            for scheme in ("light", "dark"):
                page = self.open(path, color_scheme=scheme)
                for place in page.locator(".fa-widget").all():
                    place.scroll_into_view_if_needed()
                page.wait_for_timeout(300)
                page.evaluate(script)
                findings = page.evaluate("axe.run(document.querySelector('article') ?? document)")
                found += [
                    f"{path} {scheme}: {each['id']}: {node['html'][:90]}"
                    for each in findings["violations"]
                    if each["impact"] in ("serious", "critical")
                    for node in each["nodes"][:3]
                ]
        self.assertEqual(found, [])


def rung_data(rung: str) -> dict[str, Any]:
    """What scripts/web.py wrote; `expected` has problem and counts of `fa explain --json`."""
    return dict(json.loads((DATA / "rungs" / f"{rung}.json").read_text(encoding="utf-8")))


def shown_counts(place: Any, column: int = 0) -> dict[str, int]:
    cell = f"row.querySelectorAll('[data-value]')[{column}].dataset.value"
    read = f"rows => rows.map((row) => [row.dataset.key, {cell}])"
    rows = place.locator(".fa-counts tbody tr").evaluate_all(read)
    return {key: int(value) for key, value in rows}


@live
class RunTest(BrowserTest):
    def test_every_rung_counts_what_fa_explain_counts(self) -> None:
        rungs = json.loads((DATA / "rungs.json").read_text(encoding="utf-8"))["rungs"]
        page = self.open(None)
        for rung in rungs:
            with self.subTest(rung=rung["name"]):
                wanted = rung_data(rung["name"])["expected"]
                problem = wanted["problem"]
                choice = f"none,{problem['seq_q']},{problem['head_dim']},full"
                page.goto(f"{self.host}/{rung['name']}/?run={choice}")
                place = self.widget(page, "run")
                self.press_run(place)
                self.assertIn(f"{rung['name']}: correct", place.inner_text())
                self.assertEqual(shown_counts(place), wanted["counts"])
        self.picture(page, "run")
        self.expect_no_problems()

    def test_a_rung_stands_beside_its_parent(self) -> None:
        page = self.open("02_swizzle/")
        place = self.widget(page, "run")
        self.press_run(place)
        self.assertEqual(shown_counts(place, 1), rung_data("01_base")["expected"]["counts"])
        line = place.locator(".fa-lines button").nth(40)
        line.click()
        self.assertGreater(place.locator("tr.fa-ptx").count(), 0)
        self.picture(page, "run_parent")

    def test_stop_stops(self) -> None:
        page = self.open("a3_q_outer/?run=none,1024,128,full")
        place = self.widget(page, "run")
        place.locator(".fa-run").click()
        page.wait_for_timeout(1000)
        self.assertEqual(place.locator("progress:visible").count(), 1)
        took = page.evaluate(
            """async () => {
              const place = document.querySelector("[data-widget=run]");
              const begun = performance.now();
              place.querySelector(".fa-stop").click();
              while (place.querySelector(".fa-status").textContent !== "stopped") {
                await new Promise((resolve) => setTimeout(resolve, 5));
              }
              return performance.now() - begun;
            }"""
        )
        self.assertLess(took, STOPS_WITHIN_MS)
        place.locator("select").first.select_option("128")
        self.press_run(place)
        self.assertIn("correct", place.inner_text())
        self.expect_no_problems()


@live
class BreakTest(BrowserTest):
    def outcome(self, place: Any) -> str:
        page = place.page
        self.press_run(place, "noticed|nothing")
        page.wait_for_timeout(50)
        return place.locator(".fa-finding").inner_text()

    def test_a_barrier_off_is_a_race_and_on_is_none(self) -> None:
        page = self.open("03_kvpipe/")
        place = self.widget(page, "break")
        self.press_run(place, "ready")
        switch = place.locator("[data-site]", has_text="bar.sync").first.locator("input")
        switch.uncheck()
        found = self.outcome(place)
        self.assertIn("race", found)
        self.assertGreaterEqual(place.locator("tr.fa-lit").count(), 2)
        self.picture(page, "break")
        switch.check()
        self.assertIn("Nothing was noticed", self.outcome(place))
        place.locator("[data-fault]", has_text="K and V").locator("input").check()
        self.assertIn("rejects", self.outcome(place))
        self.expect_no_problems()

    def test_every_redundant_site_is_one_of_the_kernel(self) -> None:
        page = self.open("34_tma_store/")
        place = self.widget(page, "break")
        self.press_run(place, "ready")
        shown = place.locator("[data-site]").all_inner_texts()
        for site in rung_data("34_tma_store")["redundant"]:
            with self.subTest(site):
                parts = (site["opcode"], site["reason"])
                self.assertTrue(any(all(part in text for part in parts) for text in shown))
        place.locator("[data-site]", has_text="fence.proxy.async").locator("input").uncheck()
        self.assertIn("proxy", self.outcome(place))


@live
class BanksTest(BrowserTest):
    def wavefronts(self, rung: str) -> tuple[int, int, int]:
        page = self.open(f"live/?banks={rung}")
        place = self.widget(page, "banks")
        page.wait_for_selector("[data-widget=banks][data-state=done]")
        self.picture(page, f"banks_{rung}")
        said = place.locator(".fa-says")
        names = ("wavefronts", "total", "counted")
        one, total, counted = (int(said.get_attribute(f"data-{name}")) for name in names)
        return one, total, counted

    def test_the_swizzle_takes_the_conflicts_away(self) -> None:
        self.assertEqual(self.wavefronts("01_base"), (8, 32, 32))
        self.assertEqual(self.wavefronts("02_swizzle"), (1, 4, 4))

    def test_the_picture_has_the_wavefronts_of_the_machine(self) -> None:
        page = self.open("live/?banks=a3_q_outer")
        place = self.widget(page, "banks")
        page.wait_for_selector("[data-widget=banks][data-state=done]")
        choice = place.locator("label", has_text="Instruction").locator("select")
        for option in choice.locator("option").evaluate_all("all => all.map(o => o.value)"):
            choice.select_option(option)
            said = place.locator(".fa-says")
            total, counted = (said.get_attribute(f"data-{name}") for name in ("total", "counted"))
            self.assertEqual(total, counted, option)

    def test_layouts_and_a_formula(self) -> None:
        page = self.open("live/?banks=02_swizzle")
        place = self.widget(page, "banks")
        page.wait_for_selector("[data-widget=banks][data-state=done]")
        layouts = place.locator("label", has_text="Layout").locator("select")
        said = place.locator(".fa-says")
        for layout, wavefronts in (("row", "8"), ("padded", "1"), ("xor", "1")):
            layouts.select_option(layout)
            self.assertEqual(said.get_attribute("data-wavefronts"), wavefronts)
        layouts.select_option("own")
        formula = place.locator("input[type=text]")
        formula.fill("r * W + (c ^ (r & 1)) * 16")
        formula.press("Tab")
        self.assertEqual(said.get_attribute("data-wavefronts"), "4")
        formula.fill("r * W +")
        formula.press("Tab")
        self.assertIn("ends too early", place.inner_text())


BARRIER = "bar.sync \t0;"
TEXTURE = "tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}];"
MISTAKES = {  # what stands in place of the first barrier, and what the machine says of it
    "bar.sync 0 0;": "expected",
    TEXTURE: "does not run",
    "again: bra again;": "which is the limit",
    "st.global.u32 [8], 0;": "out of bounds",
}


@live
class PlaygroundTest(BrowserTest):
    def play(self, address: str = "playground/") -> Any:
        page = self.open(address)
        page.wait_for_selector("[data-widget=play][data-state=ready]")
        return page.locator("[data-widget=play]")

    def text(self, place: Any) -> str:
        return str(place.locator("textarea").input_value())

    def put(self, place: Any, text: str) -> None:
        # fill() types, which takes long for a text of thousands of lines.
        put = "(editor, text) => { editor.value = text; editor.dispatchEvent(new Event('input')); }"
        place.locator("textarea").evaluate(put, text)

    def message(self, place: Any) -> str:
        self.press_run(place)
        return "\n".join(place.locator(".fa-message").all_inner_texts())

    def test_an_address_holds_an_edited_text(self) -> None:
        place = self.play()
        self.put(place, self.text(place).replace("\tret;", "\tmov.u32 %r1, 0;\n\tret;"))
        self.press_run(place)
        counts = shown_counts(place)
        place.get_by_text("Put this into the address").click()
        place.page.wait_for_url(re.compile("#play="))
        self.picture(place.page, "playground")
        other = self.play(place.page.url.removeprefix(f"{self.host}/"))
        self.press_run(other)
        self.assertEqual(shown_counts(other), counts)
        warps = 32  # 2 heads, 4 blocks each, 4 warps each
        self.assertEqual(counts["move"], shown_counts(other, 1)["move"] + warps)
        self.expect_no_problems()

    def test_another_result_is_rejected(self) -> None:
        place = self.play()
        self.put(place, self.text(place).replace("ex2.approx", "lg2.approx", 1))
        self.assertRegex(self.message(place), "not finite|exceeds tolerance")

    def test_what_is_wrong_is_said_at_its_line(self) -> None:
        place = self.play()
        text = self.text(place)
        line = text[: text.index(BARRIER)].count("\n") + 1
        for mistake, wanted in MISTAKES.items():
            with self.subTest(mistake):
                self.put(place, text.replace(BARRIER, mistake, 1))
                said = self.message(place)
                self.assertRegex(said, wanted)
                self.assertRegex(said, rf":{line}\b")
                self.assertIn("^", said)

    def test_a_pasted_kernel_runs_with_typed_arguments(self) -> None:
        place = self.play()
        place.locator("select").first.select_option("own")
        place.page.wait_for_selector("[data-widget=play] .fa-launch")
        filled = place.locator("label", has_text="filled with").first.locator("select")
        filled.select_option("index")
        self.assertIn("buffer 1 afterwards: 0, 2, 4, 6, 8", self.message(place))
        filled.select_option("zero")
        self.assertIn("buffer 1 afterwards: 0, 0, 0, 0, 0", self.message(place))
        self.expect_no_problems()


class LivePageTest(BrowserTest):
    def place(self, name: str, address: str = "live/") -> Any:
        return self.widget(self.open(address), name)

    @live
    def test_the_lanes_of_a_fragment(self) -> None:
        place = self.place("holds")
        tiles = {"a": (8, 1, 0, 1), "trans": (1, 8, 0, 2), "b": (2, 3, 13, 0), "c": (9, 3, 5, 3)}
        for tile, (row, column, lane, register) in tiles.items():
            place.locator("select").select_option(tile)
            if tile == "a":
                place.locator(".fa-run").click()
            place.page.wait_for_selector("[data-widget=holds][data-state=done]")
            with self.subTest(tile):
                cell = place.locator("tbody tr").nth(row).locator("td").nth(column)
                self.assertEqual(cell.get_attribute("data-lane"), str(lane))
                self.assertEqual(cell.get_attribute("data-register"), str(register))
        self.picture(place.page, "holds")

    @live
    def test_the_timeline_has_every_warp(self) -> None:
        place = self.place("timeline")
        self.press_run(place)
        self.assertEqual(place.locator("svg text", has_text="warp").count(), 12)
        self.assertGreater(place.locator(".fa-kind-wait").count(), 1)
        self.picture(place.page, "timeline")

    @live
    def test_softmax_by_hand(self) -> None:
        place = self.place("softmax", "live/?s=1,1,1,1,1,1&v=1,2,3,4,5,6")
        for _ in range(2):
            place.locator(".fa-run").click()
        self.assertIn("O / l = 3.5; all six at once, in FP64: 3.5", place.inner_text())
        place = self.place("softmax", "live/?s=1,2,3,4,5,100&max=no")
        for _ in range(2):
            place.locator(".fa-run").click()
        self.assertIn("O / l = NaN", place.inner_text())

    @live
    def test_the_ring_and_the_wrong_parity(self) -> None:
        def after(place: Any, actions: str) -> str:
            for action in actions.split():
                place.locator(f"[data-action={action}]").click()
            return str(place.locator("[role=status]").inner_text())

        right = self.place("ring")
        self.assertIn("producer waits", after(right, "produce produce produce"))
        self.assertIn("computed with tile 0", after(right, "land consume"))
        self.assertIn("copy of tile 2", after(right, "produce"))
        wrong = self.place("ring", "live/?parity=wrong")
        self.assertIn("memory that nobody has written", after(wrong, "produce consume"))

    @live
    def test_the_chart_shows_committed_rates(self) -> None:
        place = self.place("chart")
        shown = place.locator("svg a").all()
        rows = json.loads((DATA / "chart.json").read_text(encoding="utf-8"))["h200"]
        usual = {"kind": "rung", "n": 8192, "d": 128, "causal": False, "spread": 1.0}
        chosen = (row for row in rows if all(row[key] == usual[key] for key in usual))
        best = max(chosen, key=lambda row: row["tflops"])
        labels = [each.get_attribute("aria-label") for each in shown]
        self.assertTrue(any(f"{best['tflops']:.1f} TFLOPS" in label for label in labels))
        self.assertTrue(all(each.get_attribute("href").startswith(self.host) for each in shown))
        self.picture(place.page, "chart")


if __name__ == "__main__":
    unittest.main()
