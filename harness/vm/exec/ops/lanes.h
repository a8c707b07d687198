// SPDX-License-Identifier: MIT
// Helpers that turn a function of one lane into an operation.
#pragma once

#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "exec/bind.h"
#include "exec/warp.h"

namespace ptxvm::ops {

/// Lanes of up to 32 bits are stored in words; the upper bits of a narrow value mean nothing.
template <class T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
inline T from_word(Word<T> word) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

template <class T>
inline Word<T> to_word(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<Word<T>>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

/// d = F(sources...) in the lanes of the mask. A destination may be one of the sources: lane i of
/// one meets only lane i of the other, which is what the pragma says.
template <auto F, class D, class... S, size_t... I>
inline void map_lanes(Warp& w, const Op& op, std::index_sequence<I...>) {
  Word<D>* d = w.at<Word<D>>(op.r[0]);
  const std::tuple<const Word<S>*...> sources{w.at<Word<S>>(op.r[I + 1])...};
  if (w.mask == kAllLanes) [[likely]] {
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) d[i] = to_word<D>(F(from_word<S>(std::get<I>(sources)[i])...));
  } else {
    for_lanes(w.mask,
              [&](int i) { d[i] = to_word<D>(F(from_word<S>(std::get<I>(sources)[i])...)); });
  }
}

template <auto F, class D, class... S>
Step map(Warp& w, const Op& op) {
  map_lanes<F, D, S...>(w, op, std::index_sequence_for<S...>{});
  return Step::kNext;
}

/// Carries a type into a generic lambda.
template <class T>
struct Tag {
  using type = T;
};

/// f(Tag<integer type>) for b, u and s types of 16 to 64 bits (8 with `kWithBytes`); bits are
/// unsigned.
template <bool kWithBytes = false, class F>
Bound with_integer(Type t, F f) {
  switch (t) {
    case Type::kB16:
    case Type::kU16:
      return f(Tag<uint16_t>{});
    case Type::kB32:
    case Type::kU32:
      return f(Tag<uint32_t>{});
    case Type::kB64:
    case Type::kU64:
      return f(Tag<uint64_t>{});
    case Type::kS16:
      return f(Tag<int16_t>{});
    case Type::kS32:
      return f(Tag<int32_t>{});
    case Type::kS64:
      return f(Tag<int64_t>{});
    default:
      break;
  }
  if constexpr (kWithBytes) {
    if (t == Type::kU8 || t == Type::kB8) return f(Tag<uint8_t>{});
    if (t == Type::kS8) return f(Tag<int8_t>{});
  }
  return {};
}

/// f(Tag<T>) for 32-bit and 64-bit integers.
template <class F>
Bound with_word(Type t, F f) {
  if (bits(t) < 32) return {};
  return with_integer(t, f);
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// Turns run-time flags into constants: f.template operator()<a>() or <a, b>().
template <class F>
Bound with_flag(bool a, F f) {
  return a ? f.template operator()<true>() : f.template operator()<false>();
}

template <class F>
Bound with_flags(bool a, bool b, F f) {
  if (a) return b ? f.template operator()<true, true>() : f.template operator()<true, false>();
  return b ? f.template operator()<false, true>() : f.template operator()<false, false>();
}

/// A bound operation without events.
inline Bound code(ExecFn fn, Aux aux = {}) {
  return {fn, fn, aux};
}

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class D, class... S>
struct Signature<D (*)(S...)> {
  template <auto F>
  static Bound bind() {
    return code(map<F, D, S...>);
  }
};
template <class C, class D, class... S>
struct Signature<D (C::*)(S...) const> : Signature<D (*)(S...)> {};

/// The operation that applies F to each lane; the types of its operands are those of F.
template <auto F>
Bound per_lane() {
  return Signature<std::remove_const_t<decltype(F)>>::template bind<F>();
}

}  // namespace ptxvm::ops
