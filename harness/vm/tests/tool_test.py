#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tool_test.py PTXVM PTX_FOLDER: kernels that are on no ladder, run by the command-line tool.

Each result is compared with a computation here, each count with one made by hand.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest

from tool_case import (
    ENVIRONMENT,
    FINDING,
    PTX,
    PTXVM,
    REFUSED,
    ToolCase,
    read_npy,
    single,
    write_npy,
)


class Kernels(ToolCase):
    def test_naive_matmul(self) -> None:
        m, n, k = 24, 64, 40
        a = [self.random.uniform(-1, 1) for _ in range(m * k)]
        b = [self.random.uniform(-1, 1) for _ in range(k * n)]
        write_npy(self.folder / "A.npy", a, (m, k))
        write_npy(self.folder / "B.npy", b, (k, n))
        text = self.launch(
            *("matmul", "matmul_naive", "--grid", "2,3", "--block", "32,8"),
            *("--arg", "A.npy", "--arg", "B.npy", "--arg", f"out:C.npy:float32[{m},{n}]"),
            *("--arg", f"i32:{m}", "--arg", f"i32:{n}", "--arg", f"i32:{k}"),
        )
        c, shape = read_npy(self.folder / "C.npy")
        self.assertEqual(shape, (m, n))
        for row in range(m):
            for column in range(n):
                exact = sum(single(a[row * k + i]) * single(b[i * n + column]) for i in range(k))
                self.assertAlmostEqual(c[row * n + column], exact, delta=1e-5)
        warps = m * n // 32
        self.assertEqual(self.instructions(text, "load_global"), 2 * k * warps)
        self.assertEqual(self.instructions(text, "store_global"), warps)
        # A: one value for the whole warp, one sector. B: 32 neighbours, four sectors.
        self.assertEqual(
            self.numbers(text, "global memory", "load"),
            [2 * k * warps, (1 + 4) * k * warps, 2 * 128 * k * warps],
        )
        self.assertEqual(self.numbers(text, "global memory", "store"), [warps, 4 * warps, 128 * warps])

    def transpose(self, entry: str) -> str:
        n = 64
        values = [float(i) for i in range(n * n)]
        write_npy(self.folder / "A.npy", values, (n, n))
        text = self.launch(
            *("transpose", entry, "--grid", f"{n // 32},{n // 32}", "--block", "32,8"),
            *("--arg", "A.npy", "--arg", f"out:B.npy:float32[{n},{n}]", "--arg", f"i32:{n}"),
            "--by-line",
        )
        transposed, _ = read_npy(self.folder / "B.npy")
        self.assertEqual(transposed, [values[j * n + i] for i in range(n) for j in range(n)])
        self.assertEqual(self.numbers(text, "global memory", "load"), [128, 512, 16384])
        self.assertEqual(self.numbers(text, "global memory", "store"), [128, 512, 16384])
        self.assertEqual(self.shared(text, "store"), [128, 128, 128])
        return text

    def test_transpose_without_padding_is_32_way(self) -> None:
        text = self.transpose("transpose_plain")
        self.assertEqual(self.shared(text, "load"), [128, 32 * 128, 128])
        self.assertRegex(text, r"\n +\d+ +4096 +x32 +512  transpose.cu:9  out\[")

    def test_transpose_with_padding_has_no_conflict(self) -> None:
        text = self.transpose("transpose_padded")
        self.assertEqual(self.shared(text, "load"), [128, 128, 128])
        self.assertNotRegex(text, r"x\d+ +\d+  transpose.cu")

    def test_block_reduction(self) -> None:
        n, block = 1000, 256
        values = [float(self.random.randrange(-50, 50)) for _ in range(n)]
        write_npy(self.folder / "in.npy", values, (n,))
        text = self.launch(
            *("reduce", "block_sum", "--grid", 4, "--block", block),
            *("--arg", "in.npy", "--arg", "out:out.npy:float32[4]", "--arg", f"i32:{n}"),
        )
        sums, _ = read_npy(self.folder / "out.npy")
        self.assertEqual(sums, [sum(values[i : i + block]) for i in range(0, n, block)])
        # Five shuffles in each of 8 warps, five more in the first; 4 blocks.
        self.assertEqual(self.instructions(text, "shuffle"), 4 * (8 * 5 + 5))
        self.assertEqual(self.instructions(text, "barrier"), 4 * 8)
        # Each warp stores one word, the first reads eight with one request.
        self.assertEqual(self.shared(text, "store"), [32, 32, 32])
        self.assertEqual(self.shared(text, "load"), [4, 4, 4])
        # 1000 floats are 125 sectors; 31 whole warps and one with 8 lanes.
        self.assertEqual(self.numbers(text, "global memory", "load"), [32, 125, 4000])

    def test_tensor_core_gemm(self) -> None:
        m, n, k = 32, 24, 64
        a = [float(self.random.randrange(-4, 5)) for _ in range(m * k)]
        b = [float(self.random.randrange(-4, 5)) for _ in range(n * k)]
        write_npy(self.folder / "A.npy", a, (m, k), "<f2")
        write_npy(self.folder / "B.npy", b, (n, k), "<f2")
        text = self.launch(
            *("gemm", "gemm_mma", "--grid", f"{n // 8},{m // 16}", "--block", 32),
            *("--arg", "A.npy", "--arg", "B.npy", "--arg", f"out:C.npy:float32[{m},{n}]"),
            *("--arg", f"i32:{n}", "--arg", f"i32:{k}"),
        )
        c, _ = read_npy(self.folder / "C.npy")
        for row in range(m):
            for column in range(n):
                exact = sum(a[row * k + i] * b[column * k + i] for i in range(k))
                self.assertEqual(c[row * n + column], exact)
        mma = m * n * k // (16 * 8 * 16)
        self.assertEqual(self.instructions(text, "tensor"), mma)
        # Six loads a step. Eight rows, four lanes of 4 bytes each: half a sector of every row.
        self.assertEqual(self.numbers(text, "global memory", "load"), [6 * mma, 48 * mma, 768 * mma])

    def test_an_access_outside_a_buffer(self) -> None:
        write_npy(self.folder / "A.npy", [0.0] * 4096, (64, 64))
        text = self.launch(
            *("transpose", "transpose_plain", "--grid", "2,2", "--block", "32,8"),
            *("--arg", "A.npy", "--arg", "out:B.npy:float32[32,64]", "--arg", "i32:64"),
            code=FINDING,
        )
        self.assertIn("out of bounds", text)
        self.assertIn("'B'", text)
        self.assertIn("transpose.cu:9", text)
        self.assertFalse((self.folder / "B.npy").exists())


class Words(ToolCase):
    def test_list(self) -> None:
        out, _ = self.tool("list", PTX / "transpose.ptx")
        for words in ("transpose_plain\n", "transpose_padded\n", "shared  4224 bytes", "param"):
            self.assertIn(words, out)

    def test_isa(self) -> None:
        out, _ = self.tool("isa", "ldmatrix")
        self.assertTrue(all(line.startswith("ldmatrix") for line in out.splitlines()))
        out, _ = self.tool("isa", "--json")
        document = json.loads(out)
        self.assertGreater(sum(row["runs"] for row in document["instructions"]), 100)
        self.refused("isa", "frobnicate", says="no instruction begins with 'frobnicate'")

    def test_help(self) -> None:
        out, _ = self.tool("--help")
        for word in ("run", "list", "isa", "Exit codes"):
            self.assertIn(word, out)

    def test_command_line(self) -> None:
        ptx = PTX / "transpose.ptx"
        run = ("run", ptx, "--entry", "transpose_plain", "--block", "32,8")
        self.refused(says="no command given; allowed: run, exec, check, list, isa")
        self.refused("rnu", says="command 'rnu' is unknown")
        self.refused("list", says="list takes one PTX file")
        self.refused("run", ptx, "--block", "32", says="2 entries: transpose_p.*; name one")
        self.refused("run", ptx, "--entry", "transpose_plain", says="needs --block")
        self.refused("run", "--entry", "x", "--block", "32", says="needs a PTX file")
        for option in ("--block", "--grid", "--threads", "--smem"):
            self.refused(*run, option, "12abc", says=f"{option} '12abc' is not a number")
        self.refused(*run, "--grid", says="--grid needs a value")
        self.refused(*run, "--grid", "1,1,1,1", says="at most three")
        self.refused(*run, "--frob", says="'--frob' is not understood")
        self.refused(*run, "--arg", "A.txt", says="--arg 'A.txt' is not understood; allowed:")
        self.refused(*run, "--arg", "i32:1.5", says="is not a number")
        self.refused(*run, "--arg", "out:B.npy", says="expected out:NAME:TYPE")
        for bad in ("float8[2]", "float32", "float32[]", "float32[0]", "float32[2", "float32[a]"):
            self.refused(*run, "--arg", f"out:B.npy:{bad}", says="'" + re.escape(bad) + "'")
        self.refused(*run, "--arg", "i32:1", says="takes 3 arguments")
        self.refused("run", ptx, "--entry", "nope", "--block", 32, says="transpose_padded")

    def test_files(self) -> None:
        run = ("run", PTX / "transpose.ptx", "--entry", "transpose_plain", "--block", "32,8")
        self.refused("list", "none.ptx", code=ENVIRONMENT, says="none.ptx: cannot be read")
        self.refused(*run, "--arg", "none.npy", code=ENVIRONMENT, says="none.npy: no such file")
        out = ("--arg", "out:none/B.npy:float32[2]")
        self.refused(*run, *out, code=ENVIRONMENT, says="cannot write 'none/B.npy'")
        (self.folder / "text.npy").write_text("hello, this is no array")
        self.refused(*run, "--arg", "text.npy", says="not a .npy file")
        write_npy(self.folder / "short.npy", [1.0, 2.0], (3,))
        self.refused(*run, "--arg", "short.npy", says="needs more than the 8 bytes after the header")
        raw = (self.folder / "short.npy").read_bytes()
        (self.folder / "odd.npy").write_bytes(raw.replace(b"<f4", b"<c8"))
        self.refused(*run, "--arg", "odd.npy", says="allowed: float16, bfloat16, float32")
        (self.folder / "key.npy").write_bytes(raw.replace(b"shape", b"shapE"))
        self.refused(*run, "--arg", "key.npy", says="malformed .npy header: key 'shapE'")
        (self.folder / "fortran.npy").write_bytes(raw.replace(b"False", b"True "))
        self.refused(*run, "--arg", "fortran.npy", says="Fortran order")
        # What never ends, and what is too long, is refused unread.
        run = ("--entry", "k", "--block", 32)
        self.refused("run", "/dev/zero", *run, says="/dev/zero: is not a regular file")
        self.refused("list", self.folder, says="is not a regular file")
        os.mkfifo(self.folder / "pipe.ptx")
        self.refused("list", "pipe.ptx", says="pipe.ptx: is not a regular file")
        (self.folder / "zeros.npy").symlink_to("/dev/zero")
        self.refused(
            *("run", PTX / "transpose.ptx", "--entry", "transpose_plain", "--block", "32,8"),
            *("--arg", "zeros.npy"),
            says="zeros.npy: not a regular file",
        )
        with (self.folder / "long.ptx").open("wb") as long:
            long.truncate(1 << 40)
        self.refused("list", "long.ptx", says="has 1099511627776 bytes; at most 33554432 are read")

    def test_many_errors(self) -> None:
        head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>;\n"
        text = head + "frob %r1, %r2, {%r1, %r2}; " * 20000 + "\n}\n"
        (self.folder / "bad.ptx").write_text(text)
        _, err = self.tool("list", "bad.ptx", "--all", code=REFUSED)
        self.assertLess(len(err), 10000)
        self.assertEqual(err.count("unknown instruction 'frob'"), 20)
        self.assertIn("bad.ptx: and 19980 more errors", err)

    def test_a_file_that_is_not_ptx(self) -> None:
        (self.folder / "bad.ptx").write_text(".version 8.0\n.target sm_80\nfrob\n")
        self.refused("list", "bad.ptx", says="bad.ptx:3")

    def test_the_end_of_a_c_string(self) -> None:
        text = b".version 8.0\n.target sm_80\n.visible .entry k()\n{\nret;\n}\n"
        (self.folder / "nvrtc.ptx").write_bytes(text + b"\0")
        self.assertIn("runs     k", self.tool("check", "nvrtc.ptx")[0])
        (self.folder / "binary.ptx").write_bytes(text + b"\0\0more")
        self.refused("check", "binary.ptx", says="is a binary file")

    def test_nothing_is_lost(self) -> None:
        write_npy(self.folder / "A.npy", [1.0] * 64 * 64, (64, 64))
        ptx = shutil.copy(PTX / "transpose.ptx", self.folder)
        run = ("run", ptx, "--entry", "transpose_plain", "--grid", "2,2", "--block", "32,8")
        run += ("--arg", "A.npy")

        def out(name: str) -> tuple[str, ...]:
            return ("--arg", f"out:{name}:float32[64,64]", "--arg", "i32:64")

        os.mkfifo(self.folder / "pipe")
        os.link(self.folder / "A.npy", self.folder / "hard.npy")
        (self.folder / "notes").write_text("my notes")
        self.refused(*run, *out("A.npy"), says="is the file of --arg")
        self.refused(*run, *out("hard.npy"), says="is the file of --arg")
        self.refused(*run, *out("transpose.ptx"), "--overwrite", says="is the file of the PTX")
        self.refused(*run, *out("notes"), says="--overwrite replaces it")
        self.refused(*run, *out("pipe"), code=ENVIRONMENT, says="not a regular file")
        self.refused(*run, *out("/dev/full"), code=ENVIRONMENT, says="not a regular file")
        self.refused("run", ptx, "--entry", "transpose_plain", "--block", 1, "--arg", "pipe.npy",
                     code=ENVIRONMENT, says="no such file")  # fmt: skip
        self.assertEqual((self.folder / "notes").read_text(), "my notes")
        (self.folder / "link.npy").symlink_to("B.npy")
        self.tool(*run, *out("link.npy"))
        self.assertTrue((self.folder / "link.npy").is_symlink())
        self.tool(*run, *out("B.npy"))
        self.tool(*run, *out("notes"), "--overwrite")
        self.assertEqual(read_npy(self.folder / "notes"), read_npy(self.folder / "B.npy"))

    def test_hostile_arrays(self) -> None:
        run = ("run", PTX / "transpose.ptx", "--entry", "transpose_plain", "--block", "32,8")
        os.mkfifo(self.folder / "pipe.npy")
        self.refused(*run, "--arg", "pipe.npy", says="not a regular file")
        (self.folder / "long.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
        os.truncate(self.folder / "long.npy", 5 << 30)  # it takes no room
        self.refused(*run, "--arg", "long.npy", says="the header has 4294967295 bytes")
        for kind in ("out:B.npy", "zero:Z"):
            huge = f"{kind}:float32[100000000000]"
            self.refused(*run, "--arg", huge, code=ENVIRONMENT,
                         says=r"need 400000000000 bytes of memory, \d+ are available")  # fmt: skip
        self.assertFalse((self.folder / "B.npy").exists())

    def test_full_stdout(self) -> None:
        for words in (("--help",), ("isa",), ("isa", "--json"), ("list", PTX / "transpose.ptx")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    [PTXVM, *map(str, words)], stdout=full, stderr=subprocess.PIPE, check=False
                )
            self.assertEqual(done.returncode, ENVIRONMENT, words)
            self.assertIn(b"cannot write", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=["tool_test"])
