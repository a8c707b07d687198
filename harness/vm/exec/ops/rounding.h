// SPDX-License-Identifier: MIT
// The rounding modifier, for arithmetic and conversions.
#pragma once

#include "exec/bind.h"
#include "num/rounding.h"

namespace ptxvm::ops {

/// To nearest even where the spelling says nothing.
inline num::Rounding rounding_of(Modifiers& m) {
  switch (m.choice({"rn", "rz", "rm", "rp", "rna"})) {
    case 1:
      return num::Rounding::kZero;
    case 2:
      return num::Rounding::kDown;
    case 3:
      return num::Rounding::kUp;
    case 4:
      return num::Rounding::kNearestAway;
    default:
      return num::Rounding::kNearest;
  }
}

}  // namespace ptxvm::ops
