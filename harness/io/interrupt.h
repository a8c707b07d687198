// SPDX-License-Identifier: MIT
// Ctrl-C and SIGTERM: the work stops where its results are whole, and the program goes on to write
// them down.
#pragma once

#include <atomic>
#include <string>

namespace fa::io {

/// The work was stopped by a signal. Not an std::exception, so that no handler takes it for a
/// failure of what was running. Exit code 130.
struct Interrupted {
  std::string what = {};  ///< what was running, where that is known

  /// A note for people: "interrupted", what the caller adds, what was running.
  std::string note(const std::string& so_far = {}) const {
    std::string text = "interrupted";
    if (!so_far.empty()) text += ": " + so_far;
    if (!what.empty()) text += (so_far.empty() ? ": " : "; ") + what;
    return text;
  }
};

/// While it lives, the first SIGINT or SIGTERM sets interrupt_flag(); the next ends the process. A
/// signal that was ignored stays so. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

const std::atomic<bool>& interrupt_flag();

/// Throws Interrupted when a signal has come. For loops that take long.
void stop_if_interrupted();

}  // namespace fa::io
