# SPDX-License-Identifier: MIT
"""The pages of the site in a real browser: every page, tables, code, charts."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from support import REPOSITORY, need  # isort: split

import colours
import browser
from browser import (
    DATA,
    SITE,
    BrowserTest,
    Shared,
    in_parallel,
    pages,
    press_run,
    set_scheme,
)

setUpModule = browser.setUpModule


def changes_of_the_ladder() -> dict[str, dict[str, str]]:
    """The last cells of the first table of docs/ladder.md by their colour: the change by rung."""
    table = (REPOSITORY / "docs" / "ladder.md").read_text(encoding="utf-8").partition("<!-- /table -->")[0]
    found: dict[str, dict[str, str]] = {"faster": {}, "slower": {}, "": {}}
    row = r"^\| \[(\w+) .*\| (([+−])([\d.]+) ± ([\d.]+) % against \w+) \|$"
    for id, text, sign, change, margin in re.findall(row, table, re.M):
        kind = "faster" if sign == "+" else "slower"
        found[kind if float(change) > float(margin) else ""][id] = text
    return found


# Those of a page whose widgets start near the window only: all that there are, one after the other, each
# with [kind, rung, whether it has started, what is wrong with what it shows before the first click].
START_WIDGETS = """async () => {
  const started = [];
  for (const place of document.querySelectorAll(".fa-widget")) {
    const before = place.offsetHeight;
    const begun = performance.now();
    while (!place.dataset.live && performance.now() - begun < 30000) {
      place.scrollIntoView();  // again, as the widgets before it may grow
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const shown = place.querySelector("svg, img, tbody tr, textarea, .fa-formula, li");
    const shrinks = place.offsetHeight < 0.6 * before;
    const wrong = shown?.getClientRects().length ? (shrinks ? `shrinks from ${before} px` : "") : "is empty";
    started.push([place.dataset.widget, place.dataset.rung ?? "", place.dataset.live ?? "no", wrong]);
  }
  return started;
}"""


def fits(page: Any, path: str) -> None:
    """The page starts its widgets, and is no wider than its window."""
    started = page.evaluate(START_WIDGETS)
    assert all(live == "yes" and not wrong for *_, live, wrong in started), f"started {started}"
    rung = path.strip("/")
    if DATA.is_dir() and (DATA / "rungs" / f"{rung}.json").is_file():
        for kind in ("run", "break"):
            assert [kind, rung, "yes", ""] in started, f"no {kind} among {started}"
    # The next page begins at the width where this one ends, and every layout of it takes time: a
    # scheme changes colours alone.
    first = page.viewport_size["width"]
    second = 390 if first == 1280 else 1280

    def over() -> int:
        return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    wide = {f"at {first} px, light": over()}
    set_scheme(page, "dark")
    page.set_viewport_size({"width": second, "height": 900})
    wide[f"at {second} px, dark"] = over()
    set_scheme(page, "light")
    wide = {form: pixels for form, pixels in wide.items() if pixels > 0}
    assert not wide, f"pixels too wide: {wide}"


# Elements of the page that an address of the site names, and where they are below the window's top, in
# excess of their margin. At the end of a page none can be as high. A page that grows at this moment
# has five seconds to bring its element back.
NAMED = """async (ids) => {
  const problemOf = (element) => {
    if (!element) return "is missing";
    const box = element.getBoundingClientRect();
    const atEnd = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
    const header = document.querySelector(".md-header").getBoundingClientRect().bottom;
    const excess = box.top - parseFloat(getComputedStyle(element).scrollMarginTop);
    return box.top < header - 1 ? `is ${header - box.top} px under the header`
      : Math.abs(excess) > 8 && !(atEnd && excess > 0) ? `is off by ${excess} px` : "";
  };
  const wrong = [];
  for (const id of ids) {
    location.hash = `#${id}`;
    let problem = problemOf(document.getElementById(id));
    for (let tries = 0; problem && tries < 100; ++tries) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      problem = problemOf(document.getElementById(id));
    }
    if (problem) wrong.push([id, problem]);
  }
  return wrong;
}"""
# Resolves when the page has had the same height and place for a fifth of a second, or after five.
SETTLED = """async () => {
  await document.fonts.ready;
  for (let same = 0, tries = 0, before = ""; same < 4 && tries < 100; ++tries) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = `${document.documentElement.scrollHeight} ${scrollY}`;
    same = now === before ? same + 1 : 0;
    before = now;
  }
}"""


@functools.cache
def anchors() -> dict[str, list[str]]:
    """Page -> the identifiers that links of the site name in it, in their order."""
    texts = {path: (SITE / path / "index.html").read_text(encoding="utf-8") for path in pages()}
    found: dict[str, set[str]] = {}
    for path, text in texts.items():
        for address, name in re.findall(r'<a [^>]*href="([^"#:]*)#([^"]+)"', text):
            there = posixpath.normpath(posixpath.join(path, address)).removeprefix(".")
            there = f"{there}/".lstrip("/")
            # A number of a line leads to itself.
            if there in texts and (address or not name.startswith("__codelineno")):
                found.setdefault(there, set()).add(unquote(name))
    return {
        path: sorted(names, key=lambda name, path=path: texts[path].find(f'id="{name}"'))
        for path, names in found.items()
    }


def land(page: Any, path: str, names: list[str]) -> None:
    """Loads the page. Addresses end where they say: a fresh one, while the page gets its layout, and
    all others."""
    page.set_viewport_size({"width": 1280, "height": 900})  # the page before has left it narrow
    page.goto(f"{Shared.host}/{path}" + (f"#{names[-1]}" if names else ""))
    if names:
        page.evaluate(SETTLED)
        off = page.evaluate(NAMED, names[::-1])
        assert not off, off


# The first rows of tables with too many columns, or with one of dashes.
TABLES = """() => [...document.querySelectorAll("article table:not([class])")].flatMap((table) => {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
  const columns = rows[0].map((_, i) => rows.slice(1).map((row) => row[i]));
  const dashes = columns.some((column) => column.every((text) => text === "–"));
  return rows[0].length > 7 || dashes ? [rows[0].join(" | ")] : [];
})"""

# [how many excerpts there are, those whose title does not lead to a line that they show].
FOLLOW_TITLES = """async () => {
  const titles = [...document.querySelectorAll(".filename a[href*='#']")];
  const wrong = [];
  for (const title of titles) {
    const text = await (await fetch(title.href)).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const line = page.getElementById(title.hash.slice(1))?.textContent.trim();
    const excerpt = title.closest(".highlight");
    const code = excerpt.querySelector(".row:not(.removed)") ?? excerpt.querySelector("code");
    const [first] = code.textContent.replace(/^[+ ] /, "").split("\\n");
    if (line !== first.trim()) wrong.push(`${title.href}: ${line} instead of ${first}`);
  }
  return [titles.length, wrong];
}"""
CHAPTER = re.compile(r"[a-z0-9]\d_\w+/")


def look_at(page: Any, path: str) -> None:
    """All that is asked of every page, which is loaded once."""
    land(page, path, anchors().get(path, []))
    tables = page.evaluate(TABLES)
    assert not tables, f"tables: {tables}"
    count, wrong = page.evaluate(FOLLOW_TITLES)
    assert not wrong, wrong
    assert count > 0 or not CHAPTER.fullmatch(path), "no excerpt has a link"
    fits(page, path)


# Elements of the article that paper would cut, and folded parts that it would not show.
CUT = """() => {
  const article = document.querySelector("article");
  const cut = [...article.querySelectorAll("*")].filter((each) => {
    const { overflowX } = getComputedStyle(each);
    return overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0;
  });
  const wide = [...article.querySelectorAll("*")].filter((each) => each.getBoundingClientRect().right > innerWidth + 1);
  const folded = [...article.querySelectorAll("details > :not(summary)")].filter((each) => !each.getClientRects().length);
  return [...cut, ...wide, ...folded].map((each) => each.outerHTML.slice(0, 80));
}"""
PAPER = 718  # px of an A4 page without its margins


class PagesTest(BrowserTest):
    def test_paper_cuts_nothing_off_a_chapter(self) -> None:
        for path in ("45_mma/", "47_pages/", "06_batched/", "ladder/"):
            with self.subTest(path):
                page = self.open(path)
                page.set_viewport_size({"width": PAPER, "height": 900})
                page.emulate_media(media="print")
                self.assertEqual(page.evaluate(CUT), [])
        self.expect_no_problems()

    def test_the_result_of_a_rung_is_under_its_title(self) -> None:
        page = self.open("22_wgmma/")
        strip = page.locator("h1 + .strip")
        said = strip.inner_text()
        change = changes_of_the_ladder()["faster"]["22"].partition(" against")[0]
        for words in ("faster than 21", "424 to 518 TFLOPS", change, "of the limit", "FA3"):
            self.assertIn(words, said)
        widths = {
            bar.get_attribute("class"): bar.locator(".bar > span").bounding_box()["width"]
            for bar in strip.locator("li").all()
        }
        self.assertGreater(widths["own"], widths["parent"])
        self.picture(page, "strip")

    def test_changes_have_the_colour_of_their_verdict(self) -> None:
        page = self.open("ladder/")
        changes = changes_of_the_ladder()
        self.assertGreater(min(len(changes["faster"]), len(changes[""])), 3)
        for kind, cells in changes.items():
            for id, text in cells.items():
                with self.subTest(id):
                    cell = page.locator("td", has_text=text).first
                    self.assertEqual(cell.get_attribute("class"), kind or None)

    def test_a_phone_shows_whole_tables_and_sums(self) -> None:
        cut = """() => [...document.querySelectorAll("article table, .highlight:not(:has(.filename)) code")]
          .map((each) => each.closest(".md-typeset__scrollwrap") ?? each)
          .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.innerText.slice(0, 60))"""
        for path in ("ladder/", "23_specialized/", "cutlass/"):
            with self.subTest(path):
                page = self.open(path)
                page.set_viewport_size({"width": 390, "height": 900})
                self.assertEqual(page.evaluate(cut), [])

    def test_every_page_fits_and_leads_where_it_says(self) -> None:
        self.assertGreater(sum(CHAPTER.fullmatch(path) is not None for path in pages()), 40)
        self.assertGreater(len(anchors()), 40)
        self.assertEqual(in_parallel(pages(), None, look_at), [])

    def test_the_search_loads_its_index_when_it_is_opened(self) -> None:
        for path, key in (("", None), ("02_swizzle/", "/"), ("02_swizzle/?q=ldmatrix", "")):
            with self.subTest(path=path, key=key):
                page = self.open(None)
                asked: list[str] = []
                page.on("request", lambda request, asked=asked: asked.append(request.url))
                page.goto(f"{self.host}/{path}", wait_until="networkidle")
                indexes = [url for url in asked if re.search(r"search_index|workers/search", url)]
                if key != "":
                    self.assertEqual(indexes, [])
                    if key:
                        page.keyboard.press(key)
                    else:
                        page.locator("[data-md-component=search-query]").click()
                    page.keyboard.type("ldmatrix")
                page.locator(".md-search-result__link").first.wait_for()
        self.expect_no_problems()

    def test_the_search_knows_other_names_and_corrects_one_letter(self) -> None:
        page = self.open("")
        page.locator("[data-md-component=search-query]").click()
        # What is typed, the page that comes first, and what the reader is told of it.
        for typed, path, told in (
            ("GQA", "41_group/", "group"),
            ("fp8", "51_e4m3/", "e4m3"),
            ("paged", "47_pages/", "pages"),
            ("split-K", "42_split/", "split"),
            ("stream-K", "46_even/", "even stream"),
            ("swizzle", "02_swizzle/", ""),
            ("swizle", "02_swizzle/", "swizzle"),  # one letter is missing,
            ("swiizzle", "02_swizzle/", "swizzle"),  # is too much,
            ("swozzle", "02_swizzle/", "swizzle"),  # is another,
            ("swzizle", "02_swizzle/", "swizzle"),  # has another place
            ("swizz", "02_swizzle/", ""),  # not yet typed
            ("registers_release", "23_specialized/", ""),  # in code alone
            ("SingleTileSch", "cutlass/", ""),  # in a table
            ("halves.cuh", "kernels/ptx/halves.cuh/", ""),
        ):
            with self.subTest(typed):
                page.locator("[data-md-component=search-query]").fill(typed)
                page.locator("[data-md-component=search-query]").press("Shift")  # a key went up
                link = page.locator(".md-search-result__link").first
                page.wait_for_function(
                    "([path]) => document.querySelector('.md-search-result__link')"
                    "?.pathname.endsWith(`/${path}`)", arg=[path],
                )  # fmt: skip
                self.assertEqual(link.get_attribute("href").partition("#")[0], f"{self.host}/{path}")
                said = page.locator(".searched").inner_text()
                self.assertEqual(said, f"Searched for: {told}" if told else "")
        self.expect_no_problems()

    def test_links_are_told_from_text_and_from_terms(self) -> None:
        page = self.open("23_specialized/")
        look = "e => getComputedStyle(e).textDecorationLine + getComputedStyle(e).textDecorationStyle"
        link = page.locator("article p > a:not([class])").first.evaluate(look)
        term = page.locator("article p > a.term").first.evaluate(look)
        self.assertEqual((link, term), ("underlinesolid", "underlinedotted"))

    def test_the_skip_link_and_tooltips_are_seen(self) -> None:
        page = self.open("23_specialized/")
        page.keyboard.press("Tab")
        skip = page.locator(".md-skip:focus")
        page.wait_for_function("getComputedStyle(document.querySelector('.md-skip')).opacity === '1'")
        at = "element => { const box = element.getBoundingClientRect(); return document.elementFromPoint("
        self.assertTrue(skip.evaluate(at + "box.x + box.width / 2, box.y + box.height / 2) === element }"))
        self.assertRegex(skip.evaluate("e => getComputedStyle(e).backgroundColor"), r"^rgb\(")
        page.locator("article a.term").first.hover()
        tip = page.locator(".md-tooltip2--active .md-tooltip2__inner")
        self.assertGreaterEqual(tip.evaluate("e => parseFloat(getComputedStyle(e).fontSize)"), 13)
        self.expect_no_problems()

    def test_no_serious_finding_of_axe(self) -> None:
        axe = need("axe_core_python")
        script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

        def look(page: Any, path: str) -> None:
            context = page.context.browser.new_context(color_scheme="light")
            fresh = context.new_page()
            fresh.goto(f"{Shared.host}/{path}")
            fresh.evaluate(START_WIDGETS)
            fresh.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
            if path == "02_swizzle/" and DATA.is_dir():  # lines that are hot
                press_run(fresh.locator("[data-widget=run]"))
            if path == "playground/" and DATA.is_dir():  # the form waits for the machine
                fresh.wait_for_selector(".fa-launch")
            # What fades in has its colours at once.
            fresh.add_style_tag(content="* { transition: none !important }")
            fresh.evaluate(script)
            call = "o => axe.run(document, o)"
            options: dict[str, Any] = {"resultTypes": ["violations"]}
            said = {"light": fresh.evaluate(call, options)["violations"]}
            set_scheme(fresh, "dark")  # the same elements in other colours
            options["runOnly"] = ["color-contrast"]
            said["dark"] = fresh.evaluate(call, options)["violations"]
            found = [
                f"{scheme}, {each['id']}: {node['html'][:90]}"
                for scheme, violations in said.items()
                for each in violations
                if each["impact"] in ("serious", "critical")
                for node in each["nodes"][:3]
            ]
            context.close()
            assert not found, "\n".join(found)

        paths = ("", "02_swizzle/", "22_wgmma/", "46_even/", "51_e4m3/", "ladder/", "playground/")
        paths += ("background/tensor_cores/", "howto_ci/", "kernels/ptx/mma.cuh/")
        self.assertEqual(in_parallel(paths, None, look), [])


class CodeTest(BrowserTest):
    def test_the_page_of_a_file_leads_back_and_on_and_marks_the_line(self) -> None:
        page = self.open("02_swizzle/")
        page.locator(".difference .filename a").first.click()
        page.wait_for_url(re.compile(r"02_swizzle\.cu/#"))
        line = page.locator(".row:target")
        self.assertIn("(chunk ^ (row & 7)) << 4", line.inner_text())
        unmarked = page.locator(".row").first.evaluate("e => getComputedStyle(e).backgroundColor")
        marked = line.evaluate("e => getComputedStyle(e).backgroundColor")
        self.assertNotEqual(marked, unmarked)
        page.locator("code a", has_text="kernels/ptx/ldmatrix.cuh").click()
        page.wait_for_url("**/kernels/ptx/ldmatrix.cuh/")
        page.locator("article p a", has_text="02_swizzle.cu").click()
        page.locator("article p a", has_text="02_swizzle").click()
        page.wait_for_url("**/02_swizzle/")
        self.expect_no_problems()

    def test_a_difference_fills_its_width_with_two_colours_and_two_columns_of_numbers(self) -> None:
        page = self.open("29_pinned/")
        place = page.locator(".difference").first
        rows = place.locator(".row").all()
        widths = {round(row.bounding_box()["width"]) for row in rows}
        self.assertEqual(len(widths), 1)
        self.assertGreaterEqual(widths.pop(), round(place.bounding_box()["width"]) - 2)
        read = "e => getComputedStyle(e).backgroundColor"
        kinds = ("added", "removed", "same")
        colours = {place.locator(f".row.{kind}").first.evaluate(read) for kind in kinds}
        self.assertEqual(len(colours), 3)
        page.get_by_text("The whole difference to").click()
        changed = page.locator("details .difference .row:not(.gap)")
        self.assertEqual(changed.count(), page.locator("details .row:is(.added, .removed)").count())
        numbers = changed.locator("i").evaluate_all("all => all.map((e) => e.dataset.line)")
        self.assertEqual(sum(number != "" for number in numbers), changed.count())


# Of every letter in a chart that is seen: words, size in pixels, its colour, the colour behind its middle.
LETTERS = """() => [...document.querySelectorAll(".chart svg text")].map((text) => {
  const box = text.getBoundingClientRect();
  const behind = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  const fill = (element) => getComputedStyle(element).fill;
  const ground = behind.find((e) => e.matches("svg path") && !e.closest("a") && fill(e) !== "none");
  const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  return [text.textContent, size, fill(text), ground && fill(ground)];
})"""


def hex_of(colour: str) -> str:
    """rgb(1, 2, 3) -> #010203."""
    return "#" + "".join(f"{int(channel):02x}" for channel in re.findall(r"\d+", colour)[:3])


class ChartsTest(BrowserTest):
    def open_tall(self, path: str, width: int) -> Any:
        """With all of its charts in the window."""
        page = self.open(path)
        page.set_viewport_size({"width": width, "height": 9000})
        page.wait_for_function(
            "[...document.querySelectorAll('.chart')].every((e) => !e.offsetHeight || e.querySelector('svg'))"
        )
        page.wait_for_timeout(100)  # the transitions of the theme
        return page

    def test_letters_have_eleven_pixels_and_stand_out_on_what_is_behind_them(self) -> None:
        for path, width in itertools.product(("", "ladder/", "roofline/", "machine/"), (1440, 390)):
            page = self.open_tall(path, width)
            for scheme in ("light", "dark"):
                set_scheme(page, scheme)
                with self.subTest(path=path, width=width, scheme=scheme):
                    seen = [each for each in page.evaluate(LETTERS) if each[3]]
                    self.assertGreater(len(seen), 40)
                    for words, size, fill, ground in seen:
                        self.assertGreaterEqual(size, 11, words)
                        contrast = colours.contrast(hex_of(fill), hex_of(ground))
                        self.assertGreaterEqual(contrast, 4.5, f"{words}: {fill} on {ground}")
                    if path in ("", "ladder/"):
                        grounds = {ground for *_, ground in seen}
                        self.assertGreater(len(grounds), 1, "no number is on a bar")
        self.expect_no_problems()

    def test_charts_are_as_wide_as_the_text(self) -> None:
        for width in (1440, 390):
            page = self.open_tall("ladder/", width)
            measure = "e => [e.clientWidth, e.closest('p').clientWidth]"
            for chart in page.locator(".chart svg:not(a *)").all():
                drawn, column = chart.evaluate(measure)
                self.assertEqual(drawn, column)

    def test_a_bar_says_its_idea_rate_and_parent_and_leads_to_its_chapter(self) -> None:
        page = self.open_tall("", 1440)
        bar = page.locator(".chart a[href$='/21_wgmma_qk/']")
        bar.hover()
        said = page.locator(".chart-says:visible").inner_text()
        self.assertRegex(said, r"^21 wgmma_qk: wgmma for .*; \d+ TFLOPS .*; \+\d+ % against 20 tma; \d+ % of ")
        self.picture(page, "chart")
        bar.click()
        page.wait_for_url(f"{self.host}/21_wgmma_qk/")
        page = self.open_tall("ladder/", 1440)
        lines = page.locator(".chart svg:has-text('by length') a")
        self.assertGreater(lines.count(), 5)
        lines.last.hover(force=True)
        self.assertRegex(page.locator(".chart-says:visible").inner_text(), r"TFLOPS at the right end")
        self.expect_no_problems()

    def test_the_start_page_switches_between_problems(self) -> None:
        page = self.open_tall("", 390)
        for name, first in (("Causal", "08"), ("Decode", "40"), ("FP32", "a0"), ("Forward", "01")):
            page.locator("label", has_text=re.compile(f"^{name}$")).click()
            page.locator(".chart:visible svg a").first.wait_for(state="attached")
            page.locator(f".chart:visible a[href*='/{first}_']").wait_for(state="attached")
            self.assertEqual(page.locator(".chart:visible").count(), 1)
        self.expect_no_problems()

    def test_without_scripts_charts_are_pictures(self) -> None:
        page = self.open("", java_script_enabled=False)
        picture = page.locator(".chart:visible img")
        self.assertEqual(picture.count(), 1)
        self.assertGreater(picture.bounding_box()["width"], 700)


if __name__ == "__main__":
    unittest.main()
