# SPDX-License-Identifier: MIT
"""fa check rejects kernels of the persistent kind with one line of PTX changed: a thread block's
second tile shows what the first does not. With --edits the same for random edits
of whole rungs, which states the share that is caught."""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FA, PTX = Path(sys.argv[1]), Path(sys.argv[2])

ARRIVE = r"mbarrier\.arrive\.shared::c\w+\.b64 _, .*;"
# Rung, pattern, what replaces a match, which matches: some in the kernel for a head_dim of 128.
EDITS = [
    ("31_causal", ARRIVE, "", (0, 1, 2)),
    ("37_dealt", r"cp\.async\.bulk\.wait_group\.read 0;", "", (0,)),
]


def check(rung, text, seconds=120):
    """The exit code of the quick check of a rung with this PTX; None where it did not end in time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{rung}.ptx").write_text(text)
        command = [FA, "check", rung, "--no-ablations", "--device", "vm"]
        try:
            done = subprocess.run(
                command,
                env=os.environ | {"FA_PTX_DIR": folder},
                capture_output=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.returncode


def edited(text, pattern, replacement, which):
    """The text with one match of the pattern replaced."""
    match = list(re.finditer(pattern, text))[which]
    return text[: match.start()] + match.expand(replacement) + text[match.end() :]


class CheckMutantsTest(unittest.TestCase):
    def test_one_changed_line_is_rejected(self):
        for rung, pattern, replacement, matches in EDITS:
            text = (PTX / f"{rung}.ptx").read_text()
            for which in matches:
                with self.subTest(rung=rung, pattern=pattern, which=which):
                    self.assertEqual(check(rung, edited(text, pattern, replacement, which)), 1)


INSTRUCTION = re.compile(r"^\s*(@!?%p\d+ )?([a-z][\w.:]*)\s.*;$")
COMPARISONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}


def edits_of(line):
    """The single edits of a line: without it, with the opposite predicate, another comparison, another
    constant."""
    match = INSTRUCTION.match(line)
    if not match or match[2].startswith("ret"):
        return
    yield ""
    if match[1]:
        yield line.replace("@!", "@") if "@!" in line else line.replace("@", "@!")
    if compared := re.search(r"setp\.(\w\w)(?=\.)", line):
        yield line[: compared.start(1)] + COMPARISONS.get(compared[1], "eq") + line[compared.end(1) :]
    if constant := re.search(r"(?<=, )-?\d+(?=[;,])", line):
        yield line[: constant.start()] + str(int(constant[0]) + 1) + line[constant.end() :]


def random_edits(rung, count, seed):
    lines = (PTX / f"{rung}.ptx").read_text().split("\n")
    choices = [(i, new) for i, line in enumerate(lines) for new in edits_of(line)]
    caught = 0
    for i, new in random.Random(seed).sample(choices, count):
        code = check(rung, "\n".join([*lines[:i], new, *lines[i + 1 :]]))
        caught += code != 0
        if code == 0:
            print(f"{rung}.ptx:{i + 1}: {lines[i].strip()} -> {new.strip() or 'nothing'}", flush=True)
    print(f"{rung}: {caught} of {count} edits are caught", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fa", type=Path)
    parser.add_argument("ptx", type=Path)
    parser.add_argument("--edits", type=int, help="random edits of each rung, instead of the test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rungs", default="09_ragged,31_causal,37_dealt,46_even,51_one,52_e4m3")
    options = parser.parse_args()
    if options.edits is None:
        unittest.main(argv=sys.argv[:1])
    for name in options.rungs.split(","):
        random_edits(name, options.edits, options.seed)
