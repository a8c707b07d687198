// SPDX-License-Identifier: MIT
// Who has seen what, over the blocks of a grid.
//
// Within a block every warp has a vector clock. What it knows of other blocks is one number for
// each: how many of that block's releases it has seen. A block remembers what each of its releases
// covered.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/clocks.h"
#include "ptxvm/observer.h"

namespace ptxvm::observe {

/// One clock for each agent of a block: its warps, then the engines of their bulk stores.
using BlockClocks = std::vector<Clock>;

/// Adds what `from` knows.
void join(BlockClocks& to, const BlockClocks& from);

/// Releases that have been seen, by block.
class Known {
 public:
  uint32_t of(uint32_t block) const;
  void raise(uint32_t block, uint32_t releases);
  void join(const Known& o);
  void clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> entries_;  // sorted by block
};

/// What is handed over where threads of one block meet: at barriers, and through shared memory.
struct Handover {
  BlockClocks own;
  Known others;
  Known unfenced;  ///< Seen by relaxed reads that no fence has followed.
  Known fenced;    ///< Covered by the last fences.
};

/// The clocks of a grid. Warps are named by the linear index of their block and their own.
class GridClocks {
 public:
  /// Whether an access is ordered before the present of a warp.
  enum class Order : uint8_t {
    kYes,
    kUnfenced,  ///< If the flag that says so had been read with acquire, or before a fence.
    kNo,
  };

  void reset();
  void begin(uint32_t block, uint32_t warps);
  void end(uint32_t block);

  uint32_t warps(uint32_t block) const { return blocks_.at(block).warps; }
  Clock now(const WarpId& w) const { return warp(w).own[w.warp]; }
  Order order(const WarpId& now, uint32_t block, uint32_t agent, Clock clock) const;

  /// membar, fence: what was read relaxed is acquired, what is written relaxed from now on releases
  /// what came before. With the scope of a block only threads of the block see it.
  void fence(const WarpId& w, bool block_scope);

  void leave(const WarpId& w, Handover& at);
  void take(const WarpId& w, const Handover& at);
  /// The same between blocks, through the shared memory of a cluster.
  void leave_for_others(const WarpId& w, Handover& at);

  /// Ordered accesses of global memory: `acquire`, `release` where the instruction says so.
  void read(const WarpId& w, uint64_t address, bool acquire);
  void write(const WarpId& w, uint64_t address, bool release, bool block_scope, bool keeps);

  /// A warp has waited for bulk stores of its own.
  void know_stores(const WarpId& w, Clock clock);

 private:
  struct Warp {
    BlockClocks own;
    Known others, unfenced;
    Known fenced;              // covered by the last fence
    BlockClocks fenced_block;  // the same, for threads of the block
  };
  struct Block {
    uint32_t warps = 0;
    std::vector<Warp> states;
    std::vector<BlockClocks> releases;
  };
  // A place in memory that ordered accesses use.
  struct Flag {
    Known known;
    Known unfenced;  // handed on by writers that had read it relaxed
    std::map<uint32_t, BlockClocks> in_block;
  };

  Warp& warp(const WarpId& w) { return blocks_.at(w.cta).states[w.warp]; }
  const Warp& warp(const WarpId& w) const { return blocks_.at(w.cta).states[w.warp]; }
  Known release(const WarpId& w);
  void acquire(const WarpId& w, const Known& known);

  std::unordered_map<uint32_t, Block> blocks_;
  std::unordered_map<uint64_t, Flag> flags_;
};

}  // namespace ptxvm::observe
