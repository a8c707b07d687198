// SPDX-License-Identifier: MIT
// Whole messages, with the line and the caret.
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

std::string error_of(const std::string& statement, const std::string& target = "sm_80") {
  const std::string text =
      ".version 9.0\n.target " + target +
      "\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>; .reg .f32 %f<4>; "
      ".reg .pred %p<4>; .reg .b64 %d<4>;\n" +
      statement + "\nret;\n}\n";
  try {
    Module::parse(text, "k.ptx");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("unknown instructions") {
  CHECK(error_of("  fma.ftz.f32.f16 %f1, %f1, %f1, %f1;") ==
        "error: k.ptx:7: unknown instruction 'fma.ftz.f32.f16'\n"
        "  7 |   fma.ftz.f32.f16 %f1, %f1, %f1, %f1;\n"
        "    |   ^~~~~~~~~~~~~~~\n"
        "  note: '.ftz' does not fit here; after 'fma' may follow .rn, .rz, .rm, .rp");
  CHECK(error_of("\tadd.u31\t%r1, %r1, 1;") ==
        "error: k.ptx:7: unknown instruction 'add.u31'\n"
        "  7 | \tadd.u31\t%r1, %r1, 1;\n"
        "    | \t^~~~~~~\n"
        "  note: '.u31' does not fit here; after 'add' may follow .u16, .u32, .u64, .s16, .s32, "
        ".s64, .sat, "
        ".u16x2, .s16x2, .cc, .f32, .rn, ...");
}

TEST_CASE("targets") {
  CHECK(error_of("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};") ==
        "error: k.ptx:7: 'stmatrix.sync.aligned.m8n8.x1.shared.b16' needs sm_90; the module's "
        "target is sm_80\n"
        "  7 | stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};\n"
        "    | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
  CHECK(error_of("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", "sm_90") == "accepted");
  CHECK(error_of("", "sm_100a") ==
        "error: k.ptx: the target is sm_100a; this machine runs targets up to sm_90a: compile for "
        "one of "
        "those, with -arch=compute_90a for example");
}

TEST_CASE("operands") {
  CHECK(error_of("add.s32 %r1, %r2, %r9;") ==
        "error: k.ptx:7: '%r9' is not declared\n"
        "  7 | add.s32 %r1, %r2, %r9;\n"
        "    |                   ^~~");
  CHECK(error_of("add.s32 %r1, %r2;") ==
        "error: k.ptx:7: 'add.s32' takes 3 operands, not 2\n"
        "  7 | add.s32 %r1, %r2;\n"
        "    | ^~~~~~~");
  CHECK(error_of("add.f32 %f1, %d2, %f1;") ==
        "error: k.ptx:7: '%d2' is a .b64 register; a .f32 operand is needed\n"
        "  7 | add.f32 %f1, %d2, %f1;\n"
        "    |              ^~~");
  CHECK(error_of("add.f32 %f1, %f2, 1;") ==
        "error: k.ptx:7: a .f32 operand needs a floating-point constant\n"
        "  7 | add.f32 %f1, %f2, 1;\n"
        "    |                   ^");
  CHECK(error_of("add.s32 5, %r1, %r2;") ==
        "error: k.ptx:7: expected a register\n"
        "  7 | add.s32 5, %r1, %r2;\n"
        "    |         ^");
  CHECK(error_of("mov.u32 %tid.x, 1;") ==
        "error: k.ptx:7: '%tid.x' cannot be written\n"
        "  7 | mov.u32 %tid.x, 1;\n"
        "    |         ^~~~~~");
  CHECK(error_of("@%r1 add.s32 %r1, %r1, %r2;") ==
        "error: k.ptx:7: '%r1' is not a predicate\n"
        "  7 | @%r1 add.s32 %r1, %r1, %r2;\n"
        "    |  ^~~");
  CHECK(error_of("add.s32 %r1, !%r1, %r2;") ==
        "error: k.ptx:7: this operand cannot be negated\n"
        "  7 | add.s32 %r1, !%r1, %r2;\n"
        "    |              ^~~~");
  CHECK(error_of("ld.global.v2.u32 {%r1}, [%d1];") ==
        "error: k.ptx:7: expected 2 elements, not 1\n"
        "  7 | ld.global.v2.u32 {%r1}, [%d1];\n"
        "    |                  ^~~~~");
  CHECK(error_of("cp.async.cg.shared.global [%r1], [%d1], 8;") ==
        "error: k.ptx:7: the constant must be 16, not 8\n"
        "  7 | cp.async.cg.shared.global [%r1], [%d1], 8;\n"
        "    |                                         ^");
  CHECK(error_of("bra $L9;") ==
        "error: k.ptx:7: there is no label '$L9' here\n"
        "  7 | bra $L9;\n"
        "    |     ^~~");
}

TEST_CASE("all errors of a text are reported") {
  const std::string all = error_of("frob %r1;\nadd.s32 %r1, %r2;");
  CHECK(all.find("k.ptx:7: unknown instruction 'frob'") != std::string::npos);
  CHECK(all.find("k.ptx:8: 'add.s32' takes 3 operands, not 2") != std::string::npos);
}

TEST_CASE("a long line is cut around the error") {
  const std::string many(1000, ';');
  const std::string message = error_of(many + "frob %r1, %r2;" + many);
  CHECK(message == "error: k.ptx:7: unknown instruction 'frob'\n  7 | ..." + std::string(60, ';') +
                       "frob %r1, %r2;" + std::string(86, ';') + "...\n    | " +
                       std::string(63, ' ') + "^~~~\n  note: there is no instruction 'frob'");
  // At the ends of the line only the other side is cut.
  CHECK(error_of("frob;" + many).find("  7 | frob;;") != std::string::npos);
  const std::string last = error_of(many + "frob;");
  CHECK(last.find("  7 | ...;") != std::string::npos);
  CHECK(last.find(";frob;\n") != std::string::npos);
  // A long name is cut in the message.
  CHECK(error_of(std::string(100000, 'x') + ";").size() < 2000);
}

TEST_CASE("many errors on one line: the first are shown, the others counted") {
  std::string frobs, calls;
  for (int i = 0; i < 20000; ++i) {
    frobs += "frob %r1, [%r2], {%r1, %r2, %r3, %r4}; ";
    calls += "ldu.global.u32 %r1, [%r2]; ";
  }
  const std::string message = error_of(frobs);
  CHECK(message.size() < 20 * 400);
  CHECK(message.ends_with("\nerror: k.ptx: and 19980 more errors"));

  const Module m = Module::parse(kernel(calls), "k.ptx");
  const auto unsupported = m.kernel("k").unsupported();
  REQUIRE(unsupported.size() == 21);
  CHECK(unsupported.back().format() ==
        "error: k.ptx: and 19980 more instructions that this machine does not run");

  const std::string commas = error_of(std::string(100000, ','));
  CHECK(commas.size() < 2000);
}

TEST_CASE("a text that is too long") {
  const auto message = [](size_t bytes) {
    try {
      Module::parse(std::string(bytes, ' '), "k.ptx");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message((32u << 20) + 1) ==
        "error: k.ptx: the text has 33554433 bytes; at most 33554432 are read");
  CHECK(message(1000).find("begins with .version") != std::string::npos);
}

TEST_CASE("an access outside a buffer") {
  const Run r = run(kernel("  ld.global.u32 %r1, [%base+131072];"));
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kOutOfBounds);
  CHECK(r.result.fault->format() ==
        "error: test.ptx:18: global read of 4 bytes out of bounds: at +131072 of buffer 'buffer' "
        "(131072 bytes)\n"
        "  18 |   ld.global.u32 %r1, [%base+131072];\n"
        "     |   ^~~~~~~~~~~~~\n"
        "  note: kernel k, block (0, 0, 0), warp 0, lane 0");
}

TEST_CASE("a misaligned access") {
  const Run r =
      run(kernel("  st.shared.u32 [%r1+2], %r2;", "sm_80", ".extern .shared .b8 s[];\n") + "");
  REQUIRE(r.result.fault);
  const auto stored_at_2 = [](const std::string& before, const std::string& inside) {
    return run(kernel(inside + "  mov.u32 %r1, s;\n  st.shared.u32 [%r1+2], %r2;", "sm_80", before),
               {}, 32, 64)
        .result.fault->message;
  };
  CHECK(stored_at_2(".extern .shared .align 16 .b8 s[];\n", "") ==
        "misaligned shared write of 4 bytes at +1026: the address must be a multiple of 4");
  CHECK(
      stored_at_2("", "  .shared .align 16 .b8 s[64];\n") ==
      "misaligned shared write of 4 bytes at +1026 ('s' +2): the address must be a multiple of 4");
  const Run global =
      run(kernel("  add.u64 %in, %base, 65536;\n  ld.global.v2.u32 {%r1, %r2}, [%in+12];"));
  REQUIRE(global.result.fault);
  CHECK(global.result.fault->message.starts_with("misaligned global read of 8 bytes at 0x"));
  CHECK(global.result.fault->message.ends_with(
      " (+65548 of buffer 'buffer'): the address must be a multiple of 8"));
}

TEST_CASE("arguments that do not fit") {
  const Module m = Module::parse(kernel(""), "k.ptx");
  Memory memory;
  LaunchConfig config;
  auto message = [&] {
    try {
      launch(m, "k", config, memory);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("launched");
  };
  CHECK(message() == "error: 'k' takes 1 argument, not 0");
  config.arguments = {Argument::scalar(1)};
  CHECK(message() == "error: argument 0 of 'k' has 4 bytes; parameter 'buffer' (u64) has 8");
  config.arguments = {Argument::pointer(0)};
  config.block = {2048, 1, 1};
  CHECK(message() == "error: 'k': a block of (2048, 1, 1) threads; from 1 to 1024 are allowed");
  CHECK_THROWS_WITH(launch(m, "nope", config, memory),
                    "error: k.ptx: there is no entry 'nope'; there are: k");
}
