// SPDX-License-Identifier: MIT
#include "exec/poison.h"

#include "exec/fault.h"
#include "exec/registers.h"

namespace ptxvm {
namespace {

// How poison goes through an instruction.
enum class Path {
  kLanes,    ///< Lane by lane.
  kWarp,     ///< Each lane's result depends on all lanes.
  kShuffle,  ///< See shuffle_poison.
  kUse,      ///< It has an effect.
};

Path path_of(CountClass c) {
  switch (c) {
    case CountClass::kInteger:
    case CountClass::kFloat:
    case CountClass::kHalf:
    case CountClass::kDouble:
    case CountClass::kExp:
    case CountClass::kSpecial:
    case CountClass::kConvert:
    case CountClass::kCompare:
    case CountClass::kMove:
      return Path::kLanes;
    case CountClass::kVote:
    case CountClass::kTensor:
      return Path::kWarp;
    case CountClass::kShuffle:
      return Path::kShuffle;
    default:
      return Path::kUse;
  }
}

Poison poison_of(const Warp& w, Ref ref) {
  const auto found = w.poison.find(ref & ~kRefFlags);
  return found == w.poison.end() ? Poison{} : found->second;
}

void set_poison(Warp& w, Ref ref, uint32_t lanes, const Poison& p) {
  ref &= ~kRefFlags;
  if (p.lanes == 0 && !w.poison.contains(ref)) return;
  Poison& old = w.poison[ref];
  old.lanes = (old.lanes & ~lanes) | p.lanes;
  if (p.lanes != 0) old.instruction = p.instruction;
  if (old.lanes == 0) w.poison.erase(ref);
  if (w.poison.empty()) {
    w.checks &= static_cast<uint8_t>(~kCheckPoison);
  } else {
    w.checks |= kCheckPoison;
  }
}

[[noreturn]] void raise_use(const Warp& w, const Op& op, const Poison& p) {
  const InstructionInfo& shuffle = w.cta->launch->program->instructions[p.instruction];
  raise(w, op, FaultKind::kDivergence, __builtin_ctz(p.lanes),
        "this uses what " + std::string(shuffle.opcode) + " at line " +
            std::to_string(shuffle.line) + " took from a lane that does not take part in it");
}

// selp takes one of two values: the other may be anything.
Poison selected(Warp& w, const Op& op) {
  const uint32_t chosen = w.predicate(op.r[3]);
  const Poison a = poison_of(w, op.r[1]), b = poison_of(w, op.r[2]), p = poison_of(w, op.r[3]);
  const Poison& any = a.lanes & chosen ? a : b.lanes & ~chosen ? b : p;
  return {((a.lanes & chosen) | (b.lanes & ~chosen) | p.lanes) & w.mask, any.instruction};
}

}  // namespace

void follow_poison(Warp& w, const Op& op) {
  if (op.guard == kAddedOp) return;
  const Program& program = *w.cta->launch->program;
  const Action action = program.actions[static_cast<size_t>(&op - w.code)];
  const Path path = path_of(program.instructions[op.instruction].count_class);
  Poison in;
  if (op.guard < kNoRef) {
    in = poison_of(w, op.guard);
    in.lanes &= w.active;
    if (in.lanes != 0 && path == Path::kUse) raise_use(w, op, in);
  }
  if (path == Path::kShuffle) return;
  if (action == Action::kInstruction &&
      program.spellings[op.instruction]->tokens[0].text == "selp") {
    const Poison s = selected(w, op);
    in = {in.lanes | s.lanes, s.lanes != 0 ? s.instruction : in.instruction};
  } else {
    for_registers(program, op, action, [&](Ref ref, bool written) {
      const Poison p = poison_of(w, ref);
      if (written || (p.lanes & w.mask) == 0) return;
      in = {in.lanes | (p.lanes & w.mask), p.instruction};
    });
  }
  if (in.lanes != 0 && path == Path::kUse) raise_use(w, op, in);
  if (in.lanes != 0 && path == Path::kWarp) in.lanes = w.mask;
  for_registers(program, op, action, [&](Ref ref, bool written) {
    if (written) set_poison(w, ref, w.mask, in);
  });
}

void shuffle_poison(Warp& w, const Op& op, const uint8_t* from, uint32_t absent) {
  const Poison source = poison_of(w, op.r[2]);
  Poison out{absent, op.instruction};
  for_lanes(w.mask & ~absent, [&](int lane) {
    if (!(source.lanes >> from[lane] & 1)) return;
    out.lanes |= 1u << lane;
    if (absent == 0) out.instruction = source.instruction;
  });
  set_poison(w, op.r[0], w.mask, out);
  set_poison(w, op.r[1], w.mask, {});
}

}  // namespace ptxvm
