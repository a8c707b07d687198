# SPDX-License-Identifier: MIT
"""Counting machine instructions: loops, predicates, and which loop is the main one."""

from __future__ import annotations

import re
import unittest
from collections import Counter

import support  # noqa: F401  (finds the scripts)

import sass

LISTING = """
	code for sm_90a
		Function : fa_test
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                  /* 0x00000a00ff017b82 */
                                                                           /* 0x000fe20000000800 */
        /*0010*/                   LDSM.16.M88.4 R4, [R2] ;                /* 0x0000000002047b3b */
        /*0020*/                   HMMA.16816.F32 R8, R4, R6, R8 ;         /* 0x000000060408723c */
        /*0030*/              @!P0 BRA 0x10 ;                              /* 0xfffffffc00d48947 */
        /*0040*/                   LDSM.16.M88.4 R4, [R2] ;                /* 0x0000000002047b3b */
        /*0050*/                   HMMA.16816.F32 R8, R4, R6, R8 ;         /* 0x000000060408723c */
        /*0060*/              @UP1 FMUL.FTZ R8, R8, R9 ;                   /* 0x0000000908088220 */
        /*0070*/                   HMMA.16816.F32 R8, R4, R6, R8 ;         /* 0x000000060408723c */
        /*0080*/              @!P0 BRA 0x40 ;                              /* 0xfffffffc00d48947 */
        /*0090*/                   EXIT ;                                  /* 0x000000000000794d */
        /*00a0*/                   BRA 0xa0;                               /* 0xfffffffc00fc7947 */
"""

LOOP_WITH_WGMMA = """
        /*0000*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0 ;
        /*0010*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0020*/                   MUFU.EX2 R4, R5 ;
        /*0030*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0040*/                   MUFU.EX2 R6, R7 ;
        /*0050*/              @!P0 BRA 0x0 ;
"""


def kinds(listing: str) -> Counter[str]:
    ((_, code),) = sass.functions(listing)
    return Counter(code[place].kind for place in sass.main_loop(code))


# A kernel with roles, as ptxas lays it out: tile after tile (0x20-0xf0), in a tile a peeled product,
# the lean loop (0x40-0x80) and one that masks (0x90-0xe0); the producer; the retries of both waits.
ROLES = """
		Function : fa_roles
   0000  @P2 BRA 0x110
   0010  S2UR UR4, SR_CTAID.X
   0020  HGMMA.64x128x16.F32 R24, gdesc[UR8], RZ, !UPT
   0030  MUFU.EX2 R3, R3
   0040  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR21+0x8], R6
   0050  @!P0 BRA 0x150
   0060  HGMMA.64x128x16.F32 R24, gdesc[UR8], R24
   0070  FFMA R3, R3, R4, R5
   0080  @!P1 BRA 0x40
   0090  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR21+0x8], R6
   00a0  @!P0 BRA 0x180
   00b0  FSEL R3, R3, -INF, P3
   00c0  HGMMA.64x128x16.F32 R24, gdesc[UR8], R24
   00d0  FFMA R3, R3, R4, R5
   00e0  @!P1 BRA 0x90
   00f0  @!P4 BRA 0x20
   0100  EXIT
   0110  UTMALDG.4D [UR16], [UR6]
   0120  UTMALDG.4D [UR16], [UR6]
   0130  @P0 BRA 0x110
   0140  EXIT
   0150  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR21+0x8], R6
   0160  @!P0 BRA 0x150
   0170  BRA 0x60
   0180  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR21+0x8], R6
   0190  @!P0 BRA 0x180
   01a0  BRA 0xb0
   01b0  BRA 0x1b0
"""


def listed(text: str) -> str:
    """As cuobjdump prints it: addresses in comments, a semicolon at the end."""
    return re.sub(r"^ +([0-9a-f]{4})  (.*)$", r"        /*\1*/ \2 ;  /* 0x0 */", text, flags=re.M)


class SassTest(unittest.TestCase):
    def test_main_loop_has_the_most_tensor_instructions(self) -> None:
        ((name, code),) = sass.functions(LISTING)
        self.assertEqual(name, "fa_test")
        self.assertEqual(len(code), 11)
        expected = {"LDSM": 1, "HMMA": 2, "FMUL": 1, "BRA": 1}
        self.assertEqual(kinds(LISTING), expected)

    def test_no_loop_no_counts(self) -> None:
        self.assertFalse(kinds(LISTING.replace("BRA 0x10", "NOP").replace("BRA 0x40", "NOP")))

    def test_a_loop_around_loops_is_not_the_main_one(self) -> None:
        self.assertEqual(kinds(LISTING.replace("EXIT", "BRA 0x0"))["HMMA"], 2)

    def test_a_branch_back_from_behind_the_end_makes_no_loop(self) -> None:
        self.assertEqual(kinds(LISTING.replace("BRA 0xa0", "BRA 0x10"))["HMMA"], 2)

    def test_only_what_stands_before_the_wait_runs_beside_a_product(self) -> None:
        ((_, code),) = sass.functions("\t\tFunction : fa_test\n" + LOOP_WITH_WGMMA)
        body = [code[place] for place in sass.main_loop(code)]
        self.assertEqual(list(sass.in_flight(body)), ["MUFU_in_flight"])

    def test_a_product_that_is_never_waited_for_runs_on_in_the_next_step(self) -> None:
        text = LOOP_WITH_WGMMA.replace("gsb0, 0x0", "gsb0, 0x1")
        ((_, code),) = sass.functions("\t\tFunction : fa_test\n" + text)
        self.assertEqual(list(sass.in_flight(code)), ["MUFU_in_flight"] * 2)
        self.assertEqual(list(sass.in_flight(code[2:] + code[:1])), ["MUFU_in_flight"] * 2)

    def roles(self, text: str = ROLES) -> Counter[str]:
        return kinds(listed(text))

    def test_of_a_kernel_with_roles_the_lean_loop_of_a_consumer(self) -> None:
        self.assertEqual(self.roles(), {"SYNCS": 1, "BRA": 2, "HGMMA": 1, "FFMA": 1})

    def test_more_tensor_instructions_go_before_a_shorter_loop(self) -> None:
        more = ROLES.replace("FSEL R3, R3, -INF, P3", "HGMMA.64x8x16.F32 R24, R3, R4")
        self.assertEqual(self.roles(more), {"SYNCS": 1, "BRA": 2, "HGMMA": 2, "FFMA": 1})

    def test_a_loop_is_entered_at_its_first_instruction_only(self) -> None:
        ((_, code),) = sass.functions(listed(ROLES))
        found = {(16 * loop[0], 16 * loop[-1]) for loop in sass.loops(code)}
        waits = {(0x150, 0x160), (0x180, 0x190)}
        self.assertEqual(found, {(0x20, 0xF0), (0x40, 0x80), (0x90, 0xE0), (0x110, 0x130)} | waits)

    def test_a_branch_with_its_condition_among_the_operands_may_go_on(self) -> None:
        text = ROLES.replace("@!P4 BRA 0x20", "BRA P4, 0x20").replace("@P2 BRA 0x110", "BRA.U UP2, 0x110")
        self.assertEqual(self.roles(text), self.roles())
        cases = {"@P0 BRA 0x0": True, "BRA P0, 0x0": True, "BRA 0x0": False}
        cases |= {"@!PT EXIT": True, "EXIT": False, "NOP": True}
        for branch, goes_on in cases.items():
            ((_, (one,)),) = sass.functions(listed(f"\t\tFunction : fa\n   0000  {branch}\n"))
            self.assertEqual(one.goes_on, goes_on, branch)


if __name__ == "__main__":
    unittest.main()
