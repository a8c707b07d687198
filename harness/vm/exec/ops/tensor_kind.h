// SPDX-License-Identifier: MIT
// What a matrix instruction multiplies, read from its modifiers.
#pragma once

#include "exec/bind.h"
#include "num/tensor.h"

namespace ptxvm::ops {

/// From the types that follow that of the sums: `f32.e4m3.e5m2.f32`.
inline num::TensorKind tensor_kind_of(Modifiers& m) {
  constexpr std::string_view kNames[] = {"tf32", "e4m3", "e5m2", "s8", "u8", "s4", "u4", "b1"};
  num::TensorKind kind;
  int found = 0;
  for (const isa::Token& t : m.spelling().tokens) {
    for (size_t e = 0; e < std::size(kNames); ++e) {
      if (t.text == kNames[e]) (found++ == 0 ? kind.a : kind.b) = static_cast<num::Element>(e);
    }
  }
  for (std::string_view name : kNames) m.flag(name);
  kind.saturate = m.flag("satfinite");
  kind.exclusive = m.flag("xor");
  m.flag("and");
  kind.sum = m.flag("s32") ? num::Sum::kS32 : m.flag("f16") ? num::Sum::kF16 : num::Sum::kF32;
  m.flag("f32");
  return kind;
}

}  // namespace ptxvm::ops
