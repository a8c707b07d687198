// SPDX-License-Identifier: MIT
// f16, f16x2, bf16 and bf16x2 arithmetic (PTX ISA 9.7.4). Everything is computed exactly or rounded
// to odd in double precision and rounded once.
#include "num/half.h"

#include <cmath>

#include "exec/ops/lanes.h"
#include "num/approx.h"
#include "num/rounding.h"

namespace ptxvm::ops {
namespace {

using num::Rounding;

struct Half {
  static constexpr uint16_t kNan = 0x7fff, kInfinity = 0x7c00, kOne = 0x3c00;
  static constexpr uint16_t kLeastNormal = 0x0400;
  static double widen(uint16_t x) { return static_cast<double>(num::half_to_float(x)); }
  static uint16_t narrow(double x) {
    return static_cast<uint16_t>(num::round_to(x, num::kHalf, Rounding::kNearest));
  }
};

struct Bfloat {
  static constexpr uint16_t kNan = 0x7fff, kInfinity = 0x7f80, kOne = 0x3f80;
  static constexpr uint16_t kLeastNormal = 0x0080;
  static double widen(uint16_t x) { return static_cast<double>(num::bfloat_to_float(x)); }
  static uint16_t narrow(double x) {
    return static_cast<uint16_t>(num::round_to(x, num::kBfloat, Rounding::kNearest));
  }
};

template <class N>
bool is_nan(uint16_t x) {
  return (x & 0x7fff) > N::kInfinity;
}

template <class N>
uint16_t flush(uint16_t x) {
  return (x & 0x7fff) < N::kLeastNormal ? x & 0x8000 : x;
}

enum class Finish { kPlain, kSat, kRelu };

template <class N, bool kFtz>
double in(uint16_t x) {
  return N::widen(kFtz ? flush<N>(x) : x);
}

template <class N, bool kFtz, Finish kFinish>
uint16_t out(double x) {
  uint16_t bits = N::narrow(x);
  if constexpr (kFtz) bits = flush<N>(bits);
  if constexpr (kFinish == Finish::kSat) {
    if (is_nan<N>(bits) || (bits & 0x8000)) return 0;
    return std::min(bits, N::kOne);
  }
  if constexpr (kFinish == Finish::kRelu) {
    if (!is_nan<N>(bits) && (bits & 0x8000)) return 0;
  }
  return bits;
}

// F works on one 16-bit element; a packed operand has two.
template <auto F, class... Packed>
uint32_t on_both(Packed... x) {
  const uint32_t low = F(static_cast<uint16_t>(x)...);
  const uint32_t high = F(static_cast<uint16_t>(x >> 16)...);
  return low | high << 16;
}

template <auto F>
Bound unary(bool packed) {
  return packed ? per_lane<on_both<F, uint32_t>>() : per_lane<F>();
}
template <auto F>
Bound binary(bool packed) {
  return packed ? per_lane<on_both<F, uint32_t, uint32_t>>() : per_lane<F>();
}
template <auto F>
Bound ternary(bool packed) {
  return packed ? per_lane<on_both<F, uint32_t, uint32_t, uint32_t>>() : per_lane<F>();
}

struct Style {
  bool ftz = false, packed = false, bfloat = false;
  Finish finish = Finish::kPlain;
};

Style style_of(Modifiers& m) {
  Style s;
  m.flag("rn");
  s.ftz = m.flag("ftz");
  if (m.flag("sat")) s.finish = Finish::kSat;
  if (m.flag("relu")) s.finish = Finish::kRelu;
  const Type t = m.type();
  s.packed = bits(t) == 32;
  s.bfloat = t == Type::kBf16 || t == Type::kBf16x2;
  return s;
}

// f.operator()<Number, ftz, finish>()
template <class F>
Bound with_style(const Style& s, F f) {
  auto finish = [&]<class N, bool Ftz>() {
    switch (s.finish) {
      case Finish::kSat:
        return f.template operator()<N, Ftz, Finish::kSat>();
      case Finish::kRelu:
        return f.template operator()<N, Ftz, Finish::kRelu>();
      default:
        return f.template operator()<N, Ftz, Finish::kPlain>();
    }
  };
  if (s.bfloat) return finish.template operator()<Bfloat, false>();
  return s.ftz ? finish.template operator()<Half, true>()
               : finish.template operator()<Half, false>();
}

}  // namespace

Bound half_add(Modifiers& m) {
  const bool subtract = m.base() == "sub";
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish Fin>() {
    return subtract ? binary<[](uint16_t a, uint16_t b) {
      return out<N, Ftz, Fin>(num::add_to_odd(in<N, Ftz>(a), -in<N, Ftz>(b)));
    }>(s.packed)
                    : binary<[](uint16_t a, uint16_t b) {
                        return out<N, Ftz, Fin>(num::add_to_odd(in<N, Ftz>(a), in<N, Ftz>(b)));
                      }>(s.packed);
  });
}

Bound half_mul(Modifiers& m) {
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish Fin>() {
    return binary<[](uint16_t a, uint16_t b) {
      return out<N, Ftz, Fin>(in<N, Ftz>(a) * in<N, Ftz>(b));
    }>(s.packed);
  });
}

Bound half_fma(Modifiers& m) {
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish Fin>() {
    return ternary<[](uint16_t a, uint16_t b, uint16_t c) {
      return out<N, Ftz, Fin>(num::add_to_odd(in<N, Ftz>(a) * in<N, Ftz>(b), in<N, Ftz>(c)));
    }>(s.packed);
  });
}

Bound half_neg(Modifiers& m) {
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish>() {
    return unary<[](uint16_t a) {
      return is_nan<N>(a) ? N::kNan : static_cast<uint16_t>((Ftz ? flush<N>(a) : a) ^ 0x8000);
    }>(s.packed);
  });
}

Bound half_abs(Modifiers& m) {
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish>() {
    return unary<[](uint16_t a) {
      return is_nan<N>(a) ? N::kNan : static_cast<uint16_t>((Ftz ? flush<N>(a) : a) & 0x7fff);
    }>(s.packed);
  });
}

namespace {

template <class N, bool kFtz, bool kMax, bool kNan>
uint16_t extreme(uint16_t a, uint16_t b) {
  if constexpr (kFtz) {
    a = flush<N>(a);
    b = flush<N>(b);
  }
  const bool nan_a = is_nan<N>(a), nan_b = is_nan<N>(b);
  if (nan_a || nan_b) {
    if (kNan || (nan_a && nan_b)) return N::kNan;
    return nan_a ? b : a;
  }
  // As sign and magnitude, so that -0 is less than +0.
  const int x = a & 0x8000 ? -(a & 0x7fff) - 1 : a, y = b & 0x8000 ? -(b & 0x7fff) - 1 : b;
  return kMax == (x > y) ? a : b;
}

}  // namespace

Bound half_min_max(Modifiers& m) {
  const bool max = m.base() == "max", nan = m.flag("NaN");
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool Ftz, Finish>() {
    return with_flags(max, nan, [&]<bool Max, bool Nan>() {
      return binary<extreme<N, Ftz, Max, Nan>>(s.packed);
    });
  });
}

Bound half_ex2(Modifiers& m) {
  m.flag("approx");
  const Style s = style_of(m);
  if (s.bfloat) {
    // .ftz is part of the name of the bf16 form.
    return unary<[](uint16_t a) {
      return flush<Bfloat>(Bfloat::narrow(num::ex2(num::bfloat_to_float(flush<Bfloat>(a)))));
    }>(s.packed);
  }
  return unary<[](uint16_t a) { return Half::narrow(num::ex2(num::half_to_float(a))); }>(s.packed);
}

Bound half_tanh(Modifiers& m) {
  const Style s = style_of(m);
  return with_style(s, [&]<class N, bool, Finish>() {
    return unary<[](uint16_t a) { return N::narrow(std::tanh(N::widen(a))); }>(s.packed);
  });
}

}  // namespace ptxvm::ops
