// Commands of the ptxvm tool.
#pragma once

#include <string>
#include <vector>

namespace ptxvm::tools {

/// Exit codes of the tool.
enum class ExitCode : int {
  kGood = 0,
  kFinding = 1,      ///< A wrong result or a finding.
  kUsage = 2,        ///< Also a filter that matches nothing.
  kRefused = 3,      ///< The input is not accepted.
  kEnvironment = 4,  ///< A file cannot be read or written, memory is full.
};

/// Runs one command line, without the name of the program. Returns the exit code.
int run(const std::vector<std::string>& arguments);

}  // namespace ptxvm::tools
