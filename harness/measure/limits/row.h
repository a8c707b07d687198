// SPDX-License-Identifier: MIT
// One bare loop on one card: a row of limits.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/environment/nvml.h"
#include "harness/measure/limits/loops.h"
#include "harness/measure/timing/rounds.h"
#include "harness/results/row.h"

namespace fa::limits {

/// How long a launch is made by choosing its iterations.
inline constexpr double kLaunchMs = 10;

/// What a loop reached. What was not measured is nothing.
struct LimitRow {
  FA_FIELDS(LimitRow);
  FA_FIELD(std::string, id, {}, "", .rules = R"({"pattern": "^[a-z0-9_]+$"})");
  FA_FIELD(std::string, what, {}, "", .rules = kSomeText);
  FA_FIELD(std::string, entry, {}, "", .rules = R"({"pattern": "^limit_"})");
  FA_FIELD(Status, status, Status::error, "");
  FA_FIELD(std::string, reason, {}, "Empty when ok.");
  FA_FIELD(std::string, unit, {}, "Of rate.", .rules = R"({"enum": ["TFLOPS", "Gexp/s", "GB/s"]})");
  FA_FIELD(int, threads, 0, "Of a thread block.", .least = 32);
  FA_FIELD(int, blocks, 0, "Thread blocks of a launch.", .least = 1);
  FA_FIELD(std::size_t, shared_bytes, 0, "Of a thread block.");
  FA_FIELD(std::optional<std::int64_t>, buffer_bytes, {},
           "What every iteration reads; null: operands.", .least = 1);
  FA_FIELD(std::optional<int>, iterations, {}, "Of a launch.", .least = 1);
  FA_FIELD(std::optional<double>, work, {}, "FLOP, exponentials or bytes of a launch.",
           .exact = true, .rules = kPositive);
  FA_FIELD(std::optional<RowTimes>, time_ms, {}, "");
  FA_FIELD(std::optional<double>, rate, {}, "Of spaced launches.", .rules = kPositive);
  FA_FIELD(std::optional<double>, rate_back_to_back, {}, "", .rules = kPositive);
  FA_FIELD(std::optional<double>, per_clock_sm, {},
           "FLOP, exponentials or bytes a clock and SM, of launches back to back.",
           .rules = kPositive);
  FA_FIELD(std::optional<double>, clock_mhz, {}, "Back to back.", .rules = kPositive);
  FA_FIELD(std::optional<double>, power_w, {}, "Back to back.", .rules = kPositive);

  void settle(Status to, std::string why) { status = to, reason = std::move(why); }
};

/// The row of a loop with nothing measured. `count` is that of Arguments.
LimitRow empty_row(const Loop& loop, int blocks, std::int64_t count);

/// Times, rates and clock of launches with so many iterations; or status and reason where the times
/// cannot be those of the work.
void put_times(LimitRow& row, const Loop& loop, int iterations, std::int64_t count,
               const ItemTimes& times, const ClockReading& clock, int sms);

}  // namespace fa::limits
