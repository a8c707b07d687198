// SPDX-License-Identifier: MIT
// Completion of the command line in a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fa::cli {

/// A script for bash that completes commands, their options and values; `words` stand for the
/// positional arguments.
std::string bash_completions(const CLI::App& app, const std::vector<std::string>& words);

/// The same for zsh, with what help says of each.
std::string zsh_completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace fa::cli
