// SPDX-License-Identifier: MIT
#include "ptxvm/trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "observe/timeline.h"

namespace ptxvm {
namespace {

using observe::Timeline;

std::string show(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

class TraceProbe : public Probe {
 public:
  TraceProbe(const Kernel& kernel, const std::vector<uint32_t>& blocks)
      : kernel_(kernel), blocks_(blocks) {}

  void cta_begin(const CtaEvent& e) override {
    if (e.rank == 0) {
      lines_ = std::vector<Line>(e.cluster);
      mbarriers_.clear();
      cluster_arriving_ = cluster_done_ = 0;
    }
    if (std::find(blocks_.begin(), blocks_.end(), e.cta) == blocks_.end()) return;
    Line& line = lines_[e.rank];
    line.time.emplace(kernel_, e.cta, "block " + show(e.position), e.warps);
    line.warps = e.warps;
  }

  void cta_end(const CtaEvent& e) override {
    Line& line = lines_[e.rank];
    if (!line.time) return;
    for (uint32_t w = 0; w < line.warps; ++w) line.time->flush(w);
    recorded_[e.cta] = line.time->events();
    line.time.reset();
  }

  void instruction(const InstructionEvent& e) override {
    if (Line* line = line_of(e.warp)) line->time->step(e.warp.warp, e.instruction);
  }

  void barrier(const BarrierEvent& e) override {
    Line* line = line_of(e.warp);
    if (!line) return;
    uint64_t& last = line->barriers[e.barrier];
    if (e.action != BarrierAction::kComplete) {
      last = std::max(last, line->time->now(e.warp.warp));
      return;
    }
    for (uint16_t w : e.waiters)
      line->time->wait(w, last, e.instruction, "barrier " + std::to_string(e.barrier));
    last = 0;
  }

  void cluster(const ClusterEvent& e) override {
    if (e.action == ClusterAction::kComplete) {
      cluster_done_ = cluster_arriving_;
      cluster_arriving_ = 0;
      return;
    }
    Line* line = line_of(e.warp);
    if (!line) return;
    if (e.action == ClusterAction::kArrive)
      cluster_arriving_ = std::max(cluster_arriving_, line->time->now(e.warp.warp));
    else
      line->time->wait(e.warp.warp, cluster_done_, e.instruction, "cluster");
  }

  void async(const AsyncEvent& e) override {
    Line* line = line_of(e.warp);
    if (!line) return;
    const uint32_t w = e.warp.warp;
    const uint64_t bytes = uint64_t{e.bytes} * static_cast<uint64_t>(__builtin_popcount(e.mask));
    if (e.action == AsyncAction::kIssue) {
      Group& g = line->copies[{w, e.group}];
      if (g.requests++ == 0) g.begin = line->time->now(w) - 1;
      g.bytes += bytes;
    } else if (e.action == AsyncAction::kLand) {
      const auto found = line->copies.find({w, e.group});
      if (found == line->copies.end()) return;
      // Parts of a group land one after the other, in the same wait.
      Group& g = found->second;
      if (--g.requests != 0) return;
      line->time->engine(w, g.begin, line->time->now(w), "cp.async",
                         "cp.async, group " + std::to_string(e.group) + " of warp " +
                             std::to_string(w) + ": " + std::to_string(g.bytes) + " bytes");
      line->copies.erase(found);
    }
  }

  void bulk(const BulkEvent& e) override {
    Line* line = line_of(e.warp);
    if (!line || e.kind == BulkKind::kPrefetch) return;
    const uint32_t w = e.warp.warp;
    if (e.action == BulkAction::kIssue) line->bulk[e.copy] = line->time->now(w) - 1;
    if (e.action != BulkAction::kLand) return;
    const uint64_t end = line->time->latest();
    const std::string to =
        e.home == e.warp.cta_rank ? "" : ", to block " + std::to_string(e.home) + " of the cluster";
    line->time->engine(w, line->bulk[e.copy], end, "bulk copy",
                       std::string(e.kind == BulkKind::kLoad ? "bulk load: " : "bulk store: ") +
                           std::to_string(e.bytes) + " bytes" + to);
    if (e.kind == BulkKind::kLoad) {
      uint64_t& last = mbarriers_[{e.mbarrier_home, e.mbarrier}].arriving;
      last = std::max(last, end);
    }
  }

  void mbarrier(const MbarrierEvent& e) override {
    Mbarrier& m = mbarriers_[{e.home, e.address}];
    if (e.action == MbarrierAction::kPhase) {
      m.done = m.arriving;
      m.arriving = 0;
    }
    Line* line = line_of(e.warp);
    if (!line) return;
    if (e.action == MbarrierAction::kArrive) {
      m.arriving = std::max(m.arriving, line->time->now(e.warp.warp));
    } else if (e.action == MbarrierAction::kWait) {
      line->time->wait(e.warp.warp, m.done, e.instruction,
                       "mbarrier +" + std::to_string(e.address));
    }
  }

  void wgmma(const WgmmaEvent& e) override {
    Line* line = line_of(e.warp);
    if (!line) return;
    const uint32_t w = e.warp.warp, first = e.warpgroup * 4;
    if (e.action == WgmmaAction::kIssue && w == first) {
      Group& g = line->wgmma[{e.warpgroup, e.group}];
      if (g.requests++ == 0) g.begin = line->time->now(w) - 1;
    }
    if (e.action != WgmmaAction::kComplete) return;
    uint64_t last = 0;
    const uint32_t end = std::min(first + 4, line->warps);
    for (uint32_t i = first; i < end; ++i) last = std::max(last, line->time->now(i));
    for (uint32_t i = first; i < end; ++i) line->time->wait(i, last, e.instruction, "wgmma");
    for (auto it = line->wgmma.begin(); it != line->wgmma.end();) {
      if (it->first.first == e.warpgroup && it->first.second < e.group) {
        line->time->engine(first, it->second.begin, last, "wgmma",
                           "wgmma, group " + std::to_string(it->first.second) + ": " +
                               std::to_string(it->second.requests) + " instructions");
        it = line->wgmma.erase(it);
      } else {
        ++it;
      }
    }
  }

  const std::map<uint32_t, std::vector<std::string>>& recorded() const { return recorded_; }

 private:
  struct Group {
    uint64_t begin = 0, bytes = 0, requests = 0;
  };
  struct Mbarrier {
    uint64_t arriving = 0, done = 0;
  };
  // What is known of one block.
  struct Line {
    std::optional<Timeline> time;  // empty where it is not recorded
    uint32_t warps = 0;
    std::map<std::pair<uint32_t, uint64_t>, Group> copies, wgmma;  // by warp or warpgroup, group
    std::map<uint64_t, uint64_t> bulk;                             // issue, by number of the copy
    std::array<uint64_t, 16> barriers{};                           // last arrival
  };

  Line* line_of(const WarpId& warp) {
    Line& line = lines_[warp.cta_rank];
    return line.time ? &line : nullptr;
  }

  const Kernel kernel_;
  const std::vector<uint32_t>& blocks_;
  std::vector<Line> lines_;                                      // by rank in the cluster
  std::map<std::pair<uint32_t, uint32_t>, Mbarrier> mbarriers_;  // by rank, address
  uint64_t cluster_arriving_ = 0, cluster_done_ = 0;
  std::map<uint32_t, std::vector<std::string>> recorded_;
};

}  // namespace

struct Trace::State {
  std::vector<uint32_t> blocks;
  LaunchInfo info;
  std::string json;  // made at the end of the launch: the module may go after it
};

Trace::Trace(std::vector<uint32_t> blocks) : state_(std::make_unique<State>()) {
  state_->blocks = std::move(blocks);
}
Trace::~Trace() = default;

void Trace::begin(const LaunchInfo& info) {
  state_->info = info;
  state_->json.clear();
}

std::unique_ptr<Probe> Trace::make_probe() {
  return std::make_unique<TraceProbe>(state_->info.kernel, state_->blocks);
}

void Trace::end(std::span<const std::unique_ptr<Probe>> probes) {
  std::map<uint32_t, std::vector<std::string>> recorded;
  for (const auto& p : probes) {
    const auto& own = static_cast<const TraceProbe&>(*p).recorded();
    recorded.insert(own.begin(), own.end());
  }
  const LaunchInfo& info = state_->info;
  std::string& text = state_->json;
  text = R"({"displayTimeUnit":"ms","otherData":{"kernel":")" +
         observe::json_text(info.kernel.name()) + R"(","grid":")" + show(info.grid) +
         R"(","block":")" + show(info.block) +
         R"(","axis":"steps, not time: one PTX instruction of a warp is one step, which the )"
         R"(viewer shows as one microsecond"},"traceEvents":[)";
  bool first = true;
  for (const auto& [cta, events] : recorded) {
    for (const std::string& e : events) {
      text += first ? "\n" : ",\n";
      text += e;
      first = false;
    }
  }
  text += "\n]}\n";
}

const std::string& Trace::json() const {
  return state_->json;
}

void Trace::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << json();
  out.flush();
  if (!out) throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

}  // namespace ptxvm
