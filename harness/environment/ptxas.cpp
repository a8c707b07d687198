// SPDX-License-Identifier: MIT
#include "harness/environment/ptxas.h"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fa_build_config.h"

namespace fa {

using Json = nlohmann::ordered_json;

std::optional<PtxasEntry> find_ptxas_entry(const Json& report, const std::string& entry, int sm) {
  if (!report.is_array()) return std::nullopt;
  // Code for sm_90a runs on 9.0 alone; code for sm_80 on every 8.x from there up.
  const auto serves = [&](const std::string& arch) {
    int built = 0;
    const char* end = arch.data() + arch.size();
    if (!arch.starts_with("sm_")) return -1;
    const auto parsed = std::from_chars(arch.data() + 3, end, built);
    if (parsed.ec != std::errc{}) return -1;
    if (parsed.ptr != end) return built == sm ? built + 1 : -1;
    return built / 10 == sm / 10 && built <= sm ? built : -1;
  };
  const Json* best = nullptr;
  int best_rank = -1;
  for (const Json& item : report) {
    if (!item.is_object() || item.value("entry", "") != entry) continue;
    const int rank = serves(item.value("arch", ""));
    if (rank > best_rank) best = &item, best_rank = rank;
  }
  if (!best) return std::nullopt;
  return PtxasEntry{.registers = best->value("registers", 0),
                    .spill_stores = best->value("spill_stores", 0),
                    .spill_loads = best->value("spill_loads", 0),
                    .stack = best->value("stack", 0),
                    .static_shared = best->value("static_shared", 0)};
}

std::optional<PtxasEntry> ptxas_entry(const std::string& entry, int sm) {
  static const Json report = [] {
    std::ifstream in(FA_PTXAS_REPORT);
    return in ? Json::parse(in, nullptr, /*allow_exceptions=*/false) : Json();
  }();
  return find_ptxas_entry(report, entry, sm);
}

}  // namespace fa
