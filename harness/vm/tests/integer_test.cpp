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

TEST_CASE("addition, subtraction, multiplication wrap") {
  CHECK(op32("add.s32", {0x7fffffff, 1}) == 0x80000000);
  CHECK(op32("sub.u32", {0, 1}) == 0xffffffff);
  CHECK(op32("mul.lo.s32", {0x10000, 0x10000}) == 0);
  CHECK(op32("mul.hi.u32", {0xffffffff, 0xffffffff}) == 0xfffffffe);
  CHECK(op32("mul.hi.s32", {0xffffffff, 0xffffffff}) == 0);
  CHECK(op64("mul.hi.u64", {~0ull, ~0ull}) == 0xfffffffffffffffe);
  CHECK(op64("mul.hi.s64", {~0ull, 5}) == ~0ull);
  CHECK(op32("mad.lo.s32", {3, 0xffffffff, 10}) == 7);
  CHECK(op32("mad.hi.s32", {0x40000000, 4, 1}) == 2);
  CHECK(op32("mul24.lo.s32", {0xff800000, 2}) == 0xff000000);
  CHECK(op32("mul24.hi.u32", {0xffffff, 0xffffff}) == 0xfffffe00);
  CHECK(op32("sad.s32", {0xffffffff, 2, 10}) == 13);
  CHECK(op32("add.sat.s32", {0x7fffffff, 1}) == 0x7fffffff);
  CHECK(op32("sub.sat.s32", {0x80000000, 1}) == 0x80000000);
}

TEST_CASE("16-bit arithmetic takes no notice of what is above") {
  CHECK((apply_one<uint16_t, uint16_t>("add.u16 %y, %x0, %x1;", {65535, 2})) == 1);
  CHECK((apply_one<uint16_t, uint16_t>("mul.hi.s16 %y, %x0, %x1;", {0xffff, 1})) == 0xffff);
  CHECK((apply_one<uint16_t, uint16_t>("shr.s16 %y, %x0, 4;", {0x8000})) == 0xf800);
  CHECK((apply_one<uint32_t, uint16_t>("mul.wide.u16 %y, %x0, %x1;", {65535, 65535})) ==
        0xfffe0001);
  CHECK((apply_one<uint32_t, uint16_t>("mul.wide.s16 %y, %x0, %x1;", {0x8000, 2})) == 0xffff0000);
}

TEST_CASE("wide products") {
  CHECK((apply_one<uint64_t, uint32_t>("mul.wide.s32 %y, %x0, %x1;", {0xffffffff, 2})) ==
        0xfffffffffffffffe);
  CHECK((apply_one<uint64_t, uint32_t>("mul.wide.u32 %y, %x0, %x1;", {0xffffffff, 2})) ==
        0x1fffffffe);
  CHECK((apply_one<uint64_t, uint32_t>(
            ".reg .b64 %c; mov.u64 %c, 5; mad.wide.s32 %y, %x0, %x1, %c;", {0xffffffff, 2})) == 3);
}

TEST_CASE("division and remainder") {
  CHECK(op32("div.s32", {0xfffffff9, 2}) == 0xfffffffd);
  CHECK(op32("rem.s32", {0xfffffff9, 2}) == 0xffffffff);
  CHECK(op32("div.u32", {7, 0}) == 0xffffffff);
  CHECK(op32("div.s32", {0x80000000, 0xffffffff}) == 0x80000000);
  CHECK(op64("rem.u64", {1ull << 40, 1000}) == (1ull << 40) % 1000);
}

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

TEST_CASE("bits") {
  CHECK((apply_one<uint32_t, uint64_t>("popc.b64 %y, %x0;", {0xf0f0000000000001})) == 9);
  CHECK(op32("clz.b32", {0}) == 32);
  CHECK(op32("clz.b32", {1}) == 31);
  CHECK(op32("brev.b32", {1}) == 0x80000000);
  CHECK(op32("bfind.u32", {0}) == 0xffffffff);
  CHECK(op32("bfind.u32", {0x00010000}) == 16);
  CHECK(op32("bfind.s32", {0xffff0000}) == 15);
  CHECK(op32("bfind.shiftamt.u32", {1}) == 31);
  CHECK(op32("lop3.b32 %y, %x0, %x1, %x2, 0x96; //", {0xff00ff00, 0x0ff00ff0, 0x12345678}) ==
        (0xff00ff00 ^ 0x0ff00ff0 ^ 0x12345678));
  CHECK(op32("lop3.b32 %y, %x0, %x1, %x2, 0xca; //", {0xffff0000, 0x12345678, 0x9abcdef0}) ==
        0x1234def0);
  CHECK(op32("szext.clamp.s32", {0x80, 8}) == 0xffffff80);
  CHECK(op32("bmsk.clamp.b32", {4, 8}) == 0xff0);
  CHECK(op32("fns.b32", {0x80000010, 0, 2}) == 31);
  CHECK(op32("dp4a.s32.s32", {0xff020304, 0x01010101, 10}) == 18);
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

TEST_CASE("bfi") {
  CHECK(op32("bfi.b32", {0xff, 0, 4, 4}) == 0xf0);
  CHECK(op32("bfi.b32", {0xff, 0x12345678, 32, 4}) == 0x12345678);
  CHECK(op32("bfi.b32", {0xff, 0x12345678, 28, 8}) == 0xf2345678);
  CHECK(op32("bfi.b32", {0xabcdef01, 0, 0, 40}) == 0xabcdef01);
}

TEST_CASE("shifts clamp or wrap as they say") {
  CHECK(op32("shl.b32", {1, 32}) == 0);
  CHECK(op32("shr.u32", {0x80000000, 40}) == 0);
  CHECK(op32("shr.s32", {0x80000000, 40}) == 0xffffffff);
  CHECK(op32("shf.l.wrap.b32", {0x80000000, 1, 33}) == 3);
  CHECK(op32("shf.l.clamp.b32", {0x80000000, 1, 33}) == 0x80000000);
  CHECK(op32("shf.r.clamp.b32", {0x80000000, 1, 32}) == 1);
  CHECK(op32("shf.r.wrap.b32", {0x80000000, 1, 31}) == 3);
}

TEST_CASE("prmt") {
  CHECK(op32("prmt.b32", {0x33221100, 0x77665544, 0x7654}) == 0x77665544);
  CHECK(op32("prmt.b32", {0x33228100, 0x77665544, 0x0009}) == 0x000000ff);
  CHECK(op32("prmt.b32.f4e", {0x33221100, 0x77665544, 1}) == 0x44332211);
  CHECK(op32("prmt.b32.b4e", {0x33221100, 0x77665544, 1}) == 0x66770011);
  CHECK(op32("prmt.b32.rc8", {0x33221100, 0x77665544, 2}) == 0x22222222);
  CHECK(op32("prmt.b32.ecl", {0x33221100, 0x77665544, 1}) == 0x33221111);
  CHECK(op32("prmt.b32.ecr", {0x33221100, 0x77665544, 1}) == 0x11111100);
  CHECK(op32("prmt.b32.rc16", {0x33221100, 0x77665544, 1}) == 0x33223322);
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
