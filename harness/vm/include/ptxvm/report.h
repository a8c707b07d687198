// SPDX-License-Identifier: MIT
// Counts: what a launch did, in total and for each line.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxvm/module.h"
#include "ptxvm/observer.h"

namespace ptxvm {

/// Requests to shared memory. A wavefront is one pass over the 32 banks of 4 bytes.
struct SharedTraffic {
  uint64_t requests = 0;
  uint64_t wavefronts = 0;
  uint64_t ideal = 0;  ///< Wavefronts that the same requests would need without a bank conflict.
  uint64_t bytes = 0;

  uint64_t conflicts() const { return wavefronts - ideal; }
  void add(const SharedTraffic& o);
  bool operator==(const SharedTraffic&) const = default;
};

/// Requests to global memory. A sector is 32 bytes.
struct GlobalTraffic {
  uint64_t requests = 0;
  uint64_t sectors = 0;
  uint64_t bytes = 0;

  void add(const GlobalTraffic& o);
  bool operator==(const GlobalTraffic&) const = default;
};

/// Bulk and tensor copies of one direction.
struct BulkTraffic {
  uint64_t copies = 0;
  uint64_t bytes = 0;         ///< Of shared memory.
  uint64_t global_bytes = 0;  ///< Less than `bytes` where a box reaches out of its tensor.
  uint64_t sectors = 0;       ///< Of global memory.

  void add(const BulkTraffic& o);
  bool operator==(const BulkTraffic&) const = default;
};

/// Exact counts. Instructions are warp instructions as PTX has them; only the classes for which
/// `carries_over` holds can be compared with machine code.
struct Counts {
  std::array<uint64_t, static_cast<size_t>(CountClass::kCount)> instructions{};

  SharedTraffic shared_load, shared_store, shared_atomic, ldmatrix, stmatrix, shared_copy;
  GlobalTraffic global_load, global_store, global_atomic, global_copy;
  BulkTraffic bulk_load, bulk_store, bulk_prefetch;
  /// Of shared memory, read by wgmma; overlapping reads count once each.
  uint64_t wgmma_bytes = 0;
  uint64_t local_bytes = 0;

  uint64_t of(CountClass c) const { return instructions[static_cast<size_t>(c)]; }
  uint64_t total_instructions() const;
  /// All kinds of requests to shared memory together; without those of wgmma and bulk copies.
  SharedTraffic shared_requests() const;
  /// wgmma reads 128 bytes in each. Its layouts have no bank conflicts.
  uint64_t wgmma_wavefronts() const { return wgmma_bytes / 128; }
  /// Of global memory, by all instructions and bulk copies.
  uint64_t global_sectors() const;
  void add(const Counts& o);
  bool operator==(const Counts&) const = default;
};

/// Counts of the instructions of one place in the program.
struct LineCounts {
  int ptx_line = 0;
  std::string opcode;
  std::vector<SourceLocation>
      source;  ///< Innermost inlined function first; empty without -lineinfo.
  Counts counts;
};

/// Which end of the inlining chain a source table is made for.
enum class LineView { kInnermost, kOutermost };

struct SourceCounts {
  SourceLocation where;  ///< Column is 0: lines are summed.
  Counts counts;
};

struct CountReport {
  Counts total;
  std::vector<LineCounts> by_instruction;  ///< In the order of the text; never executed ones too.

  /// Sums over source lines, sorted by file and line.
  std::vector<SourceCounts> by_source(LineView view) const;
};

/// The observer that counts. `report()` is valid after the launch.
class Counters : public Observer {
 public:
  Counters();
  ~Counters() override;
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>> probes) override;

  const CountReport& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One number of a count.
struct Measure {
  std::string key;  ///< "tensor", "ldmatrix_wavefronts", "global_copy_sectors"
  uint64_t value = 0;
  bool is_instruction = false;
  /// Carries over to machine code; false for arithmetic and moves, which ptxas rewrites.
  bool exact = true;
};

/// Every number of the counts in the order of reports, also those that are 0.
std::vector<Measure> measures(const Counts& counts);

/// A table for people.
std::string format(const Counts& counts);

}  // namespace ptxvm
