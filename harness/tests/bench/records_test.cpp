// SPDX-License-Identifier: MIT
// Rows of clock stamps.
#include <vector>

#include "harness/measure/timeline/row.h"
#include "harness/tests/bench/json_printer.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

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
