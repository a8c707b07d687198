// SPDX-License-Identifier: MIT
// The CUDA driver, loaded when it is asked for, so that the program builds and starts without one.
#include <dlfcn.h>

#include <array>
#include <stdexcept>

#include "tools/device.h"

namespace ptxvm_vectors {
namespace {

using Handle = void*;
using Pointer = unsigned long long;

// Option numbers of cuModuleLoadDataEx.
constexpr int kErrorLog = 5, kErrorLogBytes = 6;
// Attributes of a device.
constexpr int kMajor = 75, kMinor = 76;

Handle open(const char* name) {
  Handle library = dlopen(name, RTLD_NOW);
  if (!library) throw std::runtime_error(std::string("cannot load ") + name);
  return library;
}

template <class F>
F* symbol(Handle library, const char* name) {
  void* address = dlsym(library, name);
  if (!address) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F*>(address);
}

// The few functions that are needed.
struct Driver {
  Handle library = open("libcuda.so.1");
#define FUNCTION(member, name, ...) \
  int (*member)(__VA_ARGS__) = symbol<int(__VA_ARGS__)>(library, name)
  FUNCTION(init, "cuInit", unsigned);
  FUNCTION(version, "cuDriverGetVersion", int*);
  FUNCTION(device, "cuDeviceGet", int*, int);
  FUNCTION(device_name, "cuDeviceGetName", char*, int, int);
  FUNCTION(attribute, "cuDeviceGetAttribute", int*, int, int);
  FUNCTION(retain, "cuDevicePrimaryCtxRetain", Handle*, int);
  FUNCTION(set_context, "cuCtxSetCurrent", Handle);
  FUNCTION(load, "cuModuleLoadDataEx", Handle*, const void*, unsigned, int*, void**);
  FUNCTION(unload, "cuModuleUnload", Handle);
  FUNCTION(function, "cuModuleGetFunction", Handle*, Handle, const char*);
  FUNCTION(allocate, "cuMemAlloc_v2", Pointer*, size_t);
  FUNCTION(release, "cuMemFree_v2", Pointer);
  FUNCTION(upload, "cuMemcpyHtoD_v2", Pointer, const void*, size_t);
  FUNCTION(download, "cuMemcpyDtoH_v2", void*, Pointer, size_t);
  FUNCTION(clear, "cuMemsetD8_v2", Pointer, unsigned char, size_t);
  FUNCTION(launch, "cuLaunchKernel", Handle, unsigned, unsigned, unsigned, unsigned, unsigned,
           unsigned, unsigned, Handle, void**, void**);
  FUNCTION(synchronize, "cuCtxSynchronize");
#undef FUNCTION
};

void check(int status, const char* what) {
  if (status)
    throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(status));
}

std::string driver_version() {
  try {
    Handle library = open("libnvidia-ml.so.1");
    std::array<char, 96> text{};
    if (symbol<int()>(library, "nvmlInit_v2")() == 0 &&
        symbol<int(char*, unsigned)>(library, "nvmlSystemGetDriverVersion")(text.data(), 95) == 0)
      return text.data();
  } catch (const std::runtime_error&) {
    // The version is for the record only.
  }
  return "unknown";
}

// Frees what a run has taken, on every path.
struct Run {
  const Driver& driver;
  Handle module = nullptr;
  Pointer in = 0, out = 0;
  explicit Run(const Driver& d) : driver(d) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    if (in) driver.release(in);
    if (out) driver.release(out);
    if (module) driver.unload(module);
  }
};

class GpuDevice : public Device {
 public:
  GpuDevice() {
    check(driver_.init(0), "cuInit");
    int device = 0;
    check(driver_.device(&device, 0), "cuDeviceGet");
    check(driver_.device_name(name_.data(), static_cast<int>(name_.size()) - 1, device), "name");
    int major = 0, minor = 0;
    check(driver_.attribute(&major, kMajor, device), "cuDeviceGetAttribute");
    check(driver_.attribute(&minor, kMinor, device), "cuDeviceGetAttribute");
    capability_ = 10 * major + minor;
    check(driver_.retain(&context_, device), "cuDevicePrimaryCtxRetain");
  }

  Source source() const override {
    int v = 0;
    driver_.version(&v);
    return {name_.data(), driver_version(),
            "the driver's, CUDA " + std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10)};
  }
  bool is_hardware() const override { return true; }
  int compute_capability() const override { return capability_; }

  std::vector<uint64_t> run(const std::string& ptx, const std::string& entry, uint32_t threads,
                            const std::vector<uint64_t>& inputs, size_t output_words) override {
    check(driver_.set_context(context_), "cuCtxSetCurrent");
    Run run(driver_);
    std::vector<char> log(16384);
    std::array<int, 2> options = {kErrorLog, kErrorLogBytes};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    if (driver_.load(&run.module, ptx.c_str(), 2, options.data(), values.data())) {
      throw std::runtime_error("the driver does not assemble the module:\n" +
                               std::string(log.data()));
    }
    Handle function = nullptr;
    check(driver_.function(&function, run.module, entry.c_str()), "cuModuleGetFunction");
    check(driver_.allocate(&run.in, inputs.size() * 8), "cuMemAlloc");
    check(driver_.allocate(&run.out, output_words * 8), "cuMemAlloc");
    check(driver_.upload(run.in, inputs.data(), inputs.size() * 8), "cuMemcpyHtoD");
    check(driver_.clear(run.out, 0, output_words * 8), "cuMemset");
    std::array<void*, 2> arguments = {&run.in, &run.out};
    check(driver_.launch(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments.data(), nullptr),
          "cuLaunchKernel");
    check(driver_.synchronize(), "kernel");
    std::vector<uint64_t> words(output_words);
    check(driver_.download(words.data(), run.out, output_words * 8), "cuMemcpyDtoH");
    return words;
  }

 private:
  Driver driver_;
  Handle context_ = nullptr;
  int capability_ = 0;
  std::array<char, 128> name_{};
};

}  // namespace

std::unique_ptr<Device> make_gpu_device() {
  return std::make_unique<GpuDevice>();
}

}  // namespace ptxvm_vectors
