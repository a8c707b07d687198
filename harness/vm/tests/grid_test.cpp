// SPDX-License-Identifier: MIT
// Blocks that wait for each other, and the card that holds them.
#include <optional>

#include "catch.h"
#include "grid_kernels.h"
#include "ptxvm/report.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

struct GridRun {
  LaunchResult result;
  std::vector<uint32_t> words;  // of `data`
  Counts counts;
};

GridRun run_grid(const std::string& body, LaunchConfig config, Options options = {}) {
  const Module module = Module::parse(grid_kernel(body), "grid.ptx");
  Memory memory;
  config.arguments = {Argument::pointer(memory.allocate("data", 65536, Fill::kZero))};
  Counters counters;
  options.observers.push_back(&counters);
  GridRun r;
  r.result = launch(module, "k", config, memory, options);
  r.words.resize(65536 / 4);
  std::memcpy(r.words.data(), memory.bytes("data").data(), 65536);
  r.counts = counters.report().total;
  return r;
}

std::string problem(const GridRun& r) {
  return r.result.fault ? r.result.fault->format() : "";
}

std::string refusal(const std::string& body, const LaunchConfig& config, const Options& options) {
  try {
    run_grid(body, config, options);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

// cooperative_groups::this_grid().sync(), as nvcc compiles it.
const char* const kGridSync = R"(
  mov.u32 %r20, %envreg2; cvt.u64.u32 %d1, %r20; mov.u32 %r21, %envreg1; cvt.u64.u32 %d2, %r21;
  bfi.b64 %d3, %d2, %d1, 32, 32;
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  @%p1 st.global.u32 [%at+256], %block;
  setp.ne.s64 %p2, %d3, 0;
  @%p2 bra $valid;
  trap;
$valid:
  barrier.sync 0;
  @!%p1 bra $behind;
  add.s64 %d4, %d3, 4;
  setp.eq.s32 %p3, %block, 0;
  mov.u32 %r46, -2147483647; sub.s32 %r47, %r46, %blocks; selp.b32 %r39, %r47, 1, %p3;
  membar.gl;
  atom.add.u32 %r38, [%d4], %r39;
$spin:
  ld.acquire.gpu.u32 %r48, [%d4];
  xor.b32 %r49, %r48, %r38;
  setp.gt.s32 %p4, %r49, -1;
  @%p4 bra $spin;
$behind:
  barrier.sync 0;
  sub.u32 %r1, %blocks, 1; sub.u32 %r1, %r1, %block;
  mul.wide.u32 %at, %r1, 4; add.u64 %at, %at, %base;
  @%p1 ld.global.u32 %r2, [%at+256];
  @%p1 st.global.u32 [%at+4096], %r2;)";

std::string with_registers(std::string body) {
  return "  .reg .b32 %r38, %r39, %r46, %r47, %r48, %r49;\n" + body;
}

}  // namespace

TEST_CASE("a block may wait for blocks that start after it") {
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.cta_order = order;
    const GridRun r = run_grid(kLookAhead, grid_of(200), options);
    INFO(problem(r));
    REQUIRE(!r.result.fault);
    CHECK(r.words[0] == 200 * 201 / 2);
    CHECK(r.words[199] == 200);
  }
}

// Waits for the flag of the block before, and sleeps for longer each time.
std::string look_back(const std::string& flag_of_first) {
  return R"(
  @!%p1 bra $end;
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  mov.u32 %r2, 1; mov.u32 %r1, )" +
         flag_of_first + R"(;
  setp.eq.u32 %p2, %block, 0;
  @%p2 bra $last;
$wait:
  nanosleep.u32 %r2; add.u32 %r2, %r2, 1;
  ld.acquire.gpu.global.u32 %r1, [%at+-4];
  setp.eq.u32 %p3, %r1, 0;
  @%p3 bra $wait;
$last:
  add.u32 %r3, %r1, %block;
  st.release.gpu.global.u32 [%at], %r3;
$end:)";
}

TEST_CASE("a block may wait for those before it, however many blocks the card holds") {
  // 132 of these blocks at once.
  LaunchConfig config = grid_of(300);
  config.dynamic_shared_bytes = 200 * 1024;
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.cta_order = options.warp_order = order;
    options.max_steps = 100'000'000;
    const GridRun r = run_grid(look_back("1"), config, options);
    INFO(problem(r));
    REQUIRE(!r.result.fault);
    CHECK(r.words[299] == 1 + 299 * 300 / 2);
    // The first block releases nothing.
    const GridRun stuck = run_grid(look_back("0"), config, options);
    REQUIRE(stuck.result.fault);
    CHECK(stuck.result.fault->message.starts_with("deadlock: 132 blocks wait"));
  }
}

TEST_CASE("all blocks of a grid meet at a barrier of its own making") {
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.cta_order = options.warp_order = order;
    const GridRun r = run_grid(kGridBarrier, grid_of(100, 64), options);
    INFO(problem(r));
    REQUIRE(!r.result.fault);
    CHECK(r.words[2] == 99 * 100 / 2);
  }
}

TEST_CASE("the grid of a cooperative launch meets, any other one traps") {
  LaunchConfig config = grid_of(60, 96);
  const std::string body = with_registers(kGridSync);
  const GridRun trapped = run_grid(body, config);
  REQUIRE(trapped.result.fault);
  CHECK(trapped.result.fault->kind == FaultKind::kTrap);
  CHECK(trapped.result.fault->message ==
        "the kernel trapped; its grid can only meet in a cooperative launch");
  config.cooperative = true;
  for (int again = 0; again < 2; ++again) {
    const GridRun r = run_grid(body, config);
    INFO(problem(r));
    REQUIRE(!r.result.fault);
    for (uint32_t b = 0; b < 60; ++b) CHECK(r.words[1024 + b] == b);
  }
}

TEST_CASE("a kernel that needs more blocks than the card holds says so") {
  // One block with so much shared memory fills a multiprocessor.
  LaunchConfig config = grid_of(133);
  config.block = {32, 1, 1};
  config.dynamic_shared_bytes = 120 * 1024;
  const auto text = [&](const char* body) {
    return "  .shared .align 4 .b8 small[4]; st.shared.u32 [small], 0;\n" + std::string(body);
  };
  const GridRun r = run_grid(text(kGridBarrier), config);
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kDeadlock);
  CHECK(r.result.fault->message ==
        "deadlock: 132 blocks wait, and 1 have not started; the h200 holds 132 of these blocks at "
        "once");
  CHECK(r.result.fault->where.notes.size() <= 40);
  CHECK(r.result.fault->format().find("ld.volatile.global.u32") != std::string::npos);
  config.grid = {132, 1, 1};
  CHECK(!run_grid(text(kGridBarrier), config).result.fault);
  // Another card, and the limit by registers.
  Options small;
  small.card = card("a100");
  CHECK(run_grid(text(kGridBarrier), config, small).result.fault->message ==
        "deadlock: 108 blocks wait, and 24 have not started; the a100 holds 108 of these blocks at "
        "once");
  config = grid_of(300, 1024);
  config.cooperative = true;
  CHECK(refusal(kGridBarrier, config, {}) ==
        "error: 'k': a cooperative launch of 300 blocks; the h200 holds 264 of them at once: 2 on "
        "each of "
        "132 multiprocessors");
  Options registers;
  registers.registers = 64;
  config.grid = {133, 1, 1};
  CHECK(refusal(kGridBarrier, config, registers).find("holds 132 of them at once") !=
        std::string::npos);
  registers.registers = 128;
  CHECK(refusal(kGridBarrier, config, registers) ==
        "error: 'k': a block of 1024 threads with 128 registers each does not fit on the h200");
}

TEST_CASE("a grid that waits for what never comes is a deadlock, found at once") {
  // Nobody ever writes +12.
  const GridRun r = run_grid(R"(
$wait:
  ld.volatile.global.u32 %r1, [%base+12];
  setp.eq.u32 %p2, %r1, 0;
  @%p2 bra $wait;)",
                             grid_of(20, 64));
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kDeadlock);
  CHECK(r.result.fault->message == "deadlock: no warp can go on");
  CHECK(r.result.steps < 100000);
  const auto& notes = r.result.fault->where.notes;
  CHECK(notes[1] == "block (0, 0, 0), warp 0 waits at line 13, ld.volatile.global.u32");
  CHECK(notes.back() == "and 8 more warps");
  // One that gives up after a while is none.
  const GridRun patient = run_grid(R"(
  mov.u32 %r2, 0;
$wait:
  ld.volatile.global.u32 %r1, [%base+12];
  add.u32 %r2, %r2, 1;
  setp.eq.u32 %p2, %r1, 0; setp.lt.and.u32 %p3, %r2, 1000, %p2;
  @%p3 bra $wait;
  @%p1 st.global.u32 [%base], %r2;)",
                                   grid_of(4));
  CHECK(!patient.result.fault);
  CHECK(patient.words[0] == 1000);
}

TEST_CASE("locks: lanes, warps and blocks that spin for each other") {
  // Every thread of every block takes the lock and adds 1 without an atomic.
  const GridRun r = run_grid(R"(
$take:
  atom.global.cas.b32 %r1, [%base], 0, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra $take;
  membar.gl;
  ld.volatile.global.u32 %r2, [%base+4];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%base+4], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%base], 0;)",
                             grid_of(6, 64));
  INFO(problem(r));
  REQUIRE(!r.result.fault);
  CHECK(r.words[1] == 6 * 64);
}

TEST_CASE("counts and results are the same each time, whatever the number of host threads") {
  // Tickets: a block works on as many items as it gets, and the sum of floats depends on the order.
  const std::string tickets = R"(
  .reg .f32 %f<4>;
$next:
  mov.u32 %r1, 0;
  @%p1 atom.global.add.u32 %r1, [%base], 1;
  shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;
  setp.ge.u32 %p2, %r1, 50;
  @%p2 bra $end;
  cvt.rn.f32.u32 %f1, %r1; add.f32 %f1, %f1, 0f3DCCCCCD; rcp.approx.f32 %f1, %f1;
  @%p1 red.global.add.f32 [%base+16], %f1;
  mul.wide.u32 %at, %r1, 4; add.u64 %at, %at, %base;
  @%p1 st.global.u32 [%at+256], %block;
  bra.uni $next;
$end:)";
  for (const std::string& body : {tickets, std::string(kLookAhead), std::string(kGridBarrier)}) {
    std::optional<GridRun> first;
    for (int threads : {1, 2, 3, 4, 2, 4}) {
      Options options;
      options.threads = threads;
      GridRun r = run_grid(body, grid_of(40), options);
      REQUIRE(!r.result.fault);
      if (first) {
        CHECK(r.words == first->words);
        CHECK(r.counts == first->counts);
        CHECK(r.result.steps == first->result.steps);
      } else {
        first = std::move(r);
      }
    }
  }
}

TEST_CASE("the step limit is of the whole launch") {
  const std::string loop = R"(
  mov.u32 %r1, 0;
$again:
  add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 1000;
  @%p2 bra $again;)";
  Options options;
  options.max_steps = 400000;
  // About 3000 instructions a block.
  CHECK(!run_grid(loop, grid_of(100), options).result.fault);
  for (int threads : {1, 4}) {
    options.threads = threads;
    const GridRun many = run_grid(loop, grid_of(200), options);
    REQUIRE(many.result.fault);
    CHECK(many.result.fault->kind == FaultKind::kStepLimit);
    CHECK(many.result.fault->message ==
          "the blocks of the launch have executed more than 400000 instructions, which is the "
          "limit");
  }
  // One block alone.
  options.max_steps = 100000;
  const GridRun one = run_grid("$again:\n  bra $again;", grid_of(1, 64), options);
  REQUIRE(one.result.fault);
  CHECK(one.result.fault->kind == FaultKind::kStepLimit);
  CHECK(one.result.fault->message ==
        "the launch has executed more than 100000 instructions, which is the limit");
  CHECK(one.result.steps < 200000);
  // A warp that counts in vain while the other waits.
  const GridRun waits =
      run_grid("@%p1 bra $again;\n  bar.sync 0;\n$again:\n  bra $again;", grid_of(1, 64), options);
  REQUIRE(waits.result.fault);
  const auto& notes = waits.result.fault->where.notes;
  CHECK(notes[1] == "warp 0 is at line 14, bra");
  CHECK(notes[2] ==
        "warp 1 waits at line 12, bar.sync, for barrier 0: 32 of all threads have arrived");
  // Blocks that wait for something that changes all the time.
  options.max_steps = 1000000;
  const GridRun spin = run_grid(R"(
$wait:
  mov.u64 %d1, %clock64;
  ld.volatile.global.u32 %r1, [%base+12];
  setp.eq.u32 %p2, %r1, 0;
  @%p2 bra $wait;)",
                                grid_of(20), options);
  REQUIRE(spin.result.fault);
  CHECK(spin.result.fault->kind == FaultKind::kStepLimit);
}

TEST_CASE("cards, and how many blocks they hold") {
  CHECK(card("rtx4090").multiprocessors == 128);
  CHECK_THROWS_WITH(card("rtx"),
                    "error: there is no card 'rtx'; allowed: a100, a10, rtx3090, l4, l40s, "
                    "rtx4090, h100, h200, b200, rtx5090");
  const Card& h200 = card("h200");
  CHECK(blocks_per_multiprocessor(h200, 32, 0) == 32);
  CHECK(blocks_per_multiprocessor(h200, 128, 0) == 16);
  CHECK(blocks_per_multiprocessor(h200, 100, 0) == 16);
  CHECK(blocks_per_multiprocessor(h200, 128, 48 * 1024) == 4);
  CHECK(blocks_per_multiprocessor(h200, 128, 227 * 1024) == 1);
  CHECK(blocks_per_multiprocessor(h200, 128, 227 * 1024 + 1) == 0);
  CHECK(blocks_per_multiprocessor(h200, 256, 0, 255) == 1);
  CHECK(blocks_per_multiprocessor(h200, 256, 0, 33) == 6);
  CHECK(blocks_per_multiprocessor(card("rtx3090"), 1024, 0) == 1);
  CHECK(blocks_per_multiprocessor(card("rtx3090"), 64, 16 * 1024) == 5);
  Options options;
  options.card = card("rtx4090");
  LaunchConfig config = grid_of(1);
  config.dynamic_shared_bytes = 100 * 1024;
  CHECK(refusal("", config, options) ==
        "error: 'k': 102400 bytes of shared memory; a block has at most 101376 on the rtx4090");
}

TEST_CASE("blocks know their card") {
  Options options;
  options.card = card("l4");
  const GridRun r = run_grid(R"(
  mul.wide.u32 %at, %block, 8; add.u64 %at, %at, %base;
  mov.u32 %r1, %smid; mov.u32 %r2, %nsmid;
  @%p1 st.global.v2.u32 [%at], {%r1, %r2};)",
                             grid_of(60), options);
  CHECK(r.words[2 * 57] == 57);
  CHECK(r.words[2 * 59] == 1);
  CHECK(r.words[2 * 59 + 1] == 58);
}
