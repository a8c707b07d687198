// SPDX-License-Identifier: MIT
#include "exec/fault.h"

#include <cstdio>

namespace ptxvm {

std::string hex(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

void raise(const Warp& w, uint32_t instruction, FaultKind kind, int lane, std::string message,
           const std::vector<std::string>& notes) {
  const Program& program = *w.cta->launch->program;
  FaultError error;
  Fault& f = error.fault;
  f.kind = kind;
  f.message = message;
  f.kernel = program.name;
  f.cta = w.cta->position;
  f.warp = w.index;
  f.lane = lane;
  f.instruction = instruction;
  f.where = Kernel(&program).point_at(instruction, std::move(message));
  std::string who = "kernel " + Kernel(&program).readable_name() + ", block (" +
                    std::to_string(f.cta.x) + ", " + std::to_string(f.cta.y) + ", " +
                    std::to_string(f.cta.z) + "), warp " + std::to_string(w.index);
  if (lane >= 0) who += ", lane " + std::to_string(lane);
  f.where.notes.push_back(std::move(who));
  f.where.notes.insert(f.where.notes.end(), notes.begin(), notes.end());
  throw error;
}

std::string not_converged(uint32_t lanes, uint32_t needed) {
  return "only lanes " + hex(lanes, 8) + " execute this; lanes " + hex(needed, 8) +
         " must, together";
}

void raise_not_converged(const Warp& w, const Op& op, uint32_t needed) {
  raise(w, op, FaultKind::kDivergence, -1, not_converged(w.mask, needed));
}

}  // namespace ptxvm
