// SPDX-License-Identifier: MIT
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "harness/device/cuda_check.h"
#include "harness/device/gpu_stopwatch.h"

namespace fa {
namespace {

constexpr std::uint64_t kHoldNanoseconds = 1'000'000'000;

/// Words shared between the host and the hold kernel.
struct Mailbox {
  std::uint32_t released;  ///< host: all holds up to this ticket may end
  std::uint32_t expired;   ///< kernel: the last ticket whose hold gave up
};

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void hold_stream(volatile Mailbox* mailbox, std::uint32_t ticket) {
  const std::uint64_t start = nanoseconds();
  while (static_cast<std::int32_t>(mailbox->released - ticket) < 0) {
    if (nanoseconds() - start > kHoldNanoseconds) {
      mailbox->expired = ticket;
      __threadfence_system();
      return;
    }
    __nanosleep(500);
  }
}

}  // namespace

struct GpuStopwatch::State {
  Mailbox* mailbox = nullptr;         // host address
  Mailbox* device_mailbox = nullptr;  // the same words, as the kernel sees them
  void* flush_buffer = nullptr;
  std::size_t flush_size = 0;
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  cudaEvent_t piece = nullptr;  // the end of the last whole piece of a train
  std::uint32_t ticket = 0;

  ~State() {
    if (start) ignore_cuda(cudaEventDestroy(start));
    if (stop) ignore_cuda(cudaEventDestroy(stop));
    if (piece) ignore_cuda(cudaEventDestroy(piece));
    if (flush_buffer) ignore_cuda(cudaFree(flush_buffer));
    if (mailbox) ignore_cuda(cudaFreeHost(mailbox));
  }

  void release() {
    std::atomic_ref<std::uint32_t>(mailbox->released).store(ticket, std::memory_order_release);
  }
};

const char* to_string(L2Policy policy) {
  return policy == L2Policy::flush ? "flush" : "warm";
}

std::unique_ptr<Stopwatch> GpuDevice::make_stopwatch(L2Policy l2) {
  return std::make_unique<GpuStopwatch>(*this, l2);
}

GpuStopwatch::GpuStopwatch(GpuDevice& device, L2Policy l2)
    : device_(device), state_(std::make_unique<State>()) {
  void* words = nullptr;
  check_cuda(cudaHostAlloc(&words, sizeof(Mailbox), cudaHostAllocMapped),
             "allocating the timing mailbox");
  state_->mailbox = new (words) Mailbox{};
  void* mapped = nullptr;
  check_cuda(cudaHostGetDevicePointer(&mapped, words, 0), "mapping the timing mailbox");
  state_->device_mailbox = static_cast<Mailbox*>(mapped);
  check_cuda(cudaEventCreate(&state_->start), "creating a timing event");
  check_cuda(cudaEventCreate(&state_->stop), "creating a timing event");
  check_cuda(cudaEventCreateWithFlags(&state_->piece, cudaEventDisableTiming),
             "creating a timing event");
  if (l2 == L2Policy::flush) {
    state_->flush_size = flush_bytes(*device.facts().l2);
    check_cuda(
        cudaMalloc(&state_->flush_buffer, state_->flush_size),
        "allocating the L2 flush buffer of " + std::to_string(state_->flush_size) + " bytes");
  }
}

GpuStopwatch::~GpuStopwatch() = default;

double GpuStopwatch::untimed(const Launch& launch) {
  const auto start = std::chrono::steady_clock::now();
  launch();
  device_.synchronize();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::optional<double> GpuStopwatch::single(const Launch& launch) {
  return measure(launch, 1, 1, true);
}

std::optional<double> GpuStopwatch::train(const Launch& launch, int count, int ahead) {
  return measure(launch, count, ahead, false);
}

std::optional<Stopwatch::Launch> GpuStopwatch::record(const Launch& launch, int count) {
  const cudaStream_t stream = device_.stream();
  // Relaxed, because a peer may ask its allocator for memory while it is recorded.
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording launches");
  bool launched = true;
  try {
    for (int i = 0; i < count; ++i) launch();
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {
    launched = false;
  }
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t replayed = nullptr;
  bool complete = cudaStreamEndCapture(stream, &recorded) == cudaSuccess && launched;
  complete = complete && cudaGraphInstantiate(&replayed, recorded, 0) == cudaSuccess;
  complete = complete && cudaGraphUpload(replayed, stream) == cudaSuccess;
  if (recorded) ignore_cuda(cudaGraphDestroy(recorded));
  ignore_cuda(cudaGetLastError());  // that of a launch which could not be recorded
  const std::shared_ptr<CUgraphExec_st> graph(replayed, [](cudaGraphExec_t used) {
    if (used) ignore_cuda(cudaGraphExecDestroy(used));
  });
  if (!complete) return std::nullopt;
  // What is recorded contains addresses of the scratch memory.
  return [graph, stream, scratch = device_.scratch_memory()] {
    check_cuda(cudaGraphLaunch(graph.get(), stream), "launching what was recorded");
  };
}

void GpuStopwatch::idle(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

std::optional<double> GpuStopwatch::measure(const Launch& launch, int count, int ahead,
                                            bool flush) {
  State& state = *state_;
  const cudaStream_t stream = device_.stream();
  if (flush && state.flush_buffer) {
    check_cuda(cudaMemsetAsync(state.flush_buffer, 0, state.flush_size, stream), "flushing the L2");
  }
  const std::uint32_t ticket = ++state.ticket;
  hold_stream<<<1, 1, 0, stream>>>(state.device_mailbox, ticket);
  check_cuda(cudaGetLastError(), "launching the hold kernel");
  bool starved = false;
  try {
    check_cuda(cudaEventRecord(state.start, stream), "recording the start event");
    for (int i = 0; i < count && !starved; ++i) {
      launch();
      const bool last = i + 1 == count;
      if (!last && (i + 1) % ahead != 0) continue;
      // What was queued before this piece has to run still.
      if (i >= ahead) starved = cudaEventQuery(state.piece) == cudaSuccess;
      if (!last) check_cuda(cudaEventRecord(state.piece, stream), "recording the end of a piece");
      state.release();
    }
    check_cuda(cudaEventRecord(state.stop, stream), "recording the stop event");
  } catch (...) {
    state.release();
    // Leaves an empty stream behind; the launch's own error is the one to report.
    ignore_cuda(cudaStreamSynchronize(stream));
    throw;
  }
  state.release();
  device_.synchronize();
  if (starved) return std::nullopt;
  if (std::atomic_ref<std::uint32_t>(state.mailbox->expired).load() == ticket) return std::nullopt;
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, state.start, state.stop), "reading a timing event");
  return ms;
}

}  // namespace fa
