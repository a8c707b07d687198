// SPDX-License-Identifier: MIT
// The text of a module and diagnostics that point into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/diagnostic.h"

namespace ptxvm::text {

/// A stretch of the text.
struct Span {
  uint32_t begin = 0;
  uint32_t length = 0;
};

/// Bytes of the longest text that is read: offsets and lines are kept in 32 bits.
inline constexpr size_t kLongestText = size_t{32} << 20;
/// Throws `Error` for a text that is longer.
void require_length(uint64_t bytes, const std::string& file_name);

/// Owns the text; finds lines in it.
class Source {
 public:
  /// Throws `Error` for a text that is too long.
  Source(std::string text, std::string file_name);

  std::string_view text() const { return text_; }
  std::string_view slice(Span span) const {
    return std::string_view(text_).substr(span.begin, span.length);
  }
  const std::string& file_name() const { return file_name_; }

  int line_of(uint32_t offset) const;
  int column_of(uint32_t offset) const;
  std::string_view line_text(int line) const;

  /// A diagnostic that underlines `span`. Of a long line it shows the part around it.
  Diagnostic point_at(Span span, std::string message) const;

 private:
  std::string text_;
  std::string file_name_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace ptxvm::text
