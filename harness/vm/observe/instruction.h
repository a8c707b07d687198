// SPDX-License-Identifier: MIT
// What the checks ask about an instruction and an access.
#pragma once

#include "program/program.h"
#include "ptxvm/observer.h"

namespace ptxvm::observe {

inline const isa::Spelling& spelling_of(const Kernel& kernel, uint32_t instruction) {
  return *kernel.program().spellings[instruction];
}

inline bool is_write(AccessKind kind) {
  return kind == AccessKind::kStore || kind == AccessKind::kAtomic ||
         kind == AccessKind::kStMatrix || kind == AccessKind::kCopyWrite;
}

}  // namespace ptxvm::observe
