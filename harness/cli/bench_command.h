// SPDX-License-Identifier: MIT
// The command fa bench.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/measure/bench.h"

namespace fa::cli {

/// `fa bench` with these peers; `words` is the command line, for the result file.
Entry bench_entry(std::vector<Peer> peers, std::vector<std::string> words);

}  // namespace fa::cli
