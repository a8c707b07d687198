"""Counting machine instructions: loops, predicates, and which loop is the main one."""

from __future__ import annotations

import unittest

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


class SassTest(unittest.TestCase):
    def test_main_loop_has_the_most_tensor_instructions(self) -> None:
        ((name, code),) = sass.functions(LISTING)
        self.assertEqual(name, "fa_test")
        self.assertEqual(len(code), 11)
        expected = {"LDSM": 1, "HMMA": 2, "FMUL": 1, "BRA": 1}
        self.assertEqual(dict(sass.main_loop(code)), expected)

    def test_no_loop_no_counts(self) -> None:
        ((_, code),) = sass.functions(LISTING.replace("BRA 0x10", "NOP").replace("BRA 0x40", "NOP"))
        self.assertEqual(sum(sass.main_loop(code).values()), 0)


if __name__ == "__main__":
    unittest.main()
