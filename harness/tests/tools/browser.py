# SPDX-License-Identifier: MIT
"""What the tests of the site in a real browser share (browser_test.py, live_test.py,
times_test.py).

The site is the one that `scripts/docs.sh check` built into FA_BUILD_DIR/site. Pictures for a person
to look at are written to the folder that FA_SCREENSHOTS names.
"""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import queue
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from support import need  # isort: split

playwright = need("playwright.sync_api")
picture = need("picture")

SITE: Path = picture.SITE
DATA = SITE / "assets/web/data"
BROWSERS_AT_A_TIME = 2

if picture.BROWSER is None:
    raise unittest.SkipTest(f"none of {', '.join(picture.BROWSERS)} is installed")
if not (SITE / "index.html").is_file():
    raise unittest.SkipTest("the site was not built (scripts/docs.sh check)")

live = unittest.skipUnless(DATA.is_dir(), "the site has no live parts (scripts/docs.sh says why)")


class Session:
    """A browser; playwright's objects belong to the thread that made them."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.problems: list[str] = []
        self.playwright = playwright.sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            executable_path=picture.BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )

    def close(self) -> None:
        self.browser.close()
        self.playwright.stop()

    def open(self, path: str | None = "", **options: Any) -> Any:
        """A page in a fresh context; what goes wrong in it is collected."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(60_000)  # other tests have the processors, too
        page = context.new_page()

        def note(text: object) -> None:
            self.problems.append(f"{page.url}: {text}")

        def note_failure(request: Any) -> None:
            # What the next page cut off is no failure of this one.
            if request.failure != "net::ERR_ABORTED":
                note(f"{request.url} failed: {request.failure}")

        page.on("console", lambda message: message.type == "error" and note(message.text))
        page.on("pageerror", note)
        page.on("requestfailed", note_failure)
        page.on("request", self.expect_own_host)
        if path is not None:
            page.goto(f"{self.host}/{path}")
        return page

    def expect_own_host(self, request: Any) -> None:
        if not request.url.startswith((self.host, "data:", "blob:")):
            self.problems.append(f"{request.frame.url} asks {request.url}")


class Shared:
    """The site on a port of this host, and a browser, for all tests."""

    host: str
    session: Session


def setUpModule() -> None:
    server = picture.serve()
    unittest.addModuleCleanup(server.shutdown)
    Shared.host = f"http://127.0.0.1:{server.server_port}"
    Shared.session = Session(Shared.host)
    unittest.addModuleCleanup(Shared.session.close)


T = TypeVar("T")


def failures(session: Session, page: Any, look: Callable[[Any, T], object], item: T) -> list[str]:
    """What is wrong with an item: what the browser noted, and what `look` raised."""
    session.problems.clear()
    try:
        look(page, item)
    except (AssertionError, playwright.Error) as failure:
        return [f"{item}: {failure}", *session.problems]
    return list(session.problems)


def in_parallel(
    items: Iterable[T], begin: str | None, look: Callable[[Any, T], object]
) -> list[str]:
    """Calls look(page, item) for all items, in a few browsers; answers with what failed. An item
    that fails leaves the others a fresh page."""
    left: queue.SimpleQueue[T] = queue.SimpleQueue()
    for item in items:
        left.put(item)

    def work(_: int) -> list[str]:
        session = Session(Shared.host)
        found: list[str] = []
        page = session.open(begin)
        while not left.empty():
            try:
                item = left.get_nowait()
            except queue.Empty:
                break
            new = failures(session, page, look, item)
            found += new
            if new:
                page.context.close()
                page = session.open(begin)
        session.close()
        return found

    with concurrent.futures.ThreadPoolExecutor(BROWSERS_AT_A_TIME) as pool:
        return [each for found in pool.map(work, range(BROWSERS_AT_A_TIME)) for each in found]


class BrowserTest(unittest.TestCase):
    def setUp(self) -> None:
        self.host = Shared.host
        self.problems = Shared.session.problems
        self.problems.clear()

    def open(self, path: str | None = "", **options: Any) -> Any:
        page = Shared.session.open(path, **options)
        self.addCleanup(page.context.close)
        return page

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


def press_run(place: Any, until: str = "done") -> None:
    """`until`: the states, separated by |, of which one must come."""
    place.locator(".fa-run:visible").first.click()
    page, name = place.page, place.get_attribute("data-widget")
    states = (f"[data-widget={name}][data-state={state}]" for state in until.split("|"))
    page.wait_for_selector(",".join(states))


@functools.cache
def pages() -> list[str]:
    """Addresses below the host: every page, but of those of source files, which one template makes,
    the longest only."""
    files = sorted(SITE.rglob("index.html"))
    sources = [file for file in files if file.relative_to(SITE).parts[0] == "kernels"]
    sources.remove(max(sources, key=lambda file: file.stat().st_size))
    found = [file.parent.relative_to(SITE) for file in files if file not in sources]
    return ["" if path == Path(".") else f"{path}/" for path in found]


def catalogue() -> list[dict[str, Any]]:
    return list(json.loads((DATA / "rungs.json").read_text(encoding="utf-8"))["rungs"])


# Else the side bars take their time.
SET_THEME = """theme => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important }";
  document.head.append(style);
  document.body.setAttribute("data-md-color-scheme", theme);
}"""


def set_scheme(page: Any, scheme: str) -> None:
    """Light or dark, as for a reader who switches."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate(SET_THEME, {"light": "default", "dark": "slate"}[scheme])
