// SPDX-License-Identifier: MIT
#include "lower/cfg.h"

#include <algorithm>
#include <queue>

namespace ptxvm {
namespace {

// Strongly connected components of the blocks in `members` that are reachable from `entry`, with
// edges into `cut` removed. Iterative (Tarjan), so that long kernels do not exhaust the stack.
class Components {
 public:
  Components(const Graph& graph, const std::vector<uint32_t>& members, uint32_t entry, int64_t cut)
      : graph_(graph),
        cut_(cut),
        index_(graph.size(), kOutside),
        low_(graph.size(), 0),
        on_stack_(graph.size(), false),
        component_(graph.size(), -1) {
    for (uint32_t m : members) index_[m] = kUnseen;
    visit(entry);
  }

  int of(uint32_t block) const { return component_[block]; }
  const std::vector<std::vector<uint32_t>>& all() const { return all_; }

 private:
  static constexpr uint32_t kOutside = 0xffffffffu;
  static constexpr uint32_t kUnseen = 0xfffffffeu;

  struct Frame {
    uint32_t block;
    size_t next = 0;
  };

  void open(uint32_t block) {
    index_[block] = low_[block] = counter_++;
    stack_.push_back(block);
    on_stack_[block] = true;
    frames_.push_back({block});
  }

  void visit(uint32_t entry) {
    open(entry);
    while (!frames_.empty()) {
      Frame& f = frames_.back();
      if (f.next < graph_[f.block].size()) {
        const uint32_t to = graph_[f.block][f.next++];
        if (static_cast<int64_t>(to) == cut_ || index_[to] == kOutside) continue;
        if (index_[to] == kUnseen) {
          open(to);
        } else if (on_stack_[to]) {
          low_[f.block] = std::min(low_[f.block], index_[to]);
        }
        continue;
      }
      const uint32_t done = f.block;
      frames_.pop_back();
      if (!frames_.empty()) {
        low_[frames_.back().block] = std::min(low_[frames_.back().block], low_[done]);
      }
      if (low_[done] != index_[done]) continue;
      all_.emplace_back();
      uint32_t member;
      do {
        member = stack_.back();
        stack_.pop_back();
        on_stack_[member] = false;
        component_[member] = static_cast<int>(all_.size() - 1);
        all_.back().push_back(member);
      } while (member != done);
    }
  }

  const Graph& graph_;
  int64_t cut_;
  uint32_t counter_ = 0;
  std::vector<uint32_t> index_, low_;
  std::vector<bool> on_stack_;
  std::vector<int> component_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
  std::vector<std::vector<uint32_t>> all_;
};

void lay_out(const Graph& graph, const std::vector<uint32_t>& members, uint32_t entry, int64_t cut,
             std::vector<uint32_t>& out) {
  const Components components(graph, members, entry, cut);
  const auto& all = components.all();

  // Topological order of the components; the one with the earliest block goes first.
  std::vector<uint32_t> waiting(all.size(), 0), first(all.size());
  std::vector<std::vector<int>> next(all.size());
  for (size_t c = 0; c < all.size(); ++c) {
    first[c] = *std::min_element(all[c].begin(), all[c].end());
    for (uint32_t block : all[c]) {
      for (uint32_t to : graph[block]) {
        if (static_cast<int64_t>(to) == cut) continue;
        const int other = components.of(to);
        if (other < 0 || other == static_cast<int>(c)) continue;
        next[c].push_back(other);
        ++waiting[static_cast<size_t>(other)];
      }
    }
  }
  using Entry = std::pair<uint32_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t c = 0; c < all.size(); ++c) {
    if (waiting[c] == 0) ready.push({first[c], c});
  }
  while (!ready.empty()) {
    const size_t c = ready.top().second;
    ready.pop();
    const std::vector<uint32_t>& blocks = all[c];
    bool loop = blocks.size() > 1;
    if (!loop) {
      out.push_back(blocks[0]);
    } else {
      // The header is where the loop is entered: the entry itself, else the earliest block that has
      // a predecessor outside.
      uint32_t header = 0xffffffffu;
      for (uint32_t block : blocks) {
        if (block == entry) header = entry;
      }
      if (header == 0xffffffffu) {
        for (uint32_t from : members) {
          if (components.of(from) < 0 || components.of(from) == static_cast<int>(c)) continue;
          for (uint32_t to : graph[from]) {
            if (components.of(to) == static_cast<int>(c)) header = std::min(header, to);
          }
        }
      }
      if (header == 0xffffffffu) header = first[c];
      lay_out(graph, blocks, header, header, out);
    }
    for (int n : next[c]) {
      if (--waiting[static_cast<size_t>(n)] == 0)
        ready.push({first[static_cast<size_t>(n)], static_cast<size_t>(n)});
    }
  }
}

}  // namespace

std::vector<uint32_t> order_blocks(const Graph& successors) {
  std::vector<uint32_t> members(successors.size());
  for (uint32_t i = 0; i < members.size(); ++i) members[i] = i;
  std::vector<uint32_t> out;
  if (!members.empty()) lay_out(successors, members, 0, -1, out);
  return out;
}

}  // namespace ptxvm
