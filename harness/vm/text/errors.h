// SPDX-License-Identifier: MIT
// Errors of a text, collected while it is read.
#pragma once

#include <string>
#include <vector>

#include "text/source.h"

namespace ptxvm::text {

/// Keeps the first errors in full and counts the others, so that a text of any kind costs bounded
/// memory and ends in a message that can be read.
class Errors {
 public:
  /// The last message says what is not shown: "and 3 more `noun`s`rest`".
  explicit Errors(const Source& source, std::string noun = "error", std::string rest = {})
      : source_(source), noun_(std::move(noun)), rest_(std::move(rest)) {}

  /// Records an error that underlines `span`, and returns it for notes; null where errors are only
  /// counted. A pointer is valid up to the next call.
  Diagnostic* add(Span span, std::string message);

  /// Hands the errors of a stretch of the text to another list.
  void move_within(Span stretch, Errors& to);

  /// Whether further errors are only counted: their messages need not be made.
  bool full() const { return kept_.size() == kKept; }
  bool empty() const { return kept_.empty(); }

  /// All that were kept, and how many there are besides.
  std::vector<Diagnostic> take();

 private:
  static constexpr size_t kKept = 20;

  const Source& source_;
  std::string noun_, rest_;
  std::vector<Diagnostic> kept_;
  std::vector<uint32_t> offsets_;  // where each of them points
  size_t more_ = 0;
};

}  // namespace ptxvm::text
