// SPDX-License-Identifier: MIT
// From a verdict, times and a kernel's resources to the fields of a row.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/device/gate.h"
#include "harness/environment/nvml.h"
#include "harness/environment/ptxas.h"
#include "harness/measure/item.h"
#include "harness/measure/timing/rounds.h"

namespace fa {

/// "2026-10-27T14:03:05Z": names the process that measured a row.
std::string utc_now();

/// Row of an item with nothing measured; status is unsupported or error. A rung's plan already
/// says peak_bytes.
Row empty_row(const Item& item, const std::string& run);

RowCheck check_of(const Verdict& verdict);

/// check, status and reason of a row. A kernel that stopped has no check.
void put_verdict(Row& row, const Verdict& verdict);

/// spill_bytes (stores and loads) is nothing without ptxas' report.
RowResources resources_of(const KernelResources& used, const std::optional<PtxasEntry>& ptxas);

/// A plan for each launch of a plan, with the same scratch; none where there is a single launch.
std::vector<LaunchPlan> launch_parts(const LaunchPlan& plan);

/// The parts as timed items behind the whole plan, each after one pass of it, so that it finds the
/// inputs it has there. `launch` must outlive them.
std::vector<TimedItem> part_items(const Item& item,
                                  const std::function<void(const LaunchPlan&)>& launch);

/// resources of a plan with one launch; of one with several, launches[] with those of each, and
/// resources stay nothing until put_part_times().
void put_resources(Row& row, const LaunchPlan& plan,
                   const std::function<RowResources(const Launch&)>& resources);

/// The same as the device says them; nothing on one that does not.
void put_resources(Row& row, const LaunchPlan& plan, Device& device);

/// Times of launches[], in the order of part_items(); resources become those of the launch that
/// takes longest. A part that could not be timed has none.
void put_part_times(Row& row, std::span<const ItemTimes> parts);

RowTimes times_of(const ItemTimes& times);

/// Fills time_ms, tflops, tflops_back_to_back and gbs.
void put_times(Row& row, const Item& item, const ItemTimes& times);

/// Clock in whole MHz, power in tenths of a watt.
void put_clock(Row& row, const ClockReading& clock);

}  // namespace fa
