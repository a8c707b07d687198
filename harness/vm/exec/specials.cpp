// SPDX-License-Identifier: MIT
#include "exec/specials.h"

#include <cstring>
#include <stdexcept>

namespace ptxvm {
namespace {

using isa::Special;

// Where the block stands in its cluster, and the cluster in the grid.
uint32_t of_cluster(Special id, const Warp& w) {
  const Dim3 grid = w.cta->launch->grid, cluster = w.cta->launch->cluster;
  const Dim3 position = w.cta->position;
  switch (id) {
    case Special::kClusteridX:
      return position.x / cluster.x;
    case Special::kClusteridY:
      return position.y / cluster.y;
    case Special::kClusteridZ:
      return position.z / cluster.z;
    case Special::kNclusteridX:
      return grid.x / cluster.x;
    case Special::kNclusteridY:
      return grid.y / cluster.y;
    case Special::kNclusteridZ:
      return grid.z / cluster.z;
    case Special::kClusterCtaidX:
      return position.x % cluster.x;
    case Special::kClusterCtaidY:
      return position.y % cluster.y;
    case Special::kClusterCtaidZ:
      return position.z % cluster.z;
    case Special::kClusterNctaidX:
      return cluster.x;
    case Special::kClusterNctaidY:
      return cluster.y;
    case Special::kClusterNctaidZ:
      return cluster.z;
    case Special::kClusterCtarank:
      return w.cta->rank;
    case Special::kClusterNctarank:
      return static_cast<uint32_t>(cluster.count());
    default:
      throw std::logic_error("a special register without a value");
  }
}

// Those that are the same in all lanes.
uint32_t of_warp(Special id, const Warp& w) {
  const Cta& cta = *w.cta;
  const LaunchState& launch = *cta.launch;
  switch (id) {
    case Special::kNtidX:
      return launch.block.x;
    case Special::kNtidY:
      return launch.block.y;
    case Special::kNtidZ:
      return launch.block.z;
    case Special::kCtaidX:
      return cta.position.x;
    case Special::kCtaidY:
      return cta.position.y;
    case Special::kCtaidZ:
      return cta.position.z;
    case Special::kNctaidX:
      return launch.grid.x;
    case Special::kNctaidY:
      return launch.grid.y;
    case Special::kNctaidZ:
      return launch.grid.z;
    case Special::kWarpid:
      return w.index;
    case Special::kNwarpid:
      return static_cast<uint32_t>(cta.warps.size());
    case Special::kSmid:
      return cta.multiprocessor;
    case Special::kNsmid:
      return launch.options->card.multiprocessors;
    case Special::kEnvreg1:
      return static_cast<uint32_t>(launch.grid_workspace >> 32);
    case Special::kEnvreg2:
      return static_cast<uint32_t>(launch.grid_workspace);
    case Special::kGridid:
      return 1;
    case Special::kAggrSmemSize:
    case Special::kTotalSmemSize:
      return cta.shared_bytes;
    case Special::kDynamicSmemSize:
      return launch.dynamic_shared_bytes;
    default:
      // The driver sets the other environment registers as it likes.
      if (id >= Special::kEnvreg0 && id <= Special::kEnvreg31) return 0;
      return of_cluster(id, w);
  }
}

uint32_t of_lane(Special id, const Warp& w, uint32_t lane) {
  const Dim3 block = w.cta->launch->block;
  const uint32_t thread = w.index * 32u + lane;
  switch (id) {
    case Special::kTidX:
      return thread % block.x;
    case Special::kTidY:
      return thread / block.x % block.y;
    case Special::kTidZ:
      return thread / block.x / block.y;
    case Special::kLaneid:
      return lane;
    case Special::kLanemaskEq:
      return 1u << lane;
    case Special::kLanemaskLt:
      return (1u << lane) - 1;
    case Special::kLanemaskLe:
      return (2u << lane) - 1;
    case Special::kLanemaskGe:
      return ~((1u << lane) - 1);
    case Special::kLanemaskGt:
      return ~((2u << lane) - 1);
    default:
      return of_warp(id, w);
  }
}

}  // namespace

void fill_specials(Warp& w) {
  for (const SpecialSlot& slot : w.cta->launch->program->specials) {
    if (slot.row->moving) continue;  // refreshed by each reader
    const size_t bytes = slot.row->type == Type::kU64 ? 8 : 4;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint64_t value = of_lane(slot.row->id, w, lane);
      std::memcpy(w.base[0] + slot.offset + lane * bytes, &value, bytes);
    }
  }
}

}  // namespace ptxvm
