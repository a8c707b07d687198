// SPDX-License-Identifier: MIT
#include "harness/results/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace fa {
namespace {

Json limits_to_json(const std::vector<Limit>& limits) {
  Json names = Json::array();
  for (const Limit limit : limits) names.push_back(to_string(limit));
  return limits.empty() ? Json() : names;
}

Json counts_to_json(const RowCounts& counts) {
  Json json = Json::object();
  for (const auto& [name, value] : counts) json[name] = value;
  return json;
}

// --- writing: null for what was not measured ---

Json value_json(double value) {
  return rounded(value);
}

Json value_json(std::int64_t value) {
  return value;
}

Json value_json(const RowTimes& times) {
  return to_json(times);
}

Json value_json(const std::string& text) {
  return text;
}

template <typename Value>
Json or_null(const std::optional<Value>& value);

Json value_json(const RowLseCheck& check) {
  return {{"max_error", or_null(check.max_error)},
          {"tolerance", or_null(check.tolerance)},
          {"ratio", or_null(check.ratio)}};
}

Json value_json(const RowCheck& check) {
  Json json{
      {"max_error", or_null(check.max_error)}, {"reference_error", or_null(check.reference_error)},
      {"tolerance", or_null(check.tolerance)}, {"floor", or_null(check.floor)},
      {"ratio", or_null(check.ratio)},         {"rows_checked", check.rows_checked},
      {"rows_total", check.rows_total},        {"finite", check.finite},
      {"repeatable", check.repeatable},        {"red_zones_intact", check.red_zones_intact}};
  if (check.lse) json["lse"] = value_json(*check.lse);
  return json;
}

Json value_json(const RowResources& used) {
  Json json{{"registers", used.registers},
            {"shared_bytes", used.shared_bytes},
            {"spill_bytes", or_null(used.spill_bytes)}};
  if (used.local_bytes) json["local_bytes"] = *used.local_bytes;
  json["blocks_per_sm"] = used.blocks_per_sm;
  json["limited_by"] = limits_to_json(used.limited_by);
  return json;
}

Json value_json(const RowBound& bound) {
  Json json{{"card", bound.card},
            {"resource", name_of(bound.resource)},
            {"clocks", rounded(bound.clocks)},
            {"share", rounded(bound.share)}};
  for (const RowLaunchBound& launch : bound.launches) {
    Json clocks = Json::object();
    for (const Named<Resource>& each : kNamesOf<Resource>) {
      clocks[each.name] = rounded(launch.of(each.value));
    }
    json["launches"].push_back({{"entry", launch.entry},
                                {"resource", name_of(launch.resource)},
                                {"clocks", std::move(clocks)}});
  }
  return json;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? value_json(*value) : Json();
}

// --- reading: nothing for null and for a key that is not there ---

const Json* present(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

template <typename Value>
void read_value(const Json& json, Value& value) {
  json.get_to(value);
}

void read_value(const Json& json, RowLseCheck& check);
void read_value(const Json& json, RowCheck& check);
void read_value(const Json& json, RowTimes& times);
void read_value(const Json& json, RowResources& used);
void read_value(const Json& json, RowBound& bound);
void read_value(const Json& json, RowCounts& counts);

template <typename Value>
void read(const Json& json, const char* name, std::optional<Value>& value) {
  if (const Json* found = present(json, name)) read_value(*found, value.emplace());
}

template <typename Enum>
Enum enum_at(const Json& json, const char* name) {
  const auto text = json.at(name).get<std::string>();
  const std::optional<Enum> value = named<Enum>(text);
  if (!value) throw std::invalid_argument(fmt::format("{} '{}'", name, text));
  return *value;
}

void read_value(const Json& json, RowLseCheck& check) {
  read(json, "max_error", check.max_error);
  read(json, "tolerance", check.tolerance);
  read(json, "ratio", check.ratio);
}

void read_value(const Json& json, RowCheck& check) {
  read(json, "max_error", check.max_error);
  read(json, "reference_error", check.reference_error);
  read(json, "tolerance", check.tolerance);
  read(json, "floor", check.floor);
  read(json, "ratio", check.ratio);
  json.at("rows_checked").get_to(check.rows_checked);
  json.at("rows_total").get_to(check.rows_total);
  json.at("finite").get_to(check.finite);
  json.at("repeatable").get_to(check.repeatable);
  json.at("red_zones_intact").get_to(check.red_zones_intact);
  read(json, "lse", check.lse);
}

void read_value(const Json& json, RowTimes& times) {
  json.at("median").get_to(times.median);
  json.at("p10").get_to(times.p10);
  json.at("p90").get_to(times.p90);
  json.at("min").get_to(times.min);
  json.at("n").get_to(times.n);
  read(json, "back_to_back", times.back_to_back);
  times.recorded = json.value("recorded", false);
}

void read_value(const Json& json, RowResources& used) {
  json.at("registers").get_to(used.registers);
  json.at("shared_bytes").get_to(used.shared_bytes);
  read(json, "spill_bytes", used.spill_bytes);
  read(json, "local_bytes", used.local_bytes);
  json.at("blocks_per_sm").get_to(used.blocks_per_sm);
  const Json* names = present(json, "limited_by");
  for (const Json& name : names ? *names : Json::array()) {
    const std::optional<Limit> limit = parse_limit(name.get<std::string>());
    if (!limit) throw std::invalid_argument("limited_by " + name.dump());
    used.limited_by.push_back(*limit);
  }
}

void read_value(const Json& json, RowBound& bound) {
  json.at("card").get_to(bound.card);
  bound.resource = enum_at<Resource>(json, "resource");
  json.at("clocks").get_to(bound.clocks);
  json.at("share").get_to(bound.share);
  for (const Json& each : json.at("launches")) {
    RowLaunchBound& launch = bound.launches.emplace_back();
    each.at("entry").get_to(launch.entry);
    launch.resource = enum_at<Resource>(each, "resource");
    for (std::size_t i = 0; i < kResources; ++i) {
      each.at("clocks").at(kNamesOf<Resource>.at(i).name).get_to(launch.clocks.at(i));
    }
  }
}

void read_value(const Json& json, RowCounts& counts) {
  for (const auto& [name, value] : json.items()) {
    counts.emplace_back(name, value.get<std::uint64_t>());
  }
}

/// Every key that a row may have.
constexpr std::array kKeys{"kind",     "id",        "variant",  "problem",   "status",
                           "reason",   "entry",     "ablation", "matmul",    "copy_bytes",
                           "run",      "check",     "time_ms",  "tflops",    "tflops_back_to_back",
                           "gbs",      "clock_mhz", "power_w",  "resources", "peak_bytes",
                           "launches", "bound",     "counts",   "lines"};

}  // namespace

Json rounded(double value) {
  if (!std::isfinite(value)) return {};
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string describe(const Problem& problem, const RowInputs& inputs) {
  std::string text = to_string(problem);
  if (inputs.name != RowInputs().name) text += ", " + inputs.name;
  if (inputs.spread != RowInputs().spread) text += fmt::format(", spread {}", inputs.spread);
  return text;
}

Json to_json(const Problem& problem, const RowInputs& inputs) {
  Json json{{"batch", problem.batch},           {"heads", problem.heads},
            {"seq_q", problem.seq_q},           {"seq_kv", problem.seq_kv},
            {"head_dim", problem.head_dim},     {"causal", problem.causal},
            {"dtype", to_string(problem.dtype)}};
  if (problem.lse) json["lse"] = true;
  if (problem.group() > 1) json["kv_heads"] = problem.kv_heads();
  if (!problem.lengths.empty()) json["lengths"] = problem.lengths;
  if (problem.page > 0) json["page"] = problem.page;
  if (problem.e4m3) json["cache"] = to_string(Dtype::e4m3);
  if (inputs.name != RowInputs().name) json["inputs"] = inputs.name;
  if (inputs.spread != RowInputs().spread) json["spread"] = inputs.spread;
  return json;
}

RowInputs inputs_from_json(const Json& json) {
  RowInputs inputs;
  if (json.contains("inputs")) json.at("inputs").get_to(inputs.name);
  if (json.contains("spread")) json.at("spread").get_to(inputs.spread);
  return inputs;
}

Json to_json(const RowTimes& times) {
  Json json{{"median", rounded(times.median)},
            {"p10", rounded(times.p10)},
            {"p90", rounded(times.p90)},
            {"min", rounded(times.min)},
            {"n", times.n},
            {"back_to_back", or_null(times.back_to_back)}};
  if (times.recorded) json["recorded"] = true;
  return json;
}

Json to_json(const Row& row) {
  Json json{{"kind", name_of(row.key.kind)}, {"id", row.key.id},
            {"variant", row.key.variant},    {"problem", to_json(row.key.problem, row.key.inputs)},
            {"status", name_of(row.status)}, {"reason", row.reason}};
  if (row.key.kind == RowKind::rung) {
    json["entry"] = or_null(row.entry);
    json["ablation"] = row.ablation;
  }
  if (row.matmul.front() > 0) json["matmul"] = row.matmul;
  if (row.copy_bytes > 0) json["copy_bytes"] = row.copy_bytes;
  json["run"] = row.run;
  json["check"] = or_null(row.check);
  json["time_ms"] = or_null(row.time_ms);
  json["tflops"] = or_null(row.tflops);
  json["tflops_back_to_back"] = or_null(row.tflops_back_to_back);
  json["gbs"] = or_null(row.gbs);
  json["clock_mhz"] = or_null(row.clock_mhz);
  json["power_w"] = or_null(row.power_w);
  json["resources"] = or_null(row.resources);
  json["peak_bytes"] = or_null(row.peak_bytes);
  for (const RowLaunch& launch : row.launches) {
    json["launches"].push_back({{"entry", launch.entry},
                                {"time_ms", or_null(launch.time_ms)},
                                {"resources", value_json(launch.resources)}});
  }
  if (row.bound) json["bound"] = value_json(*row.bound);
  if (row.counts) json["counts"] = counts_to_json(*row.counts);
  for (const RowLine& line : row.lines) {
    json["lines"].push_back({{"line", line.line}, {"counts", counts_to_json(line.counts)}});
  }
  for (const auto& [name, value] : row.other.items()) json[name] = value;
  return json;
}

Row row_from_json(const Json& json) {
  Row row;
  row.key = {.kind = enum_at<RowKind>(json, "kind"),
             .id = json.at("id").get<std::string>(),
             .variant = json.at("variant").get<std::string>(),
             .problem = problem_from_json(json.at("problem")),
             .inputs = inputs_from_json(json.at("problem"))};
  row.status = enum_at<Status>(json, "status");
  json.at("reason").get_to(row.reason);
  row.run = json.value("run", "");
  read(json, "entry", row.entry);
  row.ablation = json.value("ablation", false);
  if (const Json* matmul = present(json, "matmul")) matmul->get_to(row.matmul);
  row.copy_bytes = json.value("copy_bytes", std::int64_t{0});
  read(json, "check", row.check);
  read(json, "time_ms", row.time_ms);
  read(json, "tflops", row.tflops);
  read(json, "tflops_back_to_back", row.tflops_back_to_back);
  read(json, "gbs", row.gbs);
  read(json, "clock_mhz", row.clock_mhz);
  read(json, "power_w", row.power_w);
  read(json, "resources", row.resources);
  read(json, "peak_bytes", row.peak_bytes);
  read(json, "bound", row.bound);
  read(json, "counts", row.counts);
  if (const Json* launches = present(json, "launches")) {
    for (const Json& each : *launches) {
      RowLaunch& launch = row.launches.emplace_back();
      each.at("entry").get_to(launch.entry);
      read(each, "time_ms", launch.time_ms);
      read_value(each.at("resources"), launch.resources);
    }
  }
  if (const Json* lines = present(json, "lines")) {
    for (const Json& each : *lines) {
      RowLine& line = row.lines.emplace_back();
      each.at("line").get_to(line.line);
      read_value(each.at("counts"), line.counts);
    }
  }
  for (const auto& [name, value] : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), name) == kKeys.end()) row.other[name] = value;
  }
  return row;
}

}  // namespace fa
