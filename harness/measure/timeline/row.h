// SPDX-License-Identifier: MIT
// When the warps of one rung's thread block reached what: a row of timeline.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/timeline/format.h"
#include "harness/results/results.h"

namespace fa {
namespace timeline {

struct Event {
  std::uint32_t clock = 0;  ///< since the first stamp of the thread block
  Kind kind = Kind::none;
  std::uint32_t detail = 0;

  bool operator==(const Event&) const = default;
};

}  // namespace timeline

/// [clock, kind, detail]
template <>
struct JsonForm<timeline::Event> {
  static Json write(const timeline::Event& event, const FieldFacts& facts);
  static Json schema(const FieldFacts& facts);
};

namespace timeline {

struct WarpEvents {
  FA_FIELDS(WarpEvents);
  FA_FIELD(int, warp, 0, "");
  FA_FIELD(bool, complete, true, "Whether all of its stamps fitted.");
  FA_FIELD(std::vector<Event>, events, {}, "", .rules = R"({"type": "array"})");
};

struct TimelineRow {
  FA_FIELDS(TimelineRow);
  FA_FIELD(std::string, id, {}, "", .rules = R"({"pattern": "^[0-9]{2}$"})");
  FA_FIELD(std::string, variant, {}, "");
  FA_FIELD(std::string, entry, {}, "", .rules = R"({"pattern": "^fa_"})");
  FA_FIELD(Problem, problem, {}, "");
  FA_FIELD(int, threads, 0, "Of a thread block.", .least = 128);
  FA_FIELD(std::int64_t, blocks, 0, "Of the launch.", .least = 1);
  FA_FIELD(std::int64_t, block, 0, "The recorded one.");
  FA_FIELD(RowTimes, plain_ms, {}, "Of the kernel as it is.");
  FA_FIELD(RowTimes, stamped_ms, {}, "Of the one with stamps.");
  FA_FIELD(std::vector<WarpEvents>, warps, {}, "");
};

/// What is in timeline.json.
struct Timeline {
  FileIdentity identity;
  std::vector<TimelineRow> rows;
};

/// From the kWarps rows of kStamps that a launch leaves behind; warps without a stamp are left out.
std::vector<WarpEvents> warp_events(std::span<const Stamp> stamps);

/// The whole document.
Json timeline_document(const Timeline& timeline);

}  // namespace timeline
}  // namespace fa
