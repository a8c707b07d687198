// SPDX-License-Identifier: MIT
// What the tests say of faults: redundant_sync_sites.txt, faults.txt and sync_findings.txt.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vm/tests/sync_sites.h"
#include "kernels/catalogue.h"

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

/// Ids of a list such as `a1-a6 10`, in which a1-a6 is all rungs from one to the other.
inline std::vector<std::string> rungs_of(const std::string& list) {
  std::vector<std::string> ids;
  for (const std::string& word : split(list, " ")) {
    const std::vector<std::string> ends = split(word, "-");
    const fa::Rung* last = fa::find_rung(ends.back());
    const fa::Rung* first = fa::find_rung(ends.front());
    if (!first || !last || first > last) throw std::runtime_error("no rungs: " + word);
    for (; first <= last; ++first) ids.emplace_back(first->id);
  }
  return ids;
}

/// redundant_sync_sites.txt: the sites that can go, and why.
class RedundantSites {
 public:
  explicit RedundantSites(const std::string& path) {
    for (const auto& row : read_list(path, 4)) {
      Entry entry{row[1], row[3], {}, {}};
      if (row[2] != "*") {
        for (const std::string& number : split(row[2], ",")) {
          const std::vector<std::string> ends = split(number, "-");
          for (int i = std::stoi(ends.front()); i <= std::stoi(ends.back()); ++i) {
            entry.numbers.push_back(i);
          }
        }
      }
      for (std::string& id : rungs_of(row[0])) entry.used[id] = 0;
      entries_.push_back(std::move(entry));
    }
  }

  /// Why a rung does not need a site, or null; remembers which sites there are.
  const std::string* find(std::string_view rung, const ptxvm_test::SyncSite& site) {
    for (Entry& e : entries_) {
      const auto used = e.used.find(rung);
      if (used == e.used.end() || e.opcode != site.opcode) continue;
      if (!e.numbers.empty() && std::ranges::find(e.numbers, site.number) == e.numbers.end())
        continue;
      ++used->second;
      return &e.reason;
    }
    return nullptr;
  }

  /// Entries of which a rung does not have every site.
  std::vector<std::string> unused() const {
    std::vector<std::string> out;
    for (const Entry& e : entries_) {
      for (const auto& [rung, used] : e.used) {
        if (e.numbers.empty() ? used == 0 : used != e.numbers.size())
          out.push_back(rung + " | " + e.opcode + " | " + e.reason);
      }
    }
    return out;
  }

 private:
  struct Entry {
    std::string opcode, reason;
    std::vector<int> numbers;                              ///< None: all.
    std::map<std::string, std::size_t, std::less<>> used;  ///< Sites, by rung.
  };
  std::vector<Entry> entries_;
};

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
  std::string title, opcode, change, words;
  std::size_t place = 0;  ///< Of the source lines with such an instruction, from 1.
  std::vector<std::string> rungs;
};

inline std::vector<Fault> read_faults(const std::string& path) {
  std::vector<Fault> faults;
  for (const auto& row : read_list(path, 6)) {
    faults.push_back({row[0], row[1], row[3], row[4], std::stoul(row[2]), rungs_of(row[5])});
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

/// The instructions that a fault changes.
inline std::vector<ptxvm_test::SyncSite> sites_of(const Fault& fault,
                                                  std::vector<ptxvm_test::SyncSite> sites) {
  std::set<int> lines;
  for (const auto& site : sites) lines.insert(site.source_line);
  if (fault.place > lines.size()) return {};
  const int line = *std::next(lines.begin(), static_cast<std::ptrdiff_t>(fault.place) - 1);
  std::erase_if(sites, [&](const auto& site) { return site.source_line != line; });
  return sites;
}

/// The text of a kernel with a fault at these sites, or an empty one where there are none.
inline std::string with_fault(const std::string& text, std::vector<ptxvm_test::SyncSite> sites,
                              const Fault& fault) {
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
