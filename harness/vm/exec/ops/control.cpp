// SPDX-License-Identifier: MIT
// Branches, exit, and the operations that the lowering adds (PTX ISA 9.7.12, 9.7.19).
#include <algorithm>

#include "exec/fault.h"
#include "exec/interpreter.h"
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

uint32_t position(const Warp& w, const Op& op) {
  return static_cast<uint32_t>(&op - w.code);
}

// Lanes that are at the start of a block meet here, and the lanes with the smallest position run:
// with blocks in topological order nobody behind can still come to where they are.
template <bool kObserved>
Step enter_block(Warp& w, const Op& op) {
  if (!w.fragments.empty()) [[unlikely]] {
    if (merge_or_yield(w, position(w, op))) return Step::kJump;
  }
  if constexpr (kObserved) {
    const BlockEvent e{id_of(w), op.r[0], w.active};
    notify(w, [&](Probe& p) { p.block(e); });
  }
  w.steps += op.r[1];
  if (--w.blocks_left == 0) [[unlikely]] {
    w.pc = position(w, op) + 1;
    return end_turn(w);
  }
  return Step::kNext;
}

Step jump(Warp& w, const Op& op) {
  w.pc = op.r[0];
  return Step::kJump;
}

Step branch(Warp& w, const Op& op) {
  const uint32_t target = op.r[0], next = position(w, op) + 1;
  const uint32_t rest = w.active & ~w.mask;
  if (rest == 0) {
    w.pc = target;
    return Step::kJump;
  }
  // Lanes that do not branch go on at `next`. The lower position first.
  if (target < next) {
    w.fragments.push_back({next, rest, false});
    w.active = w.mask;
    w.pc = target;
  } else {
    w.fragments.push_back({target, w.mask, false});
    w.active = rest;
    w.pc = next;
  }
  return Step::kJump;
}

// brx.idx: operands are the index, how many targets there are, and the targets.
Step branch_indexed(Warp& w, const Op& op) {
  const uint32_t* const index = w.at<uint32_t>(op.r[0]);
  const uint32_t count = op.r[1], rest = w.active & ~w.mask;
  if (rest != 0) w.fragments.push_back({position(w, op) + 1, rest, false});
  for (uint32_t open = w.mask; open != 0;) {
    const uint32_t chosen = index[__builtin_ctz(open)];
    if (chosen >= count) {
      raise(w, op, FaultKind::kInvalid, __builtin_ctz(open),
            "the index is " + std::to_string(chosen) + "; there are " + std::to_string(count) +
                " targets");
    }
    uint32_t same = 0;
    for_lanes(open, [&](int lane) {
      if (index[lane] == chosen) same |= 1u << lane;
    });
    w.fragments.push_back({op.list[2 + chosen], same, false});
    open &= ~same;
  }
  w.active = 0;
  run_lowest_fragment(w);
  return Step::kJump;
}

Step leave(Warp& w, const Op&) {
  const uint32_t leaving = w.mask;
  w.live &= ~leaving;
  w.cta->live_threads -= static_cast<uint32_t>(__builtin_popcount(leaving));
  w.active &= ~leaving;
  // Who waits for these lanes at a collective need not any more.
  for (Fragment& f : w.fragments) f.parked = false;
  if (w.active != 0) return Step::kNext;
  if (!w.fragments.empty()) {
    run_lowest_fragment(w);
    return Step::kJump;
  }
  return Step::kExit;
}

// A moving special register is read: op.r[0] its slot, op.r[1] the instruction's place in its
// block.
template <bool kHigh>
Step refresh_clock(Warp& w, const Op& op) {
  const uint64_t now = w.steps + op.r[1];
  if (op.r[0] & kRefWide) {
    uint64_t* d = w.at<uint64_t>(op.r[0]);
    for (int i = 0; i < 32; ++i) d[i] = now;
  } else {
    uint32_t* d = w.at<uint32_t>(op.r[0]);
    for (int i = 0; i < 32; ++i) d[i] = static_cast<uint32_t>(kHigh ? now >> 32 : now);
  }
  return Step::kNext;
}

}  // namespace

Bound bind_block_marker() {
  return {enter_block<false>, enter_block<true>};
}
Bound bind_jump() {
  return {jump, jump, 0};
}

Bound bind_exit() {
  return ops::code(leave);
}

Bound bind_refresh(isa::Special special) {
  const bool high = special == isa::Special::kClockHi || special == isa::Special::kGlobaltimerHi;
  return high ? ops::code(refresh_clock<true>) : ops::code(refresh_clock<false>);
}

namespace ops {

Bound bra(Modifiers& m) {
  if (m.flag("uni")) {
    return code([](Warp& w, const Op& op) {
      if (w.mask != w.active) {
        raise(w, op, FaultKind::kDivergence, -1,
              "bra.uni is taken by lanes " + hex(w.mask, 8) + " of " + hex(w.active, 8));
      }
      return branch(w, op);
    });
  }
  return code(branch);
}

Bound brx(Modifiers& m) {
  if (!m.flag("uni")) return code(branch_indexed);
  return code([](Warp& w, const Op& op) {
    const uint32_t* const index = w.at<uint32_t>(op.r[0]);
    const uint32_t first = index[__builtin_ctz(w.mask)];
    bool same = w.mask == w.active;
    for_lanes(w.mask, [&](int lane) { same &= index[lane] == first; });
    if (!same) raise(w, op, FaultKind::kDivergence, -1, "lanes go different ways at brx.idx.uni");
    return branch_indexed(w, op);
  });
}

Bound exit(Modifiers& m) {
  m.flag("uni");
  return code(leave);
}

Bound trap(Modifiers& m) {
  (void)m;
  return code([](Warp& w, const Op& op) -> Step {
    const LaunchState& launch = *w.cta->launch;
    const auto& used = launch.program->specials;
    const bool grid = std::any_of(used.begin(), used.end(), [](const SpecialSlot& s) {
      return s.row->id == isa::Special::kEnvreg2;
    });
    raise(w, op, FaultKind::kTrap, __builtin_ctz(w.mask),
          grid && launch.grid_workspace == 0
              ? "the kernel trapped; its grid can only meet in a cooperative launch"
              : "the kernel trapped");
  });
}

// A sleeping warp gives the others their turn.
Bound nanosleep(Modifiers&) {
  return code([](Warp& w, const Op&) {
    w.blocks_left = 1;
    return Step::kNext;
  });
}

Bound hint(Modifiers& m) {
  m.choice({"global", "local"});
  m.choice({"L1", "L2"});
  m.choice({"launch_dependents", "wait"});
  m.ignore_cache_hints();
  return code([](Warp&, const Op&) { return Step::kNext; });
}

}  // namespace ops
}  // namespace ptxvm
