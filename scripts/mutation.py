#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes one instruction of a rung's PTX at a time and asks `fa check` on the machine about it.

  scripts/mutation.py --edits 300 --jobs 16 --out runs/mutation.jsonl

The edits of a rung are the same in every run: instructions, barriers and waits are removed,
comparisons, operators, predicates, operands and constants changed, in turn, and edits of lines of
the source that had none first. Each is judged by the quick suite, which ends at the first wrong
case. The file gets a line for each edit when it is judged; a run that is repeated goes on where it
was stopped. At the end the table of how the edits were caught is printed, then those that were not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNGS = "09_ragged,31_ragged,35_dealt,46_even,50_one,51_e4m3"
CAUGHT = ("refusal", "verdict", "finding", "time limit", "survived")

ENTRY = re.compile(r"^\.(?:visible|weak) \.entry \w+\(", re.MULTILINE)
STATEMENT = re.compile(
    r"^[ \t]*(?:\{[ \t]*)?(?P<code>(?P<guard>@!?%?\w+[ \t]+)?"
    r"(?P<opcode>[a-z]\w*[.:][\w.:]*|bra)(?P<operands>(?:[ \t][^;]*)?);)"
    r"|^\s*\.loc\s+(?P<file>\d+) (?P<line>\d+)",
    re.MULTILINE,
)
FILE = re.compile(r'^\s*\.file\s+(\d+) "(?:.*/)?([^"/]+)"', re.MULTILINE)

ORDERS = re.compile(
    r"(barrier|bar|mbarrier|fence|membar|griddepcontrol|wgmma\.(fence|commit|wait)\w*"
    r"|cp\.async\.(wait|commit|bulk\.wait|bulk\.commit)\w*)\b"
)
OTHERS = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq", "leu": "ltu",
    "ltu": "leu", "geu": "gtu", "gtu": "geu", "neu": "equ", "equ": "neu", "lo": "ls", "hi": "hs",
}  # fmt: skip
OPERATORS = {
    "add": "sub", "sub": "add", "min": "max", "max": "min", "and": "or", "or": "and", "xor": "or",
    "shl": "shr", "shr": "shl", "any": "all", "all": "any", "up": "down", "bfly": "down",
}  # fmt: skip
IN_ORDER = re.compile(r"(sub|selp|setp|shl|shr|div|prmt|slct)\.")  # operands that do not commute


@dataclass(frozen=True)
class Statement:
    begin: int
    guard: str
    opcode: str
    operands: str
    source: str  # file:line

    def text(self, guard: str | None = None, opcode: str | None = None,
             operands: str | None = None) -> str:  # fmt: skip
        return "".join(
            own if new is None else new
            for own, new in ((self.guard, guard), (self.opcode, opcode), (self.operands, operands))
        ) + ";"  # fmt: skip


@dataclass(frozen=True)
class Edit:
    rung: str
    line: int
    source: str
    operator: str
    was: str
    now: str
    begin: int

    def apply(self, text: str) -> str:
        assert text.startswith(self.was, self.begin)
        return text[: self.begin] + self.now + text[self.begin + len(self.was) :]


def statements(text: str) -> Iterator[Statement]:
    """Those of the kernels in a module."""
    files, at = dict(FILE.findall(text)), ""
    for found in STATEMENT.finditer(text, ENTRY.search(text).start()):
        if found["code"]:
            yield Statement(
                found.start("code"), found["guard"] or "", found["opcode"], found["operands"], at
            )
        else:
            at = f"{files[found['file']]}:{found['line']}"


def removed(s: Statement) -> Iterator[str]:
    if not ORDERS.match(s.opcode) and s.opcode != "ret":
        yield ""


def unordered(s: Statement) -> Iterator[str]:
    """Without a barrier, fence, arrival or wait. A test of an mbarrier that sets a predicate for
    the loop around it always succeeds."""
    if not ORDERS.match(s.opcode):
        return
    if waits := re.match(r"\s*(\w+),", s.operands):
        if "wait" in s.opcode:
            yield f"setp.eq.u32 {waits[1]}, 0, 0;"
        return
    yield ""


def compared(s: Statement) -> Iterator[str]:
    if found := re.match(r"(setp?\.)(\w+)(?=\.)", s.opcode):
        other = OTHERS.get(found[2])
        if other:
            yield s.text(opcode=found[1] + other + s.opcode[found.end() :])


def computed(s: Statement) -> Iterator[str]:
    words = s.opcode.split(".")
    at = 0 if words[0] in OPERATORS else -1
    if words[0] in ("vote", "shfl"):
        at = 2
    if at >= 0 and (other := OPERATORS.get(words[at])):
        yield s.text(opcode=".".join([*words[:at], other, *words[at + 1 :]]))


def unguarded(s: Statement) -> Iterator[str]:
    if s.guard:
        yield s.text(guard="")


def opposite(s: Statement) -> Iterator[str]:
    if s.guard:
        yield s.text(guard=s.guard.replace("@!", "@") if "!" in s.guard else "@!" + s.guard[1:])


def swapped(s: Statement) -> Iterator[str]:
    operands = [each.strip() for each in s.operands.split(",")]
    if IN_ORDER.match(s.opcode) and len(operands) >= 3 and operands[1] != operands[2]:
        yield s.text(operands="\t" + ", ".join([operands[0], operands[2], operands[1], *operands[3:]]))


def constants(s: Statement) -> Iterator[str]:
    """Each integer by one, each offset of an address by 16 bytes."""
    for found in re.finditer(r"(?<=[\s,+])-?\d+(?=\s*(,|\]|$))", s.operands):
        step = 16 if found[1] == "]" else 1
        new = s.operands[: found.start()] + str(int(found[0]) + step) + s.operands[found.end() :]
        yield s.text(operands=new)


def floats(s: Statement) -> Iterator[str]:
    """Infinity becomes 0, 0 becomes 1, other numbers twice as large."""
    for found in re.finditer(r"0f([0-9A-F]{8})", s.operands):
        bits = int(found[1], 16)
        kind = bits & 0x7F800000
        new = 0x3F800000 if bits == 0 else 0 if kind == 0x7F800000 else bits + 0x00800000
        yield s.text(operands=f"{s.operands[: found.start(1)]}{new:08X}{s.operands[found.end() :]}")


EDITS: dict[str, Callable[[Statement], Iterator[str]]] = {
    "instruction removed": removed,
    "barrier, fence or wait removed": unordered,
    "comparison changed": compared,
    "operator changed": computed,
    "predicate dropped": unguarded,
    "predicate negated": opposite,
    "operands swapped": swapped,
    "integer changed": constants,
    "float changed": floats,
}


def all_edits(rung: str, text: str) -> dict[str, list[Edit]]:
    edits: dict[str, list[Edit]] = {operator: [] for operator in EDITS}
    for s in statements(text):
        line = text.count("\n", 0, s.begin) + 1
        for operator, change in EDITS.items():
            for now in change(s):
                edits[operator].append(Edit(rung, line, s.source, operator, s.text(), now, s.begin))
    return edits


def chosen(rung: str, text: str, count: int) -> list[Edit]:
    """The operators take turns; each begins with an edit of every source line and opcode."""
    queues = []
    for operator, edits in all_edits(rung, text).items():
        random.Random(f"{rung} {operator}").shuffle(edits)
        copies: Counter[tuple[str, str]] = Counter()
        ranked = []
        for edit in edits:
            key = edit.source, edit.was.split()[0]
            ranked.append((copies[key], len(ranked), edit))
            copies[key] += 1
        queues.append([edit for _, _, edit in sorted(ranked, key=lambda each: each[:2])])
    turns = itertools.zip_longest(*queues)
    return [edit for turn in turns for edit in turn if edit][:count]


def check(fa: Path, rung: str, text: str, seconds: float = 120) -> tuple[str, str]:
    """How the quick suite on the machine catches this PTX, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{rung}.ptx").write_text(text)
        command = [fa, "check", rung, "--no-ablations", "--device", "vm", "--threads", "1",
                   "--fail-fast"]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=os.environ | {"FA_PTX_DIR": folder}, capture_output=True, text=True,
                errors="replace", timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "time limit", ""
    if done.returncode == 0:
        return "survived", ""
    if done.returncode != 1:
        return "refusal", done.stderr.strip()[-300:]
    says = next((line for line in done.stdout.splitlines() if line.startswith("wrong: ")), "")
    if re.search(r"step limit|more than \d+ (steps|instructions)", says):
        return "time limit", says
    judged = r"exceeds tolerance|not finite|was overwritten|another result|not a number|got \S+, expected"
    return ("verdict" if re.search(judged, says) else "finding"), says[:400]


def report(rows: list[dict[str, str]]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["rung"]][row["caught"]] += 1
    lines = ["| rung | edits | " + " | ".join(CAUGHT) + " | share caught |"]
    lines.append("|---" + "|---:" * (len(CAUGHT) + 2) + "|")
    for rung, by in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        total = by.total()
        cells = [rung, total, *(by[each] for each in CAUGHT)]
        share = f"{100 * (total - by['survived']) / max(total, 1):.1f} %"
        lines.append("| " + " | ".join(map(str, [*cells, share])) + " |")
    for row in rows:
        if row["caught"] == "survived":
            now = row["now"] or "nothing"
            lines.append(f"{row['rung']}.ptx:{row['line']} ({row['source']}) {row['operator']}: "
                         f"{' '.join(row['was'].split())} -> {' '.join(now.split())}")  # fmt: skip
    return "\n".join(lines) + "\n"


def judged(path: Path) -> dict[tuple[str, int, str, str], dict[str, str]]:
    """What earlier runs wrote; a last line that was cut off is judged anew."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["rung"], row["begin"], row["was"], row["now"]] = row
    return rows


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("FA_BUILD_DIR") or ROOT / "build"))
    parser.add_argument("--rungs", default=RUNGS, help=f"default {RUNGS}")
    parser.add_argument("--edits", type=int, default=300, help="of each rung (default 300)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=60, help="for an edit (default 60)")
    parser.add_argument("--out", type=Path, required=True, help="a .jsonl file, which grows")
    options = parser.parse_args(words)
    fa, known = options.build / "fa", judged(options.out)
    texts, edits = {}, []
    for rung in options.rungs.split(","):
        path = options.build / "ptx" / f"{rung}.ptx"
        if not path.is_file():
            parser.error(f"--rungs names '{rung}', and there is no {path}")
        texts[rung] = path.read_text()
        edits.append(chosen(rung, texts[rung], options.edits))
    # The rungs take turns, so that a run that is stopped has some edits of each.
    turns = [edit for turn in itertools.zip_longest(*edits) for edit in turn if edit]
    key = lambda edit: (edit.rung, edit.begin, edit.was, edit.now)  # noqa: E731
    missing = [edit for edit in turns if key(edit) not in known]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as out, ThreadPoolExecutor(options.jobs) as pool:
        if missing:
            whole = pool.map(lambda rung: (rung, *check(fa, rung, texts[rung], 600)), texts)
            for rung, caught, says in whole:
                if caught != "survived":
                    print(f"{rung} fails without an edit: {caught}: {says}", file=sys.stderr)
                    return 1
        jobs = {
            pool.submit(check, fa, edit.rung, edit.apply(texts[edit.rung]), options.seconds): edit
            for edit in missing
        }
        for done in as_completed(jobs):
            edit = jobs[done]
            caught, says = done.result()
            row = asdict(edit) | {"caught": caught, "says": says}
            known[key(edit)] = row
            out.write(json.dumps(row) + "\n")
            out.flush()
    sys.stdout.write(report([known[key(edit)] for edit in turns]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
