// SPDX-License-Identifier: MIT
// ptxvm isa: the instruction table.
#include <iostream>
#include <set>

#include "isa/table.h"
#include "observe/json_text.h"
#include "tools/arguments.h"
#include "tools/commands.h"

namespace ptxvm::tools {
namespace {

using observe::json_string;

void print_json(const std::vector<const isa::Row*>& rows) {
  std::cout << "{\n \"schema\": 1,\n \"instructions\": [";
  const char* separator = "\n";
  for (const isa::Row* row : rows) {
    std::cout << separator << "  {\"pattern\": " << json_string(row->pattern)
              << ", \"runs\": " << (row->reason.empty() ? "true" : "false");
    if (row->reason.empty()) {
      std::cout << ", \"operands\": " << json_string(row->operands) << ", \"sm\": " << row->sm;
    } else {
      std::cout << ", \"reason\": " << json_string(row->reason);
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
      throw UsageError("'" + word + "' is not understood; see ptxvm isa --help");
    } else {
      prefix = word;
    }
  }
  std::vector<const isa::Row*> rows;
  std::set<const isa::Row*> meant;
  for (const isa::Spelling& each : isa::spellings()) {
    if (each.text.starts_with(prefix)) meant.insert(each.row);
  }
  if (const isa::Row* family = isa::find_family(prefix)) meant.insert(family);
  for (const isa::Row& row : isa::rows()) {
    if (row.pattern.starts_with(prefix) || meant.contains(&row)) rows.push_back(&row);
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
