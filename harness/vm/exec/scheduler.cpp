// SPDX-License-Identifier: MIT
#include "exec/scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "exec/barrier.h"
#include "exec/fault.h"
#include "exec/interpreter.h"
#include "exec/specials.h"

namespace ptxvm {
namespace {

constexpr size_t kAlignment = 256;
constexpr int kPoison = 0xff;  // NaN in every floating-point type
// Turns of a loop that tests an mbarrier and may give up, before it counts as a deadlock.
constexpr uint32_t kIdleRounds = 1u << 16;
// Times that other lanes of polling warps are tried without progress before a deadlock is reported.
constexpr uint32_t kRotations = 64;

size_t round_up(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Dim3 position_in(Dim3 extent, uint64_t index) {
  return {static_cast<uint32_t>(index % extent.x),
          static_cast<uint32_t>(index / extent.x % extent.y),
          static_cast<uint32_t>(index / extent.x / extent.y)};
}

}  // namespace

void ClusterRunner::AlignedFree::operator()(std::byte* p) const {
  std::free(p);
}

ClusterRunner::Bytes ClusterRunner::allocate(size_t bytes) {
  Bytes p(static_cast<std::byte*>(std::aligned_alloc(kAlignment, std::max(bytes, kAlignment))));
  if (!p) throw std::bad_alloc();
  return p;
}

ClusterRunner::ClusterRunner(LaunchState& launch, const std::vector<std::unique_ptr<Probe>>& probes)
    : launch_(launch), probes_(probes), ctas_(launch.cluster.count()) {
  const Program& program = *launch.program;
  warps_per_cta_ = static_cast<uint32_t>((launch.block.count() + 31) / 32);
  register_stride_ = round_up(program.register_bytes);
  shared_stride_ = round_up(std::max<size_t>(program.dynamic_offset, program.shared_bytes) +
                            launch.dynamic_shared_bytes);
  local_stride_ = round_up(size_t{32} * program.local_bytes);
  const size_t ctas = ctas_.size();
  registers_ = allocate(register_stride_ * warps_per_cta_ * ctas);
  shared_ = allocate(shared_stride_ * ctas);
  local_ = allocate(local_stride_ * warps_per_cta_ * ctas);
  for (Cta& cta : ctas_) cta.warps.resize(warps_per_cta_);
}

ClusterRunner::~ClusterRunner() = default;

void ClusterRunner::begin(Cta& cta, uint64_t cluster, uint32_t rank) {
  const Program& program = *launch_.program;
  const Dim3 clusters{launch_.grid.x / launch_.cluster.x, launch_.grid.y / launch_.cluster.y,
                      launch_.grid.z / launch_.cluster.z};
  const Dim3 at = position_in(clusters, cluster), in = position_in(launch_.cluster, rank);
  cta.launch = &launch_;
  cta.cluster = &cluster_;
  cta.probes = &probes_;
  cta.rank = static_cast<uint16_t>(rank);
  cta.position = {at.x * launch_.cluster.x + in.x, at.y * launch_.cluster.y + in.y,
                  at.z * launch_.cluster.z + in.z};
  cta.index = cta.position.x + launch_.grid.x * (cta.position.y + launch_.grid.y * cta.position.z);
  cta.shared_base = launch_.options->shared_base;
  cta.shared_bytes = launch_.dynamic_shared_bytes > 0
                         ? program.dynamic_offset + launch_.dynamic_shared_bytes
                         : program.shared_bytes;
  cta.shared = shared_.get() + shared_stride_ * rank;
  cta.live_threads = static_cast<uint32_t>(launch_.block.count());
  std::memset(cta.shared, kPoison, shared_stride_);
  for (Barrier& b : cta.barriers) b = Barrier{};
  cta.pending.clear();
  begin_async(cta);
  for (uint32_t i = 0; i < warps_per_cta_; ++i) {
    Warp& w = cta.warps[i];
    w.cta = &cta;
    begin(w, static_cast<uint16_t>(i));
  }
  if (launch_.observed) {
    const CtaEvent e = event_of(cta);
    for (const auto& probe : probes_) probe->cta_begin(e);
  }
}

CtaEvent ClusterRunner::event_of(const Cta& cta) const {
  return {cta.index,
          cta.position,
          warps_per_cta_,
          cta.shared_base,
          cta.shared_bytes,
          cta.rank,
          static_cast<uint16_t>(ctas_.size())};
}

void ClusterRunner::begin(Warp& w, uint16_t index) {
  const size_t number = size_t{w.cta->rank} * warps_per_cta_ + index;
  w.index = index;
  w.code = launch_.observed ? launch_.program->observed.data() : launch_.program->plain.data();
  w.base[0] = registers_.get() + register_stride_ * number;
  w.base[1] = launch_.pool.data();
  w.local = local_.get() + local_stride_ * number;
  std::memset(w.base[0], kPoison, register_stride_);
  std::memset(w.local, kPoison, local_stride_);
  const uint64_t first = uint64_t{index} * 32, threads = launch_.block.count();
  w.live = threads - first >= 32 ? kAllLanes : (1u << (threads - first)) - 1;
  w.active = w.live;
  w.mask = w.carry = w.pc = 0;
  w.fragments.clear();
  w.status = WarpStatus::kReady;
  w.hold = false;
  w.steps = 0;
  w.step_limit = launch_.options->max_warp_steps;
  w.copies.pending.clear();
  w.copies.committed.fill(0);
  w.bulk_groups.fill(0);
  w.busy.assign(launch_.program->wgmma_lines, 0);
  w.check_busy = w.waiting = w.cluster_arrived = false;
  fill_specials(w);
}

void ClusterRunner::run(uint64_t index) {
  cluster_ = {ctas_, 0};
  for (uint32_t rank = 0; rank < ctas_.size(); ++rank) begin(ctas_[rank], index, rank);
  schedule();
  for (const Cta& cta : ctas_) {
    if (launch_.observed) {
      const CtaEvent e = event_of(cta);
      for (const auto& probe : probes_) probe->cta_end(e);
    }
    for (const Warp& w : cta.warps) steps_ += w.steps;
  }
}

// Each warp runs until it waits. A warp that polls makes no progress when it is found polling at
// the same place again; when a whole round makes none, nothing can wake anybody.
void ClusterRunner::schedule() {
  std::vector<Warp*> order;
  for (Cta& cta : ctas_) {
    for (Warp& w : cta.warps) order.push_back(&w);
  }
  if (launch_.options->warp_order == Order::kReversed) std::reverse(order.begin(), order.end());
  const bool observed = launch_.observed;
  uint32_t idle_rounds = 0, rotations = 0;

  for (;;) {
    // A loop around test_wait executes instructions without getting anywhere.
    bool progress = false, spins = false, alive = false;
    for (Warp* w : order) {
      if (w->status == WarpStatus::kExited) continue;
      alive = true;
      if (w->status == WarpStatus::kAtBarrier) continue;
      const bool polled = w->status == WarpStatus::kPolling;
      const uint32_t pc = w->pc;
      const uint64_t steps = w->steps;
      const uint32_t instruction = w->code[pc].instruction;
      w->status = WarpStatus::kReady;
      if (launch_.options->stop && *launch_.options->stop) throw Stopped();
      run_turn(*w);
      const bool stuck = polled && w->status == WarpStatus::kPolling && w->pc == pc;
      progress |= !stuck;
      spins |= stuck && w->steps != steps;
      if (observed && polled && !stuck) {
        const WaitEvent e{id_of(*w), instruction, false};
        notify(*w, [&](Probe& p) { p.wait(e); });
      }
      if (observed && !polled && w->status == WarpStatus::kPolling) {
        const WaitEvent e{id_of(*w), w->code[w->pc].instruction, true};
        notify(*w, [&](Probe& p) { p.wait(e); });
      }
      if (w->status == WarpStatus::kExited) finish(*w);
    }
    if (!alive) break;
    if (progress || finish_one_pending()) {
      idle_rounds = rotations = 0;
    } else if (rotations < kRotations && rotate_lanes()) {
      ++rotations;
    } else if (!spins || ++idle_rounds == kIdleRounds) {
      raise_deadlock();
    }
  }
  while (finish_one_pending()) {
  }
}

// Lanes that poll may wait for lanes of their own warp, which the order of positions keeps from
// running.
bool ClusterRunner::rotate_lanes() {
  bool any = false;
  for (Cta& cta : ctas_) {
    for (Warp& w : cta.warps) {
      if (w.status == WarpStatus::kPolling && rotate_fragments(w)) {
        w.status = WarpStatus::kReady;
        any = true;
      }
    }
  }
  return any;
}

bool ClusterRunner::finish_one_pending() {
  for (Cta& cta : ctas_) {
    if (cta.pending.empty()) continue;
    // Copies finish in any order: each order of warps gets one of its own.
    const bool last = launch_.options->warp_order == Order::kReversed;
    const std::unique_ptr<PendingWork> work =
        std::move(last ? cta.pending.back() : cta.pending.front());
    if (last) {
      cta.pending.pop_back();
    } else {
      cta.pending.pop_front();
    }
    work->finish(cta);
    return true;
  }
  return false;
}

void ClusterRunner::finish(Warp& w) {
  if (launch_.observed) {
    std::vector<ExitEvent::Pending> pending;
    for (const PendingCopy& c : w.copies.pending) {
      pending.push_back({c.instruction, c.mask, c.group, c.committed});
    }
    uint32_t wgmma = 0;
    if (w.index / 4u < w.cta->async.warpgroups.size()) {
      const Warpgroup& g = w.cta->async.warpgroups[w.index / 4u];
      wgmma = static_cast<uint32_t>(g.issued[w.index % 4u] -
                                    std::min(g.issued[w.index % 4u], g.executed));
    }
    const ExitEvent e{id_of(w), pending, wgmma};
    notify(w, [&](Probe& p) { p.exit(e); });
  }
  recheck_barriers(*w.cta);
  recheck_cluster_barrier(*w.cta, w);
}

void ClusterRunner::raise_deadlock() {
  const Program& program = *launch_.program;
  const Kernel kernel(&program);
  FaultError error;
  Fault& f = error.fault;
  f.kind = FaultKind::kDeadlock;
  f.kernel = program.name;
  f.cta = ctas_[0].position;
  std::vector<std::string> positions;
  for (Cta& cta : ctas_) {
    for (Warp& w : cta.warps) {
      std::string text = "warp " + std::to_string(w.index);
      if (ctas_.size() > 1) text = "block " + std::to_string(cta.rank) + " of the cluster, " + text;
      if (w.status == WarpStatus::kExited) {
        positions.push_back(text + " has exited");
        continue;
      }
      // A warp at a barrier has been moved past it.
      const uint32_t pc = w.status == WarpStatus::kAtBarrier ? w.pc - 1 : w.pc;
      const uint32_t instruction = w.code[pc].instruction;
      if (!f.instruction) f.instruction = instruction;
      const InstructionInfo& info = program.instructions[instruction];
      text += " waits at line " + std::to_string(info.line) + ", " + std::string(info.opcode);
      if (w.status == WarpStatus::kAtBarrier) {
        const Barrier& b = cta.barriers[w.barrier];
        text += ", for barrier " + std::to_string(w.barrier) + ": " +
                std::to_string(b.warps.size() * 32) + " of " +
                (b.expected == 0 ? "all" : std::to_string(b.expected)) + " threads have arrived";
      }
      if (w.status == WarpStatus::kPolling) text += describe_poll(cta, w);
      positions.push_back(std::move(text));
    }
  }
  f.message = "deadlock: no warp can go on";
  f.where = kernel.point_at(f.instruction.value_or(0), f.message);
  f.where.notes.push_back("kernel " + program.name + ", block (" + std::to_string(f.cta.x) + ", " +
                          std::to_string(f.cta.y) + ", " + std::to_string(f.cta.z) + ")");
  for (std::string& p : positions) f.where.notes.push_back(std::move(p));
  throw error;
}

}  // namespace ptxvm
