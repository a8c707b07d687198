# SPDX-License-Identifier: MIT
"""The documentation as built (test `site`): the path through it, its links, what it loads."""

from __future__ import annotations

import html
import os
import posixpath
import re
import struct
import unittest
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import support

support.need("mkdocs")

from book import glossary, source  # noqa: E402

import colours  # noqa: E402

SITE = Path(os.environ.get("FA_BUILD_DIR") or support.REPOSITORY / "build") / "site"
if not (SITE / "index.html").is_file():
    raise unittest.SkipTest(f"{SITE} is not built (scripts/docs.sh check)")

MKDOCS = (support.REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
LARGEST_IMAGE = 200_000  # bytes
LARGEST_HOME = 1_000_000  # unpacked; the index of the search comes when somebody opens it
LOADING = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}
LOADING |= {"modulepreload", "manifest"}
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Page(HTMLParser):
    """What the tests ask of a page: where it leads, what it loads, its words with what is around
    them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.inside: list[tuple[str, dict[str, str]]] = []
        self.next, self.previous = "", ""
        self.links: list[str] = []
        self.loads: list[str] = []
        self.images: list[dict[str, str]] = []
        self.words: list[tuple[str, tuple[tuple[str, dict[str, str]], ...]]] = []
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag not in VOID:
            self.inside.append((tag, values))
        address, kind = values.get("href", ""), values.get("class", "")
        if tag == "a" and address:
            self.links.append(address)
            self.next = address if "md-footer__link--next" in kind else self.next
            self.previous = address if "md-footer__link--prev" in kind else self.previous
        if tag == "link" and LOADING & set(values.get("rel", "").split()):
            self.loads.append(address)
        if tag != "a" and values.get("src"):
            self.loads.append(values["src"])
        self.loads += [part.split()[0] for part in values.get("srcset", "").split(",") if part]
        self.loads += [values["data"]] if tag == "object" and "data" in values else []
        if tag == "img":
            self.images.append(values)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(tag == "article" for tag, _ in self.inside):
            self.words.append((data, tuple(self.inside)))

    @property
    def url(self) -> str:
        return self.path.parent.relative_to(SITE).as_posix()

    def target(self, address: str) -> Path:
        """The file of a link to another page."""
        folder = posixpath.normpath(posixpath.join(self.url, unquote(urlsplit(address).path)))
        path = SITE / folder
        return path / "index.html" if path.is_dir() else path


@cache
def page_at(path: Path) -> Page:
    return Page(path)


def pages() -> Iterator[Page]:
    return (page_at(path) for path in sorted(SITE.rglob("*.html")) if path.name != "404.html")


def chapters() -> dict[Path, source.Rung]:
    rungs = source.rungs_of(support.REPOSITORY)
    return {SITE / rung.name / "index.html": rung for rung in rungs}


def walk() -> list[Page]:
    """From the first page by Next alone."""
    found = [page_at(SITE / "index.html")]
    while found[-1].next and len(found) < 1000:
        found.append(page_at(found[-1].target(found[-1].next)))
    return found


class PathTest(unittest.TestCase):
    def test_next_meets_every_chapter_once_in_the_order_of_the_catalogue(self) -> None:
        met = [page.path for page in walk() if page.path in chapters()]
        self.assertEqual(met, list(chapters()))

    def test_next_meets_every_page_of_the_navigation(self) -> None:
        met = [page.path for page in walk()]
        self.assertEqual(len(met), len(set(met)))
        shown = {page.path for page in pages() if not page.url.startswith(source.KERNELS)}
        self.assertEqual(set(met), shown)

    def test_previous_leads_back(self) -> None:
        met = walk()
        for page, following in pairwise(met):
            self.assertEqual(following.target(following.previous), page.path)


class ChapterTest(unittest.TestCase):
    def section(self, path: Path, name: str) -> str:
        match = re.search(rf'<h2 id="{name}">.*?(?=<h2 |</article>)', page_at(path).html, re.S)
        self.assertIsNotNone(match, f"{path}: no section {name}")
        assert match is not None
        return match[0]

    def test_every_chapter_shows_code_of_its_kernel(self) -> None:
        for path, rung in chapters().items():
            change = re.sub(
                r"<details.*?</details>", "", self.section(path, "the-change"), flags=re.S
            )
            self.assertIn(f">{rung.file}:", change, rung.name)

    def test_every_chapter_with_a_parent_has_the_whole_difference_folded(self) -> None:
        for path, rung in chapters().items():
            change = self.section(path, "the-change")
            count = change.count(f"The whole difference to {rung.parent}")
            self.assertEqual(count, 1 if rung.parent else 0, rung.name)

    def test_every_chapter_says_what_it_needs_and_answers_what_it_asks(self) -> None:
        for path, rung in chapters().items():
            with self.subTest(rung=rung.name):
                needs = re.search(r"<p>You need: .*<a ", page_at(path).html)
                self.assertTrue(needs, "no line of what is assumed")
                if 'id="exercise"' in page_at(path).html:
                    answer = re.search("<summary>Answer", self.section(path, "exercise"))
                    self.assertTrue(answer, "no folded answer")

    def test_no_marker_and_no_mathematics_is_left_over(self) -> None:
        for page in pages():
            for left in ("<!-- code:", "<!-- change:", " tflops -->", 'class="arithmatex"'):
                self.assertFalse(left in page.html, f"{page.path}: {left}")


SKIPPED = {"pre", "h1", "h2", "h3", "h4", "h5", "h6", "math", "svg", "script", "style"}
SKIPPED |= {"summary", "button", "template", "textarea", "select", "label", "kbd", "a"}


def unlinked(page: Page, terms: glossary.Glossary) -> list[str]:
    """Terms that are used on a page before a link to the glossary."""
    linked: set[str] = set()
    found = []
    for words, inside in page.words:
        tags = {tag for tag, _ in inside}
        if any(each in values for each in glossary.APART for _, values in inside):
            continue
        link = next((values for tag, values in inside if tag == "a"), None)
        if link is not None and link.get("class") == "term":
            linked.add(link["href"].partition("#")[2])
        if tags & SKIPPED:
            continue
        for match, term in terms.uses(words):
            whole = "code" not in tags or match[0] == words
            if whole and term.anchor not in linked:
                found.append(f"{page.url}: '{match[0]}'")
                linked.add(term.anchor)
    return found


class GlossaryTest(unittest.TestCase):
    def setUp(self) -> None:
        text = (support.REPOSITORY / "docs" / glossary.PAGE).read_text(encoding="utf-8")
        self.terms = glossary.Glossary.parse(text)

    def test_the_first_use_of_every_term_is_linked(self) -> None:
        for page in pages():
            if page.url != "glossary" and not page.url.startswith(source.KERNELS):
                self.assertEqual(unlinked(page, self.terms), [])

    def test_links_lead_to_entries(self) -> None:
        entries = page_at(SITE / "glossary" / "index.html").html
        for term in self.terms.terms:
            self.assertTrue(f'<h3 id="{term.anchor}">' in entries, f"no entry '{term.anchor}'")

    def test_terms_have_at_most_three_sentences(self) -> None:
        for term in self.terms.terms:
            sentences = re.findall(r"[.!?](?:\s+[A-Z]|$)", term.text)
            self.assertLessEqual(len(sentences), 3, term.name)

    def test_a_page_without_links_is_found(self) -> None:
        page = page_at(SITE / "23_specialized" / "index.html")
        bare = [(words, tuple(x for x in inside if x[0] != "a")) for words, inside in page.words]
        stripped = type("Bare", (), {"words": bare, "url": "bare"})()
        self.assertGreater(len(unlinked(stripped, self.terms)), 10)


class NavigationTest(unittest.TestCase):
    def test_only_the_part_of_the_page_is_unfolded(self) -> None:
        for page in walk():
            navigation = page.html.partition('data-md-level="0"')[2].partition('data-md-type="toc"')[0]
            switches = re.findall(r'<input class="md-nav__toggle[^>]* id="__nav_\d+"([^>]*)>', navigation)
            self.assertGreater(len(switches), 5, page.url)
            open_parts = sum("checked" in switch for switch in switches)
            self.assertEqual(open_parts, 0 if page.url == "." else 1, page.url)

    def test_rungs_are_marked_as_they_were_measured(self) -> None:
        home = page_at(SITE / "index.html").html
        for change in ("faster", "flat"):
            listed = re.search(rf'^    {change}: "(.*)"$', MKDOCS, re.M)
            assert listed is not None
            mark = rf'"(\w\d)_\w+/" class="md-nav__link">(?:(?!</a>).)*--\w+-{change}"'
            found = re.findall(mark, home, re.S)
            self.assertEqual(found, listed[1].split())

    def test_colours_of_families_are_those_of_the_charts(self) -> None:
        css = (SITE / "assets/book.css").read_text(encoding="utf-8")
        for dark, scheme in ((False, "default"), (True, "slate")):
            written = re.findall(
                r"--family-(\w+): (#\w+);", re.findall(rf'scheme="{scheme}"\] {{([^}}]*--family[^}}]*)}}', css)[0]
            )  # fmt: skip
            families = {rung.family for rung in chapters().values()}
            expected = {each: colours.COLOURS[colours.FAMILIES[each]][dark] for each in families}
            self.assertEqual(dict(written), expected)


class PreviewTest(unittest.TestCase):
    """What a search engine or a message shows of a page."""

    def metas(self, page: Page, name: str) -> list[str]:
        found = re.findall(rf'<meta (?:name|property)="{name}" content="([^"]*)">', page.html)
        self.assertEqual(len(found), page.html.count(f'="{name}"'), page.url)
        return [html.unescape(each) for each in found]

    def test_every_page_has_one_title_of_its_own_that_says_what_it_is(self) -> None:
        titles: dict[str, str] = {}
        for page in pages():
            (title,) = re.findall(r"<title>(.*?)</title>", page.html)
            self.assertGreater(len(title), len("Flash Ladder") + 5, page.url)
            self.assertNotIn(title, titles, page.url)
            titles[title] = page.url
            self.assertEqual(self.metas(page, "og:title"), [html.unescape(title)])

    def test_every_page_has_one_description_of_its_own(self) -> None:
        seen: dict[str, str] = {}
        for page in pages():
            (text,) = self.metas(page, "description")
            self.assertEqual(self.metas(page, "og:description"), [text])
            self.assertTrue(20 < len(text) <= 240, f"{page.url}: {text}")
            self.assertIsNone(re.search(r"<|&\w+;", text), f"{page.url}: {text}")
            self.assertNotIn(text, seen, page.url)
            seen[text] = page.url

    def test_every_page_has_one_picture(self) -> None:
        site = re.search(r'rel="canonical" href="(https?://[^"]*)"', page_at(SITE / "index.html").html)
        for page in pages():
            (address,) = self.metas(page, "og:image")
            if site:
                self.assertTrue(address.startswith(site[1]), f"{page.url}: {address}")
                path = SITE / address.removeprefix(site[1])
            else:  # relative, as all addresses of a site that may be anywhere
                path = page.target(address)
            header = path.read_bytes()[:24]
            self.assertEqual(header[:8], b"\x89PNG\r\n\x1a\n", str(path))
            self.assertEqual(struct.unpack(">II", header[16:]), (1200, 630), str(path))

    def test_a_map_has_addresses_or_is_not_there(self) -> None:
        sitemap = SITE / "sitemap.xml"
        published = 'rel="canonical"' in page_at(SITE / "index.html").html
        self.assertEqual(sitemap.is_file(), published)
        if published:
            listed = sitemap.read_text(encoding="utf-8").count("<loc>http")
            self.assertEqual(listed, len(list(pages())))

    def test_the_page_for_missing_pages_leads_to_every_part(self) -> None:
        page = page_at(SITE / "404.html")
        article = page.html.partition("<article")[2].partition("</article>")[0]
        parts = re.findall(r"^  - '?([^:'\n]+)", MKDOCS.partition("\nnav:\n")[2], re.M)
        self.assertGreater(len(parts), 5)
        for part in parts:
            self.assertIn(part, article)


class LoadingTest(unittest.TestCase):
    def assert_local(self, address: str, where: object) -> None:
        parts = urlsplit(address)
        self.assertTrue(not parts.netloc and parts.scheme in ("", "data"), f"{where}: {address}")

    def test_nothing_is_loaded_from_another_host(self) -> None:
        for page in [*pages(), page_at(SITE / "404.html")]:
            for address in page.loads:
                self.assert_local(address, page.path)

    def test_no_style_sheet_or_drawing_names_another_host(self) -> None:
        for path in [*SITE.rglob("*.css"), *SITE.rglob("*.svg")]:
            text = path.read_text(encoding="utf-8")
            named = re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')\s]+)", text)
            named += re.findall(r"<(?:image|use|script)[^>]*href=\"([^\"]+)\"", text)
            for address in named:
                self.assert_local(address, path)

    def test_addresses_are_relative_so_that_any_folder_serves_the_site(self) -> None:
        for page in pages():
            for address in page.links + page.loads:
                self.assertFalse(address.startswith("/"), f"{page.path}: {address}")

    def test_what_a_page_names_is_there(self) -> None:
        for page in pages():
            for address in page.links + page.loads:
                if not urlsplit(address).scheme and urlsplit(address).path:
                    self.assertTrue(page.target(address).is_file(), f"{page.path}: {address}")

    def test_every_image_has_words_and_a_dark_form(self) -> None:
        for page in pages():
            for image in page.images:
                name = f"{page.url}: {image['src']}"
                self.assertTrue(image.get("alt", "").strip(), f"{name} has no alternative text")
                if image["src"].endswith(".svg"):
                    text = page.target(image["src"]).read_text(encoding="utf-8")
                    has_dark = re.search(r"prefers-color-scheme:\s*dark", text)
                    self.assertIsNotNone(has_dark, f"{name} has no dark form")

    def test_images_and_the_first_page_are_small(self) -> None:
        for path in [*SITE.rglob("*.svg"), *SITE.rglob("*.png")]:
            self.assertLess(path.stat().st_size, LARGEST_IMAGE, str(path))
        home = page_at(SITE / "index.html")
        files = {home.path} | {home.target(address) for address in home.loads}
        files |= set((SITE / "assets/javascripts/workers").glob("search.*.js"))
        self.assertLess(sum(path.stat().st_size for path in files), LARGEST_HOME)


if __name__ == "__main__":
    unittest.main()
