// SPDX-License-Identifier: MIT
// What atom, red and the reductions of bulk copies do to one element of memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "exec/bind.h"

namespace ptxvm::ops {

enum class Update : uint8_t { kAnd, kOr, kXor, kExch, kAdd, kInc, kDec, kMin, kMax };

/// The operation that a mnemonic names.
inline Update update_of(Modifiers& m) {
  m.flag("noftz");
  return static_cast<Update>(
      m.choice({"and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"}));
}

/// Applies f to a cell that other host threads may use, and returns what stood there.
template <class T, class F>
T update(std::byte* host, F f) {
  std::atomic_ref<T> cell(*reinterpret_cast<T*>(host));
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, f(old))) {
  }
  return old;
}

/// The new value of an integer.
template <Update kUpdate, class T>
T updated(T x, T y) {
  using U = std::make_unsigned_t<T>;
  if constexpr (kUpdate == Update::kAnd) return x & y;
  if constexpr (kUpdate == Update::kOr) return x | y;
  if constexpr (kUpdate == Update::kXor) return x ^ y;
  if constexpr (kUpdate == Update::kExch) return y;
  if constexpr (kUpdate == Update::kAdd) {
    return static_cast<T>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y)));
  }
  if constexpr (kUpdate == Update::kInc) return y <= x ? T{0} : static_cast<T>(x + 1);
  if constexpr (kUpdate == Update::kDec) return x == 0 || y < x ? y : static_cast<T>(x - 1);
  if constexpr (kUpdate == Update::kMin) return std::min(x, y);
  if constexpr (kUpdate == Update::kMax) return std::max(x, y);
}

/// What `body` returns as a template of the update, which is known only at run time.
template <class Body>
auto with_update(Update what, const Body& body) {
  switch (what) {
    case Update::kAnd:
      return body.template operator()<Update::kAnd>();
    case Update::kOr:
      return body.template operator()<Update::kOr>();
    case Update::kXor:
      return body.template operator()<Update::kXor>();
    case Update::kExch:
      return body.template operator()<Update::kExch>();
    case Update::kAdd:
      return body.template operator()<Update::kAdd>();
    case Update::kInc:
      return body.template operator()<Update::kInc>();
    case Update::kDec:
      return body.template operator()<Update::kDec>();
    case Update::kMin:
      return body.template operator()<Update::kMin>();
    default:
      return body.template operator()<Update::kMax>();
  }
}

/// Sums of floating-point numbers by their bits. Nothing is flushed on these targets.
uint32_t add_single(uint32_t x, uint32_t y);
uint64_t add_double(uint64_t x, uint64_t y);
uint16_t add_half(uint16_t x, uint16_t y);
uint16_t add_bfloat(uint16_t x, uint16_t y);

/// F on both 16-bit halves of a word.
template <auto F>
uint32_t on_both_halves(uint32_t x, uint32_t y) {
  return F(static_cast<uint16_t>(x), static_cast<uint16_t>(y)) |
         static_cast<uint32_t>(F(static_cast<uint16_t>(x >> 16), static_cast<uint16_t>(y >> 16)))
             << 16;
}

/// An update chosen by name: combines `operand` into a cell, and leaves what stood there in `old`
/// unless it is null.
struct ElementUpdate {
  void (*combine)(std::byte* host, const std::byte* operand, std::byte* old) = nullptr;
  uint32_t bytes = 0;
};

/// Without `combine` where the type has no such operation.
ElementUpdate element_update(Update update, Type type);

}  // namespace ptxvm::ops
