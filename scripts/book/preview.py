# SPDX-License-Identifier: MIT
"""MkDocs hook: what a link to a page shows elsewhere, a sentence and a picture.

The sentence is the page's message, which is its first paragraph in bold, or else its first paragraph
that is not in italics. The picture has the title and the sentence of the page, and the ladder.
"""

from __future__ import annotations

import html
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))

from book.source import KERNELS, Rung, rungs_of

import colours

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "assets/previews"
SIZE = (1200, 630)  # as sites that show previews ask for
MARGIN = 72
LONGEST = 240  # characters of a sentence
PARAGRAPH = re.compile(r"<p>(?!You need:)(.*?)</p>", re.S)
MESSAGE = re.compile(r"<p><strong>(.*?)</strong></p>", re.S)
MATHEMATICS = re.compile(r"<math.*?</math>", re.S)


def sentence_of(content: str) -> str:
    """Plain text of at most LONGEST characters."""
    found = MESSAGE.search(content) or next(
        (each for each in PARAGRAPH.finditer(content) if len(plain(each[1])) > 40), None
    )
    text = plain(found[1]) if found else ""
    whole, end, _ = text[:LONGEST].rpartition(". ")
    if len(text) <= LONGEST or not whole:
        return textwrap.shorten(text, LONGEST, placeholder=" ...")
    return whole + end.strip()


def plain(content: str) -> str:
    text = re.sub(r"<[^>]*>", "", MATHEMATICS.sub("...", content))
    return " ".join(html.unescape(text).split())


# --- pictures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preview:
    title: str
    sentence: str
    name: str  # of a rung, or of another page


def font(size: int, weight: str = "") -> ImageFont.FreeTypeFont:
    folder = Path(matplotlib.get_data_path()) / "fonts/ttf"
    return ImageFont.truetype(folder / f"DejaVuSans{weight}.ttf", size)


def lines_of(text: str, look: ImageFont.FreeTypeFont) -> list[str]:
    """As wide as the picture."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if look.getlength(longer) <= SIZE[0] - 2 * MARGIN:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def draw(preview: Preview, rungs: list[Rung], file: Path) -> None:
    image = Image.new("RGB", SIZE, colours.BACKGROUND)
    canvas = ImageDraw.Draw(image)
    own = next((rung for rung in rungs if rung.name == preview.name), None)
    accent = colours.of_family(own.family) if own else colours.INK
    y = MARGIN
    canvas.text((MARGIN, y), "Flash Ladder", font=font(30, "-Bold"), fill=colours.MUTED)
    for text, size, weight, fill, gap in (
        (preview.title, 58, "-Bold", accent, 70),
        (preview.sentence, 32, "", colours.INK, 36),
    ):
        look = font(size, weight)
        y += gap
        for line in lines_of(text, look)[:5]:
            canvas.text((MARGIN, y), line, font=look, fill=fill)
            y += round(1.3 * size)
    step = (SIZE[0] - 2 * MARGIN) / len(rungs)
    for number, rung in enumerate(rungs):
        left, bottom = MARGIN + number * step, SIZE[1] - 44
        height = 46 if rung is own else 16
        box = (left, bottom - height, left + 0.75 * step, bottom)
        is_soft = rung is not own and own is not None
        canvas.rectangle(box, fill=colours.of_family(rung.family, soft=is_soft))
    image.quantize(64, Image.Quantize.FASTOCTREE).save(file)


# --- events ---------------------------------------------------------------------------------------

previews: dict[str, Preview] = {}  # name of the picture -> what is on it


def on_files(files: Files, config: MkDocsConfig) -> None:
    previews.clear()


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """For scripts/book/theme/main.html; runs behind scripts/book/hook.py, which completes a page."""
    uri = page.file.src_uri
    title = html.unescape(page.toc.items[0].title)
    if uri.startswith(f"{KERNELS}/"):  # as the page that the file was written for
        sentence = f"{title}, with its lines numbered: a file of the kernels that this book is about."
        name = Path(uri).name.partition(".")[0]
        names = {rung.name for rung in rungs_of(ROOT)}
        picture = name if name in names else "index"
    else:
        sentence = sentence_of(content)
        picture = uri.removesuffix(".md").replace("/", "-")
        previews[picture] = Preview(title, sentence, picture)
    page.meta["description"] = html.escape(sentence)
    page.meta["picture"] = f"{FOLDER}/{picture}.png"


def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    (site / FOLDER).mkdir(parents=True, exist_ok=True)
    rungs = rungs_of(ROOT)
    for name, preview in previews.items():
        draw(preview, rungs, site / FOLDER / f"{name}.png")
    if not config.site_url:  # a map has whole addresses, or none
        for file in site.glob("sitemap.xml*"):
            file.unlink()
