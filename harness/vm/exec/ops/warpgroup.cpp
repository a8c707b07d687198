// SPDX-License-Identifier: MIT
// Instructions that kernels of warps with different roles need: elect.sync (PTX ISA 9.7.13.14) and
// setmaxnreg (9.7.19.5).
#include "exec/converge.h"
#include "exec/ops/lanes.h"

namespace ptxvm::ops {
namespace {

// The leader is the lowest member, as on hardware.
Step elect_one(Warp& w, const Op& op) {
  const uint32_t* masks = w.at<uint32_t>(op.r[2]);
  const uint32_t members = masks[__builtin_ctz(w.mask)];
  if (!converge(w, op, members)) return Step::kSwitch;
  for_lanes(w.mask, [&](int lane) {
    if (masks[lane] != members || !(members >> lane & 1)) {
      raise(w, op, FaultKind::kDivergence, lane,
            "the lane's member mask is " + hex(masks[lane], 8) + ", that of the others " +
                hex(members, 8));
    }
  });
  const auto leader = static_cast<uint32_t>(__builtin_ctz(members & w.live));
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = leader; });
  w.set_predicate(op.r[1], 1u << leader);
  return Step::kNext;
}

// Registers do not limit anything here; only the sums are checked, which hardware makes warps wait
// for.
template <bool kIncreases>
Step change_registers(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const uint32_t wanted = op.r[0], have = w.registers;
  if (kIncreases ? wanted < have : wanted > have) {
    raise(w, op, FaultKind::kInvalid, -1,
          "the warp has " + std::to_string(have) + " registers a thread, which cannot " +
              (kIncreases ? "increase" : "decrease") + " to " + std::to_string(wanted));
  }
  uint32_t& free = w.cta->async.free_registers;
  if (kIncreases && free < (wanted - have) * 32) return Step::kRetry;
  free += have * 32 - wanted * 32;
  w.registers = wanted;
  return Step::kNext;
}

}  // namespace

Bound elect(Modifiers&) {
  return code(elect_one);
}

Bound setmaxnreg(Modifiers& m) {
  return m.choice({"inc", "dec"}) == 0 ? code(change_registers<true>)
                                       : code(change_registers<false>);
}

}  // namespace ptxvm::ops
