// SPDX-License-Identifier: MIT
// How long launches take on a device that has a clock.
#pragma once

#include <functional>
#include <optional>

namespace fa {

/// State of the L2 cache before a spaced launch.
///   flush: a buffer of twice the L2 is written first. What a launch finds of its inputs is then
///          the same for all kernels and all sizes. It costs some 30 us of memory writes in the
///          gap.
///   warm:  nothing is done; inputs that fit stay in L2 from the launch before.
/// Back-to-back launches run as each leaves the L2 to the next, under both policies; the bench
/// gives each launch another copy of K and V (GpuDevice::make_cache_copies).
enum class L2Policy { flush, warm };

const char* to_string(L2Policy policy);

/// Measures launches on some device. Errors of a launch are thrown.
class Stopwatch {
 public:
  using Launch = std::function<void()>;
  virtual ~Stopwatch() = default;

  /// Launches and waits; returns milliseconds on the host's clock, an upper bound of the kernel's.
  virtual double untimed(const Launch& launch) = 0;
  /// One launch with nothing else on the device, in milliseconds, by the stopwatch's policy for the
  /// L2. Nothing when the hold expired before the host was done: the sample would contain host
  /// time.
  virtual std::optional<double> single(const Launch& launch) = 0;
  /// `count` launches without a gap, milliseconds for all. Nothing as above, and where the device
  /// was done with what it had before the host brought more. The device starts when the first
  /// `ahead` launches are queued.
  virtual std::optional<double> train(const Launch& launch, int count, int ahead) = 0;
  /// `count` launches as a single one, which costs the host no more than one. Nothing where they
  /// cannot be recorded. What they read and write has to live as long as what is returned.
  virtual std::optional<Launch> record(const Launch& launch, int count) = 0;
  /// Leaves the device idle.
  virtual void idle(double ms) = 0;
};

}  // namespace fa
