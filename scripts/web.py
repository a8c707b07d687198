#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what the live pages load: the rungs' PTX, plans, sources and counts, and the machine.

  scripts/web.py --build BUILD --machine FOLDER --out FOLDER

BUILD is the build folder with fa and ptx/, --machine is that of the WebAssembly build of
harness/web, and --out becomes the folder assets/web/data of the site:

  machine.js, machine.wasm   the machine, inputs, reference and check
  rungs.json                 the catalogue, and which problems the pages offer
  rungs/NAME.json            source, plans, counts at the smallest problem, synchronisation that
                             can go and why, the problem on which the others cannot, other faults
  exercises/                 PTX and trials of the exercises that the pages check
  chart.json                 the committed measurements of rungs and peers, a row each
  ptx/NAME.dD.ptx.gz         the PTX of the entries that the plans launch
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "plots"))

from ladder import Catalogue, Results, Row  # noqa: E402
from limits import Limits, share_of  # noqa: E402
from web_exercises import write_exercises  # noqa: E402

REDUNDANT = ROOT / "kernels/redundant_sync_sites.txt"
FAULTS = ROOT / "kernels/faults.txt"
SEQS = (128, 256, 300, 384, 512, 1024)
SMALLEST = 256  # what the pages begin with
MASKS = {"full": (), "causal": ("--causal",)}
# One new query against a cache of so many keys; four query heads share a head of K and V.
KEYS = (256, 300, 1024, 4096)
CACHE = ("--batch", "4", "--heads", "8", "--kv-heads", "2")
CACHES = {
    "queries": ("--seq", "4", "--causal"),
    "equal": ("--seq", "1"),
    "lengths": ("--seq", "1", "--lengths", "random"),
    "pages": ("--seq", "1", "--lengths", "random", "--page", "16"),
}
MAX_GZIPPED = 620 * 1024

Json = dict[str, Any]

ENTRY = re.compile(r"^(?:\.visible |\.weak )?\.entry (\w+)\(", re.MULTILINE)
FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', re.MULTILINE)


class Fa:
    """The command-line tool of a build."""

    def __init__(self, build: Path) -> None:
        self.program = build / "fa"

    def json(self, *words: str) -> Json:
        result = subprocess.run([self.program, *words, "--json"], capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"web.py: error: fa {' '.join(words)}: {result.stderr.strip()}")
        return dict(json.loads(result.stdout))

    def plans(self, rungs: Iterable[str], *words: str) -> list[Json]:
        return list(self.json("plan", *rungs, *words)["plans"])


def short_path(match: re.Match[str]) -> str:
    """Paths from the repository's root; of other files the name."""
    path = match[2]
    at = path.find("/kernels/")
    return f'{match[1]}"{path[at + 1 :] if at >= 0 else Path(path).name}"'


def end_of_body(text: str, begin: int) -> int:
    """Behind the brace that closes the first one from `begin` on; bodies hold scopes."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, text.index("\n{", begin)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise ValueError("a body without an end")


def cut(text: str, entries: set[str]) -> str:
    """A PTX text with these entries only, and paths that hold on any machine."""
    kept, at = "", 0
    for entry in ENTRY.finditer(text):
        kept += text[at : entry.start()]
        at = end_of_body(text, entry.end())
        if entry[1] in entries:
            kept += text[entry.start() : at]
    return FILE.sub(short_path, kept + text[at:])


def entries_of(plans: list[Json]) -> dict[int, set[str]]:
    """The entries that plans launch, by head_dim."""
    entries: dict[int, set[str]] = {}
    for plan in plans:
        names = {launch["entry"] for launch in plan.get("launches", [])}
        entries.setdefault(plan["problem"]["head_dim"], set()).update(names)
    return {dim: names for dim, names in entries.items() if names}


def write_ptx(rung: str, folder: Path, entries: dict[int, set[str]], out: Path) -> None:
    text = (folder / f"{rung}.ptx").read_text(encoding="utf-8")
    for dim, names in entries.items():
        data = cut(text, names).encode()
        (out / f"{rung}.d{dim}.ptx.gz").write_bytes(gzip.compress(data, 9, mtime=0))


def lines_of(path: Path) -> list[str]:
    """Of a list with comments: those that say something."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def is_among(rung: str, words: str, ids: list[str]) -> bool:
    """Whether a list such as `a1-a6 10` names a rung; `ids` are those of the ladder, in its order."""
    ends = (word.partition("-")[::2] for word in words.split())
    ranges = ((ids.index(first), ids.index(last or first)) for first, last in ends)
    return any(first <= ids.index(rung) <= last for first, last in ranges)


def numbers_of(words: str) -> list[int] | None:
    """The numbers of a list such as `1-3,5`; None for *, all."""
    if words == "*":
        return None
    ends = (word.partition("-")[::2] for word in words.split(","))
    return [n for first, last in ends for n in range(int(first), int(last or first) + 1)]


def redundant_sites(rung: str, ids: list[str]) -> list[Json]:
    """Synchronisation that a rung does not need: {opcode, numbers, reason}."""
    rows = (line.split(" | ") for line in lines_of(REDUNDANT))
    return [
        {"opcode": opcode, "numbers": numbers_of(which), "reason": reason}
        for rungs, opcode, which, reason in rows
        if is_among(rung, rungs, ids)
    ]


def faults_of(rung: str, ids: list[str]) -> list[Json]:
    """The faults that a rung can have."""
    names = ("title", "opcode", "place", "change", "words", "rungs")
    faults = [dict(zip(names, line.split(" | "), strict=True)) for line in lines_of(FAULTS)]
    return [
        {**fault, "place": int(fault["place"])}
        for fault in faults
        if is_among(rung, fault["rungs"], ids)
    ]


def is_decode(rung: Json) -> bool:
    """Rungs for new queries against a cache have problems of their own."""
    return bool(rung["family"] == "decode")


def seqs_of(rung: Json) -> tuple[int, ...]:
    return KEYS if is_decode(rung) else SEQS


def masks_of(rung: Json) -> list[str]:
    """What the pages offer for a rung besides N and head_dim."""
    if is_decode(rung):
        needs = ("few_queries", "grouped", "lengths", "paged")
        return [mask for mask, need in zip(CACHES, needs, strict=True) if rung[need]]
    return [mask for mask in MASKS if mask == "full" or rung[mask]]


def problem_words(decode: bool, seq: int, mask: str) -> tuple[str, ...]:
    """The options of fa for a choice, all but --dim."""
    if decode:
        return (*CACHE, "--seq-kv", str(seq), *CACHES[mask])
    return ("--seq", str(seq), *MASKS[mask])


def plans_by_rung(fa: Fa, rungs: list[Json]) -> dict[str, list[Json]]:
    """Every rung's plans, or why it refuses, for the problems that the pages offer."""
    plans: dict[str, list[Json]] = {rung["name"]: [] for rung in rungs}
    for family in (False, True):
        of_family = [rung for rung in rungs if is_decode(rung) == family]
        dims = ",".join(map(str, sorted({dim for rung in of_family for dim in rung["head_dims"]})))
        for mask in CACHES if family else MASKS:
            able = {rung["name"]: rung["head_dims"] for rung in of_family if mask in masks_of(rung)}
            for seq in KEYS if family else SEQS:
                words = problem_words(family, seq, mask)
                for plan in fa.plans(able, *words, "--dim", dims) if able else ():
                    dim = plan["problem"]["head_dim"]
                    choice = {"n": seq, "d": dim, "mask": mask}
                    if dim in able[plan["rung"]]:
                        plans[plan["rung"]].append({"choice": choice, **plan})
    return plans


def counts_of(fa: Fa, rung: Json, plans: list[Json]) -> Json:
    """The machine's counts at the smallest problem that the pages begin with."""
    first = masks_of(rung)[0]
    fitting = [plan["choice"] for plan in plans if "launches" in plan]
    fitting = [each for each in fitting if each["mask"] == first and each["n"] >= SMALLEST]
    choice = max(fitting, key=lambda each: (-each["n"], each["d"]))
    words = problem_words(is_decode(rung), choice["n"], first)
    row = fa.json("explain", rung["name"], *words, "--dim", str(choice["d"]))["rows"][0]
    return {"choice": choice, "problem": row["problem"], "counts": row["counts"]}


def write_rung(
    fa: Fa, build: Path, rung: Json, plans: list[Json], ids: list[str], out: Path
) -> None:
    [broken] = fa.plans([rung["name"]], "--sync")
    write_ptx(rung["name"], build / "ptx", entries_of([*plans, broken]), out / "ptx")
    source = (ROOT / rung["file"]).read_text(encoding="utf-8")
    document = {
        "name": rung["name"],
        "file": rung["file"],
        "source": source,
        "plans": plans,
        "expected": counts_of(fa, rung, plans),
        "break": {"plan": broken, "inputs": broken.pop("inputs")},
        "redundant": redundant_sites(rung["id"], ids),
        "faults": faults_of(rung["id"], ids),
    }
    text = json.dumps(document, separators=(",", ":"))
    (out / "rungs" / f"{rung['name']}.json").write_text(text, encoding="utf-8")


def copy_machine(folder: Path, out: Path) -> int:
    """Returns the bytes that a visitor loads, gzipped."""
    size = 0
    for name in ("machine.js", "machine.wasm"):
        shutil.copyfile(folder / name, out / name)
        size += len(gzip.compress((folder / name).read_bytes(), 9))
    return size


def chart_row(row: Row, catalogue: Catalogue, limits: Limits | None) -> Json:
    rung = catalogue.find(row.id) if row.kind == "rung" else None
    share = share_of(limits, rung.family, row) if rung else None
    problem = row.problem
    return {
        "id": row.id,
        "kind": row.kind,
        "chapter": rung.name if rung else None,
        "variant": row.variant if row.ablation else None,
        "n": problem.seq_q,
        "d": problem.head_dim,
        "causal": problem.causal,
        "dtype": problem.dtype,
        "spread": problem.spread,
        "inputs": problem.inputs,
        "tflops": row.tflops,
        "back_to_back": row.data.get("tflops_back_to_back"),
        "clock_mhz": row.data.get("clock_mhz"),
        "power_w": row.data.get("power_w"),
        "limit": share,
    }


def chart_key(row: Json) -> tuple[object, ...]:
    fields = ("id", "variant", "n", "d", "causal", "dtype", "spread", "inputs")
    return tuple(row[field] for field in fields)


def write_chart(rungs: Json, out: Path) -> None:
    """The ladders and the spreads of every card; matmul and copy are no attention."""
    catalogue = Catalogue.from_json(json.dumps(rungs), "fa list")
    cards: Json = {}
    for path in sorted((ROOT / "plots/results").glob("*/*")):  # a folder of runs, or a file
        if path.stem not in ("ladder", "fp32", "spread"):
            continue
        results = Results.load(path)
        limits = Limits.beside(results)
        rows = [
            chart_row(row, catalogue, limits)
            for row in results.timed()
            if not row.data.get("matmul") and not row.data.get("copy_bytes")
        ]
        # The spreads begin with the usual inputs, which the ladder has measured too.
        known = cards.setdefault(path.parent.name, [])
        keys = {chart_key(row) for row in known}
        known += [row for row in rows if chart_key(row) not in keys]
    (out / "chart.json").write_text(json.dumps(cards, separators=(",", ":")), encoding="utf-8")


def catalogue(rungs: list[Json]) -> Json:
    fields = ("id", "name", "parent", "family", "head_dims")

    def shown(rung: Json) -> Json:
        offered = {"seqs": seqs_of(rung), "masks": masks_of(rung)}
        return {field: rung[field] for field in fields} | offered

    return {"rungs": [shown(rung) for rung in rungs]}


def main(words: list[str]) -> int:
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--machine", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    out: Path = options.out
    for folder in ("rungs", "ptx", "exercises"):
        shutil.rmtree(out / folder, ignore_errors=True)
        (out / folder).mkdir(parents=True)
    size = copy_machine(options.machine, out)
    if size > MAX_GZIPPED:
        sys.exit(f"web.py: error: the machine has {size} bytes gzipped, more than {MAX_GZIPPED}")
    fa = Fa(options.build)
    listed = fa.json("list")
    write_chart(listed, out)
    rungs = [rung for rung in listed["rungs"] if rung["family"] != "own"]
    ids, plans = [rung["id"] for rung in rungs], plans_by_rung(fa, rungs)
    for rung in rungs:
        name = rung["name"]
        write_rung(fa, options.build, rung, plans[name], ids, out)
    (out / "rungs.json").write_text(json.dumps(catalogue(rungs)), encoding="utf-8")
    exercises = write_exercises(options.build, out, options.machine / "exercises")
    print(
        f"web.py: {len(rungs)} rungs, {exercises} exercises; the machine has {size} bytes gzipped",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
