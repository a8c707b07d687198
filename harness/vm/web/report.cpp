// SPDX-License-Identifier: MIT
#include "web/report.h"

#include <optional>
#include <string_view>

namespace ptxvm::web {
namespace {

std::string_view file_name(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

int line_in(const LineCounts& instruction, const std::string& source) {
  for (const SourceLocation& place : instruction.source) {
    if (file_name(place.file) == source) return place.line;
  }
  return 0;
}

Json dim3_json(const std::optional<Dim3>& dim) {
  return dim ? Json{dim->x, dim->y, dim->z} : Json();
}

}  // namespace

Json counts_json(const Counts& counts) {
  Json json{{"instructions", counts.total_instructions()}};
  for (const Measure& each : measures(counts)) {
    if (each.value != 0) json[each.key] = each.value;
  }
  return json;
}

Json launch_json(const std::string& entry, const CountReport& report, const std::string& source) {
  Json rows = Json::array();
  for (const LineCounts& each : report.by_instruction) {
    const Counts& c = each.counts;
    const SharedTraffic shared = c.shared_requests();
    rows.push_back(
        Json::array({each.ptx_line, each.opcode, line_in(each, source), c.total_instructions(),
                     c.of(CountClass::kTensor) + c.of(CountClass::kWgmma), c.of(CountClass::kExp),
                     shared.wavefronts + c.wgmma_wavefronts(), shared.ideal + c.wgmma_wavefronts(),
                     c.global_sectors()}));
  }
  return {{"entry", entry}, {"instructions", std::move(rows)}};
}

Json diagnostics_json(std::span<const Diagnostic> diagnostics) {
  Json json = Json::array();
  for (const Diagnostic& each : diagnostics) {
    json.push_back({{"line", each.where.line},
                    {"column", each.where.column},
                    {"message", each.message},
                    {"text", each.format()}});
  }
  return json;
}

Json entry_json(const Kernel& kernel) {
  Json parameters = Json::array();
  for (const Parameter& each : kernel.parameters()) {
    parameters.push_back({{"name", each.name}, {"type", each.type}, {"size", each.size}});
  }
  return {{"name", kernel.name()},
          {"parameters", std::move(parameters)},
          {"static_shared", kernel.static_shared_bytes()},
          {"dynamic_shared", kernel.uses_dynamic_shared()},
          {"max_threads", dim3_json(kernel.max_threads())},
          {"required_threads", dim3_json(kernel.required_threads())},
          {"unsupported", diagnostics_json(kernel.unsupported())}};
}

}  // namespace ptxvm::web
