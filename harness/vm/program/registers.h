// SPDX-License-Identifier: MIT
// The registers that an operation reads and writes.
#pragma once

#include <algorithm>

#include "isa/table.h"
#include "program/program.h"

namespace ptxvm {

/// Calls f(operand, written) for the registers among the operands of an operation of an
/// instruction.
template <class F>
void for_register_operands(const Program& program, const Op& op, Action action, F f) {
  auto visit = [&](uint32_t ref, bool written) {
    if (ref < kNoRef && !(ref & kRefPool)) f(ref, written);
  };
  if (action == Action::kPack) {
    const auto shape = op.aux.as<PackShape>();
    const int written = std::max<int>(shape.destinations, 1);
    const int end = written + std::max<int>(shape.sources, 1);
    for (int i = 0; i < end; ++i) visit(op.list[i], i < written);
    return;
  }
  const uint32_t* at = op.list;
  for (const isa::OperandSpec& spec : program.spellings[op.instruction]->operands) {
    // These name places in tables, and come last.
    if (spec.kind == isa::OperandKind::kTargets || spec.kind == isa::OperandKind::kFunction) return;
    if (spec.kind == isa::OperandKind::kImmediate || spec.kind == isa::OperandKind::kLabel) {
      ++at;
    } else if (spec.kind == isa::OperandKind::kMemory) {
      visit(*at, false);
      at += 2;
      for (int i = 0; i < spec.coordinates; ++i) visit(*at++, false);
    } else {
      for (int i = 0; i < spec.count + (spec.pair ? 1 : 0); ++i, ++at) {
        if (spec.role != isa::Role::kWrite) visit(*at, false);
        if (spec.role != isa::Role::kRead) visit(*at, true);
      }
      if (spec.parts != 0) ++at;
    }
  }
}

/// The same with the places of the registers, which tell them apart.
template <class F>
void for_registers(const Program& program, const Op& op, Action action, F f) {
  for_register_operands(program, op, action,
                        [&](Ref ref, bool written) { f(ref & ~kRefFlags, written); });
}

}  // namespace ptxvm
