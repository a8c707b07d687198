// SPDX-License-Identifier: MIT
#include "harness/environment/occupancy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/reserved_shared.h"

namespace fa {
namespace {

constexpr int kWarp = 32;
constexpr int kRegisterUnit = 256;  // registers are handed out to warps in these
constexpr int kSubPartitions = 4;   // a warp lives in one, with a quarter of the registers
constexpr int kRegistersPerBlock = 65536;
constexpr int kThreadsPerBlock = 1024;
constexpr std::size_t kSharedUnit = 128;

constexpr std::size_t kib(std::size_t count) {
  return count << 10;
}

constexpr std::array kLimits{
    SmLimits{80, 65536, 64, 32, kib(164), kib(163)},
    SmLimits{86, 65536, 48, 16, kib(100), kib(99)},
    SmLimits{87, 65536, 48, 16, kib(164), kib(163)},
    SmLimits{89, 65536, 48, 24, kib(100), kib(99)},
    SmLimits{90, 65536, 64, 32, kib(228), kib(227)},
    SmLimits{100, 65536, 64, 32, kib(228), kib(227)},
};

template <typename Integer>
constexpr Integer round_up(Integer value, Integer unit) {
  return (value + unit - 1) / unit * unit;
}

int blocks_by_registers(const SmLimits& limits, int warps, int registers) {
  const int per_warp = allocated_registers(registers);
  if (per_warp == 0) return limits.blocks;
  // A launch is refused as if its warps were spread evenly over the sub-partitions.
  if (per_warp * round_up(warps, kSubPartitions) > kRegistersPerBlock) return 0;
  return limits.registers / kSubPartitions / per_warp * kSubPartitions / warps;
}

int blocks_by_shared_memory(const SmLimits& limits, std::size_t shared) {
  if (shared > limits.shared_per_block) return 0;
  return static_cast<int>(limits.shared / allocated_shared(shared));
}

}  // namespace

std::span<const SmLimits> known_sm_limits() {
  return kLimits;
}

const SmLimits* sm_limits(int sm) {
  const auto* const found =
      std::find_if(kLimits.begin(), kLimits.end(), [&](const SmLimits& l) { return l.sm == sm; });
  return found == kLimits.end() ? nullptr : found;
}

int allocated_registers(int registers_per_thread) {
  return round_up(registers_per_thread * kWarp, kRegisterUnit);
}

std::size_t allocated_shared(std::size_t shared) {
  return round_up(shared + kReservedShared, kSharedUnit);
}

Occupancy occupancy(const SmLimits& limits, const BlockNeeds& needs) {
  const int warps = std::max(round_up(needs.threads, kWarp) / kWarp, 1);
  Occupancy result{.by_registers = blocks_by_registers(limits, warps, needs.registers),
                   .by_shared_memory = blocks_by_shared_memory(limits, needs.shared),
                   .by_warps = needs.threads > kThreadsPerBlock ? 0 : limits.warps / warps,
                   .by_blocks = limits.blocks,
                   .blocks = 0,
                   .limits = {}};
  const std::array allowed{std::pair{result.by_registers, Limit::registers},
                           std::pair{result.by_shared_memory, Limit::shared_memory},
                           std::pair{result.by_warps, Limit::warps},
                           std::pair{result.by_blocks, Limit::blocks}};
  result.blocks = std::min_element(allowed.begin(), allowed.end())->first;
  for (const auto& [blocks, limit] : allowed) {
    if (blocks == result.blocks) result.limits.push_back(limit);
  }
  return result;
}

std::vector<Limit> limits_of(int sm, const BlockNeeds& needs) {
  const SmLimits* limits = sm_limits(sm);
  return limits ? occupancy(*limits, needs).limits : std::vector<Limit>{};
}

}  // namespace fa
