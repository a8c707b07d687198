// SPDX-License-Identifier: MIT
// Tensor maps that a kernel makes or changes (PTX ISA 9.7.9.27 and 9.7.13.17).
#include "memory/tensor_map.h"

#include "exec/access.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

struct Replacement {
  MapField field;
  Space space;
  bool ordinal;   // there is one
  bool constant;  // the value; else a register of 32 or of 64 bits
};

template <bool kObserved>
Step replace(Warp& w, const Op& op) {
  const auto what = op.aux.as<Replacement>();
  const uint32_t ordinal = what.ordinal ? op.r[2] : 0;
  const Ref value = op.r[what.ordinal ? 3 : 2];
  Request request;
  lane_addresses(w, op.r[0], op.r[1], request.wide);
  for_spaces(what.space, w.mask, request, [&](Space where, uint32_t lanes) {
    resolve(w, op, where, lanes, kTensorMapBytes, kTensorMapAlignment, true, request);
    if constexpr (kObserved) {
      report_access(w, op, where, AccessKind::kStore, lanes, kTensorMapBytes, request);
    }
    for_lanes(lanes, [&](int lane) {
      const uint64_t v = what.constant      ? value
                         : value & kRefWide ? w.at<uint64_t>(value)[lane]
                                            : w.at<uint32_t>(value)[lane];
      const char* wrong =
          replace_field({request.host[lane], kTensorMapBytes}, what.field, ordinal, v);
      if (wrong) raise(w, op, FaultKind::kInvalid, lane, wrong);
    });
  });
  return Step::kNext;
}

// The lanes copy four bytes each.
template <bool kObserved>
Step copy(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  Request to, from;
  lane_addresses(w, op.r[0], op.r[1], to.wide);
  lane_addresses(w, op.r[2], op.r[3], from.wide);
  resolve(w, op, Space::kGlobal, 1, kTensorMapBytes, kTensorMapAlignment, true, to);
  resolve(w, op, Space::kShared, 1, kTensorMapBytes, kTensorMapAlignment, false, from);
  for (int lane = 1; lane < 32; ++lane) {
    if (to.wide[lane] != to.wide[0] || from.wide[lane] != from.wide[0]) {
      raise(w, op, FaultKind::kInvalid, lane, "the lanes name other addresses than lane 0 does");
    }
  }
  for (uint32_t lane = 1; lane < 32; ++lane) {
    to.wide[lane] += 4 * lane;
    from.narrow[lane] = from.narrow[0] + 4 * lane;
  }
  if constexpr (kObserved) {
    report_access(w, op, Space::kShared, AccessKind::kLoad, kAllLanes, 4, from);
    report_access(w, op, Space::kGlobal, AccessKind::kStore, kAllLanes, 4, to);
  }
  std::memcpy(to.host[0], from.host[0], kTensorMapBytes);
  return Step::kNext;
}

}  // namespace

namespace ops {

Bound tensormap_replace(Modifiers& m) {
  const int space = m.choice({"global", "shared::cta"});
  const int field =
      m.choice({"global_address", "rank", "box_dim", "global_dim", "global_stride",
                "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"});
  const auto named = static_cast<MapField>(field);
  const bool ordinal = named >= MapField::kBox && named <= MapField::kElementStride;
  const bool constant = named >= MapField::kElement;
  const Space where = space < 0 ? Space::kGeneric : space == 0 ? Space::kGlobal : Space::kShared;
  return {replace<false>, replace<true>, Replacement{named, where, ordinal, constant}};
}

Bound tensormap_copy(Modifiers& m) {
  m.choice({"cta", "cluster", "gpu", "sys"});
  return {copy<false>, copy<true>};
}

}  // namespace ops
}  // namespace ptxvm
