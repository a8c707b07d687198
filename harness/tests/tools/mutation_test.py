# SPDX-License-Identifier: MIT
"""scripts/mutation.py: what it changes in a small kernel, always the same, each edit a change."""

from __future__ import annotations

import unittest

import support  # noqa: F401

import mutation

PTX = """\
.file 1 "/somewhere/a.cu"
.visible .entry k(.param .u64 p)
{
\t.loc 1 7 0
\tsetp.lt.s32 \t%p1, %r1, 4;
\t@%p1 bra \t$end;
\tadd.s32 \t%r2, %r1, 16;
\tsub.f32 \t%f1, %f2, 0f3F800000;
\t.loc 1 8 0
\tld.global.u32 \t%r3, [%rd1+32];
\tbar.sync \t0;
\t{mbarrier.try_wait.parity.shared.b64 p, [%r1], %r2;}
\tbfe.u32 \t%r4, 0f00000000, 0f7F800000;
$end:
\tret;
}
"""

EXPECTED = {
    "comparison changed": ["setp.le.s32 \t%p1, %r1, 4;"],
    "operator changed": ["sub.s32 \t%r2, %r1, 16;", "add.f32 \t%f1, %f2, 0f3F800000;"],
    "predicate dropped": ["bra \t$end;"],
    "predicate negated": ["@!%p1 bra \t$end;"],
    "operands swapped": ["setp.lt.s32\t%p1, 4, %r1;", "sub.f32\t%f1, 0f3F800000, %f2;"],
    "barrier, fence or wait removed": ["", "setp.eq.u32 p, 0, 0;"],
    "integer changed": [
        "setp.lt.s32 \t%p1, %r1, 5;",
        "add.s32 \t%r2, %r1, 17;",
        "ld.global.u32 \t%r3, [%rd1+48];",
        "bar.sync \t1;",
    ],
    "float changed": [
        "sub.f32 \t%f1, %f2, 0f40000000;",
        "bfe.u32 \t%r4, 0f3F800000, 0f7F800000;",
        "bfe.u32 \t%r4, 0f00000000, 0f00000000;",
    ],
    "instruction removed": [""] * 6,
}


class MutationTest(unittest.TestCase):
    def test_each_operator(self) -> None:
        edits = mutation.all_edits("a", PTX)
        self.assertEqual({name: [e.now for e in its] for name, its in edits.items()}, EXPECTED)

    def test_an_edit_changes_its_line_alone(self) -> None:
        before = PTX.splitlines()
        for edit in mutation.chosen("a", PTX, 1000):
            after = edit.apply(PTX).splitlines()
            changed = [i + 1 for i, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]
            self.assertEqual(changed, [edit.line], edit)
            self.assertEqual(edit.source, "a.cu:7" if edit.line < 9 else "a.cu:8")

    def test_the_choice_is_the_same_each_time_and_operators_take_turns(self) -> None:
        some = mutation.chosen("a", PTX, 9)
        self.assertEqual(some, mutation.chosen("a", PTX, 9))
        self.assertEqual({e.operator for e in some}, set(mutation.EDITS))
        count = sum(len(each) for each in EXPECTED.values())
        self.assertEqual(len(set(mutation.chosen("a", PTX, 1000))), count)


if __name__ == "__main__":
    unittest.main()
