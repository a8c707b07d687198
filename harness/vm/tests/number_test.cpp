// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstring>
#include <random>

#include "catch.h"
#include "num/approx.h"
#include "num/directed.h"
#include "num/half.h"
#include "num/kernels.h"
#include "num/single.h"

using namespace ptxvm::num;

namespace {

float bits(uint32_t b) {
  return std::bit_cast<float>(b);
}
uint32_t bits(float f) {
  return std::bit_cast<uint32_t>(f);
}

float random_float(std::mt19937& rng) {
  return bits(static_cast<uint32_t>(rng()));
}

}  // namespace

TEST_CASE("every f16 widens to its value and narrows back") {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const float f = half_to_float(half);
    const int exponent = static_cast<int>(h >> 10 & 31), fraction = static_cast<int>(h & 1023);
    if (exponent == 31 && fraction != 0) {
      REQUIRE(bits(f) == 0x7fffffffu);
      REQUIRE(float_to_half(f) == 0x7fff);
      continue;
    }
    double value = exponent == 31  ? INFINITY
                   : exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(1024 + fraction, exponent - 25);
    if (h & 0x8000) value = -value;
    REQUIRE(static_cast<double>(f) == value);
    REQUIRE(std::signbit(f) == ((h & 0x8000) != 0));
    REQUIRE(float_to_half(f) == half);
  }
}

TEST_CASE("the fast conversions round as the general one") {
  std::mt19937 rng(7);
  for (int i = 0; i < 1000000; ++i) {
    float f = random_float(rng);
    if (i % 2) f = bits((bits(f) & 0x8fffffffu) | 0x38000000u);  // around the range of f16
    REQUIRE(float_to_half(f) == round_to(static_cast<double>(f), kHalf, Rounding::kNearest));
    REQUIRE(float_to_bfloat(f) == round_to(static_cast<double>(f), kBfloat, Rounding::kNearest));
  }
}

TEST_CASE("doubles round to singles as the processor rounds them") {
  std::mt19937_64 rng(8);
  for (int i = 0; i < 1000000; ++i) {
    uint64_t raw = rng();
    if (i % 2) raw = (raw & 0x800fffffffffffffull) | ((0x360ull + rng() % 0x120) << 52);
    const double d = std::bit_cast<double>(raw);
    const float expected = static_cast<float>(d);
    if (d != d) continue;
    REQUIRE(round_to(d, kSingle, Rounding::kNearest) == bits(expected));
  }
}

TEST_CASE("directed rounding brackets the exact value") {
  CHECK(round_to_single(1.0 + 0x1p-40, Rounding::kUp) == 1.0f + 0x1p-23f);
  CHECK(round_to_single(1.0 + 0x1p-40, Rounding::kDown) == 1.0f);
  CHECK(round_to_single(-1.0 - 0x1p-40, Rounding::kZero) == -1.0f);
  CHECK(round_to_single(-1.0 - 0x1p-40, Rounding::kDown) == -1.0f - 0x1p-23f);
  CHECK(round_to_single(1e300, Rounding::kZero) == 0x1.fffffep127f);
  CHECK(round_to_single(1e300, Rounding::kUp) == INFINITY);
  CHECK(round_to_single(-1e300, Rounding::kUp) == -0x1.fffffep127f);
  CHECK(round_to(2049.0, kHalf, Rounding::kNearest) == 0x6800);
  CHECK(round_to(2049.0, kHalf, Rounding::kNearestAway) == 0x6801);
  CHECK(round_to(65520.0, kHalf, Rounding::kNearest) == 0x7c00);
  CHECK(round_to(65519.9, kHalf, Rounding::kNearest) == 0x7bff);
  CHECK(add(1.0f, 0x1p-30f, Rounding::kUp) == 1.0f + 0x1p-23f);
  CHECK(multiply(1.0f + 0x1p-23f, 1.0f + 0x1p-23f, Rounding::kZero) == 1.0f + 0x1p-22f);
  CHECK(divide(1.0f, 3.0f, Rounding::kDown) < divide(1.0f, 3.0f, Rounding::kUp));
  CHECK(add(1.0, 0x1p-60, Rounding::kUp) == 1.0 + 0x1p-52);
  CHECK(from_integer<float>(uint64_t{0xffffffffffffffffull}, Rounding::kZero) == 0x1.fffffep63f);
  CHECK(from_integer<double>(int64_t{-9007199254740993}, Rounding::kNearest) ==
        -9007199254740992.0);
}

TEST_CASE("fused multiply-add rounds once") {
  std::mt19937 rng(9);
  for (int i = 0; i < 1000000; ++i) {
    const float a = random_float(rng), b = random_float(rng);
    float c = random_float(rng);
    if (i % 2) c = -a * b * (1 + static_cast<float>(i % 5) * 0x1p-20f);  // cancellation
    const float expected = std::fma(a, b, c), got = fused(a, b, c);
    if (expected != expected) {
      REQUIRE(got != got);
    } else {
      REQUIRE(bits(got) == bits(expected));
    }
  }
}

TEST_CASE("2^x is within one unit in the last place") {
  double worst = 0;
  for (int i = -1300000; i <= 1300000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double exact = std::exp2(static_cast<double>(x));
    if (exact > 0x1.fffffep127 || exact < 0x1p-126) continue;
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::fabs(static_cast<double>(ex2(x)) - exact) / ulp);
  }
  CHECK(worst < 0.51);
  CHECK(ex2(0.0f) == 1.0f);
  CHECK(ex2(-0.0f) == 1.0f);
  CHECK(ex2(10.0f) == 1024.0f);
  CHECK(ex2(-149.0f) == 0x1p-149f);
  CHECK(ex2(-151.0f) == 0.0f);
  CHECK(ex2(128.0f) == INFINITY);
  CHECK(ex2(INFINITY) == INFINITY);
  CHECK(ex2(-INFINITY) == 0.0f);
  CHECK(std::isnan(ex2(NAN)));
}

TEST_CASE("saturation and flushing") {
  CHECK(saturate(2.0f) == 1.0f);
  CHECK(bits(saturate(-0.0f)) == 0u);
  CHECK(bits(saturate(NAN)) == 0u);
  CHECK(bits(flush(bits(0x80000001u))) == 0x80000000u);
  CHECK(bits(canonical(bits(0xffc12345u))) == 0x7fffffffu);
}

TEST_CASE("the two sets of kernels give the same bits") {
  std::mt19937 rng(10);
  const Kernels& fast = kernels(false);
  const Kernels& portable = kernels(true);
  uint32_t reg[14][32], d[2][4][32];
  for (int round = 0; round < 2000; ++round) {
    const bool bfloat = round % 2;
    for (int r = 0; r < 14; ++r) {
      for (int i = 0; i < 32; ++i) {
        if (r >= 10) {
          reg[r][i] = round % 7 == 0 ? static_cast<uint32_t>(rng())
                                     : bits(static_cast<float>(rng() % 4096) / 64);
        } else {
          // Any bits now and then, NaN and infinity included; else moderate values.
          auto element = [&]() -> uint32_t {
            if (round % 5 == 0) return rng() & 0xffff;
            const float f = static_cast<float>(static_cast<int>(rng() % 2001) - 1000) / 128;
            return bfloat ? float_to_bfloat(f) : float_to_half(f);
          };
          reg[r][i] = element() | element() << 16;
        }
      }
    }
    const uint32_t* a[4] = {reg[0], reg[1], reg[2], reg[3]};
    const uint32_t* b[2] = {reg[4], reg[5]};
    const uint32_t* c[4] = {reg[10], reg[11], reg[12], reg[13]};
    for (int set = 0; set < 2; ++set) {
      const Kernels& k = set == 0 ? fast : portable;
      uint32_t* out[4] = {d[set][0], d[set][1], d[set][2], d[set][3]};
      (bfloat ? k.mma_bf16 : k.mma_f16)(out, a, b, c, 1 + round % 3 % 2);
    }
    REQUIRE(std::memcmp(d[0], d[1], sizeof d[0]) == 0);
    float x[3][32], y[2][32];
    for (auto& row : x) {
      for (float& f : row) f = random_float(rng);
    }
    fast.fma32(y[0], x[0], x[1], x[2]);
    portable.fma32(y[1], x[0], x[1], x[2]);
    for (int i = 0; i < 32; ++i) REQUIRE(bits(canonical(y[0][i])) == bits(canonical(y[1][i])));
  }
}
