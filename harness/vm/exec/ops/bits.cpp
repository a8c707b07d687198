// SPDX-License-Identifier: MIT
// Bits of integers (PTX ISA 9.7.1.14 to 9.7.1.21).
#include <algorithm>

#include "exec/ops/wrapping.h"

namespace ptxvm::ops {
namespace {

template <class T>
uint32_t find_leading(T a, bool shift_amount) {
  auto u = static_cast<Unsigned<T>>(a);
  if (std::is_signed_v<T> && a < 0) u = static_cast<Unsigned<T>>(~u);
  if (u == 0) return 0xffffffffu;
  constexpr int kBits = sizeof(T) * 8;
  const int leading = std::countl_zero(u);
  return static_cast<uint32_t>(shift_amount ? leading : kBits - 1 - leading);
}

template <class T>
T reverse_bits(T a) {
  T out = 0;
  for (size_t i = 0; i < sizeof(T) * 8; ++i) out = static_cast<T>(out << 1 | (a >> i & 1));
  return out;
}

// Of a position or a length only 8 bits count, but with 64-bit values, where all do.
template <class T>
uint32_t field_bound(uint32_t n) {
  return sizeof(T) == 8 ? std::min(n, 255u) : n & 0xff;
}

// Beyond the value a signed field continues its sign.
template <class T>
T extract_field(T a, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  const uint32_t pos = field_bound<T>(position), len = field_bound<T>(length);
  if (len == 0) return 0;
  const auto u = static_cast<Unsigned<T>>(a);
  const uint32_t top = std::min(pos + len - 1, kBits - 1);
  const bool sign = std::is_signed_v<T> && (u >> top & 1);
  Unsigned<T> field = pos < kBits ? static_cast<Unsigned<T>>(u >> pos) : Unsigned<T>{0};
  const uint32_t have = pos < kBits ? std::min(len, kBits - pos) : 0;
  const auto keep = have >= kBits ? static_cast<Unsigned<T>>(-1)
                                  : static_cast<Unsigned<T>>((Unsigned<T>{1} << have) - 1);
  field &= keep;
  if (sign) field = static_cast<Unsigned<T>>(field | ~keep);
  return static_cast<T>(field);
}

template <class T>
T insert_field(T a, T b, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  const uint32_t pos = field_bound<T>(position), len = field_bound<T>(length);
  if (pos >= kBits || len == 0) return b;
  const T field = len >= kBits ? static_cast<T>(-1) : static_cast<T>((T{1} << len) - 1);
  const T keep = static_cast<T>(field << pos);
  return static_cast<T>((b & ~keep) | (a << pos & keep));
}

template <class T>
T extend_from(T a, uint32_t width, bool wrap) {
  const uint32_t n = wrap ? width & 31 : std::min(width, 32u);
  if (n == 0) return 0;
  if (n >= 32) return a;
  const auto shifted = static_cast<uint32_t>(a) << (32 - n);
  return std::is_signed_v<T> ? static_cast<T>(static_cast<int32_t>(shifted) >> (32 - n))
                             : static_cast<T>(shifted >> (32 - n));
}

uint32_t bit_mask(uint32_t position, uint32_t width, bool wrap) {
  if (wrap) {
    position &= 31;
    width &= 31;
  } else {
    position = std::min(position, 32u);
    width = std::min(width, 32u);
  }
  const uint64_t ones = (uint64_t{1} << width) - 1;
  return static_cast<uint32_t>(ones << position);
}

// fns: the n-th set bit from a base position, upwards for n > 0, downwards for n < 0.
uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t n) {
  if (n == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
  const int step = n > 0 ? 1 : -1;
  int64_t left = n > 0 ? n : -static_cast<int64_t>(n);
  for (int64_t i = base; i >= 0 && i < 32; i += step) {
    if ((mask >> i & 1) && --left == 0) return static_cast<uint32_t>(i);
  }
  return 0xffffffffu;
}

}  // namespace

Bound popc(Modifiers& m) {
  return with_word(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a) {
      return static_cast<uint32_t>(std::popcount(static_cast<Unsigned<T>>(a)));
    }>();
  });
}

Bound clz(Modifiers& m) {
  return with_word(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a) {
      return static_cast<uint32_t>(std::countl_zero(static_cast<Unsigned<T>>(a)));
    }>();
  });
}

Bound bfind(Modifiers& m) {
  const bool shift = m.flag("shiftamt");
  return with_word(m.type(), [&]<class T>(Tag<T>) {
    return shift ? per_lane<[](T a) { return find_leading(a, true); }>()
                 : per_lane<[](T a) { return find_leading(a, false); }>();
  });
}

Bound brev(Modifiers& m) {
  return with_word(m.type(), []<class T>(Tag<T>) { return per_lane<reverse_bits<T>>(); });
}

Bound bfe(Modifiers& m) {
  return with_word(m.type(), []<class T>(Tag<T>) { return per_lane<extract_field<T>>(); });
}

Bound bfi(Modifiers& m) {
  return with_word(m.type(), []<class T>(Tag<T>) { return per_lane<insert_field<T>>(); });
}

Bound szext(Modifiers& m) {
  const bool wrap = m.choice({"clamp", "wrap"}) == 1;
  return with_word(m.type(), [&]<class T>(Tag<T>) {
    return wrap ? per_lane<[](T a, uint32_t n) { return extend_from(a, n, true); }>()
                : per_lane<[](T a, uint32_t n) { return extend_from(a, n, false); }>();
  });
}

Bound bmsk(Modifiers& m) {
  const bool wrap = m.choice({"clamp", "wrap"}) == 1;
  return wrap ? per_lane<[](uint32_t a, uint32_t b) { return bit_mask(a, b, true); }>()
              : per_lane<[](uint32_t a, uint32_t b) { return bit_mask(a, b, false); }>();
}

Bound fns(Modifiers&) {
  return per_lane<find_nth_set>();
}

}  // namespace ptxvm::ops
