// SPDX-License-Identifier: MIT
#include "catch.h"
#include "memory/mbarrier.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

constexpr const char* kTarget = "sm_90a";

// One thread makes a barrier for `count` arrivals, then all go on.
std::string with_barrier(int count, const std::string& then) {
  return kernel(
      "  .shared .align 8 .b8 bar[16];\n  .shared .align 16 .b8 area[512];\n"
      "  mov.u32 %r30, bar; shr.u32 %r31, %lane, 5; setp.eq.u32 %p7, %lane, 0;\n"
      "  @%p7 mbarrier.init.shared::cta.b64 [%r30], " +
          std::to_string(count) + ";\n  bar.sync 0;\n" + then,
      kTarget);
}

class Log : public Observer {
 public:
  std::vector<MbarrierEvent> events;

  std::unique_ptr<Probe> make_probe() override {
    struct Recorder : Probe {
      explicit Recorder(Log& l) : log(l) {}
      void mbarrier(const MbarrierEvent& e) override { log.events.push_back(e); }
      Log& log;
    };
    return std::make_unique<Recorder>(*this);
  }
  void end(std::span<const std::unique_ptr<Probe>>) override {}
};

}  // namespace

TEST_CASE("a phase needs all arrivals and all bytes") {
  Mbarrier b;
  b.expected = b.pending = 2;
  CHECK(!b.complete());
  b.pending = 0;
  b.bytes = 16;
  CHECK(!b.complete());
  b.bytes = 0;
  CHECK(b.complete());
  const uint64_t state = b.state();
  b.next_phase();
  CHECK(b.pending == 2);
  CHECK(state_phase(state) == 0);
  CHECK(state_pending(state) == 0);
}

TEST_CASE("warps wait for the arrivals of others, in either order of turns") {
  const std::string text = with_barrier(32, R"(
  shl.b32 %r1, %lane, 2; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
  setp.eq.u32 %p1, %r31, 0;
  @%p1 bra $produce;
$again:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r30], 0;
  @!%p2 bra $again;
  ld.shared.u32 %r3, [%r1+-128];
  st.global.u32 [%out], %r3;
  ret;
$produce:
  mul.lo.u32 %r4, %lane, 3;
  st.shared.u32 [%r1], %r4;
  mbarrier.arrive.shared::cta.b64 %d1, [%r30];
  mbarrier.pending_count.b64 %r5, %d1;
  st.global.u32 [%out], %r5;)");
  for (Order order : {Order::kForward, Order::kReversed}) {
    Options options;
    options.warp_order = order;
    const Run r = run(text, {}, 64, 0, options);
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.at<uint32_t>(32 + 5) == 15);
    CHECK(r.at<uint32_t>(63) == 93);
    CHECK(r.at<uint32_t>(0) == 32);
    CHECK(r.at<uint32_t>(31) == 1);
  }
}

TEST_CASE("states and parities name the current phase and the one before") {
  const Run r = run(with_barrier(1, R"(
  @!%p7 bra $end;
  mbarrier.test_wait.parity.shared.b64 %p1, [%r30], 1; selp.b32 %r1, 1, 0, %p1;
  mbarrier.arrive.shared.b64 %d1, [%r30];
  mbarrier.test_wait.shared.b64 %p2, [%r30], %d1; selp.b32 %r2, 1, 0, %p2;
  mbarrier.test_wait.parity.shared.b64 %p3, [%r30], 0; selp.b32 %r3, 1, 0, %p3;
  mbarrier.test_wait.parity.shared.b64 %p4, [%r30], 1; selp.b32 %r4, 1, 0, %p4;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};
$end:)"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0, 0) == 1);  // the phase before the first
  CHECK(r.at<uint32_t>(0, 1) == 1);
  CHECK(r.at<uint32_t>(0, 2) == 1);
  CHECK(r.at<uint32_t>(0, 3) == 0);
}

TEST_CASE("bytes that are expected keep a phase open") {
  const Run r = run(with_barrier(1, R"(
  @!%p7 bra $end;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r30], 48;
  mbarrier.test_wait.parity.shared.b64 %p1, [%r30], 0; selp.b32 %r1, 1, 0, %p1;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r30], 32;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r30], 16;
  mbarrier.test_wait.parity.shared.b64 %p2, [%r30], 0; selp.b32 %r2, 1, 0, %p2;
  mbarrier.inval.shared.b64 [%r30];
  st.shared.u32 [%r30], 7;
  st.global.v2.b32 [%out], {%r1, %r2};
$end:)"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0, 0) == 0);
  CHECK(r.at<uint32_t>(0, 1) == 1);
}

TEST_CASE("counts, drops and generic addresses") {
  const Run r = run(with_barrier(4, R"(
  @!%p7 bra $end;
  cvt.u64.u32 %d2, %r30; cvta.shared.u64 %d2, %d2;
  mbarrier.arrive.b64 %d1, [%d2], 3;
  mbarrier.arrive_drop.b64 %d1, [%d2];
  mbarrier.test_wait.parity.b64 %p1, [%d2], 0; selp.b32 %r1, 1, 0, %p1;
  mbarrier.arrive.noComplete.b64 %d3, [%d2], 2; mbarrier.pending_count.b64 %r2, %d3;
  mbarrier.arrive.b64 %d4, [%d2]; mbarrier.pending_count.b64 %r3, %d4;
  mbarrier.test_wait.b64 %p2, [%d2], %d4; selp.b32 %r4, 1, 0, %p2;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};
$end:)"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0, 0) == 1);
  CHECK(r.at<uint32_t>(0, 1) == 3);
  CHECK(r.at<uint32_t>(0, 2) == 1);
  CHECK(r.at<uint32_t>(0, 3) == 1);
}

TEST_CASE("a loop around test_wait lets others run") {
  const Run r = run(with_barrier(1, R"(
  setp.eq.u32 %p1, %r31, 1;
  @%p1 bra $arrive;
$again:
  mbarrier.test_wait.parity.shared.b64 %p2, [%r30], 0;
  @!%p2 bra $again;
  st.global.u32 [%out], 5;
  ret;
$arrive:
  setp.eq.u32 %p3, %lane, 32;
  @%p3 mbarrier.arrive.shared.b64 _, [%r30];)"),
                    {}, 64);
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(3) == 5);
}

TEST_CASE("try_wait gives up where the phase needs what the warp does next") {
  const Run r = run(with_barrier(1, R"(
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r30], 0;
  selp.u32 %r1, 1, 2, %p1;
  setp.eq.u32 %p2, %lane, 0;
  @%p2 mbarrier.arrive.shared::cta.b64 _, [%r30];
$again:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r30], 0;
  @!%p2 bra $again;
  st.global.u32 [%out], %r1;)"),
                    {}, 32);
  CHECK(r.fault == "");
  CHECK(r.at<uint32_t>(7) == 2);
}

TEST_CASE("lanes may wait for other lanes of their warp") {
  const Run r = run(with_barrier(1, R"(
  setp.lt.u32 %p1, %lane, 16;
  @!%p1 bra $arrive;
$again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r30], 0;
  @!%p2 bra $again;
  st.global.u32 [%out], 5;
  ret;
$arrive:
  setp.eq.u32 %p3, %lane, 16;
  @%p3 mbarrier.arrive.shared.b64 _, [%r30];)"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(3) == 5);
}

TEST_CASE("cp.async arrives at a barrier when its copies have landed") {
  std::vector<std::byte> in(512);
  for (uint32_t i = 0; i < 128; ++i) std::memcpy(&in[i * 4], &i, 4);
  for (const char* form : {"", ".noinc"}) {
    const Run r = run(with_barrier(32, std::string(R"(
  shl.b32 %r1, %lane, 4; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
  cp.async.cg.shared.global [%r1], [%in], 16;
  cp.async.mbarrier.arrive)") + form + R"(.shared.b64 [%r30];
)" + (*form ? "" : "  mbarrier.arrive.shared.b64 _, [%r30];\n") +
                                           R"($again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r30], 0;
  @!%p2 bra $again;
  ld.shared.u32 %r3, [%r1+4];
  st.global.u32 [%out], %r3;)"),
                      in);
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.at<uint32_t>(4) == 17);
  }
}

TEST_CASE("misuse of barriers") {
  const auto stopped = [](int count, const std::string& then) {
    return run(with_barrier(count, then)).fault;
  };
  CHECK(stopped(0, "") == "invalid 21 warp 0 lane 0");
  CHECK(stopped(1, "  mbarrier.arrive.shared.b64 _, [%r30+8];") == "invalid 23 warp 0 lane 0");
  CHECK(stopped(1, "  mbarrier.arrive.shared.b64 _, [%r30+4];") == "misaligned 23 warp 0 lane 0");
  CHECK(stopped(2, "  mbarrier.arrive.shared.b64 _, [%r30], 3;") == "invalid 23 warp 0 lane 0");
  CHECK(stopped(1,
                "  st.shared.u32 [%r30], 1;\n"
                "  mbarrier.arrive.shared.b64 _, [%r30];") == "invalid 24 warp 0 lane 0");
  const std::string init = "  @%p7 mbarrier.init.shared.b64 [%r30], ";
  const std::string arrive = "  @%p7 mbarrier.arrive.shared.b64 _, [%r30];\n";
  CHECK(stopped(1, init + "2;") == "invalid 23 warp 0 lane 0");
  CHECK(stopped(2, arrive + init + "2;") == "invalid 24 warp 0 lane 0");
  CHECK(stopped(1, arrive + arrive + init + "1;") == "invalid 25 warp 0 lane 0");
  CHECK(stopped(1,
                "  @%p7 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r30], 1048575;\n"
                "  @%p7 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r30], 1;") ==
        "invalid 24 warp 0 lane 0");
  CHECK(stopped(1, "  mbarrier.test_wait.parity.shared.b64 %p1, [%r30], 2;") ==
        "invalid 23 warp 0 lane 0");
  CHECK(stopped(1, "  @%p7 mbarrier.arrive.noComplete.shared.b64 %d1, [%r30], 1;") ==
        "invalid 23 warp 0 lane 0");
  CHECK(stopped(1, "  mbarrier.arrive.b64 _, [%base];") == "invalid 23 warp 0 lane 0");
}

TEST_CASE("an mbarrier that several threads initialise before its use is advice") {
  // All lanes of two warps; without the barrier a use is not ordered after all of them.
  const std::string head =
      "  .shared .align 8 .b8 bar[8];\n  mov.u32 %r30, bar; setp.eq.u32 %p7, %lane, 0;\n"
      "  mbarrier.init.shared::cta.b64 [%r30], 1;\n";
  const std::string use = "  @%p7 mbarrier.arrive.shared.b64 _, [%r30];\n";
  for (const bool ordered : {true, false}) {
    CHECK(run_checked(kernel(head + (ordered ? "  bar.sync 0;\n" + use : ""), kTarget), 64).found ==
          "mbarrier (advice) 20/20 x62\nmbarrier (advice) 20/20\n");
  }
  // Warp 2 waits for warp 1 alone; warp 0 initialises it, too, at line 29.
  CHECK(run_checked(kernel("  .shared .align 8 .b8 bar[8];\n  .reg .pred %two, %none;\n"
                           "  mov.u32 %r30, bar; shr.u32 %r31, %lane, 5;\n"
                           "  setp.eq.u32 %two, %r31, 2;\n  setp.eq.u32 %none, %r31, 0;\n"
                           "  @%two bra $use;\n  @%none bra $too;\n"
                           "  mbarrier.init.shared::cta.b64 [%r30], 32;\n"
                           "  bar.sync 1, 64;\n  bra $end;\n"
                           "$too:\n  mbarrier.init.shared::cta.b64 [%r30], 32;\n  bra $end;\n"
                           "$use:\n  bar.sync 1, 64;\n"
                           "  mbarrier.arrive.shared.b64 _, [%r30];\n$end:\n",
                           kTarget),
                    96)
            .found ==
        "mbarrier 33/29 x32\n"
        "mbarrier (advice) 25/25 x31\nmbarrier (advice) 29/29 x31\nmbarrier (advice) 25/29\n");
}

TEST_CASE("a use has to come after all that initialise an mbarrier") {
  // Warp 1 waits for nobody; in the machine's order it comes last, and finds the barrier in use.
  CHECK(run(kernel("  .shared .align 8 .b8 bar[8];\n  mov.u32 %r30, bar;\n"
                   "  setp.eq.u32 %p7, %lane, 0;\n"
                   "  mbarrier.init.shared::cta.b64 [%r30], 1;\n"
                   "  @%p7 mbarrier.arrive.shared.b64 _, [%r30];\n",
                   kTarget),
            {}, 64)
            .fault == "invalid 21 warp 1 lane 0");
}

TEST_CASE("a barrier that misses arrivals or bytes keeps its waiters") {
  const auto stopped = [](int count, int bytes) {
    return run(with_barrier(count, "  @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], " +
                                       std::to_string(bytes) + R"(;
$again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r30], 0;
  @!%p2 bra $again;)"))
        .fault;
  };
  CHECK(stopped(1, 0) == "");
  CHECK(stopped(3, 0) == "deadlock 25");
  CHECK(stopped(1, 64) == "deadlock 25");
  CHECK(stopped(3, 64) == "deadlock 25");
}

TEST_CASE("events follow a barrier through its phases") {
  Log log;
  Options options;
  options.observers = {&log};
  const Run r = run(with_barrier(1, R"(
  @!%p7 bra $end;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 16;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r30], 16;
  mbarrier.try_wait.parity.shared.b64 %p2, [%r30], 0;
$end:)"),
                    {}, 32, 0, options);
  REQUIRE(!r.result.fault);
  std::vector<MbarrierAction> actions;
  for (const MbarrierEvent& e : log.events) {
    actions.push_back(e.action);
    CHECK(e.address == 1024);
    CHECK(e.phase == 0);
  }
  CHECK(actions == std::vector{MbarrierAction::kInit, MbarrierAction::kExpect,
                               MbarrierAction::kArrive, MbarrierAction::kComplete,
                               MbarrierAction::kPhase, MbarrierAction::kWait});
}

namespace {

constexpr int kHandOvers = 4;

// Warp `producer` fills a stage `kHandOvers` times, the others empty it; `arrivals` of them say so.
// The last of these others first loses `delay` turns.
std::string ring(int producer, int arrivals, int delay, const std::string& arrive) {
  const std::string last = std::to_string(producer == 2 ? 1 : 2), turns = std::to_string(delay);
  const auto wait = [](const char* label, const char* barrier) {
    return std::string(label) + ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [" + barrier +
           "], %r6;\n  @!%p1 bra " + label + ";\n";
  };
  return kernel(
      "  .shared .align 8 .b8 bars[24];\n  .reg .b32 %full, %empty, %never;\n"
      "  mov.u32 %full, bars; add.u32 %empty, %full, 8; add.u32 %never, %full, 16;\n"
      "  setp.ne.u32 %p7, %lane, 0;\n  @%p7 bra $made;\n"
      "  mbarrier.init.shared::cta.b64 [%full], 1;\n  mbarrier.init.shared::cta.b64 [%empty], " +
          std::to_string(arrivals) +
          ";\n  mbarrier.init.shared::cta.b64 [%never], 1;\n$made:\n  bar.sync 0;\n"
          "  shr.u32 %r1, %lane, 5; and.b32 %r2, %lane, 31; setp.eq.u32 %p2, %r2, 0;\n"
          "  mov.u32 %r3, 0; setp.eq.u32 %p3, %r1, " +
          std::to_string(producer) + ";\n  @%p3 bra $produce;\n  setp.ne.u32 %p4, %r1, " + last +
          ";\n  mov.u32 %r4, 0;\n  @%p4 bra $consume;\n$late:\n  setp.ge.u32 %p5, %r4, " + turns +
          ";\n  @%p5 bra $consume;\n"
          "  mbarrier.test_wait.parity.shared::cta.b64 %p6, [%never], 0;\n"
          "  add.u32 %r4, %r4, 1;\n  bra $late;\n$consume:\n  and.b32 %r6, %r3, 1;\n" +
          wait("$full", "%full") + (arrivals == 1 ? "  @!%p4 bra $consumed;\n" : "") + "  @%p2 " +
          arrive + " _, [%empty];\n$consumed:\n  add.u32 %r3, %r3, 1;\n  setp.lt.u32 %p5, %r3, " +
          std::to_string(kHandOvers) +
          ";\n  @%p5 bra $consume;\n  ret;\n$produce:\n  not.b32 %r6, %r3;\n"
          "  and.b32 %r6, %r6, 1;\n" +
          wait("$empty", "%empty") +
          "  @%p2 mbarrier.arrive.shared::cta.b64 _, [%full];\n  add.u32 %r3, %r3, 1;\n"
          "  setp.lt.u32 %p5, %r3, " +
          std::to_string(kHandOvers) + ";\n  @%p5 bra $produce;\n",
      kTarget);
}

}  // namespace

TEST_CASE("a wait comes before the end of the next phase, however late its warp is") {
  const char* const release = "mbarrier.arrive.shared::cta.b64";
  const char* const relaxed = "mbarrier.arrive.relaxed.cta.shared::cta.b64";
  for (const Order order : {Order::kForward, Order::kReversed}) {
    for (const int producer : {0, 1, 2}) {
      for (const int delay : {0, 30}) {
        for (const char* arrive : {release, relaxed})
          CHECK(run_checked(ring(producer, 2, delay, arrive), 96, order).found == "");
      }
      // One of two warps says that the stage is empty: right in turn, for ever where it is late.
      CHECK(run_checked(ring(producer, 1, 0, release), 96, order).found == "mbarrier 43/58 x3\n");
      CHECK(run_checked(ring(producer, 1, 30, release), 96, order).fault == "deadlock 43");
    }
  }
}
