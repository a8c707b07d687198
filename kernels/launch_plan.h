// What a rung tells a device: which entry points to launch, with which arguments.
// Both devices, GPU and virtual machine, execute the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/attention/problem.h"

namespace fa {

/// A buffer of the problem, named rather than addressed: each device has its own pointers.
enum class Tensor { q, k, v, o };

/// Kernel argument in parameter order.
using Argument = std::variant<Tensor, std::int32_t, std::int64_t, float>;

struct Dim3 {
  std::int64_t x = 1, y = 1, z = 1;
};

/// One kernel launch.
struct Launch {
  const char* entry = nullptr;   ///< name of the extern "C" entry point, as in the PTX
  const void* kernel = nullptr;  ///< host symbol of the same entry point
  Dim3 grid;
  int block = 0;                   ///< threads per block
  std::size_t dynamic_shared = 0;  ///< bytes
  std::vector<Argument> arguments;
};

/// The launches of one forward pass, in stream order.
struct LaunchPlan {
  std::vector<Launch> launches;
};

/// Why a rung does not take a problem; one sentence that names the value and what is allowed.
struct Unsupported {
  std::string reason;
};

using PlanResult = std::variant<LaunchPlan, Unsupported>;

/// Tile of one block: Br query rows, Bc keys per step, warps.
struct Tile {
  int Br = 0, Bc = 0, warps = 0;
  bool operator==(const Tile&) const = default;
};

/// "64x128w4".
std::string to_string(const Tile& tile);

/// For rungs that take whole tiles only: why they refuse this problem, if they do.
std::optional<Unsupported> refuse_partial_tiles(const Problem& problem, const Tile& tile);

/// One compiled instantiation of a rung.
struct Instance {
  const char* entry = nullptr;
  const void* kernel = nullptr;
  int head_dim = 0;
  Tile tile;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory per block
};

/// What a kernel file exports: its instantiations and its planner. The first instance of a head_dim
/// is the rung itself; further ones are ablations (the same code at another tile).
struct RungKernels {
  std::span<const Instance> instances;
  PlanResult (*plan)(const Problem& problem, const Instance& instance);
};

}  // namespace fa
