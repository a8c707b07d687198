// SPDX-License-Identifier: MIT
#include "lower/cfg.h"

#include <algorithm>
#include <queue>

namespace ptxvm {
namespace {

constexpr uint32_t kNone = 0xffffffffu;
// Loops in loops, from here on in the order of the text: a text may nest them as deep as it is
// long.
constexpr int kDeepest = 64;

// Some blocks of the graph, which are entered at one of them. Edges to `cut` do not count.
struct Piece {
  std::vector<uint32_t> blocks;
  uint32_t entry = 0, cut = kNone;
  int depth = 0;
  bool loop = true;  // else one block
};

// Takes pieces apart until they are blocks. All that it holds is by block, however deep loops nest.
class Layout {
 public:
  explicit Layout(const Graph& graph)
      : graph_(graph),
        piece_(graph.size(), 0),
        index_(graph.size(), 0),
        low_(graph.size(), 0),
        component_(graph.size(), kNone),
        on_stack_(graph.size(), false) {}

  std::vector<uint32_t> run() {
    std::vector<uint32_t> out;
    std::vector<Piece> pieces(graph_.empty() ? 0 : 1);
    for (uint32_t i = 0; i < graph_.size(); ++i) pieces[0].blocks.push_back(i);
    while (!pieces.empty()) {
      Piece piece = std::move(pieces.back());
      pieces.pop_back();
      if (!piece.loop) {
        out.push_back(piece.blocks[0]);
      } else if (piece.depth > kDeepest) {
        std::sort(piece.blocks.begin(), piece.blocks.end());
        out.push_back(piece.entry);
        std::copy_if(piece.blocks.begin(), piece.blocks.end(), std::back_inserter(out),
                     [&](uint32_t block) { return block != piece.entry; });
      } else {
        std::vector<Piece> parts = take_apart(piece);
        std::move(parts.rbegin(), parts.rend(), std::back_inserter(pieces));
      }
    }
    return out;
  }

 private:
  struct Frame {
    uint32_t block;
    size_t next = 0;
  };

  bool counts(uint32_t to, const Piece& piece) const {
    return to != piece.cut && piece_[to] == number_;
  }

  void open(uint32_t block) {
    index_[block] = low_[block] = ++counter_;
    stack_.push_back(block);
    on_stack_[block] = true;
    frames_.push_back({block});
  }

  // Strongly connected components that are reachable from the entry (Tarjan; a loop, so that long
  // kernels do not exhaust the stack).
  std::vector<std::vector<uint32_t>> components(const Piece& piece) {
    ++number_;
    for (uint32_t block : piece.blocks) {
      piece_[block] = number_;
      index_[block] = 0;
      component_[block] = kNone;
    }
    std::vector<std::vector<uint32_t>> all;
    open(piece.entry);
    while (!frames_.empty()) {
      Frame& f = frames_.back();
      if (f.next < graph_[f.block].size()) {
        const uint32_t to = graph_[f.block][f.next++];
        if (!counts(to, piece)) continue;
        if (index_[to] == 0) {
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
      const auto number = static_cast<uint32_t>(all.size());
      all.emplace_back();
      uint32_t member;
      do {
        member = stack_.back();
        stack_.pop_back();
        on_stack_[member] = false;
        component_[member] = number;
        all.back().push_back(member);
      } while (member != done);
    }
    return all;
  }

  // Its components in topological order; the one with the earliest block goes first.
  std::vector<Piece> take_apart(const Piece& piece) {
    auto all = components(piece);
    std::vector<uint32_t> waiting(all.size(), 0), first(all.size()), header(all.size(), kNone);
    std::vector<std::vector<uint32_t>> next(all.size());
    for (uint32_t c = 0; c < all.size(); ++c) {
      first[c] = *std::min_element(all[c].begin(), all[c].end());
      for (uint32_t block : all[c]) {
        for (uint32_t to : graph_[block]) {
          if (!counts(to, piece) || component_[to] == c) continue;
          const uint32_t other = component_[to];
          next[c].push_back(other);
          ++waiting[other];
          header[other] = std::min(header[other], to);
        }
      }
    }
    // A loop is entered at the entry itself, else at the earliest block with a predecessor outside.
    header[component_[piece.entry]] = piece.entry;
    using Entry = std::pair<uint32_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (uint32_t c = 0; c < all.size(); ++c) {
      if (waiting[c] == 0) ready.push({first[c], c});
    }
    std::vector<Piece> out;
    while (!ready.empty()) {
      const uint32_t c = ready.top().second;
      ready.pop();
      const bool loop = all[c].size() > 1;
      out.push_back({std::move(all[c]), header[c], header[c], piece.depth + 1, loop});
      for (uint32_t n : next[c]) {
        if (--waiting[n] == 0) ready.push({first[n], n});
      }
    }
    return out;
  }

  const Graph& graph_;
  uint32_t number_ = 0, counter_ = 0;
  // By block: the piece it was last part of, its place in the search, its component.
  std::vector<uint32_t> piece_, index_, low_, component_;
  std::vector<bool> on_stack_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
};

}  // namespace

std::vector<uint32_t> order_blocks(const Graph& successors) {
  return Layout(successors).run();
}

}  // namespace ptxvm
