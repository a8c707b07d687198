// SPDX-License-Identifier: MIT
// Special registers by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "isa/types.h"

namespace ptxvm::isa {

enum class Special : uint8_t {
#define SPECIAL(id, name, type) id,
#define SPECIAL_MOVING(id, name, type) id,
#include "isa/special_registers.def"
#undef SPECIAL
#undef SPECIAL_MOVING
};

struct SpecialRow {
  Special id;
  std::string_view name;
  Type type;
  bool moving;  ///< Changes while a block runs.
};

/// All of them, in the order of the .def file.
std::span<const SpecialRow> special_registers();

inline const SpecialRow& row_of(Special id) {
  return special_registers()[static_cast<size_t>(id)];
}

/// The special register of that name, with its component; null when there is none.
const SpecialRow* find_special(std::string_view name);

}  // namespace ptxvm::isa
