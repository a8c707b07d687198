// SPDX-License-Identifier: MIT
#include "program/program.h"

namespace ptxvm {

std::vector<ModuleVariable> Module::variables() const {
  std::vector<ModuleVariable> out;
  for (const GlobalVariable& v : data_->globals) {
    out.push_back({v.name, "global", v.bytes});
  }
  for (const Variable& v : data_->constant_variables) out.push_back({v.name, "const", v.bytes});
  return out;
}

}  // namespace ptxvm
