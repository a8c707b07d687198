// SPDX-License-Identifier: MIT
#include "exec/grid.h"

#include <algorithm>
#include <utility>

#include "exec/fault.h"

namespace ptxvm {
namespace {

// Rounds in which every warp of the grid has only read the same values again, before a deadlock is
// reported although registers still change, as they do in a loop that sleeps for longer each time.
constexpr uint32_t kIdleRounds = 1u << 14;
// The first of them, in which registers are compared: it takes longer than the round.
constexpr uint32_t kComparedRounds = 64;

}  // namespace

bool Work::take(uint64_t& position) {
  if (over_limit()) return false;
  do {
    position = next_.fetch_add(1);
  } while (position < count_ && is_cancelled(position));
  return position < count_ && position < stop_.load();
}

uint64_t Work::left() const {
  uint64_t left = 0;
  for (uint64_t position = next_.load(); position < count_; ++position)
    left += !is_cancelled(position);
  return left;
}

std::optional<uint64_t> Work::cancel(uint64_t position) {
  const uint64_t resident = turns_.size();
  uint64_t& last = turns_[position % resident];
  last = std::max(last, position);
  do {
    last += resident;
  } while (last < next_.load());
  if (last >= count_) return std::nullopt;
  return last;
}

uint64_t Work::index_of(uint64_t position) const {
  if (reversed_ == 0) return position;
  const uint64_t first = position / reversed_ * reversed_;
  return first + std::min(first + reversed_, count_) - 1 - position;
}

void Work::fail(uint64_t position, Fault fault) {
  const std::lock_guard lock(mutex_);
  if (position >= stop_.load()) return;
  stop_.store(position);
  fault_ = std::move(fault);
}

void Work::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  stop_.store(0);
  error_ = std::move(error);
}

void Work::stop() {
  stop_.store(0);
  stopped_.store(true);
}

std::optional<Fault> Work::result() {
  if (error_) std::rethrow_exception(error_);
  return std::move(fault_);
}

const std::vector<std::unique_ptr<Probe>>& ProbeSets::make() {
  const std::lock_guard lock(mutex_);
  auto& set = sets_.emplace_back();
  for (Observer* o : observers_) set.push_back(o->make_probe());
  return set;
}

std::vector<std::unique_ptr<Probe>> ProbeSets::take(size_t observer) {
  std::vector<std::unique_ptr<Probe>> out;
  for (auto& set : sets_) out.push_back(std::move(set[observer]));
  return out;
}

GridRunner::GridRunner(LaunchState& launch, Work& work, ProbeSets& probes)
    : launch_(launch), work_(work), probes_(probes) {
  free_.push_back(std::make_unique<ClusterRunner>(launch_, probes_.make()));
}

void GridRunner::run() {
  try {
    run_all();
  } catch (FaultError& e) {
    work_.fail(current_, std::move(e.fault));
  } catch (const Stopped&) {
    work_.stop();
  } catch (...) {
    work_.fail(std::current_exception());
  }
  for (const auto& runner : running_) work_.add_steps(runner->steps());
}

void GridRunner::run_all() {
  for (;;) {
    if (running_.empty() && !start()) return;
    const bool moved = advance_all();
    check_steps();
    if (moved) {
      idle_rounds_ = 0;
    } else if (!start_more() && waits_for_ever()) {
      raise_deadlock();
    }
  }
}

bool GridRunner::start() {
  uint64_t position = 0;
  if (!work_.take(position)) return false;
  if (free_.empty()) {
    free_.push_back(std::make_unique<ClusterRunner>(launch_, probes_.make()));
  }
  running_.push_back(std::move(free_.back()));
  free_.pop_back();
  current_ = position;
  running_.back()->begin(work_.index_of(position), position);
  return true;
}

// Twice as many as there are: a kernel that needs few blocks side by side costs the memory of few.
bool GridRunner::start_more() {
  const uint64_t room = launch_.resident_limit - running_.size();
  uint64_t wanted = std::min<uint64_t>(room, running_.size());
  bool any = false;
  while (wanted-- != 0 && start()) any = true;
  return any;
}

bool GridRunner::advance_all() {
  bool moved = false;
  for (size_t i = 0; i < running_.size();) {
    ClusterRunner& runner = *running_[i];
    current_ = runner.position();
    const bool ended = runner.advance();
    moved |= runner.moved();
    if (!ended) {
      ++i;
      continue;
    }
    work_.add_steps(runner.steps());
    work_.add_beginning(runner.beginning());
    free_.push_back(std::move(running_[i]));
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return moved;
}

void GridRunner::check_steps() {
  uint64_t steps = 0;
  for (const auto& runner : running_) steps += runner->steps();
  if (running_.empty() || !work_.over_limit(steps)) return;
  current_ = running_.front()->position();
  throw FaultError{running_.front()->fault(FaultKind::kStepLimit,
                                           "the launch has executed more than " +
                                               std::to_string(launch_.options->max_steps) +
                                               " instructions, which is the limit",
                                           positions())};
}

// Nothing has moved for two rounds, and no register has changed between them; or for very long.
bool GridRunner::waits_for_ever() {
  if (++idle_rounds_ > kComparedRounds) return idle_rounds_ == kIdleRounds;
  uint64_t now = 0;
  for (const auto& runner : running_) now = now * 31 + runner->fingerprint();
  return idle_rounds_ > 1 && std::exchange(fingerprint_, now) == now;
}

std::vector<std::string> GridRunner::positions() const {
  std::vector<std::string> out;
  for (const auto& runner : running_) runner->describe(running_.size() > 1, out);
  return shortened(std::move(out));
}

void GridRunner::raise_deadlock() {
  const uint64_t each = launch_.cluster.count();
  std::string message = "deadlock: no warp can go on";
  if (const uint64_t left = work_.left(); left != 0) {
    message = "deadlock: " + std::to_string(running_.size() * each) + " blocks wait, and " +
              std::to_string(left * each) + " have not started; the " +
              std::string(launch_.options->card.name) + " holds " +
              std::to_string(launch_.resident_limit * each) + " of these blocks at once";
  }
  current_ = running_.front()->position();
  throw FaultError{running_.front()->fault(FaultKind::kDeadlock, message, positions())};
}

}  // namespace ptxvm
