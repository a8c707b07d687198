// SPDX-License-Identifier: MIT
#include "harness/device/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "harness/attention/check.h"
#include "harness/device/device.h"

namespace fa {
namespace {

/// Programs of the machine, tables of the inputs and what the allocator keeps.
constexpr double kFixed = 48.0 * (1 << 20);

/// Of the reference: exact and straightforward outputs and spreads of its rows, and the weights of
/// the rows that are being computed.
double reference_bytes(const Problem& problem) {
  const auto keys = static_cast<double>(std::max<std::int64_t>(problem.seq_kv, 64));
  const double dim = problem.head_dim;
  const auto budget = static_cast<double>(VerifierOptions().budget);
  const double rows = std::min(problem.rows(), std::max(64.0, budget / (keys * dim)));
  constexpr double kPerElement = 20, kPerRow = 64, kPerKey = 104;
  const double threads = std::max(1u, std::thread::hardware_concurrency());
  return rows * (dim * kPerElement + kPerRow) + threads * keys * kPerKey;
}

}  // namespace

double check_host_bytes(const Problem& problem) {
  const double tensors = std::max(problem.input_bytes(), 2 * problem.output_bytes());
  // While the table is made, the pages are put into their order.
  return tensors + 2 * table_bytes(problem) + reference_bytes(problem) + kFixed;
}

double table_bytes(const Problem& problem) {
  return static_cast<double>(problem.batch) * static_cast<double>(problem.table_width()) *
         sizeof(std::int32_t);
}

void require_host_bytes(double needed, const std::string& who, const std::string& what,
                        const std::optional<std::uint64_t>& available) {
  if (!available || needed <= static_cast<double>(*available)) return;
  throw OutOfMemory(fmt::format("{} needs {:.0f} bytes of host memory for {}, {} are available",
                                who, needed, what, *available));
}

}  // namespace fa
