// SPDX-License-Identifier: MIT
// Several modules as one, as a linker joins them.
#pragma once

#include <vector>

#include "text/ast.h"

namespace ptxvm::text {

/// What one module of a text declares.
struct Part {
  std::vector<Declaration> variables;
  std::vector<Entry> entries, functions;
};

/// Puts the parts into `module`, in their order. A name that a module keeps to itself and that
/// another one has, too, becomes `name@2` in the second module, and so on; in the first it stays,
/// unless another module makes it known to all. A declaration of a
/// function whose body follows says nothing new; of weak entries and functions the first stays.
void join(std::vector<Part> parts, ModuleText& module);

}  // namespace ptxvm::text
