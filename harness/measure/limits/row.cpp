// SPDX-License-Identifier: MIT
#include "harness/measure/limits/row.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/measure/measured.h"

namespace fa::limits {
namespace {

double in_unit(const std::string& unit, double per_second) {
  return per_second / (unit == "TFLOPS" ? 1e12 : 1e9);
}

}  // namespace

LimitRow empty_row(const Loop& loop, int blocks, std::int64_t count) {
  LimitRow row;
  row.id = loop.id;
  row.what = loop.what;
  row.entry = loop.entry;
  row.unit = loop.unit;
  row.threads = loop.threads;
  row.blocks = blocks;
  row.shared_bytes = loop.shared;
  if (loop.source != Source::operands) row.buffer_bytes = count * kWord;
  return row;
}

void put_times(LimitRow& row, const Loop& loop, int iterations, std::int64_t count,
               const ItemTimes& times, const ClockReading& clock, int sms) {
  if (times.error) return row.settle(Status::error, *times.error);
  const RowTimes measured = times_of(times);
  // A loop that the compiler emptied takes no longer with more iterations.
  if (measured.median < kLaunchMs / 4) {
    return row.settle(Status::error,
                      fmt::format("{} iterations take {:.3f} ms: its time does not grow with them",
                                  iterations, measured.median));
  }
  const double work = total_work(loop, row.blocks, count, iterations);
  const double rate = work / (measured.median * 1e-3);
  const double steady = work / (measured.back_to_back.value() * 1e-3);
  const double per_clock = clock.clock_mhz ? steady / (*clock.clock_mhz * 1e6) / sms : 0;
  if (const std::string why = impossible(loop, per_clock); !why.empty()) {
    return row.settle(Status::error, why);
  }
  row.iterations = iterations;
  row.work = work;
  row.time_ms = measured;
  row.rate = in_unit(loop.unit, rate);
  row.rate_back_to_back = in_unit(loop.unit, steady);
  if (clock.clock_mhz) {
    row.clock_mhz = std::round(*clock.clock_mhz);
    row.per_clock_sm = per_clock;
  }
  if (clock.power_w) row.power_w = std::round(*clock.power_w * 10) / 10;
  row.settle(Status::ok, "");
}

}  // namespace fa::limits
