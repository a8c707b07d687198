// SPDX-License-Identifier: MIT
// What is remembered of every piece of shared memory: its last write, and who has read it since.
//
// Memory is remembered in lines of 16 bytes, the rows that ldmatrix, cp.async and wide loads use. A
// line that is accessed in parts is split into four granules of 4 bytes; a write of the whole line
// joins it again. The first access of 2 bytes makes granules of 2 bytes in all lines, so that warps
// which write neighbouring halves do not meet; the first of one byte makes granules of one byte.
// The next launch begins with 4 bytes again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "observe/clocks.h"

namespace ptxvm::observe {

/// When and where an access was made.
struct Stamp {
  Clock clock = Clocks::kNever;
  uint32_t place = 0;  ///< See `Place`.
};

/// Instruction and lanes of an access, packed into a word. Lanes lie side by side: the first lane
/// has the first 2^width bytes of the line, and so on.
struct Place {
  static constexpr uint32_t kMany = 32;  ///< Several lanes access the same bytes.
  static constexpr uint32_t kWarp = 33;  ///< All lanes together (ldmatrix).

  static uint32_t pack(uint32_t instruction, uint32_t lane, uint32_t width) {
    return instruction << 9 | lane << 3 | width;
  }
  static uint32_t instruction(uint32_t place) { return place >> 9; }
  static uint32_t lane(uint32_t place) { return place >> 3 & 63; }
  static uint32_t width(uint32_t place) { return place & 7; }
  /// Lane that accesses the granule at a byte of the line.
  static uint32_t lane_at(uint32_t place, uint32_t byte) {
    const uint32_t first = lane(place);
    return first >= kMany ? first : first + (byte >> width(place));
  }
  static bool same_lanes(uint32_t a, uint32_t b) { return ((a ^ b) & 0x1ff) == 0; }
};

enum CellFlags : uint16_t {
  kSplit = 1,   ///< Of a line: its granules are remembered one by one.
  kStrong = 2,  ///< The last write was atomic, volatile or ordered.
  kCopied = 4,  ///< The last write was a cp.async that has landed.
  kHollow = 8,  ///< It has no value: nobody has written it, or a copy of what nobody has written.
};

/// Who makes an access, and what it may rely on.
struct Actor {
  Agent agent = 0;  ///< Whose access it is.
  Agent self = 0;   ///< The warp whose lanes these are; kNobody where lanes do not matter.
  Clock stamp = 0;  ///< Of this access.
  Clock lanes_synced = 0;
  const Clock* seen = nullptr;
  const Clock* published = nullptr;  ///< For reads through the async proxy.
  Agent last_warp = 0;               ///< With `published`: ordinary writes have agents up to this.
  bool strong = false;
  bool updates = false;  ///< An atomic: it reads what it writes over.
  bool sets = false;     ///< ... and leaves nothing of it.
};

enum class Hazard : uint8_t {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  kUnwritten,  ///< A read of what has no value. `other` is who stored that, if anybody.
  kProxy,      ///< A read by the async proxy of what was not published to it.
};

/// Two accesses that nothing orders.
struct Conflict {
  Hazard hazard = Hazard::kReadAfterWrite;
  bool lanes = false;  ///< Between lanes of one warp.
  uint32_t address = 0;
  uint32_t bytes = 0;  ///< Of kUnwritten, and of two writes.
  Agent agent = 0, other = 0;
  uint32_t place = 0, other_place = 0;  ///< With the lane in place of the lanes.
  bool other_copied = false;
  Clock other_clock = 0;
};

class ConflictSink {
 public:
  virtual ~ConflictSink() = default;
  virtual void conflict(const Conflict& c) = 0;
};

class Shadow {
 public:
  explicit Shadow(ConflictSink& sink) : sink_(sink) {}

  void reset(uint32_t bytes);

  /// Rows of 16 bytes at multiples of 16; offsets from the start of shared memory.
  void read_rows(const Actor& a, uint32_t instruction, uint32_t mask, const uint32_t* offsets,
                 uint32_t base, bool whole_warp);
  void write_rows(const Actor& a, uint32_t instruction, uint32_t mask, const uint32_t* offsets,
                  uint32_t base, bool whole_warp);
  /// Any piece of memory. `lane` accesses the first 2^width bytes.
  void read(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes, uint32_t lane,
            uint32_t width);
  void write(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes, uint32_t lane,
             uint32_t width);

  /// What has just been written there has no value.
  void empty(uint32_t offset, uint32_t bytes);

  /// What `engine` was writing has arrived; from now on it counts as written by `warp` at `clock`.
  void land(Agent engine, uint32_t instruction, Agent warp, Clock clock, uint32_t offset,
            uint32_t bytes);

 private:
  struct Cell {
    Stamp written;
    Agent writer = Clocks::kNobody;
    uint16_t flags = kHollow;
    uint64_t readers = 0;  // by slot
  };
  // Reads of one agent, by line and by granule; made when it first reads.
  struct Slot {
    Agent agent = 0;
    std::vector<Stamp> lines, granules;
  };
  struct Span {                  // of an access within a line
    uint32_t line, first, last;  // granules
  };

  template <bool kWrites>
  void rows(const Actor& a, uint32_t instruction, uint32_t mask, const uint32_t* offsets,
            uint32_t base, bool whole_warp);
  template <bool kWrites>
  void range(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes, uint32_t lane,
             uint32_t width);
  template <bool kWrites>
  void line(const Actor& a, uint32_t index, uint32_t place, uint32_t slot);
  template <bool kWrites>
  void part(const Actor& a, const Span& s, uint32_t place, uint32_t slot);

  void read_cell(Cell& c, Stamp& mine, const Actor& a, uint32_t place, uint32_t slot,
                 uint32_t address, uint32_t bytes);
  void write_cell(Cell& c, std::vector<Stamp> Slot::*stamps, size_t index, const Actor& a,
                  uint32_t place, uint32_t slot, uint32_t address, uint32_t bytes);
  void check_readers(const Cell& c, std::vector<Stamp> Slot::*stamps, size_t index, const Actor& a,
                     uint32_t place, uint32_t slot, uint32_t address, uint32_t bytes);
  void check_read(const Cell& c, const Actor& a, uint32_t place, uint32_t address);
  void check_lanes(Hazard h, const Cell& c, const Actor& a, uint32_t place, const Stamp& other,
                   uint32_t address, uint32_t bytes);
  void split(uint32_t index);
  void refine(uint32_t width);
  uint32_t per_line() const { return 16u >> granule_; }
  void report(Hazard h, bool lanes, const Cell& c, const Actor& a, uint32_t place, Agent other,
              const Stamp& stamp, uint32_t address, uint32_t bytes = 0);
  uint32_t slot_of(Agent a);

  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kWidest = 2;  // of granules

  ConflictSink& sink_;
  std::vector<Cell> lines_, granules_;
  uint32_t granule_ = kWidest;  // log2 of its bytes
  std::vector<Slot> slots_;
  std::vector<int8_t> slot_by_agent_;
};

}  // namespace ptxvm::observe
