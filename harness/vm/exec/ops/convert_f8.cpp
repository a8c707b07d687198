// SPDX-License-Identifier: MIT
// cvt to and from pairs of 8-bit floating-point values (PTX ISA 9.7.9.21).
#include "exec/ops/lanes.h"
#include "num/float8.h"

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

}  // namespace

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
