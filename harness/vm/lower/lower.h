// SPDX-License-Identifier: MIT
// Syntax tree and instruction table to a program.
#pragma once

#include "lower/calls.h"
#include "lower/symbols.h"

namespace ptxvm {

/// Reads PTX text: every program is complete but for its code, or has errors. Throws `Error` when
/// the text is not PTX, or no kernel in it is without errors.
std::shared_ptr<ModuleData> load_text(std::string text, std::string file_name);

/// What is asked of a module for each of its entries.
struct ModuleIndex {
  explicit ModuleIndex(const text::ModuleText& module);

  ModuleSymbols symbols;
  CallGraph calls;
  /// Static shared variables, by name: their place in ModuleText::variables.
  std::unordered_map<std::string_view, uint32_t> shared;
  uint32_t dynamic_alignment = 16;
  /// Of all entries so far, with the functions that they call.
  uint64_t statements = 0;
  /// Unknown instructions for which a similar one has been looked for, which takes time.
  uint32_t explained = 0;
};

/// Lowers one entry with the functions that it may call. The program is complete when it has no
/// errors and nothing unsupported.
void lower_entry(const text::ModuleText& module, const text::Entry& entry, ModuleIndex& index,
                 const ModuleData& data, Program& program);

}  // namespace ptxvm
