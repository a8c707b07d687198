// SPDX-License-Identifier: MIT
// Whole messages, with the line and the caret: one of each kind. Most other tests say where a fault
// or a finding is, and leave its words to this one.
#include <array>

#include "catch.h"
#include "grid_kernels.h"

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

std::string messages_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.message + "\n";
  return text;
}

// What a checker says, one finding a line.
std::string said(const std::string& body, uint32_t threads = 64) {
  return messages_of(run_checked(kernel(kArea + body, "sm_90a"), threads).result.findings);
}

// What is said of a fault, without its place.
std::string fault_of(const std::string& body, uint32_t threads = 32) {
  const Run r = run(kernel(kArea + body, "sm_90a"), {}, threads);
  return r.result.fault ? r.result.fault->message : "";
}

// Where the warps are when none can go on.
std::string positions_of(const LaunchResult& r) {
  if (!r.fault || r.fault->kind != FaultKind::kDeadlock) return "no deadlock\n";
  std::string text;
  for (const std::string& note : r.fault->where.notes) {
    if (note.find("warp ") != std::string::npos) text += note + "\n";
  }
  return text;
}

LaunchResult run_blocks(const std::string& text, LaunchConfig config, Observer& observer,
                        Fill fill = Fill::kZero) {
  Memory memory;
  config.arguments = {Argument::pointer(memory.allocate("data", 65536, fill))};
  Options options;
  options.observers = {&observer};
  return launch(Module::parse(text, "grid.ptx"), "k", config, memory, options);
}

// What the checker of blocks that race for global memory says first.
std::string said_of_blocks(const std::string& body, Fill fill = Fill::kZero) {
  GlobalRaces races;
  const LaunchResult r = run_blocks(grid_kernel(body), grid_of(2), races, fill);
  return r.findings.empty() ? "" : r.findings[0].message;
}

const std::string kMeet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

// Two blocks of a cluster, each of a warp. %r4 is the rank, %r5 that of the other block, %r6 the
// place in the other block that %r1 is in this one.
LaunchResult run_cluster(const std::string& body) {
  Races races;
  LaunchConfig config = grid_of(2);
  config.cluster = config.grid;
  return run_blocks(kernel(kArea + ("mov.u32 %r4, %cluster_ctarank; xor.b32 %r5, %r4, 1;\n"
                                    "mapa.shared::cluster.u32 %r6, %r1, %r5;\n" +
                                    body),
                           "sm_90a"),
                    config, races);
}

std::string said_in_cluster(const std::string& body) {
  return messages_of(run_cluster(body).findings);
}

std::string fault_in_cluster(const std::string& body) {
  const LaunchResult r = run_cluster(body);
  return r.fault ? r.fault->message : "";
}

// What is said of the tensor map at %d1 when lane 0 has edited it and uses it.
std::string fault_of_map(const std::array<std::byte, 128>& map, const std::string& edits,
                         const std::string& use) {
  const std::string body =
      "setp.ne.u32 %p1, %lane, 0;\n@%p1 bra $end;\nadd.u64 %d1, %base, 65536;\nmov.u32 %r4, 0;\n";
  const Run r =
      run(kernel(kArea + body + edits + use + "\n$end:\n", "sm_90a"), {map.begin(), map.end()});
  return r.result.fault ? r.result.fault->message : "";
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
  CHECK(error_of("wgmma.fence.sync.aligned;", "sm_100a") ==
        "error: k.ptx:7: 'wgmma.fence.sync.aligned' needs sm_90a; the module's target is sm_100a\n"
        "  7 | wgmma.fence.sync.aligned;\n"
        "    | ^~~~~~~~~~~~~~~~~~~~~~~~");
  CHECK(error_of("tcgen05.wait::ld.sync.aligned;", "sm_100") ==
        "error: k.ptx:7: 'tcgen05.wait::ld.sync.aligned' needs sm_100a; the module's target is "
        "sm_100\n"
        "  7 | tcgen05.wait::ld.sync.aligned;\n"
        "    | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
  CHECK(error_of("tcgen05.wait::ld.sync.aligned;", "sm_100f") == "accepted");
  // A target is no reason of its own: what a later card shares with its forerunners runs.
  CHECK(error_of("", "sm_120a") == "accepted");
  CHECK(error_of("wgmma.fence.sync.aligned;", "sm_120a") ==
        "error: k.ptx:7: 'wgmma.fence.sync.aligned' needs sm_90a; the module's target is sm_120a\n"
        "  7 | wgmma.fence.sync.aligned;\n"
        "    | ^~~~~~~~~~~~~~~~~~~~~~~~");
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
  CHECK(error_of("mbarrier.arrive.shared::cluster.b64 %d1, [%r1];", "sm_90") ==
        "error: k.ptx:7: the destination must be '_' here: another block's barrier gives no state\n"
        "  7 | mbarrier.arrive.shared::cluster.b64 %d1, [%r1];\n"
        "    |                                     ^~~");
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

TEST_CASE("an access beside a buffer") {
  const auto message = [](Address to) {
    const Module m = Module::parse(kernel("  ld.global.u32 %r1, [%base+-4];"), "k.ptx");
    Memory memory;
    memory.allocate("first", 64);
    const Address second = memory.allocate("second", 64);
    LaunchConfig config;
    config.arguments = {Argument::pointer(to == 0 ? 0 : second)};
    const LaunchResult r = launch(m, "k", config, memory);
    return r.fault ? r.fault->message : "";
  };
  CHECK(message(1) ==
        "global read of 4 bytes out of bounds: 4 bytes before buffer 'second' (64 bytes)");
  CHECK(message(0) == "global read of 4 bytes out of bounds: no buffer near 0xfffffffffffffffc");
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
  config.block = {32, 1, 1};
  config.grid = {3, 1, 1};
  config.cluster = {2, 1, 1};
  CHECK(message() == "error: 'k': the grid (3, 1, 1) is not a multiple of the cluster (2, 1, 1)");
  config.grid = config.cluster = {32, 1, 1};
  CHECK(message() == "error: 'k': a cluster of (32, 1, 1) blocks; from 1 to 16 are allowed");
}

TEST_CASE("races in shared memory") {
  const std::string write = "st.shared.u32 [%r1], %lane;\n";
  CHECK(said(write + "bar.warp.sync -1;\nld.shared.u32 %r5, [area];\n") ==
        "shared +0, 4 bytes: warp 1 reads at test.ptx:23 what warp 0 wrote at :21; nothing orders "
        "them; 0 was written and is read\n");
  CHECK(said("st.shared.u32 [area], 1;\n") ==
        "shared +0, 4 bytes: warp 1 overwrites at test.ptx:21 what warp 0 wrote at :21; nothing "
        "orders them, and both write the same value; 1 was written, 1 is written\n");
  const std::string neighbour = "xor.b32 %r4, %r1, 4;\nld.shared.u32 %r5, [%r4];\n";
  CHECK(said(write + neighbour, 32) ==
        "shared +4, 4 bytes: lane 0 of warp 0 reads at test.ptx:23 what lane 1 of warp 0 wrote at "
        ":21; no bar.warp.sync comes between; 1 was written and is read\n");
  CHECK(said(write + "bar.warp.sync -1;\n" + neighbour +
                 "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nst.shared.u32 [%r1], %r6;\n",
             32) ==
        "shared +0, 4 bytes: lane 0 of warp 0 overwrites at test.ptx:26 what lane 1 of warp 0 read "
        "at :24; a shfl.sync hands on what was read, and orders no memory; 0 was read, 0 is "
        "written\n");
  const std::string copy = "cp.async.ca.shared.global [%r1], [%in], 4;\n";
  CHECK(said(copy + "ld.shared.u32 %r5, [%r1];\ncp.async.wait_all;\n", 32) ==
        "shared +0, 4 bytes: warp 0 reads at test.ptx:22 what a cp.async of warp 0, issued at :21, "
        "is still writing; no wait comes between; 4294967295 is read\n");
}

TEST_CASE("copies, barriers and proxies") {
  const std::string copy = "cp.async.ca.shared.global [%r1], [%in], 4;\n";
  CHECK(said(copy + "cp.async.commit_group;\n", 32) ==
        "warp 0 exits, and nothing has waited for its copies at test.ptx:21\n");
  CHECK(said(copy, 32) ==
        "warp 0 exits, and its copies at test.ptx:21 were neither committed nor waited for\n");
  const std::string store =
      "setp.eq.u32 %p1, %lane, 0;\nst.shared.u32 [%r1], %lane;\nbar.sync 0;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n";
  CHECK(said(store + "@%p1 cp.async.bulk.commit_group;\n", 32) ==
        "shared +0, 16 bytes: a bulk store of warp 0, issued at test.ptx:24, reads what warp 0 "
        "wrote at :22; no fence.proxy.async comes between\n"
        "warp 0 exits, and nothing has waited for its bulk stores at test.ptx:24\n");
  CHECK(said("bar.arrive 4, 64;\n", 32) ==
        "barrier 4: warp 0 arrives at test.ptx:21, and the phase is never complete\n");
  const std::string init =
      ".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
      "@%p1 mbarrier.init.shared::cta.b64 [%r8], 1;\n";
  CHECK(said(init + "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r8], 0;\n") ==
        "mbarrier at shared +4096: warp 1 uses it at test.ptx:24; nothing orders this after the "
        "init by warp 0 at :23\n");
  CHECK(said(".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar;\n"
             "mbarrier.init.shared::cta.b64 [%r8], 1;\n",
             32) ==
        "mbarrier at shared +4096: warp 0 initialises it at test.ptx:23, which warp 0 has done at "
        ":23; cards take it, the rules want one thread to do it\n");
  CHECK(said(init + "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 16;\n"
                    "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], "
                    "[%in], 16, [%r8];\n",
             32) ==
        "mbarrier at shared +4096: a bulk copy uses it at test.ptx:25; no fence.mbarrier_init or "
        "fence.proxy.async follows the init at :23\n");
  const std::string late =
      "bar.sync 0;\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8], 1;\n"
      "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r8];\n";
  CHECK(said(init + late) ==
        "mbarrier at shared +4096: warp 1 waits for the phase before the first at test.ptx:25; "
        "nothing orders this before the end of phase 0 by warp 0 at :26, and a late warp waits for "
        "phase 1\n");
  CHECK(said(init + "bar.sync 0;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%r8];\n" +
             "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8], 0;\n"
             "setp.eq.u32 %p3, %lane, 32;\n@%p3 mbarrier.arrive.shared::cta.b64 _, [%r8];\n") ==
        "mbarrier at shared +4096: warp 0 waits for phase 0 at test.ptx:26; nothing orders this "
        "before the end of phase 1 by warp 1 at :28, and a late warp waits for phase 2\n");
}

TEST_CASE("values that nobody has written") {
  const std::string use = "st.global.u32 [%out], %r4;\n";
  CHECK(said("ld.shared.u32 %r4, [area+64];\n" + use, 32) ==
        "shared +64, 4 bytes: warp 0 reads at test.ptx:21 what nobody has written\n");
  CHECK(said(".local .align 4 .b8 own[4];\nld.local.u32 %r4, [own];\n" + use, 32) ==
        "local +0, 1 byte: lane 0 of warp 0 reads at test.ptx:22 what it has not written\n");
  CHECK(said(use, 32) ==
        "register %r4: warp 0 uses its value at test.ptx:21, and nothing has set it\n");
  CHECK(said_of_blocks("ld.global.u32 %r1, [%base+64];", Fill::kPoison) ==
        "global 'data' +64, 4 bytes: warp 0 of block 0 reads at grid.ptx:11 what nobody has "
        "written");
}

TEST_CASE("races of blocks") {
  CHECK(said_of_blocks("st.global.u32 [%base], %lane;") ==
        "global 'data' +0, 4 bytes: warp 0 of block 1 overwrites at grid.ptx:11 what warp 0 of "
        "block 0 wrote at :11; nothing orders them; 31 was written, 0 is written");
  CHECK(said_of_blocks("@!%p1 bra $end;\nsetp.ne.u32 %p2, %block, 0;\n@%p2 bra $reader;\n"
                       "st.global.u32 [%base], 1;\nst.release.gpu.global.u32 [%base+4], 1;\n"
                       "bra $end;\n$reader:\nld.relaxed.gpu.global.u32 %r1, [%base+4];\n"
                       "setp.eq.u32 %p3, %r1, 0;\n@%p3 bra $reader;\nld.global.u32 %r2, [%base];\n"
                       "$end:") ==
        "global 'data' +0, 4 bytes: warp 0 of block 1 reads at grid.ptx:21 what warp 0 of block 0 "
        "wrote at :14; the flag between them was read without acquire, and no fence follows it; 1 "
        "was written and is read");
}

TEST_CASE("a race shows its values") {
  // The first statement is of warp 1, which completes the barrier and goes on.
  const auto values = [](const std::string& first, const std::string& second) {
    const std::string text = said(
        "setp.eq.u32 %p1, %r3, 0;\n@%p1 st.shared.v4.u32 [area], {1, 2, 3, 4};\nbar.sync 0;\n"
        "@%p1 bra $second;\n" +
        first + "\nbra.uni $end;\n$second:\n" + second + "\n$end:\n");
    const std::string before = "nothing orders them; ";
    const size_t at = text.find(before);
    if (at == std::string::npos) return std::string("none");
    return text.substr(at + before.size(), text.find('\n', at) - at - before.size());
  };
  CHECK(values("st.shared.f32 [area], 0f3FC00000;", "st.shared.f32 [area], 0fC0200000;") ==
        "1.5 was written, -2.5 is written");
  CHECK(values("ld.shared.u32 %r5, [area+4];", "st.shared.s32 [area+4], -7;") ==
        "2 was read, -7 is written");
  CHECK(values("st.shared.b32 [area+4], 7;", "ld.shared.b32 %r5, [area+4];") ==
        "0x00000007 was written and is read");
  CHECK(values("st.shared.v2.u32 [area], {8, 9};",
               "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [area];") ==
        "{8, 9, 3, 4} was written and is read");
  CHECK(values("ld.shared.u32 %r5, [area];", "cp.async.ca.shared.global [area], [%in], 4;") ==
        "0x00000001 was read");
}

TEST_CASE("a finding in full") {
  const Run r = run_checked(kernel(kArea + std::string("st.shared.u32 [%r1], %lane;\n"
                                                       "ld.shared.u32 %r5, [area];\n")),
                            64);
  REQUIRE(r.result.findings.size() == 2);
  CHECK(format(r.result.findings[0]) ==
        "race: shared +0, 4 bytes: warp 1 reads at test.ptx:22 what warp 0 wrote at :21; "
        "nothing orders them; 0 was written and is read\n"
        "  22 | ld.shared.u32 %r5, [area];\n"
        "     | ^~~~~~~~~~~~~\n"
        "  note: the other is :21: st.shared.u32 [%r1], %lane\n"
        "  note: kernel k, block (0, 0, 0)");
  CHECK(!r.result.ok());
}

TEST_CASE("the use of what nobody has written is named") {
  const Run r = run_checked(kernel(kArea + std::string("ld.shared.u32 %r5, [%r1];\n"
                                                       "neg.s32 %r6, %r5;\n"
                                                       "st.global.u32 [%out], %r6;\n")));
  REQUIRE(r.result.findings.size() == 1);
  CHECK(
      format(r.result.findings[0]).find("its value is used at :23: st.global.u32 [%out], %r6\n") !=
      std::string::npos);
}

TEST_CASE("findings about blocks of a cluster") {
  const std::string set = "setp.eq.u32 %p1, %r4, ", store = "st.shared::cluster.u32 [%r6], 1;\n";
  CHECK(said_in_cluster(set + "0;\n@%p1 " + store + kMeet) ==
        "warp 0 of block 0 uses shared memory of block 1 at grid.ptx:24; nothing says that this "
        "block has started\n");
  CHECK(said_in_cluster(kMeet + set + "1;\n@%p1 " + store) ==
        "warp 0 of block 1 uses shared memory of block 0 at grid.ptx:26; nothing orders this "
        "before the exit of that block\n");
  CHECK(said_in_cluster(kMeet + set + "0;\n@%p1 " + store + "@!%p1 ld.shared.u32 %r7, [%r1];\n" +
                        kMeet) ==
        "shared +0 of block 1, 4 bytes: warp 0 of block 0 overwrites at grid.ptx:26 what warp 0 of "
        "block 1 read at :27; nothing orders them; 4294967295 was read, 1 is written\n");
}

TEST_CASE("faults in a cluster") {
  CHECK(fault_in_cluster(kMeet + "setp.eq.u32 %p1, %r4, 0;\n"
                                 "@%p1 st.shared::cluster.u32 [%r6], 1;\n") ==
        "block 1 of the cluster has exited; its shared memory must not be used any more");
  CHECK(fault_in_cluster("mapa.shared::cluster.u32 %r7, %r1, 2;\n") == "");
  CHECK(fault_in_cluster("mapa.shared::cluster.u32 %r7, %r1, 300;\n"
                         "ld.shared::cluster.u32 %r7, [%r7];\n") ==
        "shared address 0xff000400 is of block 253, and the cluster has 2");
  CHECK(fault_in_cluster("ld.shared::cluster.u32 %r7, [167773184];\n") ==
        "shared address 0x0a000400 is of block 8, and the cluster has 2");
  CHECK(fault_in_cluster("ld.shared.u32 %r7, [%r6];\n") ==
        "shared read of 4 bytes out of bounds: at +50331648; there are 4096 bytes ('area' "
        "+50331648)");
  CHECK(fault_in_cluster("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n") ==
        "the warp arrives at the barrier of the cluster twice, without a wait between");
  CHECK(fault_in_cluster("barrier.cluster.wait.aligned;\n") ==
        "the warp waits at the barrier of the cluster without having arrived");
  const std::string init =
      ".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r8], 1;\n" +
      kMeet;
  CHECK(fault_in_cluster(init + "cvt.u64.u32 %d1, %r8; cvta.shared.u64 %d1, %d1;\n"
                                "mapa.u64 %d2, %d1, %r5;\n"
                                "mbarrier.test_wait.parity.b64 %p2, [%d2], 0;\n") ==
        "an mbarrier that is used like this is in the shared memory of another block");
  CHECK(fault_in_cluster(init + "mov.u16 %h1, 5;\n"
                                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                                ".multicast::cluster [%r2], [%out], 16, [%r8], %h1;\n") ==
        "a multicast to the blocks 0x0005 of a cluster of 2");
}

TEST_CASE("faults of mbarriers") {
  const auto fault = [](int count, const std::string& then) {
    return fault_of(
        ".shared .align 8 .b8 bar[16];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
        "@%p1 mbarrier.init.shared.b64 [%r8], " +
        std::to_string(count) + ";\nbar.warp.sync -1;\n" + then);
  };
  CHECK(fault(0, "") == "an mbarrier for 0 arrivals; from 1 to 1048575 are allowed");
  CHECK(fault(1, "mbarrier.arrive.shared.b64 _, [%r8+8];\n") ==
        "no mbarrier has been initialised at shared address 5128");
  CHECK(fault(2, "mbarrier.arrive.shared.b64 _, [%r8], 3;\n") ==
        "3 arrivals at the mbarrier at shared address 5120, of which phase 0 misses 2");
  CHECK(fault(1, "st.shared.u32 [%r8], 1;\nmbarrier.arrive.shared.b64 _, [%r8];\n") ==
        "the mbarrier at shared address 5120 has been overwritten");
  CHECK(fault(1, "@%p1 mbarrier.init.shared.b64 [%r8], 2;\n") ==
        "there is already an mbarrier at shared address 5120; mbarrier.inval ends its use");
  CHECK(fault(1,
              "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 1048575;\n"
              "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 1;\n") ==
        "the mbarrier at shared address 5120 would wait for 1048576 bytes; the limit is 1048575");
  CHECK(fault(1, "mbarrier.test_wait.parity.shared.b64 %p2, [%r8], 2;\n") ==
        "a parity is 0 or 1, not 2");
  CHECK(fault(1, "@%p1 mbarrier.arrive.noComplete.shared.b64 %d1, [%r8], 1;\n") ==
        "a .noComplete arrival completes the phase of the mbarrier at shared address 5120");
  CHECK(fault(1, "mbarrier.arrive.b64 _, [%base];\n") ==
        "the address of an mbarrier is not in shared memory");
}

TEST_CASE("faults of bulk copies") {
  const auto fault = [](const std::string& operands) {
    return fault_of(
        ".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.ne.u32 %p1, %lane, 0;\n"
        "@%p1 bra $end;\nmbarrier.init.shared.b64 [%r8], 1;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes " +
        operands + ", [%r8];\n$end:\n");
  };
  CHECK(fault("[%r2], [%in], 24") == "a bulk copy of 24 bytes; the size is a multiple of 16");
  CHECK(fault("[%r2+4080], [%in], 256") ==
        "the copy of 256 bytes at shared +4080 goes out of bounds; there are 4104 bytes");
  // Which of the two sides it is.
  CHECK(
      fault("[%r2+8], [%in], 16") ==
      "misaligned shared write of 8 bytes at +1032 ('area' +8): the address must be a multiple of "
      "16");
  CHECK_THAT(fault("[%r2], [%in+8], 16"),
             Catch::StartsWith("misaligned global read of 16 bytes at "));
  CHECK(fault("[%r2], [%in+1048576], 16") ==
        "global read of 16 bytes out of bounds: at +1114112 of buffer 'buffer' (131072 bytes)");
}

TEST_CASE("faults of tensor maps") {
  TensorMap map;
  map.dims = {64, 40, 1, 1, 1};
  map.strides = {2, 128, 0, 0, 0};
  map.box = {64, 16, 1, 1, 1};
  map.swizzle = Swizzle::k128B;
  const std::string use = "cp.async.bulk.prefetch.tensor.2d.L2.global [%d1, {%r4, %r4}];";
  const auto edited = [&](const std::string& field, const std::string& operands) {
    const std::string type = field == "global_stride" ? ".b64" : ".b32";
    return fault_of_map(encode(map),
                        "mov.b32 %r5, 128; mov.b32 %r6, 2; mov.b64 %d2, 24;\n"
                        "tensormap.replace.tile." +
                            field + ".global.b1024" + type + " [%d1], " + operands + ";\n",
                        use);
  };
  CHECK(edited("rank", "5") == "the value must be the rank less one, from 0 to 4");
  CHECK(edited("element_stride", "0, %r6") == "of element strides only 1 is modelled");
  CHECK(edited("elemtype", "8") == "element types that round are not modelled");
  CHECK(edited("fill_mode", "1") ==
        "of what fills a box outside of its tensor only zero is modelled");
  CHECK(edited("interleave_layout", "1") == "interleaved layouts are not modelled");
  CHECK(edited("box_dim", "0, %r5") ==
        "the tensor map cannot be used: the innermost box extent must be 128 bytes, those of the "
        "swizzle, at most, not 256");
  CHECK(edited("global_stride", "0, %d2") ==
        "the tensor map cannot be used: a stride must be a multiple of 16 below 2^40, not 24");
  CHECK(edited("rank", "2") == "the tensor map has 3 dimensions, the instruction 2");
  std::array<std::byte, 128> other{std::byte{7}};
  CHECK(fault_of_map(other, "tensormap.replace.tile.rank.global.b1024.b32 [%d1], 1;\n", use) ==
        "here is neither a tensor map nor 128 bytes of zero");
  CHECK(fault_of_map(other, "", use) == "there is no tensor map at this address");
  CHECK(fault_of_map(encode(map), "mov.b32 %r5, 30;\n",
                     "cp.async.bulk.prefetch.tensor.2d.L2.global [%d1, {%r4, %r5}];") ==
        "the tensor map reaches out of bounds: its box covers bytes 3840 to 5120 from "
        "0x0000000000000000, where there is no buffer");
  map.box[0] = 32;
  CHECK(fault_of_map(encode(map), "", use) ==
        "a swizzled box has rows of 64 bytes; only rows of 128, as wide as the swizzle, are "
        "modelled");
  // A box outside of its tensor.
  map.element_bytes = 4;
  const auto reduced = [&](MapElement element, const std::string& operation) {
    map.element = element;
    return fault_of_map(encode(map), "mov.b32 %r4, 100;\n",
                        "cp.reduce.async.bulk.tensor.2d.global.shared::cta." + operation +
                            ".bulk_group [%d1, {%r4, %r4}], [%r2];");
  };
  CHECK(reduced(MapElement::kUnknown, "add") ==
        "the tensor map does not say the type of its elements, which this needs");
  CHECK(reduced(MapElement::kF32, "min") ==
        "there is no such reduction of elements of the tensor map's type");
}

TEST_CASE("an atomic access to a vector in shared memory") {
  CHECK(fault_of("cvt.u64.u32 %d1, %r2; cvta.shared.u64 %d1, %d1; mov.f32 %f1, 0f00000000;\n"
                 "red.add.v2.f32 [%d1], {%f1, %f1};\n") ==
        "an atomic access to a vector must be one to global memory");
}

namespace {

// Both operands begin with `area` and have no swizzle, or A stands in registers.
std::string wgmma(const std::string& a = "%d1", const std::string& descriptor = "0x800400040") {
  return "mov.b64 %d1, " + descriptor +
         "; mov.b64 %d2, 0x800080040;\n"
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, " +
         a + ", %d2, 0, 1, 1, " + (a == "%d1" ? "0, " : "") + "0;\n";
}

const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kWait = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";

}  // namespace

TEST_CASE("findings about wgmma") {
  const std::string operands =
      "shl.b32 %r9, %lane, 4; add.u32 %r9, %r9, %r2; st.shared.v4.u32 [%r9], {1, 2, 3, 4};\n"
      "fence.proxy.async; bar.sync 0;\n";
  const std::string set =
      "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n";
  CHECK(said(operands + kFence + set + wgmma() + kWait, 128) ==
        "warp 3 issues a wgmma at test.ptx:26 on registers that were written after its last "
        "wgmma.fence\n");
  CHECK(said(operands + set + kFence + wgmma() + "wgmma.commit_group.sync.aligned;\n", 128) ==
        "warp 3 exits, and nothing has waited for its wgmma at test.ptx:26\n");
}

TEST_CASE("faults of wgmma") {
  CHECK(fault_of(kFence + wgmma() + "mov.f32 %f5, %f1;\n", 128) ==
        "reads a register that is an accumulator of a wgmma in flight; wgmma.wait_group must come "
        "first");
  CHECK(fault_of(kFence + wgmma() + "mov.f32 %f1, %f5;\n", 128) ==
        "writes a register that is an accumulator of a wgmma in flight; wgmma.wait_group must come "
        "first");
  CHECK(fault_of(kFence + wgmma("{%r10, %r11, %r12, %r13}") + "mov.b32 %r10, 0;\n", 128) ==
        "writes a register that is operand A of a wgmma in flight; wgmma.wait_group must come "
        "first");
  CHECK(fault_of(wgmma(), 96) ==
        "a warpgroup is four warps, the first a multiple of four; warp 0 belongs to none, as the "
        "block has 3");
  CHECK(fault_of(kFence + wgmma("%d1", "0x800400000"), 128) ==
        "the descriptor 0x0000000800400000 covers shared addresses 0 to 2048; the block has 1024 "
        "to 5120");
  CHECK(fault_of("setp.lt.u32 %p1, %lane, 5;\n@%p1 " + kFence, 128) ==
        "only lanes 0x0000001f execute this; lanes 0xffffffff must, together");
}

TEST_CASE("faults of setmaxnreg") {
  CHECK(fault_of("setmaxnreg.dec.sync.aligned.u32 240;\n", 384) ==
        "the warp has 168 registers a thread, which cannot decrease to 240");
  CHECK(fault_of("setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 24;\n") ==
        "the warp has 40 registers a thread, which cannot increase to 24");
}

TEST_CASE("a deadlock says what each warp waits for") {
  const auto positions = [](const std::string& body, uint32_t threads) {
    return positions_of(run(kernel(kArea + body, "sm_90a"), {}, threads).result);
  };
  CHECK(positions(".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
                  "@%p1 mbarrier.init.shared.b64 [%r8], 3;\n"
                  "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 64;\n"
                  "$again:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0;\n"
                  "@!%p2 bra $again;\n",
                  32) ==
        "warp 0 waits at line 26, mbarrier.try_wait.parity.shared.b64, for the mbarrier at shared "
        "address 5120: phase 0 misses 2 of 3 arrivals and 64 bytes\n");
  const std::string waits =
      " waits at line 23, wgmma.wait_group.sync.aligned, for its warpgroup: only warps 1, 2, 3 "
      "have arrived\n";
  CHECK(positions("setp.lt.u32 %p1, %lane, 32;\n@%p1 ret;\nwgmma.wait_group.sync.aligned 0;\n",
                  128) ==
        "warp 0 has exited\nwarp 1" + waits + "warp 2" + waits + "warp 3" + waits);
  std::string of_384_threads;
  for (int warp = 0; warp < 12; ++warp) {
    of_384_threads += "warp " + std::to_string(warp);
    of_384_threads += warp < 4 ? " has exited\n"
                               : " waits at line 23, setmaxnreg.inc.sync.aligned.u32, for 2304 "
                                 "registers: 0 are free\n";
  }
  CHECK(positions("setp.lt.u32 %p1, %lane, 128;\n@%p1 ret;\n"
                  "setmaxnreg.inc.sync.aligned.u32 240;\n",
                  384) == of_384_threads);
  CHECK(positions_of(run_cluster("setp.eq.u32 %p1, %r4, 0;\n@%p1 bra $end;\n" + kMeet +
                                 "$end:\nbar.sync 1, 64;\n")) ==
        "block 0 of the cluster, warp 0 waits at line 28, bar.sync, for barrier 1: 32 of 64 "
        "threads have arrived\n"
        "block 1 of the cluster, warp 0 waits at line 26, barrier.cluster.wait.aligned, for the "
        "cluster: 1 of 2 warps have arrived\n");
}
