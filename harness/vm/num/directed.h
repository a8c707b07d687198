// SPDX-License-Identifier: MIT
// Arithmetic with directed rounding through the floating-point environment.
#pragma once

#include "num/rounding.h"

namespace ptxvm::num {

template <class T>
T add(T a, T b, Rounding mode);
template <class T>
T multiply(T a, T b, Rounding mode);
template <class T>
T divide(T a, T b, Rounding mode);
template <class T>
T square_root(T a, Rounding mode);
template <class T>
T fuse(T a, T b, T c, Rounding mode);
/// A 64-bit integer to floating point.
template <class T>
T from_integer(int64_t v, Rounding mode);
template <class T>
T from_integer(uint64_t v, Rounding mode);

}  // namespace ptxvm::num
