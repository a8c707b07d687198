// SPDX-License-Identifier: MIT
// Syntax tree and instruction table to a program.
#pragma once

#include "lower/symbols.h"

namespace ptxvm {

/// Reads PTX text: every program is complete but for its code, or has errors. Throws `Error` when
/// the text is not PTX, or no kernel in it is without errors.
std::shared_ptr<ModuleData> load_text(std::string text, std::string file_name);

/// Lowers one entry with the functions that it may call. The program is complete when it has no
/// errors and nothing unsupported.
void lower_entry(const text::ModuleText& module, const text::Entry& entry,
                 const ModuleSymbols& symbols, const ModuleData& data, Program& program);

/// For each .loc the places it stands for, innermost first.
std::vector<std::vector<SourceLocation>> inline_chains(const text::ModuleText& module,
                                                       const text::Entry& entry);

}  // namespace ptxvm
