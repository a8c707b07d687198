# SPDX-License-Identifier: MIT
"""cmake/architectures.cmake: what the rungs are compiled for, by the cards that are there."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

import support

MODULE = support.REPOSITORY / "cmake/architectures.cmake"
KNOWN = "sm_75\nsm_80\nsm_86\nsm_89\nsm_90\nsm_100\nsm_120"
NO_CARD = "80-real;80-virtual"


def architectures(*capabilities: str, known: str = KNOWN) -> str:
    """The value for these cards, where nvcc knows these targets."""
    script = f'include("{MODULE}")\nfa_architectures(found "{known}" {" ".join(capabilities)})\nmessage("${{found}}")\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.cmake")
        path.write_text(script, encoding="utf-8")
        done = subprocess.run(["cmake", "-P", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stderr.strip()


class ArchitecturesTest(unittest.TestCase):
    def test_no_card(self) -> None:
        self.assertEqual(architectures(), NO_CARD)

    def test_the_card_that_is_there(self) -> None:
        for capability, value in (
            ("8.0", "80-real"),
            ("8.6", "86-real"),
            ("8.9", "89-real"),
            ("9.0", "90a-real"),
            ("10.0", "100-real"),
            ("12.0", "120-real"),
        ):
            self.assertEqual(architectures(capability), value)

    def test_several_cards(self) -> None:
        self.assertEqual(architectures("9.0", "9.0"), "90a-real")
        self.assertEqual(architectures("8.6", "9.0"), "86-real;90a-real")

    def test_a_card_that_nvcc_does_not_know_gets_ptx(self) -> None:
        self.assertEqual(architectures("12.1"), "80-virtual")
        self.assertEqual(architectures("10.0", known="sm_80\nsm_90\nsm_1000"), "80-virtual")
        self.assertEqual(architectures("8.6", "12.1"), "86-real;80-virtual")

    def test_a_card_without_tensor_core_instructions_of_8_0_is_as_none(self) -> None:
        self.assertEqual(architectures("7.5"), NO_CARD)
        self.assertEqual(architectures("7.5", "8.6"), "86-real")


if __name__ == "__main__":
    unittest.main()
