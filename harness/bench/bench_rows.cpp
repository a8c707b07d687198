// Items and rows of a bench: everything that needs no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "harness/bench/bench.h"
#include "harness/bench/occupancy.h"
#include "harness/bench/statistics.h"

namespace fa {

Json rounded(double value) {
  if (!std::isfinite(value)) return {};
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

Json time_json(const ItemTimes& times) {
  const Summary spaced = summarize(times.spaced);
  const Summary sustained = summarize(times.back_to_back);
  return {{"median", rounded(spaced.median)},
          {"p10", rounded(spaced.p10)},
          {"p90", rounded(spaced.p90)},
          {"min", rounded(spaced.min)},
          {"n", spaced.n},
          {"back_to_back", times.back_to_back.empty() ? Json() : rounded(sustained.median)}};
}

namespace {

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// 0 for a copy.
double item_flops(const BenchItem& item) {
  if (!item.peer || !item.peer->is_ceiling()) return item.problem.flops();
  const auto& [m, n, k] = item.peer->matmul;
  return 2.0 * product(m, n) * static_cast<double>(k);
}

double item_bytes(const BenchItem& item) {
  if (!item.peer || !item.peer->is_ceiling()) return item.problem.bytes();
  // Each byte is read and written.
  if (item.peer->is_copy()) return 2.0 * static_cast<double>(item.peer->copy_bytes);
  const auto& [m, n, k] = item.peer->matmul;
  return static_cast<double>(size_of(item.problem.dtype)) *
         (product(m, k) + product(k, n) + product(m, n));
}

/// Null where it is beyond what a result file can hold exactly.
Json peak_bytes(const BenchItem& item) {
  double bytes = item.problem.bytes();
  for (const Scratch& scratch : item.plan.scratch) bytes += static_cast<double>(scratch.bytes);
  constexpr double kExact = std::int64_t{1} << 53;
  return bytes <= kExact ? Json(static_cast<std::int64_t>(bytes)) : Json();
}

BenchItem peer_item(const Peer& peer, const Problem& problem) {
  BenchItem item;
  item.kind = "peer";
  item.id = peer.id;
  item.variant = peer.variant;
  item.name = peer.id;
  item.problem = problem;
  item.peer = &peer;
  item.refused = peer.unavailable_reason;
  if (item.refused.empty() && peer.unsupported) item.refused = peer.unsupported(problem);
  return item;
}

}  // namespace

BenchItem rung_item(const Rung& rung, const Problem& problem, std::string_view tile,
                    const DeviceDescription& device) {
  BenchItem item;
  item.kind = "rung";
  item.id = rung.id;
  item.problem = problem;
  item.rung = &rung;
  item.instance = rung.find_instance(problem.head_dim, tile);
  item.variant = item.instance ? to_string(item.instance->tile) : std::string(tile);
  item.name = fmt::format("{}{}{}", rung.name, item.variant.empty() ? "" : " ", item.variant);
  item.ablation = item.instance && item.instance != rung.find_instance(problem.head_dim);
  PlanResult result = make_plan(rung, problem, device, tile);
  if (auto* unsupported = std::get_if<Unsupported>(&result)) {
    item.refused = std::move(unsupported->reason);
  } else {
    item.plan = std::move(std::get<LaunchPlan>(result));
  }
  return item;
}

std::vector<BenchItem> bench_items(const BenchOptions& options, const Problem& problem,
                                   const DeviceDescription& device) {
  std::vector<BenchItem> items;
  for (const Rung* rung : options.rungs) {
    if (rung->dtype != problem.dtype) continue;
    std::vector<std::string> tiles;
    for (const Instance* instance : rung->find_instances(problem.head_dim, options.tuned))
      tiles.push_back(to_string(instance->tile));
    if (tiles.empty()) tiles = {""};  // a head_dim that the rung does not have: one refusal
    if (!options.ablations) tiles.resize(1);
    for (const std::string& tile : tiles) {
      const bool wanted = options.tiles.empty() || tile.empty() ||
                          std::count(options.tiles.begin(), options.tiles.end(), tile) > 0;
      if (wanted) items.push_back(rung_item(*rung, problem, tile, device));
    }
  }
  for (const Peer& peer : options.peers) items.push_back(peer_item(peer, problem));
  for (BenchItem& item : items) item.inputs = options.inputs;
  return items;
}

RowKey key_of(const BenchItem& item) {
  return {.kind = item.kind,
          .id = item.id,
          .variant = item.variant,
          .problem = item.problem,
          .inputs = item.inputs};
}

bool is_complete(const ResultsFile& file, const std::vector<BenchItem>& items) {
  return std::all_of(items.begin(), items.end(), [&](const BenchItem& item) {
    const Json* row = file.find(key_of(item));
    if (!row) return false;
    const std::string status = row->at("status");
    if (!item.refused.empty()) {
      return status == "unsupported" && row->at("reason") == item.refused;
    }
    return status == "ok" || status == "out_of_memory";
  });
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

Json empty_row(const BenchItem& item, const std::string& run) {
  Json row{{"kind", item.kind},
           {"id", item.id},
           {"variant", item.variant},
           {"problem", to_json(item.problem, item.inputs)},
           {"status", item.refused.empty() ? "error" : "unsupported"},
           {"reason", item.refused}};
  if (item.rung) {
    row["entry"] = item.instance ? Json(item.instance->entry) : Json();
    row["ablation"] = item.ablation;
  } else if (item.peer && item.peer->is_matmul()) {
    row["matmul"] = item.peer->matmul;
  } else if (item.peer && item.peer->is_copy()) {
    row["copy_bytes"] = item.peer->copy_bytes;
  }
  row["run"] = run;
  for (const char* measured : {"check", "time_ms", "tflops", "tflops_back_to_back", "gbs",
                               "clock_mhz", "power_w", "resources", "peak_bytes"}) {
    row[measured] = nullptr;
  }
  if (item.rung && item.refused.empty()) row["peak_bytes"] = peak_bytes(item);
  return row;
}

Json check_json(const Verdict& verdict) {
  const CheckReport& check = verdict.check;
  Json json{
      {"max_error", rounded(check.max_error)}, {"reference_error", rounded(check.reference_error)},
      {"tolerance", rounded(check.tolerance)}, {"floor", rounded(check.floor)},
      {"ratio", rounded(check.ratio)},         {"rows_checked", check.rows_checked},
      {"rows_total", check.rows_total},        {"finite", check.finite},
      {"repeatable", verdict.repeatable},      {"red_zones_intact", verdict.damaged.empty()}};
  if (verdict.lse.tolerance > 0) {
    json["lse"] = {{"max_error", rounded(verdict.lse.max_error)},
                   {"tolerance", rounded(verdict.lse.tolerance)},
                   {"ratio", rounded(verdict.lse.ratio)}};
  }
  return json;
}

void put_verdict(Json& row, const Verdict& verdict) {
  if (verdict.check.rows_total > 0) row["check"] = check_json(verdict);
  row["status"] = verdict.ok ? "ok" : "incorrect";
  row["reason"] = verdict.reason;
}

Json resources_json(const KernelResources& used, const std::optional<PtxasEntry>& ptxas) {
  const std::size_t shared = used.static_shared + used.dynamic_shared;
  return {{"registers", used.registers},
          {"shared_bytes", shared},
          {"spill_bytes", ptxas ? Json(ptxas->spill_stores + ptxas->spill_loads) : Json()},
          {"local_bytes", used.local_bytes},
          {"blocks_per_sm", used.blocks_per_sm},
          {"limited_by", limits_json(used.sm, {used.threads, used.registers, shared})}};
}

std::vector<LaunchPlan> launch_parts(const LaunchPlan& plan) {
  std::vector<LaunchPlan> parts;
  if (plan.launches.size() < 2) return parts;
  for (const Launch& launch : plan.launches) parts.push_back({{launch}, plan.scratch});
  return parts;
}

std::vector<TimedItem> part_items(const BenchItem& item,
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

void put_resources(Json& row, const LaunchPlan& plan,
                   const std::function<Json(const Launch&)>& resources) {
  if (plan.launches.size() == 1) {
    row["resources"] = resources(plan.launches.front());
    return;
  }
  row["launches"] = Json::array();
  for (const Launch& launch : plan.launches) {
    row["launches"].push_back(
        {{"entry", launch.entry}, {"time_ms", nullptr}, {"resources", resources(launch)}});
  }
}

void put_part_times(Json& row, std::span<const ItemTimes> parts) {
  double longest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].error || parts[i].spaced.empty()) continue;
    Json& launch = row["launches"].at(i);
    launch["time_ms"] = time_json(parts[i]);
    const double median = summarize(parts[i].spaced).median;
    if (median <= longest) continue;
    longest = median;
    row["resources"] = launch["resources"];
  }
}

void put_times(Json& row, const BenchItem& item, const ItemTimes& times) {
  const double median = summarize(times.spaced).median;
  const auto per_second = [&](double amount, double ms, double unit) {
    return amount > 0 && ms > 0 ? rounded(amount / (ms * 1e-3) / unit) : Json();
  };
  row["time_ms"] = time_json(times);
  row["tflops"] = per_second(item_flops(item), median, 1e12);
  row["tflops_back_to_back"] =
      per_second(item_flops(item), summarize(times.back_to_back).median, 1e12);
  row["gbs"] = per_second(item_bytes(item), median, 1e9);
}

}  // namespace fa
