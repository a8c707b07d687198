# SPDX-License-Identifier: MIT
"""Arithmetic intensity: traffic counted element by element."""

from __future__ import annotations

import unittest

import support  # noqa: F401 - it knows where the others are

import intensity
from ladder import LadderError, Problem


class AttentionTest(unittest.TestCase):
    def setUp(self) -> None:
        self.problem = Problem(2, 3, 8, 20, 4, False, "float32")

    def test_every_tensor_once(self) -> None:
        work = intensity.once(self.problem)
        self.assertEqual(work.flops, 6 * (2 * 8 * 20 * 4) * 2)
        self.assertEqual(work.bytes, 6 * 4 * (8 * 4 + 20 * 4 + 20 * 4 + 8 * 4))
        self.assertEqual(work.bytes, intensity.tensor_bytes(self.problem))

    def test_standard_moves_two_matrices_twice(self) -> None:
        extra = intensity.standard(self.problem).bytes - intensity.once(self.problem).bytes
        self.assertEqual(extra, 6 * 4 * 4 * 8 * 20)

    def test_fused_reads_k_and_v_for_every_tile(self) -> None:
        for rows, tiles in ((8, 1), (4, 2), (3, 3), (100, 1)):
            expected = 6 * 4 * 4 * (8 + 8 + tiles * (20 + 20))
            self.assertEqual(intensity.fused(self.problem, rows).bytes, expected)
        self.assertEqual(intensity.fused(self.problem, 8), intensity.once(self.problem))

    def test_half_the_element_is_twice_the_intensity(self) -> None:
        half = Problem(2, 3, 8, 20, 4, False, "float16")
        for model in (intensity.once, intensity.standard, lambda p: intensity.fused(p, 4)):
            self.assertEqual(model(half).intensity, 2 * model(self.problem).intensity)

    def test_long_sequences(self) -> None:
        """What the chapter says: d/4 and Br/2 FLOP/byte in FP32, twice that in FP16."""
        for dtype, factor in (("float32", 1), ("float16", 2)):
            long = Problem(1, 1, 1 << 20, 1 << 20, 64, False, dtype)
            self.assertAlmostEqual(intensity.standard(long).intensity, factor * 64 / 4, delta=0.01)
            self.assertAlmostEqual(intensity.fused(long, 32).intensity, factor * 32 / 2, delta=0.01)

    def test_what_is_not_modelled(self) -> None:
        causal = Problem(1, 1, 64, 64, 64, True, "float16")
        for model in (intensity.once, intensity.standard, lambda p: intensity.fused(p, 64)):
            with self.assertRaisesRegex(LadderError, "not modelled.*causal"):
                model(causal)
        with self.assertRaises(LadderError):
            intensity.fused(self.problem, 0)

    def test_tiles(self) -> None:
        self.assertEqual(intensity.tile_rows({"variant": "64x128w4"}), 64)
        for wrong in ("", "x", "64", "torch 2.11"):
            with self.assertRaisesRegex(LadderError, "is not a tile"):
                intensity.tile_rows({"variant": wrong})

    def test_the_ridge(self) -> None:
        self.assertEqual(intensity.Ceilings((("product", 50), ("other", 20)), "a copy", 4000).ridge, 12.5)


if __name__ == "__main__":
    unittest.main()
