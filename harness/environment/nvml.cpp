// SPDX-License-Identifier: MIT
#include "harness/environment/nvml.h"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace fa {
namespace {

// The few declarations of NVML's binary interface that are used, so that nvml.h, which toolkits
// ship separately, is not needed.
using Result = int;
using Handle = struct NvmlDevice*;
constexpr Result kSuccess = 0;
constexpr int kClockSm = 1;
constexpr unsigned kFieldPowerInstant = 186;
constexpr std::size_t kVersionBytes = 80;
constexpr int kValueUnsignedInt = 1;

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int value_type;
  Result result;
  union {
    double real;
    unsigned number;
    unsigned long long wide;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

constexpr auto kSamplePeriod = std::chrono::milliseconds(5);

}  // namespace

struct Nvml::Library {
  void* file = nullptr;
  Handle device = nullptr;
  bool initialised = false;
  bool instant_power = false;

  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  Result (*by_bus_id)(const char*, Handle*) = nullptr;
  Result (*driver)(char*, unsigned) = nullptr;
  Result (*limit)(Handle, unsigned*) = nullptr;
  Result (*clock)(Handle, int, unsigned*) = nullptr;
  Result (*usage)(Handle, unsigned*) = nullptr;
  Result (*fields)(Handle, int, FieldValue*) = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (initialised) shutdown();
    if (file) dlclose(file);
  }

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(file, name));
  }

  /// Watts, nothing where the driver does not know the field.
  std::optional<double> instant() const {
    if (!fields) return std::nullopt;
    FieldValue value{};
    value.field = kFieldPowerInstant;
    if (fields(device, 1, &value) != kSuccess || value.result != kSuccess ||
        value.value_type != kValueUnsignedInt) {
      return std::nullopt;
    }
    return value.value.number / 1000.0;
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::open(const std::string& pci_bus_id) {
  auto library = std::make_unique<Library>();
  library->file = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library->file) return nullptr;
  library->find(library->init, "nvmlInit_v2");
  library->find(library->shutdown, "nvmlShutdown");
  library->find(library->by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  library->find(library->driver, "nvmlSystemGetDriverVersion");
  library->find(library->limit, "nvmlDeviceGetEnforcedPowerLimit");
  library->find(library->clock, "nvmlDeviceGetClockInfo");
  library->find(library->usage, "nvmlDeviceGetPowerUsage");
  library->find(library->fields, "nvmlDeviceGetFieldValues");
  if (!library->init || !library->shutdown || !library->by_bus_id) return nullptr;
  if (library->init() != kSuccess) return nullptr;
  library->initialised = true;
  if (library->by_bus_id(pci_bus_id.c_str(), &library->device) != kSuccess) return nullptr;
  library->instant_power = library->instant().has_value();
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

std::optional<std::string> Nvml::driver_version() const {
  std::array<char, kVersionBytes> text{};
  if (!library_->driver || library_->driver(text.data(), kVersionBytes) != kSuccess) {
    return std::nullopt;
  }
  return std::string(text.data());
}

std::optional<double> Nvml::power_limit() const {
  unsigned milliwatts = 0;
  if (!library_->limit || library_->limit(library_->device, &milliwatts) != kSuccess) {
    return std::nullopt;
  }
  return milliwatts / 1000.0;
}

std::optional<double> Nvml::sm_clock() const {
  unsigned mhz = 0;
  if (!library_->clock || library_->clock(library_->device, kClockSm, &mhz) != kSuccess) {
    return std::nullopt;
  }
  return mhz;
}

std::optional<double> Nvml::power() const {
  if (library_->instant_power) return library_->instant();
  unsigned milliwatts = 0;
  if (!library_->usage || library_->usage(library_->device, &milliwatts) != kSuccess) {
    return std::nullopt;
  }
  return milliwatts / 1000.0;
}

const char* Nvml::power_kind() const {
  return library_->instant_power ? "instant" : "1 s average";
}

struct ClockSampler::State {
  struct Sums {
    double clock = 0, power = 0;
    int clocks = 0, powers = 0;
  };

  const Nvml* nvml = nullptr;
  std::vector<Sums> windows;
  std::optional<std::size_t> open;
  std::uint64_t generation = 0;  ///< changes with every open() and close()
  bool stop = false;
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (!stop) {
      if (!open) {
        wake.wait(lock, [&] { return stop || open; });
        continue;
      }
      const std::uint64_t before = generation;
      lock.unlock();
      const auto clock = nvml->sm_clock();
      const auto power = nvml->power();
      lock.lock();
      // A reading that a window's end overtook belongs to nobody.
      if (open && generation == before) {
        Sums& sums = windows[*open];
        if (clock) sums.clock += *clock, ++sums.clocks;
        if (power) sums.power += *power, ++sums.powers;
      }
      wake.wait_for(lock, kSamplePeriod, [&] { return stop || generation != before; });
    }
  }
};

ClockSampler::ClockSampler(const Nvml* nvml, std::size_t windows)
    : state_(std::make_unique<State>()) {
  state_->nvml = nvml;
  state_->windows.resize(windows);
  if (nvml) state_->thread = std::thread([state = state_.get()] { state->run(); });
}

ClockSampler::~ClockSampler() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

void ClockSampler::open(std::size_t window) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->open = window;
    ++state_->generation;
  }
  state_->wake.notify_all();
}

void ClockSampler::close() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->open.reset();
    ++state_->generation;
  }
  state_->wake.notify_all();
}

ClockReading ClockSampler::reading(std::size_t window) const {
  const std::lock_guard lock(state_->mutex);
  const State::Sums& sums = state_->windows.at(window);
  ClockReading reading{
      .clock_mhz = {}, .power_w = {}, .samples = std::max(sums.clocks, sums.powers)};
  if (sums.clocks > 0) reading.clock_mhz = sums.clock / sums.clocks;
  if (sums.powers > 0) reading.power_w = sums.power / sums.powers;
  return reading;
}

}  // namespace fa
