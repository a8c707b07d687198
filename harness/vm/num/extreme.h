// SPDX-License-Identifier: MIT
// Minima and maxima of floating-point numbers as PTX defines them.
#pragma once

#include <cmath>
#include <limits>

#include "num/single.h"

namespace ptxvm::num {

inline double nan_of(double a, double b) {
  return with_nan(0.0, a, b);
}
inline float nan_of(float, float) {
  return std::numeric_limits<float>::quiet_NaN();
}

/// -0 is less than +0. A single NaN is ignored unless kNan asks for it.
template <bool kMax, bool kNan, class T>
T extreme(T a, T b) {
  if (a != a || b != b) {
    if (kNan || (a != a && b != b)) return nan_of(a, b);
    return a != a ? b : a;
  }
  if (a == b) return kMax == std::signbit(a) ? b : a;
  return kMax == (a > b) ? a : b;
}

}  // namespace ptxvm::num
