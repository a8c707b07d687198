// SPDX-License-Identifier: MIT
// The stopwatch of the GPU: CUDA events around launches that were queued beforehand.
#pragma once

#include <memory>
#include <optional>

#include "harness/device/gpu.h"
#include "harness/device/stopwatch.h"

namespace fa {

/// Bytes written before a spaced launch under L2Policy::flush, for a card with this L2.
constexpr std::size_t flush_bytes(std::size_t l2) {
  return 2 * l2;
}

/// Times launches that go to the device's stream.
///
/// Each measurement queues: [flush,] hold, event, launch(es), event. The hold is a one-thread
/// kernel that spins on a word of host memory which the host sets once everything is queued, or
/// gives up after one second; a measurement whose hold gave up is not returned. A train is queued
/// in pieces: the hold ends after the first, and each later one must be queued while the piece
/// before the last still runs, so that the device never waits for the host. Launches are recorded
/// as a CUDA graph.
class GpuStopwatch final : public Stopwatch {
 public:
  /// Allocates the flush buffer; throws OutOfMemory where it does not fit.
  GpuStopwatch(GpuDevice& device, L2Policy l2);
  ~GpuStopwatch() override;
  GpuStopwatch(const GpuStopwatch&) = delete;
  GpuStopwatch& operator=(const GpuStopwatch&) = delete;

  double untimed(const Launch& launch) override;
  std::optional<double> single(const Launch& launch) override;
  std::optional<double> train(const Launch& launch, int count, int ahead) override;
  std::optional<Launch> record(const Launch& launch, int count) override;
  void idle(double ms) override;

 private:
  struct State;

  std::optional<double> measure(const Launch& launch, int count, int ahead, bool flush);

  GpuDevice& device_;
  std::unique_ptr<State> state_;
};

}  // namespace fa
