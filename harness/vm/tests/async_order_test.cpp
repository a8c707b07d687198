// SPDX-License-Identifier: MIT
// What the checkers say, and do not say, about copies that complete on mbarriers and about boxes
// that reach beyond their tensor.
#include "catch.h"
#include "ptxvm/races.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

Run check(const std::string& body, uint32_t threads, Order order = Order::kForward) {
  return run_checked(kernel(body, "sm_90a"), threads, order);
}

void check_clean(const std::string& body, uint32_t threads = 64) {
  for (Order order : {Order::kForward, Order::kReversed}) {
    CHECK(check(body, threads, order).found.empty());
  }
}

// Warp 0 copies two pieces of 512 bytes, an arrival after each; warp 1 reads.
const char* const kBegin = R"(
.shared .align 16 .b8 area[1024];
.shared .align 8 .b8 bars[16];
setp.eq.u32 %p1, %lane, 0; mov.u32 %r20, bars; and.b32 %r1, %lane, 31; mul.lo.u32 %r1, %r1, 16;
mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
@%p1 mbarrier.init.shared.b64 [%r20], 32;
@%p1 mbarrier.init.shared.b64 [%r20+8], 32;
bar.sync 0;
setp.ge.u32 %p2, %lane, 32;
@%p2 bra $reader;
)";
const char* const kCopies = R"(cp.async.cg.shared.global [%r1], [%in], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];
cp.async.cg.shared.global [%r1+512], [%in], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r20+8];
)";
std::string wait(int bar) {
  const std::string n = std::to_string(bar);
  return "$again" + n + ":\nmbarrier.try_wait.parity.shared.b64 %p3, [%r20+" + n +
         "], 0;\n@!%p3 bra $again" + n + ";\n";
}
const std::string kLeave = "ret;\n$reader:\n";
std::string read(int offset) {
  return "ld.shared.u32 %r5, [%r1+" + std::to_string(offset) + "]; st.global.u32 [%out], %r5;\n";
}

}  // namespace

TEST_CASE("cp.async.mbarrier.arrive orders the copies before those who wait for the barrier") {
  const std::string begin = std::string(kBegin) + kCopies + kLeave;
  check_clean(begin + wait(0) + read(0) + wait(8) + read(512));
  // With an increment of the pending count: 32 more than the barrier was made for.
  std::string increments = std::string(kBegin) + kCopies;
  for (size_t at = 0; (at = increments.find(".noinc", at)) != std::string::npos;) {
    increments.erase(at, 6);
  }
  const std::string arrive =
      "mbarrier.arrive.shared.b64 _, [%r20];\nmbarrier.arrive.shared.b64 _, [%r20+8];\n";
  check_clean(increments + arrive + kLeave + wait(0) + read(0) + wait(8) + read(512));
  // Nobody waits.
  CHECK_THAT(check(begin + read(0), 64).found, Catch::Contains("race 28/34"));
  // The other barrier is of the copies after this one's.
  const std::string early = begin + wait(0) + read(512) + wait(8);
  CHECK(check(early, 64).found == "race 37/30\n");
  // The second covers the first copies as well.
  check_clean(begin + wait(8) + read(0) + read(512) + wait(0));
}

TEST_CASE("an arrival says nothing about ordinary writes, or to the warp that does not wait") {
  // Warp 0 also writes before its arrivals: cp.async.mbarrier.arrive releases nothing.
  std::string own = std::string(kBegin) + kCopies + read(0);
  const std::string reader = kLeave + wait(0) + wait(8);
  CHECK(check(own + reader, 64).found == "race 32/28\n");
  // Its own wait for the barrier, or for the group, is enough.
  const std::string mine =
      "$mine:\nmbarrier.try_wait.parity.shared.b64 %p4, [%r20], 0;\n@!%p4 bra $mine;\n";
  check_clean(std::string(kBegin) + kCopies + mine + read(0) + reader);
  check_clean(std::string(kBegin) + kCopies + "cp.async.wait_all;\n" + read(512) + reader);
  check_clean(std::string(kBegin) + kCopies + "cp.async.commit_group;\ncp.async.wait_group 0;\n" +
              read(512) + reader);
  const std::string released = std::string(kBegin) +
                               ".shared .align 4 .b8 word[4];\n@%p1 st.shared.u32 [word], 1;\n" +
                               kCopies + reader + "ld.shared.u32 %r5, [word];\n";
  CHECK(check(released, 64).found == "race 42/29\n");
}

TEST_CASE("a copy that is tracked by an mbarrier need not be waited for by its warp") {
  const std::string end = "ret;\n$reader:\n" + wait(0) + wait(8);
  check_clean(std::string(kBegin) + kCopies + end);
  // One more copy, after the last arrival.
  const std::string more = "cp.async.cg.shared.global [%r1], [%in], 16;\n";
  CHECK_THAT(check(std::string(kBegin) + kCopies + more + end, 64).found,
             Catch::Contains("copy 32"));
}

namespace {

// Stores a box of 32 x 8 halves to a tensor of 24 x 4, after `fill` has written shared memory.
std::string store_box(const std::string& fill, Swizzle swizzle) {
  Memory memory;
  TensorMap map;
  map.base = memory.allocate("tensor", 1024);
  map.rank = 2;
  map.dims = {24, 4, 1, 1, 1};
  map.strides = {2, 64, 0, 0, 0};
  map.box = {32, 8, 1, 1, 1};
  map.swizzle = swizzle;
  const std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .align 64 .b8 map[128])\n{\n"
      "  .reg .b64 %d<8>;\n  .reg .b32 %r<16>;\n  .reg .pred %p<4>;\n"
      "  .shared .align 1024 .b8 box[1024];\n"
      "  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; mov.u32 %r1, box; mov.u32 %r4, %tid.x;\n"
      "  shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r1; setp.eq.u32 %p1, %r4, 0;\n"
      "  setp.lt.u32 %p2, %r4, 12;\n" +
      fill +
      "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n  @!%p1 bra $end;\n"
      "  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {0, 0}], [%r1];\n"
      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n$end:\n  ret;\n}\n";
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.arguments = {Argument::tensor_map(map)};
  Races races;
  Options options;
  options.observers = {&races};
  const Module module = Module::parse(text, "store.ptx");
  return found(launch(module, "k", config, memory, options), module.kernel("k"));
}

}  // namespace

TEST_CASE("a tensor store reads what the tensor has of its box, and no more") {
  // Rows 0 to 3, bytes 0 to 47 of 64.
  const std::string rows[] = {"@%p2 st.shared.u32 [%r5], 1;\n", "@%p2 st.shared.u32 [%r5+64], 1;\n",
                              "@%p2 st.shared.u32 [%r5+128], 1;\n",
                              "@%p2 st.shared.u32 [%r5+192], 1;\n"};
  CHECK(store_box(rows[0] + rows[1] + rows[2] + rows[3], Swizzle::kNone).empty());
  CHECK(store_box(rows[0] + rows[1] + rows[3], Swizzle::kNone) == "uninitialised 19\n");
  // With the swizzle of 64 bytes, chunks of rows 2 and 3 change places: 0 and 1, 2 and 3.
  const std::string swapped =
      "  setp.lt.u32 %p3, %r4, 8;\n  xor.b32 %r6, %r5, 16;\n  add.u32 %r7, %r5, 16;\n"
      "  @%p3 st.shared.u32 [%r6+128], 1;\n  @%p3 st.shared.u32 [%r6+192], 1;\n"
      "  setp.ge.u32 %p3, %r4, 8; and.pred %p3, %p3, %p2;\n"
      "  @%p3 st.shared.u32 [%r7+128], 1;\n  @%p3 st.shared.u32 [%r7+192], 1;\n";
  CHECK(store_box(rows[0] + rows[1] + swapped, Swizzle::k64B).empty());
  CHECK(!store_box(rows[0] + rows[1] + rows[2] + rows[3], Swizzle::k64B).empty());
}

TEST_CASE("a missing fence.mbarrier_init is advice, and does not fail the kernel") {
  const std::string load = R"(
.shared .align 16 .b8 area[256];
.shared .align 8 .b8 bar[8];
mov.u32 %r8, bar; mov.u32 %r2, area; setp.eq.u32 %p1, %lane, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r8], 1;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 256;
@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 256, [%r8];
$again:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8], 0;
@!%p2 bra $again;
)";
  const LaunchResult r = check(load, 64).result;
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].checker == "mbarrier");
  CHECK(r.findings[0].severity == Severity::kAdvice);
  CHECK(name(r.findings[0].severity) == "advice");
  CHECK(r.ok());
  const LaunchResult race = check(load + "st.shared.u32 [area], %lane;\n", 64).result;
  REQUIRE(race.findings.size() == 2);
  CHECK(race.findings[0].severity == Severity::kError);
  CHECK_FALSE(race.ok());
}
