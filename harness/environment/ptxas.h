// SPDX-License-Identifier: MIT
// What ptxas said of the kernels when they were built.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace fa {

/// One entry point in the report of ptxas.
struct PtxasEntry {
  int registers = 0;
  int spill_stores = 0;  ///< bytes
  int spill_loads = 0;   ///< bytes
  int stack = 0;
  int static_shared = 0;  ///< bytes

  int spill_bytes() const { return spill_stores + spill_loads; }
};

/// ptxas on this entry point, compiled for this device; nothing where the report is missing.
std::optional<PtxasEntry> ptxas_entry(const std::string& entry, int sm);

/// The same from the text of a report; for tests.
std::optional<PtxasEntry> find_ptxas_entry(const nlohmann::ordered_json& report,
                                           const std::string& entry, int sm);

}  // namespace fa
