// SPDX-License-Identifier: MIT
// The PTX texts that the page has loaded.
#pragma once

#include <string>

#include "ptxvm/module.h"
#include "web/report.h"

namespace ptxvm::web {

/// {text, name}: reads a PTX text, whose entries replace those of the same names. Answers with its
/// target and entries.
Json load(const Json& request);

/// The text that was loaded last with this entry. Throws std::invalid_argument where there is none.
const Module& module_of(const std::string& entry);

}  // namespace ptxvm::web
