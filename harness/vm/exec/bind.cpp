// SPDX-License-Identifier: MIT
#include "exec/bind.h"

#include <stdexcept>
#include <string>

namespace ptxvm {
namespace ops {

#define OP(binder, ...) Bound binder(Modifiers&);
#define OPA(binder, ...) Bound binder(Modifiers&);
#define OPL(binder, ...) Bound binder(Modifiers&);
#define NO(pattern, reason)
#include "isa/isa.def"
#undef OP
#undef OPA
#undef OPL
#undef NO

}  // namespace ops

namespace {

using Binder = Bound (*)(Modifiers&);

constexpr Binder kBinders[] = {
#define OP(binder, ...) &ops::binder,
#define OPA(binder, ...) &ops::binder,
#define OPL(binder, ...) &ops::binder,
#define NO(pattern, reason) nullptr,
#include "isa/isa.def"
#undef OP
#undef OPA
#undef OPL
#undef NO
};

}  // namespace

Bound bind(const isa::Spelling& spelling) {
  Modifiers m(spelling);
  Bound bound = kBinders[spelling.row_index](m);
  if (!bound.plain) throw std::logic_error("no code for '" + spelling.text + "'");
  if (auto left = m.unread(); !left.empty()) {
    throw std::logic_error("the binder of '" + spelling.text + "' does not read '." +
                           std::string(left) + "'");
  }
  if (!bound.observed) bound.observed = bound.plain;
  return bound;
}

}  // namespace ptxvm
