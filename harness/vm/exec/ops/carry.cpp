// SPDX-License-Identifier: MIT
// Extended precision through the carry flag of each lane (PTX ISA 9.7.2).
#include "exec/ops/wrapping.h"

namespace ptxvm::ops {
namespace {

// a + b + carry in; the carry out goes to the lane's flag when asked for. A subtraction is a + ~b +
// 1, and the flag is the carry of that sum, 1 where nothing was borrowed. So an addc behind a
// sub.cc adds 1 then, which nvcc's 128-bit division relies on.
template <class T, bool kIn, bool kOut, bool kSubtract>
Step carry_add(Warp& w, const Op& op) {
  T* d = w.at<T>(op.r[0]);
  const T* a = w.at<T>(op.r[1]);
  const T* b = w.at<T>(op.r[2]);
  uint32_t flags = w.carry;
  for_lanes(w.mask, [&](int i) {
    const T y = kSubtract ? static_cast<T>(~b[i]) : b[i];
    const T in = kIn ? w.carry >> i & 1 : kSubtract;
    const U128 sum = static_cast<U128>(a[i]) + y + in;
    d[i] = static_cast<T>(sum);
    if constexpr (kOut) {
      flags = (flags & ~(1u << i)) | static_cast<uint32_t>(sum >> (sizeof(T) * 8)) << i;
    }
  });
  w.carry = flags;
  return Step::kNext;
}

template <class T, bool kHigh, bool kIn, bool kOut, bool kSigned>
Step carry_mad(Warp& w, const Op& op) {
  using S = std::conditional_t<kSigned, std::make_signed_t<T>, T>;
  T* d = w.at<T>(op.r[0]);
  const T* a = w.at<T>(op.r[1]);
  const T* b = w.at<T>(op.r[2]);
  const T* c = w.at<T>(op.r[3]);
  uint32_t flags = w.carry;
  for_lanes(w.mask, [&](int i) {
    const T p = static_cast<T>(product<S>(static_cast<S>(a[i]), static_cast<S>(b[i]), kHigh));
    const T in = kIn ? w.carry >> i & 1 : 0;
    const U128 sum = static_cast<U128>(p) + c[i] + in;
    d[i] = static_cast<T>(sum);
    if constexpr (kOut) {
      flags = (flags & ~(1u << i)) | static_cast<uint32_t>(sum >> (sizeof(T) * 8)) << i;
    }
  });
  w.carry = flags;
  return Step::kNext;
}

Bound carry_code(Modifiers& m, bool in, bool subtract) {
  const bool out = m.flag("cc");
  const bool wide = bits(m.type()) == 64;
  return with_flags(in, out, [&]<bool In, bool Out>() {
    return with_flags(wide, subtract, []<bool W, bool S>() {
      return code(carry_add<std::conditional_t<W, uint64_t, uint32_t>, In, Out, S>);
    });
  });
}

}  // namespace

Bound add_carry(Modifiers& m) {
  return carry_code(m, m.base() == "addc", false);
}
Bound sub_carry(Modifiers& m) {
  return carry_code(m, m.base() == "subc", true);
}

Bound mad_carry(Modifiers& m) {
  const bool high = m.choice({"lo", "hi"}) == 1;
  const bool in = m.base() == "madc", out = m.flag("cc");
  const Type t = m.type();
  const bool wide = bits(t) == 64, is_signed = kind(t) == TypeKind::kSigned;
  return with_flags(in, out, [&]<bool In, bool Out>() {
    return with_flags(wide, high, [&]<bool W, bool H>() {
      return with_flag(is_signed, []<bool S>() {
        return code(carry_mad<std::conditional_t<W, uint64_t, uint32_t>, H, In, Out, S>);
      });
    });
  });
}

}  // namespace ptxvm::ops
