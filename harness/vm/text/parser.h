// SPDX-License-Identifier: MIT
// Text to syntax tree (PTX ISA 4 to 6, 11). Asks the instruction table alone what calls.
#pragma once

#include "text/ast.h"
#include "text/errors.h"

namespace ptxvm::text {

/// Reads a module. Appends every error it finds and goes on at the next statement.
ModuleText parse(const Source& source, Errors& errors);

}  // namespace ptxvm::text
