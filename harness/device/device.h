// SPDX-License-Identifier: MIT
// One interface over the devices that can run a LaunchPlan.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/attention/backward.h"
#include "harness/attention/inputs.h"
#include "harness/device/stopwatch.h"
#include "kernels/launch_plan.h"
#include "kernels/problem.h"

namespace fa {

/// What a kernel writes: the gradients of Q, K and V, or O and the LSE.
std::span<const Tensor> written_tensors(const Problem& problem);
/// Calls put() for each tensor that the inputs of a problem fill, with its memory, gaps between
/// rows included.
void for_each_input(const Problem& problem, const Inputs& inputs,
                    const std::function<void(Tensor, std::span<const std::byte>)>& put);

/// The machine cannot do what was asked: no GPU, a failed launch, a lost device. Exit code 3.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The context is gone (a kernel made an illegal access, a hardware fault): nothing more can run in
/// this process. Exit code 3.
struct DeviceLost : DeviceError {
  using DeviceError::DeviceError;
};

/// The problem does not fit; the message names bytes needed and bytes free. Exit code 3.
struct OutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};

/// One of the things that a kernel did wrong, where the device can tell them apart.
struct KernelFinding {
  std::string kind;   ///< "race"
  std::string place;  ///< in the kernel's source, the same whatever the problem
  std::string text;   ///< for people, several lines
};

/// The kernel, or the plan that launches it, did what no correct one does: an access outside its
/// buffers, a deadlock, a race, an empty grid. `what()` is one line. Exit code 1.
struct KernelFault : std::runtime_error {
  explicit KernelFault(const std::string& message, std::vector<KernelFinding> found = {})
      : std::runtime_error(message), findings(std::move(found)) {}
  std::vector<KernelFinding> findings;
};

/// Their texts below each other.
std::string text_of(const std::vector<KernelFinding>& findings);

/// Throws KernelFault where no device can execute this launch of a plan with so many scratch
/// buffers.
void require_launchable(const Launch& launch, std::size_t scratch_buffers);

/// What one entry point uses, by the runtime's account.
struct KernelResources {
  int sm = 0;       ///< compute capability x 10 of the card
  int threads = 0;  ///< of a block
  int registers = 0;
  std::size_t static_shared = 0;
  std::size_t dynamic_shared = 0;
  std::size_t local_bytes = 0;  ///< per thread: spills and stack arrays
  int blocks_per_sm = 0;
};

/// What result files say of a device; nothing where it has no such thing.
struct DeviceFacts {
  std::optional<int> sms;                 ///< streaming multiprocessors
  std::optional<std::size_t> memory, l2;  ///< bytes
  std::optional<int> cuda_driver;         ///< CUDA version of the driver, 13000 for 13.0
  std::string pci_bus_id;  ///< "00000000:19:00.0", the key under which NVML knows the card
};

/// Holds one problem's buffers, each between red zones, and runs plans on them.
class Device {
 public:
  virtual ~Device() = default;

  /// "gpu" or "vm".
  virtual std::string kind() const = 0;
  /// What plans are made for. Its name is for messages: "NVIDIA H200".
  virtual const DeviceDescription& description() const = 0;
  const std::string& name() const { return description().name; }
  /// Compute capability x 10.
  int sm() const { return description().sm; }

  virtual DeviceFacts facts() const { return {}; }
  /// Whether launches here take a time that means something.
  virtual bool has_clock() const { return false; }
  /// For launches on this device, which it must not outlive; nullptr without a clock.
  virtual std::unique_ptr<Stopwatch> make_stopwatch(L2Policy /*l2*/) { return nullptr; }
  /// What a kernel takes of the card; nothing where no card runs it.
  virtual std::optional<KernelResources> resources(const Launch& /*launch*/) {
    return std::nullopt;
  }

  /// Throws OutOfMemory when the problem's tensors cannot fit on the device, or its inputs and what
  /// checks them on the host. Asked before inputs are made.
  virtual void require_memory(const Problem& problem) = 0;
  /// Allocates the tensors of the problem and uploads the inputs. Replaces what was loaded before.
  virtual void load(const Problem& problem, const Inputs& inputs) = 0;
  /// Fills the outputs and all scratch buffers with NaN, so that an element nobody writes is seen.
  virtual void poison_output() = 0;
  /// Enqueues the plan; errors of the launch itself are thrown here. Scratch buffers are made when
  /// a plan first needs them and are kept for the next.
  virtual void launch(const LaunchPlan& plan) = 0;
  /// Whether warps and blocks of the next launches take their turns in the opposite order, where
  /// the device decides the order: a result must not depend on it.
  virtual void set_reversed(bool /*reversed*/) {}
  /// Waits, checks for errors, copies O to the host.
  virtual HostTensor download_output() = 0;
  /// The same for the LSE, float32 [B, H, Nq, 1]. The problem must have asked for it.
  virtual HostTensor download_lse() = 0;
  /// The same for the gradients of a backward pass.
  virtual Gradients download_gradients() = 0;
  /// Names of the buffers whose red zones were overwritten; empty when all are intact. Writes the
  /// damaged zones anew, so that the next kernel is not blamed for them.
  virtual std::vector<std::string> damaged_red_zones() = 0;
  /// Names of the zeroed scratch buffers that hold something else than zeros; empty after a correct
  /// launch. Zeroes them, so that the next kernel finds what it was promised.
  virtual std::vector<std::string> nonzero_scratch() = 0;
};

}  // namespace fa
