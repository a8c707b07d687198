#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps the documentation equal to the committed measurements and to the catalogue.

  scripts/docs.py --write     fills tables, numbers, navigation; renders charts and figures
  scripts/docs.py --check     prints a diff of what is out of date and exits 1

A key whose measurement is missing keeps its text and is an error (exit code 2); all others are
filled. Of a rung that a result set has no row of, because it is newer, of limits where there are none,
and of another implementation that a file does not have, the pages say so instead.

Tables, in README.md and docs/**/*.md, stand between two comments (FILE is a result set below
plots/results, h200/ladder: a folder of runs, or a single run, h200/ladder.json; PROBLEM is a sequence
length at B=16 H=16 D=128, with ,causal behind it or not, or BATCH,HEADS,SEQ,DIM[,causal][,float32], with
the inputs where they are not the usual ones: ,rising or ,spread=8). Changes and shares of a folder of
runs have the half-width of their 95 % interval, +7.4 ± 0.3 %:

  <!-- table:families -->                a folded list for each family: rung, rate, idea
  <!-- table:ladder FILE PROBLEM -->     TFLOPS, shares of the card's limit and of FA2, change against
                                         the parent; peers below
  <!-- table:limits CARD -->             what bare loops reach on a card (fa limits)
  <!-- table:memory FILE PROBLEM -->     time and memory at every length, up to what does not fit
  <!-- table:caches FILE -->             the rungs that decode at the two caches by which steps are told
  <!-- table:ncu ncu -->                 the virtual machine's counts against an H200's hardware
                                         counters; ncu_decode
      ... generated ... <!-- /table -->

The key of a number in a sentence is a comment directly behind it; a new number begins as ?:

  812<!-- 34 tflops --> TFLOPS, ?<!-- 34 tflops / cudnn --> of cuDNN

  [FILE] ID [PROBLEM] FIELD             a field of a row; FILE: else that of the H200 for the dtype, a
                                        cache or gradients; PROBLEM: else 8192; with ,lengths at its end the rows whose
                                        batch entries have keys of their own
  [FILE] ID [PROBLEM] FIELD / ID [PROBLEM] [flat]    0.92, the quotient with another row
  [FILE] ID [PROBLEM] FIELD % ID [PROBLEM] [flat]    +4.1 %, the change against it
      Of a folder of runs: the geometric mean over the runs, each quotient of two rows of the same
      run. Where its 95 % interval contains 1, the key must end with the word flat, and else it must not.
  limit CARD LOOP FIELD                 of fa limits; FIELD: rate, rate_back_to_back, per_clock_sm,
                                        clock_mhz, power_w
  sass ENTRY KIND                       instructions of a kind in the main loop
  counts ID DIM KEY [REF]               a count of the machine, 0 if nothing of that name happened;
                                        REF: mma (for each m16n8k16 product), or an ID (times of it)
      ID: a rung, ID@TILE for an ablation (01@64x128w4), or a peer (fa2, cudnn, cublas)
      FIELD: see FIELDS in pages/site.py

docs/assets/strips.json: the result under the title of each chapter (scripts/book/strip.py).
mkdocs.yml: the lines between "# chapters: begin" and "# chapters: end" are the chapters, a part for
each family, and those of "# changes" are what the navigation marks. Code of the kernels is between
markers too (scripts/book/code.py). Links into the glossary (scripts/book/glossary.py), mathematics and
whole differences are added when the site is built.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from book import code
from book.source import BookError, Rung
from pages import decode, evidence, prose, results, strips
from pages.charts import chart_problems, draw_figures, render_charts
from pages.numbers import number
from pages.site import REPOSITORY, NotMeasured, Site, Unsaid

from ladder import Catalogue, LadderError

TABLE = re.compile(r"(<!-- table:([^>]*?) -->\n)(.*?)(<!-- /table -->)", re.S)
OPENING = re.compile(r"<!-- table:[^>]*-->")
# Family -> pages that are read before its first chapter.
BEFORE = {
    "ampere": {"Tensor cores": "tensor_cores"},
    "hopper": {"Hopper's units": "hopper"},
    "decode": {"The other roof: decode": "decode"},
}
GENERATED = r"( *)(# {0}: begin[^\n]*\n)(.*?)( *# {0}: end)"  # in mkdocs.yml


TABLES: dict[str, Callable[..., str]] = {
    "families": results.families_list,
    "ladder": results.ladder_table,
    "limits": results.limits_table,
    "caches": decode.caches_table,
    "memory": results.memory_table,
    "ncu": evidence.ncu_table,
}


def table(site: Site, page: Path, key: str) -> str:
    name, *arguments = key.split()
    if name not in TABLES:
        raise LadderError(f"unknown table '{name}'; known: {', '.join(TABLES)}")
    expected = TABLES[name].__code__.co_argcount - 2
    if len(arguments) != expected:
        raise LadderError(f"table:{key}: {expected} arguments expected, got {len(arguments)}")
    return TABLES[name](site, page, *arguments)


# --- files ----------------------------------------------------------------------------------------


def fill_table(site: Site, page: Path, match: re.Match[str]) -> str:
    """A table and the comments around it; one that cannot be made stays, and is an error."""
    try:
        return match[1] + table(site, page, match[2]) + match[4]
    except NotMeasured as reason:
        return f"{match[1]}{reason}\n{match[4]}"
    except LadderError as error:
        site.errors.append(f"{page.relative_to(site.root)}: {error}")
        return match[0]


def fill_page(site: Site, page: Path, text: str) -> str:
    """The page with all tables, code and numbers filled; an error leaves what it is about as it was."""
    name = page.relative_to(site.root)

    def complain(error: str) -> None:
        site.errors.append(f"{name}: {error}")

    def value(key: str) -> str:
        try:
            return number(site, key)
        except NotMeasured as reason:
            return str(reason)
        except Unsaid as wrong:
            site.unsaid.append(f"{name}: {wrong}")
            return wrong.value

    if len(TABLE.findall(text)) != len(OPENING.findall(text)):
        complain("a table: marker has no end, or stands inside another")
        return text
    text = TABLE.sub(lambda match: fill_table(site, page, match), text)
    try:
        text = code.with_code(text, site.root, *rungs_of(site, page))
    except BookError as error:
        complain(str(error))
    return prose.filled(text, value, complain)


def rungs_of(site: Site, page: Path) -> tuple[Rung | None, Rung | None]:
    """The rung of a chapter, and its parent."""
    found = {rung.id: Rung(rung.name, rung.parent, rung.family) for rung in site.catalogue.rungs}
    own = next((rung for rung in found.values() if rung.chapter == page.name), None)
    return own, found.get(own.parent) if own else None


def fill_navigation(site: Site, text: str) -> str:
    """mkdocs.yml with a part for each family, in it a line for each chapter, and how rungs changed."""
    unknown = {rung.family for rung in site.catalogue.rungs} - set(results.PARTS)
    if unknown:
        raise LadderError(f"PARTS has no title for the family '{', '.join(sorted(unknown))}'")

    entries = []
    for family, rungs in groupby(site.catalogue.rungs, lambda rung: rung.family):
        entries.append(f"- '{results.PARTS[family]}':")
        for title, page in BEFORE.get(family, {}).items():
            entries.append(f'    - "{title}": background/{page}.md')
        for rung in rungs:
            page = rung.chapter.removeprefix("docs/")
            entries.append(f'    - "{rung.title}": {page}')
    changes: dict[str, list[str]] = {}
    for rung in site.catalogue.rungs:
        changes.setdefault(site.statuses[rung.id].change, []).append(rung.id)
    marks = [f'{change}: "{" ".join(rungs)}"' for change, rungs in sorted(changes.items())]
    return with_lines(with_lines(text, "chapters", entries), "changes", marks)


def with_lines(text: str, name: str, lines: list[str]) -> str:
    def block(match: re.Match[str]) -> str:
        inside = "".join(f"{match[1]}{line}\n" for line in lines)
        return f"{match[1]}{match[2]}{inside}{match[4]}"

    filled, count = re.subn(GENERATED.format(name), block, text, flags=re.S)
    if count != 1:
        raise LadderError(f"mkdocs.yml: '# {name}: begin' and '# {name}: end' are missing")
    return filled


def filled_files(site: Site) -> dict[Path, tuple[str, str]]:
    """File -> (what it holds, what it should hold)."""
    files = {}
    for page in site.pages():
        text = page.read_text(encoding="utf-8")
        files[page] = (text, fill_page(site, page, text))
    shown = site.root / strips.FILE
    text = shown.read_text(encoding="utf-8") if shown.is_file() else ""
    files[shown] = (text, strips.text(site))
    config = site.root / "mkdocs.yml"
    if config.is_file():
        text = config.read_text(encoding="utf-8")
        files[config] = (text, fill_navigation(site, text))
    return files


def missing_chapters(site: Site) -> list[str]:
    return [
        f"{rung.name} has no chapter: {rung.chapter} does not exist"
        for rung in site.catalogue.rungs
        if not (site.root / rung.chapter).is_file()
    ]



# --- commands -------------------------------------------------------------------------------------


def check(site: Site) -> int:
    problems = missing_chapters(site) + chart_problems(site)
    drift = False
    for path, (old, new) in filled_files(site).items():
        name = str(path.relative_to(site.root))
        diff = difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), name, f"{name} (generated)", n=1
        )
        for line in diff:
            drift = True
            print(line.rstrip("\n"))
    for problem in problems + site.unsaid:
        print(f"docs.py: {problem}", file=sys.stderr)
    if drift or problems:
        print("docs.py: out of date; run scripts/docs.py --write", file=sys.stderr)
    return 1 if drift or problems or site.unsaid else 0


def write(site: Site, catalogue: Path | None) -> int:
    for path, (old, new) in filled_files(site).items():
        if old != new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(site.root))
    render_charts(site, catalogue)
    draw_figures(site)
    for problem in missing_chapters(site) + site.unsaid:
        print(f"docs.py: {problem}", file=sys.stderr)
    return 0


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="bring everything up to date")
    action.add_argument("--check", action="store_true", help="exit 1 when something is not")
    parser.add_argument("--catalogue", type=Path, help="JSON of fa list (default: run fa)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        site = Site(REPOSITORY, Catalogue.load(arguments.catalogue))
        code = check(site) if arguments.check else write(site, arguments.catalogue)
    except (LadderError, OSError) as error:
        print(f"docs.py: error: {error}", file=sys.stderr)
        return 2
    for line in dict.fromkeys(site.errors):
        print(f"docs.py: error: {line}", file=sys.stderr)
    return 2 if site.errors else code


if __name__ == "__main__":
    sys.exit(main())
