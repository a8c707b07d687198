// SPDX-License-Identifier: MIT
// Findings of the checkers: one for each pair of instructions, with an example and a count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "observe/clocks.h"
#include "observe/shadow.h"
#include "ptxvm/observer.h"

namespace ptxvm::observe {

/// What was found.
enum class Problem : uint8_t {
  kRace,
  kSameValue,  ///< Two stores that nothing orders, of the same value.
  kLaneRace,
  kHandedOn,  ///< Of lanes: a store depends on what it overwrites, by way of a shuffle.
  kUnwritten,
  kUnwrittenLocal,
  kUnset,
  kProxy,
  kCopyNotWaited,
  kCopyNotCommitted,
  kStoreNotWaited,  // of a bulk store
  kWgmmaNotWaited,
  kBarrierLeft,
  kMbarrierInit,
  kMbarrierFence,
  kMbarrierAgain,
  kMbarrierLate,
  kUnfenced,
  kTensorRace,
  kTensorUnwritten,
  kTensorAllocation,
  kTensorEarly,
  kTensorFence,
  kTensorWraps,
  kTensorLane,
  kGenericAddress,
  kSharedAddress,
  kTensorAddress,
  kTensorNotWaited,
  kTensorNotCommitted,
  kBlockStart,
  kBlockExit,
  kGlobalRace,
  kGlobalUnfenced,
  kGlobalSameValue,
  kGlobalOrder,
  kGlobalUnwritten,
};

/// An agent of a block that is over, or any other thing that a message names.
struct Party {
  AgentKind kind = AgentKind::kNobody;
  uint32_t number = 0;
  uint32_t lane = Place::kWarp;
  uint32_t instruction = 0;
  int block = -1;  ///< Rank in the cluster; -1 where a cluster is one block. Index in the grid
                   ///< where global memory is concerned.
};

/// Bytes that are in memory, or are about to be; none where that is not seen.
struct Value {
  std::array<std::byte, 16> bytes{};
  uint32_t count = 0;
};

struct Example {
  uint32_t cta = 0;
  Dim3 position;
  /// Offset in shared memory, or in `buffer`. Of tensor memory the column, plus 512 for each group
  /// of 16 lanes before it.
  uint64_t address = 0;
  uint32_t bytes = 0;
  std::string buffer;  ///< Of global memory.
  int block = -1;      ///< Whose shared memory: rank in the cluster, -1 where that is one block.
  Party here, there;
  bool there_copied = false;
  uint64_t phase = 0;            ///< kMbarrierLate: the one that is complete.
  bool published = false;        ///< kTensorFence: `there` has made its own fence.
  std::string unset;             ///< Name of a register.
  std::optional<uint32_t> used;  ///< Of what nobody has written: the instruction that uses it.
  Hazard hazard = Hazard::kReadAfterWrite;
  Value before, after;  ///< The access of `here`.

  /// Takes the values of a lane; after a load there is none.
  void show(const AccessEvent& e, int lane);
};

/// What makes two occurrences one finding.
struct FindingKey {
  Problem problem = Problem::kRace;
  Hazard hazard = Hazard::kReadAfterWrite;
  uint32_t instruction = 0, other = 0;
  AgentKind kind = AgentKind::kNobody, other_kind = AgentKind::kNobody;
  bool same_warp = false;

  bool operator<(const FindingKey& o) const { return tied() < o.tied(); }

 private:
  std::tuple<Problem, Hazard, uint32_t, uint32_t, AgentKind, AgentKind, bool> tied() const {
    return {problem, hazard, instruction, other, kind, other_kind, same_warp};
  }
};

/// Collects on one host thread.
class FindingLog {
 public:
  struct Entry {
    uint64_t count = 0;
    uint64_t request = 0;  ///< The last one that was counted.
    Example example;
  };

  /// A warp request may meet many pieces of memory; it is counted once.
  void next_request() { ++request_; }
  void add(const FindingKey& key, const Example& example);

  /// The example of the block with the smallest index is kept.
  void merge(const FindingLog& o);
  const std::map<FindingKey, Entry>& entries() const { return entries_; }

 private:
  uint64_t request_ = 1;
  std::map<FindingKey, Entry> entries_;
};

/// Messages, in the order of the keys.
std::vector<Finding> describe(const FindingLog& log, const Kernel& kernel);

}  // namespace ptxvm::observe
