// SPDX-License-Identifier: MIT
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

TEST_CASE("bar.sync orders warps in either order of turns") {
  const std::string text = kernel(R"(
  .shared .align 4 .b8 area[512];
  shl.b32 %r1, %lane, 2; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
  st.shared.u32 [%r1], %lane;
  bar.sync 0;
  xor.b32 %r3, %lane, 64; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2;
  ld.shared.u32 %r4, [%r3];
  st.global.u32 [%out], %r4;)");
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.warp_order = order;
    const Run r = run(text, {}, 128, 0, options);
    REQUIRE(!r.result.fault);
    CHECK(r.at<uint32_t>(5) == 69);
    CHECK(r.at<uint32_t>(127) == 63);
  }
}

TEST_CASE("named barriers count the threads that they are told") {
  // Warp 0 produces, warp 1 consumes; warps 2 and 3 have nothing to do with it.
  const Run r = run(kernel(R"(
  .shared .align 4 .b8 area[4];
  shr.u32 %r1, %lane, 5;
  setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 1;
  @%p1 bra $produce;
  @%p2 bra $consume;
  ret;
$produce:
  st.shared.u32 [area], 42;
  bar.arrive 3, 64;
  ret;
$consume:
  bar.sync 3, 64;
  ld.shared.u32 %r2, [area];
  st.global.u32 [%out], %r2;)"),
                    {}, 128);
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(40) == 42);
}

TEST_CASE("barriers with a register number and a reduction") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, 5; barrier.sync %r1;
  setp.lt.u32 %p1, %lane, 40;
  bar.red.popc.u32 %r2, 0, %p1;
  bar.red.and.pred %p2, 0, !%p1; selp.b32 %r3, 1, 0, %p2;
  bar.red.or.pred %p3, 0, %p1; selp.b32 %r4, 1, 0, %p3;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)"),
                    {}, 96);
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(80, 1) == 40);
  CHECK(r.at<uint32_t>(80, 2) == 0);
  CHECK(r.at<uint32_t>(80, 3) == 1);
}

TEST_CASE("a reduction over the threads that a barrier counts") {
  // Warps 0 and 1 reduce, warps 2 and 3 with another result at another barrier.
  for (const char* bar : {"bar.", "bar.cta.", "barrier.", "barrier.cta."}) {
    INFO(bar);
    const std::string red = bar + std::string("red.");
    const Run r = run(kernel(R"(
  shr.u32 %r1, %lane, 6; add.u32 %r5, %r1, 1; mov.u32 %r6, 64;
  setp.lt.u32 %p1, %lane, 70;
  )" + red + "popc.u32 %r2, %r5, 64, !%p1;\n  " +
                             red + "and.pred %p2, %r5, %r6, %p1; selp.b32 %r3, 1, 0, %p2;\n  " +
                             red + R"(or.pred %p3, %r5, 64, %p1; selp.b32 %r4, 1, 0, %p3;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)"),
                      {}, 128);
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.at<uint32_t>(40, 1) == 0);
    CHECK(r.at<uint32_t>(40, 2) == 1);
    CHECK(r.at<uint32_t>(40, 3) == 1);
    CHECK(r.at<uint32_t>(100, 1) == 58);
    CHECK(r.at<uint32_t>(100, 2) == 0);
    CHECK(r.at<uint32_t>(100, 3) == 1);
  }
  const Run odd = run(kernel("  bar.red.popc.u32 %r2, 1, 33, %p1;"));
  REQUIRE(odd.result.fault);
  CHECK(odd.result.fault->message ==
        "a barrier for 33 threads; the number must be a multiple of 32");
}

TEST_CASE("bar.sync of all threads does not wait for warps that have exited") {
  const Run r = run(kernel(R"(
  setp.ge.u32 %p1, %lane, 64;
  @%p1 ret;
  bar.sync 0;
  st.global.u32 [%out], 1;)"),
                    {}, 128);
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(10) == 1);
}

TEST_CASE("a deadlock names every warp's position") {
  const Run r = run(kernel(R"(
  shr.u32 %r1, %lane, 5;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $first;
  bar.sync 2, 128;
  ret;
$first:
  bar.sync 1, 64;)"),
                    {}, 96);
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kDeadlock);
  CHECK(r.result.fault->format() ==
        "error: test.ptx:25: deadlock: no warp can go on\n"
        "  25 |   bar.sync 1, 64;\n"
        "     |   ^~~~~~~~\n"
        "  note: kernel k, block (0, 0, 0)\n"
        "  note: warp 0 waits at line 25, bar.sync, for barrier 1: 32 of 64 threads have arrived\n"
        "  note: warp 1 waits at line 22, bar.sync, for barrier 2: 64 of 128 threads have arrived\n"
        "  note: warp 2 waits at line 22, bar.sync, for barrier 2: 64 of 128 threads have arrived");
}

TEST_CASE("barriers used in contradiction") {
  const Run twice = run(kernel("  bar.arrive 1, 64;\n  bar.arrive 1, 64;"));
  REQUIRE(twice.result.fault);
  CHECK(twice.result.fault->message == "the warp arrives at barrier 1 twice in one phase");
  const Run odd = run(kernel("  bar.sync 1, 33;"));
  REQUIRE(odd.result.fault);
  CHECK(odd.result.fault->message ==
        "a barrier for 33 threads; the number must be a multiple of 32");
  const Run sixteen = run(kernel("  bar.sync 16;"));
  REQUIRE(sixteen.result.fault);
  CHECK(sixteen.result.fault->message == "there is no barrier 16; they are 0 to 15");
}
