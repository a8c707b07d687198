// SPDX-License-Identifier: MIT
// Integer arithmetic (PTX ISA 9.7.1).
#include <algorithm>
#include <limits>

#include "exec/ops/wrapping.h"

namespace ptxvm::ops {
namespace {

// Division by zero gives all ones and overflow wraps, as the hardware's own sequences do.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrapping_sub<T>(0, a);
  }
  return static_cast<T>(a / b);
}

template <class T>
T remainder_of(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

// 24-bit operands of mul24, extended as the type says.
template <class T>
int64_t low24(T a) {
  const auto bits = static_cast<uint32_t>(a) << 8;
  return std::is_signed_v<T> ? static_cast<int32_t>(bits) >> 8 : static_cast<int64_t>(bits >> 8);
}

template <class T>
T product24(T a, T b, bool high) {
  const auto p = static_cast<uint64_t>(low24(a) * low24(b));
  return static_cast<T>(high ? p >> 16 : p);
}

template <bool kSignedA, bool kSignedB>
uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  int32_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const auto x = static_cast<uint8_t>(a >> (8 * i)), y = static_cast<uint8_t>(b >> (8 * i));
    sum += (kSignedA ? static_cast<int8_t>(x) : x) * (kSignedB ? static_cast<int8_t>(y) : y);
  }
  return c + static_cast<uint32_t>(sum);
}

int32_t to_s32(int64_t v) {
  return static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX));
}

}  // namespace

Bound add(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<wrapping_add<T>>(); });
}

Bound sub(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<wrapping_sub<T>>(); });
}

Bound mul(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  return with_integer(m.type(), [&]<class T>(Tag<T>) {
    return high ? per_lane<[](T a, T b) { return product(a, b, true); }>()
                : per_lane<[](T a, T b) { return product(a, b, false); }>();
  });
}

Bound mul_wide(Modifiers& m) {
  switch (m.type()) {
    case Type::kU16:
      return per_lane<[](uint16_t a, uint16_t b) { return uint32_t{a} * b; }>();
    case Type::kS16:
      return per_lane<[](int16_t a, int16_t b) { return int32_t{a} * b; }>();
    case Type::kU32:
      return per_lane<[](uint32_t a, uint32_t b) { return uint64_t{a} * b; }>();
    case Type::kS32:
      return per_lane<[](int32_t a, int32_t b) { return int64_t{a} * b; }>();
    default:
      return {};
  }
}

Bound mad(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  return with_integer(m.type(), [&]<class T>(Tag<T>) {
    return high ? per_lane<[](T a, T b, T c) { return wrapping_add(product(a, b, true), c); }>()
                : per_lane<[](T a, T b, T c) { return wrapping_add(product(a, b, false), c); }>();
  });
}

Bound mad_wide(Modifiers& m) {
  switch (m.type()) {
    case Type::kU16:
      return per_lane<[](uint16_t a, uint16_t b, uint32_t c) { return uint32_t{a} * b + c; }>();
    case Type::kS16:
      return per_lane<[](int16_t a, int16_t b, int32_t c) {
        return wrapping_add(int32_t{a} * b, c);
      }>();
    case Type::kU32:
      return per_lane<[](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; }>();
    case Type::kS32:
      return per_lane<[](int32_t a, int32_t b, int64_t c) {
        return wrapping_add(int64_t{a} * b, c);
      }>();
    default:
      return {};
  }
}

Bound mul24(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  return with_word(m.type(), [&]<class T>(Tag<T>) {
    return high ? per_lane<[](T a, T b) { return product24(a, b, true); }>()
                : per_lane<[](T a, T b) { return product24(a, b, false); }>();
  });
}

Bound mad24(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  return with_word(m.type(), [&]<class T>(Tag<T>) {
    return high ? per_lane<[](T a, T b, T c) { return wrapping_add(product24(a, b, true), c); }>()
                : per_lane<[](T a, T b, T c) { return wrapping_add(product24(a, b, false), c); }>();
  });
}

Bound mad_sat(Modifiers& m) {
  if (m.base() == "mad24") {
    return per_lane<[](int32_t a, int32_t b, int32_t c) {
      return to_s32(int64_t{product24(a, b, true)} + c);
    }>();
  }
  return per_lane<[](int32_t a, int32_t b, int32_t c) {
    return to_s32((int64_t{a} * b >> 32) + c);
  }>();
}

Bound sad(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a, T b, T c) {
      return wrapping_add(c, a < b ? wrapping_sub(b, a) : wrapping_sub(a, b));
    }>();
  });
}

Bound div(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<quotient<T>>(); });
}

Bound rem(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<remainder_of<T>>(); });
}

Bound abs(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a) { return a < 0 ? wrapping_sub<T>(0, a) : a; }>();
  });
}

Bound neg(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a) { return wrapping_sub<T>(0, a); }>();
  });
}

Bound min_max(Modifiers& m) {
  const bool max = m.base() == "max";
  return with_integer(m.type(), [&]<class T>(Tag<T>) {
    return max ? per_lane<[](T a, T b) { return std::max(a, b); }>()
               : per_lane<[](T a, T b) { return std::min(a, b); }>();
  });
}

Bound dp4a(Modifiers& m) {
  const bool a = m.type() == Type::kS32, b = m.type() == Type::kS32;
  return with_flags(a, b, []<bool A, bool B>() { return per_lane<dot4<A, B>>(); });
}

Bound add_sat(Modifiers& m) {
  const bool subtract = m.base() == "sub";
  return subtract ? per_lane<[](int32_t a, int32_t b) { return to_s32(int64_t{a} - b); }>()
                  : per_lane<[](int32_t a, int32_t b) { return to_s32(int64_t{a} + b); }>();
}

}  // namespace ptxvm::ops
