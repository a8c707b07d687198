// SPDX-License-Identifier: MIT
// What `fa bench` and `fa tune` share: the options of a measurement, and running it.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/measure/bench.h"

namespace fa::cli {

/// --rounds, --json, --overwrite and others.
void add_measure_options(CLI::App& app, BenchOptions& options);

/// Problems that no rung takes are a mistake on the command line, not rows of a result.
void require_some_support(const BenchOptions& options);

/// Prints the rows of a problem.
using RowPrinter = std::function<void(const Problem& problem, const std::vector<Row>& rows)>;

/// Measures on the GPU, with notes and progress on stderr. Throws DeviceError where there is none.
Exit measure_on_gpu(const BenchOptions& options, const RowPrinter& print_rows);

/// A number in a cell, with so many digits behind the point; "-" for nothing.
template <typename Number>
std::string number_cell(const std::optional<Number>& value, int digits) {
  return value ? fmt::format("{:.{}f}", static_cast<double>(*value), digits) : "-";
}

/// Status and reason in colour: the last cell.
std::string status_cell(Status status, const std::string& reason);

}  // namespace fa::cli
