// Counts of the virtual machine as a result file has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/results/row.h"
#include "ptxvm/report.h"

namespace fa {

/// One number of a count.
struct Measure {
  std::string key;  ///< "tensor", "ldmatrix_wavefronts", "global_copy_sectors"
  std::uint64_t value = 0;
  bool is_instruction = false;
  /// Carries over to machine code; false for arithmetic and moves, which ptxas rewrites.
  bool exact = true;
};

/// Every number of the counts in the order of reports, also those that are 0.
std::vector<Measure> measures(const ptxvm::Counts& counts);

/// "instructions": all of them, then each measure that is not 0.
RowCounts row_counts(const ptxvm::Counts& counts);

}  // namespace fa
