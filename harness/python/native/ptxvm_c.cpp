// SPDX-License-Identifier: MIT
#include "ptxvm_c.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "ptxvm/trace.h"

static_assert(sizeof(ptxvm_buffer) == 32);
static_assert(sizeof(ptxvm_tensor_map) == 112);
static_assert(sizeof(ptxvm_argument) == 40);
static_assert(sizeof(ptxvm_launch_config) == 72);

struct ptxvm_module {
  ptxvm::Module module;
};

namespace {

using Json = nlohmann::ordered_json;

/// A copy for the caller. Throws std::bad_alloc.
char* to_text(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

/// PTX text in a message may hold any byte.
char* dumped(const Json& json) {
  return to_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json to_json(const ptxvm::Kernel& kernel);
Json to_json(const ptxvm::Parameter& parameter);
Json to_json(const ptxvm::SourceLocation& where);
Json to_json(const ptxvm::LineCounts& line);
Json to_json(const ptxvm::SourceCounts& line);
Json to_json(const ptxvm::Finding& finding);

Json to_json(const ptxvm::Diagnostic& diagnostic) {
  return {{"file", diagnostic.where.file},     {"line", diagnostic.where.line},
          {"column", diagnostic.where.column}, {"length", diagnostic.length},
          {"message", diagnostic.message},     {"text", diagnostic.text},
          {"notes", diagnostic.notes},         {"formatted", diagnostic.format()}};
}

template <class Range>
Json to_json_list(const Range& range) {
  Json list = Json::array();
  for (const auto& each : range) list.push_back(to_json(each));
  return list;
}

Json to_json(const ptxvm::Dim3& extent) {
  return Json::array({extent.x, extent.y, extent.z});
}

Json to_json(const std::optional<ptxvm::Dim3>& extent) {
  return extent ? to_json(*extent) : Json();
}

Json to_json(const ptxvm::Parameter& parameter) {
  return {{"name", parameter.name},
          {"type", parameter.type},
          {"offset", parameter.offset},
          {"bytes", parameter.size},
          {"align", parameter.align}};
}

Json to_json(const ptxvm::Kernel& kernel) {
  return {{"name", kernel.name()},
          {"parameters", to_json_list(kernel.parameters())},
          {"shared_bytes", kernel.static_shared_bytes()},
          {"uses_dynamic_shared", kernel.uses_dynamic_shared()},
          {"local_bytes", kernel.local_bytes()},
          {"instructions", kernel.instructions().size()},
          {"max_threads", to_json(kernel.max_threads())},
          {"required_threads", to_json(kernel.required_threads())},
          {"required_cluster", to_json(kernel.required_cluster())},
          {"unsupported", to_json_list(kernel.unsupported())}};
}

Json to_json(const ptxvm::Counts& counts) {
  Json json{{"instructions", counts.total_instructions()}};
  for (const ptxvm::Measure& each : ptxvm::measures(counts)) {
    if (each.value != 0) json[each.key] = each.value;
  }
  return json;
}

Json to_json(const ptxvm::SourceLocation& where) {
  return {{"file", where.file}, {"line", where.line}};
}

Json to_json(const ptxvm::LineCounts& line) {
  return {{"line", line.ptx_line},
          {"opcode", line.opcode},
          {"source", to_json_list(line.source)},
          {"counts", to_json(line.counts)}};
}

Json to_json(const ptxvm::SourceCounts& line) {
  Json json = to_json(line.where);
  json["counts"] = to_json(line.counts);
  return json;
}

Json to_json(const ptxvm::Fault& fault) {
  return {{"kind", ptxvm::name(fault.kind)},
          {"message", fault.message},
          {"block", to_json(fault.cta)},
          {"warp", fault.warp},
          {"lane", fault.lane},
          {"diagnostic", to_json(fault.where)}};
}

Json to_json(const ptxvm::Finding& finding) {
  return {{"checker", finding.checker},
          {"message", finding.message},
          {"count", finding.count},
          {"diagnostic", to_json(finding.where)}};
}

/// Runs the body; what it throws becomes a null pointer and a text in *error. `refused` is the kind
/// of a ptxvm::Error.
template <class Body>
auto guarded(const char* refused, char** error, const Body& body) noexcept -> decltype(body()) {
  const auto failed = [&](const char* kind, const char* message, Json diagnostics) {
    if (error) {
      *error = dumped(
          Json{{"kind", kind}, {"message", message}, {"diagnostics", std::move(diagnostics)}});
    }
    return nullptr;
  };
  try {
    return body();
  } catch (const ptxvm::Error& thrown) {
    return failed(refused, thrown.what(), to_json_list(thrown.diagnostics()));
  } catch (const std::bad_alloc&) {
    return failed("memory", "the host has no memory for this", Json::array());
  } catch (const std::exception& thrown) {
    return failed("internal", thrown.what(), Json::array());
  }
}

ptxvm::Dim3 to_dim3(const uint32_t (&extent)[3]) {
  return {extent[0], extent[1], extent[2]};
}

ptxvm::TensorMap to_tensor_map(const ptxvm_tensor_map& given, ptxvm::Address base) {
  ptxvm::TensorMap map;
  map.base = base;
  map.element_bytes = given.element_bytes;
  map.rank = given.rank;
  std::ranges::copy(given.extents, map.dims.begin());
  std::ranges::copy(given.strides, map.strides.begin());
  std::ranges::copy(given.box, map.box.begin());
  switch (given.swizzle) {
    case 32:
      map.swizzle = ptxvm::Swizzle::k32B;
      break;
    case 64:
      map.swizzle = ptxvm::Swizzle::k64B;
      break;
    case 128:
      map.swizzle = ptxvm::Swizzle::k128B;
      break;
    default:
      map.swizzle = ptxvm::Swizzle::kNone;
  }
  return map;
}

ptxvm::Argument to_argument(const ptxvm_argument& given,
                            const std::vector<ptxvm::Address>& addresses) {
  if (given.kind == PTXVM_VALUE) {
    return ptxvm::Argument::raw({static_cast<const std::byte*>(given.value), given.value_bytes});
  }
  const ptxvm::Address address =
      addresses.at(static_cast<std::size_t>(given.buffer)) + given.offset;
  if (given.kind == PTXVM_POINTER) return ptxvm::Argument::pointer(address);
  return ptxvm::Argument::tensor_map(to_tensor_map(*given.map, address));
}

ptxvm::Options to_options(const ptxvm_launch_config& given) {
  ptxvm::Options options;
  options.threads = given.threads;
  if (given.reversed) options.warp_order = options.cta_order = ptxvm::Order::kReversed;
  if (given.max_warp_steps != 0) options.max_warp_steps = given.max_warp_steps;
  return options;
}

ptxvm::LaunchConfig to_config(const ptxvm_launch_config& given) {
  ptxvm::LaunchConfig config;
  config.grid = to_dim3(given.grid);
  config.block = to_dim3(given.block);
  config.cluster = to_dim3(given.cluster);
  config.dynamic_shared_bytes = given.shared_bytes;
  return config;
}

Json to_json(const ptxvm::LaunchResult& result, const ptxvm::CountReport& report) {
  return {{"steps", result.steps},
          {"fault", result.fault ? to_json(*result.fault) : Json()},
          {"findings", to_json_list(result.findings)},
          {"counts", to_json(report.total)},
          {"by_instruction", to_json_list(report.by_instruction)},
          {"by_source", to_json_list(report.by_source(ptxvm::LineView::kInnermost))}};
}

void copy_back(std::span<const ptxvm_buffer> buffers, ptxvm::Memory& memory,
               const std::vector<ptxvm::Address>& addresses) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].written_back || buffers[i].bytes == 0) continue;
    std::memcpy(buffers[i].data, memory.bytes(addresses[i]).data(), buffers[i].bytes);
  }
}

}  // namespace

extern "C" {

int32_t ptxvm_version(void) {
  return PTXVM_VERSION;
}

ptxvm_module* ptxvm_module_parse(const char* text, uint64_t bytes, const char* file_name,
                                 char** error) {
  return guarded("parse", error, [&] {
    return new ptxvm_module{ptxvm::Module::parse({text, bytes}, file_name)};
  });
}

void ptxvm_module_free(ptxvm_module* module) {
  delete module;
}

char* ptxvm_module_describe(const ptxvm_module* module, char** error) {
  return guarded("parse", error, [&] {
    return dumped(Json{{"file", module->module.file_name()},
                       {"target", module->module.target()},
                       {"version", module->module.isa_version()},
                       {"kernels", to_json_list(module->module.kernels())}});
  });
}

char* ptxvm_launch(const ptxvm_module* module, const char* entry, const ptxvm_launch_config* config,
                   const ptxvm_buffer* buffers, int32_t n_buffers, const ptxvm_argument* arguments,
                   int32_t n_arguments, char** trace, char** error) {
  return guarded("launch", error, [&] {
    const std::span given(buffers, static_cast<std::size_t>(n_buffers));
    ptxvm::Memory memory;
    std::vector<ptxvm::Address> addresses;
    for (const ptxvm_buffer& each : given) {
      addresses.push_back(
          memory.upload(each.name, {static_cast<const std::byte*>(each.data), each.bytes}));
    }
    ptxvm::LaunchConfig launched = to_config(*config);
    for (const ptxvm_argument& each : std::span(arguments, static_cast<std::size_t>(n_arguments))) {
      launched.arguments.push_back(to_argument(each, addresses));
    }
    ptxvm::Options options = to_options(*config);
    ptxvm::Counters counters;
    ptxvm::Races races;
    const std::span blocks(config->trace_blocks, static_cast<std::size_t>(config->traced));
    ptxvm::Trace timeline({blocks.begin(), blocks.end()});
    options.observers.push_back(&counters);
    if (config->checkers) options.observers.push_back(&races);
    if (!blocks.empty()) options.observers.push_back(&timeline);
    const ptxvm::LaunchResult result =
        ptxvm::launch(module->module, entry, launched, memory, options);
    if (!result.fault) copy_back(given, memory, addresses);
    if (trace && !blocks.empty()) *trace = to_text(timeline.json());
    return dumped(to_json(result, counters.report()));
  });
}

void ptxvm_text_free(char* text) {
  std::free(text);
}

}  // extern "C"
