// SPDX-License-Identifier: MIT
// One measurement: a row of a result file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/environment/occupancy.h"
#include "harness/results/json.h"
#include "harness/results/problem_json.h"
#include "kernels/problem.h"

namespace fa {

enum class RowKind { rung, peer };

/// ok: verified, and timed where the device has a clock. error: it could not be run or timed.
enum class Status { ok, incorrect, unsupported, out_of_memory, error };

// The names in files and in tables.
template <>
inline constexpr auto kNamesOf<RowKind> = std::to_array<Named<RowKind>>({{RowKind::rung, "rung"},
                                                                         {RowKind::peer, "peer"}});
template <>
inline constexpr auto kNamesOf<Status> =
    std::to_array<Named<Status>>({{Status::ok, "ok"},
                                  {Status::incorrect, "incorrect"},
                                  {Status::unsupported, "unsupported"},
                                  {Status::out_of_memory, "out_of_memory"},
                                  {Status::error, "error"}});

/// What a row's Q, K and V were.
struct RowInputs {
  std::string name = "normal";  ///< a distribution, or "files"
  double spread = 1;

  RowInputs() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it names the kind, and no more.
  RowInputs(const InputKind& kind) : name(to_string(kind.distribution)), spread(kind.spread) {}

  bool operator==(const RowInputs&) const = default;
};

/// The problem and, where they are not normal with spread 1, its inputs, for messages.
std::string describe(const Problem& problem, const RowInputs& inputs);

/// What identifies a row: a file holds at most one row for each.
struct RowKey {
  RowKind kind = RowKind::rung;
  std::string id;       ///< "06", "fa2"
  std::string variant;  ///< tile or version; may be empty
  Problem problem;
  RowInputs inputs = {};

  bool operator==(const RowKey&) const = default;
};

/// How far the log-sum-exp is off; nothing for what is not finite.
struct RowLseCheck {
  std::optional<double> max_error, tolerance, ratio;
};

/// The verdict's numbers; nothing for one that is not finite.
struct RowCheck {
  std::optional<double> max_error, reference_error, tolerance, floor, ratio;
  std::int64_t rows_checked = 0, rows_total = 0;
  bool finite = false, repeatable = false, red_zones_intact = false;
  std::optional<RowLseCheck> lse;  ///< where the problem asks for it
};

/// Milliseconds of spaced launches; back_to_back: per launch without gaps.
struct RowTimes {
  double median = 0, p10 = 0, p90 = 0, min = 0;
  int n = 0;
  std::optional<double> back_to_back;
  bool recorded = false;  ///< back_to_back is of launches recorded as a CUDA graph
};

/// What a kernel takes of the card.
struct RowResources {
  int registers = 0;
  std::int64_t shared_bytes = 0;            ///< static and dynamic, a block
  std::optional<std::int64_t> spill_bytes;  ///< by ptxas; nothing without its report
  std::optional<std::int64_t> local_bytes;  ///< of a thread
  int blocks_per_sm = 0;
  std::vector<Limit> limited_by;  ///< empty: limits of the card not known
};

/// One launch of a plan with several.
struct RowLaunch {
  std::string entry;
  std::optional<RowTimes> time_ms;
  RowResources resources;
};

/// Names and numbers of the virtual machine's counts, those that are not 0.
using RowCounts = std::vector<std::pair<std::string, std::uint64_t>>;

struct RowLine {
  int line = 0;
  RowCounts counts;
};

/// What a launch takes of a card.
enum class Resource {
  tensor_cores,
  exponentials,
  fp32,
  shared_memory,
  l2,
  device_memory,
  issue_slots
};
template <>
inline constexpr auto kNamesOf<Resource> =
    std::to_array<Named<Resource>>({{Resource::tensor_cores, "tensor_cores"},
                                    {Resource::exponentials, "exponentials"},
                                    {Resource::fp32, "fp32"},
                                    {Resource::shared_memory, "shared_memory"},
                                    {Resource::l2, "l2"},
                                    {Resource::device_memory, "device_memory"},
                                    {Resource::issue_slots, "issue_slots"}});
inline constexpr std::size_t kResources = kNamesOf<Resource>.size();

/// Clocks of each SM that a launch needs at least, for each resource, were its work spread evenly.
struct RowLaunchBound {
  std::string entry;
  Resource resource{};  ///< the one with the most
  std::array<double, kResources> clocks{};

  double of(Resource which) const { return clocks.at(static_cast<std::size_t>(which)); }
  double most() const { return of(resource); }
};

/// What bounds a plan, whose launches run one after another: the resource of the launches that
/// together take the most clocks.
struct RowBound {
  std::string card;  ///< whose limits these are
  Resource resource{};
  double clocks = 0;  ///< of all launches
  double share = 1;   ///< the part of them in launches that the resource bounds
  std::vector<RowLaunchBound> launches;
};

/// One kernel on one problem. What was not measured is nothing.
struct Row {
  RowKey key;
  Status status = Status::error;
  std::string reason;  ///< empty when ok
  std::string run;     ///< start of the process that measured it, "2026-10-27T14:03:05Z"

  // Rungs.
  std::optional<std::string> entry;
  bool ablation = false;
  std::vector<RowLaunch> launches;  ///< of a plan with several
  // Ceilings among the peers.
  std::array<std::int64_t, 3> matmul{};
  std::int64_t copy_bytes = 0;

  std::optional<RowCheck> check;
  std::optional<RowTimes> time_ms;
  std::optional<double> tflops, tflops_back_to_back, gbs, clock_mhz, power_w;
  std::optional<RowResources> resources;
  std::optional<std::int64_t> peak_bytes;
  std::optional<RowBound> bound;
  std::optional<RowCounts> counts;
  std::vector<RowLine> lines;

  /// Keys that this program does not know: they are written as they were read.
  Json other = Json::object();

  void settle(Status to, std::string why) { status = to, reason = std::move(why); }
};

/// {batch, heads, seq_q, seq_kv, head_dim, causal, dtype}; lse where it is asked for, kv_heads,
/// lengths and page where there are such, inputs and spread where they are not normal and 1.
Json to_json(const Problem& problem, const RowInputs& inputs = {});
/// Throws std::exception when a field is of another type.
RowInputs inputs_from_json(const Json& json);

Json to_json(const Row& row);
/// Throws std::exception when a field is missing or of another type.
Row row_from_json(const Json& json);

/// What a table of times has: fa limits writes the same.
Json to_json(const RowTimes& times);

}  // namespace fa
