// For planners: the grids, arguments and launches that rungs have in common. A kernel file that has
// a planner of its own includes this.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/launch_plan.h"
#include "kernels/rung.h"

namespace fa {

/// One launch of an instance: its threads and its shared memory, this grid, these arguments.
Launch launch_of(const Instance& instance, Dim3 grid, std::vector<Argument> arguments);

struct TmaOptions {
  int query_rows = 64;  ///< rows in the box of Q; those of K and V have the tile's Bc
  int section = 1;      ///< see TmaParameters
  Argument counter = std::int64_t{0};  ///< none
};

struct DecodeOptions {
  std::int64_t splits = 1;
  Argument parts = std::int64_t{0};    ///< none
  Argument counter = std::int64_t{0};  ///< none
};

/// The instance for a head_dim among the further kernels of a rung, and for a type of elements.
/// There must be one.
const Instance& instance_for(std::span<const Instance> instances, int head_dim, bool bf16 = false);

/// The arguments of FA_FLOAT_ENTRY, FA_HALF_ENTRY and FA_TMA_ENTRY for a problem.
std::vector<Argument> float_arguments(const Problem& problem,
                                      Argument scratch = std::int64_t{0} /* none */);
std::vector<Argument> half_arguments(const Problem& problem);
std::vector<Argument> tma_arguments(const Problem& problem, const Tile& tile,
                                    const TmaOptions& options = {});

std::vector<Argument> decode_arguments(const Problem& problem, const DecodeOptions& options = {});

/// As plan_decode_early with one thread block per SM, and fewer for short caches with few heads.
/// For more heads of K and V than SMs: an instance of `smaller`, a thread block for each head, or
/// for about 1024 keys of it where lengths differ. Such a launch begins early if it fills the SMs.
PlanResult plan_decode_ahead(const Problem& problem, const Instance& instance,
                             std::span<const Instance> smaller, const DeviceDescription& device);

/// A thread block for each tile of Br query rows: {row tiles, heads, batch}.
Dim3 row_tile_grid(const Problem& problem, const Tile& tile);

/// A thread block an SM, but no more than there are tiles.
Dim3 persistent_grid(const Problem& problem, const Tile& tile, const DeviceDescription& device);

/// The number of query heads whose K and V fill half of the L2, at least one and at most all.
int heads_in_l2(const Problem& problem, const DeviceDescription& device);

/// One of several launches: grid.x is `blocks`, heads and batch are grid.y and grid.z.
struct Step {
  const Instance& instance;
  std::int64_t blocks;
};

/// Launches of FA_FLOAT_ENTRY or FA_FLOAT_BACKWARD_ENTRY, one after another, with one scratch
/// buffer for all of them; whole tiles of `tile` only.
PlanResult plan_float_steps(const Problem& problem, const Tile& tile,
                            std::initializer_list<Step> steps, Scratch scratch);

}  // namespace fa
