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

/// The value of a register that must be the same in all lanes.
template <class T>
T uniform(Warp& w, const Op& op, Ref ref, const char* what) {
  const T* v = w.at<T>(ref);
  for (int lane = 1; lane < 32; ++lane) {
    if (v[lane] != v[0]) {
      raise(w, op, FaultKind::kInvalid, lane, std::string(what) + " differs between lanes");
    }
  }
  return v[0];
}

/// `0x0000ffff`
std::string hex(uint64_t value, int digits);

}  // namespace ptxvm
