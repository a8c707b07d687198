// SPDX-License-Identifier: MIT
#include "harness/cli/count_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "harness/results/counts.h"

namespace fa::cli {
namespace {

using ptxvm::BulkTraffic;
using ptxvm::CountClass;
using ptxvm::Counts;
using ptxvm::GlobalTraffic;
using ptxvm::SharedTraffic;

struct SharedKind {
  const char* name;
  SharedTraffic Counts::*traffic;
};
struct GlobalKind {
  const char* name;
  GlobalTraffic Counts::*traffic;
};

struct BulkKind {
  const char* name;
  BulkTraffic Counts::*traffic;
};

constexpr std::array<SharedKind, 6> kShared{{{"ldmatrix", &Counts::ldmatrix},
                                             {"stmatrix", &Counts::stmatrix},
                                             {"ld.shared", &Counts::shared_load},
                                             {"st.shared", &Counts::shared_store},
                                             {"atom.shared", &Counts::shared_atomic},
                                             {"cp.async", &Counts::shared_copy}}};
constexpr std::array<GlobalKind, 4> kGlobal{{{"ld.global", &Counts::global_load},
                                             {"st.global", &Counts::global_store},
                                             {"atom.global", &Counts::global_atomic},
                                             {"cp.async", &Counts::global_copy}}};
constexpr std::array<BulkKind, 3> kBulk{{{"bulk load", &Counts::bulk_load},
                                         {"bulk store", &Counts::bulk_store},
                                         {"bulk prefetch", &Counts::bulk_prefetch}}};

/// Empty where there is no tensor instruction to divide by.
std::string per_tensor(std::uint64_t value, const Counts& counts) {
  const std::uint64_t tensor = tensor_instructions(counts);
  if (tensor == 0) return {};
  return fmt::format("{:.3f}", static_cast<double>(value) / static_cast<double>(tensor));
}

double ways(const SharedTraffic& traffic) {
  return traffic.ideal == 0
             ? 1.0
             : static_cast<double>(traffic.wavefronts) / static_cast<double>(traffic.ideal);
}

Table instruction_table(const Counts& counts) {
  Table table({{"warp instructions", Table::Align::left}, {"count"}, {"per mma"}});
  const auto add = [&](const std::string& name, std::uint64_t value) {
    table.add({name, grouped(value), per_tensor(value, counts)});
  };
  for (const Measure& each : measures(counts)) {
    if (!each.is_instruction || each.value == 0) continue;
    add(each.key + (each.exact ? " *" : ""), each.value);
  }
  add("all", counts.total_instructions());
  return table;
}

Table shared_table(const Counts& counts) {
  Table table({{"shared memory", Table::Align::left},
               {"requests"},
               {"wavefronts"},
               {"ideal"},
               {"conflicts"},
               {"ways"},
               {"per mma"}});
  for (const SharedKind& kind : kShared) {
    const SharedTraffic& traffic = counts.*kind.traffic;
    if (traffic.requests == 0) continue;
    table.add({kind.name, grouped(traffic.requests), grouped(traffic.wavefronts),
               grouped(traffic.ideal), grouped(traffic.conflicts()),
               fmt::format("{:.3g}", ways(traffic)), per_tensor(traffic.wavefronts, counts)});
  }
  if (const std::uint64_t wavefronts = counts.wgmma_wavefronts(); wavefronts != 0) {
    table.add({"wgmma", "", grouped(wavefronts), grouped(wavefronts), "0", "1",
               per_tensor(wavefronts, counts)});
  }
  return table;
}

Table global_table(const Counts& counts) {
  Table table(
      {{"global memory", Table::Align::left}, {"requests"}, {"sectors"}, {"bytes"}, {"per mma"}});
  const auto add = [&](const char* name, std::uint64_t requests, std::uint64_t sectors,
                       std::uint64_t bytes) {
    if (requests == 0) return;
    table.add(
        {name, grouped(requests), grouped(sectors), grouped(bytes), per_tensor(sectors, counts)});
  };
  for (const auto& [name, member] : kGlobal) {
    const GlobalTraffic& traffic = counts.*member;
    add(name, traffic.requests, traffic.sectors, traffic.bytes);
  }
  for (const auto& [name, member] : kBulk) {
    const BulkTraffic& traffic = counts.*member;
    add(name, traffic.copies, traffic.sectors, traffic.global_bytes);
  }
  if (counts.local_bytes != 0) table.add({"local", "", "", grouped(counts.local_bytes)});
  return table;
}

/// How far from equal: twice as many is as far as half as many.
double change(const Pair& pair) {
  if (pair.first == 0 || pair.second == 0) return std::numeric_limits<double>::infinity();
  return std::abs(std::log(static_cast<double>(pair.second) / static_cast<double>(pair.first)));
}

}  // namespace

std::uint64_t tensor_instructions(const Counts& counts) {
  return counts.of(CountClass::kTensor) + counts.of(CountClass::kWgmma) +
         counts.of(CountClass::kTcgen05);
}

std::string grouped(std::uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ' ');
  return digits;
}

void print_counts(TablePrinter& printer, const Counts& counts, const std::string& heading) {
  const std::string where = printer.format() == TableFormat::csv ? heading : "";
  for (Table& table :
       std::array{instruction_table(counts), shared_table(counts), global_table(counts)}) {
    if (table.empty()) continue;
    // "per mma" of a kernel without any; a spreadsheet has the same columns for all kernels.
    if (printer.format() != TableFormat::csv) table.drop_empty_column();
    printer.print(table, "kernel", where);
  }
  printer.say("* one to one in machine code; the others are PTX that ptxas rewrites\n");
}

CountComparison compare_counts(const Counts& first, const Counts& second) {
  const std::vector<Measure> left = measures(first);
  const std::vector<Measure> right = measures(second);
  std::vector<Pair> pairs{
      {"instructions", first.total_instructions(), second.total_instructions()}};
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool marked = left[i].exact && left[i].is_instruction;
    pairs.push_back({left[i].key + (marked ? " *" : ""), left[i].value, right[i].value});
  }
  CountComparison comparison;
  for (Pair& pair : pairs) {
    if (pair.first == 0 && pair.second == 0) continue;
    if (pair.first == pair.second) {
      comparison.equal.push_back(std::move(pair.name));
    } else {
      comparison.changed.push_back(std::move(pair));
    }
  }
  std::stable_sort(comparison.changed.begin(), comparison.changed.end(),
                   [](const Pair& a, const Pair& b) { return change(a) > change(b); });
  return comparison;
}

void print_comparison(TablePrinter& printer, const CountComparison& comparison,
                      const std::string& first_name, const std::string& second_name,
                      const std::string& heading) {
  const bool fold = printer.format() != TableFormat::csv;
  Table table({{"count", Table::Align::left}, {first_name}, {second_name}, {"ratio"}});
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> same;
  for (const Pair& pair : comparison.changed) {
    std::vector<std::string>& names = same[{pair.first, pair.second}];
    names.push_back(pair.name);
    if (fold && names.size() > 1) continue;
    table.add({pair.name, grouped(pair.first), grouped(pair.second),
               pair.first == 0 ? "-"
                               : fmt::format("{:.3f}", static_cast<double>(pair.second) /
                                                           static_cast<double>(pair.first))});
  }
  if (!table.empty()) printer.print(table, "problem", heading);
  for (const Pair& pair : comparison.changed) {
    const std::vector<std::string>& names = same[{pair.first, pair.second}];
    if (!fold || names.size() == 1 || names.front() != pair.name) continue;
    printer.say(folded(
        fmt::format("the same as {}: {}", pair.name, fmt::join(std::span(names).subspan(1), ", ")),
        kColumns, ""));
  }
  if (!comparison.equal.empty()) {
    printer.say(folded(fmt::format("equal: {}", fmt::join(comparison.equal, ", ")), kColumns, ""));
  }
  printer.say("* one to one in machine code\n");
}

}  // namespace fa::cli
