// SPDX-License-Identifier: MIT
#include "observe/shadow.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace ptxvm::observe {
namespace {

/// log2 of the largest power of two that divides both.
uint32_t alignment(uint32_t offset, uint32_t bytes) {
  return static_cast<uint32_t>(std::countr_zero(offset | bytes));
}

}  // namespace

void Shadow::reset(uint32_t bytes) {
  const size_t lines = (bytes + 15) / 16;
  lines_.assign(lines, Cell{});
  granule_ = kWidest;
  granules_.resize(lines * per_line());
  for (Slot& s : slots_) {
    s.lines.resize(lines);
    if (!s.granules.empty()) s.granules.resize(lines * per_line());
  }
}

// Makes granules of 2^width bytes, unless they are as small.
void Shadow::refine(uint32_t width) {
  const auto twice = [](auto& of_wide) {
    std::remove_reference_t<decltype(of_wide)> narrow(of_wide.size() * 2);
    for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = of_wide[i / 2];
    of_wide = std::move(narrow);
  };
  for (; granule_ > width; --granule_) {
    twice(granules_);
    for (Slot& s : slots_) twice(s.granules);
  }
}

uint32_t Shadow::slot_of(Agent a) {
  if (a >= slot_by_agent_.size()) slot_by_agent_.resize(size_t{a} + 1, -1);
  int8_t& slot = slot_by_agent_[a];
  if (slot < 0) {
    // With more readers than slots the last ones share one: reads are then missed, not invented.
    if (slots_.size() < kSlots) {
      slots_.push_back({a, std::vector<Stamp>(lines_.size()), {}});
    } else {
      slots_.back().agent = Clocks::kNobody;
    }
    slot = static_cast<int8_t>(slots_.size() - 1);
  }
  return static_cast<uint32_t>(slot);
}

void Shadow::report(Hazard h, bool lanes, const Cell& c, const Actor& a, uint32_t place,
                    Agent other, const Stamp& stamp, uint32_t address, uint32_t bytes) {
  Conflict out;
  out.hazard = h;
  out.lanes = lanes;
  out.address = address;
  out.bytes = bytes;
  out.agent = a.agent;
  out.other = other;
  const uint32_t byte = address & 15;
  auto at = [&](uint32_t p) {
    return Place::pack(Place::instruction(p), Place::lane_at(p, byte), 4);
  };
  out.place = at(place);
  out.other_place = at(stamp.place);
  out.other_clock = stamp.clock;
  out.other_copied = h != Hazard::kWriteAfterRead && (c.flags & kCopied) != 0;
  sink_.conflict(out);
}

// Two accesses of one warp since its lanes last met: do the same lanes access the same bytes?
void Shadow::check_lanes(Hazard h, const Cell& c, const Actor& a, uint32_t place,
                         const Stamp& other, uint32_t address, uint32_t bytes) {
  if (Place::same_lanes(place, other.place) && Place::lane(place) < Place::kMany) return;
  for (uint32_t byte = address & 15, n = 0; n < bytes; n += 1u << granule_) {
    const uint32_t mine = Place::lane_at(place, byte + n),
                   its = Place::lane_at(other.place, byte + n);
    if (mine == its && mine < Place::kMany) continue;
    report(h, true, c, a, place, a.agent, other, address + n, 1u << granule_);
    return;
  }
}

void Shadow::check_read(const Cell& c, const Actor& a, uint32_t place, uint32_t address) {
  if (c.writer != Clocks::kNobody && !(a.strong && (c.flags & kStrong))) {
    report(Hazard::kReadAfterWrite, false, c, a, place, c.writer, c.written, address);
  }
}

inline void Shadow::read_cell(Cell& c, Stamp& mine, const Actor& a, uint32_t place, uint32_t slot,
                              uint32_t address, uint32_t bytes) {
  const uint64_t bit = uint64_t{1} << slot;
  const bool again = (c.readers & bit) != 0;
  // A write would have cleared the bit: nothing to check again. (The warps of a warpgroup issue
  // for one agent; each is checked.)
  if (again && mine.clock == a.stamp && !a.published && Place::same_lanes(mine.place, place) &&
      !(c.flags & kHollow))
    return;
  if (c.written.clock > a.seen[c.writer]) [[unlikely]] {
    check_read(c, a, place, address);
  } else if (c.writer == a.self && c.written.clock > a.lanes_synced && !(c.flags & kStrong))
      [[unlikely]] {
    check_lanes(Hazard::kReadAfterWrite, c, a, place, c.written, address, bytes);
  } else if (a.published && c.writer <= a.last_warp && c.written.clock > a.published[c.writer])
      [[unlikely]] {
    report(Hazard::kProxy, false, c, a, place, c.writer, c.written, address);
  }
  if (c.flags & kHollow) [[unlikely]] {
    report(Hazard::kUnwritten, false, c, a, place, c.writer, c.written, address, bytes);
  }
  if (a.strong) return;
  // Of several lanes that read, a later write by one of them meets the others.
  if (again && mine.clock > a.lanes_synced && Place::lane(mine.place) != Place::kWarp &&
      !Place::same_lanes(mine.place, place)) {
    const uint32_t lane =
        Place::lane(place) == Place::kWarp ? Place::lane(mine.place) : Place::kMany;
    place = Place::pack(Place::instruction(mine.place), lane, Place::width(mine.place));
  }
  mine = {a.stamp, place};
  c.readers |= bit;
}

void Shadow::check_readers(const Cell& c, std::vector<Stamp> Slot::*stamps, size_t index,
                           const Actor& a, uint32_t place, uint32_t slot, uint32_t address,
                           uint32_t bytes) {
  for (uint64_t rest = c.readers; rest != 0; rest &= rest - 1) {
    const auto s = static_cast<uint32_t>(__builtin_ctzll(rest));
    if (slots_[s].agent == Clocks::kNobody) continue;  // shared
    const Stamp& r = (slots_[s].*stamps)[index];
    if (r.clock > a.seen[slots_[s].agent]) {
      report(Hazard::kWriteAfterRead, false, c, a, place, slots_[s].agent, r, address);
    } else if (s == slot && a.self != Clocks::kNobody && r.clock > a.lanes_synced &&
               Place::lane(r.place) != Place::kWarp) {
      check_lanes(Hazard::kWriteAfterRead, c, a, place, r, address, bytes);
    }
  }
}

inline void Shadow::write_cell(Cell& c, std::vector<Stamp> Slot::*stamps, size_t index,
                               const Actor& a, uint32_t place, uint32_t slot, uint32_t address,
                               uint32_t bytes) {
  const bool both_strong = a.strong && (c.flags & kStrong);
  if (c.written.clock > a.seen[c.writer]) [[unlikely]] {
    if (c.writer != Clocks::kNobody && !both_strong) {
      report(Hazard::kWriteAfterWrite, false, c, a, place, c.writer, c.written, address, bytes);
    }
  } else if (c.writer == a.self && c.written.clock > a.lanes_synced && !both_strong &&
             Place::instruction(c.written.place) != Place::instruction(place)) [[unlikely]] {
    check_lanes(Hazard::kWriteAfterWrite, c, a, place, c.written, address, bytes);
  }
  if (c.readers != 0) check_readers(c, stamps, index, a, place, slot, address, bytes);
  uint16_t kept = 0;
  if (a.updates && (c.flags & kHollow)) [[unlikely]] {
    if (!a.sets) kept = kHollow;
    report(Hazard::kUnwritten, false, c, a, place, c.writer, c.written, address, bytes);
  }
  c.written = {a.stamp, place};
  c.writer = a.agent;
  c.flags = kept | (a.strong ? kStrong : 0);
  c.readers = 0;
}

void Shadow::split(uint32_t index) {
  Cell& whole = lines_[index];
  whole.flags |= kSplit;
  auto at = [granule = granule_](const Stamp& s, uint32_t g) -> Stamp {
    const uint32_t lane = Place::lane_at(s.place, g << granule);
    return {s.clock, Place::pack(Place::instruction(s.place), lane, 4)};
  };
  for (uint32_t g = 0; g < per_line(); ++g) {
    Cell& c = granules_[size_t{index} * per_line() + g];
    c = whole;
    c.flags &= static_cast<uint16_t>(~kSplit);
    c.written = at(whole.written, g);
  }
  for (uint64_t rest = whole.readers; rest != 0; rest &= rest - 1) {
    Slot& s = slots_[static_cast<size_t>(__builtin_ctzll(rest))];
    if (s.granules.empty()) s.granules.resize(granules_.size());
    for (uint32_t g = 0; g < per_line(); ++g) {
      s.granules[size_t{index} * per_line() + g] = at(s.lines[index], g);
    }
  }
}

template <bool kWrites>
void Shadow::part(const Actor& a, const Span& s, uint32_t place, uint32_t slot) {
  if (!(lines_[s.line].flags & kSplit)) split(s.line);
  std::vector<Stamp>& mine = slots_[slot].granules;
  if (mine.empty()) mine.resize(granules_.size());
  for (uint32_t g = s.first; g <= s.last; ++g) {
    const size_t i = size_t{s.line} * per_line() + g;
    const uint32_t lane = Place::lane_at(place, (g - s.first) << granule_);
    const uint32_t own = Place::pack(Place::instruction(place), lane, 4);
    const uint32_t address = s.line * 16 + (g << granule_), bytes = 1u << granule_;
    if constexpr (kWrites) {
      write_cell(granules_[i], &Slot::granules, i, a, own, slot, address, bytes);
    } else {
      read_cell(granules_[i], mine[i], a, own, slot, address, bytes);
    }
  }
}

template <bool kWrites>
inline void Shadow::line(const Actor& a, uint32_t index, uint32_t place, uint32_t slot) {
  Cell& c = lines_[index];
  if (c.flags & kSplit) [[unlikely]] {
    part<kWrites>(a, {index, 0, per_line() - 1}, place, slot);
    if (kWrites && !a.updates) {
      c.written = {a.stamp, place};
      c.writer = a.agent;
      c.flags = a.strong ? kStrong : 0;
      c.readers = 0;
    }
    return;
  }
  if constexpr (kWrites) {
    write_cell(c, &Slot::lines, index, a, place, slot, index * 16, 16);
  } else {
    read_cell(c, slots_[slot].lines[index], a, place, slot, index * 16, 16);
  }
}

template <bool kWrites>
void Shadow::rows(const Actor& a, uint32_t instruction, uint32_t mask, const uint32_t* offsets,
                  uint32_t base, bool whole_warp) {
  const uint32_t slot = slot_of(a.self != Clocks::kNobody ? a.self : a.agent);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t place = Place::pack(instruction, whole_warp ? Place::kWarp : lane, 4);
    line<kWrites>(a, (offsets[lane] - base) >> 4, place, slot);
  }
}

template <bool kWrites>
void Shadow::range(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes,
                   uint32_t lane, uint32_t width) {
  const uint32_t slot = slot_of(a.self != Clocks::kNobody ? a.self : a.agent);
  const uint32_t end = offset + bytes;
  refine(std::min(alignment(offset, bytes), lane < Place::kMany ? width : kWidest));
  for (uint32_t at = offset; at < end;) {
    const uint32_t next = std::min((at & ~15u) + 16, end);
    const uint32_t first = lane >= Place::kMany ? lane : lane + ((at - offset) >> width);
    const uint32_t place = Place::pack(instruction, first, width);
    if (next - at == 16) {
      line<kWrites>(a, at >> 4, place, slot);
    } else {
      const uint32_t last = (next - 1) & 15;
      part<kWrites>(a, {at >> 4, (at & 15) >> granule_, last >> granule_}, place, slot);
    }
    at = next;
  }
}

void Shadow::read_rows(const Actor& a, uint32_t instruction, uint32_t mask, const uint32_t* offsets,
                       uint32_t base, bool whole_warp) {
  rows<false>(a, instruction, mask, offsets, base, whole_warp);
}

void Shadow::write_rows(const Actor& a, uint32_t instruction, uint32_t mask,
                        const uint32_t* offsets, uint32_t base, bool whole_warp) {
  rows<true>(a, instruction, mask, offsets, base, whole_warp);
}

void Shadow::read(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes,
                  uint32_t lane, uint32_t width) {
  range<false>(a, instruction, offset, bytes, lane, width);
}

void Shadow::write(const Actor& a, uint32_t instruction, uint32_t offset, uint32_t bytes,
                   uint32_t lane, uint32_t width) {
  range<true>(a, instruction, offset, bytes, lane, width);
}

void Shadow::empty(uint32_t offset, uint32_t bytes) {
  refine(alignment(offset, bytes));
  const uint32_t end = offset + bytes;
  for (uint32_t at = offset; at < end;) {
    const uint32_t next = std::min((at & ~15u) + 16, end);
    if (next - at != 16 && !(lines_[at >> 4].flags & kSplit)) split(at >> 4);
    if (lines_[at >> 4].flags & kSplit) {
      for (uint32_t g = at >> granule_; g <= (next - 1) >> granule_; ++g)
        granules_[g].flags |= kHollow;
    } else {
      lines_[at >> 4].flags |= kHollow;
    }
    at = next;
  }
}

void Shadow::land(Agent engine, uint32_t instruction, Agent warp, Clock clock, uint32_t offset,
                  uint32_t bytes) {
  // Where another write came in between, the conflict has been reported; the later write stays.
  auto arrive = [&](Cell& c) {
    if (c.writer != engine || Place::instruction(c.written.place) != instruction) return;
    c.writer = warp;
    c.written.clock = clock;
    c.flags |= kCopied;
  };
  refine(alignment(offset, bytes));
  const uint32_t end = offset + bytes;
  for (uint32_t at = offset; at < end;) {
    const uint32_t next = std::min((at & ~15u) + 16, end);
    Cell& c = lines_[at >> 4];
    if (c.flags & kSplit) {
      for (uint32_t g = at >> granule_; g <= (next - 1) >> granule_; ++g) arrive(granules_[g]);
    } else {
      arrive(c);
    }
    at = next;
  }
}

}  // namespace ptxvm::observe
