// SPDX-License-Identifier: MIT
// Hands out the clusters of a grid and runs them: one at a time as long as that works, side by side
// as on a card when blocks wait for each other.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

#include "exec/scheduler.h"

namespace ptxvm {

/// The clusters of a launch. After a fault only earlier ones still run, so that the fault of the
/// first faulty one is reported however many host threads there are.
class Work {
 public:
  /// `reversed`: how many clusters at a time run in reversed order, 0 for none. A card starts
  /// clusters in the order of their numbers, so one may wait for those before it: of any, these
  /// must be among as many as the card holds at once.
  Work(uint64_t count, uint64_t reversed, uint64_t max_steps)
      : count_(count), reversed_(reversed), max_steps_(max_steps) {}

  /// Clusters may take the place of others (clusterlaunchcontrol), which are not among the first
  /// `resident`. One host thread must run them all.
  void allow_cancel(uint64_t resident) { turns_.assign(resident, 0); }
  /// The position of a cluster that will not begin, because that at `position` does its work; none
  /// where all have begun whose turn it would be. Of n that are resident, each has every n-th of
  /// the others, so that they share the work as on a card where all are equally fast.
  std::optional<uint64_t> cancel(uint64_t position);

  /// Position in launch order; the index is `index_of(position)`.
  bool take(uint64_t& position);
  uint64_t index_of(uint64_t position) const;
  /// Clusters that nobody has taken.
  uint64_t left() const;

  /// A cluster has ended, or is given up, after so many instructions.
  void add_steps(uint64_t steps) { steps_ += steps; }
  uint64_t steps() const { return steps_.load(); }
  /// What it takes to begin a cluster counts for the limit only.
  void add_beginning(uint64_t steps) { beginnings_ += steps; }
  bool over_limit(uint64_t running = 0) const {
    return steps_.load() + beginnings_.load() + running > max_steps_;
  }

  void fail(uint64_t position, Fault fault);
  void fail(std::exception_ptr error);
  void stop();
  bool stopped() const { return stopped_.load(); }
  /// The fault, if there was one; throws what was not a fault.
  std::optional<Fault> result();

 private:
  // Of a position that nobody has taken. Those that a cluster cancels follow each other.
  bool is_cancelled(uint64_t position) const {
    const uint64_t resident = turns_.size();
    return position >= resident && resident != 0 && turns_[position % resident] >= position;
  }

  uint64_t count_;
  uint64_t reversed_;
  uint64_t max_steps_;
  std::atomic<uint64_t> next_{0}, stop_{UINT64_MAX}, steps_{0}, beginnings_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::optional<Fault> fault_;
  std::exception_ptr error_;
  std::vector<uint64_t> turns_;  // the last position that each resident cluster cancelled
};

/// The probes of a launch: a set, one of each observer, for each cluster that is resident.
class ProbeSets {
 public:
  explicit ProbeSets(std::span<Observer* const> observers) : observers_(observers) {}
  const std::vector<std::unique_ptr<Probe>>& make();
  /// Takes the probes of one observer out of all sets.
  std::vector<std::unique_ptr<Probe>> take(size_t observer);

 private:
  std::span<Observer* const> observers_;
  std::mutex mutex_;
  std::deque<std::vector<std::unique_ptr<Probe>>> sets_;
};

/// What one host thread runs.
class GridRunner {
 public:
  GridRunner(LaunchState& launch, Work& work, ProbeSets& probes);

  /// Runs clusters until none is left. Faults go to the work.
  void run();

 private:
  void run_all();
  bool start();
  bool start_more();
  bool advance_all();
  void check_steps();
  bool waits_for_ever();
  std::vector<std::string> positions() const;
  [[noreturn]] void raise_deadlock();

  LaunchState& launch_;
  Work& work_;
  ProbeSets& probes_;
  std::vector<std::unique_ptr<ClusterRunner>> running_, free_;
  uint64_t current_ = 0;  // position of the cluster that has the turn
  uint64_t fingerprint_ = 0;
  uint32_t idle_rounds_ = 0;
};

}  // namespace ptxvm
