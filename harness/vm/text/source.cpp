// SPDX-License-Identifier: MIT
#include "text/source.h"

#include <algorithm>

namespace ptxvm::text {
namespace {

// Of a line that is longer: what stands around the error, and a sign where it is cut.
constexpr size_t kExcerpt = 160, kBefore = 60;
constexpr std::string_view kCut = "...";

}  // namespace

void require_length(uint64_t bytes, const std::string& file_name) {
  if (bytes <= kLongestText) return;
  throw Error(file_name + ": the text has " + std::to_string(bytes) + " bytes; at most " +
              std::to_string(kLongestText) + " are read");
}

Source::Source(std::string text, std::string file_name)
    : text_(std::move(text)), file_name_(std::move(file_name)) {
  require_length(text_.size(), file_name_);
  line_starts_.push_back(0);
  for (uint32_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

int Source::line_of(uint32_t offset) const {
  auto it = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<int>(it - line_starts_.begin());
}

int Source::column_of(uint32_t offset) const {
  return static_cast<int>(offset - line_starts_[static_cast<size_t>(line_of(offset) - 1)]) + 1;
}

std::string_view Source::line_text(int line) const {
  if (line < 1 || static_cast<size_t>(line) > line_starts_.size()) return {};
  uint32_t begin = line_starts_[static_cast<size_t>(line - 1)];
  std::string_view rest = std::string_view(text_).substr(begin);
  std::string_view result = rest.substr(0, rest.find('\n'));
  if (result.ends_with('\r')) result.remove_suffix(1);
  return result;
}

Diagnostic Source::point_at(Span span, std::string message) const {
  Diagnostic d;
  const int line = line_of(span.begin);
  d.where = {file_name_, line, column_of(span.begin)};
  const std::string_view whole = line_text(line);
  const size_t column = std::min(static_cast<size_t>(d.where.column - 1), whole.size());
  size_t begin = 0;
  if (whole.size() > kExcerpt) {
    begin = std::min(column - std::min(column, kBefore), whole.size() - kExcerpt);
  }
  const std::string_view part = whole.substr(begin, kExcerpt);
  if (begin != 0) d.text = kCut;
  d.caret = static_cast<int>(d.text.size() + column - begin);
  d.text += part;
  const auto room = static_cast<int>(begin + part.size() - column);
  d.length = std::clamp(static_cast<int>(span.length), 1, std::max(room, 1));
  if (begin + part.size() < whole.size()) d.text += kCut;
  d.message = std::move(message);
  return d;
}

}  // namespace ptxvm::text

namespace ptxvm {
namespace {

std::string format_all(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    if (!out.empty()) out += '\n';
    out += d.format();
  }
  return out;
}

}  // namespace

std::string to_string(const SourceLocation& location) {
  if (location.line == 0) return location.file;
  return location.file + ":" + std::to_string(location.line);
}

std::string Diagnostic::format() const {
  std::string out = "error: ";
  if (!where.file.empty()) out += to_string(where) + ": ";
  out += message;
  if (!text.empty()) {
    const std::string number = std::to_string(where.line);
    out += "\n  " + number + " | ";
    std::string mark = "\n  " + std::string(number.size(), ' ') + " | ";
    // Tabs are copied so that the caret stands below the word whatever the tab width.
    for (int i = 0; i < caret && static_cast<size_t>(i) < text.size(); ++i) {
      mark += text[static_cast<size_t>(i)] == '\t' ? '\t' : ' ';
    }
    mark += '^';
    if (length > 1) mark += std::string(static_cast<size_t>(length - 1), '~');
    out += text + mark;
  }
  for (const std::string& note : notes) out += "\n  note: " + note;
  return out;
}

Error::Error(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(format_all(diagnostics)), diagnostics_(std::move(diagnostics)) {}

Error::Error(std::string message)
    : Error(std::vector{Diagnostic{{}, 0, 0, std::move(message), {}, {}}}) {}

}  // namespace ptxvm
