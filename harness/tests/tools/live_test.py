# SPDX-License-Identifier: MIT
"""The live parts of the pages in a real browser: kernels that run, exercises, widgets."""

from __future__ import annotations

import json
import re
import unittest
from typing import Any

from support import REPOSITORY  # isort: split

import web_exercises
import browser
from browser import (
    DATA,
    BrowserTest,
    catalogue,
    in_parallel,
    live,
    press_run,
)

setUpModule = browser.setUpModule


def rung_data(rung: str) -> dict[str, Any]:
    """What scripts/web.py wrote; `expected` has problem and counts of `fa explain --json`."""
    return dict(json.loads((DATA / "rungs" / f"{rung}.json").read_text(encoding="utf-8")))


def shown_counts(place: Any, column: int = 0) -> dict[str, int]:
    cell = f"row.querySelectorAll('[data-value]')[{column}].dataset.value"
    read = f"rows => rows.map((row) => [row.dataset.key, {cell}])"
    rows = place.locator(".fa-counts tbody tr").evaluate_all(read)
    return {key: int(value) for key, value in rows}


# A page with the widgets' modules and nothing else to lay out.
EMPTY = "playground/"
ADD_WIDGET = """async ([kind, rung, state]) => {
  document.querySelectorAll(".fa-widget").forEach((each) => each.remove());
  history.replaceState(null, "", `?${state}`);
  const place = document.createElement("div");
  Object.assign(place.dataset, { widget: kind, rung });
  place.className = "fa-widget";
  document.querySelector("article").append(place);
  const address = document.querySelector('script[src$="assets/web/main.js"]').src;
  const widget = await import(new URL(`./${kind}.js`, address));
  await widget.start(place);
}"""


def add_widget(page: Any, kind: str, rung: str, state: str = "") -> Any:
    """A widget of a chapter, in place of the one that the page has."""
    page.evaluate(ADD_WIDGET, [kind, rung, state])
    return page.locator(f"[data-widget={kind}]")


@live
class RunTest(BrowserTest):
    def test_every_rung_counts_what_fa_explain_counts(self) -> None:
        """That each chapter has these widgets is looked at in PagesTest."""

        def look(page: Any, rung: str) -> None:
            wanted = rung_data(rung)["expected"]
            choice = wanted["choice"]
            place = add_widget(
                page, "run", rung, f"run=none,{choice['n']},{choice['d']},{choice['mask']}"
            )
            press_run(place)
            assert f"{rung}: correct" in place.inner_text(), place.inner_text()
            counts = shown_counts(place)
            assert counts == wanted["counts"], f"{counts} instead of {wanted['counts']}"

        names = [rung["name"] for rung in catalogue()]
        self.assertGreater(len(names), 40)
        self.assertEqual(in_parallel(names, EMPTY, look), [])

    def test_caches_of_any_kind(self) -> None:
        page = self.open("47_pages/?run=46_even,4096,128,pages")
        place = self.widget(page, "run")
        press_run(place)
        self.assertIn("47_pages: correct", place.inner_text())
        self.assertIn("46_even was not planned for N=4096 d=128 pages", place.inner_text())
        place.locator("label", has_text="cache").locator("select").select_option("lengths")
        press_run(place)
        copied = "global_copy_bytes"
        ours, theirs = shown_counts(place), shown_counts(place, 1)
        self.assertEqual(ours[copied], theirs[copied])
        self.assertGreater(ours["shuffle"], theirs["shuffle"])  # of the rows' places
        self.picture(page, "run_cache")
        self.expect_no_problems()

    def test_a_guess_stands_beside_the_count(self) -> None:
        page = self.open("02_swizzle/")
        place = self.widget(page, "run")
        guess = place.locator("input[inputmode=numeric]")
        self.assertIn("01_base counts", place.inner_text())
        guess.fill("20 000")
        guess.press("Tab")
        press_run(place)
        found = re.search(r"Guessed 20\u202f000, counted ([\d\u202f]+): [\d.]+ times", place.inner_text())
        self.assertIsNotNone(found, place.inner_text())
        counted = int(found[1].replace("\u202f", ""))
        ours, theirs = rung_data("02_swizzle")["expected"], rung_data("01_base")["expected"]
        changed = {key: value for key, value in ours["counts"].items() if value == counted}
        self.assertTrue(any(theirs["counts"].get(key, 0) > value for key, value in changed.items()))
        page.reload()
        place = self.widget(page, "run")
        self.assertEqual(place.locator("input[inputmode=numeric]").input_value(), "20 000")
        # What the build has counted is there at once, but for what is to be guessed.
        self.assertEqual(shown_counts(place), ours["counts"])
        asked = place.locator(".fa-counts tbody tr").first
        self.assertIn("?", asked.inner_text())
        self.assertNotIn(found[1], place.inner_text())
        place.locator("label", has_text="N ").locator("select").first.select_option(index=0)
        press_run(place)
        self.expect_no_problems()

    def test_a_rung_stands_beside_its_parent(self) -> None:
        page = self.open("02_swizzle/")
        place = self.widget(page, "run")
        press_run(place)
        self.assertEqual(shown_counts(place, 1), rung_data("01_base")["expected"]["counts"])
        lead = place.locator(".fa-lead").inner_text()
        self.assertRegex(lead, r"^ldmatrix: 9\.\d+ times fewer wavefronts than 01_base$")
        first = place.locator(".fa-counts tbody tr").first
        self.assertEqual(first.get_attribute("data-key"), "ldmatrix_wavefronts")
        self.assertRegex(place.locator(".fa-counts").first.inner_text(), r"(?s)wavefronts")
        self.assertGreater(place.locator("details .fa-counts tbody tr").count(), 3)
        # The source is open at the line with most of that count.
        colour = place.locator("label", has_text="Colour by").locator("select")
        self.assertEqual(colour.locator("option:checked").inner_text(), "wavefr.")
        counted = place.locator("tr[data-line] td[data-column='6']").all_inner_texts()
        most = max(int(text.replace("\u202f", "") or 0) for text in counted)
        hot = place.locator("tr.fa-hot")
        self.assertIn(f"{most:,}".replace(",", "\u202f"), hot.inner_text())
        window, line = place.locator(".fa-source").bounding_box(), hot.bounding_box()
        self.assertGreater(line["y"], window["y"])
        self.assertLess(line["y"] + line["height"], window["y"] + window["height"])
        line = place.locator(".fa-lines button").nth(40)
        line.click()
        self.assertGreater(place.locator("tr.fa-ptx").count(), 0)
        self.picture(page, "run_parent")

    def test_a_file_that_does_not_arrive_is_said_with_what_to_do(self) -> None:
        page = self.open("02_swizzle/?run=none,256,128,full")
        page.route("**/machine.wasm", lambda route: route.abort())
        place = self.widget(page, "run")
        place.locator(".fa-run").click()
        status = place.locator(".fa-status", has_text="failed")
        self.assertIn("the machine could not be loaded; check the connection", status.inner_text())
        page.unroute("**/machine.wasm")
        press_run(place)
        self.assertIn("correct", place.inner_text())

    def test_a_phone_shows_the_source_beside_the_chosen_count(self) -> None:
        page = self.open("02_swizzle/?run=none,256,128,full")
        page.set_viewport_size({"width": 390, "height": 900})
        place = self.widget(page, "run")
        press_run(place)
        colour = place.locator("label", has_text="Colour by").locator("select")
        for name, shown in (("instr.", ["instr."]), ("wavefr.", ["wavefr.", "ways"])):
            colour.select_option(label=name)
            heads = place.locator(".fa-lines thead th:visible").all_inner_texts()
            self.assertEqual(heads, [*shown, "line", "source"])
        begins = place.locator(".fa-lines td.fa-code").first.bounding_box()["x"]
        self.assertLess(begins, 200)
        self.picture(page, "run_phone")
        self.expect_no_problems()

def show_switches(place: Any) -> None:
    """They are shown once a reader looks at the place."""
    place.scroll_into_view_if_needed()
    place.page.wait_for_selector("[data-widget=break][data-state=ready]")


def outcome(place: Any) -> str:
    press_run(place, "noticed|nothing")
    return str(place.locator(".fa-finding").inner_text())


def switches(place: Any) -> list[tuple[int, str]]:
    """Number and text of each site."""
    texts = place.locator("[data-site]").all_inner_texts()
    return list(enumerate(texts))


def words_of(opcode: str) -> list[str]:
    """What may be said where an instruction is taken out; see the list."""
    path = REPOSITORY / "harness/tests/device/sync_findings.txt"
    rows = [line.split(" | ") for line in path.read_text(encoding="utf-8").splitlines()]
    found = [row[1] for row in rows if row[0][0] != "#" and opcode.startswith(row[0])]
    return found[0].split("; ")


@live
class BreakTest(BrowserTest):
    def test_a_barrier_off_is_a_race_and_on_is_none(self) -> None:
        page = self.open("03_kvpipe/")
        place = self.widget(page, "break")
        show_switches(place)
        switch = place.locator("[data-site]", has_text="bar.sync").first.locator("input")
        switch.uncheck()
        found = outcome(place)
        self.assertIn("race", found)
        self.assertGreaterEqual(place.locator("tr.fa-lit").count(), 2)
        named = place.locator("figcaption").all_inner_texts()
        self.assertEqual(len(named), 2, named)
        for number, text in enumerate(named, 1):
            self.assertRegex(text, rf"^Place {number}: kernels/ampere/03_kvpipe.cu, line")
        upper, lower = (each.bounding_box() for each in place.locator("figure").all())
        self.assertGreater(lower["y"], upper["y"] + upper["height"])
        address = place.locator("figcaption a").first.get_attribute("href")
        line = place.locator("tr.fa-lit .fa-number").first.inner_text()
        self.assertTrue(address.endswith(f"kernels/ampere/03_kvpipe.cu/#__codelineno-0-{line}"))
        self.picture(page, "break")
        switch.check()
        self.assertIn("Nothing was noticed", outcome(place))
        place.locator("[data-fault]", has_text="K and V").locator("input").check()
        self.assertIn("rejects", outcome(place))
        self.expect_no_problems()

    def test_a_site_and_a_fault_of_a_rung_say_what_the_tests_expect(self) -> None:
        """Of every sixth rung: sync_mutants_test.cpp looks at every site and every fault of all, and
        the page runs the same machine."""

        def look(page: Any, rung: str) -> None:
            place = add_widget(page, "break", rung)
            show_switches(place)
            sites = switches(place)
            unneeded = [text for _, text in sites if "not needed" in text]
            for site in rung_data(rung)["redundant"]:
                parts = (site["opcode"], site["reason"])
                assert any(all(part in text for part in parts) for text in unneeded), site
            needed = [number for number, text in sites if "not needed" not in text]
            tried = needed[len(needed) // 2 :][:1]
            for number in tried:
                switch = place.locator(f"[data-site='{number}'] input")
                switch.uncheck()
                found, opcode = outcome(place), sites[number][1].split()[0]
                expected = words_of(opcode)
                assert any(words in found for words in expected), f"{sites[number]}: {found}"
                switch.check()
            # Not every kernel has an instruction of its own for a line.
            offered = [
                (fault, place.locator(f"[data-fault='{fault['title']}'] input"))
                for fault in rung_data(rung)["faults"]
            ]
            faults = [(fault, switch) for fault, switch in offered if switch.count() == 1]
            # Of 72 all: packed sequences, windows, and what is reported of deterministic rungs alone.
            for fault, switch in faults if rung == "72_waves" else faults[-1:]:
                title = fault["title"]
                switch.check()
                found = outcome(place)
                assert fault["words"] in found, f"{title}: {found}"
                switch.uncheck()
            # 40 has nothing to synchronise.
            assert len(tried) + (rung == "40_warp") == 1, f"{len(tried)} sites"
            assert faults, "no fault"

        names = [rung["name"] for rung in catalogue()]
        later = {*names[names.index("03_kvpipe") :: 6], "39_varlen", "72_waves"}
        self.assertGreater(len(later), 10)
        self.assertEqual(in_parallel(sorted(later), EMPTY, look), [])

    def test_a_cache_that_is_read_wrongly_is_rejected(self) -> None:
        place = self.widget(self.open("40_warp/"), "break")
        show_switches(place)
        self.assertIn("no barrier, fence or wait", place.inner_text())
        bound = place.locator("[data-fault]", has_text="no bound on the last rows")
        bound.locator("input").check()
        self.assertIn("out of bounds", outcome(place))
        self.assertGreater(place.locator("tr.fa-lit").count(), 0)
        self.picture(place.page, "break_bound")
        bound.locator("input").uncheck()
        plans = ("K and V exchanged", "the scale left out", "one key less than the cache has")
        for title in plans:
            switch = place.locator(f"[data-fault='{title}'] input")
            switch.check()
            self.assertIn("rejects", outcome(place), title)
            switch.uncheck()
        self.assertIn("Nothing was noticed", outcome(place))
        self.expect_no_problems()

# The choices are made anew with every choice.
EVERY_INSTRUCTION = """place => {
  const choice = () => [...place.querySelectorAll("label")]
    .find((label) => label.textContent.startsWith("Instruction")).querySelector("select");
  return [...choice().options].map(({ value }) => {
    choice().value = value;
    choice().dispatchEvent(new Event("change"));
    const { total, counted } = place.querySelector(".fa-says").dataset;
    return [value, total, counted];
  });
}"""


@live
class BanksTest(BrowserTest):
    def wavefronts(self, rung: str) -> tuple[int, int, int]:
        page = self.open(f"01_base/?banks={rung}")
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
        page = self.open("01_base/?banks=a3_q_outer")
        place = self.widget(page, "banks")
        page.wait_for_selector("[data-widget=banks][data-state=done]")
        found = place.evaluate(EVERY_INSTRUCTION)
        self.assertGreater(len(found), 10)
        for option, total, counted in found:
            self.assertEqual(total, counted, option)

    def test_layouts_and_a_formula(self) -> None:
        page = self.open("01_base/?banks=02_swizzle")
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


SHARED = "{\n  .shared .align 4 .b8 cell[8];\n"
# Each warp stores to the same two words, and nothing orders the warps.
SHARED_RACES = """  st.shared.u32 [cell], %r3;
  st.shared.u32 [cell+4], %r3;
"""


# C = A B, n by n, a thread for each element of C.
MATMUL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry matmul(.param .u64 A, .param .u64 B, .param .u64 C, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [A];
  ld.param.u64 %rd2, [B];
  ld.param.u64 %rd3, [C];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mul.lo.s32 %r4, %r3, %r1;
  mul.wide.s32 %rd4, %r4, 4;
  add.s64 %rd4, %rd1, %rd4;
  mul.wide.s32 %rd5, %r2, 4;
  add.s64 %rd5, %rd2, %rd5;
  mul.wide.s32 %rd6, %r1, 4;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r5, 0;
next:
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f1, %f2, %f3, %f1;
  add.s64 %rd4, %rd4, 4;
  add.s64 %rd5, %rd5, %rd6;
  add.s32 %r5, %r5, 1;
  setp.lt.s32 %p1, %r5, %r1;
  @%p1 bra next;
  add.s32 %r6, %r4, %r2;
  mul.wide.s32 %rd7, %r6, 4;
  add.s64 %rd7, %rd3, %rd7;
  st.global.f32 [%rd7], %f1;
  ret;
}
"""


@live
class PlaygroundTest(BrowserTest):
    def play(self, address: str = "playground/", rung: str = "02_swizzle") -> Any:
        page = self.open(address)
        page.wait_for_selector("[data-widget=play][data-state=ready]")
        place = page.locator("[data-widget=play]")
        if "#" not in address:
            place.locator("select").first.select_option(rung)
            page.wait_for_function(
                "rung => rung === 'own' || document.querySelector('textarea').value.includes(rung)",
                arg=rung,
            )
        return place

    def test_it_opens_on_a_short_example_in_colours(self) -> None:
        place = self.play(rung="own")
        text = self.text(place)
        self.assertLess(text.count("\n"), 40)
        under = place.locator(".fa-under")
        self.assertEqual(under.inner_text().strip(), text.strip())
        for kind, words in (("opcode", "ld.global.f32"), ("register", "%f1"), ("comment", "//")):
            self.assertGreater(under.locator(f".fa-{kind}", has_text=words).count(), 0, kind)
        # A letter and its colour are at one place.
        page = place.page
        page.evaluate("document.querySelector('textarea').scrollTop = 90")
        page.wait_for_timeout(100)
        shift = under.evaluate("e => e.getBoundingClientRect().top")
        top = place.locator("textarea").evaluate("e => e.getBoundingClientRect().top - e.scrollTop")
        self.assertAlmostEqual(shift, top, delta=1.5)
        press_run(place)
        self.assertIn("buffer 1 afterwards", place.inner_text())
        self.picture(page, "playground_example")
        self.expect_no_problems()

    def test_findings_are_grouped_and_each_place_has_one_way_to_it(self) -> None:
        place = self.play(rung="own")
        text = self.text(place)
        self.put(place, text.replace("  ret;", SHARED_RACES + "  ret;").replace("{\n", SHARED, 1))
        press_run(place)
        groups = place.locator(".fa-group")
        self.assertEqual(groups.count(), 1, place.inner_text())
        self.assertIn("race", groups.locator("h4").inner_text())
        lines = groups.locator("button").all_inner_texts()
        self.assertEqual(len(lines), len(set(lines)))
        self.assertGreaterEqual(len(lines), 2)
        groups.locator("button").first.click()
        chosen = "e => e.value.slice(e.selectionStart, e.selectionEnd)"
        self.assertIn("shared", place.locator("textarea").evaluate(chosen))

    def text(self, place: Any) -> str:
        return str(place.locator("textarea").input_value())

    def put(self, place: Any, text: str) -> None:
        # fill() types, which takes long for a text of thousands of lines.
        put = "(editor, text) => { editor.value = text; editor.dispatchEvent(new Event('input')); }"
        place.locator("textarea").evaluate(put, text)

    def message(self, place: Any) -> str:
        press_run(place)
        return "\n".join(place.locator(".fa-message").all_inner_texts())

    def test_an_address_holds_an_edited_text(self) -> None:
        place = self.play()
        self.put(place, self.text(place).replace("\tret;", "\tmov.u32 %r1, 0;\n\tret;"))
        press_run(place)
        counts = shown_counts(place)
        place.get_by_text("Put this into the address").click()
        place.page.wait_for_url(re.compile("#play="))
        self.picture(place.page, "playground")
        other = self.play(place.page.url.removeprefix(f"{self.host}/"))
        press_run(other)
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
        place = self.play(rung="own")
        place.page.wait_for_selector("[data-widget=play] .fa-launch")
        filled = place.locator("label", has_text="filled with").first.locator("select")
        filled.select_option("index")
        self.assertIn("buffer 1 afterwards: 0, 2, 4, 6, 8", self.message(place))
        filled.select_option("zero")
        self.assertIn("buffer 1 afterwards: 0, 0, 0, 0, 0", self.message(place))
        self.expect_no_problems()

    def test_a_pasted_text_gets_the_form_of_its_own_launch(self) -> None:
        place = self.play(rung="own")
        place.page.wait_for_selector("[data-widget=play] .fa-launch")
        self.put(place, MATMUL)
        rows = place.locator(".fa-arguments li")
        rows.filter(has_text=".u32 n").locator("input").fill("16")
        rows.filter(has_text=".u32 n").locator("input").press("Tab")
        place.locator("label", has_text="block").locator("input").fill("16,16")
        for name in ("A", "B"):
            fills = rows.filter(has_text=f".u64 {name}").locator("label", has_text="filled with")
            fills.locator("select").select_option("index")
        # The sum over k of k (16 k + j) is 19840 + 120 j.
        self.assertIn("buffer 2 afterwards: 19840, 19960, 20080", self.message(place))
        self.assertEqual(shown_counts(place)["global_load_requests"], 8 * 16 * 2)
        self.picture(place.page, "pasted")
        place.get_by_text("Put this into the address").click()
        place.page.wait_for_url(re.compile("#play="))
        place.page.reload()
        place.page.wait_for_selector("[data-widget=play][data-state=ready]")
        self.assertIn("buffer 2 afterwards: 19840, 19960, 20080", self.message(place))
        self.expect_no_problems()


@live
@unittest.skipUnless((DATA / "exercises/ex1.json").is_file(), "no CUDA compiler made the exercises")
class ExerciseTest(BrowserTest):
    def test_each_is_open_as_shipped_and_solved_by_its_answer(self) -> None:
        page = self.open("exercises/")
        for exercise in web_exercises.KERNELS:
            with self.subTest(exercise=exercise.number):
                place = page.locator(f"[data-widget=exercise][data-number='{exercise.number}']")
                place.scroll_into_view_if_needed()
                place.locator(".fa-run").wait_for()
                self.assertEqual(self.check_one(place, {}), "open")
                self.assertGreater(place.locator(".fa-found .fa-bad").count(), 0)
                answers = web_exercises.answers(exercise)
                self.assertEqual(self.check_one(place, answers), "solved", place.inner_text())
        self.picture(page, "exercises")
        self.expect_no_problems()

    def check_one(self, place: Any, formulas: dict[str, str]) -> str:
        """Of several widgets of a page."""
        for name, formula in formulas.items():
            place.locator(f"[data-formula={name}]").fill(formula)
        place.locator(".fa-run").click()
        number = place.get_attribute("data-number")
        done = (f"[data-number='{number}'][data-state={state}]" for state in ("solved", "open"))
        place.page.wait_for_selector(",".join(done))
        return str(place.get_attribute("data-state"))

    def test_the_address_keeps_a_formula_and_a_mistake_has_a_message(self) -> None:
        page = self.open("exercises/")
        place = self.widget(page, "exercise")
        formula = place.locator("[data-formula=maximum]")
        formula.fill("max(m, q)")
        formula.press("Tab")
        self.assertEqual(self.check_one(place, {}), "open")
        self.assertIn("'q' is not a number, ( or one of m, s, min, max, exp", place.inner_text())
        page.reload()
        place = self.widget(page, "exercise")
        self.assertEqual(place.locator("[data-formula=maximum]").input_value(), "max(m, q)")
        self.expect_no_problems()

    def test_enter_checks_and_what_was_said_before_goes(self) -> None:
        page = self.open("exercises/")
        place = page.locator("[data-number='6']")
        place.scroll_into_view_if_needed()
        right = {"a_row": "lane / 4 + i % 2 * 8", "a_k": "lane % 4 * 2 + i / 2 * 8"}
        right |= {"b_k": "lane % 4 * 2"}  # of the shipped formulas this one is left wrong
        for name, formula in right.items():
            place.locator(f"[data-formula={name}]").fill(formula)
        place.locator("[data-formula=b_k]").press("Enter")
        page.wait_for_selector("[data-number='6'][data-state=open]")
        wrong = place.locator("[aria-invalid]")
        self.assertEqual(wrong.evaluate_all("all => all.map((e) => e.dataset.formula)"), ["b_k"])
        self.assertIn("lane = 0, i = 1: yours is 0, one of a solution 8", place.inner_text())
        self.assertRegex(place.locator(".fa-found").inner_text(), r"thread \d+: warp \d+, lane \d+")
        self.assertIn("0 of 17 solved", page.locator(".fa-progress").inner_text())
        place.locator("[data-formula=b_k]").fill("lane % 4 * 2 + i * 8")
        self.assertEqual(place.locator(".fa-found li").count(), 0)
        self.assertEqual(wrong.count(), 0)
        family = "e => getComputedStyle(e).fontFamily"
        for fixed in (".fa-formula", ".fa-gaps code", "small code"):
            self.assertIn("mono", place.locator(fixed).first.evaluate(family).lower(), fixed)
        place.locator("[data-formula=b_k]").press("Enter")
        page.wait_for_selector("[data-number='6'][data-state=solved]")
        page.reload()
        page.locator(".fa-progress", has_text="1 of 17 solved").wait_for()
        self.assertEqual(page.locator(".fa-progress .fa-good").inner_text(), "6 ✓")
        self.picture(page, "exercises_progress")
        self.expect_no_problems()

    def test_padding_and_permutation_both_end_the_conflict(self) -> None:
        place = self.open("exercises/?ex3=offset%3Drow").locator("[data-number='3']")
        place.scroll_into_view_if_needed()
        place.locator(".fa-run").wait_for()
        self.assertEqual(place.locator("[data-formula=offset]").input_value(), "row")
        self.assertEqual(self.check_one(place, {"offset": "row * 32 + (column ^ row)"}), "solved")
        self.assertEqual(self.check_one(place, {"offset": "row * 64 + column"}), "open")
        self.assertRegex(place.inner_text(), "bounds|race|exceeds")


class LivePageTest(BrowserTest):
    def place(self, name: str, address: str) -> Any:
        return self.widget(self.open(address), name)

    @live
    def test_the_lanes_of_a_fragment(self) -> None:
        place = self.place("holds", "background/tensor_cores/")
        self.assertTrue(place.locator("img").is_visible())  # until there is a result, which comes by itself
        place.page.wait_for_selector("[data-widget=holds][data-state=done]")
        tiles = {"a": (8, 1, 0, 1), "trans": (1, 8, 0, 2), "b": (2, 3, 13, 0), "c": (9, 3, 5, 3)}
        for tile, (row, column, lane, register) in tiles.items():
            place.locator("select").select_option(tile)
            place.page.wait_for_selector("[data-widget=holds][data-state=done]")
            with self.subTest(tile):
                cell = place.locator("tbody tr").nth(row).locator("td").nth(column)
                self.assertEqual(cell.get_attribute("data-lane"), str(lane))
                self.assertEqual(cell.get_attribute("data-register"), str(register))
        self.picture(place.page, "holds")

    @live
    def test_the_timeline_has_every_warp(self) -> None:
        place = self.place("timeline", "background/hopper/")
        press_run(place)
        self.assertEqual(place.locator("svg text", has_text="warp").count(), 12)
        colour = "e => getComputedStyle(e).fill"
        drawn = {"matrix": "rgb(35, 95, 174)", "arithmetic": "rgb(168, 77, 8)", "copy": "rgb(27, 112, 71)"}
        for kind, wanted in drawn.items():  # blue, orange and green of plots/figures/canvas.py
            self.assertEqual(place.locator(f"rect.fa-kind-{kind}").first.evaluate(colour), wanted, kind)
        before = place.locator(".fa-now").inner_text()
        place.locator("svg").hover()
        self.assertNotEqual(place.locator(".fa-now").inner_text(), before)
        self.assertGreater(place.locator(".fa-kind-wait").count(), 1)
        self.picture(place.page, "timeline")

    @live
    def test_softmax_by_hand(self) -> None:
        place = self.place("softmax", "background/attention/?s=1,1,1,1,1,1&v=1,2,3,4,5,6")
        for _ in range(2):
            place.locator(".fa-run").click()
        self.assertIn("O / l = 3.5; all six at once, in FP64: 3.5", place.inner_text())
        place = self.place("softmax", "background/attention/?s=1,2,3,4,5,100&max=no")
        for _ in range(2):
            place.locator(".fa-run").click()
        self.assertIn("O / l = NaN", place.inner_text())

    @live
    def test_a_score_follows_the_pointer(self) -> None:
        place = self.place("softmax", "background/attention/")
        column = place.locator(".fa-hold").first.bounding_box()
        before = place.locator(".fa-score").first.bounding_box()["height"]
        page = place.page
        page.mouse.move(column["x"] + 5, column["y"] + column["height"] - 30)
        page.mouse.down()
        page.mouse.move(column["x"] + 5, column["y"] + 20, steps=5)
        page.mouse.up()
        self.assertGreater(place.locator(".fa-score").first.bounding_box()["height"], before + 20)
        first = place.locator("label", has_text="Scores").locator("input").input_value()
        self.assertGreater(float(first.split(",")[0]), 1)
        self.picture(page, "softmax")
        self.expect_no_problems()

    @live
    def test_the_stride_of_a_load_slides(self) -> None:
        place = self.place("banks", "background/first_kernel/")
        said, slider = place.locator(".fa-says"), place.locator("input[type=range]")
        for kind, stride, total in (("4", 32, 32), ("4", 33, 1), ("16", 33, 4), ("16", 0, 2)):
            place.locator("select").select_option(kind)
            slider.fill(str(stride))
            self.assertEqual(said.get_attribute("data-total"), str(total), f"{kind} {stride}")
        place.locator(".fa-access").first.hover()
        self.assertIn("byte 0, banks 0 to 3", place.locator(".fa-hover").inner_text())

    @live
    def test_chapters_have_their_banks_at_once(self) -> None:
        for chapter, wavefronts in (("01_base", "8"), ("02_swizzle", "1")):
            place = self.place("banks", f"{chapter}/")
            self.assertEqual(place.locator(".fa-says").get_attribute("data-wavefronts"), wavefronts)

    @live
    def test_the_ring_and_the_wrong_parity(self) -> None:
        def after(place: Any, actions: str) -> str:
            for action in actions.split():
                place.locator(f"[data-action={action}]").click()
            return str(place.locator("[role=status]").inner_text())

        right = self.place("ring", "background/hopper/")
        self.assertIn("producer waits", after(right, "produce produce produce"))
        self.assertIn("computed with tile 0", after(right, "land consume"))
        self.assertIn("copy of tile 2", after(right, "produce"))
        states = right.locator("[data-slot]").evaluate_all("all => all.map((e) => e.dataset.slotState)")
        self.assertEqual(states, ["loading", "loading"])
        self.picture(right.page, "ring")
        wrong = self.place("ring", "background/hopper/?parity=wrong")
        self.assertIn("memory that nobody has written", after(wrong, "produce consume"))

    @live
    def test_the_chart_shows_committed_rates(self) -> None:
        place = self.place("chart", "ladder/")
        shown = place.locator("svg a").all()
        rows = json.loads((DATA / "chart.json").read_text(encoding="utf-8"))["h200"]
        usual = {"kind": "rung", "n": 8192, "d": 128, "causal": False, "spread": 1.0}
        chosen = (row for row in rows if all(row[key] == usual[key] for key in usual))
        chosen = (row for row in chosen if row["variant"] is None)  # a rung's own tile
        best = max(chosen, key=lambda row: row["tflops"])
        labels = [each.get_attribute("aria-label") for each in shown]
        self.assertTrue(any(f"{best['tflops']:.1f} TFLOPS" in label for label in labels))
        self.assertTrue(all(each.get_attribute("href").startswith(self.host) for each in shown))
        self.picture(place.page, "chart")


if __name__ == "__main__":
    unittest.main()
