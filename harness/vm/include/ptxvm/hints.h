// SPDX-License-Identifier: MIT
// What the counts of a launch suggest, as a profiler would put it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ptxvm/diagnostic.h"
#include "ptxvm/report.h"

namespace ptxvm {

/// One remark on one place of the program. All numbers are exact counts; none is a time.
struct Hint {
  std::string section;   ///< `shared memory`, `global memory`, `local memory`, `arithmetic`
  std::string message;   ///< With its numbers, no full stop.
  double share = 0;      ///< Of the section's work that need not be, from 0 to 1.
  SourceLocation where;  ///< Of the source, or of the PTX where there is no -lineinfo.
};

/// The hints of a report, by section, the largest share first. Places that waste less than a
/// twentieth of their section are left out.
std::vector<Hint> hints(const CountReport& report, const std::string& ptx_file);

/// For a terminal; empty for no hints. At most `most` of each section.
std::string format(std::span<const Hint> hints, size_t most = 5);

}  // namespace ptxvm
