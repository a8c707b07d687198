// SPDX-License-Identifier: MIT
#include "harness/cli/bound.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "harness/cli/count_table.h"
#include "harness/cli/table.h"
#include "harness/measure/limits/card.h"
#include "harness/results/counts.h"

namespace fa::cli {
namespace {

using ptxvm::CountClass;
using ptxvm::Counts;

constexpr double kLanes = 32, kWavefrontBytes = 128, kSectorBytes = 32;
constexpr double kSchedulers = 4;  ///< of an SM, each of which issues an instruction in a clock
constexpr std::string_view kWgmma = "wgmma.mma_async";

/// Clocks of an SM's share, at the rate of a loop.
double clocks(double work, std::string_view loop) {
  return work / limits::card_sms() / limits::card_per_clock(loop);
}

double warp_instructions(const Counts& counts, std::initializer_list<CountClass> classes) {
  std::uint64_t sum = 0;
  for (const CountClass each : classes) sum += counts.of(each);
  return static_cast<double>(sum);
}

double tensor_clocks(const ptxvm::CountReport& report) {
  double mma = 0, wgmma = 0;
  for (const ptxvm::LineCounts& line : report.by_instruction) {
    const double instructions =
        warp_instructions(line.counts, {CountClass::kTensor, CountClass::kWgmma});
    if (instructions == 0) continue;
    (line.opcode.starts_with(kWgmma) ? wgmma : mma) += instructions * tensor_flops(line.opcode);
  }
  return clocks(mma, "mma_sync") + clocks(wgmma, "attention_registers");
}

double shared_wavefronts(const Counts& counts) {
  const ptxvm::SharedTraffic all = counts.shared_requests();
  return static_cast<double>(all.wavefronts - counts.shared_copy.wavefronts +
                             counts.shared_copy.requests + counts.wgmma_wavefronts());
}

double bytes_of(Tensor tensor, const Problem& problem) {
  const auto element = static_cast<double>(size_of(problem.dtype));
  switch (tensor) {
    case Tensor::q:
    case Tensor::o:
    case Tensor::d_o:
    case Tensor::d_q:
      return element * problem.head_dim * problem.rows();
    case Tensor::k:
    case Tensor::v:
    case Tensor::d_k:
    case Tensor::d_v:
      return problem.kv_bytes() / 2;
    case Tensor::lse:
      return problem.lse || problem.backward ? problem.rows() * sizeof(float) : 0;
    case Tensor::lengths:
    case Tensor::page_table:
    case Tensor::kv_scales:
    case Tensor::sinks:
    case Tensor::cu_seqlens_q:
    case Tensor::cu_seqlens_k:
      return 0;  // a few bytes a batch entry
  }
  return 0;
}

/// The launch's buffers, once each.
double buffer_bytes(const Launch& launch, const LaunchPlan& plan, const Problem& problem) {
  std::set<Tensor> tensors;
  std::set<int> scratch;
  for (const Argument& argument : launch.arguments) {
    if (const auto* tensor = std::get_if<Tensor>(&argument)) tensors.insert(*tensor);
    if (const auto* map = std::get_if<TensorMap>(&argument)) tensors.insert(map->tensor);
    if (const auto* own = std::get_if<ScratchRef>(&argument)) scratch.insert(own->index);
  }
  double bytes = 0;
  for (const Tensor tensor : tensors) bytes += bytes_of(tensor, problem);
  for (const int index : scratch) {
    bytes += static_cast<double>(plan.scratch.at(static_cast<std::size_t>(index)).bytes);
  }
  return bytes;
}

RowLaunchBound launch_bound(const LaunchCounts& counted, const Launch& launch, const Item& item) {
  const Counts& counts = counted.report.total;
  const double requested = kSectorBytes * static_cast<double>(counts.global_sectors());
  const double once = std::min(requested, buffer_bytes(launch, item.plan, item.problem()));
  const double exponentials = warp_instructions(counts, {CountClass::kExp, CountClass::kSpecial});
  const double multiply_adds = warp_instructions(counts, {CountClass::kFloat});
  const double operands = warp_instructions(
      counts, {CountClass::kMove, CountClass::kLoadParam, CountClass::kLoadConst});
  const double issued = static_cast<double>(counts.total_instructions()) - operands;
  RowLaunchBound bound{
      .entry = counted.entry,
      .clocks = {tensor_clocks(counted.report), clocks(exponentials * kLanes, "ex2"),
                 clocks(multiply_adds * kLanes * 2, "fma"),
                 clocks(shared_wavefronts(counts) * kWavefrontBytes, "shared_load"),
                 clocks(requested, "l2_read"), clocks(once, "memory_read"),
                 issued / limits::card_sms() / kSchedulers}};
  const auto* const most = std::max_element(bound.clocks.begin(), bound.clocks.end());
  bound.resource = static_cast<Resource>(most - bound.clocks.begin());
  return bound;
}

constexpr std::array<const char*, kResources> kWords{
    "tensor cores", "exponentials",  "FP32 arithmetic", "shared memory",
    "L2",           "device memory", "issue slots"};

const char* words(Resource resource) {
  return kWords.at(static_cast<std::size_t>(resource));
}

std::string round_clocks(double value) {
  return value < 10 ? fmt::format("{:.2g}", value)
                    : grouped(static_cast<std::uint64_t>(std::llround(value)));
}

/// "shared memory 46 %, L2 11 %": largest first; what rounds to nothing is left out.
std::string in_percent(const std::array<double, kResources>& clocks, double of,
                       std::string_view before) {
  std::vector<std::pair<double, Resource>> shares;
  for (const Named<Resource>& each : kNamesOf<Resource>) {
    const double share = 100 * clocks.at(static_cast<std::size_t>(each.value)) / of;
    if (share >= 0.5) shares.emplace_back(share, each.value);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [share, resource] : shares) {
    parts.push_back(fmt::format("{}{} {:.0f}%", words(resource), before, share));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What the others do in the clocks of the one that bounds the launch.
std::string busy_meanwhile(const RowLaunchBound& launch) {
  std::array<double, kResources> others = launch.clocks;
  others.at(static_cast<std::size_t>(launch.resource)) = 0;
  const std::string shares = in_percent(others, launch.most(), "");
  return "busy meanwhile: " + (shares.empty() ? "nothing else" : shares);
}

std::array<double, kResources> clocks_by_bound(const std::vector<RowLaunchBound>& launches) {
  std::array<double, kResources> sums{};
  for (const RowLaunchBound& launch : launches) {
    sums.at(static_cast<std::size_t>(launch.resource)) += launch.most();
  }
  return sums;
}

}  // namespace

double tensor_flops(std::string_view opcode) {
  const bool wgmma = opcode.starts_with(kWgmma);
  if (!wgmma && !opcode.starts_with("mma.sync")) return 0;
  std::array<int, 3> shape{};  // .m64n128k16.
  for (std::size_t at = 0; (at = opcode.find(".m", at)) != opcode.npos; ++at) {
    const char* next = opcode.data() + at + 1;
    const char* const end = opcode.data() + opcode.size();
    bool whole = true;
    for (std::size_t i = 0; whole && i < shape.size(); ++i) {
      whole = next != end && *next == "mnk"[i];
      if (!whole) break;
      const auto [after, error] = std::from_chars(next + 1, end, shape.at(i));
      whole = error == std::errc();
      next = after;
    }
    if (whole) return 2.0 * shape[0] * shape[1] * shape[2] / (wgmma ? 4 : 1);
  }
  return 0;
}

std::optional<RowBound> bound_of(const Counted& counted) {
  if (!runs_on(counted.item.rung->target, h200_description().sm)) return std::nullopt;
  RowBound bound;
  bound.card = limits::card_name();
  for (std::size_t i = 0; i < counted.launches.size(); ++i) {
    const Launch& launch = counted.item.plan.launches.at(i);
    bound.launches.push_back(launch_bound(counted.launches[i], launch, counted.item));
    bound.clocks += bound.launches.back().most();
  }
  const std::array<double, kResources> sums = clocks_by_bound(bound.launches);
  const auto* const most = std::max_element(sums.begin(), sums.end());
  bound.resource = static_cast<Resource>(most - sums.begin());
  bound.share = *most / bound.clocks;
  return bound;
}

std::string to_string(const std::optional<RowBound>& known, const LaunchPlan& plan,
                      std::string_view name) {
  if (!known) {
    return fmt::format("{}{}no bound: no card was measured that runs this code\n", name,
                       name.empty() ? "" : " ");
  }
  const RowBound& bound = *known;
  const int sms = limits::card_sms();
  const bool single = bound.launches.size() == 1;
  const std::string by =
      single ? std::string(words(bound.resource)) + ":"
             : in_percent(clocks_by_bound(bound.launches), bound.clocks, " in") + " of";
  std::string text =
      folded(fmt::format("{}{}bound by {} {} clocks of each of the {} SMs of an {}{}", name,
                         name.empty() ? "" : " ", by, round_clocks(bound.clocks), sms, bound.card,
                         single ? "; " + busy_meanwhile(bound.launches.front()) : ""),
             kColumns, "");
  std::int64_t blocks = 0;
  for (const Launch& launch : plan.launches) {
    blocks = std::max(blocks, launch.grid.x * launch.grid.y * launch.grid.z);
  }
  if (blocks < sms) {
    text += fmt::format(
        "With {} thread block{} {} SMs are idle; a grid that fills the card has this bound.\n",
        blocks, blocks == 1 ? "" : "s", sms - blocks);
  }
  return text;
}

std::string to_string(const RowLaunchBound& launch) {
  return folded(fmt::format("{}, {} clocks; {}", words(launch.resource),
                            round_clocks(launch.most()), busy_meanwhile(launch)),
                kColumns, "  ");
}

Row counted_row(const Counted& counted, const std::string& run) {
  Row row = empty_row(counted.item, run);
  if (!counted.item.refused.empty()) return row;
  put_verdict(row, counted.verdict);
  if (counted.verdict.ok) {
    row.bound = bound_of(counted);
    row.counts = row_counts(counted.total);
  }
  return row;
}

}  // namespace fa::cli
