// SPDX-License-Identifier: MIT
// The machine behind one function that a page calls: JSON in, JSON out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "web/report.h"

namespace ptxvm::web {

/// Is called with the blocks that are done and all blocks of the launch.
using Report = std::function<void(uint64_t, uint64_t)>;

/// The answer to {do: load, ...} or {do: launch, ...}; to anything else that of `others`, which
/// throws what it does not know. What is thrown becomes {error, diagnostics}.
std::string answer(const std::string& request, const Report& progress,
                   const std::function<Json(const Json&)>& others);

}  // namespace ptxvm::web
