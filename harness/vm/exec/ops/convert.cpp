// SPDX-License-Identifier: MIT
// cvt (PTX ISA 9.7.9.21).
#include <cmath>
#include <limits>

#include "exec/ops/lanes.h"
#include "exec/ops/rounding.h"
#include "num/directed.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

using num::Rounding;

// Writes an integer result: extended to the width of the register as its type says.
template <class D>
void store_integer(Warp& w, Ref ref, int lane, D value) {
  if (ref & kRefWide) {
    w.at<uint64_t>(ref)[lane] = static_cast<uint64_t>(static_cast<int64_t>(value));
    if constexpr (std::is_unsigned_v<D>) w.at<uint64_t>(ref)[lane] = value;
  } else {
    using Extended = std::conditional_t<std::is_signed_v<D>, int32_t, uint32_t>;
    w.at<uint32_t>(ref)[lane] = static_cast<uint32_t>(static_cast<Extended>(value));
  }
}

// Reads the low bits of a register that may be wider than the type.
template <class S>
S load_integer(Warp& w, Ref ref, int lane) {
  return static_cast<S>(ref & kRefWide ? w.at<uint64_t>(ref)[lane] : w.at<uint32_t>(ref)[lane]);
}

template <class D, class S>
D clamp_integer(S v) {
  using Limits = std::numeric_limits<D>;
  if constexpr (std::is_signed_v<S>) {
    if (v < 0) {
      if constexpr (std::is_unsigned_v<D>) return 0;
      return static_cast<int64_t>(v) < static_cast<int64_t>(Limits::min()) ? Limits::min()
                                                                           : static_cast<D>(v);
    }
  }
  return static_cast<uint64_t>(v) > static_cast<uint64_t>(Limits::max()) ? Limits::max()
                                                                         : static_cast<D>(v);
}

template <class D, class S, bool kSat>
Step integer_to_integer(Warp& w, const Op& op) {
  for_lanes(w.mask, [&](int i) {
    const S v = load_integer<S>(w, op.r[1], i);
    store_integer<D>(w, op.r[0], i, kSat ? clamp_integer<D>(v) : static_cast<D>(v));
  });
  return Step::kNext;
}

double read_float(Warp& w, Ref ref, int lane, Type type) {
  switch (type) {
    case Type::kF16:
      return static_cast<double>(num::half_to_float(load_integer<uint16_t>(w, ref, lane)));
    case Type::kBf16:
      return static_cast<double>(num::bfloat_to_float(load_integer<uint16_t>(w, ref, lane)));
    case Type::kF32:
      return static_cast<double>(w.at<float>(ref)[lane]);
    default:
      return w.at<double>(ref)[lane];
  }
}

bool is_nan(double x) {
  return x != x;
}

// NaN gives 0, but the top bit where the source or the result has 64 bits.
template <class D>
D nan_result(bool from_double) {
  return from_double || sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << (sizeof(D) * 8 - 1)) : D{0};
}

template <class D>
D to_integer(double x, Rounding mode, bool from_double) {
  if (is_nan(x)) return nan_result<D>(from_double);
  const double r = num::round_integral(x, mode);
  // The limits of 64-bit types are not doubles: compare with the power of two above them.
  const double top = std::ldexp(1.0, std::numeric_limits<D>::digits);
  if (r >= top) return std::numeric_limits<D>::max();
  if (r < static_cast<double>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  return static_cast<D>(r);
}

// For the conversions that are not worth an instantiation each.
struct Plan {
  Type to = Type::kNone, from = Type::kNone;
  Rounding rounding = Rounding::kNearest;
  bool ftz = false, sat = false, relu = false, integral = false;
};

template <class D>
Step float_to_integer(Warp& w, const Op& op) {
  const auto p = op.aux.as<Plan>();
  for_lanes(w.mask, [&](int i) {
    double x = read_float(w, op.r[1], i, p.from);
    if (p.ftz && std::fabs(x) < 0x1p-126) x = 0;
    store_integer<D>(w, op.r[0], i, to_integer<D>(x, p.rounding, p.from == Type::kF64));
  });
  return Step::kNext;
}

template <class T>
T saturate(T x) {
  x = x > T{0} ? x : T{0};
  return x < T{1} ? x : T{1};
}

uint32_t finish_bits(double x, const Plan& p) {
  switch (p.to) {
    case Type::kF16:
      return num::round_to(x, num::kHalf, p.rounding);
    case Type::kBf16:
      return num::round_to(x, num::kBfloat, p.rounding);
    case Type::kTf32:
      return num::round_to(x, num::kTensorFloat, p.rounding) << 13;
    default:
      // Flushed for what it was before rounding.
      if (p.ftz && std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
      return num::round_to(x, num::kSingle, p.rounding);
  }
}

uint32_t convert_to_bits(double x, const Plan& p) {
  if (p.sat) x = saturate(x);
  if (p.relu) x = x < 0 || (x == 0 && std::signbit(x)) ? 0 : x;
  return finish_bits(x, p);
}

// What these conversions make of a NaN: most give the format's own, some hand the payload on.
uint64_t convert_nan(uint64_t bits, const Plan& p) {
  const uint64_t sign32 = bits >> 32 & 0x80000000u;
  if (p.sat) return 0;
  if (p.from == Type::kF64 && p.to == Type::kF64) {
    return bits | static_cast<uint64_t>(p.integral) << 51;
  }
  if (p.from == Type::kF64 && p.to == Type::kF32) {
    return sign32 | 0x7fc00000u | (bits >> 29 & 0x003fffffu);
  }
  if (p.from == Type::kF64 && p.to == Type::kF16) {
    return sign32 >> 16 | 0x7e00u | (bits >> 42 & 0x01ffu);
  }
  if (p.from == Type::kF64 && p.to == Type::kBf16) {
    return sign32 >> 16 | 0x7fc0u | (bits >> 45 & 0x003fu);
  }
  if (p.from == Type::kF32 && p.to == Type::kF64) {
    if (p.ftz) bits = num::kCanonicalNan;
    return (bits & 0x80000000u) << 32 | uint64_t{0x7ff8} << 48 | (bits & 0x007fffffu) << 29;
  }
  if (p.from == Type::kF16 && p.to == Type::kF64) {
    return (bits & 0x8000u) << 48 | uint64_t{0x7ff8} << 48 | (bits & 0x03ffu) << 42;
  }
  if (p.from == Type::kF32 && p.to == Type::kF32 && !p.ftz && !p.integral) return bits;
  if (p.from == Type::kBf16 && p.to == Type::kF32) return bits << 16;
  if (p.from == Type::kBf16 && p.to == Type::kF64) {
    return (bits & 0x8000u) << 48 | uint64_t{0x7ff8} << 48 | (bits & 0x007fu) << 45;
  }
  if (p.to == Type::kTf32 && p.rounding == Rounding::kNearestAway) return bits & ~0x1fffu;
  return convert_to_bits(std::numeric_limits<double>::quiet_NaN(), p);
}

uint64_t convert_float(uint64_t bits, double x, const Plan& p) {
  if (is_nan(x)) return convert_nan(bits, p);
  // To half precision a subnormal is not flushed: its rounding shows.
  const bool flushes = p.ftz && p.from == Type::kF32 && p.to != Type::kF16;
  if (flushes && std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
  if (p.integral) x = num::round_integral(x, p.rounding);
  if (p.to == Type::kF64) return std::bit_cast<uint64_t>(p.sat ? saturate(x) : x);
  return convert_to_bits(x, p);
}

uint64_t read_bits(Warp& w, Ref ref, int lane, Type type) {
  return bits(type) == 16 ? load_integer<uint16_t>(w, ref, lane)
                          : load_integer<uint64_t>(w, ref, lane);
}

Step float_to_float(Warp& w, const Op& op) {
  const auto p = op.aux.as<Plan>();
  for_lanes(w.mask, [&](int i) {
    const uint64_t result =
        convert_float(read_bits(w, op.r[1], i, p.from), read_float(w, op.r[1], i, p.from), p);
    if (op.r[0] & kRefWide) {
      w.at<uint64_t>(op.r[0])[i] = result;
    } else {
      w.at<uint32_t>(op.r[0])[i] = static_cast<uint32_t>(result);
    }
  });
  return Step::kNext;
}

// The two conversions of every attention kernel, without branches.
Step half_to_single(Warp& w, const Op& op) {
  return map<[](uint16_t h) { return num::half_to_float(h); }, float, uint16_t>(w, op);
}

Step single_to_half(Warp& w, const Op& op) {
  return map<[](float x) { return num::float_to_half(x); }, uint16_t, float>(w, op);
}

Step singles_to_halves(Warp& w, const Op& op) {
  return map<[](float high, float low) {
    return static_cast<uint32_t>(num::float_to_half(high)) << 16 | num::float_to_half(low);
  },
             uint32_t, float, float>(w, op);
}

Step singles_to_bfloats(Warp& w, const Op& op) {
  return map<[](float high, float low) {
    return static_cast<uint32_t>(num::float_to_bfloat(high)) << 16 | num::float_to_bfloat(low);
  },
             uint32_t, float, float>(w, op);
}

Step pack_floats(Warp& w, const Op& op) {
  const auto p = op.aux.as<Plan>();
  const float* high = w.at<float>(op.r[1]);
  const float* low = w.at<float>(op.r[2]);
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int i) {
    d[i] = convert_to_bits(static_cast<double>(high[i]), p) << 16 |
           convert_to_bits(static_cast<double>(low[i]), p);
  });
  return Step::kNext;
}

template <class S>
Step integer_to_float(Warp& w, const Op& op) {
  const auto p = op.aux.as<Plan>();
  using Wide = std::conditional_t<std::is_signed_v<S>, int64_t, uint64_t>;
  for_lanes(w.mask, [&](int i) {
    const auto v = static_cast<Wide>(load_integer<S>(w, op.r[1], i));
    if (p.to == Type::kF64) {
      double x = num::from_integer<double>(v, p.rounding);
      if (p.sat) x = saturate(x);
      w.at<double>(op.r[0])[i] = x;
    } else if (p.to == Type::kF32) {
      float x = num::from_integer<float>(v, p.rounding);
      if (p.sat) x = saturate(x);
      w.at<float>(op.r[0])[i] = x;
    } else {
      // Toward zero and made odd, a double rounds to f16 as the integer itself does.
      double x = num::from_integer<double>(v, Rounding::kZero);
      const auto bits = std::bit_cast<uint64_t>(x);
      if (static_cast<Wide>(x) != v) x = std::bit_cast<double>(bits | 1);
      w.at<uint32_t>(op.r[0])[i] = convert_to_bits(x, p);
    }
  });
  return Step::kNext;
}

Rounding integral_rounding_of(Modifiers& m, bool& present) {
  const int r = m.choice({"rni", "rzi", "rmi", "rpi"});
  present = r >= 0;
  constexpr Rounding kModes[] = {Rounding::kNearest, Rounding::kZero, Rounding::kDown,
                                 Rounding::kUp};
  return present ? kModes[r] : Rounding::kNearest;
}

}  // namespace

Bound cvt_int(Modifiers& m) {
  const bool sat = m.flag("sat");
  const Type to = m.type(), from = m.type();
  return with_integer<true>(to, [&]<class D>(Tag<D>) {
    return with_integer<true>(from, [&]<class S>(Tag<S>) {
      return sat ? code(integer_to_integer<D, S, true>) : code(integer_to_integer<D, S, false>);
    });
  });
}

Bound cvt_from_int(Modifiers& m) {
  Plan p;
  p.rounding = rounding_of(m);
  p.sat = m.flag("sat");
  p.to = m.type();
  p.from = m.type();
  return with_integer<true>(p.from, [&]<class S>(Tag<S>) { return code(integer_to_float<S>, p); });
}

Bound cvt_to_int(Modifiers& m) {
  Plan p;
  bool present = false;
  p.rounding = integral_rounding_of(m, present);
  p.ftz = m.flag("ftz");
  m.flag("sat");  // out-of-range values clamp in any case
  p.to = m.type();
  p.from = m.type();
  return with_integer<true>(p.to, [&]<class D>(Tag<D>) { return code(float_to_integer<D>, p); });
}

Bound cvt_float(Modifiers& m) {
  Plan p;
  p.rounding = rounding_of(m);
  p.ftz = m.flag("ftz");
  p.sat = m.flag("sat");
  p.relu = m.flag("relu");
  p.to = m.type();
  p.from = m.type();
  const bool plain = !p.ftz && !p.sat && !p.relu && p.rounding == Rounding::kNearest;
  if (plain && p.to == Type::kF32 && p.from == Type::kF16) return code(half_to_single);
  if (plain && p.to == Type::kF16 && p.from == Type::kF32) return code(single_to_half);
  return code(float_to_float, p);
}

Bound cvt_round(Modifiers& m) {
  Plan p;
  p.rounding = integral_rounding_of(m, p.integral);
  p.ftz = m.flag("ftz");
  p.sat = m.flag("sat");
  p.to = m.type();
  p.from = m.type();
  return code(float_to_float, p);
}

Bound cvt_pack(Modifiers& m) {
  Plan p;
  p.rounding = rounding_of(m);
  p.relu = m.flag("relu");
  const Type to = m.type();
  p.to = to == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  p.from = Type::kF32;
  if (!p.relu && p.rounding == Rounding::kNearest) {
    return code(to == Type::kF16x2 ? singles_to_halves : singles_to_bfloats);
  }
  return code(pack_floats, p);
}

}  // namespace ptxvm::ops
