// SPDX-License-Identifier: MIT
#include "harness/measure/timeline/timeline.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>

#include "harness/cli/arguments.h"
#include "harness/device/cuda_check.h"
#include "harness/device/gpu_launch.h"
#include "harness/device/gpu_stopwatch.h"
#include "harness/environment/nvml.h"
#include "harness/measure/identity.h"
#include "harness/measure/item.h"
#include "harness/measure/limits/limits.h"
#include "harness/measure/measured.h"

namespace fa::timeline {
namespace {

constexpr std::size_t kBytes = sizeof(Stamp) * kWarps * kStamps;

/// The kernel of a rung with stamps, and where it writes them.
class Stamped {
 public:
  Stamped(const std::string& folder, const Rung& rung, const char* entry) {
    const std::string file = fmt::format("{}/{}.cubin", folder, rung.name);
    check_cuda(
        cudaLibraryLoadFromFile(&library_, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "loading " + file);
    check_cuda(cudaLibraryGetKernel(&kernel_, library_, entry),
               fmt::format("finding {} in {}", entry, file));
    std::size_t bytes = 0;
    check_cuda(cudaLibraryGetGlobal(&stamps_, &bytes, library_, "fa_stamps"),
               "finding fa_stamps in " + file);
    if (bytes != kBytes)
      throw DeviceError(fmt::format("{}: fa_stamps has {} bytes, not {}", file, bytes, kBytes));
  }
  Stamped(const Stamped&) = delete;
  Stamped& operator=(const Stamped&) = delete;
  ~Stamped() { ignore_cuda(cudaLibraryUnload(library_)); }

  /// The runtime takes the handle of a library's kernel where it takes a kernel's address.
  const void* kernel() const { return kernel_; }

  void clear() const {
    check_cuda(cudaMemset(stamps_, 0, kBytes), "clearing the stamps");
    check_cuda(cudaDeviceSynchronize(), "clearing the stamps");
  }
  std::vector<Stamp> read() const {
    std::vector<Stamp> stamps(static_cast<std::size_t>(kWarps) * kStamps);
    check_cuda(cudaMemcpy(stamps.data(), stamps_, kBytes, cudaMemcpyDeviceToHost),
               "reading the stamps");
    return stamps;
  }

 private:
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  void* stamps_ = nullptr;
};

std::int64_t recorded_block(const Launch& launch) {
  return launch.grid.x * launch.grid.y * launch.grid.z / 2;
}

TimelineRow row_of(const Item& item, const Launch& launch, const std::vector<ItemTimes>& times,
                   const std::vector<Stamp>& stamps) {
  TimelineRow row;
  row.id = item.rung->id;
  row.variant = item.key.variant;
  row.entry = launch.entry;
  row.problem = item.problem();
  row.threads = launch.block;
  row.blocks = launch.grid.x * launch.grid.y * launch.grid.z;
  row.block = recorded_block(launch);
  row.plain_ms = times_of(times[0]);
  row.stamped_ms = times_of(times[1]);
  row.warps = warp_events(stamps);
  return row;
}

TimelineRow record_rung(GpuDevice& device, const std::string& folder, const Item& item) {
  if (!item.refused.empty()) throw DeviceError(item.refused);
  LaunchPlan plan = item.plan;
  Launch& launch = plan.launches.at(0);
  const Stamped stamped(folder, *item.rung, launch.entry);
  launch.kernel = stamped.kernel();
  // The device knows kernels by their handle, and this one may be that of an unloaded library's.
  raise_shared_limit(launch);

  const auto output = [&](const LaunchPlan& of) {
    device.poison_output();
    device.launch(of);
    return device.download_output();
  };
  if (output(item.plan).bytes != output(plan).bytes)
    throw DeviceError(fmt::format("{} with stamps writes other bits", item.name));

  const TimingPolicy timing = limits::limits_policy();
  GpuStopwatch stopwatch(device, timing.l2);
  const std::vector<TimedItem> both{
      {.name = item.name, .launch = [&] { device.launch(item.plan); }},
      {.name = "with stamps", .launch = [&] { device.launch(plan); }}};
  const std::vector<ItemTimes> times = time_interleaved(both, timing, stopwatch);
  for (const ItemTimes& each : times)
    if (each.error) throw DeviceError(*each.error);
  stamped.clear();
  device.launch(plan);
  device.synchronize();
  return row_of(item, launch, times, stamped.read());
}

}  // namespace

Timeline record(GpuDevice& device, const std::string& folder, std::int64_t seq,
                const std::vector<std::string>& argv,
                const std::function<void(const std::string&)>& progress) {
  const Problem problem{.batch = 16, .heads = 16, .seq_q = seq, .seq_kv = seq, .head_dim = 128};
  device.require_memory(problem);
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  Timeline timeline;
  for (const std::string_view id : kRungs) {
    const Rung& rung = cli::select_rung(std::string(id));
    progress(fmt::format("recording {}", rung.name));
    timeline.rows.push_back(
        record_rung(device, folder, rung_item(rung, problem, "", device.description())));
  }
  const std::unique_ptr<Nvml> nvml = Nvml::open(device.facts().pci_bus_id);
  timeline.identity = {generator_json(source_state(), argv), device_json(device, nvml.get()),
                       policy_json(limits::limits_policy(), 1, device, nvml.get())};
  return timeline;
}

}  // namespace fa::timeline
