// SPDX-License-Identifier: MIT
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "exec/communication.h"
#include "exec/ops/lanes.h"
#include "num/half.h"
#include "num/rounding.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

// Other blocks may run on other host threads.
template <class T, class F>
T update(std::byte* host, F f) {
  std::atomic_ref<T> cell(*reinterpret_cast<T*>(host));
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, f(old))) {
  }
  return old;
}

// Lanes take their turn in the order of their numbers; the real order is not defined.
template <bool kObserved, bool kReturns, class T, auto F>
Step read_modify_write(Warp& w, const Op& op) {
  const size_t first = kReturns ? 1 : 0;
  const T* a = w.at<T>(op.r[first + 2]);
  Request request;
  lane_addresses(w, op.r[first], op.r[first + 1], request.wide);
  for_spaces(static_cast<Space>(op.aux), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, sizeof(T), sizeof(T), true, request);
    if constexpr (kObserved) {
      report_access(w, op, space, AccessKind::kAtomic, lanes, sizeof(T), request);
    }
    for_lanes(lanes, [&](int i) {
      const T operand = a[i];
      const T old = update<T>(request.host[i], [&](T x) { return F(x, operand); });
      if constexpr (kReturns) w.at<T>(op.r[0])[i] = old;
    });
    if constexpr (kReturns) note_poll(w, op, space, lanes, sizeof(T), request);
  });
  return Step::kNext;
}

template <bool kObserved, class T>
Step compare_and_swap(Warp& w, const Op& op) {
  using W = Word<T>;
  Request request;
  lane_addresses(w, op.r[1], op.r[2], request.wide);
  for_spaces(static_cast<Space>(op.aux), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, sizeof(T), sizeof(T), true, request);
    if constexpr (kObserved) {
      report_access(w, op, space, AccessKind::kAtomic, lanes, sizeof(T), request);
    }
    for_lanes(lanes, [&](int i) {
      const T expected = static_cast<T>(w.at<W>(op.r[3])[i]);
      const T desired = static_cast<T>(w.at<W>(op.r[4])[i]);
      w.at<W>(op.r[0])[i] =
          update<T>(request.host[i], [&](T x) { return x == expected ? desired : x; });
    });
    note_poll(w, op, space, lanes, sizeof(T), request);
  });
  return Step::kNext;
}

Space space_of_atomic(Modifiers& m) {
  // All orders are sequentially consistent here.
  m.choice({"relaxed", "acquire", "release", "acq_rel"});
  m.choice({"cta", "cluster", "gpu", "sys"});
  switch (m.choice({"global", "shared", "shared::cta", "shared::cluster"})) {
    case 0:
      return Space::kGlobal;
    case 1:
    case 2:
      return Space::kShared;
    case 3:
      return Space::kSharedCluster;
    default:
      return Space::kGeneric;
  }
}

template <class T, auto F>
Bound access_code(bool returns, Space space) {
  const auto aux = static_cast<uint64_t>(space);
  if (returns) {
    return {read_modify_write<false, true, T, F>, read_modify_write<true, true, T, F>, aux};
  }
  return {read_modify_write<false, false, T, F>, read_modify_write<true, false, T, F>, aux};
}

template <class T>
T add_bits_as_float(T x, T y) {
  if constexpr (sizeof(T) == 4) {
    // Global atomics of f32 flush nothing on these targets.
    return std::bit_cast<T>(num::canonical(std::bit_cast<float>(x) + std::bit_cast<float>(y)));
  } else {
    return std::bit_cast<T>(std::bit_cast<double>(x) + std::bit_cast<double>(y));
  }
}

uint16_t add_half(uint16_t a, uint16_t b) {
  return static_cast<uint16_t>(num::round_to(
      static_cast<double>(num::half_to_float(a)) + static_cast<double>(num::half_to_float(b)),
      num::kHalf, num::Rounding::kNearest));
}

uint16_t add_bfloat(uint16_t a, uint16_t b) {
  return static_cast<uint16_t>(
      num::round_to(num::add_to_odd(static_cast<double>(num::bfloat_to_float(a)),
                                    static_cast<double>(num::bfloat_to_float(b))),
                    num::kBfloat, num::Rounding::kNearest));
}

template <auto F>
uint32_t on_both_halves(uint32_t x, uint32_t y) {
  return F(static_cast<uint16_t>(x), static_cast<uint16_t>(y)) |
         static_cast<uint32_t>(F(static_cast<uint16_t>(x >> 16), static_cast<uint16_t>(y >> 16)))
             << 16;
}

// 16-bit operands stand in words: the lane array has a stride of four bytes.
template <bool kObserved, bool kReturns, auto F>
Step update_short(Warp& w, const Op& op) {
  const size_t first = kReturns ? 1 : 0;
  const uint32_t* a = w.at<uint32_t>(op.r[first + 2]);
  Request request;
  lane_addresses(w, op.r[first], op.r[first + 1], request.wide);
  for_spaces(static_cast<Space>(op.aux), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, 2, 2, true, request);
    if constexpr (kObserved) report_access(w, op, space, AccessKind::kAtomic, lanes, 2, request);
    for_lanes(lanes, [&](int i) {
      const auto operand = static_cast<uint16_t>(a[i]);
      const uint16_t old =
          update<uint16_t>(request.host[i], [&](uint16_t x) { return F(x, operand); });
      if constexpr (kReturns) w.at<uint32_t>(op.r[0])[i] = old;
    });
  });
  return Step::kNext;
}

template <auto F>
Bound short_code(bool returns, Space space) {
  const auto aux = static_cast<uint64_t>(space);
  if (returns) return {update_short<false, true, F>, update_short<true, true, F>, aux};
  return {update_short<false, false, F>, update_short<true, false, F>, aux};
}

// Hosts need not have atomic accesses of 16 bytes: one at a time.
template <bool kObserved, bool kCompares>
Step exchange_wide(Warp& w, const Op& op) {
  static std::mutex mutex;
  struct Pair {
    uint64_t low, high;
    bool operator==(const Pair&) const = default;
  };
  const auto read = [&](int at, int i) {
    return Pair{w.at<uint64_t>(op.list[at])[i], w.at<uint64_t>(op.list[at + 1])[i]};
  };
  Request request;
  lane_addresses(w, op.r[2], op.r[3], request.wide);
  for_spaces(static_cast<Space>(op.aux), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, sizeof(Pair), sizeof(Pair), true, request);
    if constexpr (kObserved) {
      report_access(w, op, space, AccessKind::kAtomic, lanes, sizeof(Pair), request);
    }
    const std::lock_guard lock(mutex);
    for_lanes(lanes, [&](int i) {
      Pair old;
      std::memcpy(&old, request.host[i], sizeof old);
      const Pair desired = read(kCompares ? 6 : 4, i);
      if (!kCompares || old == read(4, i)) std::memcpy(request.host[i], &desired, sizeof desired);
      w.at<uint64_t>(op.r[0])[i] = old.low;
      w.at<uint64_t>(op.r[1])[i] = old.high;
    });
  });
  return Step::kNext;
}

enum class What { kAnd, kOr, kXor, kExch, kAdd, kInc, kDec, kMin, kMax };

template <class T>
Bound integer_code(What what, bool returns, Space space) {
  switch (what) {
    case What::kAnd:
      return access_code<T, [](T x, T y) { return static_cast<T>(x & y); }>(returns, space);
    case What::kOr:
      return access_code<T, [](T x, T y) { return static_cast<T>(x | y); }>(returns, space);
    case What::kXor:
      return access_code<T, [](T x, T y) { return static_cast<T>(x ^ y); }>(returns, space);
    case What::kExch:
      return access_code<T, [](T, T y) { return y; }>(returns, space);
    case What::kAdd:
      return access_code<T, [](T x, T y) { return static_cast<T>(x + y); }>(returns, space);
    case What::kInc:
      return access_code<T, [](T x, T y) { return (y <= x) ? T{0} : static_cast<T>(x + 1); }>(
          returns, space);
    case What::kDec:
      return access_code<T, [](T x, T y) { return (x == 0 || y < x) ? y : static_cast<T>(x - 1); }>(
          returns, space);
    case What::kMin:
      return access_code<T, [](T x, T y) { return std::min(x, y); }>(returns, space);
    case What::kMax:
      return access_code<T, [](T x, T y) { return std::max(x, y); }>(returns, space);
  }
  return {};
}

template <class T>
Bound signed_code(What what, bool returns, Space space) {
  using S = std::make_signed_t<T>;
  if (what == What::kMin) {
    return access_code<T, [](T x, T y) { return static_cast<S>(x) < static_cast<S>(y) ? x : y; }>(
        returns, space);
  }
  if (what == What::kMax) {
    return access_code<T, [](T x, T y) { return static_cast<S>(x) < static_cast<S>(y) ? y : x; }>(
        returns, space);
  }
  return integer_code<T>(what, returns, space);
}

Bound atomic_code(Modifiers& m, bool returns) {
  const Space space = space_of_atomic(m);
  const auto what =
      static_cast<What>(m.choice({"and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"}));
  m.flag("noftz");
  switch (m.type()) {
    case Type::kB32:
    case Type::kU32:
      return integer_code<uint32_t>(what, returns, space);
    case Type::kB64:
    case Type::kU64:
      return integer_code<uint64_t>(what, returns, space);
    case Type::kS32:
      return signed_code<uint32_t>(what, returns, space);
    case Type::kS64:
      return signed_code<uint64_t>(what, returns, space);
    case Type::kF32:
      return access_code<uint32_t, add_bits_as_float<uint32_t>>(returns, space);
    case Type::kF64:
      return access_code<uint64_t, add_bits_as_float<uint64_t>>(returns, space);
    case Type::kF16:
      return short_code<add_half>(returns, space);
    case Type::kBf16:
      return short_code<add_bfloat>(returns, space);
    case Type::kF16x2:
      return access_code<uint32_t, on_both_halves<add_half>>(returns, space);
    case Type::kBf16x2:
      return access_code<uint32_t, on_both_halves<add_bfloat>>(returns, space);
    default:
      return {};
  }
}

}  // namespace

Bound atom(Modifiers& m) {
  return atomic_code(m, true);
}
Bound red(Modifiers& m) {
  return atomic_code(m, false);
}

Bound atom_wide(Modifiers& m) {
  const auto aux = static_cast<uint64_t>(space_of_atomic(m));
  const bool compares = m.spelling().operands.size() == 4;
  m.type();
  return compares ? Bound{exchange_wide<false, true>, exchange_wide<true, true>, aux}
                  : Bound{exchange_wide<false, false>, exchange_wide<true, false>, aux};
}

Bound atom_cas(Modifiers& m) {
  const auto aux = static_cast<uint64_t>(space_of_atomic(m));
  switch (bits(m.type())) {
    case 16:
      return {compare_and_swap<false, uint16_t>, compare_and_swap<true, uint16_t>, aux};
    case 32:
      return {compare_and_swap<false, uint32_t>, compare_and_swap<true, uint32_t>, aux};
    case 64:
      return {compare_and_swap<false, uint64_t>, compare_and_swap<true, uint64_t>, aux};
    default:
      return {};
  }
}

}  // namespace ptxvm::ops
