// Syntax tree and instruction table to a program.
#pragma once

#include "lower/symbols.h"

namespace ptxvm {

/// Lowers one entry. Appends errors; the program is complete when there are none.
void lower_entry(const text::ModuleText& module, const text::Entry& entry,
                 const ModuleSymbols& symbols, const ModuleData& data, Program& program,
                 std::vector<Diagnostic>& errors);

/// For each .loc the places it stands for, innermost first.
std::vector<std::vector<SourceLocation>> inline_chains(const text::ModuleText& module,
                                                       const text::Entry& entry);

/// `from a.cuh:88 (inlined at b.cu:141)`, with the last part of each path; empty for an empty
/// chain.
std::string describe_chain(const std::vector<SourceLocation>& chain);

}  // namespace ptxvm
