// SPDX-License-Identifier: MIT
#include "harness/measure/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "harness/device/gpu_stopwatch.h"
#include "harness/environment/nvml.h"
#include "harness/io/interrupt.h"
#include "harness/measure/identity.h"
#include "harness/measure/inputs_for.h"
#include "harness/measure/measured.h"

namespace fa {
namespace {

/// Feeds the clock sampler and the progress line.
class Watcher final : public TimingObserver {
 public:
  Watcher(ClockSampler& sampler, const std::vector<TimedItem>& items, const BenchReport& report,
          int rounds, std::string problem)
      : sampler_(sampler),
        items_(items),
        report_(report),
        rounds_(rounds),
        problem_(std::move(problem)) {}

  void begin(std::size_t item, Phase phase, int round) override {
    if (phase == Phase::back_to_back) sampler_.open(item);
    if (report_.progress) {
      report_.progress(
          fmt::format("{}: round {} of {}, {}", problem_, round + 1, rounds_, items_[item].name));
    }
  }
  void end() override { sampler_.close(); }

 private:
  ClockSampler& sampler_;
  const std::vector<TimedItem>& items_;
  const BenchReport& report_;
  int rounds_;
  std::string problem_;
};

/// Enough for caches of 2 MB; of smaller ones all copies stay in the L2, and the row says so.
constexpr int kMostCacheCopies = 64;

/// One problem on its way to rows.
class ProblemRun {
 public:
  ProblemRun(GpuDevice& device, GpuStopwatch& stopwatch, const Nvml* nvml,
             const BenchOptions& options, const BenchReport& report, const std::vector<Item>& items,
             const ResultsFile* verified, const std::string& run)
      : device_(device),
        stopwatch_(stopwatch),
        nvml_(nvml),
        options_(options),
        report_(report),
        items_(items),
        verified_(verified) {
    for (const Item& item : items) rows_.push_back(empty_row(item, run));
  }

  /// Sets lost() instead of throwing when the context dies: the rows until then are valid.
  void execute() {
    try {
      if (load()) {
        verify_all();
        time_correct();
      }
    } catch (const DeviceLost& error) {
      lost_ = error.what();
    } catch (const io::Interrupted&) {
      interrupted_ = true;
    }
  }

  /// All rows, or when the device was lost or the work interrupted those that were settled before.
  std::vector<Row> rows() const {
    if (!lost_ && !interrupted_) return rows_;
    std::vector<Row> settled;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!pending(i)) settled.push_back(rows_[i]);
    }
    return settled;
  }
  const std::optional<std::string>& lost() const { return lost_; }
  bool interrupted() const { return interrupted_; }

 private:
  /// Neither refused nor settled with a reason.
  bool pending(std::size_t i) const {
    return rows_[i].status == Status::error && rows_[i].reason.empty();
  }

  void progress(const std::string& text) const {
    if (report_.progress) report_.progress(text);
  }

  bool load() {
    const auto first = std::find_if(items_.begin(), items_.end(),
                                    [](const Item& item) { return item.refused.empty(); });
    if (first == items_.end()) return false;
    const Problem& problem = first->problem();
    try {
      device_.require_memory(problem);
      progress(fmt::format("{}: inputs and reference", describe(problem, options_.inputs)));
      const Inputs inputs = inputs_for(device_, problem, options_.inputs, options_.seed);
      device_.load(problem, inputs);
      verifier_ = std::make_unique<Verifier>(problem, inputs);
    } catch (const OutOfMemory& error) {
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (pending(i)) rows_[i].settle(Status::out_of_memory, error.what());
      }
      return false;
    }
    return true;
  }

  /// Enqueues one pass; rungs write the device's results, peers only when they are verified.
  void launch(const Item& item, bool store) {
    if (!item.peer) {
      device_.launch(item.plan);
      return;
    }
    const auto at = [&](Tensor tensor) { return device_.address(tensor); };
    const auto result = [&](Tensor tensor) { return store ? at(tensor) : nullptr; };
    const bool backward = item.problem().backward;
    const PeerTensors tensors{.q = at(Tensor::q),
                              .k = at(Tensor::k),
                              .v = at(Tensor::v),
                              .o = backward ? at(Tensor::o) : result(Tensor::o),
                              .lse = backward ? at(Tensor::lse) : nullptr,
                              .d_o = at(Tensor::d_o),
                              .d_q = result(Tensor::d_q),
                              .d_k = result(Tensor::d_k),
                              .d_v = result(Tensor::d_v)};
    item.peer->launch(item.problem(), tensors, device_.stream());
  }

  void verify_all() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!pending(i)) continue;
      io::stop_if_interrupted();
      progress(fmt::format("{}: verifying {}", describe(items_[i].problem(), options_.inputs),
                           items_[i].name));
      try {
        verify(i);
      } catch (const DeviceLost& error) {
        rows_[i].settle(Status::error, error.what());
        throw;
      } catch (const PeerUnsupported& error) {
        rows_[i].settle(Status::unsupported, error.what());
      } catch (const OutOfMemory& error) {
        rows_[i].settle(Status::out_of_memory, error.what());
      } catch (const DeviceError& error) {
        rows_[i].settle(Status::error, error.what());
      } catch (const KernelFault& error) {
        rows_[i].settle(Status::incorrect, error.what());
      }
    }
  }

  void verify(std::size_t i) {
    const Item& item = items_[i];
    if (item.peer && item.peer->is_ceiling()) {
      launch(item, false);
      device_.synchronize();
      return;
    }
    if (!item.peer) {
      put_resources(rows_[i], item.plan, device_);
    }
    const Row* before = verified_ ? verified_->find(item.key) : nullptr;
    if (before && before->status == Status::ok) {
      rows_[i].check = before->check;
      if (item.peer) rows_[i].peak_bytes = before->peak_bytes;
      return;
    }
    const Verdict verdict = pass_gate(
        device_, [&] { launch(item, true); }, *verifier_,
        item.peer ? Repeat::correct : promised(item.plan));
    if (verdict.check.rows_total > 0) rows_[i].check = check_of(verdict);
    if (!verdict.ok) rows_[i].settle(Status::incorrect, verdict.reason);
    if (!item.peer || !item.peer->device_bytes) return;
    if (const std::optional<std::int64_t> extra = item.peer->device_bytes()) {
      rows_[i].peak_bytes = static_cast<std::int64_t>(item.problem().input_bytes()) + *extra;
    }
  }

  void time_correct() {
    const std::function<void(const LaunchPlan&)> launch_plan = [this](const LaunchPlan& plan) {
      device_.launch(plan);
    };
    // Each item, and behind it the launches of its plan where there are several.
    struct Timed {
      std::size_t row, work, parts;
    };
    std::vector<Timed> timed;
    std::vector<TimedItem> work;
    try {
      cache_copies_ = device_.make_cache_copies(kMostCacheCopies);
    } catch (const OutOfMemory&) {  // the rows say how many there are
      cache_copies_ = device_.make_cache_copies(1);
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!pending(i)) continue;
      std::vector<TimedItem> parts = part_items(items_[i], launch_plan);
      timed.push_back({i, work.size(), parts.size()});
      work.push_back({items_[i].name, [this, i] {
                        device_.turn_cache();
                        launch(items_[i], false);
                      }});
      std::move(parts.begin(), parts.end(), std::back_inserter(work));
    }
    if (work.empty()) return;
    ClockSampler sampler(nvml_, work.size());
    Watcher watcher(sampler, work, report_, options_.policy.rounds,
                    describe(items_.front().problem(), options_.inputs));
    const std::vector<ItemTimes> times =
        time_interleaved(work, options_.policy, stopwatch_, &watcher);
    for (const Timed& each : timed) {
      const std::span all(times);
      settle_timed(each.row, all[each.work], all.subspan(each.work + 1, each.parts),
                   sampler.reading(each.work));
    }
  }

  void settle_timed(std::size_t i, const ItemTimes& times, std::span<const ItemTimes> parts,
                    const ClockReading& clock) {
    if (times.error) {
      rows_[i].settle(Status::error, *times.error);
      return;
    }
    put_times(rows_[i], items_[i], times);
    if (rows_[i].time_ms->back_to_back) {
      rows_[i].time_ms->cache_copies = cache_copies_;
      rows_[i].time_ms->hot = device_.cache_is_hot();
    }
    put_part_times(rows_[i], parts);
    put_clock(rows_[i], clock);
    rows_[i].settle(Status::ok, "");
  }

  GpuDevice& device_;
  GpuStopwatch& stopwatch_;
  const Nvml* nvml_;
  const BenchOptions& options_;
  const BenchReport& report_;
  const std::vector<Item>& items_;
  const ResultsFile* verified_;
  std::vector<Row> rows_;
  std::unique_ptr<Verifier> verifier_;
  int cache_copies_ = 1;
  std::optional<std::string> lost_;
  bool interrupted_ = false;
};

void count(BenchOutcome& outcome, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    ++(row.status == Status::ok            ? outcome.ok
       : row.status == Status::incorrect   ? outcome.incorrect
       : row.status == Status::unsupported ? outcome.unsupported
                                           : outcome.failed);
  }
}

/// Each problem once for each set of types that the rungs have.
std::vector<Problem> typed_problems(const BenchOptions& options) {
  std::vector<Problem> problems;
  for (Problem problem : options.problems) {
    problem.dtype = options.dtype.value_or(Dtype::f16);
    if (options.rungs.empty()) problems.push_back(problem);
    std::vector<const Rung*> typed;  // one of each set
    for (const Rung* rung : options.rungs) {
      if (left_out(*rung, options.rungs, problem)) continue;
      set_types(*rung, problem);
      if (std::any_of(typed.begin(), typed.end(),
                      [&](const Rung* other) { return types_match(*other, problem); })) {
        continue;
      }
      typed.push_back(rung);
      problems.push_back(problem);
    }
  }
  return problems;
}

std::vector<Row> kept_rows(const ResultsFile& file, const std::vector<Item>& items) {
  std::vector<Row> rows;
  rows.reserve(items.size());
  for (const Item& item : items) {
    rows.push_back(*file.find(item.key));
  }
  return rows;
}

}  // namespace

std::vector<Item> bench_items(const BenchOptions& options, const Problem& problem,
                              const DeviceDescription& device) {
  std::vector<Item> items;
  const auto wanted = [&](const Instance& instance) {
    return options.tiles.empty() ||
           std::count(options.tiles.begin(), options.tiles.end(), to_string(instance.tile)) > 0;
  };
  for (const Rung* rung : options.rungs) {
    if (!types_match(*rung, problem) || left_out(*rung, options.rungs, problem)) continue;
    const std::vector<const Instance*> instances =
        rung->find_instances(problem.head_dim, problem.dtype, options.tuned);
    if (instances.empty()) {  // a head_dim that the rung does not have: one refusal
      items.push_back(rung_item(*rung, problem, "", device, options.inputs));
    }
    for (const Instance* instance : instances) {
      if (!options.ablations && instance != instances.front()) break;
      if (!wanted(*instance)) continue;
      items.push_back(rung_item(*rung, *instance, problem, device, options.inputs));
    }
  }
  for (const Peer& peer : options.peers) items.push_back(peer_item(peer, problem, options.inputs));
  return items;
}

bool is_complete(const ResultsFile& file, const std::vector<Item>& items) {
  return std::all_of(items.begin(), items.end(), [&](const Item& item) {
    const Row* row = file.find(item.key);
    if (!row) return false;
    if (!item.refused.empty()) {
      return row->status == Status::unsupported && row->reason == item.refused;
    }
    return row->status == Status::ok || row->status == Status::out_of_memory;
  });
}

BenchOutcome run_bench(GpuDevice& device, const BenchOptions& options, const BenchReport& report) {
  const auto note = [&](const std::string& text) {
    if (report.note) report.note(text);
  };
  const SourceState source = source_state();
  if (!source.warning.empty()) note("warning: " + source.warning);
  const std::unique_ptr<Nvml> nvml = Nvml::open(device.facts().pci_bus_id);
  if (!nvml) note("NVML is not available: clocks and power are not recorded");

  std::optional<ResultsFile> file, verified;
  const FileIdentity identity{generator_json(source, options.argv), device_json(device, nvml.get()),
                              policy_json(options.policy, options.seed, device, nvml.get(), true)};
  if (!options.verified.empty()) {
    verified.emplace(options.verified, identity, false);
    if (verified->size() == 0) {
      throw ForeignResults(fmt::format("--verified: '{}' has no rows", options.verified.string()));
    }
  }
  if (!options.json.empty()) {
    file.emplace(options.json, identity, options.overwrite);
    if (file->size() > 0)
      note(fmt::format("continuing {}, {} rows", options.json.string(), file->size()));
  }

  BenchOutcome outcome;
  const std::string run = utc_now();
  GpuStopwatch stopwatch(device, options.policy.l2);
  for (const Problem& problem : typed_problems(options)) {
    const std::vector<Item> items = bench_items(options, problem, device.description());
    if (items.empty()) continue;
    if (file && is_complete(*file, items)) {
      const std::vector<Row> rows = kept_rows(*file, items);
      note(fmt::format("{}: {} rows kept from {}", describe(problem, options.inputs), rows.size(),
                       options.json.string()));
      outcome.kept += static_cast<int>(rows.size());
      count(outcome, rows);
      if (report.finished) report.finished(problem, rows);
      continue;
    }
    ProblemRun work(device, stopwatch, nvml.get(), options, report, items,
                    verified ? &*verified : nullptr, run);
    work.execute();
    const std::vector<Row> rows = work.rows();
    count(outcome, rows);
    // Before the file, which may fail.
    if (report.finished && !rows.empty()) report.finished(problem, rows);
    if (file && !rows.empty()) file->put(rows);
    if (work.lost()) throw DeviceLost(*work.lost());
    outcome.interrupted = work.interrupted();
    if (outcome.interrupted) break;
    device.unload();
  }
  return outcome;
}

}  // namespace fa
