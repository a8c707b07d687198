#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""new_instruction_test.py CXX LIBRARY [FLAG...]: a new instruction is a row of isa.def and a binder.

Both are added to a copy of the files that have them. The three sources that read them are compiled,
linked in front of the library, and a kernel with the instruction runs.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MACHINE = Path(__file__).resolve().parent.parent
CXX, LIBRARY, *FLAGS = sys.argv[1:]
ROW = 'OP(gray, "gray.b32", "=t, t", 10, kAny, EXACT, kInteger, .vectors_pending = true)\n'
BINDER = "Bound gray(Modifiers&) { return per_lane<[](uint32_t a) { return a ^ (a >> 1); }>(); }\n"
BESIDE = {"isa/isa.def": ("OP(add,", ROW), "exec/ops/integer.cpp": ("Bound sad(", BINDER)}
COMPILED = ("isa/table.cpp", "exec/bind.cpp", "exec/ops/integer.cpp")
PROGRAM = r"""
#include <cstring>
#include <iostream>
#include "ptxvm/launch.h"
int main() {
  const ptxvm::Module module = ptxvm::Module::parse(R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.param.u64 %rd, [out];
  mov.u32 %r1, 11;
  gray.b32 %r2, %r1;
  st.global.u32 [%rd], %r2;
  ret;
})", "gray.ptx");
  ptxvm::Memory memory;
  const ptxvm::Address out = memory.allocate("out", 4);
  ptxvm::LaunchConfig config;
  config.arguments.push_back(ptxvm::Argument::pointer(out));
  ptxvm::launch(module, "k", config, memory);
  unsigned value;
  std::memcpy(&value, memory.bytes(out).data(), 4);
  std::cout << value << "\n";
}
"""


class NewInstructionTest(unittest.TestCase):
    def test_a_row_and_a_binder_are_enough(self) -> None:
        with tempfile.TemporaryDirectory() as holder:
            folder = Path(holder)
            for name in {*COMPILED, *BESIDE}:
                text = (MACHINE / name).read_text(encoding="utf-8")
                if name in BESIDE:
                    place, added = BESIDE[name]
                    self.assertEqual(text.count("\n" + place), 1)
                    text = text.replace("\n" + place, "\n" + added + place)
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            (folder / "main.cpp").write_text(PROGRAM, encoding="utf-8")
            sources = [folder / name for name in (*COMPILED, "main.cpp")]
            includes = [f"-I{each}" for each in (folder, MACHINE / "include", MACHINE)]
            words = [CXX, "-std=c++20", *FLAGS, *includes, *sources, LIBRARY, "-lpthread"]
            built = subprocess.run(
                [*words, "-o", folder / "k"], capture_output=True, text=True, check=False
            )
            self.assertEqual(built.returncode, 0, built.stderr)
            ran = subprocess.run([folder / "k"], capture_output=True, text=True, check=False)
            self.assertEqual((ran.stdout, ran.stderr), ("14\n", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
