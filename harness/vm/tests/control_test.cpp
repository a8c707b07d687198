// SPDX-License-Identifier: MIT
// Indirect branches.
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// Lane i goes where %r1 says: adds 1, 20 or 300 to %r2, falling from the first case to the second.
std::string branching(const std::string& index, const std::string& branch = "brx.idx") {
  return kernel("  mov.u32 %r2, 0;\n" + index + R"(
    targets: .branchtargets one, twenty, hundreds, one;
    setp.lt.u32 %p1, %lane, 30;
    @%p1 )" + branch +
                R"( %r1, targets;
    add.u32 %r2, %r2, 4000;
    bra.uni out;
one:
    add.u32 %r2, %r2, 1;
twenty:
    add.u32 %r2, %r2, 20;
    bra.uni out;
hundreds:
    add.u32 %r2, %r2, 300;
out:
    activemask.b32 %r3;
    st.global.v2.u32 [%out], {%r2, %r3};)");
}

}  // namespace

TEST_CASE("brx.idx: each lane goes its own way, and all meet again") {
  const Run r = run(branching("and.b32 %r1, %lane, 3;"));
  if (r.result.fault) FAIL(r.result.fault->format());
  const uint32_t wanted[] = {21, 20, 300, 21};
  for (int i = 0; i < 32; ++i) {
    CHECK(r.at<uint32_t>(i) == (i < 30 ? wanted[i % 4] : 4000));
    CHECK(r.at<uint32_t>(i, 1) == 0xffffffff);
  }
  for (const char* branch : {"brx.idx", "brx.idx.uni"}) {
    const Run same = run(branching("mov.u32 %r1, 2; mov.u32 %lane, 3;", branch));
    if (same.result.fault) FAIL(same.result.fault->format());
    CHECK(same.at<uint32_t>(5) == 300);
  }
}

TEST_CASE("brx.idx: what has no target is a fault") {
  const Run outside = run(branching("sub.u32 %r1, 7, %lane;"));
  REQUIRE(outside.result.fault);
  CHECK(outside.result.fault->message == "the index is 7; there are 4 targets");
  const Run uneven = run(branching("and.b32 %r1, %lane, 1;", "brx.idx.uni"));
  REQUIRE(uneven.result.fault);
  CHECK(uneven.result.fault->message == "lanes go different ways at brx.idx.uni");
}

TEST_CASE("brx.idx: bad lists of targets are refused") {
  const auto error = [](const std::string& body) -> std::string {
    try {
      Module::parse(kernel(body), "test.ptx");
    } catch (const Error& e) {
      return e.diagnostics()[0].message;
    }
    return "none";
  };
  CHECK(error("brx.idx %r1, there; there: .branchtargets nowhere;") ==
        "there is no label 'nowhere' here");
  CHECK(error("there: brx.idx %r1, there;") == "expected a label before .branchtargets");
  CHECK(error("brx.idx 3, there; there: .branchtargets there;") == "expected a register");
  CHECK(error("t: .branchtargets t; bra t;") == "there is no label 't' here");
  CHECK(error("here: t: .branchtargets here; brx.idx %r1, t;") == "none");
  // One list for many branches is long once, and counts for each of them.
  std::string labels = "here", branches;
  for (int i = 0; i < 2000; ++i) labels += ", here";
  for (int i = 0; i < 1000; ++i) branches += "brx.idx %r1, t; ";
  CHECK(error("here: t: .branchtargets " + labels + "; " + branches) ==
        "indirect branches have too many targets");
}
