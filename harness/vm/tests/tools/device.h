// SPDX-License-Identifier: MIT
// Where vectors are computed: on a GPU, or on the machine that they judge.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptxvm_vectors {

/// What the header of a vector file says of its origin.
struct Source {
  std::string gpu, driver, assembler;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual Source source() const = 0;
  virtual bool is_hardware() const = 0;
  /// 10 * major + minor; 0 where there is no hardware.
  virtual int compute_capability() const = 0;

  /// Assembles a module of one entry and runs it with one block of `threads`. Returns the result
  /// words. Throws std::runtime_error with the assembler's or the launch's message. Thread-safe.
  virtual std::vector<uint64_t> run(const std::string& ptx, const std::string& entry,
                                    uint32_t threads, const std::vector<uint64_t>& inputs,
                                    size_t output_words) = 0;
};

/// Why a device may not record what needs sm_100a; empty for one that may.
std::string blackwell_refusal(const Device& device);

/// `checked`: what the checkers of races find is an error as well.
std::unique_ptr<Device> make_vm_device(bool checked = false);
/// Throws std::runtime_error where there is no driver or no GPU.
std::unique_ptr<Device> make_gpu_device();

}  // namespace ptxvm_vectors
