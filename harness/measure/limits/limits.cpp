// SPDX-License-Identifier: MIT
#include "harness/measure/limits/limits.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "harness/device/cuda_check.h"
#include "harness/device/gpu.h"
#include "harness/device/gpu_stopwatch.h"
#include "harness/environment/build.h"
#include "harness/environment/nvml.h"
#include "harness/io/interrupt.h"
#include "harness/measure/identity.h"
#include "harness/measure/limits/loops.h"

namespace fa::limits {
namespace {

constexpr std::int64_t kMostBuffer = std::int64_t{4} << 30;

/// Device memory.
class Memory {
 public:
  Memory(std::int64_t bytes, const std::string& what) : bytes_(bytes) {
    check_cuda(cudaMalloc(&address_, static_cast<std::size_t>(bytes)),
               fmt::format("allocating {} bytes for {}", bytes, what));
  }
  ~Memory() { ignore_cuda(cudaFree(address_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* address() const { return static_cast<std::byte*>(address_); }
  std::int64_t bytes() const { return bytes_; }

  void clear() const {
    check_cuda(cudaMemset(address_, 0, static_cast<std::size_t>(bytes_)), "clearing a buffer");
    settle();
  }

  /// `words` over and over.
  void fill(std::span<const std::uint32_t> words) const {
    std::int64_t done = std::min(bytes_, static_cast<std::int64_t>(words.size_bytes()));
    check_cuda(
        cudaMemcpy(address_, words.data(), static_cast<std::size_t>(done), cudaMemcpyHostToDevice),
        "uploading the operands");
    while (done < bytes_) {
      const std::int64_t next = std::min(done, bytes_ - done);
      check_cuda(cudaMemcpy(address() + done, address_, static_cast<std::size_t>(next),
                            cudaMemcpyDeviceToDevice),
                 "filling a buffer");
      done += next;
    }
    settle();
  }

  std::vector<std::uint32_t> download(std::int64_t offset, std::int64_t bytes) const {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(bytes / 4));
    check_cuda(cudaMemcpy(words.data(), address() + offset, static_cast<std::size_t>(bytes),
                          cudaMemcpyDeviceToHost),
               "downloading results");
    return words;
  }

 private:
  /// Kernels run on a stream of their own, which does not wait for what was asked for here.
  static void settle() { check_cuda(cudaDeviceSynchronize(), "preparing a buffer"); }

  void* address_ = nullptr;
  std::int64_t bytes_;
};

/// The largest multiple of `unit` that is not above `bytes`, at least one.
std::int64_t whole(std::int64_t bytes, std::int64_t unit) {
  return std::max<std::int64_t>(bytes / unit, 1) * unit;
}

/// What all loops share on the card. The buffer serves as operands and as L2's working set, too:
/// it repeats the operands.
class Bench {
 public:
  explicit Bench(GpuDevice& device)
      : device_(device),
        operands_(make_operands()),
        buffer_(whole(std::min(kMostBuffer, static_cast<std::int64_t>(*device.facts().memory / 16)),
                      operand_bytes()),
                "the buffer that is read"),
        copy_(whole(buffer_.bytes() / 2, operand_bytes()), "the copy") {
    buffer_.fill(operands_);
    copy_.clear();
  }

  int blocks(const Loop& loop) const { return loop.blocks * device_.description().sms; }

  /// 16-byte words of the buffer that the loop uses: chunks for all thread blocks alike.
  std::int64_t count(const Loop& loop) const {
    // A quarter: the L2 of a card with two partitions may hold a line in both.
    const auto l2 = static_cast<std::int64_t>(*device_.facts().l2 / 4);
    const std::int64_t unit = kChunk * kWord * blocks(loop);
    switch (loop.source) {
      case Source::operands:
        return operand_bytes() / kWord;
      case Source::l2:
        return whole(l2, unit) / kWord;
      case Source::memory:
        return whole((loop.words == 0 ? copy_ : buffer_).bytes(), unit) / kWord;
    }
    return 0;
  }

  void allow_shared(const Loop& loop) const {
    check_cuda(cudaFuncSetAttribute(loop.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(loop.shared)),
               fmt::format("{}: asking for {} bytes of shared memory", loop.entry, loop.shared));
  }

  /// Results go to the memory of the copy; that of a loop on operands is far smaller.
  void launch(const Loop& loop, int iterations) const {
    Arguments arguments{buffer_.address(), copy_.address(), count(loop), iterations};
    std::array<void*, 4> addresses{&arguments.input, &arguments.output, &arguments.count,
                                   &arguments.iterations};
    check_cuda(cudaLaunchKernel(loop.kernel, dim3(static_cast<unsigned>(blocks(loop))),
                                dim3(static_cast<unsigned>(loop.threads)), addresses.data(),
                                loop.shared, device_.stream()),
               "launching " + loop.entry);
  }

  /// Launches over cleared results; what is wrong with them, empty for nothing.
  std::string check(const Loop& loop, int iterations) const {
    copy_.clear();
    launch(loop, iterations);
    device_.synchronize();
    std::string wrong;
    if (loop.words > 0) {
      wrong = check_part(loop, iterations, 0,
                         std::int64_t{blocks(loop)} * loop.threads * loop.words * 4);
    } else {
      const std::int64_t repeats = count(loop) * kWord / operand_bytes();
      for (const std::int64_t i : {std::int64_t{0}, repeats / 2, repeats - 1}) {
        if (wrong.empty())
          wrong = check_part(loop, iterations, i * operand_bytes(), operand_bytes());
      }
    }
    return wrong;
  }

 private:
  std::int64_t operand_bytes() const { return static_cast<std::int64_t>(operands_.size() * 4); }

  std::string check_part(const Loop& loop, int iterations, std::int64_t offset,
                         std::int64_t bytes) const {
    if (offset + bytes > copy_.bytes()) return "its results do not fit into device memory";
    const std::vector<std::uint32_t> output = copy_.download(offset, bytes);
    return verify(loop, {iterations, count(loop), operands_, output});
  }

  GpuDevice& device_;
  std::vector<std::uint32_t> operands_;
  Memory buffer_;
  Memory copy_;
};

/// A loop on its way to a row.
struct Run {
  const Loop* loop = nullptr;
  LimitRow row;
  int iterations = 1;
  std::optional<std::size_t> item;  ///< its place among the timed ones
};

/// Chooses the iterations: a first guess grows until a launch can be measured well.
int calibrate(const Bench& bench, const Loop& loop, GpuStopwatch& stopwatch) {
  int iterations = 1;
  for (int tries = 0; tries < 8; ++tries) {
    const auto launch = [&] { bench.launch(loop, iterations); };
    stopwatch.untimed(launch);
    const std::optional<double> ms = stopwatch.single(launch);
    if (!ms) continue;
    const int next = iterations_for(kLaunchMs, *ms, iterations);
    if (*ms >= kLaunchMs / 4) return next;
    iterations = std::min(next, iterations * 64);
  }
  return iterations;
}

void prepare(Run& run, const Bench& bench, GpuDevice& device, GpuStopwatch& stopwatch) {
  if (const std::string why = unsupported(*run.loop, device.sm()); !why.empty())
    return run.row.settle(Status::unsupported, why);
  try {
    bench.allow_shared(*run.loop);
    run.iterations = calibrate(bench, *run.loop, stopwatch);
    const std::string wrong = bench.check(*run.loop, run.iterations);
    run.row.settle(wrong.empty() ? Status::ok : Status::incorrect, wrong);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    run.row.settle(Status::error, error.what());
  }
}

/// Opens the sampler's window of a loop while it is launched back to back, and keeps the times of
/// whole rounds.
class Watcher final : public TimingObserver {
 public:
  Watcher(ClockSampler& sampler, const std::vector<TimedItem>& items, const LimitsReport& report)
      : sampler_(sampler), items_(items), report_(report) {}

  int rounds() const { return rounds_; }
  const std::vector<ItemTimes>& times() const { return times_; }

  void begin(std::size_t item, Phase phase, int round) override {
    if (phase == Phase::back_to_back) sampler_.open(item);
    if (report_.progress)
      report_.progress(fmt::format("round {}: {}", round + 1, items_[item].name));
  }
  void end() override { sampler_.close(); }
  void finished_round(const std::vector<ItemTimes>& times) override {
    ++rounds_;
    times_ = times;
  }

 private:
  ClockSampler& sampler_;
  const std::vector<TimedItem>& items_;
  const LimitsReport& report_;
  int rounds_ = 0;
  std::vector<ItemTimes> times_;
};

Json policy(const TimingPolicy& timing, const GpuDevice& device, const Nvml* nvml) {
  Json json = policy_json(timing, 1, device, nvml);
  for (const char* of_attention : {"flops", "bytes"}) json.erase(of_attention);
  json["launch_ms"] = kLaunchMs;
  return json;
}

}  // namespace

TimingPolicy limits_policy() {
  TimingPolicy policy;
  policy.rounds = 3;
  policy.warmup_ms = 30;
  policy.spaced_ms = 100;
  policy.spaced_max = 8;
  policy.lead_ms = 60;
  policy.back_to_back_ms = 240;
  policy.l2 = L2Policy::warm;
  return policy;
}

int iterations_for(double wanted_ms, double ms, int iterations) {
  const double wanted = wanted_ms / std::max(ms, 1e-6) * iterations;
  return static_cast<int>(std::clamp(std::round(wanted), 1.0, double{kMostIterations}));
}

Limits measure_limits(GpuDevice& device, const std::vector<std::string>& argv,
                      const LimitsReport& report) {
  const std::unique_ptr<Nvml> nvml = Nvml::open(device.facts().pci_bus_id);
  const TimingPolicy timing = limits_policy();
  Limits limits;
  limits.identity = {generator_json(source_state(), argv), device_json(device, nvml.get()),
                     policy(timing, device, nvml.get())};
  const Bench bench(device);
  GpuStopwatch stopwatch(device, timing.l2);

  std::vector<Run> runs;
  std::vector<TimedItem> items;
  const auto prepare_all = [&] {
    for (const Loop& loop : all_loops()) {
      io::stop_if_interrupted();
      if (report.progress) report.progress("checking " + loop.id);
      Run run;
      run.loop = &loop;
      run.row = empty_row(loop, bench.blocks(loop), bench.count(loop));
      prepare(run, bench, device, stopwatch);
      if (run.row.status == Status::ok) {
        run.item = items.size();
        const auto launch = [&bench, &loop, n = run.iterations] { bench.launch(loop, n); };
        items.push_back({.name = loop.id, .launch = launch});
      }
      runs.push_back(std::move(run));
    }
  };

  try {
    prepare_all();
  } catch (const io::Interrupted&) {
    limits.interrupted = true;
  }
  ClockSampler sampler(nvml.get(), items.size());
  Watcher watcher(sampler, items, report);
  try {
    if (!limits.interrupted) time_interleaved(items, timing, stopwatch, &watcher);
  } catch (const io::Interrupted&) {
    limits.interrupted = true;
    sampler.close();
  }
  limits.rounds = watcher.rounds();
  for (Run& run : runs) {
    if (run.item) {
      if (limits.rounds == 0) continue;
      put_times(run.row, *run.loop, run.iterations, bench.count(*run.loop),
                watcher.times()[*run.item], sampler.reading(*run.item), device.description().sms);
    }
    limits.rows.push_back(std::move(run.row));
  }
  return limits;
}

Json limits_document(const Limits& limits) {
  Json document{{"schema", kResultsSchema}, {"kind", "limits"}};
  if (limits.interrupted) document["interrupted"] = true;
  document["generator"] = limits.identity.generator;
  document["device"] = limits.identity.device;
  document["policy"] = limits.identity.policy;
  document["policy"]["rounds"] = limits.rounds;
  document["rows"] = Json::array();
  for (const LimitRow& row : limits.rows) document["rows"].push_back(to_json(row));
  return document;
}

}  // namespace fa::limits
