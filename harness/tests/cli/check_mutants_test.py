# SPDX-License-Identifier: MIT
"""fa check rejects kernels with one line of PTX changed whose fault shows only beyond the first
tile of a thread block, the first 32 entries of a batch, or in scores far from 0."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from mutation import check

FA, PTX = Path(sys.argv[1]), Path(sys.argv[2])

ARRIVE = r"mbarrier\.arrive\.shared::c\w+\.b64 _, .*;"
# Rung, pattern, what replaces a match, which matches: some in the kernel for a head_dim of 128.
EDITS = [
    ("31_causal", ARRIVE, "", (0, 1, 2)),
    ("37_dealt", r"cp\.async\.bulk\.wait_group\.read 0;", "", (0,)),
]


def edited(text: str, pattern: str, replacement: str, which: int) -> str:
    """The text with one match of the pattern replaced."""
    match = list(re.finditer(pattern, text))[which]
    return text[: match.start()] + match.expand(replacement) + text[match.end() :]


class CheckMutantsTest(unittest.TestCase):
    def test_one_changed_line_is_rejected(self) -> None:
        for rung, pattern, replacement, matches in EDITS:
            text = (PTX / f"{rung}.ptx").read_text()
            for which in matches:
                with self.subTest(rung=rung, pattern=pattern, which=which):
                    caught, says = check(FA, rung, edited(text, pattern, replacement, which), 300)
                    self.assertIn(caught, ("verdict", "finding"), says)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
