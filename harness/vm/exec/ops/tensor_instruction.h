// SPDX-License-Identifier: MIT
// What a tcgen05.mma multiplies: its modifiers, and the fields of its instruction descriptor
// (PTX ISA 9.7.16.4.2).
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "exec/fault.h"
#include "exec/warp.h"
#include "memory/matrix_descriptor.h"
#include "num/half.h"

namespace ptxvm {

/// .kind of a product.
enum class Kind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };

/// The modifiers of a product.
struct Product {
  uint8_t blocks = 1;  ///< Of .cta_group.
  Kind kind = Kind::kF16;
  bool a_in_tensor = false;
  bool stationary = false;  ///< .ws
  bool shifts = false;      ///< .ashift
  uint8_t disabled = 0;     ///< Words of the mask of lanes.
  uint8_t scales = 0;       ///< Of a row of A in one product (.scale_vec), 0 where it has none.
};

/// Types of elements. 16 bytes of shared memory hold 16 elements of 4 or 6 bits side by side, and a
/// gap after them, but for kinds mxf4 and mxf4nvf4, where 32 of 4 bits do.
enum class Format : uint8_t {
  kHalf,
  kBfloat,
  kTf32,
  kE4m3,
  kE5m2,
  kE2m3,
  kE3m2,
  kE2m1,
  kPackedE2m1,
  kU8,
  kS8,
  kNone,
};

/// Elements in 16 bytes, and the bits of each.
inline uint32_t per_chunk(Format f) {
  if (f == Format::kTf32) return 4;
  if (f <= Format::kBfloat) return 8;
  return f == Format::kPackedE2m1 ? 32 : 16;
}
inline uint32_t bits_of(Format f) {
  if (f == Format::kE2m3 || f == Format::kE3m2) return 6;
  return f == Format::kE2m1 ? 4 : 128 / per_chunk(f);
}

/// The element of at most 8 bits in the low bits, exact.
float decode_small(uint32_t bits, Format format);

/// The element in the low bits, as f32 and exact; the low bits of tf32 do not count.
inline float decode(uint32_t bits, Format f) {
  switch (f) {
    case Format::kHalf:
      return num::half_to_float(static_cast<uint16_t>(bits));
    case Format::kBfloat:
      return num::bfloat_to_float(static_cast<uint16_t>(bits));
    case Format::kTf32:
      return std::bit_cast<float>(bits & ~0x1fffu);
    default:
      return decode_small(bits, f);
  }
}

/// An instruction descriptor that check_instruction has found right.
struct Instruction {
  uint32_t m, n;
  bool half_sums, integers, saturate, negate_a, negate_b;
  Format a, b;
  Major a_major, b_major;
  uint32_t a_scale, b_scale;  ///< The first byte of the scales in their cells.
  bool scale_exponents;       ///< Scales are powers of two (ue8m0), else ue4m3.
  uint32_t most_shift;        ///< By how many columns .ws may move those of B.

  Instruction(uint32_t bits, Kind kind);
  /// Elements of k.
  uint32_t depth() const { return 2 * per_chunk(a); }
};

/// Raises a fault for a descriptor that the product may not have.
void check_instruction(const Warp& w, const Op& op, uint32_t bits, const Product& product);

/// A scale factor.
double decode_scale(uint32_t bits, bool exponent);

template <class... Parts>
[[noreturn]] void invalid(const Warp& w, const Op& op, Parts... parts) {
  raise(w, op, FaultKind::kInvalid, -1, (std::string() + ... + parts));
}

inline std::string number(uint64_t n) {
  return std::to_string(n);
}

}  // namespace ptxvm
