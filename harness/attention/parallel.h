// SPDX-License-Identifier: MIT
// A loop over all CPU threads.
#pragma once

#include <cstdint>
#include <functional>

namespace fa {

/// Calls body(begin, end) for pieces of [0, count) of at most `grain` iterations, on all hardware
/// threads. The pieces do not depend on the number of threads. An exception of a piece is rethrown
/// after all threads have stopped; a signal is one, io::Interrupted.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace fa
