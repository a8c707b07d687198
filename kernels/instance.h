// What a kernel file tells the catalogue: its instances and its planner. Every kernel file reads
// this, so it includes little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fa {

struct DeviceDescription;  // kernels/launch_plan.h
struct PlanResult;         // kernels/launch_plan.h
struct Problem;            // harness/attention/problem.h

/// Tile of one block: Br query rows, Bc keys per step, warps; a word where these three do not tell
/// two instances apart.
struct Tile {
  int Br = 0, Bc = 0, warps = 0;
  std::string_view variant = {};
  bool operator==(const Tile&) const = default;
};

/// One compiled instantiation of a rung.
struct Instance {
  const char* entry = nullptr;
  const void* kernel = nullptr;
  int head_dim = 0;
  Tile tile;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory per block
};

/// What a kernel file exports: its instantiations and its planner. The first instance of a
/// head_dim is the rung itself; further ones are ablations (the same code at another
/// tile). Those of `tuned` are for `fa tune` alone, and only a build with FA_TUNE has any.
struct RungKernels {
  std::span<const Instance> instances;
  PlanResult (*plan)(const Problem& problem, const Instance& instance,
                     const DeviceDescription& device);
  std::span<const Instance> tuned = {};
};

}  // namespace fa
