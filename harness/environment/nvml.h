// SPDX-License-Identifier: MIT
// Clocks and power of the card while it is timed, through NVML where the driver has it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fa {

/// Read-only view of one card. Nothing is ever set.
class Nvml {
 public:
  /// Loads libnvidia-ml.so.1 and finds the card with this PCI bus id; nullptr where either is
  /// missing.
  static std::unique_ptr<Nvml> open(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// "580.95.05"
  std::optional<std::string> driver_version() const;
  /// Enforced power limit in watts.
  std::optional<double> power_limit() const;
  /// Current clock of the multiprocessors in MHz.
  std::optional<double> sm_clock() const;
  /// Current draw in watts.
  std::optional<double> power() const;
  /// "instant", or "1 s average" where the driver knows no instant reading.
  const char* power_kind() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

/// Means over the samples of one window; empty where nothing was read.
struct ClockReading {
  std::optional<double> clock_mhz;
  std::optional<double> power_w;
  int samples = 0;
};

/// A thread that reads clock and power every few milliseconds while a window is open.
class ClockSampler {
 public:
  /// nvml may be nullptr: all readings are then empty.
  ClockSampler(const Nvml* nvml, std::size_t windows);
  ~ClockSampler();
  ClockSampler(const ClockSampler&) = delete;
  ClockSampler& operator=(const ClockSampler&) = delete;

  /// Samples count towards this window until close(); a window may be opened many times.
  void open(std::size_t window);
  void close();
  ClockReading reading(std::size_t window) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fa
