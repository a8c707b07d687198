#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tool_words_test.py PTXVM: the words of the command line, on PTX that is written here."""

from __future__ import annotations

import json
import re
import struct
import unittest
from pathlib import Path

from tool_case import FINDING, REFUSED, ToolCase, read_npy, write_npy

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
# y[i] *= a * table[i % 2]; counter += 1 for each thread.
SCALE = """
.global .align 4 .u32 counter;
.const .align 4 .f32 table[2] = {0f3F800000, 0f3F800000};
.visible .entry _Z5scalePffj(.param .u64 _Z5scalePffj_param_0, .param .f32 _Z5scalePffj_param_1,
                             .param .u32 _Z5scalePffj_param_2) {
  .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [_Z5scalePffj_param_0];
  ld.param.f32 %f1, [_Z5scalePffj_param_1];
  ld.param.u32 %r1, [_Z5scalePffj_param_2];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mov.u64 %rd2, counter;
  atom.global.add.u32 %r3, [%rd2], 1;
  and.b32 %r4, %r2, 1;
  mul.wide.u32 %rd3, %r4, 4;
  mov.u64 %rd4, table;
  add.s64 %rd4, %rd4, %rd3;
  ld.const.f32 %f2, [%rd4];
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd1, %rd5;
  ld.global.f32 %f3, [%rd6];
  mul.f32 %f3, %f3, %f1;
  mul.f32 %f3, %f3, %f2;
  st.global.f32 [%rd6], %f3;
  ret;
}
"""
# Copies its parameter.
ECHO = """
.visible .entry echo{bits}(.param .u64 out, .param .{type} value) {{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b{bits} %v;
  ld.param.u64 %rd1, [out];
  ld.param.{load} %v, [value];
  st.global.{load} [%rd1], %v;
  ret;
}}
"""
PAIR = """
.visible .entry pair(.param .u64 out, .param .align 8 .b8 value[16]) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [value];
  ld.param.u32 %r1, [value+8];
  ld.global.u32 %r2, [%rd2+4];
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
# Warp 0 stores, warp 1 loads the same words: a race on line 11.
RACE = """.visible .entry race(.param .u64 out) {
  .shared .align 4 .b8 tile[256];
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.s32 %r4, %r2, %r3;
  st.shared.u32 [%r4], %r1;
  xor.b32 %r5, %r3, 128;
  add.s32 %r6, %r2, %r5;
  ld.shared.u32 %r7, [%r6];@
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
"""
# 32 lanes load words 128 bytes apart from shared memory, and from global memory.
STRIDED = """
.visible .entry strided(.param .u64 in) {
  .shared .align 4 .b8 tile[4096];
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 7;
  add.s32 %r4, %r2, %r3;
  mul.wide.u32 %rd2, %r1, 128;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  st.shared.u32 [%r4], %r5;
  ret;
}
"""
# Loads a box of a tensor map into shared memory and copies it to out, one word a thread.
TMAP = """
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 out) {
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b64 bar;
  .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  setp.ne.u32 %p, %r1, 0;
  @%p bra WAIT;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r3], 64;
  mov.u32 %r4, 4;
  mov.u32 %r5, 2;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r2], [%rd2, {%r4, %r5}], [%r3];
WAIT:
  bar.sync 0;
POLL:
  mbarrier.try_wait.parity.shared::cta.b64 %q, [%r3], 0;
  @!%q bra POLL;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r2, %r6;
  ld.shared.u32 %r8, [%r7];
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5], %r8;
  ret;
}
"""
# The same out of a struct: struct { int n; CUtensorMap map; int* out; }, as CUDA before 13 lays it
# out (64 bytes) and since (128).
MEMBERS = {
    align: TMAP.replace(
        ".param .align 64 .b8 map[128], .param .u64 out", f".param .align {align} .b8 s[{bytes}]"
    )
    .replace("[out]", f"[s+{align + 128}]")
    .replace("mov.b64 %rd2, map;", f"mov.b64 %rd2, s; add.s64 %rd2, %rd2, {align};")
    .replace("mov.u32 %r4, 4;", "ld.param.u32 %r4, [s];")
    for align, bytes in ((64, 256), (128, 384))
}
LOOP = ".visible .entry loop() {\nL: bra L;\n}\n"


class Words(ToolCase):
    def ptx(self, *texts: str) -> str:
        (self.folder / "k.ptx").write_text(HEAD + "".join(texts).replace(";@", ";"))
        return "k.ptx"

    def numbers_of(self, name: str) -> list:
        return read_npy(self.folder / name)[0]

    def run_ptx(self, *words: object, code: int = 0) -> str:
        return self.tool("run", "k.ptx", *words, code=code)[0]


class Arguments(Words):
    def test_in_out_and_a_variable_over_two_launches(self) -> None:
        self.ptx(SCALE)
        write_npy(self.folder / "y.npy", [1.0, 2.0, 3.0, 4.0], (4,))
        write_npy(self.folder / "table.npy", [1.0, 10.0], (2,))
        arguments = ("--arg", "inout:y.npy", "--arg", "f32:2", "--arg", "u32:4")
        text = self.run_ptx(
            *("--block", 32, *arguments, "--then"),
            *("--global", "table=table.npy", "--global", "counter=out:n.npy:u32[1]"),
        )
        self.assertEqual(self.numbers_of("y.npy"), [4.0, 800.0, 12.0, 1600.0])
        self.assertEqual(self.numbers_of("n.npy"), [8])
        self.assertEqual(text.count("scale(float*, float, unsigned int): grid (1, 1, 1)"), 2)
        self.assertIn("cluster (1, 1, 1)", text)
        self.refused("run", "k.ptx", "--block", 32, *arguments, "--global", "table=f32:1",
                     says="--global table has 8 bytes, not 4")  # fmt: skip
        self.refused("run", "k.ptx", "--block", 32, *arguments, "--global", "tabel=f32:1",
                     says="no variable 'tabel'; there are: counter, table")  # fmt: skip

    def test_a_later_launch_has_its_own_arguments(self) -> None:
        self.ptx(SCALE)
        write_npy(self.folder / "y.npy", [1.0] * 8, (8,))
        self.run_ptx(
            *("--block", 32, "--arg", "inout:y.npy", "--arg", "f32:2", "--arg", "u32:8"),
            *("--then", "--arg", "buffer:y+16", "--arg", "f32:5", "--arg", "u32:4"),
        )
        self.assertEqual(self.numbers_of("y.npy"), [2.0] * 4 + [10.0] * 4)
        self.refused("run", "k.ptx", "--block", 32, "--arg", "buffer:z", "--arg", "f32:1",
                     "--arg", "u32:1", says="no buffer 'z' yet; there are: none")  # fmt: skip

    def test_a_scalar_of_every_type(self) -> None:
        cases = [
            ("f16:1.5", "b16", "f16", [1.5], "<f2"),
            ("bf16:1.5", "b16", "u16", [0x3FC0], "<u2"),
            ("f32:0.1", "f32", "f32", [struct.unpack("f", struct.pack("f", 0.1))[0]], "<f4"),
            ("f64:-0.1", "f64", "f64", [-0.1], "<f8"),
            ("i8:-3", "s8", "i8", [-3], "|i1"),
            ("u8:200", "u8", "u8", [200], "|u1"),
            ("bool:true", "u8", "bool", [True], "|b1"),
            ("i16:-3", "u16", "int16", [-3], "<i2"),
            ("u16:0xffff", "u16", "uint16", [65535], "<u2"),
            ("i32:-3", "u32", "int32", [-3], "<i4"),
            ("u32:4294967295", "u32", "uint32", [4294967295], "<u4"),
            ("i64:-3", "u64", "int64", [-3], "<i8"),
            ("u64:0xffffffffffffffff", "b64", "uint64", [2**64 - 1], "<u8"),
            ("raw:0000803f", "f32", "float32", [1.0], "<f4"),
        ]
        for word, declared, element, expected, descr in cases:
            bits = declared[1:]
            self.ptx(ECHO.format(bits=max(int(bits), 16), type=declared, load=f"u{bits}"))
            self.run_ptx("--block", 1, "--arg", f"out:o.npy:{element}[1]", "--arg", word)
            self.assertIn(descr.encode(), (self.folder / "o.npy").read_bytes()[:80], word)
            self.assertEqual(self.numbers_of("o.npy"), expected, word)

    def test_a_type_that_does_not_fit(self) -> None:
        self.ptx(SCALE)
        write_npy(self.folder / "y.npy", [1.0], (1,))
        run = ("run", "k.ptx", "--block", 32)
        y, a, n = ("--arg", "y.npy"), ("--arg", "f32:1"), ("--arg", "i32:1")
        self.refused(*run, *y, "--arg", "i32:2", *n,
                     says=r"argument 2, param_1, is \.f32; 'i32:2' does not fit")  # fmt: skip
        self.refused(*run, *y, *a, "--arg", "f32:2", says="'f32:2' does not fit")
        self.refused(*run, *y, *a, "--arg", "i64:2", says="it has 8 bytes, the parameter 4")
        self.refused(*run, *y, *y, *n, says="the buffer 'y.npy' is a pointer of 8 bytes")
        self.refused(*run, "--arg", "tmap:y.npy:box=1", *a, *n, says="a tensor map has 128 bytes")
        for word, allowed in (
            ("i8:128", "from -128 to 127, or 0x and at most 2 "),
            ("u8:-1", "from 0 to 255,"),
            ("i16:40000", "from -32768 to 32767,"),
            ("bool:2", "true, false, 1, 0"),
            ("u64:-1", f"from 0 to {2**64 - 1},"),
            ("i64:9223372036854775808", f"from -{2**63} to {2**63 - 1},"),
            ("i32:0x1ffffffff", "0x and at most 8 hexadecimal digits"),
            ("f32:x", "decimal numbers such as 0.5"),
        ):
            self.refused(
                *run, "--arg", word, says=f"is not a number that it takes; allowed: .*{allowed}"
            )
        for word in ("raw:", "raw:123", "raw:xx"):
            self.refused(*run, "--arg", word, says="two hexadecimal digits")

    def test_a_value_that_is_missing_or_out_of_range(self) -> None:
        self.ptx(SCALE)
        for option in ("--entry", "--card", "--grid", "--block", "--arg", "--global", "--ignore"):
            self.refused("run", "k.ptx", option, "", says=f"{option} needs a value")
        for option, word, allowed in (
            ("--threads", "0", "from 1 to 2147483647"),
            ("--smem", "-1", "from 0 to 4294967295"),
            ("--block", "0", "from 1 to 4294967295"),
        ):
            says = f"{option} '{word}' is not a number that it takes; allowed: whole numbers {allowed}"
            self.refused("run", "k.ptx", option, word, says=says)
        self.refused("run", "k.ptx", "--grid", "1,2,3,4", says="--grid '1,2,3,4': at most three")
        for word in ("f32[8,]", "f32[]", "f32[,8]", "f32[8,,8]"):
            says = re.escape(f"'{word}': an extent is not a whole number above 0")
            self.refused("run", "k.ptx", "--block", 1, "--arg", f"zero:o:{word}", says=says)
        self.refused("run", "k.ptx", "--block", 1, "--arg", "tmap:y.npy:box=4,", says="an extent")

    def test_a_buffer_of_every_type(self) -> None:
        self.ptx(SCALE)
        short = ("f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
        for name in (*short, "bool"):
            self.run_ptx(
                *("--block", 32, "--arg", f"zero:o.npy:{name}[8]"),
                *("--arg", "f32:2", "--arg", "u32:0", "--overwrite"),
            )
            self.assertEqual(self.numbers_of("o.npy"), [0] * 8, name)
            self.run_ptx("--block", 32, "--arg", "inout:o.npy", "--arg", "f32:2", "--arg", "u32:0")
            self.assertEqual(self.numbers_of("o.npy"), [0] * 8, name)

    def test_a_struct_with_a_pointer(self) -> None:
        self.ptx(PAIR)
        write_npy(self.folder / "x.npy", [7, 8, 9], (3,), "<i4")
        out = ("--arg", "out:o.npy:i32[1]")
        self.run_ptx("--block", 1, *out, "--arg", "struct:x.npy;i32:100")
        self.assertEqual(self.numbers_of("o.npy"), [108])
        self.refused(
            "run", "k.ptx", "--block", 1, *out, "--arg", "struct:x.npy", says="has 8 bytes"
        )
        self.refused("run", "k.ptx", "--block", 1, "--arg", "struct:huh", says="the member 'huh'")

    def test_a_tensor_map(self) -> None:
        self.ptx(TMAP)
        write_npy(self.folder / "x.npy", list(range(80)), (8, 10), "<i4")
        write_npy(self.folder / "odd.npy", list(range(96)), (8, 12), "<i4")
        run = ("--block", 16, "--arg", "tmap:odd.npy:box=4,4", "--arg", "out:o.npy:i32[16]")
        self.run_ptx(*run)
        expected = [row * 12 + column for row in range(2, 6) for column in range(4, 8)]
        self.assertEqual(self.numbers_of("o.npy"), expected)
        text = "tmap:x.npy:box=4,4:dims=5,16:strides=64"
        self.run_ptx("--block", 16, "--arg", text, "--arg", "out:o.npy:i32[16]")
        expected = [row * 16 + column for row in range(2, 5) for column in range(4, 8)]
        expected += [0] * 4  # there is no sixth row
        self.assertEqual(self.numbers_of("o.npy"), expected)
        for word, says in (
            ("tmap:odd.npy", "box=EXTENTS is missing"),
            ("tmap:odd.npy:box=4", "box has 1 extents; the tensor map has 2"),
            ("tmap:odd.npy:box=4,300", "a box extent must be from 1 to 256, not 300"),
            ("tmap:odd.npy:box=4,3", "must be a multiple of 16 bytes, not 12"),
            ("tmap:odd.npy:box=4,4:swizzle=48", "swizzle '48'; allowed: 0, 32, 64, 128"),
            ("tmap:odd.npy:bax=4,4", "'bax' is not understood; allowed: box"),
        ):
            self.refused("run", "k.ptx", "--block", 16, "--arg", word,
                         "--arg", "out:o.npy:i32[16]", says=says)  # fmt: skip

    def test_a_struct_with_a_tensor_map(self) -> None:
        write_npy(self.folder / "x.npy", list(range(96)), (8, 12), "<i4")
        expected = [row * 12 + column for row in range(2, 6) for column in range(4, 8)]
        for text in MEMBERS.values():
            self.ptx(text)
            word = "struct:i32:4;tmap:x.npy:box=4,4;out:o.npy:i32[16]"
            self.run_ptx("--block", 16, "--arg", word, "--overwrite")
            self.assertEqual(self.numbers_of("o.npy"), expected)
        self.refused("run", "k.ptx", "--block", 16, "--arg", "struct:i32:4;tmap:x.npy",
                     says="box=EXTENTS is missing")  # fmt: skip


class Names(Words):
    def test_entries_by_part_of_their_name(self) -> None:
        self.ptx(SCALE, RACE)
        write_npy(self.folder / "y.npy", [1.0], (1,))
        y = ("--arg", "y.npy", "--arg", "f32:1", "--arg", "u32:1")
        names = ("scale", "_Z5scalePffj", "scale(float*, float, unsigned int)", "scal", "Pffj")
        for name in names:
            self.run_ptx("--entry", name, "--block", 32, *y)
        self.refused("run", "k.ptx", "--block", 32, says="2 entries: scale.*, race; name one")
        self.refused("run", "k.ptx", "--entry", "a", "--block", 32, says="2 entries that 'a' may")
        self.refused("run", "k.ptx", "--entry", "zz", says="no entry 'zz'; there are: scale")

    def test_list_check_and_help(self) -> None:
        self.ptx(SCALE, RACE)
        out, _ = self.tool("list", "k.ptx")
        for word in ("scale(float*, float, unsigned int)\n", "entry   _Z5scalePffj",
                     "param   .f32 param_1", ".global counter (4 bytes)",
                     ".const table (8 bytes)"):  # fmt: skip
            self.assertIn(word, out)
        out, _ = self.tool("check", "k.ptx")
        self.assertEqual(out, "runs     scale(float*, float, unsigned int)\nruns     race\n")
        (self.folder / "k.cu").write_text("__global__ void k() {}\n")
        self.refused("check", "k.cu", says="nvcc -ptx makes it")
        (self.folder / "k.bin").write_bytes(b"\x7fELF\0\0")
        self.refused("check", "k.bin", says="is a binary file; PTX is text")
        for command in ("run", "check", "list", "isa"):
            out, _ = self.tool(command, "--help")
            self.assertTrue(out.startswith(f"ptxvm {command} "), out)
        self.assertRegex(self.tool("--version")[0], r"\Aptxvm \d+\.\d+\.\d+\n\Z")

    def test_long_lists_are_cut(self) -> None:
        self.ptx(*(LOOP.replace("loop", f"loop{i}") for i in range(50)))
        out, _ = self.tool("list", "k.ptx")
        self.assertEqual(len(out.splitlines()), 40)
        self.assertRegex(out.splitlines()[-1], r"\.\.\. \d+ more lines; --all shows them")
        self.assertGreater(len(self.tool("list", "k.ptx", "--all")[0].splitlines()), 150)
        out, _ = self.tool("check", "k.ptx")
        self.assertEqual(len(out.splitlines()), 50)
        (self.folder / "bad.ptx").write_text(HEAD + ".entry k() {\n" + "frob;\n" * 100 + "}\n")
        _, err = self.tool("list", "bad.ptx", code=REFUSED)
        self.assertLessEqual(len(err.splitlines()), 40)
        _, err = self.tool("list", "bad.ptx", "--all", code=REFUSED)
        self.assertGreater(len(err.splitlines()), 40)

    def test_isa_of_a_spelling(self) -> None:
        out, _ = self.tool("isa", "cp.async.bulk.tensor.2d")
        self.assertIn("cp.async.bulk.tensor.{1d|2d|3d|4d|5d}.shared::cluster", out)
        self.assertNotIn("reduce", self.tool("isa", "cp.async.bulk.tensor.2d.shared")[0])
        self.assertIn("add[.", self.tool("isa", "add.f32")[0])


class Reports(Words):
    def race(self, comment: str = "", above: str = "") -> None:
        load = "  ld.shared.u32 %r7, [%r6];"
        assert load in RACE
        self.ptx(RACE.replace(load + "@", f"{above}{load}{comment}"))

    def run_race(self, *words: str, code: int = FINDING) -> str:
        return self.run_ptx("--block", 64, "--arg", "out:o.npy:u32[64]", *words, code=code)

    def test_findings_can_be_left_out(self) -> None:
        self.race()
        text = self.run_race()
        self.assertIn("\nrace: k.ptx:15: shared", text)
        self.assertIn("hints: ", self.run_strided())
        self.race()
        ignored = self.run_race("--ignore", "race,uninitialised", code=0)
        self.assertNotIn("race: k.ptx", ignored)
        self.assertIn("findings are ignored", ignored)
        self.run_race("--ignore", "copy")
        self.assertEqual(self.run_race("--no-checkers", code=0).count("race: k.ptx"), 0)
        out = ("--arg", "out:o.npy:u32[64]")
        self.refused("run", "k.ptx", "--block", 64, *out, "--ignore", "rice",
                     says="'rice' is not a checker; allowed: race, uninit")  # fmt: skip

    def test_comments(self) -> None:
        for place in ({"comment": " // ptxvm: ignore race, uninitialised"},
                      {"above": "  // ptxvm: ignore all\n"}):  # fmt: skip
            self.race(**place)
            self.assertIn("findings are ignored", self.run_race(code=0))
            self.assertIn("\nrace: k.ptx", self.run_race("--no-comments"))
        for place in ({"comment": " // ptxvm: ignore copy"}, {"comment": " // ignore race"},
                      {"above": "  mov.u32 %r0, 1; // ptxvm: ignore all\n"}):  # fmt: skip
            self.race(**place)
            self.assertIn("\nrace: k.ptx", self.run_race())

    def run_strided(self, *words: str) -> str:
        self.ptx(STRIDED)
        write_npy(self.folder / "x.npy", [0.0] * 1024, (1024,))
        return self.run_ptx("--block", 32, "--arg", "x.npy", *words)

    def test_hints(self) -> None:
        text = self.run_strided()
        self.assertIn("hints: shared memory\n  a store takes 32 wavefronts where 1 would do: 31 of "
                      "32 wavefronts are conflicts; k.ptx:16\n", text)  # fmt: skip
        self.assertIn("hints: global memory\n  a load touches 32 sectors where 4 would do: it uses "
                      "4 of the 32 bytes of each", text)  # fmt: skip
        self.assertNotIn("hints", self.run_strided("--no-hints"))

    def test_json(self) -> None:
        self.race()
        document = json.loads(self.run_race("--json"))
        self.assertEqual((document["schema"], document["file"]), (1, "k.ptx"))
        (launch,) = document["launches"]
        self.assertEqual((launch["kernel"], launch["block"]), ("race", [64, 1, 1]))
        self.assertEqual(launch["cluster"], [1, 1, 1])
        finding = launch["result"]["findings"][0]
        self.assertEqual((finding["checker"], finding["severity"]), ("race", "error"))
        self.assertEqual(finding["diagnostic"]["line"], 15)
        self.assertEqual(launch["result"]["counts"]["store_shared"], 2)
        self.ptx(STRIDED)
        write_npy(self.folder / "x.npy", [0.0] * 1024, (1024,))
        document = json.loads(self.run_ptx("--block", 32, "--arg", "x.npy", "--json"))
        hint = document["launches"][0]["result"]["hints"][0]
        self.assertEqual((hint["section"], hint["line"]), ("shared memory", 16))
        self.assertAlmostEqual(hint["share"], 31 / 32, places=3)

    def test_a_kernel_that_never_ends(self) -> None:
        self.ptx(LOOP)
        text = self.run_ptx("--block", 1, "--max-steps", 1000, code=FINDING)
        self.assertIn("error: k.ptx:5", text)

    def test_cards(self) -> None:
        self.ptx(SCALE)
        run = ("run", "k.ptx", "--block", 32, "--arg", "zero:y:f32[1]", "--arg", "f32:1")
        self.tool(*run, "--arg", "u32:1", "--card", "h100", "--cooperative", "--registers", 32)
        self.refused(*run, "--arg", "u32:1", "--card", "voodoo", says="voodoo.*h200")


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).stem])
