// SPDX-License-Identifier: MIT
// Stops a launch with a message that points at the instruction.
#pragma once

#include <string>
#include <vector>

#include "exec/warp.h"

namespace ptxvm {

/// Travels from an operation to the launch.
struct FaultError {
  Fault fault;
};

[[noreturn]] void raise(const Warp& w, uint32_t instruction, FaultKind kind, int lane,
                        std::string message, const std::vector<std::string>& notes = {});
[[noreturn]] inline void raise(const Warp& w, const Op& op, FaultKind kind, int lane,
                               std::string message) {
  raise(w, op.instruction, kind, lane, std::move(message));
}

/// For instructions with .aligned: the needed lanes do not execute together.
/// `only lanes 0x0000ffff execute this; lanes 0xffffffff must, together`
std::string not_converged(uint32_t lanes, uint32_t needed);
[[noreturn]] void raise_not_converged(const Warp& w, const Op& op, uint32_t needed);

inline void require_all_lanes(const Warp& w, const Op& op) {
  if (w.mask != kAllLanes) [[unlikely]]
    raise_not_converged(w, op, kAllLanes);
}

/// `0x0000ffff`
std::string hex(uint64_t value, int digits);

}  // namespace ptxvm
