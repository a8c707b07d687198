// SPDX-License-Identifier: MIT
// Counts and messages as the pages get them.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "ptxvm/ptxvm.h"

namespace ptxvm::web {

using Json = nlohmann::ordered_json;

/// {key: number}, as in result files: all instructions, then every measure that is not 0.
Json counts_json(const Counts& counts);

/// A launch by instruction: [PTX line, opcode, source line, instructions, tensor, exp,
/// wavefronts, ideal wavefronts, sectors]. The source line is the innermost in the file `source`,
/// or 0.
Json launch_json(const std::string& entry, const CountReport& report, const std::string& source);

Json diagnostics_json(std::span<const Diagnostic> diagnostics);

/// Name, parameters, shared memory, limits, and what the machine does not run.
Json entry_json(const Kernel& kernel);

}  // namespace ptxvm::web
