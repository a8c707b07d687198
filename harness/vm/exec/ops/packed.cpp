// SPDX-License-Identifier: MIT
// Two 16-bit integers in a word, dot products, packing with saturation (PTX ISA 9.7.1, 9.7.9.22).
#include <algorithm>
#include <limits>

#include "exec/ops/rounding.h"
#include "exec/ops/wrapping.h"
#include "num/directed.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

// Applies F to both halves.
template <class T, auto F>
uint32_t halves(uint32_t a, uint32_t b) {
  const auto low = static_cast<uint16_t>(F(static_cast<T>(a), static_cast<T>(b)));
  const auto high = static_cast<uint16_t>(F(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return static_cast<uint32_t>(high) << 16 | low;
}

template <class T>
T smaller(T a, T b) {
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  return std::max(a, b);
}
template <class T, auto F>
T not_negative(T a, T b) {
  return std::max(F(a, b), T{0});
}

template <class T>
Bound packed_code(std::string_view base, bool relu) {
  if (base == "add") return per_lane<halves<T, wrapping_add<T>>>();
  if constexpr (std::is_signed_v<T>) {
    if (relu) {
      return base == "min" ? per_lane<halves<T, not_negative<T, smaller<T>>>>()
                           : per_lane<halves<T, not_negative<T, larger<T>>>>();
    }
  }
  return base == "min" ? per_lane<halves<T, smaller<T>>>() : per_lane<halves<T, larger<T>>>();
}

enum class Operation : uint8_t { kAdd, kSubtract, kMultiply, kFuse };

struct PairStyle {
  Operation operation = Operation::kAdd;
  num::Rounding rounding = num::Rounding::kNearest;
  bool ftz = false;
};

float apply(const PairStyle& s, float a, float b, float c) {
  if (s.ftz) {
    a = num::flush(a);
    b = num::flush(b);
    c = num::flush(c);
  }
  if (s.operation == Operation::kSubtract) b = -b;
  const bool nearest = s.rounding == num::Rounding::kNearest;
  float result = 0;
  switch (s.operation) {
    case Operation::kAdd:
    case Operation::kSubtract:
      result = nearest ? a + b : num::add(a, b, s.rounding);
      break;
    case Operation::kMultiply:
      result = nearest ? a * b : num::multiply(a, b, s.rounding);
      break;
    case Operation::kFuse:
      result = nearest ? num::fused(a, b, c) : num::fuse(a, b, c, s.rounding);
      break;
  }
  return num::canonical(s.ftz ? num::flush(result) : result);
}

// Two f32 in 64 bits, the first in the lower half.
Step pair_of_floats(Warp& w, const Op& op) {
  const auto style = op.aux.as<PairStyle>();
  const bool fuses = style.operation == Operation::kFuse;
  const auto half = [&](size_t operand, int lane, int shift) {
    return std::bit_cast<float>(
        static_cast<uint32_t>(w.at<uint64_t>(op.r[operand])[lane] >> shift));
  };
  for_lanes(w.mask, [&](int lane) {
    uint64_t out = 0;
    for (const int shift : {0, 32}) {
      const float c = fuses ? half(3, lane, shift) : 0.0f;
      const float result = apply(style, half(1, lane, shift), half(2, lane, shift), c);
      out |= uint64_t{std::bit_cast<uint32_t>(result)} << shift;
    }
    w.at<uint64_t>(op.r[0])[lane] = out;
  });
  return Step::kNext;
}

template <class T>
T clamp(int32_t v) {
  using Limits = std::numeric_limits<T>;
  return static_cast<T>(std::clamp<int32_t>(v, Limits::min(), Limits::max()));
}

template <class T>
uint32_t pack_bytes(int32_t a, int32_t b, uint32_t c) {
  return c << 16 | static_cast<uint32_t>(static_cast<uint8_t>(clamp<T>(a))) << 8 |
         static_cast<uint8_t>(clamp<T>(b));
}
template <class T>
uint32_t pack_shorts(int32_t a, int32_t b) {
  return static_cast<uint32_t>(static_cast<uint16_t>(clamp<T>(a))) << 16 |
         static_cast<uint16_t>(clamp<T>(b));
}

// c + a's halves times two bytes of b.
template <bool kSignedA, bool kSignedB, bool kHigh>
uint32_t dot2(uint32_t a, uint32_t b, uint32_t c) {
  if (kHigh) b >>= 16;
  for (int i = 0; i < 2; ++i) {
    const auto x = static_cast<uint16_t>(a >> (16 * i));
    const auto y = static_cast<uint8_t>(b >> (8 * i));
    const int32_t p = kSignedA ? static_cast<int16_t>(x) : static_cast<int32_t>(x);
    const int32_t q = kSignedB ? static_cast<int8_t>(y) : static_cast<int32_t>(y);
    c += static_cast<uint32_t>(p) * static_cast<uint32_t>(q);
  }
  return c;
}

}  // namespace

Bound packed_f32(Modifiers& m) {
  constexpr std::string_view kNames[] = {"add", "sub", "mul", "fma"};
  PairStyle s;
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), m.base());
  s.operation = static_cast<Operation>(name - std::begin(kNames));
  s.rounding = rounding_of(m);
  s.ftz = m.flag("ftz");
  m.type();
  return code(pair_of_floats, s);
}

Bound packed_int(Modifiers& m) {
  const bool relu = m.flag("relu");
  return m.choice({"u16x2", "s16x2"}) == 0 ? packed_code<uint16_t>(m.base(), relu)
                                           : packed_code<int16_t>(m.base(), relu);
}

Bound min_max_relu(Modifiers& m) {
  m.flag("relu");
  m.type();
  return m.base() == "min" ? per_lane<not_negative<int32_t, smaller<int32_t>>>()
                           : per_lane<not_negative<int32_t, larger<int32_t>>>();
}

Bound dp2a(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  const bool a = m.type() == Type::kS32, b = m.type() == Type::kS32;
  return with_flags(a, b, [&]<bool A, bool B>() {
    return high ? per_lane<dot2<A, B, true>>() : per_lane<dot2<A, B, false>>();
  });
}

Bound cvt_pack_int(Modifiers& m) {
  switch (m.type()) {
    case Type::kU8:
      return per_lane<pack_bytes<uint8_t>>();
    case Type::kS8:
      return per_lane<pack_bytes<int8_t>>();
    case Type::kU16:
      return per_lane<pack_shorts<uint16_t>>();
    default:
      return per_lane<pack_shorts<int16_t>>();
  }
}

}  // namespace ptxvm::ops
