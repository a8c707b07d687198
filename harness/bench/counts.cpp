#include "harness/bench/counts.h"

namespace fa {

Json counts_json(const ptxvm::Counts& counts) {
  Json json{{"instructions", counts.total_instructions()}};
  for (const Measure& each : measures(counts)) {
    if (each.value != 0) json[each.key] = each.value;
  }
  return json;
}

}  // namespace fa
