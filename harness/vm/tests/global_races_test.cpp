// SPDX-License-Identifier: MIT
// The checker of global memory: what it says, and that kernels that are right are silent.
#include "catch.h"
#include "grid_kernels.h"
#include "ptxvm/races.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

std::string check(const std::string& text, LaunchConfig config, Order order = Order::kForward,
                  Fill fill = Fill::kZero, Sums sums = Sums::kAnyOrder) {
  Memory memory;
  config.arguments = {Argument::pointer(memory.allocate("data", 65536, fill))};
  GlobalRaces races(sums);
  Options options;
  options.cta_order = options.warp_order = order;
  options.observers = {&races};
  const Module module = Module::parse(text, "grid.ptx");
  return found(launch(module, "k", config, memory, options), module.kernel("k"));
}

std::string findings(const std::string& body, uint32_t blocks, uint32_t threads = 32,
                     Fill fill = Fill::kZero) {
  return check(grid_kernel(body), grid_of(blocks, threads), Order::kForward, fill);
}

void check_clean(const std::string& body, uint32_t blocks, uint32_t threads = 32) {
  for (Order order : {Order::kForward, Order::kReversed}) {
    CHECK(check(grid_kernel(body), grid_of(blocks, threads), order) == "");
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& by,
                     bool all = true) {
  size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = all ? text.find(what, at + by.size()) : std::string::npos) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// The last block adds up what all have stored: partial sums at +256, a ticket at +0. %p6 is true in
// the last block.
const char* const kLastBlock = R"(
  .shared .align 4 .b8 last[4];
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  @!%p1 bra $meet;
  st.global.u32 [%at+256], %block;
  membar.gl;
  atom.global.add.u32 %r1, [%base], 1;
  add.u32 %r1, %r1, 1; setp.eq.u32 %p2, %r1, %blocks; selp.u32 %r2, 1, 0, %p2;
  st.shared.u32 [last], %r2;
$meet:
  bar.sync 0;
  ld.shared.u32 %r3, [last]; setp.eq.u32 %p6, %r3, 0;
  @%p6 bra $end;
  membar.gl;
  setp.ge.u32 %p3, %lane, %blocks;
  mul.wide.u32 %d1, %lane, 4; add.u64 %d1, %d1, %base;
  @!%p3 ld.global.u32 %r4, [%d1+256];
$end:)";

// Each block adds to one float when those before it have.
const char* const kInTurn = R"(
  @!%p1 bra $end;
$wait:
  ld.acquire.gpu.global.u32 %r1, [%base]; setp.ne.u32 %p2, %r1, %block;
  @%p2 bra $wait;
  red.global.add.f32 [%base+4], 0f3F800000;
  red.release.gpu.global.add.u32 [%base], 1;
$end:)";

// The same, with a word of each thread: everybody fences before the barrier, one thread counts.
const char* const kFenceFirst = R"(
  .shared .align 4 .b8 last[4];
  mad.lo.u32 %r5, %block, 64, %lane; mul.wide.u32 %at, %r5, 4; add.u64 %at, %at, %base;
  st.global.u32 [%at+256], %lane;
  membar.gl;
  bar.sync 0;
  @!%p1 bra $meet;
  atom.global.inc.u32 %r1, [%base], %blocks;
  add.u32 %r1, %r1, 1; setp.eq.u32 %p2, %r1, %blocks; selp.u32 %r2, 1, 0, %p2;
  st.shared.u32 [last], %r2;
$meet:
  bar.sync 0;
  ld.shared.u32 %r3, [last]; setp.eq.u32 %p6, %r3, 0;
  @%p6 bra $end;
  membar.gl;
  mul.wide.u32 %d1, %lane, 4; add.u64 %d1, %d1, %base;
  ld.global.u32 %r4, [%d1+256];
  ld.global.u32 %r4, [%d1+512];
$end:)";

}  // namespace

TEST_CASE("correct ways of one block to wait for another are silent") {
  check_clean(kLookAhead, 30);
  check_clean(kGridBarrier, 30, 64);
  check_clean(kLastBlock, 20, 64);
  check_clean(kFenceFirst, 20, 64);
  // Warps of a block hand over at a barrier; the next launch needs nothing.
  check_clean(R"(
  mad.lo.u32 %r1, %block, 64, %lane; mul.wide.u32 %at, %r1, 4; add.u64 %at, %at, %base;
  st.global.u32 [%at], %lane;
  bar.sync 0;
  xor.b32 %r1, %r1, 32; mul.wide.u32 %at, %r1, 4; add.u64 %at, %at, %base;
  ld.global.u32 %r2, [%at];)",
              8, 64);
  // Counters and sums.
  check_clean("atom.global.add.u32 %r1, [%base], 1;\nred.global.add.u32 [%base+4], %r1;", 20, 64);
}

TEST_CASE("rounded sums are made in one order where that is promised") {
  auto said = [](const std::string& body, Sums sums) {
    return check(grid_kernel(body), grid_of(4, 32), Order::kForward, Fill::kZero, sums);
  };
  CHECK(said(kInTurn, Sums::kOneOrder) == "");
  const std::string late = replaced(kInTurn, "  red.release", "  red.relaxed");
  const std::string unread = replaced(kInTurn, "ld.acquire", "ld.relaxed");
  const std::string alone = "red.global.add.f32 [%base+4], 0f3F800000;";
  for (const std::string& body : {late, unread, alone}) {
    CHECK(said(body, Sums::kAnyOrder) == "");
    CHECK_THAT(said(body, Sums::kOneOrder), Catch::Contains("order"));
  }
  // What does not round has the same sum in any order.
  CHECK(said("red.global.add.u32 [%base+4], 1;", Sums::kOneOrder) == "");
}

TEST_CASE("a release without a fence, or with a fence for the block only") {
  const std::string no_fence =
      findings(replaced(kLastBlock, "  membar.gl;\n  atom", "  atom"), 20, 64);
  CHECK_THAT(no_fence, Catch::Contains("race 26/15"));
  const std::string near =
      findings(replaced(kLastBlock, "membar.gl;\n  atom", "membar.cta;\n  atom"), 20, 64);
  CHECK_THAT(near, Catch::Contains("race 27/15"));
  CHECK(findings(replaced(kLookAhead, "st.release.gpu", "st.relaxed.gpu"), 3).empty());
  const std::string relaxed =
      findings(replaced(kGridBarrier, "  membar.gl;\n  atom", "  atom"), 3, 64);
  CHECK_THAT(relaxed, Catch::StartsWith("race "));
  CHECK_THAT(relaxed, !Catch::Contains("advice"));
}

TEST_CASE("an acquire that is missing is advice") {
  const std::string text = findings(
      replaced(kLastBlock, "  membar.gl;\n  setp.ge.u32 %p3", "  setp.ge.u32 %p3"), 20, 64);
  CHECK(text == "race (advice) 26/15\n");
  const std::string barrier =
      findings(replaced(kGridBarrier, "  membar.gl;\n$behind", "$behind"), 3, 64);
  CHECK_THAT(barrier, Catch::Contains("advice"));
}

TEST_CASE("blocks that do not wait for each other at all") {
  // Block b writes word b and reads word b + 1.
  CHECK(findings(R"(
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  @%p1 st.global.u32 [%at], %block;
  @%p1 ld.global.u32 %r1, [%at+4];)",
                 3) == "race 13/14 x2\n");
  // Two warps of a block without a barrier, and two blocks that write the same word.
  CHECK(findings("st.global.u32 [%base], %lane;", 2, 32) == "race 11/11\n");
  CHECK(findings("st.global.u32 [%base], %lane;", 1, 64) == "race 11/11\n");
  // One lane of block 1 stores where block 0 does.
  const std::string overlapping =
      "mad.lo.u32 %r1, %block, 31, %lane; mul.wide.u32 %at, %r1, 4; add.u64 %at, %at, %base;\n"
      "st.global.u32 [%at], ";
  CHECK(findings(overlapping + "%r1;", 2) == "race (advice) 12/12\n");
  CHECK(findings(overlapping + "%lane;", 2) == "race 12/12\n");
  // An ordinary read beside atomics.
  CHECK_THAT(findings("atom.global.add.u32 %r1, [%base], 1;\nld.global.u32 %r2, [%base];", 2),
             Catch::StartsWith("race "));
  // Neighbours in one word are none.
  check_clean(R"(
  cvt.u64.u32 %at, %block; add.u64 %at, %at, %base; .reg .b16 %h;
  cvt.u16.u32 %h, %block;
  @%p1 st.global.u8 [%at], %h;
  @%p1 ld.global.u8 %h, [%at];)",
              8);
}

TEST_CASE("global memory that nobody has written") {
  const std::string read =
      "mul.wide.u32 %at, %lane, 4; add.u64 %at, %at, %base;\n"
      "ld.global.u32 %r1, [%at+64];\n";
  CHECK(findings(read, 2, 32, Fill::kZero).empty());
  CHECK(findings(read, 2, 32, Fill::kPoison) == "uninitialised 12 x2\n");
  CHECK(findings("mul.wide.u32 %at, %lane, 4; add.u64 %at, %at, %base;\n"
                 "st.global.u32 [%at+64], 1;\nld.global.u32 %r1, [%at+64];\n",
                 1, 32, Fill::kPoison)
            .empty());
  // What the host has asked for, or a kernel has run over, counts as written.
  const Module module = Module::parse(grid_kernel(read), "grid.ptx");
  for (bool host : {true, false}) {
    Memory memory;
    const Address data = memory.allocate("data", 65536);
    if (host) std::ranges::fill(memory.bytes(data), std::byte{1});
    LaunchConfig config = grid_of(1);
    config.arguments = {Argument::pointer(data)};
    if (!host) launch(module, "k", config, memory);
    GlobalRaces races;
    Options options;
    options.observers = {&races};
    CHECK(launch(module, "k", config, memory, options).findings.empty());
  }
}

TEST_CASE("bulk stores are done when a wait says so, and others see them after a release") {
  // Block 1 waits for the flag of block 0, and reads what its bulk store wrote.
  const std::string text = replaced(grid_kernel(R"(
  .shared .align 16 .b8 area[64];
  setp.eq.u32 %p2, %block, 1;
  @!%p1 bra $end;
  @%p2 bra $reader;
  st.shared.v4.u32 [area], {%lane, %lane, %lane, %lane};
  mov.u32 %r1, area; add.u64 %at, %base, 256;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [%at], [%r1], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  st.release.gpu.global.u32 [%base], 1;
  bra.uni $end;
$reader:
  ld.acquire.gpu.global.u32 %r2, [%base];
  setp.eq.u32 %p3, %r2, 0;
  @%p3 bra $reader;
  ld.global.u32 %r3, [%base+256];
$end:)"),
                                    "sm_80", "sm_90");
  for (Order order : {Order::kForward, Order::kReversed}) {
    CHECK(check(text, grid_of(2), order, Fill::kZero).empty());
  }
  const std::string early = check(replaced(text, "wait_group 0", "wait_group.read 0"), grid_of(2));
  CHECK_THAT(early, Catch::Contains("/19"));
}

TEST_CASE("nobody looks unless asked to") {
  Memory memory;
  LaunchConfig config = grid_of(2);
  config.arguments = {Argument::pointer(memory.allocate("data", 65536))};
  Races races;
  Options options;
  options.observers = {&races};
  const std::string text = grid_kernel("st.global.u32 [%base], %lane;");
  CHECK(launch(Module::parse(text, "grid.ptx"), "k", config, memory, options).findings.empty());
}

TEST_CASE("bulk reductions meet each other, not plain accesses") {
  const auto reported = [](const std::string& before, const std::string& behind) {
    const std::string reduce = R"(
  .shared .align 16 .b8 part[32];
  mad.lo.u32 %r1, %lane, 4, 0; mov.u32 %r2, part; add.u32 %r2, %r2, %r1;
  setp.lt.u32 %p2, %lane, 8; @%p2 st.shared.u32 [%r2], 1;
  fence.proxy.async.shared::cta; bar.sync 0;
)" + before + R"(
  mov.u32 %r3, part;
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%base], [%r3], 32;
  @%p1 cp.async.bulk.commit_group;
  @%p1 cp.async.bulk.wait_group 0;
)" + behind;
    return check(replaced(grid_kernel(reduce), "sm_80", "sm_90"), grid_of(2, 32));
  };
  CHECK(reported("", "") == "");
  CHECK(reported("", "@%p1 red.global.add.u32 [%base+4], 1;") == "");
  CHECK_THAT(reported("", "@%p1 ld.global.u32 %r4, [%base+4];"), Catch::StartsWith("race "));
  CHECK_THAT(reported("@%p1 st.global.u32 [%base+8], 1;", ""), Catch::StartsWith("race "));
}
