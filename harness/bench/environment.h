// What a measurement depends on besides the kernel: source, compiler, card.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/bench/results.h"
#include "harness/bench/rounds.h"

namespace fa {

class GpuDevice;
class VmDevice;
class Nvml;

/// Version of the project, "0.1.0".
const char* project_version();

/// State of the source tree that the program was built from.
struct SourceState {
  std::string git_sha;  ///< "unknown" where neither git nor the build was told
  bool git_dirty = true;
  std::string warning;  ///< what a reader should know, empty for nothing
};

/// The commit recorded by the build. Where the source tree and its .git are still there, changes
/// made since count as dirty too, and so does a tree that has moved to another commit. Changes in
/// docs/, plots/ and *.md alone do not: they cannot change a measurement.
SourceState source_state();

/// generator{version, git_sha, git_dirty, nvcc, flags, argv} of a result file.
Json generator_json(const SourceState& source, const std::vector<std::string>& argv);

/// device{...} of a result file; nvml may be nullptr: driver and power limit are then null.
Json device_json(const GpuDevice& device, const Nvml* nvml);

/// The same for the virtual machine, which has no clock and no size.
Json device_json(const VmDevice& device);

/// policy{...} of counts: what was run, nothing is timed.
Json vm_policy_json(std::uint64_t seed);

/// policy{...} of a result file.
Json policy_json(const TimingPolicy& policy, std::uint64_t seed, const GpuDevice& device,
                 const Nvml* nvml);

/// Path of a file in the source tree that the program was built from.
std::filesystem::path source_path(const std::string& relative);

/// One entry point in the report of ptxas.
struct PtxasEntry {
  int registers = 0;
  int spill_stores = 0;  ///< bytes
  int spill_loads = 0;   ///< bytes
  int stack = 0;
  int static_shared = 0;  ///< bytes
};

/// ptxas on this entry point, compiled for this device; nothing where the report is missing.
std::optional<PtxasEntry> ptxas_entry(const std::string& entry, int sm);

/// The same from the text of a report; for tests.
std::optional<PtxasEntry> find_ptxas_entry(const Json& report, const std::string& entry, int sm);

}  // namespace fa
