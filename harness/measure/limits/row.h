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
  std::string id, what, entry;
  Status status = Status::error;
  std::string reason;  ///< empty when ok
  std::string unit;
  int threads = 0;  ///< of a thread block
  int blocks = 0;   ///< of a launch
  std::size_t shared_bytes = 0;
  std::optional<std::int64_t> buffer_bytes;  ///< nothing: it reads operands
  std::optional<int> iterations;             ///< of a launch
  std::optional<double> work;                ///< FLOP, exponentials or bytes of a launch
  std::optional<RowTimes> time_ms;
  std::optional<double> rate, rate_back_to_back;  ///< in `unit`
  std::optional<double> per_clock_sm, clock_mhz, power_w;

  void settle(Status to, std::string why) { status = to, reason = std::move(why); }
};

/// The row of a loop with nothing measured. `count` is that of Arguments.
LimitRow empty_row(const Loop& loop, int blocks, std::int64_t count);

/// Times, rates and clock of launches with so many iterations; or status and reason where the times
/// cannot be those of the work.
void put_times(LimitRow& row, const Loop& loop, int iterations, std::int64_t count,
               const ItemTimes& times, const ClockReading& clock, int sms);

Json to_json(const LimitRow& row);

}  // namespace fa::limits
