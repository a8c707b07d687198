// SPDX-License-Identifier: MIT
#include "harness/results/occupancy_row.h"

#include "harness/results/results.h"

namespace fa {

Json to_json(const OccupancyRow& row) {
  Json limited_by = Json::array();
  for (const Limit limit : row.allowed.limits) limited_by.push_back(to_string(limit));
  return {{"id", row.id},
          {"variant", row.variant},
          {"entry", row.entry},
          {"ablation", row.ablation},
          {"head_dim", row.head_dim},
          {"sm", row.sm},
          {"threads", row.needs.threads},
          {"registers", row.needs.registers},
          {"spill_bytes", row.spill_bytes},
          {"shared_bytes", row.needs.shared},
          {"blocks_allowed",
           {{"registers", row.allowed.by_registers},
            {"shared memory", row.allowed.by_shared_memory},
            {"warps", row.allowed.by_warps},
            {"blocks", row.allowed.by_blocks}}},
          {"blocks_per_sm", row.allowed.blocks},
          {"limited_by", std::move(limited_by)}};
}

Json occupancy_document(const Json& generator, std::span<const OccupancyRow> rows) {
  Json document{{"schema", kResultsSchema}, {"kind", "occupancy"}, {"generator", generator}};
  document["rows"] = Json::array();
  for (const OccupancyRow& row : rows) document["rows"].push_back(to_json(row));
  return document;
}

}  // namespace fa
