// SPDX-License-Identifier: MIT
#include "observe/handed_on.h"

#include <unordered_map>

#include "program/registers.h"

namespace ptxvm::observe {
namespace {

// Of a register, worst last: it has nothing of the load, it has, by way of a shuffle.
enum Reach : uint8_t { kNot, kOwn, kShuffled };

bool computes(const Program& program, size_t i) {
  const Action a = program.actions[i];
  return program.observed[i].guard != kAddedOp &&
         (a == Action::kInstruction || a == Action::kFrameAccess || a == Action::kPack);
}

}  // namespace

bool HandedOn::reaches(uint32_t load, uint32_t store) {
  const auto [at, is_new] = known_.try_emplace({load, store});
  if (is_new) at->second = find_out(load, store);
  return at->second;
}

bool HandedOn::find_out(uint32_t load, uint32_t store) const {
  std::unordered_map<Ref, Reach> reach;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < program_.observed.size(); ++i) {
      if (!computes(program_, i)) continue;
      const Op& op = program_.observed[i];
      Reach most = kNot;
      const auto read = [&](Ref ref) {
        const auto found = reach.find(ref);
        if (found != reach.end()) most = std::max(most, found->second);
      };
      if (op.guard < kNoRef) read(op.guard & ~kRefFlags);
      for_registers(program_, op, program_.actions[i], [&](Ref ref, bool written) {
        if (!written) read(ref);
      });
      if (op.instruction == store && most == kShuffled) return true;
      if (op.instruction == load) most = std::max(most, kOwn);
      if (most == kNot) continue;
      if (program_.instructions[op.instruction].count_class == CountClass::kShuffle) {
        most = kShuffled;
      }
      for_registers(program_, op, program_.actions[i], [&](Ref ref, bool written) {
        if (!written || reach[ref] >= most) return;
        reach[ref] = most;
        changed = true;
      });
    }
  }
  return false;
}

}  // namespace ptxvm::observe
