// SPDX-License-Identifier: MIT
#include "harness/attention/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "harness/tests/catch.h"

using fa::float_to_half;
using fa::half_to_float;

namespace {

// The definition of binary16, digit by digit.
double value_of(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Nearest, ties to even, with the integer rounding of the C library.
std::uint16_t nearest(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  int exponent = -14;
  if (magnitude > 0) exponent = std::max(-14, std::ilogb(magnitude));
  // The fraction may round up to the next power of two; the bit patterns are contiguous there.
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  const double pattern = units + 1024.0 * (exponent + 14);
  return static_cast<std::uint16_t>(sign |
                                    (pattern >= 0x7c00 ? 0x7c00 : static_cast<int>(pattern)));
}

// Plain comparisons: a CHECK per pattern would take longer than the test.
int mismatches_near(float value) {
  int count = 0;
  for (const float x : {std::nextafter(value, -1e9f), value, std::nextafter(value, 1e9f)}) {
    count += float_to_half(x) != nearest(x);
  }
  return count;
}

static_assert(float_to_half(1.0f) == 0x3c00 && half_to_float(0xc000) == -2.0f);
static_assert(float_to_half(65519.996f) == 0x7bff && float_to_half(65520.0f) == 0x7c00);
static_assert(float_to_half(0x1p-25f) == 0 && float_to_half(0x1.000002p-25f) == 1);

}  // namespace

TEST_CASE("every half converts to its value and back to its pattern") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    const bool nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0;
    if (nan) {
      wrong += !std::isnan(value);
      // A signalling NaN comes back quiet, the rest of its payload kept.
      wrong += float_to_half(value) != (half | 0x200);
      continue;
    }
    if ((half & 0x7fff) == 0x7c00) {
      wrong += !(std::isinf(value) && std::signbit(value) == (half >> 15 != 0));
    } else {
      wrong += static_cast<double>(value) != value_of(half);
      wrong += std::signbit(value) != (half >> 15 != 0);
    }
    wrong += float_to_half(value) != half;
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest half, ties to even") {
  int wrong = 0;
  SECTION("at every half, every midpoint and their neighbours") {
    for (std::uint16_t half = 0; half < 0x7c00; ++half) {
      const auto low = static_cast<float>(value_of(half));
      const auto middle = static_cast<float>((value_of(half) + value_of(half + 1)) / 2);
      wrong += mismatches_near(low) + mismatches_near(-low);
      wrong += mismatches_near(middle) + mismatches_near(-middle);
    }
  }
  SECTION("at random bit patterns") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 4'000'000; ++i) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (!std::isfinite(value)) continue;
      wrong += float_to_half(value) != nearest(value);
    }
  }
  CHECK(wrong == 0);
  CHECK(float_to_half(std::numeric_limits<float>::infinity()) == 0x7c00);
  CHECK(float_to_half(-std::numeric_limits<float>::infinity()) == 0xfc00);
}

TEST_CASE("every e4m3 converts to its value and back to its pattern") {
  int wrong = 0;
  for (int bits = 0; bits < 256; ++bits) {
    const auto pattern = static_cast<std::uint8_t>(bits);
    const float value = fa::e4m3_to_float(pattern);
    wrong += fa::float_to_e4m3(value) != pattern;
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7f) == 0x7f) {
      wrong += !std::isnan(value);
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    wrong += static_cast<double>(value) != (bits >= 128 ? -magnitude : magnitude);
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest e4m3, ties to even, and stop at 448") {
  int wrong = 0;
  for (int bits = 0; bits < 0x7e; ++bits) {  // each value and the one above
    const float low = fa::e4m3_to_float(static_cast<std::uint8_t>(bits));
    const float high = fa::e4m3_to_float(static_cast<std::uint8_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact
    wrong += fa::float_to_e4m3(std::nextafter(middle, 0.0f)) != bits;
    wrong += fa::float_to_e4m3(std::nextafter(middle, 1e9f)) != bits + 1;
    wrong += fa::float_to_e4m3(-middle) != 128 + bits + bits % 2;
  }
  CHECK(wrong == 0);
  CHECK(fa::float_to_e4m3(465) == 0x7e);
  CHECK(fa::float_to_e4m3(-std::numeric_limits<float>::infinity()) == 0xfe);
}
