// SPDX-License-Identifier: MIT
#include "exec/scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "exec/async.h"
#include "exec/barrier.h"
#include "exec/fault.h"
#include "exec/interpreter.h"
#include "exec/poison.h"
#include "exec/specials.h"

namespace ptxvm {
namespace {

constexpr size_t kAlignment = 256;
constexpr int kPoison = 0xff;  // NaN in every floating-point type
// Turns of a loop that tests an mbarrier and may give up, before it counts as a deadlock.
constexpr uint32_t kIdleRounds = 1u << 16;
// Times that other lanes of polling warps are tried without progress before a deadlock is reported.
constexpr uint32_t kRotations = 64;
// Times that mbarrier.try_wait gives up in a warp before one finds what it waits for: a loop would
// ask for ever.
constexpr uint32_t kTimeouts = 8;

size_t round_up(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Dim3 position_in(Dim3 extent, uint64_t index) {
  return {static_cast<uint32_t>(index % extent.x),
          static_cast<uint32_t>(index / extent.x % extent.y),
          static_cast<uint32_t>(index / extent.x / extent.y)};
}

}  // namespace

Dim3 first_block(const LaunchState& launch, uint64_t cluster) {
  const Dim3 each = launch.cluster;
  const Dim3 at = position_in(
      {launch.grid.x / each.x, launch.grid.y / each.y, launch.grid.z / each.z}, cluster);
  return {at.x * each.x, at.y * each.y, at.z * each.z};
}

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
  const uint64_t local = local_stride_ * warps_per_cta_ * ctas;
  const uint64_t most = launch.options->max_local_bytes;
  if (launch.local_bytes.fetch_add(local) + local > most) {
    const auto megabytes = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; };
    throw Error("'" + program.name + "': a thread has " + std::to_string(program.local_bytes) +
                " bytes of local memory, and the threads of all blocks that run at once have more "
                "than the " +
                megabytes(most) + " that a launch may take (max_local_bytes, --max-local)");
  }
  local_ = allocate(local);
  for (Cta& cta : ctas_) {
    cta.warps.resize(warps_per_cta_);
    for (Warp& w : cta.warps) order_.push_back(&w);
  }
  if (launch_.options->warp_order == Order::kReversed) std::reverse(order_.begin(), order_.end());
}

ClusterRunner::~ClusterRunner() = default;

void ClusterRunner::begin(Cta& cta, uint64_t cluster, uint32_t rank) {
  const Program& program = *launch_.program;
  const Dim3 first = first_block(launch_, cluster), in = position_in(launch_.cluster, rank);
  cta.launch = &launch_;
  cta.cluster = &cluster_;
  cta.probes = &probes_;
  cta.rank = static_cast<uint16_t>(rank);
  cta.position = {first.x + in.x, first.y + in.y, first.z + in.z};
  cta.index = cta.position.x + launch_.grid.x * (cta.position.y + launch_.grid.y * cta.position.z);
  cta.shared_base = launch_.options->shared_base;
  cta.shared_bytes = launch_.dynamic_shared_bytes > 0
                         ? program.dynamic_offset + launch_.dynamic_shared_bytes
                         : program.shared_bytes;
  cta.shared = shared_.get() + shared_stride_ * rank;
  cta.live_threads = static_cast<uint32_t>(launch_.block.count());
  cta.multiprocessor = static_cast<uint32_t>(position_ % launch_.options->card.multiprocessors);
  std::memset(cta.shared, kPoison, shared_stride_);
  for (Barrier& b : cta.barriers) b = Barrier{};
  cta.pending.clear();
  for (uint32_t i = 0; i < warps_per_cta_; ++i) {
    begin(cta.warps[i], cta, static_cast<uint16_t>(i));
  }
  begin_async(cta);
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

// Nothing of the warp that was there before may stay.
void ClusterRunner::begin(Warp& w, Cta& cta, uint16_t index) {
  w = Warp{};
  const size_t number = size_t{cta.rank} * warps_per_cta_ + index;
  w.cta = &cta;
  w.index = index;
  w.code = launch_.observed ? launch_.program->observed.data() : launch_.program->plain.data();
  w.base[0] = registers_.get() + register_stride_ * number;
  w.base[1] = launch_.pools[launch_.pools.size() > 1 ? cta.rank : 0].data();
  w.local = local_.get() + local_stride_ * number;
  std::memset(w.base[0], kPoison, register_stride_);
  std::memset(w.local, kPoison, local_stride_);
  const uint64_t first = uint64_t{index} * 32, threads = launch_.block.count();
  w.live = threads - first >= 32 ? kAllLanes : (1u << (threads - first)) - 1;
  w.active = w.live;
  w.pc = launch_.program->entry;
  w.step_limit = launch_.options->max_warp_steps;
  w.busy.assign(launch_.program->wgmma_lines, 0);
  fill_specials(w);
  if (launch_.observed) poison_unset(w, UnsetRegister::kEntry, w.live);
}

void ClusterRunner::begin(uint64_t index, uint64_t position) {
  position_ = position;
  steps_ = 0;
  idle_rounds_ = rotations_ = 0;
  cluster_ = {ctas_, 0, position};
  for (uint32_t rank = 0; rank < ctas_.size(); ++rank) begin(ctas_[rank], index, rank);
}

void ClusterRunner::end() {
  while (finish_one_pending()) {
  }
  if (!launch_.observed) return;
  for (const Cta& cta : ctas_) {
    const CtaEvent e = event_of(cta);
    for (const auto& probe : probes_) probe->cta_end(e);
  }
}

bool ClusterRunner::advance() {
  moved_ = false;
  for (;;) {
    const Round round = run_round();
    if (!round.alive) break;
    if (round.progress || finish_one_pending()) {
      idle_rounds_ = rotations_ = 0;
      moved_ = true;
    } else if (rotations_ < kRotations && rotate_lanes()) {
      ++rotations_;
    } else if (round.waits_for_grid) {
      return false;
    } else if (!round.spins || spins_for_ever(round)) {
      if (!time_out()) raise_deadlock();
      idle_rounds_ = 0;
    }
  }
  end();
  moved_ = true;
  return true;
}

ClusterRunner::Round ClusterRunner::run_round() {
  Round round;
  for (Warp* w : order_) {
    if (w->status == WarpStatus::kExited) continue;
    round.alive = true;
    if (w->status != WarpStatus::kAtBarrier) turn(*w, round);
  }
  return round;
}

// A warp runs until it waits. One that polls makes no progress when it is found polling at the same
// place again, or gets the same answer from memory.
void ClusterRunner::turn(Warp& w, Round& round) {
  const bool polled = w.status == WarpStatus::kPolling;
  const uint32_t pc = w.pc;
  const uint64_t steps = w.steps;
  const uint32_t instruction = w.code[pc].instruction;
  w.status = WarpStatus::kReady;
  if (launch_.options->stop && *launch_.options->stop) throw Stopped();
  run_turn(w);
  steps_ += w.steps - steps;
  // Here, as a warp that meets others in every round of a loop never comes to the end of its turn.
  if (w.steps >= w.step_limit && w.status != WarpStatus::kExited) {
    raise_limit(w, "the warp has executed " + std::to_string(w.steps));
  }
  if (steps_ > launch_.options->max_steps) {
    raise_limit(w,
                "the launch has executed more than " + std::to_string(launch_.options->max_steps));
  }
  const bool stuck = polled && w.status == WarpStatus::kPolling && w.pc == pc;
  const bool waits = w.status == WarpStatus::kReady && w.polled != Poll::kNo;
  round.progress |= !stuck && !waits;
  round.spins |= waits || (stuck && w.steps != steps);
  round.waits_for_memory |= waits;
  round.waits_for_grid |= waits && w.polled == Poll::kGrid;
  if (launch_.observed && polled && !stuck) {
    const WaitEvent e{id_of(w), instruction, false};
    notify(w, [&](Probe& p) { p.wait(e); });
  }
  if (launch_.observed && !polled && w.status == WarpStatus::kPolling) {
    const WaitEvent e{id_of(w), w.code[w.pc].instruction, true};
    notify(w, [&](Probe& p) { p.wait(e); });
  }
  if (w.status == WarpStatus::kExited) finish(w);
}

// A whole round has got nowhere. Loops that test an mbarrier may give up, but not after so long;
// loops that read memory go on for ever when they hold the same values each time.
bool ClusterRunner::spins_for_ever(const Round& round) {
  ++idle_rounds_;
  if (!round.waits_for_memory) return idle_rounds_ == kIdleRounds;
  const uint64_t now = fingerprint();
  const bool same = idle_rounds_ > 1 && now == fingerprint_;
  fingerprint_ = now;
  return same;
}

uint64_t ClusterRunner::fingerprint() const {
  uint64_t hash = 0;
  auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (const Warp* w : order_) {
    mix(static_cast<uint64_t>(w->pc) << 32 | w->active);
    for (size_t at = 0; at < register_stride_; at += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, w->base[0] + at, sizeof word);
      mix(word);
    }
  }
  return hash;
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

// A kernel may ask an mbarrier whose phase ends only after what the kernel does next, as CUTLASS'
// producers do with a single stage.
bool ClusterRunner::time_out() {
  bool any = false;
  for (Warp* w : order_) {
    if (w->status != WarpStatus::kPolling) continue;
    const isa::Spelling* s = launch_.program->spellings[w->code[w->pc].instruction];
    if (!s || s->traits().polls != isa::Polls::kMbarrier) continue;
    if (w->timeouts == kTimeouts) continue;
    ++w->timeouts;
    any = w->timed_out = true;
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
      uint32_t lanes = 0;
      for_lanes(c.mask, [&](int lane) {
        if (c.number >= w.copies.tracked[static_cast<size_t>(lane)]) lanes |= 1u << lane;
      });
      if (lanes != 0) pending.push_back({c.instruction, lanes, c.group, c.committed});
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
  check_tensor_memory_freed(w);
  recheck_barriers(*w.cta);
  recheck_cluster_barrier(*w.cta, w);
}

// A warp at a barrier has been moved past it.
uint32_t ClusterRunner::instruction_of(const Warp& w) {
  if (w.status == WarpStatus::kReady && w.polled != Poll::kNo) return w.poll_instruction;
  return w.code[w.status == WarpStatus::kAtBarrier ? w.pc - 1 : w.pc].instruction;
}

void ClusterRunner::describe(bool named, std::vector<std::string>& out) const {
  for (const Cta& cta : ctas_) {
    for (const Warp& w : cta.warps) {
      std::string text = "warp " + std::to_string(w.index);
      if (named) {
        text = "block (" + std::to_string(cta.position.x) + ", " + std::to_string(cta.position.y) +
               ", " + std::to_string(cta.position.z) + "), " + text;
      } else if (ctas_.size() > 1) {
        text = "block " + std::to_string(cta.rank) + " of the cluster, " + text;
      }
      if (w.status == WarpStatus::kExited) {
        out.push_back(text + " has exited");
        continue;
      }
      const InstructionInfo& info = launch_.program->instructions[instruction_of(w)];
      const bool waits = w.status != WarpStatus::kReady || w.polled != Poll::kNo;
      text += waits ? " waits at line " : " is at line ";
      text += std::to_string(info.line) + ", " + std::string(info.opcode);
      if (w.status == WarpStatus::kAtBarrier) {
        const Barrier& b = cta.barriers[w.barrier];
        text += ", for barrier " + std::to_string(w.barrier) + ": " +
                std::to_string(b.warps.size() * 32) + " of " +
                (b.expected == 0 ? "all" : std::to_string(b.expected)) + " threads have arrived";
      }
      if (w.status == WarpStatus::kPolling) text += describe_poll(cta, w);
      out.push_back(std::move(text));
    }
  }
}

Fault ClusterRunner::fault(FaultKind kind, std::string message,
                           const std::vector<std::string>& notes) const {
  Fault f;
  f.kind = kind;
  f.kernel = launch_.program->name;
  f.cta = ctas_[0].position;
  for (const Cta& cta : ctas_) {
    for (const Warp& w : cta.warps) {
      if (!f.instruction && w.status != WarpStatus::kExited) f.instruction = instruction_of(w);
    }
  }
  f.message = std::move(message);
  const Kernel kernel(launch_.program);
  f.where = kernel.point_at(f.instruction.value_or(0), f.message);
  f.where.notes.push_back("kernel " + kernel.readable_name() + ", block (" +
                          std::to_string(f.cta.x) + ", " + std::to_string(f.cta.y) + ", " +
                          std::to_string(f.cta.z) + ")");
  f.where.notes.insert(f.where.notes.end(), notes.begin(), notes.end());
  return f;
}

void ClusterRunner::raise_limit(const Warp& w, const std::string& who) {
  std::vector<std::string> positions;
  describe(false, positions);
  raise(w, instruction_of(w), FaultKind::kStepLimit, -1, who + " instructions, which is the limit",
        shortened(std::move(positions)));
}

void ClusterRunner::raise_deadlock() {
  std::vector<std::string> positions;
  describe(false, positions);
  throw FaultError{
      fault(FaultKind::kDeadlock, "deadlock: no warp can go on", shortened(std::move(positions)))};
}

std::vector<std::string> shortened(std::vector<std::string> positions) {
  constexpr size_t kShown = 32;
  if (positions.size() <= kShown) return positions;
  const size_t rest = positions.size() - kShown;
  positions.resize(kShown);
  positions.push_back("and " + std::to_string(rest) + " more warps");
  return positions;
}

}  // namespace ptxvm
