// SPDX-License-Identifier: MIT
// A kernel's source with counts in the margin, as a profiler shows it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/device/vm.h"

namespace fa::cli {

/// Counts by line of one file.
struct LineTable {
  std::filesystem::path file;  ///< as the compiler named it; empty when no line is of this file
  std::map<int, ptxvm::Counts> lines;
  ptxvm::Counts elsewhere;  ///< of instructions that no line of the file leads to
};

/// Sums over the lines of the file with this name ("06_batched.cu"). An instruction that was
/// inlined from another file, a PTX wrapper say, counts where the file calls it: the innermost of
/// its places that lies in the file.
LineTable by_line(const std::vector<LaunchCounts>& launches, const std::string& file_name);

/// The file with the counts of each line before it. Lines of a file that cannot be read are empty.
std::string margin(const LineTable& table);

}  // namespace fa::cli
