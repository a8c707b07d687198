// SPDX-License-Identifier: MIT
// What a problem may need of a kernel beyond whole tiles of plain attention, as a set.
#pragma once

#include <array>

#include "harness/attention/problem.h"

namespace fa {

/// A set: `causal | lse`.
enum class Capabilities : unsigned {
  none = 0,
  causal = 1,        ///< the causal mask
  ragged = 2,        ///< any seq_len, not only whole tiles
  lse = 4,           ///< the log-sum-exp of every row
  grouped = 8,       ///< fewer heads of K and V than of Q
  lengths = 16,      ///< a number of keys for each batch entry
  paged = 32,        ///< K and V in pages
  few_queries = 64,  ///< of a rung for new queries against a cache: up to kFewQueries of them
  e4m3 = 128         ///< K and V are e4m3 with scales, never anything else
};

/// New queries that a batch entry may have, at most, where a rung computes them against a cache.
inline constexpr std::int64_t kFewQueries = 16;

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
inline constexpr std::array kCapabilities{
    NamedCapability{Capabilities::causal, "causal"},
    NamedCapability{Capabilities::ragged, "ragged"},
    NamedCapability{Capabilities::lse, "lse"},
    NamedCapability{Capabilities::grouped, "grouped"},
    NamedCapability{Capabilities::lengths, "lengths"},
    NamedCapability{Capabilities::paged, "paged"},
    NamedCapability{Capabilities::few_queries, "few_queries"},
    NamedCapability{Capabilities::e4m3, "e4m3"},
};

/// What this problem needs of every kernel. Whether it needs `ragged` depends on the tile, and
/// `few_queries` on the rung. A single query sees every key under the mask, too.
inline Capabilities needs_of(const Problem& problem) {
  using enum Capabilities;
  return (problem.causal && problem.seq_q > 1 ? causal : none) | (problem.lse ? lse : none) |
         (problem.group() > 1 ? grouped : none) | (problem.lengths.empty() ? none : lengths) |
         (problem.page > 0 ? paged : none) | (problem.e4m3 ? e4m3 : none);
}

}  // namespace fa
