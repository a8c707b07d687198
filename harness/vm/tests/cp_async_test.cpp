// SPDX-License-Identifier: MIT
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

const char* const kSetUp = R"(
  .shared .align 16 .b8 area[4096];
  shl.b32 %r1, %lane, 4; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
)";

std::vector<std::byte> numbers() {
  std::vector<std::byte> in(512);
  for (uint32_t i = 0; i < 128; ++i) std::memcpy(&in[i * 4], &i, 4);
  return in;
}

uint32_t read_after(const std::string& instructions, int lane, int word = 0) {
  const Run r = run(kernel(kSetUp + instructions + R"(
  ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];
  st.global.v4.b32 [%out], {%r4, %r5, %r6, %r7};)"),
                    numbers());
  if (r.result.fault) FAIL(r.result.fault->format());
  return r.at<uint32_t>(lane, word);
}

}  // namespace

TEST_CASE("a copy is there after the wait and not before") {
  const std::string copy = "cp.async.cg.shared.global [%r1], [%in], 16;\n";
  CHECK(read_after(copy + "cp.async.commit_group; cp.async.wait_group 0;", 3) == 12);
  CHECK(read_after(copy + "cp.async.wait_all;", 3, 3) == 15);
  CHECK(read_after(copy, 3) == 0xffffffff);
  CHECK(read_after(copy + "cp.async.commit_group; cp.async.wait_group 1;", 3) == 0xffffffff);
  CHECK(read_after(copy + "cp.async.wait_group 0;", 3) == 0xffffffff);
}

TEST_CASE("a wait lands the oldest groups only") {
  const std::string two = R"(
  cp.async.ca.shared.global [%r1], [%in], 4; cp.async.commit_group;
  cp.async.ca.shared.global [%r1+4], [%in], 4; cp.async.commit_group;
  )";
  CHECK(read_after(two + "cp.async.wait_group 1;", 2, 0) == 8);
  CHECK(read_after(two + "cp.async.wait_group 1;", 2, 1) == 0xffffffff);
  CHECK(read_after(two + "cp.async.wait_group 0;", 2, 1) == 8);
}

TEST_CASE("short sources are filled with zeros") {
  CHECK(read_after("cp.async.cg.shared.global [%r1], [%in], 16, 8; cp.async.wait_all;", 3, 1) ==
        13);
  CHECK(read_after("cp.async.cg.shared.global [%r1], [%in], 16, 8; cp.async.wait_all;", 3, 2) == 0);
  // A source of no bytes is not read: its address may be any multiple of 8.
  CHECK(read_after("cp.async.ca.shared.global [%r1], [0], 8, 0; cp.async.wait_all;", 3, 1) == 0);
  const Run odd = run(
      kernel(std::string(kSetUp) + "cp.async.cg.shared.global [%r1], [%in+2], 16, 0;"), numbers());
  REQUIRE(odd.result.fault);
  CHECK(odd.result.fault->kind == FaultKind::kMisaligned);
  CHECK(odd.result.fault->message.find("a multiple of 16 also where nothing is read") !=
        std::string::npos);
  const std::string mixed =
      "and.b32 %r3, %lane, 1; shl.b32 %r3, %r3, 2; "
      "cp.async.ca.shared.global [%r1], [%in], 8, %r3; cp.async.wait_all;";
  CHECK(read_after(mixed, 2, 0) == 0);
  CHECK(read_after(mixed, 3, 0) == 12);
  CHECK(read_after(mixed, 3, 1) == 0);
}

TEST_CASE("a source that a predicate says to ignore is not read, and zeros are written") {
  for (const char* copy : {"cp.async.ca.shared.global [%r1], [%d1], 16, ",
                           "cp.async.cg.shared::cta.global.L2::128B [%r1], [%d1], 16, "}) {
    INFO(copy);
    // Odd lanes point nowhere.
    const std::string text =
        "and.b32 %r3, %lane, 1; setp.eq.u32 %p1, %r3, 1; selp.b64 %d1, 0, %in, %p1;\n" +
        std::string(copy);
    CHECK(read_after(text + "%p1; cp.async.wait_all;", 2, 1) == 9);
    CHECK(read_after(text + "%p1; cp.async.wait_all;", 3, 1) == 0);
    CHECK(read_after("setp.lt.u32 %p1, %lane, 64; mov.u64 %d1, %in;" + std::string(copy) +
                         "!%p1; cp.async.wait_all;",
                     3, 1) == 13);
    const Run wild = run(kernel(kSetUp + text + "!%p1;"), numbers());
    REQUIRE(wild.result.fault);
    CHECK(wild.result.fault->kind == FaultKind::kOutOfBounds);
  }
  CHECK(read_after("createpolicy.fractional.L2::evict_last.b64 %d2; setp.ge.u32 %p1, %lane, 3;\n"
                   "cp.async.cg.shared.global.L2::cache_hint [%r1], [%in], 16, %p1, %d2;\n"
                   "cp.async.wait_all;",
                   2, 1) == 9);
  // A word is still the size of the source.
  CHECK(read_after("cp.async.cg.shared.global [%r1], [%in], 16, 1; cp.async.wait_all;", 3, 0) ==
        12);
}

TEST_CASE("groups are counted for each thread") {
  // Odd lanes commit once more than even ones.
  const std::string text = R"(
  and.b32 %r3, %lane, 1; setp.eq.u32 %p1, %r3, 1;
  cp.async.ca.shared.global [%r1], [%in], 4; cp.async.commit_group;
  @%p1 cp.async.commit_group;
  cp.async.wait_group 1;
  )";
  CHECK(read_after(text, 3) == 12);
  CHECK(read_after(text, 2) == 0xffffffff);
}

TEST_CASE("copies are checked when they are issued") {
  const Run r =
      run(kernel(std::string(kSetUp) + "  cp.async.cg.shared.global [%r1+4088], [%in], 16;"),
          numbers());
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kOutOfBounds);
  const Run m = run(kernel(std::string(kSetUp) + "  cp.async.cg.shared.global [%r1], [%in+8], 16;"),
                    numbers());
  REQUIRE(m.result.fault);
  CHECK(m.result.fault->kind == FaultKind::kMisaligned);
}
