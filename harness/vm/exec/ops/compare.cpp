// SPDX-License-Identifier: MIT
// Comparison and selection (PTX ISA 9.7.5, 9.7.6).
#include <cmath>

#include "exec/ops/combine.h"
#include "exec/ops/lanes.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };

Compare compare_of(Modifiers& m) {
  const int c = m.choice(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (c >= 0) return static_cast<Compare>(c);
  constexpr Compare kUnsignedNames[] = {Compare::kLt, Compare::kLe, Compare::kGt, Compare::kGe};
  return kUnsignedNames[m.choice({"lo", "ls", "hi", "hs"})];
}

template <Compare C, class T>
bool holds(T a, T b) {
  const bool unordered = a != a || b != b;
  switch (C) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return !unordered && a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
    case Compare::kEqu:
      return unordered || a == b;
    case Compare::kNeu:
      return unordered || a != b;
    case Compare::kLtu:
      return unordered || a < b;
    case Compare::kLeu:
      return unordered || a <= b;
    case Compare::kGtu:
      return unordered || a > b;
    case Compare::kGeu:
      return unordered || a >= b;
    case Compare::kNum:
      return !unordered;
    case Compare::kNan:
      return unordered;
  }
}

// f.operator()<Compare>()
template <class F>
Bound with_compare(Compare c, F f) {
  switch (c) {
    case Compare::kEq:
      return f.template operator()<Compare::kEq>();
    case Compare::kNe:
      return f.template operator()<Compare::kNe>();
    case Compare::kLt:
      return f.template operator()<Compare::kLt>();
    case Compare::kLe:
      return f.template operator()<Compare::kLe>();
    case Compare::kGt:
      return f.template operator()<Compare::kGt>();
    case Compare::kGe:
      return f.template operator()<Compare::kGe>();
    case Compare::kEqu:
      return f.template operator()<Compare::kEqu>();
    case Compare::kNeu:
      return f.template operator()<Compare::kNeu>();
    case Compare::kLtu:
      return f.template operator()<Compare::kLtu>();
    case Compare::kLeu:
      return f.template operator()<Compare::kLeu>();
    case Compare::kGtu:
      return f.template operator()<Compare::kGtu>();
    case Compare::kGeu:
      return f.template operator()<Compare::kGeu>();
    case Compare::kNum:
      return f.template operator()<Compare::kNum>();
    case Compare::kNan:
      return f.template operator()<Compare::kNan>();
  }
  return {};
}

// Values of T as they are compared.
template <class T, bool kFtz>
struct Plain {
  using Stored = T;
  static T value(T x) {
    if constexpr (kFtz && std::is_same_v<T, float>) return num::flush(x);
    return x;
  }
};

// p takes the result, q its complement, each combined with the operand.
void write_pair(Warp& w, const Op& op, uint32_t result, uint32_t result_q) {
  const auto how = op.aux.as<Combine>();
  const uint32_t other = how == Combine::kNone ? 0 : w.predicate(op.r[4]);
  w.set_predicate(op.r[0], combine(how, result, other));
  w.set_predicate(op.r[1], combine(how, result_q, other));
}

template <Compare C, class T, bool kFtz>
Step set_predicates(Warp& w, const Op& op) {
  const Word<T>* a = w.at<Word<T>>(op.r[2]);
  const Word<T>* b = w.at<Word<T>>(op.r[3]);
  uint32_t result = 0;
  for (int i = 0; i < 32; ++i) {
    const bool yes = holds<C>(Plain<T, kFtz>::value(from_word<T>(a[i])),
                              Plain<T, kFtz>::value(from_word<T>(b[i])));
    result |= static_cast<uint32_t>(yes) << i;
  }
  write_pair(w, op, result, ~result);
  return Step::kNext;
}

// Calls f(Tag<T>) for every type that can be compared.
template <class F>
Bound with_comparable(Type t, F f) {
  if (t == Type::kF32) return f(Tag<float>{});
  if (t == Type::kF64) return f(Tag<double>{});
  return with_integer(t, f);
}

}  // namespace

Bound setp(Modifiers& m) {
  const Compare c = compare_of(m);
  const Combine how = combine_of(m);
  const bool ftz = m.flag("ftz");
  return with_comparable(m.type(), [&]<class T>(Tag<T>) {
    return with_compare(c, [&]<Compare C>() {
      if constexpr (std::is_same_v<T, float>) {
        return ftz ? code(set_predicates<C, T, true>, how) : code(set_predicates<C, T, false>, how);
      } else {
        return code(set_predicates<C, T, false>, how);
      }
    });
  });
}

namespace {

template <bool kBfloat, bool kFtz>
float widen(uint16_t x) {
  if constexpr (kBfloat) return num::bfloat_to_float(x);
  if (kFtz && (x & 0x7c00) == 0) x &= 0x8000;
  return num::half_to_float(x);
}

// A packed comparison gives p for the lower and q for the upper element.
template <Compare C, bool kBfloat, bool kFtz, bool kPacked>
Step set_half(Warp& w, const Op& op) {
  const size_t sources = kPacked ? 2 : 1;
  const uint32_t* a = w.at<uint32_t>(op.r[sources]);
  const uint32_t* b = w.at<uint32_t>(op.r[sources + 1]);
  uint32_t low = 0, high = 0;
  for (int i = 0; i < 32; ++i) {
    auto test = [&](int shift) {
      const auto x = static_cast<uint16_t>(a[i] >> shift), y = static_cast<uint16_t>(b[i] >> shift);
      return static_cast<uint32_t>(holds<C>(widen<kBfloat, kFtz>(x), widen<kBfloat, kFtz>(y))) << i;
    };
    low |= test(0);
    if constexpr (kPacked) high |= test(16);
  }
  const auto how = op.aux.as<Combine>();
  const uint32_t other = how == Combine::kNone ? 0 : w.predicate(op.r[sources + 2]);
  w.set_predicate(op.r[0], combine(how, low, other));
  if constexpr (kPacked) w.set_predicate(op.r[1], combine(how, high, other));
  return Step::kNext;
}

}  // namespace

Bound setp_half(Modifiers& m) {
  const Compare c = compare_of(m);
  const Combine how = combine_of(m);
  const bool ftz = m.flag("ftz");
  const Type t = m.type();
  const bool bfloat = t == Type::kBf16 || t == Type::kBf16x2;
  return with_compare(c, [&]<Compare C>() {
    return with_flags(ftz, bits(t) == 32, [&]<bool Ftz, bool Packed>() {
      if (bfloat) return code(set_half<C, true, false, Packed>, how);
      return code(set_half<C, false, Ftz, Packed>, how);
    });
  });
}

namespace {

// set: all ones or 1.0 where the comparison holds.
template <Compare C, class T, bool kFtz, bool kFloatResult>
Step set_words(Warp& w, const Op& op) {
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  const Word<T>* a = w.at<Word<T>>(op.r[1]);
  const Word<T>* b = w.at<Word<T>>(op.r[2]);
  for_lanes(w.mask, [&](int i) {
    const bool yes = holds<C>(Plain<T, kFtz>::value(from_word<T>(a[i])),
                              Plain<T, kFtz>::value(from_word<T>(b[i])));
    d[i] = yes ? (kFloatResult ? 0x3f800000u : 0xffffffffu) : 0;
  });
  return Step::kNext;
}

}  // namespace

Bound set(Modifiers& m) {
  const Compare c = compare_of(m);
  const bool ftz = m.flag("ftz");
  const bool float_result = m.type() == Type::kF32;
  return with_comparable(m.type(), [&]<class T>(Tag<T>) {
    return with_compare(c, [&]<Compare C>() {
      if constexpr (std::is_same_v<T, float>) {
        return with_flags(ftz, float_result,
                          []<bool Ftz, bool F>() { return code(set_words<C, T, Ftz, F>); });
      } else {
        return code(set_words<C, T, false, false>);
      }
    });
  });
}

namespace {

template <class W>
Step select(Warp& w, const Op& op) {
  W* d = w.at<W>(op.r[0]);
  const W* a = w.at<W>(op.r[1]);
  const W* b = w.at<W>(op.r[2]);
  const uint32_t p = w.predicate(op.r[3]);
  for_lanes(w.mask, [&](int i) { d[i] = p >> i & 1 ? a[i] : b[i]; });
  return Step::kNext;
}

template <class W, class C>
Step select_sign(Warp& w, const Op& op) {
  W* d = w.at<W>(op.r[0]);
  const W* a = w.at<W>(op.r[1]);
  const W* b = w.at<W>(op.r[2]);
  const C* c = w.at<C>(op.r[3]);
  for_lanes(w.mask, [&](int i) { d[i] = c[i] >= C{0} ? a[i] : b[i]; });
  return Step::kNext;
}

template <class W>
Step select_sign_ftz(Warp& w, const Op& op) {
  W* d = w.at<W>(op.r[0]);
  const W* a = w.at<W>(op.r[1]);
  const W* b = w.at<W>(op.r[2]);
  const float* c = w.at<float>(op.r[3]);
  for_lanes(w.mask, [&](int i) { d[i] = num::flush(c[i]) >= 0.0f ? a[i] : b[i]; });
  return Step::kNext;
}

}  // namespace

Bound selp(Modifiers& m) {
  return bits(m.type()) == 64 ? code(select<uint64_t>) : code(select<uint32_t>);
}

Bound slct(Modifiers& m) {
  const bool ftz = m.flag("ftz");
  const bool wide = bits(m.type()) == 64;
  if (m.type() == Type::kS32) {
    return wide ? code(select_sign<uint64_t, int32_t>) : code(select_sign<uint32_t, int32_t>);
  }
  if (ftz) return wide ? code(select_sign_ftz<uint64_t>) : code(select_sign_ftz<uint32_t>);
  return wide ? code(select_sign<uint64_t, float>) : code(select_sign<uint32_t, float>);
}

}  // namespace ptxvm::ops
