# SPDX-License-Identifier: MIT
"""fa check rejects kernels with one line of PTX changed whose fault shows only beyond the first
tile of a thread block, the first 32 entries of a batch, or in scores far from 0."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FA, PTX = Path(sys.argv[1]), Path(sys.argv[2])

ARRIVE = r"(@p )?mbarrier\.arrive\.shared::c\w+\.b64 _, .*;"
LANE_BELOW = r"setp\.lt\.u32(\s+%p\d+, %r2, (?:2|4|8|16);)"
FIRST_MAX = r"mov\.f32(\s+%f\d+), 0fF149F2CA;"  # -1e30
LAST_MAX = r"(max\.f32\s+(%f\d+), %f\d+, %f\d+;)(?=(?:\s+\.loc.*\n)+\s+mov\.b32)"
# Rung, pattern, what replaces a match, which matches: some in the kernel for a head_dim of 128.
EDITS = [
    ("31_ragged", ARRIVE, "", (0, 1, 2)),
    ("35_dealt", r"cp\.async\.bulk\.wait_group\.read 0;", "", (0,)),
    # The tiles of the 16 sequences before the lane's 16.
    ("39_varlen", r"shfl\.sync\.up\.b32\s+(%r\d+).*;", r"mov.b32 \1, 0;", (4, 9)),
    # Sums of the tiles of the lanes below, at distances of 1 to 16: with lengths, then without.
    ("46_even", r"shfl\.sync\.up\.b32 .*;", "", (4,)),
    ("46_even", LANE_BELOW, r"setp.le.u32\1", (3, 7)),
    # The maximum begins at 0, -20, -1000; and is at most 8000, 707 natural units.
    *(("09_ragged", FIRST_MAX, rf"mov.f32\1, 0f{bits};", (0,))
      for bits in ("00000000", "C1A00000", "C47A0000")),
    ("09_ragged", LAST_MAX, r"\1 min.f32 \2, \2, 0f45FA0000;", (0,)),
]  # fmt: skip


def edited(text: str, pattern: str, replacement: str, which: int) -> str:
    """The text with one match of the pattern replaced."""
    match = list(re.finditer(pattern, text))[which]
    return text[: match.start()] + match.expand(replacement) + text[match.end() :]


def check(rung: str, text: str) -> tuple[int, str]:
    """Exit code of the quick suite on this PTX, and its first wrong case."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{rung}.ptx").write_text(text)
        words = f"check {rung} --no-ablations --device vm --threads 1 --fail-fast"
        done = subprocess.run(
            [FA, *words.split()], env=os.environ | {"FA_PTX_DIR": folder}, capture_output=True,
            text=True, errors="replace", timeout=300, check=False,
        )  # fmt: skip
    says = (line for line in done.stdout.splitlines() if line.startswith("wrong: "))
    return done.returncode, next(says, done.stderr)


class CheckMutantsTest(unittest.TestCase):
    def test_one_changed_line_is_rejected(self) -> None:
        for rung, pattern, replacement, matches in EDITS:
            text = (PTX / f"{rung}.ptx").read_text()
            for which in matches:
                with self.subTest(rung=rung, pattern=pattern, which=which):
                    code, says = check(rung, edited(text, pattern, replacement, which))
                    self.assertEqual(code, 1, says)
                    self.assertNotRegex(says, r"step limit|more than \d+ (steps|instructions)")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
