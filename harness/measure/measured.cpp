// SPDX-License-Identifier: MIT
#include "harness/measure/measured.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <utility>

#include "harness/measure/timing/statistics.h"

namespace fa {
namespace {

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// 0 for a copy.
double item_flops(const Item& item) {
  if (!item.peer || !item.peer->is_ceiling()) return item.problem().flops();
  const auto& [m, n, k] = item.peer->matmul;
  return 2.0 * product(m, n) * static_cast<double>(k);
}

double item_bytes(const Item& item) {
  if (!item.peer || !item.peer->is_ceiling()) return item.problem().bytes();
  // Each byte is read and written.
  if (item.peer->is_copy()) return 2.0 * static_cast<double>(item.peer->copy_bytes);
  const auto& [m, n, k] = item.peer->matmul;
  return static_cast<double>(size_of(item.problem().dtype)) *
         (product(m, k) + product(k, n) + product(m, n));
}

/// Nothing where it is beyond what a result file can hold exactly.
std::optional<std::int64_t> peak_bytes(const Item& item) {
  double bytes = item.problem().stored_bytes();
  for (const Scratch& scratch : item.plan.scratch) bytes += static_cast<double>(scratch.bytes);
  constexpr double kExact = std::int64_t{1} << 53;
  if (bytes > kExact) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string utc_now() {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
}

Row empty_row(const Item& item, const std::string& run) {
  Row row;
  row.key = item.key;
  row.run = run;
  row.settle(item.refused.empty() ? Status::error : Status::unsupported, item.refused);
  row.ablation = item.ablation;
  if (item.instance) row.entry = item.instance->entry;
  // A planner may have taken another of the rung's instances.
  if (item.rung && item.plan.launches.size() == 1) row.entry = item.plan.launches.front().entry;
  if (item.peer) row.matmul = item.peer->matmul, row.copy_bytes = item.peer->copy_bytes;
  if (item.rung && item.refused.empty()) row.peak_bytes = peak_bytes(item);
  return row;
}

RowCheck check_of(const Verdict& verdict) {
  const CheckReport& check = verdict.check;
  std::optional<RowLseCheck> lse;
  if (verdict.lse.tolerance > 0) {
    lse = {finite(verdict.lse.max_error), finite(verdict.lse.tolerance), finite(verdict.lse.ratio)};
  }
  return {.max_error = finite(check.max_error),
          .reference_error = finite(check.reference_error),
          .tolerance = finite(check.tolerance),
          .floor = finite(check.floor),
          .ratio = finite(check.ratio),
          .rows_checked = check.rows_checked,
          .rows_total = check.rows_total,
          .finite = check.finite,
          .repeatable = verdict.repeatable,
          .red_zones_intact = verdict.left.damaged.empty(),
          .lse = lse};
}

void put_verdict(Row& row, const Verdict& verdict) {
  if (verdict.check.rows_total > 0) row.check = check_of(verdict);
  row.settle(verdict.ok ? Status::ok : Status::incorrect, verdict.reason);
}

RowResources resources_of(const KernelResources& used, const std::optional<PtxasEntry>& ptxas) {
  const std::size_t shared = used.static_shared + used.dynamic_shared;
  RowResources resources{.registers = used.registers,
                         .shared_bytes = static_cast<std::int64_t>(shared),
                         .spill_bytes = {},
                         .local_bytes = static_cast<std::int64_t>(used.local_bytes),
                         .blocks_per_sm = used.blocks_per_sm,
                         .limited_by = limits_of(used.sm, {used.threads, used.registers, shared})};
  if (ptxas) resources.spill_bytes = ptxas->spill_bytes();
  return resources;
}

std::vector<LaunchPlan> launch_parts(const LaunchPlan& plan) {
  std::vector<LaunchPlan> parts;
  if (plan.launches.size() < 2) return parts;
  for (const Launch& launch : plan.launches) parts.push_back({{launch}, plan.scratch});
  return parts;
}

std::vector<TimedItem> part_items(const Item& item,
                                  const std::function<void(const LaunchPlan&)>& launch) {
  std::vector<TimedItem> items;
  for (LaunchPlan& part : launch_parts(item.plan)) {
    const std::string name = fmt::format("{}: {}", item.name, part.launches.front().entry);
    items.push_back({.name = name,
                     .launch = [&launch, part = std::move(part)] { launch(part); },
                     .prepare = [&launch, &item] { launch(item.plan); },
                     .spaced_only = true});
  }
  return items;
}

void put_resources(Row& row, const LaunchPlan& plan,
                   const std::function<RowResources(const Launch&)>& resources) {
  if (plan.launches.size() == 1) {
    row.resources = resources(plan.launches.front());
    return;
  }
  for (const Launch& launch : plan.launches) {
    row.launches.push_back({launch.entry, {}, resources(launch)});
  }
}

void put_resources(Row& row, const LaunchPlan& plan, Device& device) {
  if (!device.has_clock()) return;
  put_resources(row, plan, [&device](const Launch& launch) {
    return resources_of(device.resources(launch).value(), ptxas_entry(launch.entry, device.sm()));
  });
}

void put_part_times(Row& row, std::span<const ItemTimes> parts) {
  double longest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].error || parts[i].spaced.empty()) continue;
    RowLaunch& launch = row.launches.at(i);
    launch.time_ms = times_of(parts[i]);
    if (launch.time_ms->median <= longest) continue;
    longest = launch.time_ms->median;
    row.resources = launch.resources;
  }
}

RowTimes times_of(const ItemTimes& times) {
  const Summary spaced = summarize(times.spaced);
  RowTimes row{.median = spaced.median,
               .p10 = spaced.p10,
               .p90 = spaced.p90,
               .min = spaced.min,
               .n = spaced.n,
               .back_to_back = {},
               .recorded = times.recorded};
  if (!times.back_to_back.empty()) row.back_to_back = summarize(times.back_to_back).median;
  return row;
}

void put_times(Row& row, const Item& item, const ItemTimes& times) {
  row.time_ms = times_of(times);
  const auto per_second = [](double amount, double ms, double unit) {
    return amount > 0 && ms > 0 ? std::optional(amount / (ms * 1e-3) / unit) : std::nullopt;
  };
  const double median = row.time_ms->median;
  row.tflops = per_second(item_flops(item), median, 1e12);
  row.tflops_back_to_back =
      per_second(item_flops(item), row.time_ms->back_to_back.value_or(0), 1e12);
  row.gbs = per_second(item_bytes(item), median, 1e9);
}

void put_clock(Row& row, const ClockReading& clock) {
  if (clock.clock_mhz) row.clock_mhz = std::round(*clock.clock_mhz);
  if (clock.power_w) row.power_w = std::round(*clock.power_w * 10) / 10;
}

}  // namespace fa
