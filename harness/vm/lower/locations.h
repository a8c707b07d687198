// SPDX-License-Identifier: MIT
// Where in the source an instruction stands.
#pragma once

#include <vector>

#include "program/program.h"
#include "text/ast.h"

namespace ptxvm {

/// For each .loc the places it stands for, innermost first.
std::vector<std::vector<SourceLocation>> inline_chains(const text::ModuleText& module,
                                                       const text::Entry& entry);

}  // namespace ptxvm
