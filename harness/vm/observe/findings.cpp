// SPDX-License-Identifier: MIT
#include "ptxvm/findings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "program/program.h"

namespace ptxvm {
namespace {

constexpr std::string_view kCheckers[] = {"race",  "uninitialised", "copy",     "barrier",
                                          "proxy", "order",         "mbarrier", "cluster",
                                          "wgmma", "tcgen05",       "address"};
constexpr std::string_view kMark = "ptxvm: ignore";
constexpr uintmax_t kLongestSource = 16 << 20;

/// Whether the words after the mark in this line name the checker.
bool ignores(std::string_view line, std::string_view checker) {
  const size_t comment = line.find("//");
  if (comment == std::string_view::npos) return false;
  const size_t mark = line.find(kMark, comment);
  if (mark == std::string_view::npos) return false;
  std::string_view words = line.substr(mark + kMark.size());
  while (true) {
    const size_t begin = words.find_first_not_of(" \t,");
    if (begin == std::string_view::npos) return false;
    words.remove_prefix(begin);
    const std::string_view word = words.substr(0, words.find_first_of(" \t,\r"));
    if (word == checker || word == "all") return true;
    words.remove_prefix(word.size());
    if (word.empty()) return false;
  }
}

/// A comment above a line counts only where it stands alone.
bool is_comment(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line.substr(begin).starts_with("//");
}

template <class LineAt>
bool suppressed_at(int line, std::string_view checker, const LineAt& line_at) {
  if (line <= 0) return false;
  if (ignores(line_at(line), checker)) return true;
  return line > 1 && is_comment(line_at(line - 1)) && ignores(line_at(line - 1), checker);
}

/// The lines of source files, each read once.
class Sources {
 public:
  /// Files of -lineinfo are looked for as named, then from the folder of the PTX.
  explicit Sources(const std::string& ptx) : folder_(std::filesystem::path(ptx).parent_path()) {}

  std::string_view line(const SourceLocation& at, int line) {
    const std::vector<std::string>& lines = file(at.file);
    const auto index = static_cast<size_t>(line) - 1;
    return index < lines.size() ? std::string_view(lines[index]) : std::string_view();
  }

 private:
  const std::vector<std::string>& file(const std::string& name) {
    const auto [at, is_new] = files_.try_emplace(name);
    if (!is_new) return at->second;
    for (const auto& path : {std::filesystem::path(name), folder_ / name}) {
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      if (std::filesystem::file_size(path, error) > kLongestSource || error) continue;
      std::ifstream in(path);
      for (std::string line; std::getline(in, line);) at->second.push_back(std::move(line));
      break;
    }
    return at->second;
  }

  std::filesystem::path folder_;
  std::map<std::string, std::vector<std::string>> files_;
};

bool suppressed_at(uint32_t instruction, std::string_view checker, const Kernel& kernel,
                   Sources& sources) {
  const text::Source& ptx = *kernel.program().source;
  const int ptx_line = kernel.instructions()[instruction].line;
  if (suppressed_at(ptx_line, checker, [&](int n) { return ptx.line_text(n); })) return true;
  const auto& places = kernel.source(instruction);
  return std::any_of(places.begin(), places.end(), [&](const SourceLocation& at) {
    return suppressed_at(at.line, checker, [&](int n) { return sources.line(at, n); });
  });
}

bool suppressed(const Finding& f, const Kernel& kernel, Sources& sources) {
  return suppressed_at(f.instruction, f.checker, kernel, sources) ||
         (f.other && suppressed_at(*f.other, f.checker, kernel, sources));
}

struct Group {
  const Finding* first;
  size_t findings = 0;
  uint64_t count = 0;
};

/// Findings of one checker at one source line, in the order of their first.
std::vector<Group> group(std::span<const Finding> findings, const Kernel& kernel) {
  std::vector<Group> groups;
  std::map<std::tuple<Severity, std::string, std::string>, size_t> known;
  for (const Finding& f : findings) {
    const auto chain = kernel.source(f.instruction);
    const std::string place = chain.empty() ? "#" + std::to_string(f.instruction)
                                            : chain[0].file + ":" + std::to_string(chain[0].line);
    const auto [at, is_new] = known.try_emplace({f.severity, f.checker, place}, groups.size());
    if (is_new) groups.push_back({&f});
    ++groups[at->second].findings;
    groups[at->second].count += f.count;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.first->severity < b.first->severity;
  });
  return groups;
}

std::string plural(uint64_t n, std::string noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string format(const Group& g) {
  const Finding& f = *g.first;
  // "error: file:line: ..." with the checker's name in place of the first word.
  std::string text = f.where.message.empty() ? f.message : f.where.format();
  if (text.starts_with("error: ")) text.erase(0, 7);
  text = (f.severity == Severity::kAdvice ? "advice: " : "") + f.checker + ": " + text + "\n";
  if (g.findings > 1) {
    text += "  and " + std::to_string(g.findings - 1) + " more of this kind at this line\n";
  }
  if (g.count > 1) text += "  seen " + std::to_string(g.count) + " times\n";
  return text;
}

}  // namespace

std::span<const std::string_view> checkers() {
  return kCheckers;
}

bool Filtered::errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; });
}

Filtered filter(std::vector<Finding> findings, const Kernel& kernel, const FindingFilter& wanted) {
  for (const std::string& name : wanted.ignored) {
    if (std::find(std::begin(kCheckers), std::end(kCheckers), name) != std::end(kCheckers))
      continue;
    std::string allowed;
    for (const std::string_view each : kCheckers) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(each);
    }
    throw Error("'" + name + "' is not a checker; allowed: " + allowed);
  }
  Filtered out;
  if (findings.empty()) return out;
  Sources sources(kernel.program().source->file_name());
  for (Finding& f : findings) {
    const bool left_out = std::find(wanted.ignored.begin(), wanted.ignored.end(), f.checker) !=
                              wanted.ignored.end() ||
                          (wanted.comments && suppressed(f, kernel, sources));
    if (left_out) {
      ++out.left_out;
    } else {
      out.findings.push_back(std::move(f));
    }
  }
  return out;
}

std::string format(std::span<const Finding> findings, const Kernel& kernel, size_t most_lines) {
  const std::vector<Group> groups = group(findings, kernel);
  std::string text;
  size_t lines = 0, shown = 0;
  for (const Group& g : groups) {
    const std::string next = format(g);
    const auto height = static_cast<size_t>(std::count(next.begin(), next.end(), '\n'));
    // One line is kept for what is not shown.
    if (shown != 0 && lines + height + 1 > most_lines) break;
    text += next;
    lines += height;
    ++shown;
  }
  if (shown == groups.size()) return text;
  size_t errors = 0, advice = 0;
  for (size_t i = shown; i < groups.size(); ++i) {
    (groups[i].first->severity == Severity::kError ? errors : advice) += groups[i].findings;
  }
  text += "and " + (errors != 0 ? plural(errors, "more finding") : std::string());
  if (advice != 0) text += (errors != 0 ? ", " : "") + std::to_string(advice) + " of advice";
  return text + "; --all shows them\n";
}

std::string capped(std::string text, size_t most_lines, std::string_view how) {
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) +
                     (!text.empty() && !text.ends_with('\n') ? 1 : 0);
  if (lines <= most_lines || most_lines == 0) return text;
  size_t end = 0;
  for (size_t i = 0; i + 1 < most_lines; ++i) end = text.find('\n', end) + 1;
  text.resize(end);
  return text + "... " + std::to_string(lines - most_lines + 1) + " more lines" +
         (how.empty() ? "" : "; " + std::string(how)) + "\n";
}

}  // namespace ptxvm
