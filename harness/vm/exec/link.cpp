// SPDX-License-Identifier: MIT
#include "exec/link.h"

#include "exec/bind.h"

namespace ptxvm {
namespace {

Bound code_of(const Program& program, Action action, const Op& op) {
  switch (action) {
    case Action::kInstruction:
      return bind(*program.spellings[op.instruction]);
    case Action::kPack:
      return bind_pack(op.aux.as<PackShape>());
    case Action::kEnterBlock:
      return bind_block_marker();
    case Action::kJump:
      return bind_jump();
    case Action::kExit:
      return bind_exit();
    case Action::kCall:
      return bind_call();
    case Action::kReturn:
      return bind_return();
    case Action::kFrameAccess:
      return bind_frame_access(*program.spellings[op.instruction]);
    case Action::kRefresh:
      return bind_refresh(op.aux.as<isa::Special>());
  }
  return {};
}

}  // namespace

void link(Program& program) {
  for (size_t i = 0; i < program.plain.size(); ++i) {
    const Bound bound = code_of(program, program.actions[i], program.plain[i]);
    program.plain[i].fn = bound.plain;
    program.observed[i].fn = bound.observed ? bound.observed : bound.plain;
    program.plain[i].aux = program.observed[i].aux = bound.aux;
  }
}

}  // namespace ptxvm
