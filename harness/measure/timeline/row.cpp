// SPDX-License-Identifier: MIT
#include "harness/measure/timeline/row.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace fa {

Json JsonForm<timeline::Event>::write(const timeline::Event& event, const FieldFacts& /*facts*/) {
  return {event.clock, static_cast<std::uint32_t>(event.kind), event.detail};
}

Json JsonForm<timeline::Event>::schema(const FieldFacts& facts) {
  return JsonForm<std::array<std::uint32_t, 3>>::schema(facts);
}

namespace timeline {
namespace {

std::span<const Stamp> of_warp(std::span<const Stamp> stamps, std::size_t warp) {
  const std::span<const Stamp> row = stamps.subspan(warp * kStamps, kStamps);
  const auto end = std::find_if(row.begin(), row.end(), [](Stamp s) { return s.code == 0; });
  return row.first(static_cast<std::size_t>(end - row.begin()));
}

/// The clocks' low halves differ by less than half of what they hold.
std::uint32_t first_clock(std::span<const Stamp> stamps) {
  std::optional<std::uint32_t> first;
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    const std::span<const Stamp> row = of_warp(stamps, warp);
    if (row.empty()) continue;
    const std::uint32_t clock = row.front().clock;
    if (!first || static_cast<std::int32_t>(clock - *first) < 0) first = clock;
  }
  return first.value_or(0);
}

}  // namespace

std::vector<WarpEvents> warp_events(std::span<const Stamp> stamps) {
  const std::uint32_t first = first_clock(stamps);
  std::vector<WarpEvents> warps;
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    std::span<const Stamp> row = of_warp(stamps, warp);
    if (row.empty()) continue;
    WarpEvents& found = warps.emplace_back();
    found.warp = static_cast<int>(warp);
    // The last place is overwritten by all that did not fit.
    found.complete = row.size() < kStamps;
    if (!found.complete) row = row.first(row.size() - 1);
    for (const Stamp& stamp : row) {
      found.events.push_back({stamp.clock - first, static_cast<Kind>(stamp.code >> kDetailBits),
                              stamp.code & ((1u << kDetailBits) - 1)});
    }
  }
  return warps;
}

Json timeline_document(const Timeline& timeline) {
  Json rows = Json::array();
  for (const TimelineRow& row : timeline.rows) rows.push_back(to_json(row));
  return {{"schema", kResultsSchema},
          {"kind", "timeline"},
          {"generator", timeline.identity.generator},
          {"device", timeline.identity.device},
          {"policy", timeline.identity.policy},
          {"kinds", kKindNames},
          {"rows", std::move(rows)}};
}

}  // namespace timeline
}  // namespace fa
