// SPDX-License-Identifier: MIT
// set with half-precision operands, and other forms that are not worth an instantiation each (PTX
// ISA 9.7.6.1).
#include "exec/ops/combine.h"
#include "exec/ops/lanes.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

// Comparisons as sets of the outcomes for which they hold.
enum Outcome : uint8_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

uint8_t outcomes_of(Modifiers& m) {
  constexpr uint8_t kSets[] = {kEqual,                          // eq
                               kLess | kGreater,                // ne
                               kLess,                           // lt
                               kLess | kEqual,                  // le
                               kGreater,                        // gt
                               kGreater | kEqual,               // ge
                               kEqual | kUnordered,             // equ
                               kLess | kGreater | kUnordered,   // neu
                               kLess | kUnordered,              // ltu
                               kLess | kEqual | kUnordered,     // leu
                               kGreater | kUnordered,           // gtu
                               kGreater | kEqual | kUnordered,  // geu
                               kLess | kEqual | kGreater,       // num
                               kUnordered,                      // nan
                               kLess,                           // lo
                               kLess | kEqual,                  // ls
                               kGreater,                        // hi
                               kGreater | kEqual};              // hs
  return kSets[m.choice({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                         "geu", "num", "nan", "lo", "ls", "hi", "hs"})];
}

struct Plan {
  uint8_t outcomes = 0;
  Type to = Type::kNone, from = Type::kNone;
  bool ftz = false;
  Combine how = Combine::kNone;
};

template <class T>
uint32_t compare(T a, T b) {
  return a < b ? kLess : a > b ? kGreater : a == b ? kEqual : kUnordered;
}

double value_of(uint64_t bits, const Plan& p) {
  const auto half = static_cast<uint16_t>(bits);
  switch (p.from) {
    case Type::kF16:
    case Type::kF16x2:
      return static_cast<double>(
          num::half_to_float(p.ftz && (half & 0x7c00) == 0 ? half & 0x8000 : half));
    case Type::kBf16:
    case Type::kBf16x2:
      return static_cast<double>(num::bfloat_to_float(half));
    case Type::kF32: {
      const auto single = std::bit_cast<float>(static_cast<uint32_t>(bits));
      return static_cast<double>(p.ftz ? num::flush(single) : single);
    }
    default:
      return std::bit_cast<double>(bits);
  }
}

uint32_t outcome(uint64_t a, uint64_t b, const Plan& p) {
  if (kind(p.from) == TypeKind::kFloat) return compare(value_of(a, p), value_of(b, p));
  const int unused = 64 - bits(p.from);
  if (kind(p.from) == TypeKind::kSigned) {
    return compare(static_cast<int64_t>(a << unused) >> unused,
                   static_cast<int64_t>(b << unused) >> unused);
  }
  return compare(a << unused, b << unused);
}

uint32_t true_value(Type t) {
  switch (t) {
    case Type::kF16:
    case Type::kF16x2:
      return 0x3c00;
    case Type::kBf16:
    case Type::kBf16x2:
      return 0x3f80;
    case Type::kF32:
      return 0x3f800000;
    default:
      return 0xffffffff;
  }
}

bool is_packed(Type t) {
  return t == Type::kF16x2 || t == Type::kBf16x2;
}

uint32_t result(uint64_t a, uint64_t b, const Plan& p, uint32_t other) {
  const uint32_t yes = true_value(p.to);
  const auto test = [&](uint64_t x, uint64_t y) {
    const uint32_t holds = (outcome(x, y, p) & p.outcomes) != 0 ? 1 : 0;
    return combine(p.how, holds, other) != 0 ? yes : 0;
  };
  const uint32_t low = test(a, b);
  if (!is_packed(p.from)) return low;
  // Two results in one word, each of 16 bits.
  const uint32_t high = test(a >> 16, b >> 16);
  return high << 16 | (low & 0xffff);
}

Step set_words(Warp& w, const Op& op) {
  const auto p = op.aux.as<Plan>();
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  const bool wide = bits(p.from) == 64;
  const auto read = [&](Ref ref, int i) {
    return wide ? w.at<uint64_t>(ref)[i] : uint64_t{w.at<uint32_t>(ref)[i]};
  };
  const uint32_t other = p.how == Combine::kNone ? 0 : w.predicate(op.r[3]);
  for_lanes(w.mask, [&](int i) {
    const uint32_t v = result(read(op.r[1], i), read(op.r[2], i), p, other >> i & 1);
    d[i] = bits(p.to) == 16 ? v & 0xffff : v;
  });
  return Step::kNext;
}

}  // namespace

Bound set_any(Modifiers& m) {
  Plan p;
  p.outcomes = outcomes_of(m);
  p.how = combine_of(m);
  p.ftz = m.flag("ftz");
  p.to = m.type();
  p.from = m.type();
  return code(set_words, p);
}

}  // namespace ptxvm::ops
