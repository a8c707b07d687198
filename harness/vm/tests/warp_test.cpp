// SPDX-License-Identifier: MIT
// Exchange between lanes, divergence and reconvergence.
#include <atomic>
#include <bit>
#include <chrono>
#include <thread>

#include "catch.h"
#include "isa/special_registers.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

std::string store4() {
  return "  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};";
}

}  // namespace

TEST_CASE("a shuffle among a part of the warp") {
  const Run r = run(kernel(R"(
  setp.lt.u32 %p1, %lane, 16;
  @!%p1 bra $skip;
  shfl.sync.bfly.b32 %r1, %lane, 8, 31, 0xffff;
  st.global.u32 [%out], %r1;
$skip:)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(3) == 11);
  CHECK(r.at<uint32_t>(20) == 0);
}

TEST_CASE("lanes in different branches meet at a collective") {
  // The same shuffle is reached by two halves one after the other; with a full mask they must wait.
  const Run r = run(kernel(R"(
  setp.lt.u32 %p1, %lane, 16;
  mov.u32 %r2, 0;
  @%p1 bra $low;
  add.u32 %r2, %lane, 1000;
  bra.uni $join;
$low:
  add.u32 %r2, %lane, 500;
$join:
  shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
  st.global.u32 [%out], %r1;)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(3) == 1019);
  CHECK(r.at<uint32_t>(19) == 503);
}

TEST_CASE("a member that never comes") {
  const Run r = run(kernel(R"(
  setp.lt.u32 %p1, %lane, 16;
  @%p1 bra $low;
  shfl.sync.bfly.b32 %r1, %lane, 1, 31, -1;
  bra.uni $end;
$low:
  shfl.sync.bfly.b32 %r1, %lane, 1, 31, -1;
$end:)"));
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kDivergence);
  CHECK(r.result.fault->message ==
        "lanes 0xffff0000 wait here for lanes that do not come; lanes 0x0000ffff wait at line 24");
  const Run guarded = run(
      kernel("  setp.lt.u32 %p1, %lane, 16;\n  @%p1 shfl.sync.bfly.b32 %r1, %lane, 1, 31, -1;"));
  REQUIRE(guarded.result.fault);
  CHECK(guarded.result.fault->message ==
        "lanes 0xffff0000 are in the member mask 0xffffffff, but their guard is false");
}

TEST_CASE("reductions of floating-point numbers") {
  const auto of = [](const std::string& values, const std::string& instruction, int lane = 5) {
    return run(kernel("  cvt.rn.f32.u32 %f1, %lane; sub.f32 %f1, %f1, 0f41200000;\n"  // 10
                      "  setp.eq.u32 %p1, %lane, 3; shl.b32 %r1, 1, %lane; mov.u32 %r2, -1;\n" +
                          values + "  redux.sync." + instruction +
                          ";\n  st.global.f32 [%out], %f2;",
                      "sm_100a"))
        .at<uint32_t>(lane);
  };
  const auto word = [](float x) { return std::bit_cast<uint32_t>(x); };
  const std::string one_nan = "  @%p1 mov.f32 %f1, 0f7fc00001;\n";
  const std::string all_nan = "  mov.f32 %f1, 0f7fc00001;\n";
  constexpr uint32_t kNan = 0x7fffffff;
  CHECK(of("", "min.f32 %f2, %f1, %r2") == word(-10));
  CHECK(of("", "max.f32 %f2, %f1, %r2") == word(21));
  CHECK(of("", "min.abs.f32 %f2, %f1, %r2") == word(0));
  CHECK(of("  neg.f32 %f1, %f1;\n", "max.abs.f32 %f2, %f1, %r2") == word(21));
  CHECK(of(one_nan, "min.f32 %f2, %f1, %r2") == word(-10));
  CHECK(of(one_nan, "max.abs.f32 %f2, %f1, %r2") == word(21));
  CHECK(of(one_nan, "min.NaN.f32 %f2, %f1, %r2") == kNan);
  CHECK(of(one_nan, "max.abs.NaN.f32 %f2, %f1, %r2") == kNan);
  CHECK(of(all_nan, "max.f32 %f2, %f1, %r2") == kNan);
  // Of one lane alone.
  CHECK(of("", "max.abs.f32 %f2, %f1, %r1") == word(5));
  CHECK(of(all_nan, "min.f32 %f2, %f1, %r1") == kNan);
  // -0 is less than 0.
  CHECK(of("  mov.f32 %f1, 0f00000000; @%p1 mov.f32 %f1, 0f80000000;\n", "min.f32 %f2, %f1, %r2") ==
        0x80000000);
  CHECK(of("  mov.f32 %f1, 0f80000000; @%p1 mov.f32 %f1, 0f00000000;\n", "max.f32 %f2, %f1, %r2") ==
        0);
}

TEST_CASE("lanes that leave a loop at different times meet behind it") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, 0; mov.u32 %r2, 0;
$loop:
  add.u32 %r2, %r2, %r1;
  add.u32 %r1, %r1, 1;
  setp.le.u32 %p1, %r1, %lane;
  @%p1 bra $loop;
  activemask.b32 %r3;
  mov.u32 %r4, 0;)" + store4()));
  for (int lane : {0, 1, 17, 31}) {
    CHECK(r.at<uint32_t>(lane, 1) == static_cast<uint32_t>(lane * (lane + 1) / 2));
    CHECK(r.at<uint32_t>(lane, 2) == 0xffffffff);
  }
  // The loop ran 32 times for the warp: the longest lane decides.
  uint64_t adds = 0;
  for (const LineCounts& l : r.counts.by_instruction) {
    if (l.opcode == "setp.le.u32") adds = l.counts.of(CountClass::kCompare);
  }
  CHECK(adds == 32);
}

TEST_CASE("an exit written inside a loop does not break reconvergence") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, 0;
$loop:
  setp.eq.u32 %p1, %r1, %lane;
  @%p1 bra $found;
  add.u32 %r1, %r1, 1;
  bra.uni $loop;
$found:
  activemask.b32 %r2;
  st.global.v2.b32 [%out], {%r1, %r2};)"));
  CHECK(r.at<uint32_t>(31, 0) == 31);
  CHECK(r.at<uint32_t>(0, 1) == 0xffffffff);
}

TEST_CASE("early exits leave the others running") {
  const Run r = run(kernel(R"(
  setp.gt.u32 %p1, %lane, 3;
  @%p1 ret;
  activemask.b32 %r1;
  bar.sync 0;
  st.global.u32 [%out], %r1;)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(2) == 0xf);
  CHECK(r.at<uint32_t>(4) == 0);
}

TEST_CASE("a lane that spins for a lane of its own warp does not starve it") {
  // Lane 0 waits in a loop at a lower position for what lane 1 writes at a higher one.
  const Run r = run(kernel(R"(
  .shared .align 4 .b8 flag[4];
  setp.eq.u32 %p1, %lane, 0;
  @%p1 st.shared.u32 [flag], 0;
  bar.warp.sync -1;
  @!%p1 bra $writer;
$spin:
  ld.volatile.shared.u32 %r1, [flag];
  setp.eq.u32 %p2, %r1, 0;
  @%p2 bra $spin;
  bra.uni $end;
$writer:
  st.volatile.shared.u32 [flag], 7;
$end:
  ld.shared.u32 %r2, [flag];
  st.global.u32 [%out], %r2;)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(0) == 7);
}

TEST_CASE("an endless loop hits the step limit") {
  Options options;
  options.max_warp_steps = 100000;
  const Run r = run(kernel("$loop:\n  bra $loop;"), {}, 32, 0, options);
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kStepLimit);
}

TEST_CASE("an endless loop ends when it is told to") {
  std::atomic<bool> stop{false};
  Options options;
  options.stop = &stop;
  const std::jthread teller([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const Run r = run(kernel("$loop:\n  bra $loop;"), {}, 32, 0, options);
  CHECK(r.result.stopped);
  CHECK_FALSE(r.result.fault);
  CHECK_FALSE(r.result.ok());
}

TEST_CASE("special registers") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, %laneid; mov.u32 %r2, %warpid; mov.u32 %r3, %lanemask_lt; mov.u32 %r4, %ntid.x;)" +
                           store4()),
                    {}, 96);
  CHECK(r.at<uint32_t>(70, 0) == 6);
  CHECK(r.at<uint32_t>(70, 1) == 2);
  CHECK(r.at<uint32_t>(70, 2) == 63);
  CHECK(r.at<uint32_t>(70, 3) == 96);
  const Run c =
      run(kernel("  mov.u64 %d1, %clock64;\n  add.u32 %r1, %lane, 1;\n  mov.u64 %d2, %clock64;\n"
                 "  sub.u64 %d3, %d2, %d1;\n  st.global.u64 [%out], %d3;"));
  CHECK(c.at<uint64_t>(0) == 2);
}

TEST_CASE("every special register has a value") {
  for (const isa::SpecialRow& row : isa::special_registers()) {
    INFO(row.name);
    const bool wide = bits(row.type) == 64;
    const std::string word = wide ? ".u64" : ".u32", to = wide ? "%d1" : "%r1";
    const Run r = run(kernel("mov" + word + " " + to + ", " + std::string(row.name) +
                                 ";\nst.global" + word + " [%out], " + to + ";",
                             "sm_90"));
    REQUIRE(!r.result.fault);
    // A register that nobody filled in holds what a fresh register holds: all bits one.
    const bool masks = row.name.starts_with("%lanemask");
    if (!masks && wide) CHECK(r.at<uint64_t>(3) != ~uint64_t{0});
    if (!masks && !wide) CHECK(r.at<uint32_t>(3) != ~uint32_t{0});
  }
}

TEST_CASE("trap and collectives without all lanes are faults") {
  CHECK(run(kernel("  trap;")).result.fault->kind == FaultKind::kTrap);
  const Run r = run(kernel("  setp.lt.u32 %p1, %lane, 16;\n  @%p1 bar.sync 0;"));
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->message ==
        "only lanes 0x0000ffff execute this; lanes 0xffffffff must, together");
}

TEST_CASE("a loop with a barrier in it ends at the limit of steps") {
  Options options;
  options.max_warp_steps = 1000;
  const Run r = run(kernel("$again:\n  bar.sync 0;\n  bra $again;"), {}, 64, 0, options);
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kStepLimit);
  CHECK(r.result.fault->message.find("the limit") != std::string::npos);
}
