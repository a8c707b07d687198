#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the README's picture of a live page: a chapter that has run its kernel in the browser.

  scripts/docs.sh check && scripts/picture.py     writes docs/assets/pictures/live_page.png

The site must have been built with its live parts, into FA_BUILD_DIR/site; needs Chromium.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import io
import os
import shutil
import threading
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(os.environ.get("FA_BUILD_DIR") or ROOT / "build") / "site"
PICTURE = ROOT / "docs/assets/pictures/live_page.png"
# The first is smaller: the tests of the pages take two thirds of the processor time with it.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chromium-browser")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
CHAPTER, COLOUR, COUNT, FUNCTION = "02_swizzle", "wavefr.", "ldmatrix wavefronts", "multiply_qk"
SIZE = {"width": 1240, "height": 1230}
COLOURS = 128  # as many as text and a heat map need; a quarter of the bytes
MOST_BYTES = 200_000


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def serve() -> http.server.ThreadingHTTPServer:
    """The site on a port of this host."""
    handler = functools.partial(Quiet, directory=SITE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run_chapter(page: Any) -> None:
    """Runs the kernel and brings what it shows into view: verdict, counts, source."""
    widget = page.locator("[data-widget=run]").first
    widget.scroll_into_view_if_needed()
    widget.locator(".fa-run").click()
    page.wait_for_selector("[data-widget=run][data-state=done]")
    widget.locator("select").last.select_option(label=COLOUR)
    page.evaluate(
        """([count, name]) => {
          const to = (box, row) => { box.scrollTop += row.getBoundingClientRect().top -
            box.getBoundingClientRect().top - 60; };
          const boxed = (row) => {
            let box = row.parentElement;
            while (box.scrollHeight <= box.clientHeight + 1) box = box.parentElement;
            return box;
          };
          const widget = document.querySelector("[data-widget=run]");
          const rows = [...widget.querySelectorAll("tr")];
          for (const text of [count, ` ${name}(`]) {
            const row = rows.find((each) => each.innerText.includes(text));
            to(boxed(row), row);
          }
          document.documentElement.style.scrollBehavior = "auto";
          const top = widget.getBoundingClientRect().top;
          scrollTo(0, scrollY + top - 60);
        }""",
        [COUNT, FUNCTION],
    )
    page.mouse.wheel(0, 1)  # downwards: upwards the page offers a way back to its top
    page.wait_for_timeout(1000)


def take() -> bytes:
    server = serve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"http://127.0.0.1:{server.server_port}/{CHAPTER}/")
        run_chapter(page)
        picture = page.screenshot()
        browser.close()
    server.shutdown()
    return bytes(picture)


def main() -> int:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.parse_args()
    if not (SITE / "assets/web/data").is_dir():
        parser.exit(3, f"picture.py: error: {SITE} has no live parts; run scripts/docs.sh check\n")
    image = Image.open(io.BytesIO(take())).convert("RGB").quantize(COLOURS)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    image.save(PICTURE, optimize=True)
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {size} bytes")
    return 0 if size < MOST_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
