// SPDX-License-Identifier: MIT
// The command line of `ptxvm run`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ptxvm/launch.h"
#include "tools/arguments.h"

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

struct LaunchOptions {
  std::string file, card;
  std::vector<LaunchWords> launches;
  std::vector<VariableWords> variables;
  std::vector<std::string> ignored;  ///< Checkers.
  int threads = 0;
  uint64_t max_steps = 0;  ///< 0: as the machine has it.
  uint64_t max_local = 0;  ///< Bytes; 0: as the machine has it.
  uint32_t registers = 0;  ///< Of a thread; 0: not known.
  bool global_races = false;
  bool reversed = false, checkers = true, comments = true, by_line = false, hints = true;
  bool overwrite = false, json = false, all = false;
};

/// Reads the words after `run`. Throws UsageError and InputError.
LaunchOptions parse_launch(const std::vector<std::string>& words);

}  // namespace ptxvm::tools
