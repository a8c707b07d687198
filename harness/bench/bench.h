// `fa bench`: every rung and peer at every problem, verified, timed together, written down.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/bench/environment.h"
#include "harness/bench/results.h"
#include "harness/bench/rounds.h"
#include "harness/device/gate.h"
#include "harness/device/gpu.h"
#include "kernels/catalogue.h"

namespace fa {

/// Someone else's kernel, given as callbacks.
struct Peer {
  std::string id;       ///< "fa2"
  std::string variant;  ///< version or backend; may be empty
  std::string unavailable_reason;
  /// Ceilings run no attention: {M, N, K} of a matrix product in the problem's dtype, or how many
  /// bytes are copied from one place of the device's memory to another; zeros for attention.
  std::array<std::int64_t, 3> matmul{};
  std::int64_t copy_bytes = 0;

  /// Why the problem is not supported, empty when it is.
  std::function<std::string(const Problem&)> unsupported;
  /// Enqueues one forward pass; o is nullptr while timing. Throws when it cannot.
  std::function<void(const Problem&, const void* q, const void* k, const void* v, void* o,
                     GpuStream stream)>
      launch;
  /// Device memory that the last launch took besides Q, K and V; nothing when it is not known.
  std::function<std::optional<std::int64_t>()> device_bytes;

  bool is_matmul() const { return matmul[0] > 0; }
  bool is_copy() const { return copy_bytes > 0; }
  bool is_ceiling() const { return is_matmul() || is_copy(); }
};

/// Thrown by Peer::launch when a problem turns out to be unsupported.
struct PeerUnsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
  std::vector<std::string> argv;
};

/// What the caller shows while a bench runs.
struct BenchReport {
  std::function<void(const std::string&)> note;      ///< one line a reader should see
  std::function<void(const std::string&)> progress;  ///< short-lived, for a terminal
  std::function<void(const Problem&, const std::vector<Json>&)> finished;  ///< rows of a problem
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

/// One thing that a problem is run with.
struct BenchItem {
  std::string kind, id, variant;
  std::string name;     ///< for messages: "06_batched 128x64w4"
  Problem problem;      ///< with the item's dtype
  RowInputs inputs;     ///< what it is run on
  std::string refused;  ///< unsupported: why
  const Rung* rung = nullptr;
  const Instance* instance = nullptr;
  bool ablation = false;
  LaunchPlan plan;
  const Peer* peer = nullptr;
};

/// A rung at one problem, planned for this device; an empty tile means the rung's own.
BenchItem rung_item(const Rung& rung, const Problem& problem, std::string_view tile,
                    const DeviceDescription& device);

/// What identifies the row of an item.
RowKey key_of(const BenchItem& item);

/// The items of one problem in ladder order, rungs with their own tile first, then peers.
std::vector<BenchItem> bench_items(const BenchOptions& options, const Problem& problem,
                                   const DeviceDescription& device);

/// True when the file holds a final row for each item: ok, out of memory, or unsupported as now.
bool is_complete(const ResultsFile& file, const std::vector<BenchItem>& items);

/// "2026-10-27T14:03:05Z": names the process that measured a row.
std::string utc_now();

/// Row of an item with every field, those that are measured null; status is unsupported or error.
/// A rung's plan already says peak_bytes.
Json empty_row(const BenchItem& item, const std::string& run);

/// check, status and reason of a row. A kernel that stopped has no check.
void put_verdict(Json& row, const Verdict& verdict);

/// check{...} of a verdict.
Json check_json(const Verdict& verdict);

/// resources{...} of a kernel; spill_bytes (stores and loads) is null without ptxas' report.
Json resources_json(const KernelResources& used, const std::optional<PtxasEntry>& ptxas);

/// A plan for each launch of a plan, with the same scratch; none where there is a single launch.
std::vector<LaunchPlan> launch_parts(const LaunchPlan& plan);

/// The parts as timed items behind the whole plan, each after one pass of it, so that it finds the
/// inputs it has there. `launch` must outlive them.
std::vector<TimedItem> part_items(const BenchItem& item,
                                  const std::function<void(const LaunchPlan&)>& launch);

/// resources of a plan with one launch; of one with several, launches[] with those of each, and
/// resources stay null until put_part_times().
void put_resources(Json& row, const LaunchPlan& plan,
                   const std::function<Json(const Launch&)>& resources);

/// Times of launches[], in the order of part_items(); resources become those of the launch that
/// takes longest. A part that could not be timed has none.
void put_part_times(Json& row, std::span<const ItemTimes> parts);

/// Six significant digits: more than a measurement has, and a file that people can read.
Json rounded(double value);

/// time_ms{...} of a row.
Json time_json(const ItemTimes& times);

/// Fills time_ms, tflops, tflops_back_to_back and gbs.
void put_times(Json& row, const BenchItem& item, const ItemTimes& times);

}  // namespace fa
