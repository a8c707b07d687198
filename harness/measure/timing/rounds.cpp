// SPDX-License-Identifier: MIT
#include "harness/measure/timing/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "harness/device/gpu.h"
#include "harness/io/interrupt.h"

namespace fa {
namespace {

constexpr int kMaxExpired = 3;
// Launches of a train. The host queues them while earlier ones run, so that the card never rests.
// Where more than a short train is needed, launches are recorded, and the records are the launches
// of the train: the host may take longer for a launch than the card, as a peer's in Python does,
// and kernels follow each other faster in a graph than on a stream. What cannot be recorded has
// long trains if the host keeps up, else short ones, each queued before it starts; between them
// the card rests, and its clock rises.
constexpr int kLongTrain = 100'000, kShortTrain = 100;
// The driver's queue takes about a thousand kernels, and a launch of a peer may be ten; one that
// blocks on a full queue while the stream is held waits for the hold to expire.
constexpr int kAhead = kShortTrain;

struct HoldExpired : std::runtime_error {
  HoldExpired()
      : std::runtime_error(
            "its launches do not return while the stream is held: it waits for the device, so its "
            "time would contain the host's") {}
};

class ItemRun {
 public:
  ItemRun(const TimedItem& item, const TimingPolicy& policy, Stopwatch& stopwatch, ItemTimes& times)
      : item_(item), policy_(policy), stopwatch_(stopwatch), times_(times) {}

  void warm_up() {
    prepare();
    double spent = 0;
    int launches = 0;
    // The first launch may load code or tune: it says nothing about the duration.
    stopwatch_.untimed(item_.launch);
    do {
      const double ms = stopwatch_.untimed(item_.launch);
      duration_ms_ = launches == 0 ? ms : std::min(duration_ms_, ms);
      spent += ms;
      ++launches;
    } while (spent < policy_.warmup_ms);
    const double longest_ms = std::max(policy_.lead_ms, policy_.back_to_back_ms);
    if (!item_.spaced_only && kShortTrain * duration_ms_ < longest_ms) {
      record_ = stopwatch_.record(item_.launch, kShortTrain);
    }
  }

  void spaced() {
    prepare();
    double spent = 0;
    for (int i = 0; i < policy_.spaced_max && (i == 0 || spent < policy_.spaced_ms); ++i) {
      const double gap = idle_gap_ms(policy_, duration_ms_);
      stopwatch_.idle(gap);
      const double ms = take([&] { return stopwatch_.single(item_.launch); });
      times_.spaced.push_back(ms);
      duration_ms_ = ms;
      spent += gap + ms;
    }
  }

  void lead() { run_train(policy_.lead_ms, 1); }

  void back_to_back() {
    const Train done = run_train(policy_.back_to_back_ms, policy_.back_to_back_min);
    times_.back_to_back.push_back(done.ms / done.launches);
    launches_ += done.launches;
    recorded_ += done.recorded;
    times_.recorded = 2 * recorded_ > launches_;
  }

 private:
  struct Train {
    double ms = 0;
    int launches = 0, recorded = 0;
  };

  void prepare() {
    if (item_.prepare) stopwatch_.untimed(item_.prepare);
  }

  Train run_train(double at_least_ms, int at_least) {
    Train done;
    while (done.launches < at_least || done.ms < at_least_ms) {
      const double left = std::max(0.0, at_least_ms - done.ms) / std::max(duration_ms_, 1e-3);
      const int wanted = std::max(at_least - done.launches, static_cast<int>(std::ceil(left)));
      const int count = std::clamp(wanted, 1, longest_train_);
      if (count > kShortTrain) {
        const Train more = long_train(count);
        done.ms += more.ms;
        done.launches += more.launches;
        done.recorded += more.recorded;
        continue;
      }
      done.ms += take([&] { return stopwatch_.train(item_.launch, count, kAhead); });
      done.launches += count;
    }
    return done;
  }

  /// No launches, if the device waited for the host: then later trains are short.
  Train long_train(int count) {
    const int records = (count + kShortTrain - 1) / kShortTrain;
    const std::optional<double> ms = record_ ? stopwatch_.train(*record_, records, 1)
                                             : stopwatch_.train(item_.launch, count, kAhead);
    if (ms && record_) return {*ms, records * kShortTrain, records * kShortTrain};
    if (ms) return {*ms, count};
    longest_train_ = kShortTrain;
    return {};
  }

  template <typename Measure>
  double take(Measure measure) {
    for (int tries = 0; tries < kMaxExpired; ++tries) {
      if (const std::optional<double> ms = measure()) return *ms;
      ++times_.expired;
    }
    throw HoldExpired();
  }

  const TimedItem& item_;
  const TimingPolicy& policy_;
  Stopwatch& stopwatch_;
  ItemTimes& times_;
  double duration_ms_ = 1;
  int longest_train_ = kLongTrain;
  std::int64_t launches_ = 0, recorded_ = 0;  ///< of all rounds, back to back
  std::optional<Stopwatch::Launch> record_;   ///< kShortTrain launches
};

}  // namespace

double idle_gap_ms(const TimingPolicy& policy, double duration_ms) {
  return std::clamp(duration_ms, policy.gap_min_ms, policy.gap_max_ms);
}

std::vector<ItemTimes> time_interleaved(const std::vector<TimedItem>& items,
                                        const TimingPolicy& policy, Stopwatch& stopwatch,
                                        TimingObserver* observer) {
  std::vector<ItemTimes> times(items.size());
  std::vector<ItemRun> runs;
  runs.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    runs.emplace_back(items[i], policy, stopwatch, times[i]);
  }

  const auto guarded = [&](std::size_t item, auto&& step) {
    if (times[item].error) return;
    io::stop_if_interrupted();
    try {
      step(runs[item]);
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {
      times[item].error = error.what();
    }
  };
  const auto observed = [&](std::size_t item, Phase phase, int round, auto&& step) {
    if (observer) observer->begin(item, phase, round);
    guarded(item, step);
    if (observer) observer->end();
  };

  for (std::size_t i = 0; i < items.size(); ++i) {
    guarded(i, [](ItemRun& run) { run.warm_up(); });
  }
  for (int round = 0; round < policy.rounds; ++round) {
    for (std::size_t step = 0; step < items.size(); ++step) {
      // Every second round in the other order, so that no kernel always follows the same
      // neighbour's heat.
      const bool backwards = (round % 2 != 0) != policy.backwards;
      const std::size_t i = backwards ? items.size() - 1 - step : step;
      observed(i, Phase::spaced, round, [](ItemRun& run) { run.spaced(); });
      if (items[i].spaced_only) continue;
      guarded(i, [](ItemRun& run) { run.lead(); });
      observed(i, Phase::back_to_back, round, [](ItemRun& run) { run.back_to_back(); });
    }
    if (observer) observer->finished_round(times);
  }
  return times;
}

}  // namespace fa
