// SPDX-License-Identifier: MIT
#include "isa/special_registers.h"

namespace ptxvm::isa {
namespace {

constexpr SpecialRow kSpecials[] = {
#define SPECIAL(id, name, type) {Special::id, name, Type::type, false},
#define SPECIAL_MOVING(id, name, type) {Special::id, name, Type::type, true},
#include "isa/special_registers.def"
#undef SPECIAL
#undef SPECIAL_MOVING
};

}  // namespace

std::span<const SpecialRow> special_registers() {
  return kSpecials;
}

const SpecialRow* find_special(std::string_view name) {
  for (const SpecialRow& row : kSpecials) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace ptxvm::isa
