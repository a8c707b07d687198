// SPDX-License-Identifier: MIT
// A kernel as one card would run it, from the compiler's report alone: a row of an occupancy file
// (occupancy.schema.json beside this file).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/environment/occupancy.h"
#include "harness/results/json.h"

namespace fa {

struct OccupancyRow {
  std::string id, variant, entry;
  bool ablation = false;  ///< not the rung's own tile
  int head_dim = 0;
  int sm = 0;  ///< compute capability x 10
  BlockNeeds needs;
  std::int64_t spill_bytes = 0;  ///< stores and loads
  Occupancy allowed;
};

Json to_json(const OccupancyRow& row);

/// The whole document.
Json occupancy_document(const Json& generator, std::span<const OccupancyRow> rows);

}  // namespace fa
