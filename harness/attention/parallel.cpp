// SPDX-License-Identifier: MIT
#include "harness/attention/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/io/interrupt.h"

namespace fa {

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count <= 0) return;
  const std::int64_t pieces = (count + grain - 1) / grain;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  auto work = [&] {
    try {
      for (std::int64_t piece = next++; piece < pieces; piece = next++) {
        io::stop_if_interrupted();
        body(piece * grain, std::min(count, (piece + 1) * grain));
      }
    } catch (...) {
      next = pieces;
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::int64_t hardware = std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < std::min(hardware, pieces); ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fa
