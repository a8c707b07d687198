// SPDX-License-Identifier: MIT
// Values that lanes give each other by shfl.sync.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "program/program.h"

namespace ptxvm::observe {

/// What a store may depend on, in its value, its address or its guard. No order of instructions is
/// looked at.
class HandedOn {
 public:
  explicit HandedOn(const Program& program) : program_(program) {}

  /// Whether it may depend on what a load has read and a shuffle has handed on.
  bool reaches(uint32_t load, uint32_t store);

 private:
  bool find_out(uint32_t load, uint32_t store) const;

  const Program& program_;
  std::map<std::pair<uint32_t, uint32_t>, bool> known_;  // by instructions
};

}  // namespace ptxvm::observe
