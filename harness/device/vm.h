// SPDX-License-Identifier: MIT
// The embedded device: the PTX virtual machine behind the interface of the GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.h"
#include "harness/device/ptx_library.h"
#include "ptxvm/launch.h"
#include "ptxvm/report.h"

namespace fa {

struct VmOptions {
  int threads = 0;        ///< host threads; 0 takes all cores
  bool reversed = false;  ///< warps and blocks take their turns last to first
  bool checkers = true;   ///< watch for races, copies never waited for and the like
  bool counters = false;  ///< count; see VmDevice::counts()
  /// May be that of other devices; null: one of its own, of the default folder.
  std::shared_ptr<PtxLibrary> ptx = {};
  /// A launch ends soon after this becomes true; null: when the process is interrupted.
  const std::atomic<bool>* stop = nullptr;
  /// Instructions of all warps before a launch is stopped; 0: default_max_steps().
  std::uint64_t max_steps = 0;
  /// Instructions of one warp before it is stopped.
  std::uint64_t max_warp_steps = ptxvm::Options{}.max_warp_steps;
  /// Takes what the kernels of a launch print, as soon as it has ended, also by a fault.
  std::function<void(const std::string&)> printed = {};
  /// Further observers; they must outlive the device.
  std::vector<ptxvm::Observer*> observers = {};
};

/// The machine as plans see it: an H200 under another name, so that no rung is refused.
DeviceDescription vm_description();

/// Instructions that a launch may execute: far more than a kernel needs that computes the problem
/// in a single thread.
std::uint64_t default_max_steps(const Problem& problem);

/// What one launch of a plan did.
struct LaunchCounts {
  std::string entry;
  ptxvm::CountReport report;
};

/// Runs plans in the PTX virtual machine. Launches are synchronous. A fault of the kernel, or a
/// checker's finding, is a KernelFault.
class VmDevice final : public Device {
 public:
  explicit VmDevice(VmOptions options = {});
  ~VmDevice() override;
  VmDevice(const VmDevice&) = delete;
  VmDevice& operator=(const VmDevice&) = delete;

  std::string kind() const override { return "vm"; }
  const DeviceDescription& description() const override { return description_; }

  void require_memory(const Problem& problem) override;
  void load(const Problem& problem, const Inputs& inputs) override;
  void poison_output() override;
  void launch(const LaunchPlan& plan) override;
  void set_reversed(bool reversed) override { reversed_ = reversed; }
  HostTensor download_output() override;
  HostTensor download_lse() override;
  Gradients download_gradients() override;
  /// Gaps between rows alone: an access outside a buffer stops the kernel.
  std::vector<std::string> damaged_red_zones() override;
  std::vector<std::string> nonzero_scratch() override;

  /// Counts of the last plan, a launch each; empty unless asked for.
  const std::vector<LaunchCounts>& counts() const { return counts_; }
  /// Their sum.
  ptxvm::Counts total_counts() const;

 private:
  ptxvm::LaunchConfig configure(const Launch& step, std::size_t scratch_buffers) const;
  ptxvm::Argument marshal(const Argument& argument) const;
  void provide_scratch(const LaunchPlan& plan);
  ptxvm::Address address(Tensor tensor) const;  ///< null for what the problem does not have
  HostTensor download(Tensor source, HostTensor target) const;
  HostTensor download_rows(Tensor tensor);  ///< of one that may have strides
  void unload();
  void run(const Launch& step, const LaunchPlan& plan);

  VmOptions options_;
  DeviceDescription description_;
  Problem problem_;
  std::unique_ptr<ptxvm::Memory> memory_;  ///< null until load()
  std::vector<ptxvm::Address> addresses_;  ///< in the order of Tensor
  struct HeldScratch {
    ptxvm::Address address;
    std::string name;
    bool zeroed;
  };
  std::vector<HeldScratch> scratch_;  ///< of the last plan that needed any
  std::vector<LaunchCounts> counts_;
  std::vector<std::string>
      damaged_;            ///< downloaded tensors with gaps between rows that were written
  bool reversed_ = false;  ///< turns round the order of the options
};

}  // namespace fa
