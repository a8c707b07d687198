// SPDX-License-Identifier: MIT
// When the warps of one rung's thread block reached what: a row of timeline.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/timeline/format.h"
#include "harness/results/results.h"

namespace fa::timeline {

struct Event {
  std::uint32_t clock = 0;  ///< since the first stamp of the thread block
  Kind kind = Kind::none;
  std::uint32_t detail = 0;
};

struct WarpEvents {
  int warp = 0;
  bool complete = true;  ///< all of its stamps fitted
  std::vector<Event> events;
};

struct TimelineRow {
  std::string id, variant, entry;
  Problem problem;
  int threads = 0;          ///< of a thread block
  std::int64_t blocks = 0;  ///< of the launch
  std::int64_t block = 0;   ///< the recorded one
  RowTimes plain_ms;        ///< of the kernel as it is
  RowTimes stamped_ms;      ///< of the one with stamps
  std::vector<WarpEvents> warps;
};

/// What is in timeline.json (timeline.schema.json beside this file).
struct Timeline {
  FileIdentity identity;
  std::vector<TimelineRow> rows;
};

/// From the kWarps rows of kStamps that a launch leaves behind; warps without a stamp are left out.
std::vector<WarpEvents> warp_events(std::span<const Stamp> stamps);

Json to_json(const TimelineRow& row);

/// The whole document.
Json timeline_document(const Timeline& timeline);

}  // namespace fa::timeline
