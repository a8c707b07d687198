// SPDX-License-Identifier: MIT
// What the machine says, as JSON: for other languages and for other programs.
#pragma once

#include <span>
#include <string>

#include "ptxvm/findings.h"
#include "ptxvm/hints.h"
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "ptxvm/report.h"

namespace ptxvm {

/// {"file", "line", "column", "length", "message", "text", "notes": [text], "formatted"}
std::string json(const Diagnostic& diagnostic);
std::string json(std::span<const Diagnostic> diagnostics);

/// {"checker", "severity", "message", "count", "diagnostic"}
std::string json(const Finding& finding);

/// {"section", "message", "share", "file", "line"}
std::string json(const Hint& hint);

/// {"instructions", ...}: every count that is not 0.
std::string json(const Counts& counts);

/// {"file", "target", "version", "variables": [{"name", "readable", "space", "bytes"}], "kernels":
/// [{"name", "readable", "parameters": [{"name", "type", "offset", "bytes", "align"}],
/// "shared_bytes", "uses_dynamic_shared", "local_bytes", "instructions", "max_threads",
/// "required_threads", "required_cluster", "errors", "unsupported": [diagnostic]}]}; extents are
/// [x, y, z] or null.
std::string json(const Module& module);

/// {"steps", "printed", "fault": null | {"kind", "message", "block", "warp", "lane", "diagnostic"},
/// "findings", "suppressed": findings that the filter left out, "hints", "counts",
/// "by_instruction": [{"line", "opcode", "source": [{"file", "line"}], "counts"}], "by_source":
/// [{"file", "line", "counts"}]}
std::string json(const LaunchResult& result, const Filtered& findings, const CountReport& report,
                 std::span<const Hint> hints);

}  // namespace ptxvm
