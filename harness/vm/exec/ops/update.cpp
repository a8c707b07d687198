// SPDX-License-Identifier: MIT
#include "exec/ops/update.h"

#include <bit>
#include <cstring>

#include "num/half.h"
#include "num/rounding.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

template <class T, auto F>
void combine(std::byte* host, const std::byte* operand, std::byte* old) {
  T y;
  std::memcpy(&y, operand, sizeof y);
  const T before = update<T>(host, [&](T x) { return F(x, y); });
  if (old) std::memcpy(old, &before, sizeof before);
}

template <class T, auto F>
ElementUpdate of() {
  return {combine<T, F>, sizeof(T)};
}

template <class T>
ElementUpdate integer(Update what) {
  return with_update(what, []<Update kUpdate>() { return of<T, updated<kUpdate, T>>(); });
}

// min and max of 16-bit floats: of a NaN and a number the number, and -0 is less than +0.
template <uint16_t kInfinity, bool kMax>
uint16_t extreme(uint16_t x, uint16_t y) {
  const bool x_is_nan = (x & 0x7fff) > kInfinity, y_is_nan = (y & 0x7fff) > kInfinity;
  if (x_is_nan && y_is_nan) return 0x7fff;
  if (x_is_nan || y_is_nan) return x_is_nan ? y : x;
  const auto key = [](uint16_t v) { return v & 0x8000 ? -(v & 0x7fff) - 1 : int{v}; };
  return kMax == (key(x) > key(y)) ? x : y;
}

template <auto kAdd, uint16_t kInfinity>
ElementUpdate small(Update update, bool packed) {
  constexpr auto kMin = extreme<kInfinity, false>, kMax = extreme<kInfinity, true>;
  switch (update) {
    case Update::kAdd:
      return packed ? of<uint32_t, on_both_halves<kAdd>>() : of<uint16_t, kAdd>();
    case Update::kMin:
      return packed ? of<uint32_t, on_both_halves<kMin>>() : of<uint16_t, kMin>();
    case Update::kMax:
      return packed ? of<uint32_t, on_both_halves<kMax>>() : of<uint16_t, kMax>();
    default:
      return {};
  }
}

}  // namespace

uint32_t add_single(uint32_t x, uint32_t y) {
  return std::bit_cast<uint32_t>(num::canonical(std::bit_cast<float>(x) + std::bit_cast<float>(y)));
}

uint64_t add_double(uint64_t x, uint64_t y) {
  return std::bit_cast<uint64_t>(std::bit_cast<double>(x) + std::bit_cast<double>(y));
}

uint16_t add_half(uint16_t x, uint16_t y) {
  return static_cast<uint16_t>(num::round_to(
      static_cast<double>(num::half_to_float(x)) + static_cast<double>(num::half_to_float(y)),
      num::kHalf, num::Rounding::kNearest));
}

uint16_t add_bfloat(uint16_t x, uint16_t y) {
  return static_cast<uint16_t>(
      num::round_to(num::add_to_odd(static_cast<double>(num::bfloat_to_float(x)),
                                    static_cast<double>(num::bfloat_to_float(y))),
                    num::kBfloat, num::Rounding::kNearest));
}

ElementUpdate element_update(Update update, Type type) {
  switch (type) {
    case Type::kB32:
    case Type::kU32:
      return integer<uint32_t>(update);
    case Type::kB64:
    case Type::kU64:
      return integer<uint64_t>(update);
    case Type::kS32:
      return integer<int32_t>(update);
    case Type::kS64:
      return integer<int64_t>(update);
    case Type::kF32:
      return update == Update::kAdd ? of<uint32_t, add_single>() : ElementUpdate{};
    case Type::kF64:
      return update == Update::kAdd ? of<uint64_t, add_double>() : ElementUpdate{};
    case Type::kF16:
    case Type::kF16x2:
      return small<add_half, 0x7c00>(update, type == Type::kF16x2);
    case Type::kBf16:
    case Type::kBf16x2:
      return small<add_bfloat, 0x7f80>(update, type == Type::kBf16x2);
    default:
      return {};
  }
}

}  // namespace ptxvm::ops
