// SPDX-License-Identifier: MIT
#include "tools/compare.h"

#include <bit>
#include <cmath>
#include <cstdio>

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;

struct Layout {
  Format format;
  int elements;   // in a word
  int bits = 16;  // of one of several
};

Layout layout_of(const Family& f) {
  const isa::OperandSpec& result = f.spelling->operands[0];
  switch (result.type) {
    case Type::kF16:
      return {Format::kHalf, 1};
    case Type::kF16x2:
      return {Format::kHalf, 2};
    case Type::kBf16:
      return {Format::kBfloat, 1};
    case Type::kBf16x2:
      return {Format::kBfloat, 2};
    case Type::kF32x2:
      return {Format::kSingle, 2, 32};
    case Type::kF64:
      return {Format::kDouble, 1};
    case Type::kB32:
      return {Format::kHalf, 2};  // accumulators of mma
    default:
      return {Format::kSingle, 1};
  }
}

// Sum of |a*b| and |c| over the element that each lane's result `i` stands for: what a tensor
// product's error is measured by. Fragments as the PTX ISA draws them (9.7.14.5.7 and .8).
double magnitude(const InputSet& set, size_t first, size_t lane, int i, bool deep, Format format,
                 bool half_result) {
  const int a_words = deep ? 4 : 2, b_words = deep ? 2 : 1;
  const auto element = [&](size_t at_lane, int word, int which) {
    const uint64_t bits = set.rows[first + at_lane].values[static_cast<size_t>(word)];
    return std::fabs(decode(bits >> (16 * which) & 0xffff, format));
  };
  const size_t row = lane / 4, column = lane % 4 * 2 + static_cast<size_t>(i % 2);
  const int low_half = i / 2;  // 0: rows 0 to 7, 1: rows 8 to 15
  double sum = 0;
  for (int k = 0; k < (deep ? 16 : 8); ++k) {
    const size_t quarter = static_cast<size_t>(k % 8 / 2);
    const double a = element(row * 4 + quarter, low_half + (k / 8) * 2, k % 2);
    const double b = element(column * 4 + quarter, a_words + k / 8, k % 2);
    sum += a * b;
  }
  const int word = a_words + b_words + (half_result ? i / 2 : i);
  if (half_result) return sum + element(lane, word, i % 2);
  const uint64_t bits = set.rows[first + lane].values[static_cast<size_t>(word)];
  return sum + std::fabs(decode(bits, Format::kSingle));
}

double decode_float8(uint64_t bits, bool e4m3) {
  if (!e4m3) return decode(bits << 8, Format::kHalf);
  const int exponent = static_cast<int>(bits >> 3 & 15), fraction = static_cast<int>(bits & 7);
  return exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
}

// The same for mma with operands of other widths. Lane l holds row or column l/4 of a register's
// eight, at the l%4th part of k.
double magnitude_any(const Family& f, const InputSet& set, size_t first, size_t lane, size_t word,
                     size_t e) {
  const auto& o = f.spelling->operands;
  const auto steps = static_cast<size_t>(o[2].count), a_words = static_cast<size_t>(o[1].count);
  const size_t halves = a_words / steps;
  const bool e4m3 = f.set.find("e4m3") != f.set.npos,
             float8 = e4m3 || f.set.find("e5m2") != f.set.npos;
  const Format wide = f.set.find("f64") != f.set.npos ? Format::kDouble : Format::kSingle;
  const bool half_sums = o[3].type == Type::kB32;
  const auto element = [&](size_t at_lane, size_t at_word, size_t i) {
    const uint64_t bits = set.rows[first + at_lane].values[at_word];
    return std::fabs(float8 ? decode_float8(bits >> (8 * i) & 0x7f, e4m3) : decode(bits, wide));
  };
  const size_t row = lane / 4, half = half_sums ? word : word / 2;
  const size_t column = lane % 4 * 2 + (half_sums ? e : word % 2);
  double sum = 0;
  for (size_t k = 0; k < steps * 4; ++k) {
    for (size_t i = 0; i < (float8 ? 4 : 1); ++i) {
      sum += element(row * 4 + k % 4, k / 4 * halves + half, i) *
             element(column * 4 + k % 4, a_words + k / 4, i);
    }
  }
  const uint64_t c = set.rows[first + lane].values[a_words + steps + word];
  return sum +
         std::fabs(half_sums ? decode(c >> (16 * e) & 0xffff, Format::kHalf) : decode(c, wide));
}

// Of the sum of |a*b| and |c|. Sums of 8-bit products may keep fewer bits than f32 has.
double product_bound_any(const Family& f) {
  if (f.set.find("f64") != f.set.npos) return 0x1p-50;
  return f.set.find("tf32") != f.set.npos ? kProductBound : 0x1p-12;
}

constexpr double kPi = 3.14159274101257324;  // the f32 above pi

}  // namespace

double decode(uint64_t bits, Format f) {
  switch (f) {
    case Format::kDouble:
      return std::bit_cast<double>(bits);
    case Format::kSingle:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Format::kBfloat:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits << 16)));
    case Format::kHalf:
      break;
  }
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 0x3ff);
  double x = exponent == 0    ? std::ldexp(fraction, -24)
             : exponent == 31 ? (fraction ? NAN : INFINITY)
                              : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -x : x;
}

bool close(uint64_t a, uint64_t b, Format f, const Bound& bound) {
  if (a == b) return true;
  const double x = decode(a, f), y = decode(b, f);
  if (!std::isfinite(x) || !std::isfinite(y)) return false;
  const double gap = std::fabs(x - y);
  if (gap <= bound.absolute || gap <= bound.relative * std::fabs(x)) return true;
  const double steps = a > b ? static_cast<double>(a - b) : static_cast<double>(b - a);
  return std::signbit(x) == std::signbit(y) && steps <= bound.ulps;
}

const std::vector<StatedBound>& stated_bounds() {
  static const std::vector<StatedBound> bounds = {
      {"rcp.approx.f64", {0, 0, 0x1p-19}, "relative 2^-20: the upper half of a double"},
      {"rsqrt.approx.f64", {0, 0, 0x1p-19}, "relative 2^-20: the upper half of a double"},
      {"rcp.approx.f32", {1, 0, 0}, "1 ulp"},
      {"rsqrt.approx.f32", {0, 0, 0x1p-22}, "relative 2^-22.9, and the rounding of both"},
      {"sqrt.approx.f32", {0, 0, 0x1p-22}, "relative 2^-23, and the rounding of both"},
      {"div.approx.f32", {2, 0, 0}, "2 ulp"},
      {"div.full.f32", {2, 0, 0}, "2 ulp"},
      {"ex2.approx.f32", {2, 0, 0}, "2 ulp"},
      {"lg2.approx.f32", {0, 0x1p-21, 0x1p-22}, "2^-22 absolute near 1, relative elsewhere"},
      {"sin.approx.f32", {0, 0x1p-20, 0}, "2^-20.5 in [-pi, pi], then growing with the argument"},
      {"cos.approx.f32", {0, 0x1p-20, 0}, "2^-20.5 in [-pi, pi], then growing with the argument"},
      {"tanh.approx.f32", {0, 0, 0x1p-11}, "relative 2^-11"},
      {"ex2.approx.f16", {1, 0, 0}, "relative 2^-9.9: 1 ulp"},
      {"ex2.approx.bf16", {1, 0, 0}, "relative 2^-7: 1 ulp"},
      {"tanh.approx.f16", {1, 0, 0}, "absolute 2^-10.987: 1 ulp"},
      {"tanh.approx.bf16", {1, 0, 0}, "relative 2^-8: 1 ulp"}};
  return bounds;
}

Bound bound_of(const Family& f, const InputSet& inputs, size_t row) {
  const isa::Row& table = *f.spelling->row;
  if (table.check.kind == isa::CheckKind::kExact) return {};
  if (table.count == CountClass::kTensor) return {};  // by element, below
  std::string op = f.spelling->text;
  if (const size_t at = op.find(".ftz"); at != std::string::npos) op.erase(at, 4);
  if (op.size() > 2 && op.substr(op.size() - 2) == "x2") op.resize(op.size() - 2);
  for (const StatedBound& s : stated_bounds()) {
    if (s.op != op) continue;
    Bound b = s.bound;
    if (op.substr(0, 3) == "sin" || op.substr(0, 3) == "cos") {
      const double x = std::fabs(decode(inputs.rows[row].values[0], Format::kSingle));
      if (x > kPi) b.absolute += x * 0x1p-23;
    }
    return b;
  }
  return {static_cast<double>(table.check.ulps), 0, 0};
}

std::string difference(const Family& f, const InputSet& inputs, size_t row, size_t word,
                       uint64_t hardware, uint64_t machine) {
  if (hardware == machine) return {};
  const bool product = f.spelling->row->count == CountClass::kTensor;
  const bool exact = f.spelling->row->check.kind == isa::CheckKind::kExact;
  const Layout layout = layout_of(f);
  Bound bound = bound_of(f, inputs, row);
  for (int e = 0; e < layout.elements; ++e) {
    const int shift = e * layout.bits;
    const uint64_t keep = layout.elements == 2 ? (uint64_t{1} << layout.bits) - 1 : ~uint64_t{0};
    const uint64_t a = hardware >> shift & keep, b = machine >> shift & keep;
    const bool any = f.set.substr(0, 6) == "tensor";
    if (any && f.set.find("small") == std::string::npos && f.set.find("s32") == std::string::npos) {
      bound.absolute = product_bound_any(f) * magnitude_any(f, inputs, row / 32 * 32, row % 32,
                                                            word, static_cast<size_t>(e));
      bound.ulps = layout.elements == 2 ? 1 : 0;
    } else if (product && !any && f.set.find("small") == std::string::npos) {
      const bool deep = f.set.find("k16") != std::string::npos;
      const Format in = f.set.find("bf16") != std::string::npos ? Format::kBfloat : Format::kHalf;
      const int i = static_cast<int>(word) * layout.elements + e;
      const double size =
          magnitude(inputs, row / 32 * 32, row % 32, i, deep, in, layout.elements == 2);
      // The machine rounds each product, the hardware does not: terms beyond the range of f32 may
      // still cancel there. No kernel with finite results has such terms.
      if (size > 0x1.fffffep127) continue;
      bound.absolute = kProductBound * size;
      bound.ulps = layout.elements == 2 ? 1 : 0;
    }
    if (exact ? a != b : !close(a, b, layout.format, bound)) {
      char text[160];
      std::snprintf(text, sizeof text, "hardware %llx (%.9g), machine %llx (%.9g)",
                    static_cast<unsigned long long>(a), decode(a, layout.format),
                    static_cast<unsigned long long>(b), decode(b, layout.format));
      return text;
    }
  }
  return {};
}

}  // namespace ptxvm_vectors
