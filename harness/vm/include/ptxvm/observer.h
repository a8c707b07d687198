// SPDX-License-Identifier: MIT
// What can be watched while a kernel runs.
//
// Execution knows no checker and no counter: it reports what a warp asks for, one event for each
// warp request, and nothing that an observer does can change a result. An `Observer` belongs to a
// launch; it makes one `Probe` for each block (or cluster) that is resident, so probes need no
// locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxvm/module.h"

namespace ptxvm {

/// State spaces (PTX ISA 5.1) after generic addresses have been resolved. Events say kShared for
/// shared memory of any block of the cluster.
enum class Space : uint8_t { kGlobal, kShared, kLocal, kParam, kConst, kGeneric, kSharedCluster };

std::string_view name(Space space);

/// Who reports an event.
struct WarpId {
  uint32_t cta = 0;       ///< Linear index of the block in the grid.
  uint16_t cta_rank = 0;  ///< Rank of the block in its cluster.
  uint16_t warp = 0;      ///< Index of the warp in its block.
  uint64_t step = 0;      ///< Instructions that this warp has executed so far (see `BlockEvent`).
};

/// Why memory is accessed.
enum class AccessKind : uint8_t {
  kLoad,
  kStore,
  kAtomic,    ///< atom and red
  kLdMatrix,  ///< One address a row of 16 bytes, eight lanes a matrix.
  kStMatrix,
  kCopyRead,   ///< cp.async source, at issue
  kCopyWrite,  ///< cp.async destination, at issue (the write happens later, see AsyncEvent)
  kPassed,     ///< A parameter that a call puts into local memory: an instruction wrote it before
};

std::string_view name(AccessKind kind);

/// Bytes of a request that have no value.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): bytes are read of lanes that are set.
struct Unwritten {
  uint32_t lanes = 0;
  /// Of a store: the instruction that has read them. From the number of instructions on it is a
  /// register that nothing has set.
  uint32_t load = 0;
  std::array<uint32_t, 32> bytes;  ///< Of each of these lanes: a bit for each byte.
};

/// One memory request of a warp.
struct AccessEvent {
  WarpId warp;
  uint32_t instruction = 0;  ///< Index into Kernel::instructions().
  Space space = Space::kGlobal;
  AccessKind kind = AccessKind::kLoad;
  uint32_t mask = 0;   ///< Lanes that take part; for ldmatrix the lanes that give addresses.
  uint32_t bytes = 0;  ///< Bytes of each lane.
  /// Addresses of the 32 lanes; only those in `mask` are set. Shared, local, parameter and constant
  /// addresses are offsets in their space and stand in `narrow`; global ones stand in `wide`. A
  /// shared address of another block of the cluster has its rank plus two in bits 24 and up.
  const uint32_t* narrow = nullptr;
  const uint64_t* wide = nullptr;

  /// The bytes at the address of each lane in `mask`, before the access.
  const std::byte* const* memory = nullptr;
  /// Of st and stmatrix: gives the `bytes` that a lane is about to write. Null for all others.
  void (*write)(const void* store, int lane, std::byte* out) = nullptr;
  const void* store = nullptr;
  static constexpr size_t kMostWritten = 32;  ///< Bytes of a lane.
  /// Of st and stmatrix: lanes that write what is there already.
  uint32_t unchanged() const;

  /// Of a load: where a probe may say which bytes have no value. The machine then tells where such
  /// a value is used (`UnwrittenUseEvent`). Null where it does not follow what is loaded. Of a
  /// store to shared memory: the bytes that have no value after it either, since what is stored
  /// comes from such a load. Null where all have one.
  Unwritten* unwritten = nullptr;

  uint64_t address(int lane) const { return wide ? wide[lane] : narrow[lane]; }
};

/// What `AccessEvent::unwritten` named, or a register that nothing has set, is about to be stored
/// in global memory, or decides about an address, a branch or anything else that others see.
/// Arithmetic carries it on, and so do stores to shared and local memory: they are no use.
struct UnwrittenUseEvent {
  WarpId warp;
  uint32_t instruction = 0;  ///< That uses it.
  uint32_t load = 0;         ///< See `Unwritten`.
  uint32_t mask = 0;
};

/// An instruction of .shared has got a generic address, or a commit that names no space one of
/// shared memory.
struct GenericAddressEvent {
  WarpId warp;
  uint32_t instruction = 0;
  bool shared = false;  ///< The latter.
};

/// A warp enters a basic block with the lanes in `mask`.
struct BlockEvent {
  WarpId warp;
  uint32_t block = 0;
  uint32_t mask = 0;
};

/// One instruction is about to execute; only for observers that ask for it.
struct InstructionEvent {
  WarpId warp;
  uint32_t instruction = 0;
  uint32_t mask = 0;  ///< Lanes that execute it, after the guard predicate; may be 0.
};

enum class BarrierAction : uint8_t {
  kArrive,    ///< The warp arrived and goes on (bar.arrive).
  kWait,      ///< The warp arrived and waits (bar.sync, bar.red).
  kComplete,  ///< All expected threads are there; `warps` are all that arrived in this phase.
};

/// bar and barrier (PTX ISA 9.7.13.1). Barriers belong to a block.
struct BarrierEvent {
  WarpId warp;
  uint32_t instruction = 0;
  BarrierAction action = BarrierAction::kWait;
  uint32_t barrier = 0;               ///< 0..15
  uint32_t expected = 0;              ///< Threads.
  std::span<const uint16_t> warps;    ///< For kComplete: warps that arrived.
  std::span<const uint16_t> waiters;  ///< For kComplete: the subset that waited.
};

enum class ClusterAction : uint8_t {
  kArrive,    ///< The warp arrived and goes on.
  kComplete,  ///< All warps of the cluster that have not exited are there; `warp` came last.
  kPass,      ///< The warp has waited for the phase in which it arrived.
};

/// barrier.cluster (PTX ISA 9.7.13.4): one barrier for all blocks of a cluster.
struct ClusterEvent {
  WarpId warp;
  uint32_t instruction = 0;
  ClusterAction action = ClusterAction::kArrive;
  bool ordered = true;  ///< kArrive: false for .relaxed, which releases nothing.
};

enum class AsyncAction : uint8_t {
  kIssue,   ///< cp.async: the copies of the lanes in `mask` were issued into the open group.
  kCommit,  ///< The lanes in `mask` closed their open group.
  kWait,    ///< The lanes in `mask` waited until at most `group` groups were pending.
  kLand,    ///< Copies of one request arrive in shared memory, during a wait.
};

/// Non-bulk asynchronous copies (PTX ISA 9.7.9.25.3).
struct AsyncEvent {
  WarpId warp;
  uint32_t instruction = 0;  ///< For kLand: the cp.async that issued the copies.
  AsyncAction action = AsyncAction::kIssue;
  uint32_t mask = 0;
  /// kIssue and kCommit: number of the group (counts from 0) of the first lane in `mask`.
  /// kWait: pending groups allowed. kLand: group that the copies belong to.
  uint64_t group = 0;
  bool all = false;                  ///< kWait: cp.async.wait_all, which needs no commit.
  bool by_arrival = false;           ///< kLand: for a cp.async.mbarrier.arrive, not for a wait.
  uint32_t bytes = 0;                ///< kIssue, kLand: bytes written for each lane.
  const uint32_t* shared = nullptr;  ///< kIssue, kLand: destinations of the 32 lanes.
};

/// Lanes of one warp meet at a bar.warp.sync, or hand on values by a shfl.sync, which orders no
/// memory.
struct WarpSyncEvent {
  WarpId warp;
  uint32_t instruction = 0;
  uint32_t members = 0;
  const uint8_t* from = nullptr;  ///< Of a shfl.sync: the lane whose value each member gets.
};

enum class FenceKind : uint8_t {
  kMemory,        ///< membar, fence.sc, fence.acq_rel
  kProxyAsync,    ///< fence.proxy.async: between ordinary accesses and those of the async proxy.
  kMbarrierInit,  ///< fence.mbarrier_init: mbarrier.init before the async proxy and the cluster.

};

/// membar and fence (PTX ISA 9.7.13.4).
struct FenceEvent {
  WarpId warp;
  uint32_t instruction = 0;
  uint32_t mask = 0;
  FenceKind kind = FenceKind::kMemory;
  Space space = Space::kGeneric;  ///< kProxyAsync: kShared or kGlobal; kGeneric for all memory.
};

/// Bytes of global memory.
struct GlobalRange {
  uint64_t address = 0;
  uint32_t bytes = 0;
};

/// Bytes of shared memory, by shared address.
struct SharedRange {
  uint32_t address = 0;
  uint32_t bytes = 0;

  bool operator==(const SharedRange&) const = default;
};

enum class MbarrierAction : uint8_t {
  kInit,        ///< `count` arrivals make a phase; phase 0 begins.
  kInvalidate,  ///< The memory may be used for something else.
  kArrive,      ///< `count` arrivals towards `phase`; for arrive.expect_tx, kExpect comes before.
  kExpect,      ///< The phase waits for `bytes` more.
  kComplete,    ///< `bytes` of a bulk copy have landed (see BulkEvent::kLand, just before).
  kPhase,       ///< `phase` is complete, and the next one begins.
  kWait,        ///< test_wait or try_wait saw that `phase` is complete: what its arrivals released
                ///< is visible to the lanes in `mask`.
  kMiss,        ///< test_wait or try_wait answered false.
};

/// mbarrier (PTX ISA 9.7.13.15). One event for each barrier that a warp request names.
struct MbarrierEvent {
  WarpId warp;  ///< For kComplete, and a kPhase that follows from it, who issued the copy.
  uint32_t instruction = 0;  ///< For kComplete and kPhase: what caused it (an arrive, a copy).
  MbarrierAction action = MbarrierAction::kInit;
  uint32_t mask = 0;     ///< Lanes that name this barrier; 0 for kComplete and kPhase.
  uint16_t home = 0;     ///< Rank of the block that holds the barrier.
  uint32_t address = 0;  ///< Shared address in that block.
  uint64_t phase = 0;    ///< Counts from 0 since init.
  uint32_t count = 0;    ///< kInit, kArrive.
  uint32_t bytes = 0;    ///< kExpect, kComplete.
  bool ordered = true;   ///< False for .relaxed: no release on arrival, no acquire on waiting.
  bool by_copy = false;  ///< kArrive: by cp.async.mbarrier.arrive, when earlier copies landed.
  uint64_t commit = 0;   ///< kArrive: by the tcgen05.commit of the warp with this number, from 1.
};

enum class BulkAction : uint8_t {
  kIssue,   ///< One thread issued a copy. Nothing has been read or written.
  kLand,    ///< The copy is done now: shared memory was written (loads) or read (stores).
  kCommit,  ///< The thread closed its open group of stores; `group` is its number.
  kWait,    ///< The thread waited until at most `group` of its groups are pending.
};

enum class BulkKind : uint8_t {
  kLoad,      ///< Global to shared, completes on an mbarrier.
  kStore,     ///< Shared to global, completes as part of a bulk group.
  kPrefetch,  ///< Global to L2: no data moves; kIssue only.
};

/// cp.async.bulk and cp.async.bulk.tensor (PTX ISA 9.7.9.25.4 and 5). All of them act for single
/// threads: one event for each lane. Memory is accessed through the async proxy.
struct BulkEvent {
  WarpId warp;  ///< For kLand as it was at issue.
  uint32_t instruction = 0;
  BulkAction action = BulkAction::kIssue;
  BulkKind kind = BulkKind::kLoad;
  uint32_t lane = 0;
  uint64_t copy = 0;   ///< kIssue, kLand: number of the copy in its block, from 0.
  uint64_t group = 0;  ///< kStore: number of the thread's group, from 0. kWait: pending allowed.
  bool read_only = false;  ///< kWait: .read, which waits for shared memory to be read only.
  bool tensor = false;     ///< Through a tensor map.
  /// kIssue, kLand: what the copy writes (loads) or reads (stores) of shared memory.
  std::span<const SharedRange> shared;
  /// kIssue, kLand: what a copy from the block's own shared memory into that of another block
  /// reads.
  SharedRange source;
  /// A reduction: what stands at the destination is read and written, piece by piece atomically.
  bool combines = false;
  /// kIssue, kLand: what the copy reads (loads) or writes (stores) of global memory; only for
  /// the first copy of a multicast. The first row is enough for observers that do not want the
  /// order of blocks.
  std::span<const GlobalRange> global;
  uint64_t bytes = 0;         ///< Of the box, as the mbarrier counts them.
  uint64_t global_bytes = 0;  ///< kIssue: those inside the tensor.
  uint64_t sectors = 0;       ///< kIssue: 32-byte sectors of global memory that they touch.
  uint32_t mbarrier = 0;      ///< kLoad: shared address of the barrier that it completes on.
  /// kIssue, kLand: rank of the block that holds `shared`. A multicast load is one copy for each
  /// block: `global_bytes` and `sectors` are those of the first.
  uint16_t home = 0;
  uint16_t mbarrier_home = 0;  ///< kLoad: rank of the block that holds the barrier.
};

enum class WgmmaAction : uint8_t {
  kFence,     ///< wgmma.fence: registers written so far are ordered before later wgmma.
  kIssue,     ///< mma_async of one warp. A in registers has been read.
  kCommit,    ///< The warp closed its open group; `group` is its number.
  kWait,      ///< The warp arrived at wait_group and waits for its warpgroup; `group` may stay
              ///< pending.
  kExecute,   ///< One multiplication of the warpgroup runs now, and reads `shared`.
  kComplete,  ///< All four warps are at the wait, which is over: groups below `group` are done.
  kUnfenced,  ///< mma_async of one warp uses registers that were written after its last fence.
};

/// wgmma (PTX ISA 9.7.15). A warpgroup is one asynchronous agent: its multiplications run, in order
/// of issue, when its four warps meet in the wait_group that asks for them. Operands in shared
/// memory are read through the async proxy.
struct WgmmaEvent {
  WarpId warp;  ///< For kExecute and kComplete: the last warp that arrived at the wait.
  uint32_t instruction = 0;  ///< For kExecute: the mma_async.
  WgmmaAction action = WgmmaAction::kFence;
  uint32_t warpgroup = 0;  ///< warp / 4
  uint64_t group = 0;      ///< kIssue, kExecute: the group it belongs to. Counts from 0.
  uint64_t sequence = 0;   ///< kIssue, kExecute: number of the mma_async in its warpgroup, from 0.
  std::span<const SharedRange> shared;  ///< kIssue, kExecute: operands in shared memory.
};

/// Columns of tensor memory, in groups of 16 lanes.
struct TensorRange {
  uint16_t home = 0;   ///< Rank of the block.
  uint8_t groups = 0;  ///< Bit g: lanes 16 g to 16 g + 15.
  uint16_t column = 0, columns = 0;
};

/// Shared memory of a block of the cluster.
struct BlockRange {
  uint16_t home = 0;
  SharedRange range;
};

enum class TensorAction : uint8_t {
  kAllocate,     ///< `writes` may be used.
  kFree,         ///< `writes` may no longer be used.
  kLoad,         ///< tcgen05.ld reads `reads`, until kWaitLoad.
  kStore,        ///< tcgen05.st writes `writes`, until kWaitStore.
  kWaitLoad,     ///< The loads of the warp are done.
  kEarlyUse,     ///< The warp uses a register that a load writes without having waited: on cards
                 ///< the use waits, and the loads are done.
  kWaitStore,    ///< The stores of the warp are done.
  kMultiply,     ///< tcgen05.mma was issued; it is done when a later commit of its thread arrives.
  kCopy,         ///< tcgen05.cp and shift, in the same way.
  kCommit,       ///< `commit` covers what the thread has issued so far.
  kCommitLost,   ///< A commit does not arrive: the block `home` has exited.
  kFenceBefore,  ///< tcgen05.fence::before_thread_sync
  kFenceAfter,   ///< tcgen05.fence::after_thread_sync
};

/// What the rules do not allow in the address of a load or store, and cards do not look at.
enum class TensorNaming : uint8_t {
  kPlain,      ///< Nothing.
  kAbove,      ///< The lane is above the last; cards leave the upper bits out.
  kFirstWarp,  ///< The lane is one of the first warp; cards use those of the warp that asks.
  kDiffers,    ///< Threads give different addresses; cards use that of the first thread.
};

/// tcgen05 (PTX ISA 9.7.16). Products and copies of a block run in the order of their issue. What
/// they read of shared memory is read through the async proxy.
struct TensorEvent {
  WarpId warp;
  uint32_t instruction = 0;
  TensorAction action = TensorAction::kLoad;
  uint32_t lane = 0;    ///< kMultiply, kCopy, kCommit: the thread that has issued it.
  uint64_t commit = 0;  ///< kCommit: its number among those of the warp, from 1.
  uint32_t home = 0;    ///< kCommitLost: the block in its cluster.
  std::span<const TensorRange> reads, writes;
  std::span<const BlockRange> shared;          ///< kMultiply, kCopy: operands in shared memory.
  TensorNaming naming = TensorNaming::kPlain;  ///< kLoad, kStore: how the address names lanes.
  /// kLoad: if not null, gets for each column the lanes of the warp that nobody has written.
  uint32_t* unwritten = nullptr;
};

/// A warp stops because it must wait (`blocked`) or goes on after waiting.
struct WaitEvent {
  WarpId warp;
  uint32_t instruction = 0;
  bool blocked = true;
};

/// A warp has no lane left.
struct ExitEvent {
  WarpId warp;
  /// Copies that were issued and never waited for: the instruction of each request, and its lanes.
  struct Pending {
    uint32_t instruction;
    uint32_t mask;
    uint64_t group;
    bool committed;
  };
  std::span<const Pending> pending;
  uint32_t wgmma_pending = 0;  ///< wgmma issued and never waited for.
};

/// A block starts or has ended.
struct CtaEvent {
  uint32_t cta = 0;  ///< Linear index in the grid.
  Dim3 position;     ///< %ctaid
  uint32_t warps = 0;
  uint32_t shared_base = 0;   ///< First valid shared address.
  uint32_t shared_bytes = 0;  ///< Static and dynamic.
  uint16_t rank = 0;          ///< In its cluster.
  uint16_t cluster = 1;       ///< Blocks of the cluster.
};

/// Receives the events of the clusters that run one after the other in the same place. They do not
/// interleave: all events between `cta_begin` and `cta_end` belong to one block, or to the blocks
/// of one cluster, which all begin, in order of rank, before any other event, and end after the
/// last. Blocks that wait for each other are resident at the same time, each with a probe of its
/// own.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual void cta_begin(const CtaEvent&) {}
  virtual void cta_end(const CtaEvent&) {}
  virtual void block(const BlockEvent&) {}
  virtual void instruction(const InstructionEvent&) {}
  virtual void access(const AccessEvent&) {}
  virtual void generic_address(const GenericAddressEvent&) {}
  virtual void unwritten_use(const UnwrittenUseEvent&) {}
  virtual void barrier(const BarrierEvent&) {}
  virtual void cluster(const ClusterEvent&) {}
  virtual void async(const AsyncEvent&) {}
  virtual void warp_sync(const WarpSyncEvent&) {}
  virtual void fence(const FenceEvent&) {}
  virtual void mbarrier(const MbarrierEvent&) {}
  virtual void bulk(const BulkEvent&) {}
  virtual void wgmma(const WgmmaEvent&) {}
  virtual void tensor(const TensorEvent&) {}
  virtual void wait(const WaitEvent&) {}
  virtual void exit(const ExitEvent&) {}
};

class Memory;

/// What is launched.
struct LaunchInfo {
  Kernel kernel{nullptr};
  const Memory* memory = nullptr;
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
  bool ordered = false;  ///< There is an observer that wants the order of blocks.
};

/// How bad a finding is.
enum class Severity : uint8_t {
  kError,   ///< The kernel is wrong.
  kAdvice,  ///< It works on today's hardware, and leaves out what the PTX ISA asks for.
};

std::string_view name(Severity severity);

/// Something a checker has found. Findings are results, not errors of this library.
struct Finding {
  std::string checker;            ///< e.g. `race`
  std::string message;            ///< One line.
  uint32_t instruction = 0;       ///< Where it was seen.
  std::optional<uint32_t> other;  ///< The instruction that it conflicts with, where there is one.
  uint64_t count = 1;             ///< How often, over the whole launch.
  Diagnostic where;               ///< Line, caret and inlining chain.
  Severity severity = Severity::kError;
};

/// For a terminal: `race: ... x12`, then the line with its caret and notes.
std::string format(const Finding& finding);

/// Watches one launch. `begin` is called before any probe is made, `end` after all have finished,
/// with the probes in the order in which they were made. No two probes are made at once.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin(const LaunchInfo&) {}
  virtual std::unique_ptr<Probe> make_probe() = 0;
  virtual void end(std::span<const std::unique_ptr<Probe>> probes) = 0;
  /// Whether `Probe::instruction` is to be called; it slows the machine down.
  virtual bool wants_instructions() const { return false; }
  /// Whether all blocks are to run on one host thread, one event after the other in an order that
  /// is possible on the card.
  virtual bool wants_order() const { return false; }
  /// What was found; must not depend on the number of host threads. (After a fault, blocks behind
  /// the faulty one may or may not have run.)
  virtual std::vector<Finding> findings() const { return {}; }
};

}  // namespace ptxvm
