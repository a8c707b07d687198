// SPDX-License-Identifier: MIT
// The CUDA device: one problem's buffers between red zones, plans launched on a stream of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.h"

struct CUstream_st;  // cudaStream_t is a pointer to this

namespace fa {

using GpuStream = CUstream_st*;

/// Number of GPUs that the runtime sees; 0 with the driver's words in *why when there is none.
int gpu_count(std::string* why = nullptr);

/// Ordinal of the current GPU of this thread.
int current_gpu();

/// The current GPU as plans see it; opens nothing.
DeviceDescription gpu_description();

struct GpuOptions {
  /// Bytes of a known pattern before and after every buffer. 0 leaves each buffer exactly as large
  /// as its tensor, so that compute-sanitizer sees every access outside it.
  std::size_t red_zone = 4096;
};

/// Runs plans on the current CUDA device.
class GpuDevice final : public Device {
 public:
  explicit GpuDevice(GpuOptions options = {});
  ~GpuDevice() override;
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  std::string kind() const override { return "gpu"; }
  const DeviceDescription& description() const override { return description_; }

  DeviceFacts facts() const override { return facts_; }
  bool has_clock() const override { return true; }
  std::unique_ptr<Stopwatch> make_stopwatch(L2Policy l2) override;
  std::optional<KernelResources> resources(const Launch& launch) override;

  void require_memory(const Problem& problem) override;
  void load(const Problem& problem, const Inputs& inputs) override;
  void poison_output() override;
  void launch(const LaunchPlan& plan) override;
  HostTensor download_output() override;
  HostTensor download_lse() override;
  Gradients download_gradients() override;
  std::vector<std::string> damaged_red_zones() override;
  std::vector<std::string> nonzero_scratch() override;

  GpuStream stream() const { return stream_; }
  /// Device address of a tensor of the loaded problem; null for one that it does not have.
  void* address(Tensor tensor) const;
  /// Copies K and V until launches that take the copies in turn find none of them in the L2, as in
  /// a model, where every layer has a cache of its own. Returns how many there are, at most
  /// `most`: 1 where a launch reads more than twice the L2 itself.
  int make_cache_copies(int most);
  /// Whether all copies of K and V together fit into twice the L2: then launches may find them
  /// there.
  bool cache_is_hot() const;
  /// address() and launch() take the next copy of K and V.
  void turn_cache();
  /// Waits for the stream and throws what went wrong on it.
  void synchronize();
  /// Frees the buffers of the loaded problem.
  void unload();
  /// Keeps the scratch memory of what was launched last, also when the device needs other memory.
  std::shared_ptr<const void> scratch_memory() const { return scratch_memory_; }

 private:
  struct Region;
  struct Buffer;
  struct Pinned;

  void allow_dynamic_shared(const Launch& launch);
  /// Throws OutOfMemory when the problem's tensors do not fit on the GPU.
  void require_tensors(const Problem& problem);
  /// Throws OutOfMemory when buffers of these sizes do not fit; `who` needs them for `what`.
  void require_free(const std::vector<double>& sizes, const std::string& who,
                    const std::string& what);
  Buffer make_buffer(const char* name, std::size_t bytes);
  void provide_scratch(const LaunchPlan& plan);
  bool scratch_is_of(const LaunchPlan& plan) const;
  const Region& zeroed_scratch(const Scratch& wanted);
  void lay_out_scratch(const LaunchPlan& plan);
  void write_red_zones(const Region& region);
  void poison(const Region& held);
  void zero(const Region& held);
  void upload(const Buffer& target, const void* source);
  void download(const Buffer& source, void* destination);
  HostTensor download(Tensor source, HostTensor target);
  HostTensor download_rows(Tensor tensor);  ///< of one that may have strides
  /// Null for one that the problem does not have.
  const Buffer* buffer(Tensor tensor) const;
  std::size_t cache_bytes() const;  ///< of K and V, which a problem always has

  GpuOptions options_;
  DeviceDescription description_;
  DeviceFacts facts_;  ///< all of them
  GpuStream stream_ = nullptr;
  Problem problem_;
  std::map<Tensor, Buffer> buffers_;  ///< those that the problem has; empty until load()
  /// Of K and V: their copies; a launch takes those of the turn, the originals at turn 0.
  std::map<Tensor, std::vector<Buffer>> cache_copies_;
  std::size_t cache_turn_ = 0;
  std::vector<std::string>
      damaged_;  ///< downloaded tensors with gaps between rows that were written
  /// One block for all plans, which grows and never shrinks; null before there is any. Recorded
  /// launches hold its addresses and share it.
  std::shared_ptr<std::vector<Buffer>> scratch_memory_;
  std::list<Buffer> zeroed_;     ///< scratch buffers that every launch leaves zero
  std::vector<Region> scratch_;  ///< in it: the buffers of the last plan that needed any
  bool scratch_due_ = false;     ///< the next plan with scratch finds it poisoned
  bool scratch_zoned_ = false;   ///< scratch_ has its red zones
  std::unique_ptr<Pinned> pinned_;
  std::map<const void*, std::size_t> dynamic_shared_;  ///< limit already set, by kernel
};

}  // namespace fa
