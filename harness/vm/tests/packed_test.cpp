// SPDX-License-Identifier: MIT
// Packed integers, dot products, 8-bit floating point, coarse double-precision approximations.
#include <algorithm>
#include <bit>
#include <cmath>

#include "catch.h"
#include "num/float8.h"
#include "run_ptx.h"

using namespace ptxvm_test;

TEST_CASE("8-bit floating point: all values go there and back, and ties to even") {
  for (num::Float8 format : {num::Float8::kE4m3, num::Float8::kE5m2}) {
    for (int bits = 0; bits < 256; ++bits) {
      const double x = num::float8_to_double(static_cast<uint8_t>(bits), format);
      if (!std::isfinite(x)) continue;
      CHECK(num::double_to_float8(x, format) == bits);
    }
  }
  const auto e4m3 = [](double x) { return num::double_to_float8(x, num::Float8::kE4m3); };
  CHECK(e4m3(1.0625) == e4m3(1.0));   // halfway to 1.125
  CHECK(e4m3(1.1875) == e4m3(1.25));  // halfway to 1.25
  CHECK(e4m3(464) == 0x7e);           // beyond the largest
  CHECK(e4m3(-1e9) == 0xfe);
  CHECK(e4m3(NAN) == 0x7f);
  CHECK(e4m3(0x1p-10) == 0);  // halfway to the least
  CHECK(e4m3(0x1.8p-9) == 2);
  CHECK(num::double_to_float8(1e9, num::Float8::kE5m2) == 0x7b);
}

TEST_CASE("video instructions pick parts, and keep those of c that they do not take") {
  const auto pick = [](const std::string& statement) {
    return apply_one<uint32_t, uint32_t>(statement, {0x00040003, 0x00020001, 0xaaaabbbb});
  };
  CHECK(pick("vadd2.u32.u32.u32 %y.h0, %x0, %x1, %x2;") == 0xaaaa0004);
  CHECK(pick("vadd2.u32.u32.u32 %y.h1, %x0, %x1, %x2;") == 0x0006bbbb);
  CHECK(pick("vsub2.u32.u32.u32 %y, %x0.h01, %x1.h22, %x2;") == 0x00020003);
  CHECK(pick("vsub2.u32.u32.u32 %y, %x0.h32, %x1.h10, %x2;") == 0xfffefffe);
  CHECK(pick("vadd2.u32.u32.u32.add %y.h1, %x0, %x1, %x2;") == 0xaaaabbbb + 6);
  CHECK(pick("vadd4.u32.u32.u32 %y.b20, %x0, %x1.b0000, %x2;") == 0xaa07bb06);
  CHECK(pick("vmax4.u32.u32.u32 %y.b3210, %x0.b7654, %x1.b7654, %x2;") == 0x00020001);
}

TEST_CASE("parts that are none are refused") {
  const auto text = [](const std::string& statement) {
    try {
      apply_one<uint32_t, uint32_t>(statement, {1, 2, 3});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const char* bad : {"%y.h01", "%y.h2", "%y.b10", "%y.h"}) {
    INFO(bad);
    CHECK(text(std::string("vadd2.u32.u32.u32 ") + bad + ", %x0, %x1, %x2;").find("parts") !=
          std::string::npos);
  }
  CHECK(text("vadd2.u32.u32.u32 %y, %x0.h4, %x1, %x2;").find("parts") != std::string::npos);
  CHECK(text("vadd2.u32.u32.u32 %y, %x0.h40, %x1, %x2;").find("parts") != std::string::npos);
  CHECK(text("vadd4.u32.u32.u32 %y, %x0, %x1.b8000, %x2;").find("parts") != std::string::npos);
}

TEST_CASE("pairs of f32 are computed half by half, as f32 is") {
  const auto pair = [](float low, float high) {
    return uint64_t{std::bit_cast<uint32_t>(high)} << 32 | std::bit_cast<uint32_t>(low);
  };
  const auto of = [](const std::string& instruction, std::vector<uint64_t> row) {
    const std::string operands = row.size() == 2 ? " %y, %x0, %x1;" : " %y, %x0, %x1, %x2;";
    return apply_one<uint64_t, uint64_t>(instruction + operands, std::move(row), "sm_100");
  };
  const uint64_t a = pair(1.5f, -2.0f), b = pair(0.25f, 3.0f), c = pair(10.0f, 0.5f);
  CHECK(of("add.f32x2", {a, b}) == pair(1.75f, 1.0f));
  CHECK(of("sub.f32x2", {a, b}) == pair(1.25f, -5.0f));
  CHECK(of("mul.f32x2", {a, b}) == pair(0.375f, -6.0f));
  CHECK(of("fma.rn.f32x2", {a, b, c}) == pair(10.375f, -5.5f));
  // One and a half units above 1: up, and down.
  const uint64_t one = pair(1.0f, -1.0f), small = pair(0x1.8p-24f, -0x1.8p-24f);
  CHECK(of("add.rz.f32x2", {one, small}) == one);
  CHECK(of("add.rp.f32x2", {one, small}) == pair(0x1.000002p0f, -1.0f));
  CHECK(of("add.rm.f32x2", {one, small}) == pair(1.0f, -0x1.000002p0f));
  // A product that only one rounding keeps, and a subnormal that ftz does not.
  CHECK(of("fma.rn.f32x2", {pair(0x1.000002p0f, 0), pair(0x1.000002p0f, 0),
                            pair(-0x1.000004p0f, 0)}) == pair(0x1p-46f, 0));
  CHECK(of("mul.f32x2", {pair(0x1p-126f, 2), pair(0.5f, 2)}) == pair(0x1p-127f, 4));
  CHECK(of("mul.ftz.f32x2", {pair(0x1p-126f, 2), pair(0.5f, 2)}) == pair(0, 4));
  CHECK(of("mul.f32x2", {pair(INFINITY, 1), pair(0, 1)}) == (pair(0, 1) | 0x7fffffff));
  CHECK_THROWS_AS(of("add.f32x2 %y, 1, %x0; //", {a, b}), Error);
}

TEST_CASE("minima and maxima of three, from sm_100 on") {
  const auto of = [](const std::string& instruction, std::vector<float> row) {
    const std::string operands = row.size() == 2 ? " %y, %x0, %x1;" : " %y, %x0, %x1, %x2;";
    std::vector<uint32_t> words(row.size());
    std::memcpy(words.data(), row.data(), 4 * row.size());
    return apply_one<uint32_t, uint32_t>(instruction + operands, words, "sm_100");
  };
  const auto word = [](float x) { return std::bit_cast<uint32_t>(x); };
  constexpr uint32_t kNan = 0x7fffffff;
  std::vector<float> row{1.0f, -3.0f, 2.0f};
  std::sort(row.begin(), row.end());
  do {
    CHECK(of("max.f32", row) == word(2.0f));
    CHECK(of("min.f32", row) == word(-3.0f));
    CHECK(of("max.abs.f32", row) == word(3.0f));
    CHECK(of("min.abs.f32", row) == word(1.0f));
  } while (std::next_permutation(row.begin(), row.end()));
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> one{5.0f, 5.0f, 5.0f}, two{NAN, NAN, NAN};
    one[i] = NAN, two[i] = -5.0f;
    CHECK(of("min.f32", one) == word(5.0f));
    CHECK(of("max.f32", two) == word(-5.0f));
    CHECK(of("max.abs.f32", two) == word(5.0f));
    CHECK(of("min.NaN.f32", one) == kNan);
    CHECK(of("max.NaN.abs.f32", one) == kNan);
  }
  CHECK(of("max.f32", {NAN, NAN, NAN}) == kNan);
  CHECK(of("max.f32", {-0.0f, -0.0f, 0.0f}) == word(0.0f));
  CHECK(of("min.f32", {0.0f, 0.0f, -0.0f}) == word(-0.0f));
  CHECK(of("max.f32", {0x1p-127f, 0.0f, -1.0f}) == word(0x1p-127f));
  CHECK(of("max.ftz.f32", {0x1p-127f, 0.0f, -1.0f}) == word(0.0f));
  CHECK(of("max.f32", {1.0f, 2.0f}) == word(2.0f));
  CHECK_THROWS_AS(of("max.abs.f32", {1.0f, 2.0f}), Error);
  CHECK_THROWS_AS((apply_one<uint32_t, uint32_t>("max.f32 %y, %x0, %x1, %x2;", {1, 2, 3}, "sm_90")),
                  Error);
}

TEST_CASE("sums and products of f16 and bf16 in f32 are rounded once") {
  const auto of = [](const std::string& instruction, std::vector<uint32_t> row) {
    const std::string last = "%x" + std::to_string(row.size() - 1);
    const bool adds = row.size() == 2;
    return apply_one<uint32_t, uint32_t>(
        "{.reg .b16 %a, %b; cvt.u16.u32 %a, %x0; cvt.u16.u32 %b, %x1; " + instruction +
            " %y, %a, " + (adds ? "" : "%b, ") + last + ";}",
        std::move(row), "sm_100");
  };
  const auto word = [](float x) { return std::bit_cast<uint32_t>(x); };
  CHECK(of("add.f32.f16", {0x3e00, word(0.25f)}) == word(1.75f));
  CHECK(of("add.f32.bf16", {0x3fc0, word(0.25f)}) == word(1.75f));
  CHECK(of("sub.f32.f16", {0x3e00, word(0.25f)}) == word(1.25f));
  CHECK(of("sub.f32.bf16", {0x3fc0, word(0.25f)}) == word(1.25f));
  CHECK(of("fma.rn.f32.f16", {0x3e00, 0xc000, word(0.25f)}) == word(-2.75f));
  CHECK(of("fma.rn.f32.bf16", {0x3fc0, 0xc000, word(0.25f)}) == word(-2.75f));
  // Subnormals of f16, and results that saturate.
  CHECK(of("add.f32.f16", {0x0001, word(0.0f)}) == word(0x1p-24f));
  CHECK(of("add.f32.bf16", {0x0001, word(0.0f)}) == 0x00010000);
  CHECK(of("add.sat.f32.f16", {0x3e00, word(0.25f)}) == word(1.0f));
  CHECK(of("fma.rn.sat.f32.f16", {0x3e00, 0xc000, word(0.25f)}) == word(0.0f));
  CHECK(of("add.f32.f16", {0x7c00, word(-INFINITY)}) == 0x7fffffff);
  // One and a half units of the last place of 1.
  const uint32_t small = word(0x1.8p-24f);
  CHECK(of("add.f32.f16", {0x3c00, small}) == word(0x1.000002p0f));
  CHECK(of("add.rz.f32.f16", {0x3c00, small}) == word(1.0f));
  CHECK(of("sub.rp.f32.bf16", {0xbf80, small}) == word(-1.0f));
  CHECK(of("sub.rm.f32.bf16", {0xbf80, small}) == word(-0x1.000002p0f));
  CHECK(of("fma.rn.f32.f16", {0x3c01, 0x3c01, word(-0x1.004p0f)}) == word(0x1.004p-10f));
  CHECK(of("fma.rz.f32.f16", {0x3c00, 0x3c00, small}) == word(1.0f));
  CHECK(of("fma.rp.f32.bf16", {0x3f80, 0x3f80, small}) == word(0x1.000002p0f));
}
