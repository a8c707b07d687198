// SPDX-License-Identifier: MIT
#include "exec/interpreter.h"

#include "exec/async.h"
#include "exec/fault.h"
#include "exec/poison.h"

namespace ptxvm {
namespace {

uint32_t instruction_at(const Warp& w, uint32_t pc) {
  return w.code[pc].instruction;
}

[[noreturn]] void raise_all_parked(Warp& w) {
  const Fragment& f = w.fragments.front();
  const isa::Spelling* spelling = w.cta->launch->program->spellings[instruction_at(w, f.pc)];
  const bool all = spelling && spelling->row->lanes == isa::Lanes::kAll;
  const bool live = spelling && spelling->row->lanes == isa::Lanes::kLive;
  std::string text = all || live
                         ? not_converged(f.mask, all ? kAllLanes : w.live)
                         : "lanes " + hex(f.mask, 8) + " wait here for lanes that do not come";
  for (size_t i = 1; i < w.fragments.size(); ++i) {
    const Kernel kernel(w.cta->launch->program);
    text += "; lanes " + hex(w.fragments[i].mask, 8) + " wait at line " +
            std::to_string(kernel.instructions()[instruction_at(w, w.fragments[i].pc)].line);
  }
  raise(w, instruction_at(w, f.pc), FaultKind::kDivergence, -1, std::move(text));
}

// Index of the fragment with the lowest position that can run; -1 when all are parked.
int lowest_runnable(const Warp& w) {
  int best = -1;
  for (size_t i = 0; i < w.fragments.size(); ++i) {
    if (w.fragments[i].parked) continue;
    if (best < 0 || w.fragments[i].pc < w.fragments[static_cast<size_t>(best)].pc) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

void take(Warp& w, int index) {
  const auto i = static_cast<size_t>(index);
  w.active = w.fragments[i].mask;
  w.pc = w.fragments[i].pc;
  w.fragments.erase(w.fragments.begin() + index);
}

}  // namespace

bool merge_or_yield(Warp& w, uint32_t pc) {
  for (size_t i = 0; i < w.fragments.size();) {
    if (w.fragments[i].pc == pc && !w.fragments[i].parked) {
      w.active |= w.fragments[i].mask;
      w.fragments.erase(w.fragments.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  const int lowest = w.hold ? -1 : lowest_runnable(w);
  if (lowest < 0 || w.fragments[static_cast<size_t>(lowest)].pc > pc) return false;
  const uint32_t mask = w.active;
  take(w, lowest);
  w.fragments.push_back({pc, mask, false});
  return true;
}

void run_lowest_fragment(Warp& w) {
  const int lowest = lowest_runnable(w);
  if (lowest < 0) raise_all_parked(w);
  take(w, lowest);
}

Step end_turn(Warp& w) {
  if (w.hold) {
    w.hold = false;
    return Step::kYield;
  }
  rotate_fragments(w);
  return Step::kYield;
}

bool rotate_fragments(Warp& w) {
  for (size_t i = 0; i < w.fragments.size(); ++i) {
    if (w.fragments[i].parked) continue;
    const Fragment mine{w.pc, w.active, false};
    take(w, static_cast<int>(i));
    w.fragments.push_back(mine);
    w.hold = true;
    return true;
  }
  return false;
}

namespace {

void check_registers(Warp& w, const Op& op) {
  if (w.checks & kCheckBusy) check_busy_registers(w, op);
  if (w.checks & kCheckPoison) follow_poison(w, op);
}

// kEach reports every instruction; the operations themselves were chosen at launch.
template <bool kEach>
void run(Warp& w) {
  const Op* const code = w.code;
  const Op* op = code + w.pc;
  w.blocks_left = kBlocksPerTurn;
  w.polled = Poll::kNo;
  for (;;) {
    uint32_t mask = w.active;
    if (op->guard < kNoRef) {
      mask &= w.predicate(op->guard);
      if (mask == 0) {
        if (w.checks & kCheckPoison) [[unlikely]] {
          w.mask = 0;
          follow_poison(w, *op);
        }
        if constexpr (kEach) {
          const InstructionEvent e{id_of(w), op->instruction, 0};
          notify(w, [&](Probe& p) { p.instruction(e); });
        }
        ++op;
        continue;
      }
    }
    w.mask = mask;
    if constexpr (kEach) {
      // Operations that the lowering added belong to no instruction.
      if (op->guard != kAddedOp) {
        const InstructionEvent e{id_of(w), op->instruction, mask};
        notify(w, [&](Probe& p) { p.instruction(e); });
      }
    }
    if (w.checks != 0) [[unlikely]]
      check_registers(w, *op);
    switch (op->fn(w, *op)) {
      case Step::kNext:
        ++op;
        break;
      case Step::kJump:
        op = code + w.pc;
        break;
      case Step::kBlocked:
        w.pc = static_cast<uint32_t>(op - code) + 1;
        return;
      case Step::kRetry:
        w.pc = static_cast<uint32_t>(op - code);
        w.status = WarpStatus::kPolling;
        return;
      case Step::kYield:
        return;
      case Step::kSwitch: {
        w.fragments.push_back({static_cast<uint32_t>(op - code), w.active, true});
        w.active = 0;
        run_lowest_fragment(w);
        op = code + w.pc;
        break;
      }
      case Step::kExit:
        w.status = WarpStatus::kExited;
        return;
    }
  }
}

}  // namespace

void run_turn(Warp& w) {
  if (w.cta->launch->every_instruction) {
    run<true>(w);
  } else {
    run<false>(w);
  }
}

}  // namespace ptxvm
