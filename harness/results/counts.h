// SPDX-License-Identifier: MIT
// Counts of the virtual machine as a result file has them.
#pragma once

#include "harness/results/row.h"
#include "ptxvm/report.h"

namespace fa {

using ptxvm::Measure;
using ptxvm::measures;

/// "instructions": all of them, then each measure that is not 0.
RowCounts row_counts(const ptxvm::Counts& counts);

}  // namespace fa
