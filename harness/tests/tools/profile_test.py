# SPDX-License-Identifier: MIT
"""scripts/profile_kernels.py: what it reads from ncu's table."""

from __future__ import annotations

import unittest

import support  # noqa: F401  (paths)

import profile_kernels
from ladder import LadderError

HEADS = ["ID", "Process Name", "Kernel Name", *profile_kernels.METRICS.values()]


def table(*rows: list[str]) -> str:
    units = [""] * 3 + ["inst"] * len(profile_kernels.METRICS)
    lines = [",".join(f'"{cell}"' for cell in row) for row in (HEADS, units, *rows)]
    return "\n".join(["==PROF== Connected", "06_batched on B=1: launched once", *lines]) + "\n"


class ReportTest(unittest.TestCase):
    def test_a_launch(self) -> None:
        values = ["33,554,432", *(str(i) for i in range(1, len(profile_kernels.METRICS)))]
        (row,) = profile_kernels.parse_report(table(["0", "fa", "fa_06_batched_d128", *values]))
        self.assertEqual(row["entry"], "fa_06_batched_d128")
        self.assertEqual(row["counters"]["tensor_pipe"], 33554432)
        self.assertEqual(list(row["counters"]), list(profile_kernels.METRICS))

    def test_several_launches_and_signatures(self) -> None:
        values = ["1"] * len(profile_kernels.METRICS)
        names = ("first(const float *, int)", "second")
        rows = profile_kernels.parse_report(
            table(*([str(i), "fa", name, *values] for i, name in enumerate(names)))
        )
        self.assertEqual([row["entry"] for row in rows], ["first", "second"])

    def test_an_unknown_counter_is_null(self) -> None:
        values = ["n/a"] * len(profile_kernels.METRICS)
        (row,) = profile_kernels.parse_report(table(["0", "fa", "k", *values]))
        self.assertEqual(set(row["counters"].values()), {None})

    def test_a_missing_column_is_null(self) -> None:
        (row,) = profile_kernels.parse_report('"ID","Kernel Name"\n"",""\n"0","k"\n')
        self.assertEqual(set(row["counters"].values()), {None})

    def test_no_table(self) -> None:
        with self.assertRaisesRegex(LadderError, "no table"):
            profile_kernels.parse_report("==ERROR== ERR_NVGPUCTRPERM\n")


if __name__ == "__main__":
    unittest.main()
