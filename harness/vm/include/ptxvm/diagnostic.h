// SPDX-License-Identifier: MIT
// What the library says about a text or a launch that it refuses.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace ptxvm {

/// A place in a source file. Lines and columns count from 1; 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const SourceLocation&) const = default;
};

/// Renders `file:line`, or `file` where the line is unknown.
std::string to_string(const SourceLocation& location);

/// One error with the line it points at.
///
/// `format()` renders it for a terminal:
///
///     error: kernel.ptx:412: 'discard.L2' is valid PTX, but this machine does not run it
///       412 |   discard.L2 [%rd1], 128;
///           |   ^~~~~~~~~~
///       note: memory that is discarded has no value, ...
struct Diagnostic {
  SourceLocation where;            ///< Place in the PTX text.
  int caret = 0;                   ///< Where in `text` the underlined part begins, from 0.
  int length = 0;                  ///< Characters to underline.
  std::string message;             ///< One line, no full stop.
  std::string text;                ///< The line itself, of a long one the part that matters; empty
                                   ///< when there is none to show.
  std::vector<std::string> notes;  ///< What to do, or how the line came to be (inlining).

  std::string format() const;
};

/// Thrown for a text that is not accepted and for a launch that is refused. Holds the first errors
/// of the stage that failed, in the order of the text, and one that says how many more there are;
/// `what()` is all of them formatted.
class Error : public std::runtime_error {
 public:
  explicit Error(std::vector<Diagnostic> diagnostics);
  explicit Error(std::string message);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace ptxvm
