// What can be watched while a kernel runs.
//
// Execution knows no checker and no counter: it reports what a warp asks for, one event for each
// warp request, and nothing that an observer does can change a result. An `Observer` belongs to a
// launch; it makes one `Probe` for each host thread, so probes need no locks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptxvm/module.h"

namespace ptxvm {

/// State spaces (PTX ISA 5.1) after generic addresses have been resolved.
enum class Space : uint8_t { kGlobal, kShared, kLocal, kParam, kConst, kGeneric };

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
};

std::string_view name(AccessKind kind);

/// One memory request of a warp.
struct AccessEvent {
  WarpId warp;
  uint32_t instruction = 0;  ///< Index into Kernel::instructions().
  Space space = Space::kGlobal;
  AccessKind kind = AccessKind::kLoad;
  uint32_t mask = 0;   ///< Lanes that take part; for ldmatrix the lanes that give addresses.
  uint32_t bytes = 0;  ///< Bytes of each lane.
  /// Addresses of the 32 lanes; only those in `mask` are set. Shared, local, parameter and constant
  /// addresses are offsets in their space and stand in `narrow`; global ones stand in `wide`.
  const uint32_t* narrow = nullptr;
  const uint64_t* wide = nullptr;

  uint64_t address(int lane) const { return wide ? wide[lane] : narrow[lane]; }
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
  uint32_t bytes = 0;                ///< kIssue, kLand: bytes written for each lane.
  const uint32_t* shared = nullptr;  ///< kIssue, kLand: destinations of the 32 lanes.
};

/// bar.warp.sync and the other instructions that make lanes of one warp meet.
struct WarpSyncEvent {
  WarpId warp;
  uint32_t instruction = 0;
  uint32_t members = 0;
};

/// membar and fence (PTX ISA 9.7.13.4).
struct FenceEvent {
  WarpId warp;
  uint32_t instruction = 0;
  uint32_t mask = 0;
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
};

/// A block starts or has ended.
struct CtaEvent {
  uint32_t cta = 0;  ///< Linear index in the grid.
  Dim3 position;     ///< %ctaid
  uint32_t warps = 0;
  uint32_t shared_base = 0;   ///< First valid shared address.
  uint32_t shared_bytes = 0;  ///< Static and dynamic.
};

/// Receives the events of the blocks that one host thread runs. Blocks do not interleave: all
/// events between `cta_begin` and `cta_end` belong to one block (with clusters: to one cluster).
class Probe {
 public:
  virtual ~Probe() = default;
  virtual void cta_begin(const CtaEvent&) {}
  virtual void cta_end(const CtaEvent&) {}
  virtual void block(const BlockEvent&) {}
  virtual void instruction(const InstructionEvent&) {}
  virtual void access(const AccessEvent&) {}
  virtual void barrier(const BarrierEvent&) {}
  virtual void async(const AsyncEvent&) {}
  virtual void warp_sync(const WarpSyncEvent&) {}
  virtual void fence(const FenceEvent&) {}
  virtual void wait(const WaitEvent&) {}
  virtual void exit(const ExitEvent&) {}
};

/// What is launched.
struct LaunchInfo {
  Kernel kernel{nullptr};
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
};

/// Something a checker has found. Findings are results, not errors of this library.
struct Finding {
  std::string checker;       ///< e.g. `race`
  std::string message;       ///< One line.
  uint32_t instruction = 0;  ///< Where it was seen.
  uint64_t count = 1;        ///< How often, over the whole launch.
  Diagnostic where;          ///< Line, caret and inlining chain.
};

/// Watches one launch. `begin` is called before any probe is made, `end` after all have finished,
/// with the probes in the order in which they were made.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin(const LaunchInfo&) {}
  virtual std::unique_ptr<Probe> make_probe() = 0;
  virtual void end(std::span<const std::unique_ptr<Probe>> probes) = 0;
  /// Whether `Probe::instruction` is to be called; it slows the machine down.
  virtual bool wants_instructions() const { return false; }
  /// What was found; must not depend on the number of host threads.
  virtual std::vector<Finding> findings() const { return {}; }
};

}  // namespace ptxvm
