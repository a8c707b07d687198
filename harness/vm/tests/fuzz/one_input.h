// SPDX-License-Identifier: MIT
// What is fuzzed: any text is parsed and lowered or refused with an Error; what is accepted runs in
// small blocks with a limit on steps, under the counters and the race checkers, and ends or stops
// with a fault; then all is said that there is to say about it. Nothing else may happen.
#pragma once

#include <new>
#include <string>

#include "ptxvm/json.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

namespace ptxvm_fuzz {

constexpr size_t kMostBytes = 8192;
constexpr uint32_t kMostSharedBytes = 1 << 16;
constexpr uint32_t kMostLocalBytes = 1 << 12;

/// What a text is launched with.
struct Shape {
  bool warpgroup = false, cluster = false, grid = false, cooperative = false;

  explicit Shape(const std::string& text)
      : warpgroup(text.find("wgmma") != std::string::npos),
        cluster(text.find("%cluster_") != std::string::npos),
        grid(text.find("%ctaid") != std::string::npos),
        cooperative(text.find("%envreg") != std::string::npos) {}
};

inline void run_kernel(const ptxvm::Module& module, const ptxvm::Kernel& kernel,
                       const Shape& shape) {
  using namespace ptxvm;
  if (kernel.static_shared_bytes() > kMostSharedBytes || kernel.local_bytes() > kMostLocalBytes)
    return;
  Memory memory;
  const Address buffer = memory.allocate("buffer", 4096, Fill::kZero);
  LaunchConfig config;
  config.block = {shape.warpgroup ? 128u : 64u, 1, 1};
  if (shape.cluster || shape.grid) config.grid = {2, 1, 1};
  if (shape.cluster) config.cluster = {2, 1, 1};
  config.cooperative = shape.cooperative;
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
  GlobalRaces global_races;
  options.observers = {&counters, &races};
  if (shape.grid) options.observers.push_back(&global_races);
  const LaunchResult result = launch(module, kernel.name(), config, memory, options);
  const Filtered findings = filter(result.findings, kernel);
  const CountReport report = counters.report();
  const auto advice = hints(report, module.file_name());
  format(findings.findings, kernel, 40);
  format(report.total);
  format(advice);
  json(result, findings, report, advice);
}

inline void one_input(const std::string& text) {
  using namespace ptxvm;
  if (text.size() > kMostBytes) return;
  try {
    const Module module = Module::parse(text, "fuzz.ptx");
    const Shape shape(text);
    json(module);
    for (const Kernel& kernel : module.kernels()) {
      try {
        run_kernel(module, kernel, shape);
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
