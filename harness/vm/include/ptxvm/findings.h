// SPDX-License-Identifier: MIT
// What to do with the findings of a launch: leave some out, group them, show them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/module.h"
#include "ptxvm/observer.h"

namespace ptxvm {

/// Names of all checkers, as `Finding::checker` has them.
std::span<const std::string_view> checkers();

/// What is left out of the findings.
struct FindingFilter {
  std::vector<std::string> ignored;  ///< Checkers, by name.
  /// Also what a comment says: `// ptxvm: ignore race` on one of the lines of the finding or alone
  /// on the line above it, in the PTX or, with -lineinfo, in a source file of its inlining chain.
  /// Several names stand side by side; `all` is every checker.
  bool comments = true;
};

struct Filtered {
  std::vector<Finding> findings;
  uint64_t left_out = 0;

  /// Whether one of them is an error.
  bool errors() const;
};

/// The findings of a kernel that the filter leaves. Throws `Error` for the name of no checker.
Filtered filter(std::vector<Finding> findings, const Kernel& kernel,
                const FindingFilter& wanted = {});

/// For a terminal: errors first, one of those with the same checker and source line, at most
/// `most_lines` lines; the last line says what is not shown. Empty for no findings.
std::string format(std::span<const Finding> findings, const Kernel& kernel, size_t most_lines);

/// A text cut to `most_lines` lines, of which the last says how many are missing and `how` to see
/// them.
std::string capped(std::string text, size_t most_lines, std::string_view how = "");

}  // namespace ptxvm
