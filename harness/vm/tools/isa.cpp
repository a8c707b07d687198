// SPDX-License-Identifier: MIT
// ptxvm isa: the instruction table.
#include <iostream>

#include "isa/table.h"
#include "tools/commands.h"
#include "tools/launch_options.h"

namespace ptxvm::tools {
namespace {

/// A JSON string.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

void print_json(const std::vector<const isa::Row*>& rows) {
  std::cout << "{\n \"schema\": 1,\n \"instructions\": [";
  const char* separator = "\n";
  for (const isa::Row* row : rows) {
    std::cout << separator << "  {\"pattern\": " << quoted(row->pattern)
              << ", \"runs\": " << (row->reason.empty() ? "true" : "false");
    if (row->reason.empty()) {
      std::cout << ", \"operands\": " << quoted(row->operands) << ", \"sm\": " << row->sm;
    } else {
      std::cout << ", \"reason\": " << quoted(row->reason);
    }
    std::cout << "}";
    separator = ",\n";
  }
  std::cout << "\n ]\n}\n";
}

}  // namespace

int list_instructions(const std::vector<std::string>& words) {
  std::string prefix;
  bool json = false;
  for (const std::string& word : words) {
    if (word == "--json") {
      json = true;
    } else if (word.starts_with("-") || !prefix.empty()) {
      throw UsageError("'" + word + "' is not understood; see ptxvm --help");
    } else {
      prefix = word;
    }
  }
  std::vector<const isa::Row*> rows;
  for (const isa::Row& row : isa::rows()) {
    if (row.pattern.starts_with(prefix)) rows.push_back(&row);
  }
  if (rows.empty()) throw UsageError("no instruction begins with '" + prefix + "'");
  if (json) {
    print_json(rows);
  } else {
    for (const isa::Row* row : rows) {
      std::cout << row->pattern << "  ";
      if (row->reason.empty()) {
        std::cout << row->operands << "  (sm_" << row->sm << ")\n";
      } else {
        std::cout << "not run here: " << row->reason << "\n";
      }
    }
  }
  return static_cast<int>(ExitCode::kGood);
}

}  // namespace ptxvm::tools
