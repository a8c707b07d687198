// SPDX-License-Identifier: MIT
#include <cstring>
#include <stdexcept>

#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "tools/device.h"

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;

class VmDevice : public Device {
 public:
  explicit VmDevice(bool checked) : checked_(checked) {}

  Source source() const override { return {"none: the virtual machine", "none", "none"}; }
  bool is_hardware() const override { return false; }
  int compute_capability() const override { return 0; }

  std::vector<uint64_t> run(const std::string& ptx, const std::string& entry, uint32_t threads,
                            const std::vector<uint64_t>& inputs, size_t output_words) override {
    const Module module = Module::parse(ptx, entry + ".ptx");
    Memory memory;
    const Address in = memory.upload("inputs", std::as_bytes(std::span(inputs)));
    const Address out = memory.allocate("results", output_words * 8, Fill::kZero);
    LaunchConfig config;
    config.block = {threads, 1, 1};
    config.arguments = {Argument::pointer(in), Argument::pointer(out)};
    Options options;
    options.threads = 1;
    Races races;
    if (checked_) options.observers = {&races};
    const LaunchResult result = launch(module, entry, config, memory, options);
    if (result.fault) throw std::runtime_error(result.fault->format());
    if (!result.findings.empty()) throw std::runtime_error(format(result.findings.front()));
    std::vector<uint64_t> words(output_words);
    std::memcpy(words.data(), memory.bytes(out).data(), output_words * 8);
    return words;
  }

 private:
  bool checked_;
};

}  // namespace

std::unique_ptr<Device> make_vm_device(bool checked) {
  return std::make_unique<VmDevice>(checked);
}

}  // namespace ptxvm_vectors
