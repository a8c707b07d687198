// SPDX-License-Identifier: MIT
// Logic, shifts, permutes (PTX ISA 9.7.7, 9.7.9.7).
#include <algorithm>

#include "exec/ops/lanes.h"

namespace ptxvm::ops {
namespace {

template <class T>
T shift_left(T a, uint32_t n) {
  return n < sizeof(T) * 8 ? static_cast<T>(a << n) : T{0};
}

template <class T>
T shift_right(T a, uint32_t n) {
  const uint32_t most = sizeof(T) * 8;
  if (n < most) return static_cast<T>(a >> n);
  return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
}

// shf: the 64-bit value {b, a} shifted; the upper or lower half is kept.
template <bool kLeft, bool kWrap>
uint32_t funnel(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t n = kWrap ? c & 31 : std::min(c, 32u);
  const uint64_t pair = uint64_t{b} << 32 | a;
  return static_cast<uint32_t>(kLeft ? pair << n >> 32 : pair >> n);
}

// Operands a, b, c and the table, which says what each three bits give.
void look_up(Warp& w, const uint32_t* operands, uint32_t* out) {
  const uint32_t* a = w.at<uint32_t>(operands[0]);
  const uint32_t* b = w.at<uint32_t>(operands[1]);
  const uint32_t* c = w.at<uint32_t>(operands[2]);
  const uint32_t table = operands[3];
  for (uint32_t row = 0; row < 8; ++row) {
    if (!(table >> row & 1)) continue;
    const uint32_t fa = row & 4 ? 0 : ~0u, fb = row & 2 ? 0 : ~0u, fc = row & 1 ? 0 : ~0u;
    for (int i = 0; i < 32; ++i) out[i] |= (a[i] ^ fa) & (b[i] ^ fb) & (c[i] ^ fc);
  }
}

Step lop3_lanes(Warp& w, const Op& op) {
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  uint32_t out[32] = {};
  look_up(w, op.r + 1, out);
  for_lanes(w.mask, [&](int i) { d[i] = out[i]; });
  return Step::kNext;
}

// The predicate is whether any bit is set, and or or with another one.
template <bool kAnd>
Step lop3_with_predicate(Warp& w, const Op& op) {
  const uint32_t other = w.predicate(op.r[6]);
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  uint32_t out[32] = {}, any = 0;
  look_up(w, op.r + 2, out);
  for (int i = 0; i < 32; ++i) any |= uint32_t{out[i] != 0} << i;
  for_lanes(w.mask, [&](int i) { d[i] = out[i]; });
  w.set_predicate(op.r[1], kAnd ? any & other : any | other);
  return Step::kNext;
}

uint32_t permute_byte(uint64_t bytes, uint32_t selector) {
  const auto byte = static_cast<uint8_t>(bytes >> (8 * (selector & 7)));
  if (selector & 8) return byte & 0x80 ? 0xff : 0;
  return byte;
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) out |= permute_byte(bytes, selectors >> (4 * i) & 15) << (8 * i);
  return out;
}

// The named modes of prmt: byte i of the result for a control of 0 to 3.
template <int kMode>
uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t control) {
  const uint32_t c = control & 3;
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t s = 0;
    switch (kMode) {
      case 0:
        s = c + i;
        break;  // f4e
      case 1:
        s = (c + 8 - i) & 7;
        break;  // b4e
      case 2:
        s = c;
        break;  // rc8
      case 3:
        s = std::max(c, i);
        break;  // ecl
      case 4:
        s = std::min(c, i);
        break;  // ecr
      default:
        s = (c & 1) * 2 + (i & 1);
        break;  // rc16
    }
    out |= permute_byte(bytes, s) << (8 * i);
  }
  return out;
}

enum class Logic { kAnd, kOr, kXor };

Logic logic_of(Modifiers& m) {
  if (m.base() == "and") return Logic::kAnd;
  return m.base() == "or" ? Logic::kOr : Logic::kXor;
}

template <Logic kOp>
Step predicate_logic(Warp& w, const Op& op) {
  const uint32_t a = w.predicate(op.r[1]), b = w.predicate(op.r[2]);
  w.set_predicate(op.r[0], kOp == Logic::kAnd ? a & b : kOp == Logic::kOr ? a | b : a ^ b);
  return Step::kNext;
}

}  // namespace

Bound logic(Modifiers& m) {
  const Logic which = logic_of(m);
  return with_integer(m.type(), [&]<class T>(Tag<T>) {
    switch (which) {
      case Logic::kAnd:
        return per_lane<[](T a, T b) { return static_cast<T>(a & b); }>();
      case Logic::kOr:
        return per_lane<[](T a, T b) { return static_cast<T>(a | b); }>();
      case Logic::kXor:
        return per_lane<[](T a, T b) { return static_cast<T>(a ^ b); }>();
    }
    return Bound{};
  });
}

Bound logic_not(Modifiers& m) {
  return with_integer(
      m.type(), []<class T>(Tag<T>) { return per_lane<[](T a) { return static_cast<T>(~a); }>(); });
}

Bound cnot(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) {
    return per_lane<[](T a) { return static_cast<T>(a == 0); }>();
  });
}

Bound pred_logic(Modifiers& m) {
  switch (logic_of(m)) {
    case Logic::kAnd:
      return code(predicate_logic<Logic::kAnd>);
    case Logic::kOr:
      return code(predicate_logic<Logic::kOr>);
    case Logic::kXor:
      return code(predicate_logic<Logic::kXor>);
  }
  return {};
}

Bound pred_not(Modifiers&) {
  return code([](Warp& w, const Op& op) {
    w.set_predicate(op.r[0], ~w.predicate(op.r[1]));
    return Step::kNext;
  });
}

Bound lop3(Modifiers&) {
  return code(lop3_lanes);
}

Bound lop3_predicate(Modifiers& m) {
  return m.choice({"or", "and"}) == 1 ? code(lop3_with_predicate<true>)
                                      : code(lop3_with_predicate<false>);
}

Bound shl(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<shift_left<T>>(); });
}

Bound shr(Modifiers& m) {
  return with_integer(m.type(), []<class T>(Tag<T>) { return per_lane<shift_right<T>>(); });
}

Bound shf(Modifiers& m) {
  const bool left = m.choice({"r", "l"}) == 1, wrap = m.choice({"clamp", "wrap"}) == 1;
  return with_flags(left, wrap, []<bool L, bool W>() { return per_lane<funnel<L, W>>(); });
}

Bound prmt(Modifiers& m) {
  switch (m.choice({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})) {
    case -1:
      return per_lane<permute>();
    case 0:
      return per_lane<permute_mode<0>>();
    case 1:
      return per_lane<permute_mode<1>>();
    case 2:
      return per_lane<permute_mode<2>>();
    case 3:
      return per_lane<permute_mode<3>>();
    case 4:
      return per_lane<permute_mode<4>>();
    case 5:
      return per_lane<permute_mode<5>>();
  }
  return {};
}

}  // namespace ptxvm::ops
