// SPDX-License-Identifier: MIT
// What the stamped kernels leave in device memory: read by both sides of the compiler.
#pragma once

#include <cstdint>

namespace fa::timeline {

/// What a warp has reached. The order is that of kKindNames.
enum class Kind : std::uint32_t {
  none,
  wait_begin,     ///< an mbarrier; the detail is its address
  wait_end,       ///< the same
  commit,         ///< a group of wgmma was closed
  products_wait,  ///< the detail is how many groups may stay unfinished
  products_done,  ///< the same
  turn_wait,      ///< a named barrier; the detail is its number
  turn_taken,     ///< the same
  block_barrier,  ///< __syncthreads() is behind
  load            ///< a TMA load was started; the detail is where in shared memory it goes
};

inline constexpr const char* kKindNames[] = {
    "none",          "wait_begin", "wait_end",   "commit",        "products_wait",
    "products_done", "turn_wait",  "turn_taken", "block_barrier", "load"};

/// One stamp: the low half of the SM's clock, and kind and detail.
struct alignas(8) Stamp {
  std::uint32_t clock, code;
};

inline constexpr std::uint32_t kDetailBits = 24;
inline constexpr int kWarps = 16;    ///< of a thread block, at most
inline constexpr int kStamps = 512;  ///< of a warp; later ones overwrite the last

}  // namespace fa::timeline
