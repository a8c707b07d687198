// SPDX-License-Identifier: MIT
// Tables of counts for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/table.h"
#include "ptxvm/report.h"

namespace fa::cli {

/// Instructions that multiply matrices: mma, wgmma, tcgen05.mma.
std::uint64_t tensor_instructions(const ptxvm::Counts& counts);

/// Counts, also for each tensor instruction; what carries over to machine code is marked.
void print_counts(TablePrinter& printer, const ptxvm::Counts& counts, const std::string& heading);

/// A number of two kernels or of two files, side by side.
struct Pair {
  std::string name;
  std::uint64_t first = 0, second = 0;
};

/// The counts that differ, what changed most first; then the names of those that are equal. Counts
/// that are 0 in both are left out.
struct CountComparison {
  std::vector<Pair> changed;
  std::vector<std::string> equal;
};
CountComparison compare_counts(const ptxvm::Counts& first, const ptxvm::Counts& second);

/// A row for each pair of numbers: further counts with the same two, such as bytes beside requests
/// of cp.async, stand below the table; in CSV each has its row.
void print_comparison(TablePrinter& printer, const CountComparison& comparison,
                      const std::string& first_name, const std::string& second_name,
                      const std::string& heading);

/// "1234567" as "1 234 567".
std::string grouped(std::uint64_t number);

}  // namespace fa::cli
