// SPDX-License-Identifier: MIT
// What `fa` returns to the shell, and the errors that lead there.
#pragma once

#include <stdexcept>

namespace fa::cli {

enum class Exit : int {
  ok = 0,
  wrong = 1,          ///< a result is wrong, or a checker has a finding
  usage = 2,          ///< the command line, an unsupported problem, a refused input file
  environment = 3,    ///< no GPU, out of memory, a failed launch, an output that cannot be written
  interrupted = 130,  ///< Ctrl-C or SIGTERM; what was finished is shown and written
};

/// The command line asks for something that does not exist; one line that names the value and what
/// is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fa::cli
