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
#include "harness/results/fields_json.h"
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

template <>
inline constexpr auto kNamesOf<Limit> =
    std::to_array<Named<Limit>>({{Limit::registers, "registers"},
                                 {Limit::shared_memory, "shared memory"},
                                 {Limit::warps, "warps"},
                                 {Limit::blocks, "blocks"}});

/// What a row's Q, K and V were.
struct RowInputs {
  FA_FIELDS(RowInputs);
  FA_FIELD(std::string, name, "normal", "A distribution, or files; absent: normal.",
           .key = "inputs", .if_set = true);
  FA_FIELD(double, spread, 1, "Factor on Q: the standard deviation of normal scores; absent: 1.",
           .if_set = true, .exact = true, .rules = kPositive);

  RowInputs() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it names the kind, and no more.
  RowInputs(const InputKind& kind) : name(to_string(kind.distribution)), spread(kind.spread) {}
};

/// The problem and, where they are not normal with spread 1, its inputs, for messages.
std::string describe(const Problem& problem, const RowInputs& inputs);

/// What identifies a row: a file holds at most one row for each.
struct RowKey {
  FA_FIELDS(RowKey);
  FA_FIELD(RowKind, kind, RowKind::rung, "");
  FA_FIELD(std::string, id, {}, "06 or fa2.", .rules = kSomeText);
  FA_FIELD(std::string, variant, {}, "Tile of a rung, version of a peer; may be empty.");
  FA_FIELD(Problem, problem, {}, "");
  FA_FIELD(RowInputs, inputs, {}, "", .key = "problem");
};

/// How far the log-sum-exp is off; nothing for what is not finite.
struct RowLseCheck {
  FA_FIELDS(RowLseCheck);
  FA_FIELD(std::optional<double>, max_error, {}, "");
  FA_FIELD(std::optional<double>, tolerance, {}, "");
  FA_FIELD(std::optional<double>, ratio, {}, "");
};

/// The verdict's numbers; nothing for one that is not finite.
struct RowCheck {
  FA_FIELDS(RowCheck);
  FA_FIELD(std::optional<double>, max_error, {}, "At the worst element; null when not finite.");
  FA_FIELD(std::optional<double>, reference_error, {}, "");
  FA_FIELD(std::optional<double>, tolerance, {}, "");
  FA_FIELD(std::optional<double>, floor, {}, "");
  FA_FIELD(std::optional<double>, ratio, {}, "max_error / tolerance.");
  FA_FIELD(std::int64_t, rows_checked, 0, "");
  FA_FIELD(std::int64_t, rows_total, 0, "", .least = 1);
  FA_FIELD(bool, finite, false, "");
  FA_FIELD(bool, repeatable, false, "");
  FA_FIELD(bool, red_zones_intact, false, "");
  FA_FIELD(std::optional<RowLseCheck>, lse, {},
           "The same of the LSE, where the problem asks for it.", .if_set = true);
};

/// Milliseconds of spaced launches.
struct RowTimes {
  FA_FIELDS(RowTimes);
  FA_FIELD(double, median, 0, "", .rules = kPositive);
  FA_FIELD(double, p10, 0, "", .rules = kPositive);
  FA_FIELD(double, p90, 0, "", .rules = kPositive);
  FA_FIELD(double, min, 0, "", .rules = kPositive);
  FA_FIELD(int, n, 0, "", .least = 1);
  FA_FIELD(std::optional<double>, back_to_back, {},
           "Median over rounds of the time per launch without gaps.", .rules = kPositive);
  FA_FIELD(bool, recorded, false,
           "The launches without gaps are a CUDA graph's, as those of about a millisecond or less "
           "are where they can be recorded.",
           .if_set = true);
  FA_FIELD(int, cache_copies, 1,
           "Copies of K and V that the launches without gaps take in turn; absent: one.",
           .if_set = true, .least = 1);
  FA_FIELD(bool, hot, false,
           "Even so the launches without gaps may find K and V in the L2, which holds them all.",
           .if_set = true);
};

/// What a kernel takes of the card.
struct RowResources {
  FA_FIELDS(RowResources);
  FA_FIELD(int, registers, 0, "");
  FA_FIELD(std::int64_t, shared_bytes, 0, "Static and dynamic, a block.");
  FA_FIELD(std::optional<std::int64_t>, spill_bytes, {},
           "Stores and loads, by ptxas; null without its report.");
  FA_FIELD(std::optional<std::int64_t>, local_bytes, {}, "Local memory of a thread.",
           .if_set = true);
  FA_FIELD(int, blocks_per_sm, 0, "");
  FA_FIELD(std::vector<Limit>, limited_by, {},
           "What allows no more blocks per SM; null: limits of the card not known.",
           .rules = R"({"uniqueItems": true})");
};

/// One launch of a plan with several. It is timed alone, each time after a pass of the whole plan,
/// so the times need not add up to the plan's.
struct RowLaunch {
  FA_FIELDS(RowLaunch);
  FA_FIELD(std::string, entry, {}, "", .rules = kSomeText);
  FA_FIELD(std::optional<RowTimes>, time_ms, {}, "");
  FA_FIELD(RowResources, resources, {}, "");
};

/// Names and numbers of the virtual machine's counts, those that are not 0.
using RowCounts = std::vector<std::pair<std::string, std::uint64_t>>;

template <>
struct JsonForm<RowCounts> {
  static Json write(const RowCounts& counts, const FieldFacts& facts);
  static void read(const Json& json, RowCounts& counts, const FieldFacts& facts);
  static Json schema(const FieldFacts& facts);
};

struct RowLine {
  FA_FIELDS(RowLine);
  FA_FIELD(int, line, 0, "Of the kernel's file; 0 is what no line of it leads to.");
  FA_FIELD(RowCounts, counts, {}, "");
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

using ResourceClocks = std::array<double, kResources>;
template <>
struct JsonForm<ResourceClocks> {
  static Json write(const ResourceClocks& clocks, const FieldFacts& facts);
  static void read(const Json& json, ResourceClocks& clocks, const FieldFacts& facts);
  static Json schema(const FieldFacts& facts);
};

/// Clocks of each SM that a launch needs at least, for each resource, were its work spread evenly.
struct RowLaunchBound {
  FA_FIELDS(RowLaunchBound);
  FA_FIELD(std::string, entry, {}, "", .rules = kSomeText);
  FA_FIELD(Resource, resource, {}, "The one with the most.");
  FA_FIELD(ResourceClocks, clocks, {}, "");

  double of(Resource which) const { return clocks.at(static_cast<std::size_t>(which)); }
  double most() const { return of(resource); }
};

/// What bounds a plan, whose launches run one after another: the resource of the launches that
/// together take the most clocks.
struct RowBound {
  FA_FIELDS(RowBound);
  FA_FIELD(std::string, card, {}, "Whose limits these are.", .rules = kSomeText);
  FA_FIELD(Resource, resource, {}, "");
  FA_FIELD(double, clocks, 0, "Of each SM, of all launches.", .rules = kPositive);
  FA_FIELD(double, share, 1, "Of the clocks, those in launches that the resource bounds.",
           .rules = R"({"exclusiveMinimum": 0, "maximum": 1})");
  FA_FIELD(std::vector<RowLaunchBound>, launches, {}, "", .if_set = true);
};

/// One kernel on one problem. What was not measured is nothing.
struct Row {
  FA_FIELDS(Row);
  FA_FIELD(RowKey, key, {}, "", .key = "");
  FA_FIELD(Status, status, Status::error, "");
  FA_FIELD(std::string, reason, {}, "Empty when ok.");
  FA_FIELD(std::optional<std::string>, entry, {}, "Rungs: the kernel's name.", .some_rows = true);
  FA_FIELD(bool, ablation, false, "Rungs: true for a tile that is not the rung's own.",
           .some_rows = true);
  using Product = std::array<std::int64_t, 3>;
  FA_FIELD(Product, matmul, {},
           "Peers that are a matrix product in the problem's dtype beside it: M, N, K.",
           .if_set = true);
  FA_FIELD(std::int64_t, copy_bytes, 0,
           "Peers that copy device memory beside the problem; gbs counts reads and writes.",
           .if_set = true);
  FA_FIELD(std::string, run, {},
           "Start (UTC) of the process that measured it: times compare inside a run.",
           .rules = R"({"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"})");
  FA_FIELD(std::optional<RowCheck>, check, {}, "");
  FA_FIELD(std::optional<RowTimes>, time_ms, {}, "Spaced launches.");
  FA_FIELD(std::optional<double>, tflops, {}, "Of the median of spaced launches.",
           .rules = kPositive);
  FA_FIELD(std::optional<double>, tflops_back_to_back, {}, "", .rules = kPositive);
  FA_FIELD(std::optional<double>, gbs, {},
           "Q, K, V and O once, in the median; 10^9 bytes a second.", .rules = kPositive);
  FA_FIELD(std::optional<double>, clock_mhz, {}, "Mean SM clock, back-to-back.",
           .rules = kPositive);
  FA_FIELD(std::optional<double>, power_w, {}, "Mean, back-to-back.", .rules = kPositive);
  FA_FIELD(std::optional<RowResources>, resources, {},
           "Of the kernel; where a plan has several launches, of the one that takes longest, null "
           "when they were not timed.");
  FA_FIELD(std::optional<std::int64_t>, peak_bytes, {},
           "Device memory. Rungs: tensors and scratch of the plan, also when it was too much. "
           "Peers: Q, K, V and what PyTorch allocated during one launch, its O included.");
  FA_FIELD(std::vector<RowLaunch>, launches, {},
           "Rungs whose plan has several launches: each of them, in stream order.", .if_set = true,
           .rules = R"({"minItems": 2})");
  FA_FIELD(std::optional<RowBound>, bound, {},
           "Of the virtual machine: what bounds the kernel on this card, by the clocks of each SM "
           "that its counts need there, evenly spread.",
           .if_set = true);
  FA_FIELD(std::optional<RowCounts>, counts, {},
           "Of the virtual machine: fa explain prints the same names.", .if_set = true);
  FA_FIELD(std::vector<RowLine>, lines, {},
           "fa explain --by-line: counts of the lines of the kernel's file.", .if_set = true);

  /// Keys that this program does not know, at any depth: they are written as they were read.
  Json other;

  void settle(Status to, std::string why) { status = to, reason = std::move(why); }
};

Json to_json(const Row& row);
/// Throws std::exception when a field is missing or of another type.
Row row_from_json(const Json& json);

}  // namespace fa
