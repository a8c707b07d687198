// SPDX-License-Identifier: MIT
#include "harness/results/counts.h"

namespace fa {

RowCounts row_counts(const ptxvm::Counts& counts) {
  RowCounts list{{"instructions", counts.total_instructions()}};
  for (const Measure& each : measures(counts)) {
    if (each.value != 0) list.emplace_back(each.key, each.value);
  }
  return list;
}

}  // namespace fa
