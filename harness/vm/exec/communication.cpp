// SPDX-License-Identifier: MIT
#include "exec/communication.h"

#include <algorithm>
#include <unordered_set>

#include "program/registers.h"

namespace ptxvm {
namespace {

// A loop that only waits is short.
constexpr uint64_t kPollSteps = 256;

// Registers that some instruction reads, guards included.
std::unordered_set<Ref> read_registers(const Program& program) {
  std::unordered_set<Ref> out;
  for (size_t i = 0; i < program.plain.size(); ++i) {
    const Op& op = program.plain[i];
    if (op.guard == kAddedOp) continue;
    if (op.guard < kNoRef) out.insert(op.guard & ~kRefFlags);
    for_registers(program, op, program.actions[i], [&](Ref ref, bool written) {
      if (!written) out.insert(ref);
    });
  }
  return out;
}

}  // namespace

bool communicates(const Program& program) {
  std::unordered_set<Ref> read;
  for (size_t i = 0; i < program.plain.size(); ++i) {
    if (program.actions[i] != Action::kInstruction) continue;
    const Op& op = program.plain[i];
    const isa::Spelling& s = *program.spellings[op.instruction];
    if (s.space != Space::kGlobal && s.space != Space::kGeneric) continue;
    if (s.traits().load && s.refetches) return true;
    if (!s.traits().atomic) continue;
    // Sums of floats depend on their order; what cas and exch leave behind does too.
    if (s.compares || s.exchanges || kind(s.type) == TypeKind::kFloat) return true;
    if (s.operands[0].role != isa::Role::kWrite) continue;  // no result
    if (read.empty()) read = read_registers(program);
    if (read.contains(op.list[0] & ~kRefFlags)) return true;
  }
  return false;
}

bool cancels_clusters(const Program& program) {
  const auto cancels = [](const isa::Spelling* s) { return s && s->traits().cancels; };
  return std::any_of(program.spellings.begin(), program.spellings.end(), cancels);
}

void note_poll(Warp& w, const Op& op, Space space, uint32_t lanes, uint32_t bytes,
               const Request& request) {
  if (!w.cta->launch->communicates && space == Space::kGlobal) return;
  uint64_t hash = lanes;
  auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for_lanes(lanes, [&](int lane) {
    uint64_t value[2] = {0, 0};
    std::memcpy(value, request.host[lane], std::min<size_t>(bytes, sizeof value));
    mix(request.wide[lane]);
    mix(value[0]);
    mix(value[1]);
  });
  Warp::Answer& last = w.answers[static_cast<size_t>(&op - w.code) % w.answers.size()];
  const bool same = last.op == &op && last.hash == hash && w.steps - last.steps <= kPollSteps;
  last = {&op, hash, w.steps};
  if (!same) return;
  w.polled = space == Space::kGlobal ? Poll::kGrid : Poll::kCluster;
  w.poll_instruction = op.instruction;
  w.blocks_left = 1;
}

}  // namespace ptxvm
