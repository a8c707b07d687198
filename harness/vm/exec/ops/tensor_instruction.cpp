// SPDX-License-Identifier: MIT
#include "exec/ops/tensor_instruction.h"

#include <array>
#include <cmath>
#include <limits>

#include "num/float8.h"
#include "num/small_float.h"

namespace ptxvm {
namespace {

// The types that bits 7 to 9 and 10 to 12 of the descriptor may name, by their number.
using Formats = std::array<Format, 8>;
constexpr Format kNone = Format::kNone;

constexpr Formats formats(Format zero, Format one, Format two = kNone, Format three = kNone,
                          Format four = kNone, Format five = kNone) {
  return {zero, one, two, three, four, five, kNone, kNone};
}
constexpr Formats kHalves = formats(Format::kHalf, Format::kBfloat);
constexpr Formats kTf32s = formats(kNone, kNone, Format::kTf32);
constexpr Formats kSmall =
    formats(Format::kE4m3, Format::kE5m2, kNone, Format::kE2m3, Format::kE3m2, Format::kE2m1);
constexpr Formats kIntegers = formats(Format::kU8, Format::kS8);
constexpr Formats kPacked = formats(kNone, Format::kPackedE2m1);
constexpr const char* kSmallNames =
    "0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) and 5 (e2m1) are allowed";

struct KindTraits {
  const char *name, *types;
  const Formats& formats;
  uint32_t unused;  // bits of the descriptor that are zero
};
constexpr KindTraits kKinds[] = {
    {"kind::f16", "0 (f16) and 1 (bf16) are allowed", kHalves, 0xe080004f},
    {"kind::tf32", "2 (tf32) is allowed", kTf32s, 0xe080004f},
    {"kind::f8f6f4", kSmallNames, kSmall, 0xe080004f},
    {"kind::i8", "0 (u8) and 1 (s8) are allowed", kIntegers, 0xe0806047},
    {"kind::mxf8f6f4", kSmallNames, kSmall, 0x8700004f},
    {"kind::mxf4", "1 (e2m1) is allowed", kPacked, 0x8701804f},
    {"kind::mxf4nvf4", "1 (e2m1) is allowed", kPacked, 0x8701804f},
};

const KindTraits& traits(Kind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

bool has_scales(Kind kind) {
  return kind >= Kind::kMxf8f6f4;
}

Format format_of(uint32_t bits, int at, Kind kind) {
  return traits(kind).formats[bits >> at & 7];
}

Major major_of(uint32_t transposed, Kind kind) {
  if ((transposed & 1) == 0) return Major::kK;
  return kind == Kind::kTf32 ? Major::kMn32 : Major::kMn;
}

// The values of M and of N, and the words that say so.
struct Sizes {
  bool m, n;
  std::string allowed_m, allowed_n;
};

Sizes check_sizes(const Instruction& i, const Product& p) {
  const uint32_t blocks = p.blocks;
  if (p.stationary) {
    return {i.m == 32 || i.m == 64 || i.m == 128, i.n == 64 || i.n == 128 || i.n == 256,
            "32, 64 and 128 are allowed with .ws", "64, 128 and 256 are allowed with .ws"};
  }
  const uint32_t step = p.scales != 0 ? 8 * blocks : blocks == 2 ? 32 : i.m == 64 ? 8 : 16;
  return {i.m == 128 * blocks || (p.scales == 0 && i.m == 64 * blocks),
          i.n >= step && i.n <= 256 && i.n % step == 0,
          p.scales != 0 ? number(128 * blocks) + " is modelled where A and B have scales"
          : blocks == 1 ? "64 and 128 are allowed"
                        : "128 and 256 are allowed for two blocks",
          "from " + number(step) + " to 256 in steps of " + number(step) + " are allowed"};
}

}  // namespace

float decode_small(uint32_t bits, Format f) {
  switch (f) {
    case Format::kE4m3:
      return static_cast<float>(
          num::float8_to_double(static_cast<uint8_t>(bits), num::Float8::kE4m3));
    case Format::kE5m2:
      return static_cast<float>(
          num::float8_to_double(static_cast<uint8_t>(bits), num::Float8::kE5m2));
    case Format::kE2m3:
      return num::small_to_float(bits, num::kE2m3);
    case Format::kE3m2:
      return num::small_to_float(bits, num::kE3m2);
    case Format::kE2m1:
    case Format::kPackedE2m1:
      return num::small_to_float(bits, num::kE2m1);
    case Format::kU8:
      return static_cast<float>(bits & 0xff);
    default:
      break;
  }
  return static_cast<float>(static_cast<int8_t>(bits));
}

double decode_scale(uint32_t bits, bool exponent) {
  if (!exponent) return num::float8_to_double(bits & 0x7f, num::Float8::kE4m3);
  if ((bits & 0xff) == 0xff) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(bits & 0xff) - 127);
}

Instruction::Instruction(uint32_t bits, Kind kind)
    : m((bits >> 24 & 31) * 16),
      n((bits >> 17 & 63) * 8),
      half_sums(kind <= Kind::kF8f6f4 && (bits >> 4 & 3) == 0),
      integers(kind == Kind::kI8),
      saturate(integers && (bits >> 3 & 1)),
      negate_a(bits >> 13 & 1),
      negate_b(bits >> 14 & 1),
      a(format_of(bits, 7, kind)),
      b(format_of(bits, 10, kind)),
      a_major(major_of(bits >> 15, kind)),
      b_major(major_of(bits >> 16, kind)),
      a_scale(bits >> 29 & 3),
      b_scale(bits >> 4 & 3),
      scale_exponents(bits >> 23 & 1),
      most_shift(bits >> 30 == 0 ? 0 : 4u << (bits >> 30)) {
  // Of M these kinds have the upper two bits.
  if (has_scales(kind)) m = (bits >> 27 & 3) * 128;
}

void check_instruction(const Warp& w, const Op& op, uint32_t bits, const Product& p) {
  const auto wrong = [&](const char* what, const std::string& allowed, uint32_t value) {
    invalid(w, op, "the instruction descriptor ", hex(bits, 8), " says ", what, " ", number(value),
            "; ", allowed);
  };
  const KindTraits& kind = traits(p.kind);
  for (const int at : {7, 10}) {
    const uint32_t type = bits >> at & 7;
    if (kind.formats[type] == kNone) wrong(at == 7 ? "type of A" : "type of B", kind.types, type);
  }
  const Instruction i(bits, p.kind);
  constexpr uint32_t kMostShift = 0xc0000000;
  if (const uint32_t set = bits & kind.unused & ~(p.stationary ? kMostShift : 0)) {
    invalid(w, op, "the instruction descriptor ", hex(bits, 8), " has bits that ", kind.name,
            " leaves zero: ", hex(set, 8));
  }
  const uint32_t sums = bits >> 4 & 3;
  if (i.integers && sums != 2) wrong("type of D", "2 (s32) is allowed", sums);
  if (!i.integers && p.scales == 0 && sums > 1)
    wrong("type of D", "0 (f16) and 1 (f32) are allowed", sums);
  if (i.half_sums && (i.a == Format::kBfloat || i.b == Format::kBfloat || i.a == Format::kTf32)) {
    wrong("type of D", "sums of bf16 and tf32 are f32 (1)", 0);
  }
  const Sizes sizes = check_sizes(i, p);
  if (!sizes.m) wrong("M =", sizes.allowed_m, i.m);
  if (!sizes.n) wrong("N =", sizes.allowed_n, i.n);
  if (p.shifts && i.m < 128) wrong("M =", "128 and 256 are allowed with .ashift", i.m);
  if (i.integers && i.n % 16 == 8 && i.n > 24) {
    wrong("N =", "of integers 8, 24 and multiples of 16 are allowed", i.n);
  }
  if (p.scales == 0) return;
  for (const uint32_t first : {i.a_scale, i.b_scale}) {
    if (first % p.scales != 0)
      wrong("scales from byte", "they begin at a multiple of " + number(p.scales), first);
  }
  if (!i.scale_exponents && p.scales != 4) {
    wrong("type of the scales", "0 (ue4m3) is allowed with .scale_vec::4X, 1 (ue8m0) with all", 0);
  }
}

}  // namespace ptxvm
