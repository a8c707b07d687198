// SPDX-License-Identifier: MIT
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6).
#include <cstring>
#include <mutex>

#include "exec/communication.h"
#include "exec/ops/lanes.h"
#include "exec/ops/update.h"

namespace ptxvm::ops {
namespace {

// Lanes take their turn in the order of their numbers; the real order is not defined.
template <bool kObserved, bool kReturns, class T, auto F>
Step read_modify_write(Warp& w, const Op& op) {
  const size_t first = kReturns ? 1 : 0;
  const T* a = w.at<T>(op.r[first + 2]);
  Request request;
  lane_addresses(w, op.r[first], op.r[first + 1], request.wide);
  for_spaces(op.aux.as<Space>(), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, sizeof(T), sizeof(T), true, request);
    if constexpr (kObserved) {
      report_update(w, op, space, lanes, sizeof(T), request, kReturns ? op.r[0] : kNoRef);
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
  for_spaces(op.aux.as<Space>(), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, sizeof(T), sizeof(T), true, request);
    if constexpr (kObserved) {
      report_update(w, op, space, lanes, sizeof(T), request, op.r[0]);
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
  if (returns) {
    return {read_modify_write<false, true, T, F>, read_modify_write<true, true, T, F>, space};
  }
  return {read_modify_write<false, false, T, F>, read_modify_write<true, false, T, F>, space};
}

// 16-bit operands stand in words: the lane array has a stride of four bytes.
template <bool kObserved, bool kReturns, auto F>
Step update_short(Warp& w, const Op& op) {
  const size_t first = kReturns ? 1 : 0;
  const uint32_t* a = w.at<uint32_t>(op.r[first + 2]);
  Request request;
  lane_addresses(w, op.r[first], op.r[first + 1], request.wide);
  for_spaces(op.aux.as<Space>(), w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(w, op, space, lanes, 2, 2, true, request);
    if constexpr (kObserved) {
      report_update(w, op, space, lanes, 2, request, kReturns ? op.r[0] : kNoRef);
    }
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
  if (returns) return {update_short<false, true, F>, update_short<true, true, F>, space};
  return {update_short<false, false, F>, update_short<true, false, F>, space};
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
  for_spaces(op.aux.as<Space>(), w.mask, request, [&](Space space, uint32_t lanes) {
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

template <class T>
Bound integer_code(Update what, bool returns, Space space) {
  return with_update(
      what, [&]<Update kUpdate>() { return access_code<T, updated<kUpdate, T>>(returns, space); });
}

// Vectors are updated element by element: the whole is no single atomic access. Operands: the
// elements that stood there (atom), the address, the elements to combine.
struct VectorUpdate {
  Space space;
  Update what;
  Type type;
  uint8_t count;
};

template <bool kObserved, bool kReturns>
Step update_vector(Warp& w, const Op& op) {
  const auto vector = op.aux.as<VectorUpdate>();
  const ElementUpdate each = element_update(vector.what, vector.type);
  const uint32_t count = vector.count;
  const uint32_t bytes = count * each.bytes, at = kReturns ? count : 0;
  Request request;
  lane_addresses(w, op.list[at], op.list[at + 1], request.wide);
  for_spaces(vector.space, w.mask, request, [&](Space space, uint32_t lanes) {
    if (space != Space::kGlobal) {
      raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
            "an atomic access to a vector must be one to global memory");
    }
    resolve(w, op, space, lanes, bytes, bytes, true, request);
    if constexpr (kObserved) {
      report_access(w, op, space, AccessKind::kAtomic, lanes, bytes, request);
    }
    for_lanes(lanes, [&](int lane) {
      for (uint32_t i = 0; i < count; ++i) {
        uint32_t operand = w.at<uint32_t>(op.list[at + 2 + i])[lane], old = 0;
        each.combine(request.host[lane] + i * each.bytes,
                     reinterpret_cast<const std::byte*>(&operand),
                     reinterpret_cast<std::byte*>(&old));
        if constexpr (kReturns) w.at<uint32_t>(op.list[i])[lane] = old;
      }
    });
  });
  return Step::kNext;
}

Bound atomic_code(Modifiers& m, bool returns) {
  const Space space = space_of_atomic(m);
  const Update what = update_of(m);
  switch (m.type()) {
    case Type::kB32:
    case Type::kU32:
      return integer_code<uint32_t>(what, returns, space);
    case Type::kB64:
    case Type::kU64:
      return integer_code<uint64_t>(what, returns, space);
    case Type::kS32:
      return integer_code<int32_t>(what, returns, space);
    case Type::kS64:
      return integer_code<int64_t>(what, returns, space);
    case Type::kF32:
      return access_code<uint32_t, add_single>(returns, space);
    case Type::kF64:
      return access_code<uint64_t, add_double>(returns, space);
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

Bound vector_code(Modifiers& m, bool returns) {
  VectorUpdate vector;
  vector.space = space_of_atomic(m);
  vector.what = update_of(m);
  vector.count = static_cast<uint8_t>(m.vector());
  vector.type = m.type();
  if (returns) return {update_vector<false, true>, update_vector<true, true>, vector};
  return {update_vector<false, false>, update_vector<true, false>, vector};
}

}  // namespace

Bound atom(Modifiers& m) {
  return atomic_code(m, true);
}
Bound red(Modifiers& m) {
  return atomic_code(m, false);
}

Bound atom_vector(Modifiers& m) {
  return vector_code(m, true);
}
Bound red_vector(Modifiers& m) {
  return vector_code(m, false);
}

Bound atom_wide(Modifiers& m) {
  const Space space = space_of_atomic(m);
  const bool compares = m.spelling().operands.size() == 4;
  m.type();
  return compares ? Bound{exchange_wide<false, true>, exchange_wide<true, true>, space}
                  : Bound{exchange_wide<false, false>, exchange_wide<true, false>, space};
}

Bound atom_cas(Modifiers& m) {
  const Space space = space_of_atomic(m);
  switch (bits(m.type())) {
    case 16:
      return {compare_and_swap<false, uint16_t>, compare_and_swap<true, uint16_t>, space};
    case 32:
      return {compare_and_swap<false, uint32_t>, compare_and_swap<true, uint32_t>, space};
    case 64:
      return {compare_and_swap<false, uint64_t>, compare_and_swap<true, uint64_t>, space};
    default:
      return {};
  }
}

}  // namespace ptxvm::ops
