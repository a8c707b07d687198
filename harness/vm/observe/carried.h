// SPDX-License-Identifier: MIT
// Values that a kernel loads only to store them again.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program/program.h"

namespace ptxvm::observe {

/// Loads whose value goes, whole or as a part of a word, to stores and nowhere else. Code for a
/// debugger copies objects so, with the bytes between their members and with members that nobody
/// has set, and sets a bit-field so in a word that has no value yet.
class Carried {
 public:
  explicit Carried(const Program& program);

  /// Whether a load is one of those.
  bool only_stored(uint32_t load) const { return carried_.contains(load); }
  /// The loads of that kind whose values a store may write; null where there are none.
  const std::vector<uint32_t>* loads_of(uint32_t store) const {
    const auto found = loads_.find(store);
    return found == loads_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_set<uint32_t> carried_;                       // by instruction
  std::unordered_map<uint32_t, std::vector<uint32_t>> loads_;  // by instruction
};

}  // namespace ptxvm::observe
