// SPDX-License-Identifier: MIT
#include "ptxvm_c.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/json_text.h"
#include "ptxvm/findings.h"
#include "ptxvm/hints.h"
#include "ptxvm/json.h"
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "ptxvm/trace.h"

static_assert(sizeof(ptxvm_buffer) == 32);
static_assert(sizeof(ptxvm_tensor_map) == 120);
static_assert(sizeof(ptxvm_pointer) == 32);
static_assert(sizeof(ptxvm_argument) == 56);
static_assert(sizeof(ptxvm_memory) == 24);
static_assert(sizeof(ptxvm_launch_config) == 136);

struct ptxvm_module {
  ptxvm::Module module;
};

namespace {

using ptxvm::observe::json_object;
using ptxvm::observe::json_string;

/// A copy for the caller. Throws std::bad_alloc.
char* to_text(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

/// Runs the body; what it throws becomes a null pointer and a text in *error. `refused` is the kind
/// of a ptxvm::Error.
template <class Body>
auto guarded(const char* refused, char** error, const Body& body) noexcept -> decltype(body()) {
  const auto failed = [&](const char* kind, const char* message,
                          std::span<const ptxvm::Diagnostic> diagnostics) {
    if (error) {
      *error = to_text(json_object({{"kind", json_string(kind)},
                                    {"message", json_string(message)},
                                    {"diagnostics", ptxvm::json(diagnostics)}}));
    }
    return nullptr;
  };
  try {
    return body();
  } catch (const ptxvm::Error& thrown) {
    return failed(refused, thrown.what(), thrown.diagnostics());
  } catch (const std::bad_alloc&) {
    return failed("memory", "the host has no memory for this", {});
  } catch (const std::exception& thrown) {
    return failed("internal", thrown.what(), {});
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
  if (given.element != 0) map.element = static_cast<ptxvm::MapElement>(given.element - 1);
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

ptxvm::Argument to_value(const ptxvm_argument& given,
                         const std::vector<ptxvm::Address>& addresses) {
  const auto* bytes = static_cast<const std::byte*>(given.value);
  std::vector<std::byte> value(bytes, bytes + given.value_bytes);
  for (const ptxvm_pointer& each :
       std::span(given.pointers, static_cast<std::size_t>(given.n_pointers))) {
    const ptxvm::Address address =
        addresses.at(static_cast<std::size_t>(each.buffer)) + each.offset;
    const ptxvm::Argument member =
        each.map ? ptxvm::Argument::tensor_map(to_tensor_map(*each.map, address))
                 : ptxvm::Argument::pointer(address);
    if (each.at > value.size() || value.size() - each.at < member.bytes().size()) {
      throw ptxvm::Error("a pointer or a tensor map is outside its value");
    }
    std::ranges::copy(member.bytes(), value.data() + each.at);
  }
  return ptxvm::Argument::raw(value);
}

ptxvm::Argument to_argument(const ptxvm_argument& given,
                            const std::vector<ptxvm::Address>& addresses) {
  if (given.kind == PTXVM_VALUE) return to_value(given, addresses);
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
  if (given.max_steps != 0) options.max_steps = given.max_steps;
  if (given.max_local_bytes != 0) options.max_local_bytes = given.max_local_bytes;
  if (given.card) options.card = ptxvm::card(given.card);
  options.registers = given.registers;
  static_assert(sizeof(std::atomic<bool>) == 1 && std::atomic<bool>::is_always_lock_free);
  options.stop = reinterpret_cast<const std::atomic<bool>*>(given.stop);
  return options;
}

ptxvm::LaunchConfig to_config(const ptxvm_launch_config& given) {
  ptxvm::LaunchConfig config;
  config.grid = to_dim3(given.grid);
  config.block = to_dim3(given.block);
  config.cluster = to_dim3(given.cluster);
  config.dynamic_shared_bytes = given.shared_bytes;
  config.cooperative = given.cooperative != 0;
  return config;
}

ptxvm::FindingFilter to_filter(const ptxvm_launch_config& given) {
  ptxvm::FindingFilter filter;
  filter.comments = given.comments != 0;
  for (int32_t i = 0; i < given.n_ignored; ++i) filter.ignored.emplace_back(given.ignored[i]);
  return filter;
}

void copy(std::span<const std::byte> from, void* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

/// Throws where the sizes differ.
std::span<std::byte> variable(const ptxvm::Module& module, ptxvm::Memory& memory, const char* name,
                              uint64_t bytes) {
  const std::span<std::byte> held = memory.variable(module, name);
  if (held.size() == bytes) return held;
  throw ptxvm::Error("the variable '" + std::string(name) + "' has " + std::to_string(held.size()) +
                     " bytes, not " + std::to_string(bytes));
}

/// A launch with all that it reads and writes.
class Launch {
 public:
  Launch(const ptxvm::Module& module, const ptxvm_memory& memory)
      : module_(module),
        buffers_(memory.buffers, static_cast<std::size_t>(memory.n_buffers)),
        variables_(memory.variables, static_cast<std::size_t>(memory.n_variables)) {
    for (const ptxvm_buffer& each : buffers_) {
      addresses_.push_back(memory_.upload(
          each.name, {static_cast<const std::byte*>(each.data), each.bytes}, each.skew));
    }
    for (const ptxvm_buffer& each : variables_) {
      copy({static_cast<const std::byte*>(each.data), each.bytes},
           variable(module, memory_, each.name, each.bytes).data());
    }
  }

  std::string run(const char* entry, const ptxvm_launch_config& config,
                  std::span<const ptxvm_argument> arguments, char** trace) {
    ptxvm::LaunchConfig launched = to_config(config);
    for (const ptxvm_argument& each : arguments) {
      launched.arguments.push_back(to_argument(each, addresses_));
    }
    const ptxvm::Kernel& kernel = module_.kernel(entry);
    const ptxvm::FindingFilter filter = to_filter(config);
    ptxvm::filter({}, kernel, filter);  // refuses the names of no checkers
    ptxvm::Options options = to_options(config);
    ptxvm::Counters counters;
    ptxvm::Races races;
    const std::span blocks(config.trace_blocks, static_cast<std::size_t>(config.traced));
    ptxvm::Trace timeline({blocks.begin(), blocks.end()});
    options.observers.push_back(&counters);
    if (config.checkers) options.observers.push_back(&races);
    ptxvm::GlobalRaces global_races;
    if (config.global_races) options.observers.push_back(&global_races);
    if (!blocks.empty()) options.observers.push_back(&timeline);
    const ptxvm::LaunchResult result = ptxvm::launch(module_, entry, launched, memory_, options);
    if (result.stopped) throw ptxvm::Error("the launch was stopped");
    if (!result.fault) copy_back();
    if (trace && !blocks.empty()) *trace = to_text(timeline.json());
    return ptxvm::json(result, ptxvm::filter(result.findings, kernel, filter), counters.report(),
                       ptxvm::hints(counters.report(), module_.file_name()));
  }

 private:
  /// Throws, and copies nothing, if the kernel has changed memory that is not written back.
  void copy_back() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto* before = static_cast<const std::byte*>(buffers_[i].data);
      if (!buffers_[i].written_back &&
          !std::ranges::equal(memory_.bytes(addresses_[i]), std::span(before, buffers_[i].bytes)))
        throw ptxvm::Error("the kernel changed '" + std::string(buffers_[i].name) +
                           "', which is read-only; no array has changed");
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].written_back) copy(memory_.bytes(addresses_[i]), buffers_[i].data);
    }
    for (const ptxvm_buffer& each : variables_) {
      if (each.written_back) copy(memory_.variable(module_, each.name), each.data);
    }
  }

  const ptxvm::Module& module_;
  ptxvm::Memory memory_;
  std::span<const ptxvm_buffer> buffers_, variables_;
  std::vector<ptxvm::Address> addresses_;
};

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
  return guarded("parse", error, [&] { return to_text(ptxvm::json(module->module)); });
}

char* ptxvm_module_find(const ptxvm_module* module, const char* wanted, char** error) {
  return guarded("launch", error, [&] { return to_text(module->module.find(wanted).name()); });
}

char* ptxvm_module_variable(const ptxvm_module* module, const char* name, void* data,
                            uint64_t bytes, char** error) {
  return guarded("launch", error, [&] {
    ptxvm::Memory memory;
    copy(variable(module->module, memory, name, bytes), data);
    return to_text(name);
  });
}

char* ptxvm_launch(const ptxvm_module* module, const char* entry, const ptxvm_launch_config* config,
                   const ptxvm_memory* memory, const ptxvm_argument* arguments, int32_t n_arguments,
                   char** trace, char** error) {
  return guarded("launch", error, [&] {
    const std::span given(arguments, static_cast<std::size_t>(n_arguments));
    return to_text(Launch(module->module, *memory).run(entry, *config, given, trace));
  });
}

void ptxvm_text_free(char* text) {
  std::free(text);
}

}  // extern "C"
