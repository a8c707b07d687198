// SPDX-License-Identifier: MIT
// One launch of any kernel, with arguments that the page names.
#pragma once

#include <cstdint>
#include <functional>

#include "web/report.h"

namespace ptxvm::web {

/// {entry, grid, block, cluster, shared, max_steps, shown, arguments}. An argument is
/// {i32|u32|i64|u64|f32| f64: value} or {buffer: name, type: f16|f32|f64|i32|u32, count, fill:
/// zero|poison|normal|index}. Answers with counts, findings or the fault, and the first elements of
/// every buffer (`shown` of them).
Json launch_any(const Json& request, std::function<void(uint64_t, uint64_t)> progress);

}  // namespace ptxvm::web
