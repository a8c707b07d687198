// SPDX-License-Identifier: MIT
// What a problem may need of a kernel beyond whole tiles of plain attention, as a set.
#pragma once

#include <array>

#include "harness/attention/problem.h"

namespace fa {

/// A set: `causal | lse`.
enum class Capabilities : unsigned {
  none = 0,
  causal = 1,  ///< the causal mask
  ragged = 2,  ///< any seq_len, not only whole tiles
  lse = 4      ///< the log-sum-exp of every row
};

constexpr Capabilities operator|(Capabilities a, Capabilities b) {
  return static_cast<Capabilities>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// Whether the set has all of these.
constexpr bool has(Capabilities set, Capabilities wanted) {
  return (set | wanted) == set;
}

/// Those that there are, each by the name that `fa list` gives it.
struct NamedCapability {
  Capabilities capability;
  const char* name;
};
inline constexpr std::array kCapabilities{NamedCapability{Capabilities::causal, "causal"},
                                          NamedCapability{Capabilities::ragged, "ragged"},
                                          NamedCapability{Capabilities::lse, "lse"}};

/// What this problem needs of every kernel. Whether it needs `ragged` depends on the tile.
constexpr Capabilities needs_of(const Problem& problem) {
  return (problem.causal ? Capabilities::causal : Capabilities::none) |
         (problem.lse ? Capabilities::lse : Capabilities::none);
}

}  // namespace fa
