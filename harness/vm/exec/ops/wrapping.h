// SPDX-License-Identifier: MIT
// Integer arithmetic that wraps or widens; shared by the integer operations.
#pragma once

#include <cstdint>
#include <type_traits>

#include "exec/ops/lanes.h"

namespace ptxvm::ops {

__extension__ using U128 = unsigned __int128;
__extension__ using S128 = __int128;

// The type in which a product of T does not overflow.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, S128, U128>,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
inline T product(T a, T b, bool high) {
  const auto p = static_cast<Wide<T>>(a) * b;
  return static_cast<T>(high ? p >> (sizeof(T) * 8) : p);
}

template <class T>
inline T wrapping_add(T a, T b) {
  return static_cast<T>(
      static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)));
}

template <class T>
inline T wrapping_sub(T a, T b) {
  return static_cast<T>(
      static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)));
}

}  // namespace ptxvm::ops
