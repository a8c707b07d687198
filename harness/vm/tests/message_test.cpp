// SPDX-License-Identifier: MIT
// Whole messages, with the line and the caret.
#include "catch.h"
#include "grid_kernels.h"
#include "ptxvm/races.h"

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

// What a checker says, one finding a line. %r1: the thread's own word of `area`; %r2: its start.
std::string said(const std::string& body, uint32_t threads = 64) {
  Races races;
  Options options;
  options.observers = {&races};
  const std::string set_up =
      ".shared .align 16 .b8 area[4096];\n"
      "shl.b32 %r1, %lane, 2; mov.u32 %r2, area; add.u32 %r1, %r1, %r2; shr.u32 %r3, %lane, 5;\n";
  std::string text;
  for (const Finding& f :
       run(kernel(set_up + body, "sm_90a"), {}, threads, 0, options).result.findings) {
    text += f.message + "\n";
  }
  return text;
}

// The same of blocks that race for global memory.
std::string said_of_blocks(const std::string& body, Fill fill = Fill::kZero) {
  Memory memory;
  LaunchConfig config = grid_of(2);
  config.arguments = {Argument::pointer(memory.allocate("data", 65536, fill))};
  GlobalRaces races;
  Options options;
  options.observers = {&races};
  const Module module = Module::parse(grid_kernel(body), "grid.ptx");
  const LaunchResult r = launch(module, "k", config, memory, options);
  return r.findings.empty() ? "" : r.findings[0].message;
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

TEST_CASE("races in shared memory") {
  const std::string write = "st.shared.u32 [%r1], %lane;\n";
  CHECK(said(write + "bar.warp.sync -1;\nld.shared.u32 %r5, [area];\n") ==
        "shared +0, 4 bytes: warp 1 reads at test.ptx:22 what warp 0 wrote at :20; nothing orders "
        "them; 0 was written and is read\n");
  CHECK(said("st.shared.u32 [area], 1;\n") ==
        "shared +0, 4 bytes: warp 1 overwrites at test.ptx:20 what warp 0 wrote at :20; nothing "
        "orders them, and both write the same value; 1 was written, 1 is written\n");
  const std::string neighbour = "xor.b32 %r4, %r1, 4;\nld.shared.u32 %r5, [%r4];\n";
  CHECK(said(write + neighbour, 32) ==
        "shared +4, 4 bytes: lane 0 of warp 0 reads at test.ptx:22 what lane 1 of warp 0 wrote at "
        ":20; no bar.warp.sync comes between; 1 was written and is read\n");
  CHECK(said(write + "bar.warp.sync -1;\n" + neighbour +
                 "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nst.shared.u32 [%r1], %r6;\n",
             32) ==
        "shared +0, 4 bytes: lane 0 of warp 0 overwrites at test.ptx:25 what lane 1 of warp 0 read "
        "at :23; a shfl.sync hands on what was read, and orders no memory; 0 was read, 0 is "
        "written\n");
  const std::string copy = "cp.async.ca.shared.global [%r1], [%in], 4;\n";
  CHECK(said(copy + "ld.shared.u32 %r5, [%r1];\ncp.async.wait_all;\n", 32) ==
        "shared +0, 4 bytes: warp 0 reads at test.ptx:21 what a cp.async of warp 0, issued at :20, "
        "is still writing; no wait comes between; 4294967295 is read\n");
}

TEST_CASE("copies, barriers and proxies") {
  const std::string copy = "cp.async.ca.shared.global [%r1], [%in], 4;\n";
  CHECK(said(copy + "cp.async.commit_group;\n", 32) ==
        "warp 0 exits, and nothing has waited for its copies at test.ptx:20\n");
  CHECK(said(copy, 32) ==
        "warp 0 exits, and its copies at test.ptx:20 were neither committed nor waited for\n");
  const std::string store =
      "setp.eq.u32 %p1, %lane, 0;\nst.shared.u32 [%r1], %lane;\nbar.sync 0;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n";
  CHECK(said(store + "@%p1 cp.async.bulk.commit_group;\n", 32) ==
        "shared +0, 16 bytes: a bulk store of warp 0, issued at test.ptx:23, reads what warp 0 "
        "wrote at :21; no fence.proxy.async comes between\n"
        "warp 0 exits, and nothing has waited for its bulk stores at test.ptx:23\n");
  CHECK(said("bar.arrive 4, 64;\n", 32) ==
        "barrier 4: warp 0 arrives at test.ptx:20, and the phase is never complete\n");
  const std::string init =
      ".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
      "@%p1 mbarrier.init.shared::cta.b64 [%r8], 1;\n";
  CHECK(said(init + "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r8], 0;\n") ==
        "mbarrier at shared +4096: warp 1 uses it at test.ptx:23; nothing orders this after the "
        "init by warp 0 at :22\n");
  CHECK(said(init + "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 16;\n"
                    "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], "
                    "[%in], 16, [%r8];\n",
             32) ==
        "mbarrier at shared +4096: a bulk copy uses it at test.ptx:24; no fence.mbarrier_init or "
        "fence.proxy.async follows the init at :22\n");
}

TEST_CASE("values that nobody has written") {
  const std::string use = "st.global.u32 [%out], %r4;\n";
  CHECK(said("ld.shared.u32 %r4, [area+64];\n" + use, 32) ==
        "shared +64, 4 bytes: warp 0 reads at test.ptx:20 what nobody has written\n");
  CHECK(said(".local .align 4 .b8 own[4];\nld.local.u32 %r4, [own];\n" + use, 32) ==
        "local +0, 1 byte: lane 0 of warp 0 reads at test.ptx:21 what it has not written\n");
  CHECK(said(use, 32) ==
        "register %r4: warp 0 uses its value at test.ptx:20, and nothing has set it\n");
  CHECK(said_of_blocks("ld.global.u32 %r1, [%base+64];", Fill::kPoison) ==
        "global 'data' +64, 4 bytes: warp 0 of block 0 reads at grid.ptx:11 what nobody has "
        "written");
}

TEST_CASE("races of blocks") {
  CHECK(said_of_blocks("st.global.u32 [%base], %lane;") ==
        "global 'data' +0, 4 bytes: warp 0 of block 1 overwrites at grid.ptx:11 what warp 0 of "
        "block 0 wrote at :11; nothing orders them; 31 was written, 0 is written");
}
