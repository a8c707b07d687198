// SPDX-License-Identifier: MIT
// State of a running block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/async_state.h"
#include "exec/calls.h"
#include "memory/spaces.h"
#include "num/kernels.h"
#include "program/program.h"
#include "ptxvm/launch.h"
#include "ptxvm/observer.h"

namespace ptxvm {

inline constexpr uint32_t kAllLanes = 0xffffffffu;
inline constexpr int kBarriers = 16;

class Work;

/// What all blocks of a launch share.
struct LaunchState {
  const Module* module = nullptr;
  const Program* program = nullptr;
  const Options* options = nullptr;
  const num::Kernels* kernels = nullptr;
  Memory* memory = nullptr;
  Dim3 grid, block, cluster;
  bool clustered = false;  ///< The launch or the kernel asks for clusters.
  uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::span<const std::byte> constants;  ///< The module's constant bank in this memory.
  Printed* printed = nullptr;            ///< What kernels print.
  /// The program's pool, with shared addresses moved to the chosen base: one for all blocks, or
  /// one for each rank in a cluster whose addresses hold it.
  std::vector<std::vector<std::byte>> pools;
  bool observed = false;
  bool every_instruction = false;
  bool ordered = false;         ///< An observer wants all blocks in one order.
  uint32_t most_registers = 0;  ///< Of a thread: the largest number of a setmaxnreg; 0 if none.
  bool communicates = false;    ///< Blocks see what others do: one host thread runs them all.
  uint64_t resident_limit = 1;  ///< Clusters that the card holds at once.
  Address grid_workspace = 0;   ///< Of a cooperative grid.
  Work* work = nullptr;         ///< The clusters that have not begun.
  std::atomic<uint64_t> local_bytes = 0;  ///< Local memory of the clusters that have begun.
};

/// Lanes of a warp that are at the same place and not running now.
struct Fragment {
  uint32_t pc = 0;
  uint32_t mask = 0;
  bool parked = false;  ///< Waits at a collective for other lanes of the warp.
};

/// One cp.async request whose copies have not landed.
struct PendingCopy {
  uint64_t number = 0;  ///< Of the request in its warp, from 0.
  uint32_t instruction = 0;
  uint32_t mask = 0;
  bool committed = false;
  uint64_t group = 0;
  uint32_t bytes = 0;  ///< Written for each lane.
  std::array<uint32_t, 32> shared{};
  std::array<const std::byte*, 32> source{};
  std::array<uint8_t, 32> source_bytes{};  ///< The rest is zero.
};

/// Group numbers of non-bulk copies are counted for each thread.
struct CopyQueue {
  std::vector<PendingCopy> pending;      ///< In order of issue.
  std::array<uint64_t, 32> committed{};  ///< Groups closed so far.
  uint64_t issued = 0;                   ///< Requests so far.
  /// Requests below this number complete on an mbarrier (cp.async.mbarrier.arrive).
  std::array<uint64_t, 32> tracked{};
};

/// bar.sync and its relatives (PTX ISA 9.7.13.1). Arrivals are counted in whole warps.
struct Barrier {
  uint32_t expected = 0;              ///< Threads; 0 for all of the block that have not exited.
  std::vector<uint16_t> warps;        ///< Arrived in this phase.
  std::vector<uint16_t> waiters;      ///< Those of them that wait.
  std::vector<const Op*> waiter_ops;  ///< What each waiter executed.
  uint32_t votes = 0, voters = 0;     ///< bar.red: true predicates, and all.
};

struct Cta;

/// The blocks of a cluster and their common barrier.
struct Cluster {
  std::span<Cta> blocks;
  uint64_t phase = 0;     ///< Of barrier.cluster.
  uint64_t position = 0;  ///< In launch order.
};

/// Something that an asynchronous engine still has to do for a block (a bulk copy, say). It is done
/// as late as allowed: when no warp of the cluster can go on without it, and at the end of the
/// block.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  virtual void finish(Cta& cta) = 0;
  /// Whether it is a bulk store of this lane, in a group before that of number `end`.
  virtual bool is_store(uint32_t /*warp*/, uint32_t /*lane*/, uint64_t /*end*/) const {
    return false;
  }
};

/// Checks of registers before each operation, in Warp::checks.
inline constexpr uint8_t kCheckBusy = 1;    ///< Some are in use by wgmma or tcgen05.ld in flight.
inline constexpr uint8_t kCheckPoison = 2;  ///< Some hold poison, or local memory does.

/// Lanes of a register whose value came from nowhere, and the instruction that they owe it to.
struct Poison {
  uint32_t lanes = 0, instruction = 0;  ///< A shuffle.
  uint32_t unwritten = 0, load = 0;     ///< As Unwritten::load says.
  uint8_t bytes = 0xff;                 ///< Of the register; mov joins and splits them.

  uint32_t all() const { return lanes | unwritten; }
  /// No more than those lanes.
  Poison within(uint32_t mask) const {
    return {lanes & mask, instruction, unwritten & mask, load, bytes};
  }
  void add(const Poison& p) {
    if (p.all() != 0) bytes = static_cast<uint8_t>(all() == 0 ? p.bytes : bytes | p.bytes);
    if (p.lanes != 0) instruction = p.instruction;
    if (p.unwritten != 0) load = p.load;
    lanes |= p.lanes;
    unwritten |= p.unwritten;
  }
};

/// Whether a warp has ended its turn because it waits for what others write.
enum class Poll : uint8_t {
  kNo,
  kCluster,  ///< In shared memory.
  kGrid,     ///< In global memory.
};

enum class WarpStatus : uint8_t { kReady, kAtBarrier, kPolling, kExited };

struct Warp {
  std::byte* base[2] = {nullptr, nullptr};  ///< Registers, constants; see Ref.
  uint32_t active = 0;                      ///< Lanes that run now.
  uint32_t mask = 0;                        ///< Lanes that execute the current operation.
  uint32_t live = 0;                        ///< Lanes that have not exited.
  uint32_t pc = 0;                          ///< Index of an operation.
  uint32_t carry = 0;                       ///< CC.CF of each lane.
  std::vector<Fragment> fragments;
  Cta* cta = nullptr;
  const Op* code = nullptr;
  std::byte* local = nullptr;  ///< 32 areas of Program::local_bytes.
  uint16_t index = 0;
  WarpStatus status = WarpStatus::kReady;
  uint8_t barrier = 0;       ///< While kAtBarrier.
  bool hold = false;         ///< Does not yield to lanes at a lower position; see end_turn.
  uint32_t blocks_left = 0;  ///< Until the end of the turn.
  /// The last answers of operations that may poll; see note_poll.
  struct Answer {
    const Op* op = nullptr;
    uint64_t hash = 0, steps = 0;
  };
  std::array<Answer, 4> answers;
  Poll polled = Poll::kNo;        ///< In its last turn.
  uint32_t poll_instruction = 0;  ///< Where.
  uint64_t steps = 0;
  uint64_t step_limit = 0;
  CopyQueue copies;
  std::array<uint64_t, 32> bulk_groups{};  ///< Bulk groups closed so far, by lane.
  uint64_t tensor_commits = 0;             ///< tcgen05.commit so far.
  std::vector<uint32_t> busy;              ///< Uses by what is in flight, by register line.
  uint8_t checks = 0;                      ///< Which of the following checks are to be made.
  std::unordered_map<Ref, Poison> poison;  ///< By place of the register.
  /// Bytes of local memory that hold what nobody has written: Poison::load. By lane (in the upper
  /// half) and address.
  std::unordered_map<uint64_t, uint32_t> poisoned_local;
  bool waiting = false;              ///< At wgmma.wait_group.
  bool timed_out = false;            ///< Its mbarrier.try_wait has waited long enough.
  uint8_t timeouts = 0;              ///< Since one found what it waited for.
  bool refused = false;              ///< Has seen that a clusterlaunchcontrol.try_cancel failed.
  uint32_t registers = 0;            ///< Of each thread, for setmaxnreg.
  std::unique_ptr<CallStack> calls;  ///< Made by the first call.
  bool cluster_arrived = false;      ///< At barrier.cluster, and has not waited yet.
  uint64_t cluster_phase = 0;        ///< In which it arrived.

  /// Pointer to the 32 lanes (or the mask) of an operand.
  template <class T>
  T* at(Ref ref) const {
    return reinterpret_cast<T*>(base[ref & kRefPool] + (ref & ~kRefFlags));
  }
  uint32_t predicate(Ref ref) const {
    const uint32_t value = *at<uint32_t>(ref);
    return ref & kRefNegate ? ~value : value;
  }
  /// Writes the lanes of `mask`.
  void set_predicate(Ref ref, uint32_t value) {
    uint32_t* p = at<uint32_t>(ref);
    *p = (*p & ~mask) | (value & mask);
  }
};

struct Cta {
  LaunchState* launch = nullptr;
  const std::vector<std::unique_ptr<Probe>>* probes = nullptr;
  Cluster* cluster = nullptr;
  uint32_t index = 0;  ///< In the grid.
  uint16_t rank = 0;   ///< In its cluster.
  Dim3 position;
  uint32_t multiprocessor = 0;
  uint32_t shared_base = 0, shared_bytes = 0;
  std::byte* shared = nullptr;
  uint32_t live_threads = 0;
  std::vector<Warp> warps;
  std::array<Barrier, kBarriers> barriers;
  std::deque<std::unique_ptr<PendingWork>> pending;  ///< In order of issue.
  AsyncState async;
};

/// Who reports an event.
inline WarpId id_of(const Warp& w) {
  return {w.cta->index, w.cta->rank, w.index, w.steps};
}

/// Calls every probe.
template <class F>
inline void notify(const Warp& w, F f) {
  for (const auto& probe : *w.cta->probes) f(*probe);
}

/// Calls f(lane) for each lane of a mask, in order.
template <class F>
inline void for_lanes(uint32_t mask, F f) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < 32; ++lane) f(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
  }
}

}  // namespace ptxvm
