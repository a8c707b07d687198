// SPDX-License-Identifier: MIT
// Synchronisation instructions of a kernel, and its PTX without one of them.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ptxvm/module.h"

namespace ptxvm_test {

using namespace ptxvm;

/// One instruction that can be taken out. It is known by what it is and by the text of its source
/// line, not by line numbers, which change with every edit.
struct SyncSite {
  std::string opcode;
  std::string source;  ///< The line of the kernel's own file, without indentation.
  int copy = 1;        ///< Of several with the same opcode and source line, e.g. unrolled ones.
  int line = 0;        ///< In the PTX.
  int source_line = 0;
  size_t begin = 0, end = 0;  ///< In the PTX text: guard, instruction and semicolon.

  std::string key() const { return key_of(std::to_string(copy)); }
  std::string key_of(const std::string& copies) const {
    return opcode + " | " + copies + " | " + source;
  }
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1));
}

inline std::string line_of_file(const std::string& path, int line) {
  std::ifstream in(path);
  std::string text;
  for (int i = 0; i < line && std::getline(in, text); ++i) {
  }
  return trimmed(text);
}

/// Sites of an entry whose opcode begins with one of `opcodes`. `file` is the name of the kernel's
/// source file.
inline std::vector<SyncSite> find_sites(const Module& module, const std::string& text,
                                        std::string_view entry, const std::string& file,
                                        const std::vector<std::string>& opcodes) {
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(i + 1);
  }
  std::vector<SyncSite> sites;
  std::map<std::tuple<std::string, std::string, int>, int> copies;
  const Kernel& kernel = module.kernel(entry);
  const auto instructions = kernel.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const InstructionInfo& info = instructions[i];
    bool wanted = false;
    for (const std::string& o : opcodes) wanted |= info.opcode.starts_with(o);
    if (!wanted) continue;
    SyncSite s;
    s.opcode = std::string(info.opcode);
    s.line = info.line;
    for (const SourceLocation& at : kernel.source(i)) {
      if (!at.file.ends_with(file)) continue;
      s.source = line_of_file(at.file, at.line);
      s.source_line = at.line;
      // The line that calls a wrapper of inline assembly says more than the wrapper.
      if (!s.source.starts_with("asm") && !s.source.starts_with('"')) break;
    }
    const size_t line = starts[static_cast<size_t>(info.line - 1)];
    const size_t at = line + static_cast<size_t>(info.column - 1);
    s.end = text.find(';', at) + 1;
    // A guard stands between the instruction before and this one.
    const size_t before = text.find_last_of(";{}:\n", at == 0 ? 0 : at - 1);
    const size_t guard = text.find('@', before == std::string::npos ? 0 : before);
    s.begin = guard < at ? guard : at;
    s.copy = ++copies[{s.opcode, s.source, 0}];
    sites.push_back(std::move(s));
  }
  return sites;
}

/// The text with blanks in place of a site: every line keeps its number.
inline std::string without(std::string text, const SyncSite& site) {
  for (size_t i = site.begin; i < site.end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
  return text;
}

/// A committed list of sites that can go: lines `kernel | opcode | copy | source line | reason`.
/// The copy * stands for all of a site's copies. Empty lines and those that begin with # say
/// nothing.
class RedundantSites {
 public:
  explicit RedundantSites(const std::string& path) {
    std::istringstream in(read_text(path));
    for (std::string line; std::getline(in, line);) {
      if (trimmed(line).empty() || line[0] == '#') continue;
      // The source line may hold the separator: the reason is what follows the last one.
      const size_t reason = line.rfind(" | ");
      entries_.push_back({trimmed(line.substr(0, reason)),
                          reason == std::string::npos ? "" : trimmed(line.substr(reason + 3)), 0});
    }
  }

  /// Reason of an entry, or null; remembers that it was used.
  const std::string* find(const std::string& kernel, const SyncSite& site) {
    for (Entry& e : entries_) {
      const std::string head = kernel + " | ";
      if (e.key == head + site.key()) {
        ++e.used;
      } else if (e.key == head + site.key_of("*")) {
        e.used = 1;
      } else {
        continue;
      }
      return &e.reason;
    }
    return nullptr;
  }

  /// Whether an entry stands for all copies of the site, as unrolling makes them of a line.
  bool holds_all(const std::string& kernel, const SyncSite& site) const {
    const std::string key = kernel + " | " + site.key_of("*");
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const Entry& e) { return e.key == key; });
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> out;
    for (const Entry& e : entries_) {
      if (e.used != 1) out.push_back(e.key + " (used " + std::to_string(e.used) + " times)");
    }
    return out;
  }

 private:
  struct Entry {
    std::string key, reason;
    int used = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace ptxvm_test
