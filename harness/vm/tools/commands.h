// SPDX-License-Identifier: MIT
// Commands of the ptxvm tool.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "ptxvm/module.h"

namespace ptxvm::tools {

/// Exit codes of the tool, those of `fa`.
enum class ExitCode : int {
  kGood = 0,
  kFinding = 1,      ///< The kernel failed, or a checker found an error.
  kRefused = 2,      ///< The command line or an input is not accepted; a filter matches nothing.
  kEnvironment = 3,  ///< A file cannot be read or written, memory is full.
};

/// Lines of a message without --all.
inline constexpr size_t kLongestMessage = 40;

/// The host has less memory than the arguments need; one line.
struct MemoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs one command line, without the name of the program. Returns the exit code.
int run(const std::vector<std::string>& arguments);

/// Module::load. A file that is not there or may not be opened is a FileError.
Module load_module(const std::string& path);

/// Commands, given the words after theirs. They throw.
int run_kernel(const std::vector<std::string>& words);
int exec_program(const std::vector<std::string>& words);
int check(const std::vector<std::string>& words);
int list(const std::vector<std::string>& words);
int list_instructions(const std::vector<std::string>& words);

}  // namespace ptxvm::tools
