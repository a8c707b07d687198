// SPDX-License-Identifier: MIT
// The PTX texts that the page has loaded.
#pragma once

#include <map>
#include <string>

#include "ptxvm/module.h"

namespace fa::web {

/// Modules by entry; a text that is loaded later replaces entries of the same name.
std::map<std::string, ptxvm::Module>& modules();

/// Throws DeviceError where there is none.
const ptxvm::Module& module_of(const std::string& entry);

}  // namespace fa::web
