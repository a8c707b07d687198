// What `fa bench` and `fa tune` share: the options of a measurement, and running it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harness/bench/bench.h"
#include "harness/cli/exit_code.h"

namespace fa::cli {

/// --rounds and --l2.
void add_timing_options(CLI::App& app, TimingPolicy& policy);

/// Problems that no rung takes are a mistake on the command line, not rows of a result.
void require_some_support(const BenchOptions& options);

/// Prints the rows of a problem.
using RowPrinter = std::function<void(const Problem& problem, const std::vector<Json>& rows)>;

/// Measures on the GPU, with notes and progress on stderr. Throws DeviceError where there is none.
Exit measure_on_gpu(const BenchOptions& options, const RowPrinter& print_rows);

/// A number in a cell, "-" for null.
std::string number_cell(const Json& value, const char* format);

/// Status and reason in colour: the last cell.
std::string status_cell(const Json& row);

}  // namespace fa::cli
