// SPDX-License-Identifier: MIT
// The graphics card that a launch is for: how many blocks it holds at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ptxvm {

/// What decides how many blocks of a kernel run at the same time (CUDA C++ Programming Guide,
/// "Compute Capabilities").
struct Card {
  std::string_view name;              ///< `h200`
  int sm = 0;                         ///< Compute capability, 90 for 9.0.
  uint32_t multiprocessors = 0;       ///< That run kernels.
  uint32_t threads = 0;               ///< On a multiprocessor, at most.
  uint32_t blocks = 0;                ///< On a multiprocessor, at most.
  uint32_t shared_bytes = 0;          ///< Of a multiprocessor.
  uint32_t largest_shared_bytes = 0;  ///< Of a block.
};

/// The one that launches are for where they name none.
inline constexpr Card kH200{"h200", 90, 132, 2048, 32, 228 * 1024, 227 * 1024};

/// All cards that have a name.
std::span<const Card> cards();
/// The card of that name; throws `Error` that lists the names there are.
const Card& card(std::string_view name);

/// Blocks that one multiprocessor holds: as many as its threads, its shared memory and, where
/// `registers` of a thread is not 0, its registers allow. 0 when not even one fits.
uint32_t blocks_per_multiprocessor(const Card& card, uint32_t threads, uint32_t shared_bytes,
                                   uint32_t registers = 0);

}  // namespace ptxvm
