// SPDX-License-Identifier: MIT
#include "harness/web/report.h"

#include <cmath>
#include <string_view>

namespace fa::web {
namespace {

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

std::string_view file_name(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

int line_in(const ptxvm::LineCounts& instruction, const std::string& source) {
  for (const ptxvm::SourceLocation& place : instruction.source) {
    if (file_name(place.file) == source) return place.line;
  }
  return 0;
}

Json dim3_json(const std::optional<ptxvm::Dim3>& dim) {
  return dim ? Json{dim->x, dim->y, dim->z} : Json();
}

}  // namespace

Json verdict_json(const Verdict& verdict) {
  const CheckReport& check = verdict.check;
  return {{"ok", verdict.ok},
          {"reason", verdict.reason},
          {"details", text_of(verdict.findings)},
          {"repeatable", verdict.repeatable},
          {"rows_checked", check.rows_checked},
          {"rows_total", check.rows_total},
          {"max_error", finite(check.max_error)},
          {"tolerance", finite(check.tolerance)}};
}

Json counts_json(const ptxvm::Counts& counts) {
  Json json{{"instructions", counts.total_instructions()}};
  for (const ptxvm::Measure& each : ptxvm::measures(counts)) {
    if (each.value != 0) json[each.key] = each.value;
  }
  return json;
}

Json launch_json(const std::string& entry, const ptxvm::CountReport& report,
                 const std::string& source) {
  Json rows = Json::array();
  for (const ptxvm::LineCounts& each : report.by_instruction) {
    const ptxvm::Counts& c = each.counts;
    const ptxvm::SharedTraffic shared = c.shared_requests();
    rows.push_back(
        Json::array({each.ptx_line, each.opcode, line_in(each, source), c.total_instructions(),
                     c.of(ptxvm::CountClass::kTensor) + c.of(ptxvm::CountClass::kWgmma),
                     c.of(ptxvm::CountClass::kExp), shared.wavefronts + c.wgmma_wavefronts(),
                     shared.ideal + c.wgmma_wavefronts(), c.global_sectors()}));
  }
  return {{"entry", entry}, {"instructions", std::move(rows)}};
}

Json launches_json(const std::vector<LaunchCounts>& launches, const std::string& source) {
  Json json = Json::array();
  for (const LaunchCounts& launch : launches) {
    json.push_back(launch_json(launch.entry, launch.report, source));
  }
  return json;
}

Json diagnostics_json(std::span<const ptxvm::Diagnostic> diagnostics) {
  Json json = Json::array();
  for (const ptxvm::Diagnostic& each : diagnostics) {
    json.push_back({{"line", each.where.line},
                    {"column", each.where.column},
                    {"message", each.message},
                    {"text", each.format()}});
  }
  return json;
}

Json entry_json(const ptxvm::Kernel& kernel) {
  Json parameters = Json::array();
  for (const ptxvm::Parameter& each : kernel.parameters()) {
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

std::string finding_text(const ptxvm::Finding& finding) {
  return ptxvm::format(finding);
}

}  // namespace fa::web
