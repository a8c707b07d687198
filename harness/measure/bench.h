// SPDX-License-Identifier: MIT
// `fa bench`: every rung and peer at every problem, verified, timed together, written down.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/device/gpu.h"
#include "harness/measure/item.h"
#include "harness/measure/peer.h"
#include "harness/measure/timing/rounds.h"
#include "harness/results/results.h"
#include "kernels/catalogue.h"

namespace fa {

struct BenchOptions {
  std::vector<const Rung*> rungs;
  std::vector<Peer> peers;
  std::vector<Problem> problems;  ///< dtype is set per rung
  std::optional<Dtype> dtype;     ///< of the peers where there are no rungs; float16 without it
  bool ablations = true;
  bool tuned = false;              ///< also the tiles of fa tune
  std::vector<std::string> tiles;  ///< only these; empty: all
  TimingPolicy policy;
  InputKind inputs;
  std::uint64_t seed = 1;
  std::filesystem::path json;  ///< empty: no file
  bool overwrite = false;
  /// An earlier run on the same card by the same build: what it verified is not verified again.
  std::filesystem::path verified;
  std::vector<std::string> argv;
};

/// What the caller shows while a bench runs.
struct BenchReport {
  std::function<void(const std::string&)> note;      ///< one line a reader should see
  std::function<void(const std::string&)> progress;  ///< short-lived, for a terminal
  std::function<void(const Problem&, const std::vector<Row>&)> finished;  ///< rows of a problem
};

struct BenchOutcome {
  int ok = 0, incorrect = 0, failed = 0, unsupported = 0, kept = 0;
  bool interrupted = false;  ///< a signal ended it; the rows until then are counted and written
};

/// Runs the bench. Per problem: inputs, verification of every item, interleaved timing of the
/// correct ones, rows, file. A problem whose wanted rows are all final in an existing file is not
/// run again; if one is missing, all its items are measured again, because times compare only
/// inside one run. Throws ForeignResults, io::FileError, DeviceLost (after the file has the rows
/// it can have).
BenchOutcome run_bench(GpuDevice& device, const BenchOptions& options, const BenchReport& report);

/// The items of one problem in ladder order, rungs with their own tile first, then peers.
std::vector<Item> bench_items(const BenchOptions& options, const Problem& problem,
                              const DeviceDescription& device);

/// True when the file holds a final row for each item: ok, out of memory, or unsupported as now.
bool is_complete(const ResultsFile& file, const std::vector<Item>& items);

}  // namespace fa
