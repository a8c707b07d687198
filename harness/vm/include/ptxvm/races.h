// SPDX-License-Identifier: MIT
// The checker of synchronisation: races, copies that nobody waits for, reads of what was never
// written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ptxvm/observer.h"

namespace ptxvm {

/// Watches shared memory (and local memory for reads of what was not written). Checkers by name:
///
/// `race`           two accesses, one of them a write, that no barrier, wait or mbarrier orders.
///                  Warps run concurrently, and so do the engines that they start: cp.async, bulk
///                  copies, wgmma. Lanes of one warp are ordered by bar.warp.sync and barriers.
/// `uninitialised`  the use of shared or local memory that was never written, or a read of a global
///                  buffer that the host has not written and the launch nowhere.
/// `copy`           a warp exits before it has waited for its cp.async, bulk stores or wgmma.
/// `barrier`        bar.arrive in a phase that is never complete.
/// `proxy`          wgmma or a bulk store reads ordinary writes without fence.proxy.async.
/// `mbarrier`       use that is not ordered after mbarrier.init.
/// `cluster`        shared memory of another block is used before that block is known to have
///                  started, or without being ordered before its exit.
/// `wgmma`          registers that were written after the last wgmma.fence.
///
/// The blocks of a cluster are checked together. Clocks are those of whole warps, so a missing
/// bar.warp.sync before one lane's arrival at an mbarrier is not seen.
///
/// Not seen: races in global memory, for which there is `GlobalRaces`; between lanes of one warp
/// where they access single bytes or start bulk copies and wgmma; reads of registers that were
/// never written. Memory is remembered in pairs of bytes: two warps that write the two bytes of one
/// pair are taken for a race. The order that an atomic or volatile access gives is taken at its
/// word: it counts as acquire and release at its address.
class Races : public Observer {
 public:
  Races();
  ~Races() override;
  Races(const Races&) = delete;
  Races& operator=(const Races&) = delete;
  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>> probes) override;

  /// One finding for each pair of source lines, or of instructions where there is no -lineinfo.
  /// `count` is how many warp requests met it; the message is the first case, of the first pair of
  /// instructions, of the block with the smallest index.
  std::vector<Finding> findings() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether a rounded sum in global memory may depend on the order in which threads add to it.
enum class Sums : uint8_t { kAnyOrder, kOneOrder };

/// Watches global memory over the whole grid, for races between warps and between blocks (`race`)
/// and for reads of what nobody has written (`uninitialised`). It makes all blocks run on one host
/// thread, and takes about fifty bytes for each word that the kernel touches.
///
/// Accesses are ordered as the memory model of PTX says: by barriers of blocks and clusters, by
/// mbarriers, and between blocks by releases and acquires: instructions that say so, or relaxed and
/// volatile accesses and atomics after and before a fence of the right scope. A flag that was read
/// relaxed without a fence behind it is advice. Atomic, volatile and ordered accesses do not
/// conflict with each other.
///
/// With `Sums::kOneOrder` floating-point additions to one address must be ordered as well
/// (`order`), as in a kernel that promises the same bits in each launch.
///
/// A buffer counts as written when it was uploaded, zeroed, asked for by the host, or when a kernel
/// has run over it before. Clocks are those of whole warps. Not seen: conflicts of a write with
/// more than two of the reads before it; the time that a bulk load goes on reading.
class GlobalRaces : public Observer {
 public:
  explicit GlobalRaces(Sums sums = Sums::kAnyOrder);
  ~GlobalRaces() override;
  GlobalRaces(const GlobalRaces&) = delete;
  GlobalRaces& operator=(const GlobalRaces&) = delete;
  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>> probes) override;
  bool wants_order() const override { return true; }
  std::vector<Finding> findings() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptxvm
