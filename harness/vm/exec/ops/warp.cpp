// SPDX-License-Identifier: MIT
// Exchange and votes within a warp (PTX ISA 9.7.9.6, 9.7.13.9 to .13, 9.7.13.4).
#include <algorithm>
#include <bit>

#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/poison.h"
#include "num/extreme.h"

namespace ptxvm::ops {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// The member masks of the active lanes, all together.
uint32_t all_members(Warp& w, Ref ref) {
  const uint32_t* masks = w.at<uint32_t>(ref);
  uint32_t all = 0;
  for_lanes(w.mask, [&](int i) { all |= masks[i]; });
  return all;
}

// Every lane must be a member of its own mask.
void check_own_membership(Warp& w, const Op& op, Ref ref) {
  const uint32_t* masks = w.at<uint32_t>(ref);
  for_lanes(w.mask, [&](int i) {
    if (!(masks[i] >> i & 1)) [[unlikely]] {
      raise(w, op, FaultKind::kDivergence, i,
            "the lane is not in its own member mask " + hex(masks[i], 8));
    }
  });
}

template <Shuffle kMode, bool kObserved>
Step shuffle(Warp& w, const Op& op) {
  if (!converge(w, op, all_members(w, op.r[5]))) return Step::kSwitch;
  check_own_membership(w, op, op.r[5]);
  const uint32_t* a = w.at<uint32_t>(op.r[2]);
  const uint32_t* b = w.at<uint32_t>(op.r[3]);
  const uint32_t* c = w.at<uint32_t>(op.r[4]);
  const uint32_t* masks = w.at<uint32_t>(op.r[5]);
  uint32_t out[32], in_range = 0, absent = 0;
  uint8_t from[32];
  for_lanes(w.mask, [&](int lane) {
    const auto l = static_cast<uint32_t>(lane);
    const uint32_t n = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    const uint32_t max_lane = (l & segment) | (clamp & ~segment);
    const uint32_t min_lane = l & segment;
    uint32_t source = 0;
    bool valid = false;
    switch (kMode) {
      case Shuffle::kUp:
        source = l - n;
        valid = static_cast<int32_t>(source) >= static_cast<int32_t>(max_lane);
        break;
      case Shuffle::kDown:
        source = l + n;
        valid = source <= max_lane;
        break;
      case Shuffle::kButterfly:
        source = l ^ n;
        valid = source <= max_lane;
        break;
      case Shuffle::kIndex:
        source = min_lane | (n & ~segment);
        valid = source <= max_lane;
        break;
    }
    if (!valid) source = l;
    out[lane] = a[source];
    from[lane] = static_cast<uint8_t>(source);
    if (!(w.mask & masks[lane] & 1u << source)) [[unlikely]] {
      out[lane] = kPoisonWord;
      absent |= 1u << lane;
    }
    in_range |= static_cast<uint32_t>(valid) << lane;
  });
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = out[lane]; });
  w.set_predicate(op.r[1], in_range);
  if (absent != 0 || w.checks & kCheckPoison) [[unlikely]]
    shuffle_poison(w, op, from, absent);
  if constexpr (kObserved) {
    const WarpSyncEvent e{id_of(w), op.instruction, w.mask & ~absent, from};
    notify(w, [&](Probe& p) { p.warp_sync(e); });
  }
  return Step::kNext;
}

enum class Vote { kAll, kAny, kUni, kBallot };

template <Vote kMode>
Step take_vote(Warp& w, const Op& op) {
  if (!converge(w, op, all_members(w, op.r[2]))) return Step::kSwitch;
  check_own_membership(w, op, op.r[2]);
  const uint32_t* masks = w.at<uint32_t>(op.r[2]);
  const uint32_t p = w.predicate(op.r[1]) & w.mask;
  uint32_t result = 0, ballot[32];
  for_lanes(w.mask, [&](int lane) {
    const uint32_t members = masks[lane] & w.mask;
    const uint32_t yes = p & members;
    ballot[lane] = yes;
    bool v = false;
    if (kMode == Vote::kAll) v = yes == members;
    if (kMode == Vote::kAny) v = yes != 0;
    if (kMode == Vote::kUni) v = yes == members || yes == 0;
    result |= static_cast<uint32_t>(v) << lane;
  });
  if constexpr (kMode == Vote::kBallot) {
    uint32_t* d = w.at<uint32_t>(op.r[0]);
    for_lanes(w.mask, [&](int lane) { d[lane] = ballot[lane]; });
  } else {
    w.set_predicate(op.r[0], result);
  }
  return Step::kNext;
}

template <class T>
Step match_any(Warp& w, const Op& op) {
  if (!converge(w, op, all_members(w, op.r[2]))) return Step::kSwitch;
  check_own_membership(w, op, op.r[2]);
  const T* a = w.at<T>(op.r[1]);
  const uint32_t* masks = w.at<uint32_t>(op.r[2]);
  uint32_t out[32];
  for_lanes(w.mask, [&](int lane) {
    out[lane] = 0;
    for_lanes(masks[lane] & w.mask, [&](int other) {
      if (a[other] == a[lane]) out[lane] |= 1u << other;
    });
  });
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = out[lane]; });
  return Step::kNext;
}

// d|p: the member mask and true when all members have the same value.
template <class T>
Step match_all(Warp& w, const Op& op) {
  if (!converge(w, op, all_members(w, op.r[3]))) return Step::kSwitch;
  check_own_membership(w, op, op.r[3]);
  const T* a = w.at<T>(op.r[2]);
  const uint32_t* masks = w.at<uint32_t>(op.r[3]);
  uint32_t out[32], all = 0;
  for_lanes(w.mask, [&](int lane) {
    bool same = true;
    for_lanes(masks[lane] & w.mask, [&](int other) { same &= a[other] == a[lane]; });
    out[lane] = same ? masks[lane] & w.mask : 0;
    all |= static_cast<uint32_t>(same) << lane;
  });
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = out[lane]; });
  w.set_predicate(op.r[1], all);
  return Step::kNext;
}

// The lane's own value is an operand, too, and the only one where it is alone.
template <class T, auto F, bool kAlone = false>
Step reduce(Warp& w, const Op& op) {
  if (!converge(w, op, all_members(w, op.r[2]))) return Step::kSwitch;
  check_own_membership(w, op, op.r[2]);
  const uint32_t* a = w.at<uint32_t>(op.r[1]);
  const uint32_t* masks = w.at<uint32_t>(op.r[2]);
  uint32_t out[32];
  for_lanes(w.mask, [&](int lane) {
    T sum = static_cast<T>(a[lane]);
    for_lanes(masks[lane] & w.mask & ~(kAlone ? 0 : 1u << lane),
              [&](int other) { sum = F(sum, static_cast<T>(a[other])); });
    out[lane] = static_cast<uint32_t>(sum);
  });
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = out[lane]; });
  return Step::kNext;
}

template <class T>
Bound ordered_reduction(int which) {
  if (which == 1) return code(reduce<T, [](T x, T y) { return std::min(x, y); }>);
  return code(reduce<T, [](T x, T y) { return std::max(x, y); }>);
}

template <bool kMax, bool kNan, bool kAbs>
uint32_t extreme_of_floats(uint32_t x, uint32_t y) {
  constexpr uint32_t kMagnitude = kAbs ? 0x7fffffff : UINT32_MAX;
  const auto value = [](uint32_t bits) { return std::bit_cast<float>(bits & kMagnitude); };
  return std::bit_cast<uint32_t>(num::canonical(num::extreme<kMax, kNan>(value(x), value(y))));
}

template <bool kMax>
Bound float_reduction(bool nan, bool absolute) {
  return with_flags(nan, absolute, []<bool Nan, bool Abs>() {
    return code(reduce<uint32_t, extreme_of_floats<kMax, Nan, Abs>, true>);
  });
}

template <bool kObserved>
Step sync_warp(Warp& w, const Op& op) {
  const uint32_t members = all_members(w, op.r[0]);
  if (!converge(w, op, members)) return Step::kSwitch;
  check_own_membership(w, op, op.r[0]);
  if constexpr (kObserved) {
    const WarpSyncEvent e{id_of(w), op.instruction, members, nullptr};
    notify(w, [&](Probe& p) { p.warp_sync(e); });
  }
  return Step::kNext;
}

template <Shuffle kMode>
Bound bind_shuffle() {
  return {shuffle<kMode, false>, shuffle<kMode, true>, 0};
}

}  // namespace

Bound shfl(Modifiers& m) {
  switch (static_cast<Shuffle>(m.choice({"up", "down", "bfly", "idx"}))) {
    case Shuffle::kUp:
      return bind_shuffle<Shuffle::kUp>();
    case Shuffle::kDown:
      return bind_shuffle<Shuffle::kDown>();
    case Shuffle::kButterfly:
      return bind_shuffle<Shuffle::kButterfly>();
    case Shuffle::kIndex:
      return bind_shuffle<Shuffle::kIndex>();
  }
  return {};
}

Bound vote(Modifiers& m) {
  switch (m.choice({"all", "any", "uni", "ballot"})) {
    case 0:
      return code(take_vote<Vote::kAll>);
    case 1:
      return code(take_vote<Vote::kAny>);
    case 2:
      return code(take_vote<Vote::kUni>);
    default:
      return code(take_vote<Vote::kBallot>);
  }
}

Bound match(Modifiers& m) {
  const bool all = m.flag("all");
  const bool wide = m.type() == Type::kB64;
  if (all) return wide ? code(match_all<uint64_t>) : code(match_all<uint32_t>);
  return wide ? code(match_any<uint64_t>) : code(match_any<uint32_t>);
}

Bound redux(Modifiers& m) {
  const int which = m.choice({"add", "min", "max", "and", "or", "xor"});
  const bool absolute = m.flag("abs"), nan = m.flag("NaN");
  const Type type = m.type();
  if (type == Type::kF32)
    return which == 2 ? float_reduction<true>(nan, absolute)
                      : float_reduction<false>(nan, absolute);
  const bool is_signed = type == Type::kS32;
  switch (which) {
    case 0:
      return code(reduce<uint32_t, [](uint32_t x, uint32_t y) { return x + y; }>);
    case 3:
      return code(reduce<uint32_t, [](uint32_t x, uint32_t y) { return x & y; }>);
    case 4:
      return code(reduce<uint32_t, [](uint32_t x, uint32_t y) { return x | y; }>);
    case 5:
      return code(reduce<uint32_t, [](uint32_t x, uint32_t y) { return x ^ y; }>);
    default:
      return is_signed ? ordered_reduction<int32_t>(which) : ordered_reduction<uint32_t>(which);
  }
}

Bound activemask(Modifiers&) {
  return code([](Warp& w, const Op& op) {
    uint32_t* d = w.at<uint32_t>(op.r[0]);
    for_lanes(w.mask, [&](int i) { d[i] = w.mask; });
    return Step::kNext;
  });
}

Bound bar_warp_sync(Modifiers&) {
  return {sync_warp<false>, sync_warp<true>};
}

}  // namespace ptxvm::ops
