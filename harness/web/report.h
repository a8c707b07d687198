// SPDX-License-Identifier: MIT
// Verdicts, counts and messages as the pages get them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/device/gate.h"
#include "harness/device/vm.h"
#include "harness/results/json.h"

namespace fa::web {

Json verdict_json(const Verdict& verdict);

/// {key: number}, as in result files: all instructions, then every measure that is not 0.
Json counts_json(const ptxvm::Counts& counts);

/// For each launch its instructions: [PTX line, opcode, source line, instructions, tensor, exp,
/// wavefronts, ideal wavefronts, sectors]. The source line is the innermost in the file `source`,
/// or 0.
Json launches_json(const std::vector<LaunchCounts>& launches, const std::string& source);

/// One launch of them.
Json launch_json(const std::string& entry, const ptxvm::CountReport& report,
                 const std::string& source);

Json diagnostics_json(std::span<const ptxvm::Diagnostic> diagnostics);

/// Name, parameters, shared memory, limits, and what the machine does not run.
Json entry_json(const ptxvm::Kernel& kernel);

/// A checker's finding as text: the line, its caret and notes.
std::string finding_text(const ptxvm::Finding& finding);

}  // namespace fa::web
