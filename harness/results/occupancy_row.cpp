// SPDX-License-Identifier: MIT
#include "harness/results/occupancy_row.h"

#include "harness/results/results.h"

namespace fa {

Json occupancy_document(const Json& generator, std::span<const OccupancyRow> rows) {
  Json document{{"schema", kResultsSchema}, {"kind", "occupancy"}, {"generator", generator}};
  document["rows"] = Json::array();
  for (const OccupancyRow& row : rows) document["rows"].push_back(to_json(row));
  return document;
}

}  // namespace fa
