// SPDX-License-Identifier: MIT
// Rows that are no measurement of a rung: occupancy without a card, and clock stamps.
#include <vector>

#include "harness/measure/timeline/row.h"
#include "harness/results/occupancy_row.h"
#include "harness/tests/bench/json_printer.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

TEST_CASE("a row of computed occupancy is what is in the file") {
  OccupancyRow row;
  row.id = "06";
  row.variant = "128x64w4";
  row.entry = "fa_06_batched_d128";
  row.head_dim = 128;
  row.sm = 90;
  row.threads = 128;
  row.registers = 255;
  row.shared_bytes = 65536;
  row.spill_bytes = 8;
  row.blocks_allowed.shared_memory = 3;
  row.blocks_per_sm = 2;
  row.limited_by = {Limit::registers};
  const Json json = to_json(row);
  CHECK(json["sm"] == 90);
  CHECK(json["ablation"] == false);
  CHECK(json["shared_bytes"] == 65536);
  CHECK(json["blocks_allowed"]["shared memory"] == 3);
  CHECK(json["blocks_per_sm"] == 2);
  CHECK(json["limited_by"] == Json::array({"registers"}));
  CHECK(to_json(from_json<OccupancyRow>(json)) == json);
  const std::vector<OccupancyRow> rows{row, row};
  const Json document = occupancy_document({{"version", "1"}}, rows);
  CHECK(document["kind"] == "occupancy");
  CHECK(document["generator"]["version"] == "1");
  CHECK(document["rows"] == Json::array({json, json}));
}

using timeline::Kind;
using timeline::Stamp;

std::uint32_t code(Kind kind, std::uint32_t detail) {
  return static_cast<std::uint32_t>(kind) << timeline::kDetailBits | detail;
}

std::vector<Stamp> no_stamps() {
  return std::vector<Stamp>(static_cast<std::size_t>(timeline::kWarps) * timeline::kStamps);
}

TEST_CASE("clocks count from the first stamp of the thread block, also where the clock wraps") {
  std::vector<Stamp> stamps = no_stamps();
  stamps[0] = {5, code(Kind::load, 1024)};
  stamps[1] = {25, code(Kind::wait_begin, 8)};
  stamps[2 * timeline::kStamps] = {0xfffffff0, code(Kind::commit, 0)};
  const std::vector<timeline::WarpEvents> warps = timeline::warp_events(stamps);
  REQUIRE(warps.size() == 2);
  CHECK(warps[0].warp == 0);
  CHECK(warps[1].warp == 2);
  CHECK(warps[0].complete);
  REQUIRE(warps[0].events.size() == 2);
  CHECK(warps[0].events[0].clock == 21);
  CHECK(warps[0].events[0].kind == Kind::load);
  CHECK(warps[0].events[0].detail == 1024);
  CHECK(warps[0].events[1].clock == 41);
  CHECK(warps[1].events[0].clock == 0);
}

TEST_CASE("the last stamp of a warp that is full is no event") {
  std::vector<Stamp> stamps = no_stamps();
  for (int i = 0; i < timeline::kStamps; ++i) {
    stamps[static_cast<std::size_t>(i)] = {static_cast<std::uint32_t>(i), code(Kind::commit, 0)};
  }
  const std::vector<timeline::WarpEvents> warps = timeline::warp_events(stamps);
  REQUIRE(warps.size() == 1);
  CHECK_FALSE(warps[0].complete);
  CHECK(warps[0].events.size() == timeline::kStamps - 1);
}

TEST_CASE("a recorded row is what is in the file") {
  std::vector<Stamp> stamps = no_stamps();
  stamps[0] = {7, code(Kind::turn_wait, 3)};
  timeline::Timeline recorded;
  recorded.identity = {{{"version", "1"}}, {{"name", "card"}}, {{"seed", 1}}};
  timeline::TimelineRow& row = recorded.rows.emplace_back();
  row.id = "25";
  row.variant = "128x128w12";
  row.entry = "fa_25_overlap_d128";
  row.threads = 384;
  row.blocks = 512;
  row.block = 256;
  row.plain_ms.median = 1.5;
  row.stamped_ms.median = 1.625;
  row.warps = timeline::warp_events(stamps);
  const Json document = timeline::timeline_document(recorded);
  CHECK(document["kind"] == "timeline");
  CHECK(document["device"]["name"] == "card");
  CHECK(document["kinds"][7] == "turn_taken");
  const Json& json = document["rows"].at(0);
  CHECK(json["blocks"] == 512);
  CHECK(json["plain_ms"]["median"] == 1.5);
  CHECK(json["stamped_ms"]["median"] == 1.625);
  const Json warp{{"warp", 0}, {"complete", true}, {"events", {{0, 6, 3}}}};
  CHECK(json["warps"] == Json::array({warp}));
}

}  // namespace
}  // namespace fa
