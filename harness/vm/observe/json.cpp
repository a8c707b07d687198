// SPDX-License-Identifier: MIT
#include "ptxvm/json.h"

#include <cstdio>
#include <optional>

#include "observe/json_text.h"

namespace ptxvm {
namespace {

using observe::json_array;
using observe::json_object;
using observe::json_string;

std::string number(auto value) {
  return std::to_string(value);
}

std::string json(bool value) {
  return value ? "true" : "false";
}

std::string json(const Dim3& d) {
  return "[" + number(d.x) + "," + number(d.y) + "," + number(d.z) + "]";
}

std::string json(const std::optional<Dim3>& d) {
  return d ? json(*d) : "null";
}

std::string json(const Parameter& p) {
  return json_object({{"name", json_string(p.name)},
                      {"type", json_string(p.type)},
                      {"offset", number(p.offset)},
                      {"bytes", number(p.size)},
                      {"align", number(p.align)}});
}

std::string json(const ModuleVariable& v) {
  return json_object({{"name", json_string(v.name)},
                      {"readable", json_string(demangle(v.name))},
                      {"space", json_string(v.space)},
                      {"bytes", number(v.bytes)}});
}

std::string json(const SourceLocation& at) {
  return json_object({{"file", json_string(at.file)}, {"line", number(at.line)}});
}

std::string json(const LineCounts& line) {
  return json_object({{"line", number(line.ptx_line)},
                      {"opcode", json_string(line.opcode)},
                      {"source", json_array(line.source, [](const auto& at) { return json(at); })},
                      {"counts", ptxvm::json(line.counts)}});
}

std::string json(const SourceCounts& line) {
  return json_object({{"file", json_string(line.where.file)},
                      {"line", number(line.where.line)},
                      {"counts", ptxvm::json(line.counts)}});
}

std::string json(const Fault& fault) {
  return json_object({{"kind", json_string(name(fault.kind))},
                      {"message", json_string(fault.message)},
                      {"block", json(fault.cta)},
                      {"warp", number(fault.warp)},
                      {"lane", number(fault.lane)},
                      {"diagnostic", ptxvm::json(fault.where)}});
}

std::string json(const Kernel& kernel) {
  return json_object(
      {{"name", json_string(kernel.name())},
       {"readable", json_string(kernel.readable_name())},
       {"parameters", json_array(kernel.parameters(), [](const auto& p) { return json(p); })},
       {"shared_bytes", number(kernel.static_shared_bytes())},
       {"uses_dynamic_shared", json(kernel.uses_dynamic_shared())},
       {"local_bytes", number(kernel.local_bytes())},
       {"instructions", number(kernel.instructions().size())},
       {"max_threads", json(kernel.max_threads())},
       {"required_threads", json(kernel.required_threads())},
       {"required_cluster", json(kernel.required_cluster())},
       {"errors", ptxvm::json(kernel.errors())},
       {"unsupported", ptxvm::json(kernel.unsupported())}});
}

}  // namespace

std::string json(const Diagnostic& d) {
  return json_object(
      {{"file", json_string(d.where.file)},
       {"line", number(d.where.line)},
       {"column", number(d.where.column)},
       {"length", number(d.length)},
       {"message", json_string(d.message)},
       {"text", json_string(d.text)},
       {"notes", json_array(d.notes, [](const std::string& note) { return json_string(note); })},
       {"formatted", json_string(d.format())}});
}

std::string json(std::span<const Diagnostic> diagnostics) {
  return json_array(diagnostics, [](const Diagnostic& d) { return json(d); });
}

std::string json(const Finding& finding) {
  return json_object({{"checker", json_string(finding.checker)},
                      {"severity", json_string(name(finding.severity))},
                      {"message", json_string(finding.message)},
                      {"count", number(finding.count)},
                      {"diagnostic", json(finding.where)}});
}

std::string json(const Hint& hint) {
  char share[32];
  std::snprintf(share, sizeof share, "%.4f", hint.share);
  return json_object({{"section", json_string(hint.section)},
                      {"message", json_string(hint.message)},
                      {"share", share},
                      {"file", json_string(hint.where.file)},
                      {"line", number(hint.where.line)}});
}

std::string json(const Counts& counts) {
  std::string out = "{\"instructions\":" + number(counts.total_instructions());
  for (const Measure& each : measures(counts)) {
    if (each.value != 0) out += "," + json_string(each.key) + ":" + number(each.value);
  }
  return out + "}";
}

std::string json(const Module& module) {
  return json_object(
      {{"file", json_string(module.file_name())},
       {"target", json_string(module.target())},
       {"version", number(module.isa_version())},
       {"variables",
        json_array(module.variables(), [](const ModuleVariable& v) { return json(v); })},
       {"kernels", json_array(module.kernels(), [](const Kernel& k) { return json(k); })}});
}

std::string json(const LaunchResult& result, const Filtered& findings, const CountReport& report,
                 std::span<const Hint> hints) {
  return json_object(
      {{"steps", number(result.steps)},
       {"printed", json_string(result.printed)},
       {"fault", result.fault ? json(*result.fault) : "null"},
       {"findings", json_array(findings.findings, [](const auto& each) { return json(each); })},
       {"suppressed", number(findings.left_out)},
       {"hints", json_array(hints, [](const auto& each) { return json(each); })},
       {"counts", json(report.total)},
       {"by_instruction",
        json_array(report.by_instruction, [](const auto& each) { return json(each); })},
       {"by_source", json_array(report.by_source(LineView::kInnermost),
                                [](const auto& each) { return json(each); })}});
}

}  // namespace ptxvm
