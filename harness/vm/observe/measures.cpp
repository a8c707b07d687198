// SPDX-License-Identifier: MIT
#include <utility>

#include "ptxvm/report.h"

namespace ptxvm {
namespace {

using Parts = std::vector<std::pair<std::string, uint64_t>>;

Parts parts_of(const SharedTraffic& t) {
  return {{"requests", t.requests},
          {"wavefronts", t.wavefronts},
          {"ideal", t.ideal},
          {"bytes", t.bytes}};
}

Parts parts_of(const GlobalTraffic& t) {
  return {{"requests", t.requests}, {"sectors", t.sectors}, {"bytes", t.bytes}};
}

Parts parts_of(const BulkTraffic& t) {
  return {{"copies", t.copies},
          {"sectors", t.sectors},
          {"bytes", t.bytes},
          {"global_bytes", t.global_bytes}};
}

}  // namespace

std::vector<Measure> measures(const Counts& counts) {
  std::vector<Measure> list;
  for (std::size_t i = 0; i < counts.instructions.size(); ++i) {
    const auto which = static_cast<CountClass>(i);
    list.push_back({std::string(name(which)), counts.instructions[i],
                    /*is_instruction=*/true, carries_over(which)});
  }
  const auto add = [&list](const std::string& name, const auto& traffic) {
    for (const auto& [part, value] : parts_of(traffic)) list.push_back({name + "_" + part, value});
  };
  add("ldmatrix", counts.ldmatrix);
  add("stmatrix", counts.stmatrix);
  add("shared_load", counts.shared_load);
  add("shared_store", counts.shared_store);
  add("shared_atomic", counts.shared_atomic);
  add("shared_copy", counts.shared_copy);
  add("global_load", counts.global_load);
  add("global_store", counts.global_store);
  add("global_atomic", counts.global_atomic);
  add("global_copy", counts.global_copy);
  add("bulk_load", counts.bulk_load);
  add("bulk_store", counts.bulk_store);
  add("bulk_prefetch", counts.bulk_prefetch);
  list.push_back({"wgmma_wavefronts", counts.wgmma_wavefronts()});
  list.push_back({"local_bytes", counts.local_bytes, false, false});
  return list;
}

}  // namespace ptxvm
