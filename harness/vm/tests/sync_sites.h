// SPDX-License-Identifier: MIT
// Synchronisation instructions of a kernel, and its PTX without one of them.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/module.h"
#include "read_text.h"

namespace ptxvm_test {

using namespace ptxvm;

/// One instruction that can be taken out. It is known by its place in the program, which no other
/// formatting and no other name changes.
struct SyncSite {
  std::string opcode;
  int number = 1;  ///< Of the instructions with this opcode, in the order of the PTX.
  int line = 0;    ///< In the PTX.
  int source_line = 0;
  size_t begin = 0, end = 0;  ///< In the PTX text: guard, instruction and semicolon.

  std::string key() const { return opcode + " | " + std::to_string(number); }
};

inline std::string trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1));
}

/// Sites of these entries whose opcode begins with one of `opcodes`. `file` is the name of the
/// kernel's source file.
inline std::vector<SyncSite> find_sites(const Module& module, const std::string& text,
                                        const std::vector<std::string>& entries,
                                        const std::string& file,
                                        const std::vector<std::string>& opcodes) {
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(i + 1);
  }
  std::vector<SyncSite> sites;
  std::map<std::string, int, std::less<>> numbers;
  const auto add = [&](const InstructionInfo& info, std::span<const SourceLocation> chain) {
    SyncSite s{.opcode = std::string(info.opcode), .line = info.line};
    s.number = ++numbers[s.opcode];
    const auto own = std::ranges::find_if(
        chain, [&](const SourceLocation& at) { return at.file.ends_with(file); });
    if (own != chain.end()) s.source_line = own->line;
    const size_t at =
        starts[static_cast<size_t>(info.line - 1)] + static_cast<size_t>(info.column - 1);
    s.end = text.find(';', at) + 1;
    // A guard stands between the instruction before and this one.
    const size_t before = text.find_last_of(";{}:\n", at == 0 ? 0 : at - 1);
    const size_t guard = text.find('@', before == std::string::npos ? 0 : before);
    s.begin = guard < at ? guard : at;
    sites.push_back(std::move(s));
  };
  for (const std::string& entry : entries) {
    const Kernel& kernel = module.kernel(entry);
    const auto instructions = kernel.instructions();
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      if (std::ranges::any_of(opcodes, [&](const std::string& opcode) {
            return instructions[i].opcode.starts_with(opcode);
          })) {
        add(instructions[i], kernel.source(i));
      }
    }
  }
  return sites;
}

/// The text with blanks in place of a site: every line keeps its number. A wait for an mbarrier
/// that tells its loop whether it is over tells it so at once.
inline std::string without(std::string text, const SyncSite& site) {
  const std::string gone = text.substr(site.begin, site.end - site.begin);
  for (size_t i = site.begin; i < site.end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
  if (site.opcode.starts_with("mbarrier.try_wait") ||
      site.opcode.starts_with("mbarrier.test_wait")) {
    const size_t done = gone.find_first_not_of(" \t", gone.find(site.opcode) + site.opcode.size());
    const std::string over =
        "setp.eq.u32 " + gone.substr(done, gone.find(',', done) - done) + ", 0, 0;";
    text.replace(site.begin, over.size(), over);
  }
  return text;
}

}  // namespace ptxvm_test
