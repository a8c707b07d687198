// SPDX-License-Identifier: MIT
// A device of the tests' own, and the texts that the recorder hands to it.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "tools/recorder.h"
#include "tools/tcgen05_case.h"
#include "tools/wgmma_recorder.h"

namespace ptxvm_vectors {

/// Says that it is hardware, computes nothing, and keeps the texts.
class FakeGpu : public Device {
 public:
  explicit FakeGpu(std::string gpu, int capability)
      : gpu_(std::move(gpu)), capability_(capability) {}
  Source source() const override { return {gpu_, "none", "none"}; }
  bool is_hardware() const override { return true; }
  int compute_capability() const override { return capability_; }
  std::vector<uint64_t> run(const std::string& ptx, const std::string&, uint32_t,
                            const std::vector<uint64_t>&, size_t output_words) override {
    const std::scoped_lock lock(mutex_);
    texts.insert(ptx);
    return std::vector<uint64_t>(output_words);
  }

  std::set<std::string> texts;

 private:
  std::string gpu_;
  int capability_;
  std::mutex mutex_;
};

}  // namespace ptxvm_vectors
