// SPDX-License-Identifier: MIT
// What the queues of run, check, bench, tune and explain hold: one kernel on one problem.
#pragma once

#include <string>
#include <string_view>

#include "harness/measure/peer.h"
#include "harness/results/row.h"
#include "kernels/catalogue.h"

namespace fa {

struct Item {
  RowKey key;           ///< with the problem, in the item's dtype, and its inputs
  std::string name;     ///< for messages: "06_batched 128x64w4"
  std::string refused;  ///< unsupported: why
  const Rung* rung = nullptr;
  const Instance* instance = nullptr;  ///< nullptr for a tile or head_dim that there is not
  bool ablation = false;
  LaunchPlan plan;  ///< of a rung that is not refused
  const Peer* peer = nullptr;

  const Problem& problem() const { return key.problem; }
};

/// An instance of a rung at one problem, planned for this device. Throws KernelFault for a mistake
/// of the rung's planner.
Item rung_item(const Rung& rung, const Instance& instance, const Problem& problem,
               const DeviceDescription& device, const RowInputs& inputs = {});

/// The same for a tile as the command line names it, which may be none of the rung's; an empty one
/// means the rung's own.
Item rung_item(const Rung& rung, const Problem& problem, std::string_view tile,
               const DeviceDescription& device, const RowInputs& inputs = {});

Item peer_item(const Peer& peer, const Problem& problem, const RowInputs& inputs = {});

}  // namespace fa
