// SPDX-License-Identifier: MIT
// The command line of `ptxvm run`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ptxvm/launch.h"
#include "tools/arguments.h"
#include "tools/machine_options.h"

namespace ptxvm::tools {

/// One launch; --then begins the next.
struct LaunchWords {
  std::string entry;  ///< Empty: the only one.
  Dim3 grid, cluster;
  std::optional<Dim3> block;
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<KernelArgument> arguments;
};

/// --global NAME=ARGUMENT
struct VariableWords {
  std::string name;
  KernelArgument value;
};

struct LaunchOptions : MachineOptions {
  std::string file;
  std::vector<LaunchWords> launches;
  std::vector<VariableWords> variables;
  bool by_line = false, hints = true, overwrite = false, json = false;
};

/// Reads the words after `run`. Throws UsageError and InputError.
LaunchOptions parse_launch(const std::vector<std::string>& words);

}  // namespace ptxvm::tools
