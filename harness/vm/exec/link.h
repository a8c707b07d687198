// SPDX-License-Identifier: MIT
// Gives the operations of a program their code.
#pragma once

#include "program/program.h"

namespace ptxvm {

/// Fills in `Op::fn` and the `aux` that the code wants. A program with unsupported instructions has
/// no operations and stays as it is.
void link(Program& program);

}  // namespace ptxvm
