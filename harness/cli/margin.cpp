// SPDX-License-Identifier: MIT
#include "harness/cli/margin.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "harness/cli/count_table.h"

namespace fa::cli {
namespace {

using ptxvm::Counts;

std::string cell(std::uint64_t value, int width) {
  return value == 0 ? std::string(static_cast<std::size_t>(width), ' ')
                    : fmt::format("{:>{}}", value, width);
}

std::string header() {
  return fmt::format("{:>10} {:>8} {:>8} {:>11} {:>5} {:>9} |\n", "instr", "tensor", "exp",
                     "shared wf", "ways", "sectors");
}

std::string cells(const Counts& counts) {
  const ptxvm::SharedTraffic shared = counts.shared_requests();
  const std::uint64_t tensor = tensor_instructions(counts);
  // Most lines have no conflict; the ones that do should stand out.
  const std::string ways = shared.conflicts() == 0
                               ? ""
                               : fmt::format("x{:.3g}", static_cast<double>(shared.wavefronts) /
                                                            static_cast<double>(shared.ideal));
  return fmt::format("{} {} {} {} {:>5} {} |", cell(counts.total_instructions(), 10),
                     cell(tensor, 8), cell(counts.of(ptxvm::CountClass::kExp), 8),
                     cell(shared.wavefronts + counts.wgmma_wavefronts(), 11), ways,
                     cell(counts.global_sectors(), 9));
}

}  // namespace

LineTable by_line(const std::vector<LaunchCounts>& launches, const std::string& file_name) {
  LineTable table;
  for (const LaunchCounts& launch : launches) {
    for (const ptxvm::LineCounts& each : launch.report.by_instruction) {
      const ptxvm::SourceLocation* found = nullptr;
      for (const ptxvm::SourceLocation& place : each.source) {
        // Line 0 is what the compiler has no line for, such as the loads of parameters.
        if (place.line == 0 || std::filesystem::path(place.file).filename() != file_name) continue;
        found = &place;
        break;
      }
      if (!found) {
        table.elsewhere.add(each.counts);
        continue;
      }
      if (table.file.empty()) table.file = found->file;
      table.lines[found->line].add(each.counts);
    }
  }
  return table;
}

std::string margin(const LineTable& table) {
  std::string text = header();
  std::ifstream in(table.file);
  const int last = table.lines.empty() ? 0 : table.lines.rbegin()->first;
  for (int number = 1;; ++number) {
    std::string line;
    if (!std::getline(in, line) && number > last) break;
    const auto found = table.lines.find(number);
    text += fmt::format("{} {:>4}  {}\n",
                        cells(found == table.lines.end() ? Counts{} : found->second), number, line);
  }
  if (table.elsewhere.total_instructions() > 0) {
    text += cells(table.elsewhere) + "    of no line of this file\n";
  }
  return text;
}

}  // namespace fa::cli
