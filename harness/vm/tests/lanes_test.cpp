// SPDX-License-Identifier: MIT
// Correct kernels whose lanes do not all go the same way.
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// Runs in both orders of the warps; returns the second run.
Run run_both(const std::string& body, uint32_t threads) {
  Run r;
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.warp_order = order;
    r = run(kernel(body, "sm_90a"), {}, threads, 0, options);
    INFO((r.result.fault ? r.result.fault->format() : ""));
    REQUIRE(!r.result.fault);
  }
  return r;
}

std::string fault_of(const std::string& body, uint32_t threads = 32) {
  const Run r = run(kernel(body), {}, threads);
  return r.result.fault ? r.result.fault->message : "";
}

// Lanes of the last warp leave by a branch to an exit behind everything else.
const char* const kLeave = "setp.ge.u32 %p1, %lane, 40;\n@%p1 bra $leave;\n";
const char* const kEnd = "\n$leave:\n  ret;";

}  // namespace

TEST_CASE("bar.sync waits until lanes that are about to exit have done so") {
  // The way nvcc compiles `if (i >= n) return;`: the exit stands behind the barrier.
  for (const char* barrier : {"bar.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;"}) {
    const Run r = run_both(std::string(kLeave) + barrier + "\nst.global.u32 [%out], 7;" + kEnd, 64);
    CHECK(r.at<uint32_t>(39) == 7);
    CHECK(r.at<uint32_t>(40) == 0);
  }
}

TEST_CASE("barrier.cluster and bar.red wait for lanes that are about to exit") {
  const Run r = run_both(std::string(kLeave) + R"(
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  bar.red.popc.u32 %r1, 0, %p1;
  st.global.u32 [%out], %r1;)" +
                             kEnd,
                         64);
  CHECK(r.at<uint32_t>(39) == 0);
}

TEST_CASE("a full member mask counts lanes that have exited as arrived") {
  // One exit comes first, another one stands behind the shuffle.
  for (const char* leave : {"setp.ge.u32 %p1, %lane, 16;\n@%p1 exit;\n",
                            "setp.ge.u32 %p1, %lane, 16;\n@%p1 bra $leave;\n"}) {
    const Run r = run_both(std::string(leave) + R"(
  shfl.sync.bfly.b32 %r1, %lane, 8, 31, 0xffffffff;
  setp.lt.u32 %p2, %lane, 5;
  vote.sync.ballot.b32 %r2, %p2, 0xffffffff;
  bar.warp.sync 0xffffffff;
  redux.sync.add.u32 %r3, %lane, 0xffffffff;
  st.global.v2.b32 [%out], {%r1, %r2}; st.global.u32 [%out+8], %r3;)" +
                               kEnd,
                           32);
    CHECK(r.at<uint32_t>(3, 0) == 11);
    CHECK(r.at<uint32_t>(3, 1) == 31);
    CHECK(r.at<uint32_t>(3, 2) == 120);
  }
}

TEST_CASE("a long loop of one lane does not part it from its warp") {
  // 100,000 rounds are many turns. What follows needs all lanes: a barrier, and ldmatrix.
  const std::string loop = R"(
  .shared .align 16 .b8 area[1024];
  mov.u32 %r1, 0;
  setp.ne.u32 %p1, %lane, 0;
  @%p1 bra $join;
$again:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, 100000;
  @%p2 bra $again;
$join:
)";
  const Run barrier = run_both(loop + "bar.sync 0;\nst.global.u32 [%out], %r1;", 64);
  CHECK(barrier.at<uint32_t>(0) == 100000);
  CHECK(barrier.at<uint32_t>(1) == 0);
  const Run matrix = run_both(loop + R"(
  and.b32 %r2, %lane, 31; mul.lo.u32 %r2, %r2, 16; mov.u32 %r3, area; add.u32 %r2, %r2, %r3;
  st.shared.v4.u32 [%r2], {%r1, %lane, %lane, %lane};
  bar.warp.sync -1;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];
  st.global.u32 [%out], %r4;)",
                              32);
  CHECK(matrix.at<uint32_t>(0) == 100000);
}

TEST_CASE("one lane spins on a flag of another warp before a barrier") {
  // The other warp takes long to raise it; everybody else is at the barrier.
  const Run r = run_both(R"(
  .shared .align 4 .b8 flag[4];
  setp.eq.u32 %p1, %lane, 0; @%p1 st.shared.u32 [flag], 0;
  bar.sync 0;
  mov.u32 %r1, 0;
  setp.eq.u32 %p2, %lane, 40;
  @%p2 bra $wait;
  setp.ne.u32 %p3, %lane, 0;
  @%p3 bra $meet;
$work:
  add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 60000;
  @%p4 bra $work;
  st.volatile.shared.u32 [flag], %r1;
  bra.uni $meet;
$wait:
  ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p5, %r1, 0;
  @%p5 bra $wait;
$meet:
  bar.sync 0;
  st.global.u32 [%out], %r1;)",
                         64);
  CHECK(r.at<uint32_t>(0) == 60000);
  CHECK(r.at<uint32_t>(40) == 60000);
  CHECK(r.at<uint32_t>(41) == 0);
}

TEST_CASE("lanes that really do not meet are still a fault") {
  const std::string part = "setp.lt.u32 %p1, %lane, 16;\n";
  CHECK(fault_of(part + "@%p1 bar.sync 0;") ==
        "only lanes 0x0000ffff execute this; lanes 0xffffffff must, together");
  CHECK(fault_of(part + R"(@%p1 bra $low;
  bar.sync 0;
  bra.uni $end;
$low:
  bar.sync 0;
$end:)") ==
        "only lanes 0xffff0000 execute this; lanes 0xffffffff must, together; "
        "lanes 0x0000ffff wait at line 23");
  // ldmatrix needs all 32, and lanes that have exited cannot come.
  CHECK(fault_of(part + R"(.shared .align 16 .b8 area[16];
  @%p1 bra $leave;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [area];
$leave:
  ret;)") == "only lanes 0xffff0000 execute this; lanes 0xffffffff must, together");
}

TEST_CASE("a shuffle from a lane that does not take part harms nobody who does not use it") {
  // The tail of a reduction: only lane 0 has all terms, and only lane 0 uses the sum.
  const std::string reduction = R"(
  mov.u32 %r1, %lane;
  setp.ge.u32 %p1, %lane, 8;
  @%p1 bra $leave;
  shfl.sync.down.b32 %r2, %r1, 4, 31, 0xff; add.u32 %r1, %r1, %r2;
  shfl.sync.down.b32 %r2, %r1, 2, 31, 0xff; add.u32 %r1, %r1, %r2;
  shfl.sync.down.b32 %r2, %r1, 1, 31, 0xff; add.u32 %r1, %r1, %r2;
  setp.ne.u32 %p2, %lane, 0;
)";
  const Run sum = run_both(reduction + "@!%p2 st.global.u32 [%out], %r1;" + kEnd, 32);
  CHECK(sum.at<uint32_t>(0) == 28);
  // Once everybody stores, so does lane 1, whose sum has a term that lane 2 had from nowhere.
  const Run all = run(kernel(reduction + "st.global.u32 [%out], %r1;" + kEnd));
  REQUIRE(all.result.fault);
  CHECK(all.result.fault->kind == FaultKind::kDivergence);
  CHECK(all.result.fault->lane == 1);
  CHECK(all.result.fault->message ==
        "this uses what shfl.sync.down.b32 at line 24 took from a lane that does not take part in "
        "it");
  CHECK(all.result.fault->where.where.line == 26);
  // Outside the member mask, though it executes the same instruction.
  CHECK(run_both(R"(
  setp.lt.u32 %p1, %lane, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1;
  shfl.sync.bfly.b32 %r2, %lane, 16, 31, %r1;
  shfl.sync.bfly.b32 %r3, %lane, 8, 31, %r1;
  st.global.u32 [%out], %r3;)",
                 32)
            .at<uint32_t>(20) == 28);
}

TEST_CASE("what uses an undefined value, and what does not") {
  const std::string take = R"(
  .shared .align 16 .b8 area[64];
  setp.ge.u32 %p1, %lane, 8;
  @%p1 bra $leave;
  shfl.sync.bfly.b32 %r2, %lane, 8, 31, 0xff;
)";
  const std::string used =
      "this uses what shfl.sync.bfly.b32 at line 22 took from a lane that does not take part in it";
  auto message = [&](const std::string& body) { return fault_of(take + body + kEnd); };
  // Carried on, but never used; overwritten; not selected; not executed.
  CHECK(message("add.u32 %r3, %r2, 1; cvt.rn.f32.u32 %f1, %r3; mov.b64 %d1, {%r3, %r2};").empty());
  CHECK(message("mov.u32 %r2, 5; st.global.u32 [%out], %r2;").empty());
  CHECK(message("setp.lt.u32 %p2, %lane, 8; selp.b32 %r3, %lane, %r2, %p2;"
                "st.global.u32 [%out], %r3;")
            .empty());
  CHECK(message("setp.ge.u32 %p2, %lane, 8; @%p2 st.global.u32 [%out], %r2;").empty());
  // Values, addresses, branches, guards, and what was computed from it.
  CHECK(message("add.u32 %r3, %r2, 1; st.shared.u32 [area], %r3;") == used);
  CHECK(message("mov.u32 %r3, area; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];") == used);
  CHECK(message("setp.gt.u32 %p2, %r2, 3;\n@%p2 bra $leave;") == used);
  CHECK(message("setp.gt.u32 %p2, %r2, 3;\n@!%p2 bra $leave;") == used);
  CHECK(message("setp.gt.u32 %p2, %r2, 3; mov.u32 %r3, 0; @!%p2 mov.u32 %r3, 1;"
                "st.global.u32 [%out], %r3;") == used);
  CHECK(message("mov.b64 %d1, {%lane, %r2}; st.global.u64 [%out], %d1;") == used);
  CHECK(message("shfl.sync.bfly.b32 %r3, %r2, 1, 31, 0xff; st.global.u32 [%out], %r3;") == used);
  CHECK(message("redux.sync.add.u32 %r3, %r2, 0xff; st.global.u32 [%out], %r3;") == used);
}
