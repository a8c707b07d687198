// SPDX-License-Identifier: MIT
#include "ptxvm/card.h"

#include <algorithm>
#include <string>

#include "ptxvm/diagnostic.h"

namespace ptxvm {
namespace {

constexpr uint32_t kKiB = 1024;
constexpr uint32_t kReserved = kKiB;       // of shared memory, by the system for each block
constexpr uint32_t kSharedUnit = 128;      // shared memory is handed out in
constexpr uint32_t kRegisterFile = 65536;  // 32-bit registers of a multiprocessor
constexpr uint32_t kRegisterUnit = 8;      // registers of a thread are handed out in
constexpr uint32_t kSchedulers = 4;        // each has a quarter of the registers

constexpr Card kCards[] = {
    {"a100", 80, 108, 2048, 32, 164 * kKiB, 163 * kKiB},
    {"a10", 86, 72, 1536, 16, 100 * kKiB, 99 * kKiB},
    {"rtx3090", 86, 82, 1536, 16, 100 * kKiB, 99 * kKiB},
    {"l4", 89, 58, 1536, 24, 100 * kKiB, 99 * kKiB},
    {"l40s", 89, 142, 1536, 24, 100 * kKiB, 99 * kKiB},
    {"rtx4090", 89, 128, 1536, 24, 100 * kKiB, 99 * kKiB},
    {"h100", 90, 132, 2048, 32, 228 * kKiB, 227 * kKiB},
    kH200,
    {"b200", 100, 148, 2048, 32, 228 * kKiB, 227 * kKiB},
    {"rtx5090", 120, 170, 1536, 24, 100 * kKiB, 99 * kKiB},
};

constexpr uint32_t round_up(uint32_t n, uint32_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

std::span<const Card> cards() {
  return kCards;
}

const Card& card(std::string_view name) {
  std::string known;
  for (const Card& c : kCards) {
    if (c.name == name) return c;
    known += (known.empty() ? "" : ", ") + std::string(c.name);
  }
  throw Error("there is no card '" + std::string(name) + "'; allowed: " + known);
}

uint32_t blocks_per_multiprocessor(const Card& card, uint32_t threads, uint32_t shared_bytes,
                                   uint32_t registers) {
  const uint32_t warps = round_up(std::max(threads, 1u), 32) / 32;
  uint32_t blocks = std::min(card.blocks, card.threads / 32 / warps);
  if (shared_bytes > card.largest_shared_bytes) return 0;
  blocks = std::min(blocks, card.shared_bytes / round_up(shared_bytes + kReserved, kSharedUnit));
  if (registers != 0) {
    const uint32_t of_warp = round_up(registers, kRegisterUnit) * 32;
    blocks = std::min(blocks, kRegisterFile / kSchedulers / of_warp * kSchedulers / warps);
  }
  return blocks;
}

}  // namespace ptxvm
