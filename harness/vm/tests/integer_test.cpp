// SPDX-License-Identifier: MIT
#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm_test;

namespace {

uint32_t op32(const std::string& opcode, std::vector<uint32_t> x) {
  std::string s = opcode + " %y";
  for (size_t i = 0; i < x.size(); ++i) s += ", %x" + std::to_string(i);
  return apply_one<uint32_t, uint32_t>(s + ";", x);
}

uint64_t op64(const std::string& opcode, std::vector<uint64_t> x) {
  std::string s = opcode + " %y";
  for (size_t i = 0; i < x.size(); ++i) s += ", %x" + std::to_string(i);
  return apply_one<uint64_t, uint64_t>(s + ";", x);
}

// Shift counts, positions and lengths are 32-bit operands also of 64-bit instructions.
uint64_t op64_counts(const std::string& opcode, uint64_t a, uint32_t n, uint32_t m) {
  return apply_one<uint64_t, uint64_t>(
      ".reg .b32 %n<2>; cvt.u32.u64 %n0, %x1; cvt.u32.u64 %n1, %x2; " + opcode +
          " %y, %x0, %n0, %n1;",
      {a, n, m});
}

}  // namespace

TEST_CASE("carries go through the flag of each lane, also in 64 bits") {
  auto pair = [](const char* low, const char* high, uint32_t a, uint32_t b, uint32_t c,
                 uint32_t d) {
    return apply_one<uint32_t, uint32_t>(
        std::string(".reg .b32 %t; ") + low + " %t, %x0, %x1; " + high + " %y, %x2, %x3;",
        {a, b, c, d});
  };
  CHECK(pair("add.cc.u32", "addc.u32", 0xffffffff, 1, 5, 6) == 12);
  CHECK(pair("add.cc.u32", "addc.u32", 0xfffffffe, 1, 5, 6) == 11);
  CHECK(pair("sub.cc.u32", "subc.u32", 0, 1, 5, 2) == 2);
  CHECK(pair("sub.cc.u32", "subc.u32", 1, 1, 5, 2) == 3);
  // The flag is the carry of a sum, and a subtraction is a sum: 5 + ~3 + 1 has one, 3 + ~5 + 1
  // none.
  CHECK(pair("sub.cc.u32", "addc.u32", 5, 3, 10, 20) == 31);
  CHECK(pair("sub.cc.u32", "addc.u32", 3, 5, 10, 20) == 30);
  CHECK(pair("add.cc.u32", "subc.u32", 0xffffffff, 1, 10, 20) == 0xfffffff6);
  CHECK(pair("add.cc.u32", "subc.u32", 1, 1, 10, 20) == 0xfffffff5);
  for (const auto& [low, carry] : std::vector<std::pair<std::string, uint32_t>>{
           {"mad.lo.cc.u32 %t, %x0, %x0, %x0;", 1}, {"mad.lo.cc.u32 %t, 0, %x0, %x0;", 0}}) {
    const auto high = [&](const std::string& text) {
      return apply_one<uint32_t, uint32_t>(".reg .b32 %t; " + low + text, {0xffffffff, 10, 20});
    };
    CHECK(high("addc.u32 %y, %x1, %x2;") == 30 + carry);
    CHECK(high("subc.u32 %y, %x1, %x2;") == 0xfffffff5 + carry);
  }
  for (const bool borrows : {false, true}) {
    CHECK((apply_one<uint32_t, uint32_t>(
              ".reg .b32 %t; sub.cc.u32 %t, %x0, %x1; madc.lo.u32 %y, %x2, %x2, %x2;",
              {borrows ? 3u : 5u, 4, 2})) == (borrows ? 6 : 7));
  }
  CHECK(op64(".reg .b64 %t; add.cc.u64 %t, %x0, %x1; addc.u64 %y, %x2, %x3; //",
             {~0ull, 1, 5, 6}) == 12);
  // (2^32-1)^2 + 2^32-1 has a low word of 0 and a carry: the high word is 0xfffffffe + 1 + 1.
  CHECK((apply_one<uint32_t, uint32_t>(
            ".reg .b32 %t; mad.lo.cc.u32 %t, %x0, %x1, %x2; madc.hi.u32 %y, %x0, %x1, %x3;",
            {0xffffffff, 0xffffffff, 0xffffffff, 1})) == 0);
}

TEST_CASE("bfe with positions at and beyond the width") {
  CHECK(op32("bfe.u32", {0xabcd1234, 8, 8}) == 0x12);
  CHECK(op32("bfe.s32", {0xabcd1234, 24, 8}) == 0xffffffab);
  CHECK(op32("bfe.u32", {0xffffffff, 32, 4}) == 0);
  CHECK(op32("bfe.s32", {0x80000000, 32, 4}) == 0xffffffff);
  CHECK(op32("bfe.s32", {0x80000000, 28, 8}) == 0xfffffff8);
  CHECK(op32("bfe.u32", {0xffffffff, 0, 255}) == 0xffffffff);
  CHECK(op32("bfe.s32", {0xffffffff, 5, 0}) == 0);
  CHECK(op32("bfe.u32", {0xff, 0x104, 4}) == 0xf);
  CHECK(op64_counts("bfe.u64", 0x123456789abcdef0, 32, 16) == 0x5678);
  CHECK(op64_counts("bfe.s64", 1ull << 63, 60, 10) == 0xfffffffffffffff8);
}

TEST_CASE("selp takes a negated predicate") {
  CHECK(op32("setp.lt.s32 %p1, %x0, %x1; selp.b32 %y, %x0, %x1, !%p1; //", {1, 2}) == 2);
  CHECK(op32("setp.lt.s32 %p1, %x0, %x1; selp.b32 %y, %x0, %x1, %p1; //", {1, 2}) == 1);
  CHECK(op32("slct.b32.s32", {1, 2, 0xffffffff}) == 2);
}

TEST_CASE("setp combines and complements") {
  auto both = [](const std::string& s) {
    return apply_one<uint32_t, uint32_t>(
        "setp.eq.s32 %p3, %x0, 1; " + s +
            " selp.b32 %x2, 1, 0, %p1; selp.b32 %x3, 2, 0, %p2; or.b32 %y, %x2, %x3;",
        {1, 2});
  };
  CHECK(both("setp.lt.s32 %p1|%p2, %x0, %x1;") == 1);
  CHECK(both("setp.gt.s32 %p1|%p2, %x0, %x1;") == 2);
  CHECK(both("setp.lt.and.s32 %p1|%p2, %x0, %x1, !%p3;") == 0);
  CHECK(both("setp.lt.xor.s32 %p1|%p2, %x0, %x1, %p3;") == 2);
  CHECK(both("setp.lo.u32 %p1|%p2, %x1, %x0;") == 2);
}

TEST_CASE("division by zero") {
  CHECK(op32("div.u32", {7, 0}) == 0xffffffff);
}

TEST_CASE("mov packs and unpacks") {
  CHECK((apply_one<uint64_t, uint32_t>("mov.b64 %y, {%x0, %x1};", {1, 2})) == 0x200000001);
  CHECK((apply_one<uint32_t, uint64_t>(".reg .b32 %t; mov.b64 {%t, %y}, %x0;",
                                       {0x1122334455667788})) == 0x11223344);
  CHECK((apply_one<uint32_t, uint16_t>("mov.b32 %y, {%x0, %x1};", {0x1234, 0x5678})) == 0x56781234);
  CHECK((apply_one<uint16_t, uint64_t>(".reg .b16 %t<4>; mov.b64 {%t0, %t1, %y, %t3}, %x0;",
                                       {0x1122334455667788})) == 0x3344);
}
