// SPDX-License-Identifier: MIT
// Tensor memory: who has read and written which columns, and what says that it is done.
#include <algorithm>

#include "memory/tensor_memory.h"
#include "observe/block_checks.h"
#include "observe/instruction.h"

namespace ptxvm::observe {
namespace {

constexpr uint32_t kGroups = 8;  // of 16 lanes
constexpr uint32_t kCells = kGroups * TensorMemory::kColumns;

// Tensor cores do what one warp or another has issued in the order in which they get it.
bool is_core(AgentKind kind) {
  return kind == AgentKind::kTensorCore;
}

std::optional<Problem> problem_of(TensorNaming naming) {
  switch (naming) {
    case TensorNaming::kAbove:
      return Problem::kTensorWraps;
    case TensorNaming::kFirstWarp:
      return Problem::kTensorLane;
    case TensorNaming::kDiffers:
      return Problem::kTensorAddress;
    case TensorNaming::kPlain:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool uses_tensor_memory(const Kernel& kernel) {
  const auto all = kernel.instructions();
  return std::any_of(all.begin(), all.end(), [](const InstructionInfo& i) {
    return i.count_class == CountClass::kTcgen05Sync;
  });
}

// Whether a use is over for an access: 0 where it is, or the problem.
std::optional<Problem> RaceProbe::meets(const TensorAccess& a, const TensorUse& use) const {
  if (use.clock == 0 || use.agent == a.agent) return std::nullopt;
  const uint32_t other = clocks_.number(use.agent);
  const Clock* seen = clocks_.seen(a.warp);
  const bool pipelined = is_core(clocks_.kind(use.agent)) && is_core(clocks_.kind(a.agent)) &&
                         seen[clocks_.warp(other)] >= use.issued;
  if (pipelined) return std::nullopt;
  if (use.clock > seen[use.agent]) return Problem::kTensorRace;
  // A warp that frees it does so with an instruction that orders itself.
  const bool fenced = a.agent == clocks_.warp(a.warp) || other == a.warp ||
                      use.clock <= tensor_fenced_[a.warp][use.agent];
  if (fenced) return std::nullopt;
  return Problem::kTensorFence;
}

void RaceProbe::add_tensor(Problem problem, Hazard hazard, const TensorAccess& a,
                           const TensorUse& use, uint32_t place) {
  Example e;
  e.hazard = hazard;
  e.address = place % kCells;
  e.block = block_number(place / kCells);
  // Where the other warp has not made its own fence, that is what is missing first.
  e.published = use.agent != Clocks::kNobody && use.clock <= clocks_.published(a.warp)[use.agent];
  add(problem, party(a.agent, Place::pack(a.instruction, Place::kWarp, 4)),
      use.agent == Clocks::kNobody
          ? Party{}
          : party(use.agent, Place::pack(use.instruction, Place::kWarp, 4)),
      e);
}

void RaceProbe::access_tensor(const TensorAccess& a, std::span<const TensorRange> ranges,
                              bool writes, uint32_t* unwritten) {
  for (const TensorRange& r : ranges) {
    for (uint32_t rest = r.groups; rest != 0; rest &= rest - 1) {
      const auto group = static_cast<uint32_t>(__builtin_ctz(rest));
      const uint32_t first = r.home * kCells + group * TensorMemory::kColumns + r.column;
      for (uint32_t i = first; i < first + r.columns; ++i) {
        if (!access_cell(a, i, writes)) continue;
        if (unwritten) {  // It matters when the warp uses it.
          unwritten[i - first] |= 0xffffu << group % 2 * 16;
          unwritten_tensor_[{a.warp, a.instruction}] = {a, i};
        } else {
          add_tensor(Problem::kTensorUnwritten, Hazard::kUnwritten, a, {}, i);
        }
      }
    }
  }
}

// Whether nobody has written what is read.
bool RaceProbe::access_cell(const TensorAccess& a, uint32_t place, bool writes) {
  TensorCell& c = tensor_cells_[place];
  const auto look = [&](const TensorUse& use, Hazard hazard) {
    if (const auto problem = meets(a, use)) add_tensor(*problem, hazard, a, use, place);
  };
  const TensorUse mine{a.agent, a.clock, a.issued, a.instruction};
  if (!writes) {
    look(c.written, Hazard::kReadAfterWrite);
    // Of more readers than there is room for the first are forgotten: missed, not invented.
    auto* slot = std::find_if(c.read.begin(), c.read.end(), [&](const TensorUse& u) {
      return u.clock == 0 || u.agent == a.agent;
    });
    if (slot == c.read.end()) slot = c.read.begin();
    *slot = mine;
    return c.hollow;
  }
  look(c.written, Hazard::kWriteAfterWrite);
  for (const TensorUse& use : c.read) look(use, Hazard::kWriteAfterRead);
  c = {};
  c.hollow = false;
  c.written = mine;
  return false;
}

void RaceProbe::allocate_tensor(const TensorEvent& e) {
  const TensorRange& r = e.writes.front();
  const uint32_t w = warp(e.warp);
  if (tensor_cells_.empty()) tensor_cells_.resize(size_t{blocks()} * kCells);
  for (uint32_t group = 0; group < kGroups; ++group) {
    const uint32_t first = r.home * kCells + group * TensorMemory::kColumns + r.column;
    std::fill_n(tensor_cells_.begin() + first, r.columns, TensorCell{});
  }
  for (uint32_t c = r.column; c < uint32_t{r.column} + r.columns; ++c)
    tensor_allocated_[r.home][c] = {warp_party(w, e.instruction), w, clocks_.now(w),
                                    static_cast<Clock>(tensor_warps_[w].commits)};
}

bool RaceProbe::knows(uint32_t w, const TensorColumn& column) const {
  const Clock* seen = clocks_.seen(w);
  return column.clock <= seen[clocks_.warp(column.warp)] ||
         column.commits < seen[clocks_.tensor_core(column.warp)];
}

// What a warp uses of its own block's memory it knows to be allocated, by that block or by the
// other one of its pair: they allocate together.
void RaceProbe::check_allocated(const TensorEvent& e, std::span<const TensorRange> ranges) {
  const uint32_t w = warp(e.warp);
  for (const TensorRange& r : ranges) {
    if (r.home != e.warp.cta_rank || r.columns == 0) continue;
    const TensorColumn& made = tensor_allocated_[r.home][r.column];
    const uint32_t other = r.home ^ 1u;
    if (knows(w, made)) continue;
    if (kernel_.program().pairs && other < blocks() && knows(w, tensor_allocated_[other][r.column]))
      continue;
    Example x;
    x.address = r.column;
    x.block = block_number(r.home);
    add(Problem::kTensorAllocation, warp_party(w, e.instruction), made.party, x);
    return;
  }
}

void RaceProbe::tensor(const TensorEvent& e) {
  const uint32_t w = warp(e.warp);
  TensorWarp& t = tensor_warps_[w];
  log_.next_request();
  if (const auto problem = problem_of(e.naming); problem && !tensor_named_) {
    tensor_named_ = true;  // Where one instruction names lanes so, all do.
    add(*problem, warp_party(w, e.instruction), {}, {});
  }
  TensorAccess a{w, clocks_.warp(w), clocks_.now(w), clocks_.now(w), e.instruction};
  switch (e.action) {
    case TensorAction::kAllocate:
      return allocate_tensor(e);
    case TensorAction::kFree:
      check_allocated(e, e.writes);
      return access_tensor(a, e.writes, true);
    case TensorAction::kLoad:
      t.load = e.instruction;
      a.agent = clocks_.tensor_load(w);
      a.clock = ++t.loads;
      break;
    case TensorAction::kStore:
      t.store = e.instruction;
      a.agent = clocks_.tensor_store(w);
      a.clock = ++t.stores;
      break;
    case TensorAction::kEarlyUse:
      if (t.load)
        add(Problem::kTensorEarly, warp_party(w, e.instruction), warp_party(w, *t.load), {});
      [[fallthrough]];
    case TensorAction::kWaitLoad:
      t.load.reset();
      return clocks_.know(w, clocks_.tensor_load(w), t.loads);
    case TensorAction::kWaitStore:
      t.store.reset();
      return clocks_.know(w, clocks_.tensor_store(w), t.stores);
    case TensorAction::kMultiply:
    case TensorAction::kCopy:
      t.work = e.instruction;
      t.lane = e.lane;
      a.agent = clocks_.tensor_core(w);
      a.clock = static_cast<Clock>(t.commits + 1);
      read_for_tensor(a, e);
      break;
    case TensorAction::kCommit:
      t.commits = e.commit;
      // Of another thread than the one that has issued the work it covers nothing. What the warp
      // knew of others was before its products; its own accesses were not.
      if (t.lane == e.lane) t.work.reset();
      tensor_commits_[{w, e.commit}] =
          clocks_.known_to_core(w, t.lane == e.lane ? static_cast<Clock>(e.commit) : 0);
      clocks_.tick(w);
      return;
    case TensorAction::kCommitLost: {
      Example x;
      x.block = block_number(e.home);
      return add(Problem::kBlockExit, warp_party(w, e.instruction), {}, x);
    }
    case TensorAction::kFenceBefore:
      return clocks_.publish_tensor(w);
    case TensorAction::kFenceAfter: {
      const Clock* published = clocks_.published(w);
      tensor_fenced_[w].assign(published, published + clocks_.width());
      return;
    }
  }
  check_allocated(e, e.reads);
  check_allocated(e, e.writes);
  access_tensor(a, e.reads, false, e.unwritten);
  access_tensor(a, e.writes, true);
}

void RaceProbe::read_for_tensor(const TensorAccess& access, const TensorEvent& e) {
  request_bytes_ = 16;
  const Actor a = async_actor(access.warp, access.agent, access.clock);
  for (const BlockRange& r : e.shared) {
    if (r.home != e.warp.cta_rank)
      use_remote(r.home, a.agent, a.stamp, warp_party(access.warp, e.instruction));
    shadow_.read(a, e.instruction, place(r.home, r.range.address), r.range.bytes, Place::kWarp, 4);
  }
}

// A commit has arrived at an mbarrier: all that the warp had issued before it is done.
void RaceProbe::arrive_commit(const MbarrierEvent& e, Clocks::Release& arriving) {
  const uint32_t w = warp(e.warp);
  const auto first = tensor_commits_.lower_bound({w, 0});
  const auto found = tensor_commits_.find({w, e.commit});
  if (found == tensor_commits_.end()) return;
  Clocks::join(arriving, found->second);
  if (e.home != e.warp.cta_rank)
    use_remote(e.home, clocks_.tensor_core(w), static_cast<Clock>(e.commit),
               warp_party(w, e.instruction));
  tensor_commits_.erase(first, found);  // they arrive in order
}

void RaceProbe::exit_tensor(uint32_t w) {
  const TensorWarp& t = tensor_warps_[w];
  const auto left = [&](const std::optional<uint32_t>& instruction, Problem problem) {
    if (!instruction) return;
    log_.next_request();
    add(problem, warp_party(w, *instruction), {}, {});
  };
  left(t.load, Problem::kTensorNotWaited);
  left(t.store, Problem::kTensorNotWaited);
  left(t.work, Problem::kTensorNotCommitted);
}

}  // namespace ptxvm::observe
