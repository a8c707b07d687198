#include "text/source.h"

#include <algorithm>

namespace ptxvm::text {

Source::Source(std::string text, std::string file_name)
    : text_(std::move(text)), file_name_(std::move(file_name)) {
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
  d.text = std::string(line_text(line));
  const int room = static_cast<int>(d.text.size()) - d.where.column + 1;
  d.length = std::clamp(static_cast<int>(span.length), 1, std::max(room, 1));
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
    std::string caret = "\n  " + std::string(number.size(), ' ') + " | ";
    // Tabs are copied so that the caret stands below the word whatever the tab width.
    for (int i = 0; i < where.column - 1 && static_cast<size_t>(i) < text.size(); ++i) {
      caret += text[static_cast<size_t>(i)] == '\t' ? '\t' : ' ';
    }
    caret += '^';
    if (length > 1) caret += std::string(static_cast<size_t>(length - 1), '~');
    out += text + caret;
  }
  for (const std::string& note : notes) out += "\n  note: " + note;
  return out;
}

Error::Error(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(format_all(diagnostics)), diagnostics_(std::move(diagnostics)) {}

Error::Error(std::string message)
    : Error(std::vector{Diagnostic{{}, 0, std::move(message), {}, {}}}) {}

}  // namespace ptxvm
