// SPDX-License-Identifier: MIT
// A kernel as one card would run it, from the compiler's report alone: a row of an occupancy file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/results/row.h"

namespace fa {

/// Blocks on an SM that each resource alone would allow.
struct BlocksAllowed {
  FA_FIELDS(BlocksAllowed);
  FA_FIELD(int, registers, 0, "");
  FA_FIELD(int, shared_memory, 0, "", .key = "shared memory");
  FA_FIELD(int, warps, 0, "");
  FA_FIELD(int, blocks, 0, "");
};

struct OccupancyRow {
  FA_FIELDS(OccupancyRow);
  FA_FIELD(std::string, id, {}, "", .rules = kSomeText);
  FA_FIELD(std::string, variant, {}, "Tile.",
           .rules = R"({"pattern": "^[0-9]+x[0-9]+w[0-9]+(-[a-z]+)?$"})");
  FA_FIELD(std::string, entry, {}, "", .rules = R"({"pattern": "^fa_"})");
  FA_FIELD(bool, ablation, false, "True: not the rung's own tile.");
  FA_FIELD(int, head_dim, 0, "", .least = 1);
  FA_FIELD(int, sm, 0, "Compute capability x 10.", .least = 80);
  FA_FIELD(int, threads, 0, "Of a block.", .least = 32);
  FA_FIELD(int, registers, 0, "Of a thread.", .least = 1);
  FA_FIELD(std::int64_t, spill_bytes, 0, "Stores and loads, by ptxas.");
  FA_FIELD(std::size_t, shared_bytes, 0, "Static and dynamic, a block.");
  FA_FIELD(BlocksAllowed, blocks_allowed, {},
           "Blocks on an SM that each resource alone would allow.");
  FA_FIELD(int, blocks_per_sm, 0, "The least of them.");
  FA_FIELD(std::vector<Limit>, limited_by, {}, "",
           .rules = R"({"type": "array", "uniqueItems": true})");
};

/// The whole document.
Json occupancy_document(const Json& generator, std::span<const OccupancyRow> rows);

}  // namespace fa
