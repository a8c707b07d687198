// SPDX-License-Identifier: MIT
// cvt to and from pairs of floating-point values of 8, 6 and 4 bits (PTX ISA 9.7.9.21).
#include "exec/ops/lanes.h"
#include "num/float8.h"
#include "num/small_float.h"

namespace ptxvm::ops {
namespace {

using num::Float8;

template <Float8 kFormat, bool kRelu>
uint8_t encode(double x) {
  if (kRelu && (x < 0 || (x == 0 && std::signbit(x)))) x = 0;
  return num::double_to_float8(x, kFormat);
}

template <Float8 kFormat, bool kRelu>
uint16_t from_singles(float high, float low) {
  return static_cast<uint16_t>(encode<kFormat, kRelu>(static_cast<double>(high)) << 8 |
                               encode<kFormat, kRelu>(static_cast<double>(low)));
}

template <Float8 kFormat, bool kRelu>
uint16_t from_halves(uint32_t a) {
  return from_singles<kFormat, kRelu>(num::half_to_float(static_cast<uint16_t>(a >> 16)),
                                      num::half_to_float(static_cast<uint16_t>(a)));
}

template <Float8 kFormat, bool kRelu>
uint16_t to_half(uint8_t bits) {
  double x = num::float8_to_double(bits, kFormat);
  if (kRelu && (x < 0 || (x == 0 && std::signbit(x)))) x = 0;
  return static_cast<uint16_t>(num::round_to(x, num::kHalf, num::Rounding::kNearest));
}

template <Float8 kFormat, bool kRelu>
uint32_t to_halves(uint16_t a) {
  return static_cast<uint32_t>(to_half<kFormat, kRelu>(static_cast<uint8_t>(a >> 8))) << 16 |
         to_half<kFormat, kRelu>(static_cast<uint8_t>(a));
}

// f.operator()<format, relu>()
template <class F>
Bound with_format(Modifiers& m, F f) {
  const bool relu = m.flag("relu");
  if (m.choice({"e4m3x2", "e5m2x2"}) == 0) {
    return relu ? f.template operator()<Float8::kE4m3, true>()
                : f.template operator()<Float8::kE4m3, false>();
  }
  return relu ? f.template operator()<Float8::kE5m2, true>()
              : f.template operator()<Float8::kE5m2, false>();
}

// A value of 6 bits has a byte, one of 4 bits half a byte.
constexpr int shift_of(num::SmallFormat f) {
  return f.bits() == 4 ? 4 : 8;
}

template <num::SmallFormat kFormat, bool kRelu>
uint16_t small_from_singles(float high, float low) {
  const auto encode = [](float x) {
    return num::float_to_small(kRelu && std::signbit(x) && x == x ? 0 : x, kFormat);
  };
  return static_cast<uint16_t>(encode(high) << shift_of(kFormat) | encode(low));
}

template <num::SmallFormat kFormat, bool kRelu>
uint32_t small_to_halves(uint16_t a) {
  const auto half = [](uint32_t bits) -> uint32_t {
    const float x = num::small_to_float(bits, kFormat);
    return num::float_to_half(kRelu && std::signbit(x) ? 0 : x);
  };
  return half(a >> shift_of(kFormat)) << 16 | half(a);
}

template <class F>
Bound with_small_format(Modifiers& m, F f) {
  const bool relu = m.flag("relu");
  const auto of = [&]<num::SmallFormat kFormat>() {
    return relu ? f.template operator()<kFormat, true>() : f.template operator()<kFormat, false>();
  };
  switch (m.choice({"e2m1x2", "e2m3x2", "e3m2x2"})) {
    case 0:
      return of.template operator()<num::kE2m1>();
    case 1:
      return of.template operator()<num::kE2m3>();
    default:
      return of.template operator()<num::kE3m2>();
  }
}

template <bool kUp, bool kSaturates>
uint16_t exponents_from_singles(float high, float low) {
  return static_cast<uint16_t>(num::float_to_exponent(high, kUp, kSaturates) << 8 |
                               num::float_to_exponent(low, kUp, kSaturates));
}

template <bool kUp, bool kSaturates>
uint16_t exponents_from_bfloats(uint32_t a) {
  return exponents_from_singles<kUp, kSaturates>(
      num::bfloat_to_float(static_cast<uint16_t>(a >> 16)),
      num::bfloat_to_float(static_cast<uint16_t>(a)));
}

uint32_t exponents_to_bfloats(uint16_t a) {
  return uint32_t{num::exponent_to_bfloat(static_cast<uint8_t>(a >> 8))} << 16 |
         num::exponent_to_bfloat(static_cast<uint8_t>(a));
}

}  // namespace

Bound cvt_to_small(Modifiers& m) {
  return with_small_format(m, []<num::SmallFormat kFormat, bool kRelu>() {
    return per_lane<small_from_singles<kFormat, kRelu>>();
  });
}

Bound cvt_from_small(Modifiers& m) {
  return with_small_format(m, []<num::SmallFormat kFormat, bool kRelu>() {
    return per_lane<small_to_halves<kFormat, kRelu>>();
  });
}

Bound cvt_to_exponent(Modifiers& m) {
  const bool singles = m.type() == Type::kF32, saturates = m.flag("satfinite");
  const auto of = [&]<bool kUp, bool kSaturates>() {
    return singles ? per_lane<exponents_from_singles<kUp, kSaturates>>()
                   : per_lane<exponents_from_bfloats<kUp, kSaturates>>();
  };
  if (m.choice({"rz", "rp"}) == 1) {
    return saturates ? of.template operator()<true, true>() : of.template operator()<true, false>();
  }
  return saturates ? of.template operator()<false, true>() : of.template operator()<false, false>();
}

Bound cvt_from_exponent(Modifiers& m) {
  m.type();
  return per_lane<exponents_to_bfloats>();
}

Bound cvt_to_f8(Modifiers& m) {
  const bool halves = m.type() == Type::kF16x2;
  return with_format(m, [&]<Float8 kFormat, bool kRelu>() {
    return halves ? per_lane<from_halves<kFormat, kRelu>>()
                  : per_lane<from_singles<kFormat, kRelu>>();
  });
}

Bound cvt_from_f8(Modifiers& m) {
  m.type();
  return with_format(
      m, []<Float8 kFormat, bool kRelu>() { return per_lane<to_halves<kFormat, kRelu>>(); });
}

}  // namespace ptxvm::ops
