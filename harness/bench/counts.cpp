#include "harness/bench/counts.h"

#include <utility>

namespace fa {
namespace {

void add_shared(std::vector<Measure>& list, const std::string& name,
                const ptxvm::SharedTraffic& traffic) {
  list.push_back({name + "_requests", traffic.requests});
  list.push_back({name + "_wavefronts", traffic.wavefronts});
  list.push_back({name + "_ideal", traffic.ideal});
  list.push_back({name + "_bytes", traffic.bytes});
}

void add_global(std::vector<Measure>& list, const std::string& name,
                const ptxvm::GlobalTraffic& traffic) {
  list.push_back({name + "_requests", traffic.requests});
  list.push_back({name + "_sectors", traffic.sectors});
  list.push_back({name + "_bytes", traffic.bytes});
}

void add_bulk(std::vector<Measure>& list, const std::string& name,
              const ptxvm::BulkTraffic& traffic) {
  list.push_back({name + "_copies", traffic.copies});
  list.push_back({name + "_sectors", traffic.sectors});
  list.push_back({name + "_bytes", traffic.bytes});
  list.push_back({name + "_global_bytes", traffic.global_bytes});
}

}  // namespace

std::vector<Measure> measures(const ptxvm::Counts& counts) {
  std::vector<Measure> list;
  for (std::size_t i = 0; i < counts.instructions.size(); ++i) {
    const auto which = static_cast<ptxvm::CountClass>(i);
    list.push_back({std::string(ptxvm::name(which)), counts.instructions[i],
                    /*is_instruction=*/true, ptxvm::carries_over(which)});
  }
  add_shared(list, "ldmatrix", counts.ldmatrix);
  add_shared(list, "stmatrix", counts.stmatrix);
  add_shared(list, "shared_load", counts.shared_load);
  add_shared(list, "shared_store", counts.shared_store);
  add_shared(list, "shared_atomic", counts.shared_atomic);
  add_shared(list, "shared_copy", counts.shared_copy);
  add_global(list, "global_load", counts.global_load);
  add_global(list, "global_store", counts.global_store);
  add_global(list, "global_atomic", counts.global_atomic);
  add_global(list, "global_copy", counts.global_copy);
  add_bulk(list, "bulk_load", counts.bulk_load);
  add_bulk(list, "bulk_store", counts.bulk_store);
  add_bulk(list, "bulk_prefetch", counts.bulk_prefetch);
  list.push_back({"wgmma_wavefronts", counts.wgmma_wavefronts()});
  list.push_back({"local_bytes", counts.local_bytes, false, false});
  return list;
}

Json counts_json(const ptxvm::Counts& counts) {
  Json json{{"instructions", counts.total_instructions()}};
  for (const Measure& each : measures(counts)) {
    if (each.value != 0) json[each.key] = each.value;
  }
  return json;
}

}  // namespace fa
