// SPDX-License-Identifier: MIT
// Options of the machine and its checkers, the same for `ptxvm run` and `ptxvm exec`.
#pragma once

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/findings.h"
#include "ptxvm/launch.h"
#include "tools/arguments.h"

namespace ptxvm::tools {

struct MachineOptions {
  std::string card;
  std::vector<std::string> ignored;  ///< Checkers.
  int threads = 0;
  uint64_t max_steps = 0;  ///< 0: as the machine has it.
  uint64_t max_local = 0;  ///< Bytes; 0: as the machine has it.
  uint32_t registers = 0;  ///< Of a thread; 0: not known.
  bool global_races = false, reversed = false, checkers = true, comments = true, all = false;

  /// Without observers. Throws `Error` for an unknown card.
  Options launch_options() const;
};

/// Reads the option at `words[at]`, if it is one of these, and leaves `at` at its last word. Throws
/// UsageError, which names the command.
bool take_machine_option(const std::vector<std::string>& words, size_t& at,
                         const std::string& command, MachineOptions& out);

/// The word after the option at `words[at]`, to which it moves.
const std::string& option_value(const std::vector<std::string>& words, size_t& at,
                                const std::string& command);

/// A number that an option takes. Throws UsageError.
template <class T>
T parse_number(const std::string& what, std::string_view text, T low) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low) {
    throw UsageError(what + " '" + std::string(text) +
                     "' is not a number that it takes; allowed: whole numbers from " +
                     std::to_string(low) + " to " + std::to_string(std::numeric_limits<T>::max()));
  }
  return value;
}

}  // namespace ptxvm::tools
