// SPDX-License-Identifier: MIT
// What the tests say of faults: faults.txt and sync_findings.txt.
#pragma once

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vm/tests/sync_sites.h"

namespace fa_test {

inline bool holds(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

/// Parts of a line between separators, without the blanks around them; the last of `parts` keeps
/// further separators.
inline std::vector<std::string> split(std::string_view line, std::string_view separator,
                                      std::size_t parts = std::string::npos) {
  std::vector<std::string> out;
  while (out.size() + 1 < parts && holds(line, separator)) {
    const std::size_t at = line.find(separator);
    out.push_back(ptxvm_test::trimmed(line.substr(0, at)));
    line.remove_prefix(at + separator.size());
  }
  out.push_back(ptxvm_test::trimmed(line));
  return out;
}

/// The lines of a list, each cut into `parts`; empty lines and those that begin with # say nothing.
inline std::vector<std::vector<std::string>> read_list(const std::string& path, std::size_t parts) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream in(ptxvm_test::read_text(path));
  for (std::string line; std::getline(in, line);) {
    if (ptxvm_test::trimmed(line).empty() || line[0] == '#') continue;
    rows.push_back(split(line, " | ", parts));
    if (rows.back().size() != parts) throw std::runtime_error(path + ": " + line);
  }
  return rows;
}

/// What the machine may say where an instruction is taken out, by opcode.
class ExpectedFindings {
 public:
  explicit ExpectedFindings(const std::string& path) {
    for (const auto& row : read_list(path, 2)) {
      for (const std::string& words : split(row[1], ";")) rows_.push_back({row[0], words});
    }
  }

  /// Whether a message has the words of its opcode; remembers which.
  bool allows(std::string_view opcode, std::string_view message) {
    const auto found = std::ranges::find_if(rows_, [&](const Row& row) {
      return opcode.starts_with(row.opcode) && holds(message, row.words);
    });
    if (found == rows_.end()) return false;
    found->is_used = true;
    return true;
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> out;
    for (const Row& row : rows_) {
      if (!row.is_used) out.push_back(row.opcode + " | " + row.words);
    }
    return out;
  }

 private:
  struct Row {
    std::string opcode, words;
    bool is_used = false;
  };
  std::vector<Row> rows_;
};

/// A line of faults.txt.
struct Fault {
  std::string title, opcode, change, words, source;
  bool is_used = false;
};

inline std::vector<Fault> read_faults(const std::string& path) {
  std::vector<Fault> faults;
  for (const auto& row : read_list(path, 5)) {
    faults.push_back({row[0], row[1], row[2], row[3], row[4]});
  }
  return faults;
}

/// A change with the operands of an instruction in place of $1, $2, ...
inline std::string changed(std::string change, std::string_view instruction) {
  instruction.remove_prefix(std::min(instruction.find_first_of(" \t"), instruction.size()));
  const std::vector<std::string> operands =
      split(instruction.substr(0, instruction.find(';')), ",");
  for (std::size_t i = operands.size(); i > 0; --i) {
    const std::string name = "$" + std::to_string(i);
    for (std::size_t at; (at = change.find(name)) != std::string::npos;) {
      change.replace(at, name.size(), operands[i - 1]);
    }
  }
  return change + ";";
}

/// The text of a kernel with a fault, or an empty one where no entry has such a line.
inline std::string with_fault(const std::string& text, const ptxvm::Module& module,
                              const std::vector<std::string>& entries, const std::string& file,
                              const Fault& fault) {
  std::vector<ptxvm_test::SyncSite> sites;
  for (const std::string& entry : entries) {
    for (auto& site : ptxvm_test::find_sites(module, text, entry, file, {fault.opcode})) {
      if (site.source == fault.source) sites.push_back(std::move(site));
    }
  }
  std::ranges::sort(sites, std::ranges::greater{}, &ptxvm_test::SyncSite::begin);
  std::string out = sites.empty() ? std::string() : text;
  for (const auto& site : sites) {
    const std::size_t opcode = text.find(fault.opcode, site.begin);  // behind the guard
    out.replace(opcode, site.end - opcode,
                changed(fault.change, std::string_view(text).substr(opcode, site.end - opcode)));
  }
  return out;
}

}  // namespace fa_test
