// SPDX-License-Identifier: MIT
// What is fuzzed: any text is parsed and lowered or refused with an Error; what is accepted runs in
// one small block with a limit on steps, under the counters and the race checker, and ends or stops
// with a fault. Nothing else may happen.
#pragma once

#include <new>
#include <string>

#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

namespace ptxvm_fuzz {

constexpr size_t kMostBytes = 8192;
constexpr uint32_t kMostSharedBytes = 1 << 16;
constexpr uint32_t kMostLocalBytes = 1 << 12;

inline void run_kernel(const ptxvm::Module& module, const ptxvm::Kernel& kernel, bool warpgroup,
                       bool cluster) {
  using namespace ptxvm;
  if (kernel.static_shared_bytes() > kMostSharedBytes || kernel.local_bytes() > kMostLocalBytes)
    return;
  Memory memory;
  const Address buffer = memory.allocate("buffer", 4096, Fill::kZero);
  LaunchConfig config;
  config.block = {warpgroup ? 128u : 64u, 1, 1};
  if (cluster) config.grid = config.cluster = {2, 1, 1};
  config.dynamic_shared_bytes = 1024;
  TensorMap map;
  map.base = buffer;
  map.dims = {64, 16, 1, 1, 1};
  map.strides = {2, 128, 2048, 2048, 2048};
  map.box = {16, 4, 1, 1, 1};
  for (const Parameter& p : kernel.parameters()) {
    // Every parameter that can hold an address gets one, and every one that can, a tensor map.
    if (p.size == encode(map).size()) {
      config.arguments.push_back(Argument::tensor_map(map));
      continue;
    }
    std::string bytes(p.size, '\1');
    if (p.size == sizeof buffer)
      bytes.assign(reinterpret_cast<const char*>(&buffer), sizeof buffer);
    config.arguments.push_back(Argument::raw(std::as_bytes(std::span(bytes))));
  }
  Counters counters;
  Races races;
  Options options;
  options.threads = 1;
  options.max_warp_steps = 2000;
  options.observers = {&counters, &races};
  launch(module, kernel.name(), config, memory, options);
}

inline void one_input(const std::string& text) {
  using namespace ptxvm;
  if (text.size() > kMostBytes) return;
  try {
    const Module module = Module::parse(text, "fuzz.ptx");
    const bool warpgroup = text.find("wgmma") != std::string::npos;
    const bool cluster = text.find("%cluster_") != std::string::npos;
    for (const Kernel& kernel : module.kernels()) {
      try {
        run_kernel(module, kernel, warpgroup, cluster);
      } catch (const Error&) {
        // A refused launch.
      } catch (const std::bad_alloc&) {
        // More memory than the host has.
      }
    }
  } catch (const Error& error) {
    if (error.diagnostics().empty() && std::string(error.what()).empty()) std::abort();
  }
}

}  // namespace ptxvm_fuzz
