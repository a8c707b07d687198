// SPDX-License-Identifier: MIT
#include "observe/carried.h"

#include <algorithm>
#include <utility>

#include "program/registers.h"

namespace ptxvm::observe {
namespace {

// What becomes of the values that a register holds.
struct Fate {
  bool used = false;             // by something else than a store or a copy
  std::vector<uint32_t> stores;  // instructions
  std::vector<Ref> to, from;     // registers that copies of it go to, and come from
};

using Fates = std::unordered_map<Ref, Fate>;

void read_store(const Program& program, const Op& op, Action action, Fates& fates) {
  bool address = true;  // comes first
  for_registers(program, op, action, [&](Ref ref, bool) {
    Fate& fate = fates[ref];
    if (address && ref == (op.list[0] & ~kRefFlags) && !(op.list[0] & kRefPool)) {
      fate.used = true;
    } else {
      fate.stores.push_back(op.instruction);
    }
    address = false;
  });
}

void read_copy(const Program& program, const Op& op, Action action, Fates& fates) {
  std::vector<Ref> read, written;
  for_registers(program, op, action,
                [&](Ref ref, bool writes) { (writes ? written : read).push_back(ref); });
  for (const Ref from : read) {
    for (const Ref to : written) {
      fates[from].to.push_back(to);
      fates[to].from.push_back(from);
    }
  }
}

void read_op(const Program& program, const Op& op, Action action, Fates& fates) {
  if (op.guard < kNoRef) fates[op.guard & ~kRefFlags].used = true;
  if (action == Action::kPack) return read_copy(program, op, action, fates);
  if (action == Action::kCall) {
    const CallSite& site = program.calls[op.r[0]];
    if (site.target != kNoRef) fates[site.target & ~kRefFlags].used = true;
    return;
  }
  if (action != Action::kInstruction && action != Action::kFrameAccess) return;
  const isa::Row& row = *program.spellings[op.instruction]->row;
  if (row.traits.store && row.lanes == isa::Lanes::kAny) {
    return read_store(program, op, action, fates);
  }
  if (row.traits.copy || row.traits.joins) return read_copy(program, op, action, fates);
  for_registers(program, op, action, [&](Ref ref, bool writes) {
    if (!writes) fates[ref].used = true;
  });
}

// A register is used where one is that its value goes to.
void spread(Fates& fates) {
  std::vector<Ref> open;
  for (const auto& [ref, fate] : fates) {
    if (fate.used) open.push_back(ref);
  }
  while (!open.empty()) {
    const Ref ref = open.back();
    open.pop_back();
    for (const Ref from : fates[ref].from) {
      if (!std::exchange(fates[from].used, true)) open.push_back(from);
    }
  }
}

std::vector<uint32_t> stores_behind(Fates& fates, std::vector<Ref> open) {
  std::vector<uint32_t> stores;
  std::unordered_set<Ref> seen;
  while (!open.empty()) {
    const Ref ref = open.back();
    open.pop_back();
    if (!seen.insert(ref).second) continue;
    const Fate& fate = fates[ref];
    stores.insert(stores.end(), fate.stores.begin(), fate.stores.end());
    open.insert(open.end(), fate.to.begin(), fate.to.end());
  }
  std::sort(stores.begin(), stores.end());
  stores.erase(std::unique(stores.begin(), stores.end()), stores.end());
  return stores;
}

}  // namespace

Carried::Carried(const Program& program) {
  if (program.local_bytes == 0) return;
  Fates fates;
  for (size_t i = 0; i < program.observed.size(); ++i) {
    if (program.observed[i].guard == kAddedOp) continue;
    read_op(program, program.observed[i], program.actions[i], fates);
  }
  spread(fates);
  for (size_t i = 0; i < program.observed.size(); ++i) {
    const Op& op = program.observed[i];
    if (program.actions[i] != Action::kInstruction || op.guard == kAddedOp) continue;
    const isa::Row& row = *program.spellings[op.instruction]->row;
    if (!row.traits.load || row.lanes != isa::Lanes::kAny) continue;
    std::vector<Ref> loaded;
    for_registers(program, op, Action::kInstruction, [&](Ref ref, bool writes) {
      if (writes) loaded.push_back(ref);
    });
    const bool used =
        std::any_of(loaded.begin(), loaded.end(), [&](Ref ref) { return fates[ref].used; });
    if (loaded.empty() || used) continue;
    const std::vector<uint32_t> stores = stores_behind(fates, std::move(loaded));
    if (stores.empty()) continue;
    carried_.insert(op.instruction);
    for (const uint32_t store : stores) loads_[store].push_back(op.instruction);
  }
}

}  // namespace ptxvm::observe
