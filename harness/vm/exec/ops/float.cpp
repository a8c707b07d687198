// SPDX-License-Identifier: MIT
// Single and double precision arithmetic (PTX ISA 9.7.3).
#include <cmath>
#include <limits>

#include "exec/ops/lanes.h"
#include "exec/ops/rounding.h"
#include "num/approx.h"
#include "num/directed.h"
#include "num/extreme.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

using num::Rounding;

struct Style {
  Rounding rounding;
  bool ftz, sat;
  Type type;
};

Style style_of(Modifiers& m) {
  Style s;
  s.rounding = rounding_of(m);
  s.ftz = m.flag("ftz");
  s.sat = m.flag("sat");
  s.type = m.type();
  return s;
}

// f.operator()<Rounding, ftz, sat>() with the style as constants.
template <class F>
Bound with_style(const Style& s, F f) {
  return with_flags(s.ftz, s.sat, [&]<bool Ftz, bool Sat>() {
    switch (s.rounding) {
      case Rounding::kZero:
        return f.template operator()<Rounding::kZero, Ftz, Sat>();
      case Rounding::kDown:
        return f.template operator()<Rounding::kDown, Ftz, Sat>();
      case Rounding::kUp:
        return f.template operator()<Rounding::kUp, Ftz, Sat>();
      default:
        return f.template operator()<Rounding::kNearest, Ftz, Sat>();
    }
  });
}

template <class F>
Bound with_rounding(Rounding r, F f) {
  return with_style({r, false, false, Type::kF64},
                    [&]<Rounding R, bool, bool>() { return f.template operator()<R>(); });
}

template <Rounding R, class T>
T add_in(T a, T b) {
  if constexpr (R == Rounding::kNearest) return a + b;
  return num::add(a, b, R);
}
template <Rounding R, class T>
T mul_in(T a, T b) {
  if constexpr (R == Rounding::kNearest) return a * b;
  return num::multiply(a, b, R);
}
template <Rounding R, class T>
T div_in(T a, T b) {
  if constexpr (R == Rounding::kNearest) return a / b;
  return num::divide(a, b, R);
}
template <Rounding R, class T>
T sqrt_in(T a) {
  if constexpr (R == Rounding::kNearest) return std::sqrt(a);
  return num::square_root(a, R);
}

template <bool Ftz, bool Sat>
Step fma_nearest(Warp& w, const Op& op) {
  alignas(64) float in[3][32], out[32];
  for (int s = 0; s < 3; ++s) {
    const float* from = w.at<float>(op.r[s + 1]);
    for (int i = 0; i < 32; ++i) in[s][i] = num::input<Ftz>(from[i]);
  }
  w.cta->launch->kernels->fma32(out, in[0], in[1], in[2]);
  for (float& value : out) value = num::output<Ftz, Sat>(value);
  float* d = w.at<float>(op.r[0]);
  for_lanes(w.mask, [&](int i) { d[i] = out[i]; });
  return Step::kNext;
}

}  // namespace

Bound fp_add(Modifiers& m) {
  const bool subtract = m.base() == "sub";
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, [&]<Rounding R>() {
      return subtract ? per_lane<[](double a, double b) {
        return num::with_nan(add_in<R>(a, -b), a, b);
      }>()
                      : per_lane<[](double a, double b) {
                          return num::with_nan(add_in<R>(a, b), a, b);
                        }>();
    });
  }
  return with_style(s, [&]<Rounding R, bool Ftz, bool Sat>() {
    return subtract
               ? per_lane<[](float a, float b) {
                   return num::output<Ftz, Sat>(add_in<R>(num::input<Ftz>(a), -num::input<Ftz>(b)));
                 }>()
               : per_lane<[](float a, float b) {
                   return num::output<Ftz, Sat>(add_in<R>(num::input<Ftz>(a), num::input<Ftz>(b)));
                 }>();
  });
}

Bound fp_mul(Modifiers& m) {
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, []<Rounding R>() {
      return per_lane<[](double a, double b) { return num::with_nan(mul_in<R>(a, b), a, b); }>();
    });
  }
  return with_style(s, []<Rounding R, bool Ftz, bool Sat>() {
    return per_lane<[](float a, float b) {
      return num::output<Ftz, Sat>(mul_in<R>(num::input<Ftz>(a), num::input<Ftz>(b)));
    }>();
  });
}

Bound fp_fma(Modifiers& m) {
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, []<Rounding R>() {
      return per_lane<[](double a, double b, double c) {
        if constexpr (R == Rounding::kNearest) return num::with_nan(std::fma(a, b, c), a, c, b);
        return num::with_nan(num::fuse(a, b, c, R), a, c, b);
      }>();
    });
  }
  return with_style(s, []<Rounding R, bool Ftz, bool Sat>() {
    if constexpr (R == Rounding::kNearest) return code(fma_nearest<Ftz, Sat>);
    return per_lane<[](float a, float b, float c) {
      return num::output<Ftz, Sat>(
          num::fuse(num::input<Ftz>(a), num::input<Ftz>(b), num::input<Ftz>(c), R));
    }>();
  });
}

Bound fp_div(Modifiers& m) {
  const int approximate = m.choice({"approx", "full"});
  const Style s = style_of(m);
  if (approximate >= 0) {
    return with_flags(s.ftz, approximate == 0, []<bool Ftz, bool Approx>() {
      return per_lane<[](float a, float b) {
        const float x = num::input<Ftz>(a), y = num::input<Ftz>(b);
        return num::output<Ftz, false>(Approx ? num::divide_approx(x, y) : x / y);
      }>();
    });
  }
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, []<Rounding R>() {
      return per_lane<[](double a, double b) { return div_in<R>(a, b); }>();
    });
  }
  return with_style(s, []<Rounding R, bool Ftz, bool>() {
    return per_lane<[](float a, float b) {
      return num::output<Ftz, false>(div_in<R>(num::input<Ftz>(a), num::input<Ftz>(b)));
    }>();
  });
}

Bound fp_abs(Modifiers& m) {
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return per_lane<[](double a) { return num::with_nan(std::fabs(a), a); }>();
  }
  return with_flag(s.ftz, []<bool Ftz>() {
    return per_lane<[](float a) { return num::canonical(std::fabs(num::input<Ftz>(a))); }>();
  });
}

Bound fp_neg(Modifiers& m) {
  const Style s = style_of(m);
  if (s.type == Type::kF64) return per_lane<[](double a) { return num::with_nan(-a, a); }>();
  return with_flag(s.ftz, []<bool Ftz>() {
    return per_lane<[](float a) { return num::canonical(-num::input<Ftz>(a)); }>();
  });
}

namespace {

using num::extreme;

template <bool kMax, bool kNan, bool kFtz, bool kAbs>
float extreme_of_three(float a, float b, float c) {
  const auto value = [](float x) {
    return kAbs ? std::fabs(num::input<kFtz>(x)) : num::input<kFtz>(x);
  };
  return num::canonical(extreme<kMax, kNan>(extreme<kMax, kNan>(value(a), value(b)), value(c)));
}

template <bool kMax>
Bound extreme_code(Modifiers& m) {
  const bool ftz = m.flag("ftz"), nan = m.flag("NaN");
  const bool xor_sign = m.flag("xorsign"), absolute = m.flag("abs");
  if (m.type() == Type::kF64) return per_lane<extreme<kMax, false, double>>();
  return with_flags(ftz, nan, [&]<bool Ftz, bool Nan>() {
    if (xor_sign) {
      return per_lane<[](float a, float b) {
        const float x = num::input<Ftz>(a), y = num::input<Ftz>(b);
        const bool negative = std::signbit(x) != std::signbit(y);
        const float e = extreme<kMax, Nan>(std::fabs(x), std::fabs(y));
        return num::canonical(negative ? -e : e);
      }>();
    }
    if (absolute) return per_lane<extreme_of_three<kMax, Nan, Ftz, true>>();
    return code([](Warp& w, const Op& op) {
      constexpr auto kTwo = [](float a, float b) {
        return num::canonical(extreme<kMax, Nan>(num::input<Ftz>(a), num::input<Ftz>(b)));
      };
      if (op.r[3] == kNoRef) return map<kTwo, float, float, float>(w, op);
      return map<extreme_of_three<kMax, Nan, Ftz, false>, float, float, float, float>(w, op);
    });
  });
}

}  // namespace

Bound fp_min_max(Modifiers& m) {
  return m.base() == "max" ? extreme_code<true>(m) : extreme_code<false>(m);
}

namespace {

// As if the narrow operand had been converted first, which is exact.
template <bool kBfloat>
float widen(uint16_t x) {
  return kBfloat ? num::bfloat_to_float(x) : num::half_to_float(x);
}

}  // namespace

Bound mixed_add(Modifiers& m) {
  const bool subtract = m.base() == "sub";
  Style s{rounding_of(m), false, m.flag("sat"), m.type()};
  const bool bfloat = m.type() == Type::kBf16;
  return with_style(s, [&]<Rounding R, bool, bool Sat>() {
    return with_flags(subtract, bfloat, []<bool Subtract, bool Bfloat>() {
      return per_lane<[](uint16_t a, float c) {
        return num::output<false, Sat>(add_in<R>(widen<Bfloat>(a), Subtract ? -c : c));
      }>();
    });
  });
}

Bound mixed_fma(Modifiers& m) {
  Style s{rounding_of(m), false, m.flag("sat"), m.type()};
  const bool bfloat = m.type() == Type::kBf16;
  return with_style(s, [&]<Rounding R, bool, bool Sat>() {
    return with_flag(bfloat, []<bool Bfloat>() {
      return per_lane<[](uint16_t a, uint16_t b, float c) {
        const float x = widen<Bfloat>(a), y = widen<Bfloat>(b);
        if constexpr (R == Rounding::kNearest) return num::output<false, Sat>(num::fused(x, y, c));
        return num::output<false, Sat>(num::fuse(x, y, c, R));
      }>();
    });
  });
}

Bound fp_copysign(Modifiers& m) {
  // The sign comes from the first source.
  if (m.type() == Type::kF64) {
    return per_lane<[](double a, double b) { return std::copysign(b, a); }>();
  }
  return per_lane<[](float a, float b) { return std::copysign(b, a); }>();
}

namespace {

template <int kTest, class T>
Step test_property(Warp& w, const Op& op) {
  const T* a = w.at<T>(op.r[1]);
  uint32_t out = 0;
  for_lanes(w.mask, [&](int i) {
    const int c = std::fpclassify(a[i]);
    bool yes = false;
    switch (kTest) {
      case 0:
        yes = c != FP_INFINITE && c != FP_NAN;
        break;
      case 1:
        yes = c == FP_INFINITE;
        break;
      case 2:
        yes = c != FP_NAN;
        break;
      case 3:
        yes = c == FP_NAN;
        break;
      case 4:
        yes = c == FP_NORMAL || c == FP_ZERO;
        break;
      default:
        yes = c == FP_SUBNORMAL;
        break;
    }
    out |= static_cast<uint32_t>(yes) << i;
  });
  w.set_predicate(op.r[0], out);
  return Step::kNext;
}

template <class T>
Bound test_code(int test) {
  switch (test) {
    case 0:
      return code(test_property<0, T>);
    case 1:
      return code(test_property<1, T>);
    case 2:
      return code(test_property<2, T>);
    case 3:
      return code(test_property<3, T>);
    case 4:
      return code(test_property<4, T>);
    case 5:
      return code(test_property<5, T>);
    default:
      return {};
  }
}

}  // namespace

Bound fp_testp(Modifiers& m) {
  const int test = m.choice({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  return m.type() == Type::kF64 ? test_code<double>(test) : test_code<float>(test);
}

Bound fp_rcp(Modifiers& m) {
  const bool approximate = m.flag("approx");
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, []<Rounding R>() {
      return per_lane<[](double a) { return div_in<R>(1.0, a); }>();
    });
  }
  if (approximate) {
    return with_flag(s.ftz, []<bool Ftz>() {
      return per_lane<[](float a) {
        return num::output<Ftz, false>(num::rcp(num::input<Ftz>(a)));
      }>();
    });
  }
  return with_style(s, []<Rounding R, bool Ftz, bool>() {
    return per_lane<[](float a) {
      return num::output<Ftz, false>(div_in<R>(1.0f, num::input<Ftz>(a)));
    }>();
  });
}

Bound fp_sqrt(Modifiers& m) {
  m.flag("approx");  // computed exactly, which is within its bound
  const Style s = style_of(m);
  if (s.type == Type::kF64) {
    return with_rounding(s.rounding, []<Rounding R>() {
      return per_lane<[](double a) { return sqrt_in<R>(a); }>();
    });
  }
  return with_style(s, []<Rounding R, bool Ftz, bool>() {
    return per_lane<[](float a) {
      return num::output<Ftz, false>(sqrt_in<R>(num::input<Ftz>(a)));
    }>();
  });
}

namespace {

template <auto F>
Bound special_code(bool ftz) {
  return with_flag(ftz, []<bool Ftz>() {
    return per_lane<[](float a) { return num::output<Ftz, false>(F(num::input<Ftz>(a))); }>();
  });
}

}  // namespace

Bound fp_special(Modifiers& m) {
  const bool ftz = m.flag("ftz");
  const std::string_view base = m.base();
  if (base == "rsqrt") return special_code<num::rsqrt>(ftz);
  if (base == "sin") return special_code<num::sine>(ftz);
  if (base == "cos") return special_code<num::cosine>(ftz);
  if (base == "lg2") return special_code<num::lg2>(ftz);
  if (base == "tanh") return special_code<num::hyperbolic_tangent>(ftz);
  return {};
}

Bound fp_ex2(Modifiers& m) {
  return special_code<num::ex2>(m.flag("ftz"));
}

namespace {

// The upper half of a double, which is all that the coarse approximations look at and give.
double upper_half(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0xffffffff00000000u);
}

double flush(double x) {
  return std::fabs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x;
}

template <auto F>
double coarse(double a) {
  constexpr uint64_t kNan = 0x7fffffff00000000;
  const double result = F(flush(upper_half(a)));
  return a != a || result != result ? std::bit_cast<double>(kNan) : upper_half(flush(result));
}

double reciprocal(double a) {
  return 1.0 / a;
}
double reciprocal_root(double a) {
  return a < 0 ? -std::numeric_limits<double>::quiet_NaN() : 1.0 / std::sqrt(a);
}

}  // namespace

Bound fp_approx_double(Modifiers& m) {
  const bool ftz = m.flag("ftz");
  m.flag("approx");
  if (m.base() == "rcp") return per_lane<coarse<reciprocal>>();
  if (ftz) return per_lane<coarse<reciprocal_root>>();
  return per_lane<[](double a) { return num::with_nan(reciprocal_root(a), a); }>();
}

}  // namespace ptxvm::ops
