// SPDX-License-Identifier: MIT
// The timing policy: how launches of several kernels are interleaved, spaced and counted.
//
// One sample is one launch between two CUDA events. Before it a kernel holds the stream until the
// host has queued event, launch and event, so that the time a host needs to launch (microseconds
// here, far more in a Python peer) is never part of a sample.
//
// Two rates are kept, because on a card that reaches its power limit they differ by 10 %:
//   spaced        launches separated by an idle gap, each with a cold L2: the kernel at the clock
//                 that the card reaches from rest;
//   back-to-back  launches without a gap for a while: the kernel at the clock it can sustain.
//                 Short ones are recorded as a CUDA graph and replayed. The launches take copies
//                 of K and V in turn, so that a cache which fits into the L2 is not found there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/device/stopwatch.h"

namespace fa {

struct TimingPolicy {
  int rounds = 3;                ///< every kernel is visited once per round
  double warmup_ms = 100;        ///< per kernel, before the first round
  double spaced_ms = 150;        ///< per kernel and round, gaps included; at least one sample
  int spaced_max = 40;           ///< samples per kernel and round
  double gap_min_ms = 3;         ///< idle gap before a spaced launch: the duration of the kernel,
  double gap_max_ms = 25;        ///< within these limits
  double lead_ms = 50;           ///< back-to-back launches before the timed ones
  double back_to_back_ms = 120;  ///< timed back-to-back launches, per kernel and round
  int back_to_back_min = 2;      ///< at least this many
  L2Policy l2 = L2Policy::flush;
  bool backwards = false;  ///< the first round visits the last item first

  bool operator==(const TimingPolicy&) const = default;
};

/// Idle gap before a spaced launch of a kernel that takes duration_ms.
double idle_gap_ms(const TimingPolicy& policy, double duration_ms);

enum class Phase { spaced, back_to_back };

struct TimedItem {
  std::string name;
  Stopwatch::Launch launch;
  /// Launched once, untimed, before each visit: what `launch` needs to find on the device.
  Stopwatch::Launch prepare = {};
  bool spaced_only = false;  ///< no back-to-back launches
};

struct ItemTimes {
  std::vector<double> spaced;        ///< one value a launch
  std::vector<double> back_to_back;  ///< one value a round: milliseconds per launch
  int expired = 0;                   ///< samples dropped because the hold expired
  bool recorded = false;             ///< most launches of back_to_back were recorded
  std::optional<std::string> error;  ///< set: this item failed and has no valid times
};

/// Told when timed work of an item starts and ends: a sampler of clocks, a progress line.
class TimingObserver {
 public:
  virtual ~TimingObserver() = default;
  virtual void begin(std::size_t item, Phase phase, int round) = 0;
  virtual void end() = 0;
  /// Every item was visited once more: the times until now. What an interrupt leaves valid.
  virtual void finished_round(const std::vector<ItemTimes>& /*times*/) {}
};

/// Warms up every item, then visits all of them in each round, in opposite order in every second
/// round. An item whose launch throws is left out from there on; DeviceLost is passed on.
std::vector<ItemTimes> time_interleaved(const std::vector<TimedItem>& items,
                                        const TimingPolicy& policy, Stopwatch& stopwatch,
                                        TimingObserver* observer = nullptr);

}  // namespace fa
