// Special registers by name.
#pragma once

#include <cstdint>
#include <optional>
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

/// The special register of that name, with its component; null when there is none.
const SpecialRow* find_special(std::string_view name);

}  // namespace ptxvm::isa
