// SPDX-License-Identifier: MIT
#include "harness/attention/suite.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace fa {
namespace {

constexpr std::array<std::int64_t, 12> kRaggedLengths{1,  2,  15,  16,  17,   63,
                                                      64, 65, 127, 129, 1000, 8191};

struct Lengths {
  std::int64_t q, kv;
};

// Collects the cases of one head_dim and one mask.
class Collector {
 public:
  Collector(const RungConstraints& rung, const RungConstraints::HeadDim& dim, bool causal,
            std::vector<Case>& cases)
      : rung_(rung), dim_(dim), causal_(causal), cases_(cases) {}

  void cache(Suite suite) {
    crossed_ = suite == Suite::full;
    for (const std::int64_t n : {1, 17, 65}) add_cached({.heads = 2, .seq_kv = n}, {kNormal});
    add_cached(
        {.batch = 2, .heads = 8, .seq_kv = 300, .own_kv_heads = 2},
        {Distribution::normal, Distribution::uniform, Distribution::large, Distribution::needle});
    add_cached({.heads = 16, .seq_kv = 640, .own_kv_heads = 4}, growing());
    add_cached({.heads = 16, .seq_kv = 130, .own_kv_heads = 1}, {Distribution::needle});
    add_cached({.heads = 8, .seq_kv = 200, .own_kv_heads = 2}, shifted());
    many_entries();
    ends();
    // An empty entry, a single key, whole blocks and a key beyond.
    add_cached({.batch = 6,
                .heads = 6,
                .seq_kv = 300,
                .own_kv_heads = 2,
                .lengths = {300, 0, 1, 64, 65, 256}},
               {Distribution::normal, Distribution::needle});
    cached_views();
    if (suite == Suite::quick) return;
    add_cached({.batch = 3, .heads = 32, .seq_kv = 1000, .own_kv_heads = 8}, all());
    add_cached({.batch = 16, .heads = 32, .seq_kv = 8192, .own_kv_heads = 8}, {kNormal});
    add_cached({.batch = 2, .heads = 32, .seq_kv = 8192}, {Distribution::needle});
    add_cached({.heads = 32, .seq_kv = 131072, .own_kv_heads = 8},
               {kNormal, Distribution::uniform});
    add_cached({.batch = 64,
                .heads = 32,
                .seq_kv = 4096,
                .own_kv_heads = 8,
                .lengths = random_lengths(64, 4096, 1)},
               {kNormal, Distribution::needle});
  }

  // Views of a model's caches, windows and sinks: entries shorter than a window, than the number of
  // new queries, and empty.
  void cached_views() {
    constexpr std::array<std::array<std::int64_t, 2>, 4> kPaired{
        {{1, 0}, {1, 16}, {5, 64}, {16, 0}}};
    for (const auto [queries, page] : kPaired) {
      Problem plain{.batch = 4,
                    .heads = 6,
                    .seq_q = queries,
                    .seq_kv = 300,
                    .own_kv_heads = 2,
                    .lengths = {300, 70, 3, 0},
                    .page = page};
      if (!takes(plain) || queries > rung_.few_queries) continue;
      if (causal_ && queries == 1) continue;
      for (const bool gaps : {false, true}) {
        if (!can(Capabilities::strided)) break;
        Problem strided = plain;
        strided.strides = row_major_strides(strided);
        // V in a tensor other than that of Q and K.
        for (std::size_t i = 0; gaps && i < 12; ++i)
          if (i % 3 != 1) strided.strides[i] *= i / 3 == 2 ? 5 : 3;
        add_case(strided, {Distribution::needle});
      }
      // Windows that end within a block of keys and at its ends; few thread blocks for their tiles.
      for (const std::int64_t left : {0, 63, 100, -1}) {
        if (!can(Capabilities::windowed)) break;
        Problem windowed = plain;
        windowed.window_left = left;
        windowed.window_right = causal_ ? -1 : left == 63 ? 0 : 2;
        windowed.sinks = can(Capabilities::sinks) && left == 100;
        if (windowed.windowed()) add_case(windowed, {Distribution::needle}, left == 63 ? 3 : 0);
      }
      // Sinks that outweigh all keys, and that weigh nothing.
      Problem sunk = plain;
      sunk.sinks = true;
      if (can(Capabilities::sinks))
        add_case(sunk, {Distribution::normal, Distribution::low, Distribution::high});
    }
  }

  // Several parts, heads and batch entries for each thread block, or a thread block for each part.
  // A warp that looks for its place among the lengths does so 32 entries at a time. The mask does
  // not change that.
  void many_entries() {
    if (causal_ && !crossed_) return;
    add_cached({.heads = 20, .seq_kv = 1100, .own_kv_heads = 10}, {Distribution::needle}, 3);
    // More parts of a head than are merged at a time.
    add_cached({.heads = 2, .seq_kv = 5000, .own_kv_heads = 1}, {{Distribution::normal, 4}});
    const Problem ragged{.batch = 40,
                         .heads = 4,
                         .seq_kv = 400,
                         .own_kv_heads = 2,
                         .lengths = random_lengths(40, 400, 1)};
    // Shares that begin within a head and end within another one.
    const Problem equal{.batch = 36, .heads = 2, .seq_kv = 600, .own_kv_heads = 1};
    for (const int sms : {0, 16}) {
      add_cached(ragged, {Distribution::needle}, sms);
      add_cached(equal, {Distribution::needle}, sms);
    }
    add_cached({.batch = 70, .heads = 2, .seq_kv = 100, .lengths = random_lengths(70, 100, 2)},
               {Distribution::needle}, 1);
    // Every number of parts from 2 to 17: each place of a round of the merge is once the last.
    for (const std::int64_t first : {2, 10}) {
      Problem parts{.batch = 8, .heads = 1, .seq_kv = (first + 7) * kv()};
      for (std::int64_t n = first; n < first + 8; ++n) parts.lengths.push_back(n * kv());
      add_single(parts);
    }
    // The last entry is the first for which the sum over lanes needs one more round, and most
    // shares begin within it. Without pages the heads of two entries are one run of memory.
    for (const std::int64_t batch : {9, 17})
      for (const std::int64_t page : {0, 16})
        add_single({.batch = batch, .heads = 8, .seq_kv = 50, .page = page}, 16);
    // Lengths behind the second 32 entries, several shares of several heads.
    add_single({.batch = 100, .heads = 2, .seq_kv = 40, .lengths = random_lengths(100, 40, 5)}, 16);
    // Lengths are added up four at a time where a lane has that many.
    for (const std::int64_t batch : {100, 130}) {
      add_single({.batch = batch, .heads = 1, .seq_kv = 140});
      add_single(
          {.batch = batch, .heads = 1, .seq_kv = 140, .lengths = random_lengths(batch, 140, 3)});
    }
    // Heads of a single tile, so that the second tile of a share is another head's.
    for (const int sms : {1, 3, 7}) {
      add_single({.batch = 40, .heads = 4, .seq_kv = 50}, sms);
      add_single({.batch = 40, .heads = 4, .seq_kv = 50, .lengths = random_lengths(40, 50, 4)},
                 sms);
    }
  }

  // Where loops over a tile, over heads and over lengths end.
  void ends() {
    for (const std::int64_t n : {60, 120, 170}) add_single({.heads = 2, .seq_kv = n});
    for (const std::int64_t n : {40, 300, 600})
      add_single({.heads = 8, .seq_kv = n, .own_kv_heads = 1});
    add_single({.batch = 2, .heads = 2, .seq_kv = 5, .lengths = {5, 0}});
    add_single({.batch = 3, .heads = 1, .seq_kv = 9, .lengths = {5, 9, 0}});
    // The last entry is empty and has as many heads as a thread block has threads.
    add_single({.batch = 2, .heads = 256, .seq_kv = 5, .own_kv_heads = 32, .lengths = {5, 0}});
    // The cache ends in the second tile of a share.
    add_single({.heads = 2, .seq_kv = 120}, 1);
    add_single({.batch = 6, .heads = 4, .seq_kv = 256, .lengths = {256, 64, 128, 256, 128, 64}}, 1);
    add_single({.batch = 6, .heads = 2, .seq_kv = 80, .page = 16}, 1);
  }

  // The reference of a gradient takes several times as long as that of O.
  void gradients(Suite suite) {
    add(1, 1, tile(), {kNormal});
    add(1, 2, {2 * q(), kv()}, all());
    add(2, 3, square(2 * longest()), {kNeedle, Distribution::uniform});
    add(1, 1, {3 * q(), 5 * kv()}, {kNeedle, Distribution::spike});
    add(2, 2, {5 * q(), 2 * kv()}, {kNormal});
    add_grouped(2, 6, {2 * q(), 2 * kv()}, 2, {kNeedle});
    add_grouped(1, 4, {q(), 3 * kv()}, 1, {kNormal});
    add_grouped(2, 4, square(640), 2, {kNeedle}, 4);  // two key blocks of a head at the same time
    if (can(Capabilities::ragged)) {
      for (const std::int64_t n : {1, 17, 63, 129}) add(1, 2, {n, n}, {kNormal});
      add_grouped(2, 6, {130, 321}, 2, {kNeedle, Distribution::spike});
      add(2, 3, {17, 129}, {kNeedle});
      add(2, 3, {129, 17}, {Distribution::low, Distribution::high});
      // The diagonal one position off the corners of blocks: where loop bounds go wrong by one.
      add(1, 2, {130, 128}, {kNormal});
      add(1, 2, {128, 129}, {kNormal});
      add(1, 2, {257, 321}, {{Distribution::rising, 8}});
      // Under the mask all keys of the second block are hidden, and most queries see none.
      add(1, 2, {300, 20}, {kNormal});
    }
    windowed_gradients();
    packed_gradients(suite);
    if (suite == Suite::quick) return;
    for (const std::int64_t n : {512, 1024, 2048}) add(1, 2, square(n), {kNormal, kNeedle});
    add(1, 1, square(8192), all());
    add(2, 3, square(1024), all());
    add(4, 16, square(2048), {kNormal});
    add_grouped(1, 16, square(1024), 2, {kNormal, Distribution::spike});
    if (!can(Capabilities::ragged)) return;
    for (std::size_t i = 0; i < kRaggedLengths.size(); ++i) {
      const std::int64_t n = kRaggedLengths[i];
      const std::int64_t other = kRaggedLengths[(i + 4) % (kRaggedLengths.size() - 1)];
      add(1, 2, {n, n}, {kNormal});
      add(2, 3, {n, std::min<std::int64_t>(other, 1000)}, {kNeedle});
    }
  }

  // Windows that end within a tile and at its ends, keys that no query sees, queries that see no
  // key, and sinks that outweigh all keys, and that weigh nothing.
  void windowed_gradients() {
    if (!can(Capabilities::windowed)) return;
    struct Window {
      std::int64_t queries, keys, left, right;
    };
    for (const auto& [queries, keys, left, right] : {Window{257, 321, 0, 2},
                                                     {257, 321, 63, 0},
                                                     {320, 300, 100, -1},
                                                     {300, 300, -1, 64},
                                                     {30, 400, 40, 7},
                                                     {400, 30, 5, 1},
                                                     {384, 384, 128, 127}}) {
      Problem windowed{.heads = 4, .seq_q = queries, .seq_kv = keys, .own_kv_heads = 2};
      if (!takes(windowed)) return;
      windowed.window_left = left;
      windowed.window_right = causal_ ? -1 : right;
      windowed.sinks = can(Capabilities::sinks) && left >= 63;
      if (windowed.windowed()) add_case(windowed, {kNeedle});
    }
    Problem sunk{.heads = 2, .seq_q = 130, .seq_kv = 200};
    if (!can(Capabilities::sinks) || !takes(sunk)) return;
    sunk.sinks = true;
    add_case(sunk, {kNormal, Distribution::low, Distribution::high});
  }

  // Views of a model's tensors, and sequences one behind another, as packed() has them.
  void packed_gradients(Suite suite) {
    if (!can(Capabilities::packed)) return;
    const Problem mixed = pack({130, 0, 1, 257, 64, 5, 20}, {321, 40, 128, 257, 0, 129, 1});
    add_case(mixed, {kNeedle, Distribution::spike});
    // Whole tiles, behind which the next sequence begins at once.
    add_case(pack({64, 128, 192, 1}, {128, 256, 1, 128}), {kNeedle});
    // Gradients that lie as their tensors do, and densely beside views of one tensor.
    const Problem dense{.batch = 3, .heads = 4, .seq_q = 70, .seq_kv = 200, .own_kv_heads = 2};
    for (Problem strided : {mixed, dense}) {
      takes(strided);
      strided.strides = row_major_strides(strided);
      if (causal_) strided.strides.resize(12);
      for (std::size_t i = 0; i < 12; ++i)
        if (i % 3 != 1) strided.strides[i] *= 3;
      strided.window_left = 63;
      strided.sinks = strided.packed();
      add_case(strided, {kNormal});
    }
    Problem short_ones = pack(random_lengths(40, 90, 1), random_lengths(40, 90, 2));
    short_ones.heads = 1, short_ones.own_kv_heads = 0;
    add_case(short_ones, {kNeedle});
    if (suite == Suite::quick) return;
    add_case(mixed, all());
    const std::vector<std::int64_t> queries = random_lengths(40, 700, 2);
    add_case(pack(queries, queries), {kNormal, Distribution::spike});
    add_case(pack({200, 4096, 1000, 30, 2048}, {200, 4096, 1000, 30, 2048}), {kNeedle});
  }

  void quick() {
    for (const InputKind& kind : shifted()) add(1, 1, {q(), 2 * kv()}, {kind});
    // Several tiles for each thread block of a persistent kernel, and a ring that goes round.
    add(2, 3, square(640), {Distribution::needle}, 2);
    add(1, 1, {3 * q(), 9 * kv()}, {kNormal}, 1);
    add(1, 1, tile(), {Distribution::normal});
    // A needle shows every index that is wrong: it has the most heads.
    add(2, 3, square(2 * longest()), {Distribution::needle});
    add(1, 1, square(2 * longest()),
        {Distribution::normal, Distribution::uniform, Distribution::large});
    // The maximum grows late: a reference that is not the maximum has to follow.
    for (const InputKind& kind : growing()) add(1, 2, {q(), square(512).kv}, {kind});
    add(1, 1, square(512), {Distribution::normal});
    add(2, 2, {2 * q(), 5 * kv()}, {Distribution::needle});
    add(1, 2, {4 * q(), kv()}, {Distribution::normal});
    if (causal_) add(1, 2, {q(), 5 * kv()}, {Distribution::needle});
    // Repairs are unrolled: spikes in every column of a thread's fragment.
    if (!causal_) add(1, 2, {8 * q(), 2 * kv()}, {Distribution::spike});
    if (!can(Capabilities::ragged)) return;
    add_grouped(2, 6, {130, 321}, 2, {Distribution::needle, Distribution::spike});
    views();
    packed();
    for (const std::int64_t n : {1, 17, 63, 129}) add(1, 2, {n, n}, {Distribution::normal});
    add(2, 3, {17, 129}, {Distribution::needle});
    add(2, 3, {129, 17}, {Distribution::normal});
    // The diagonal one position off the corners of blocks: where loop bounds go wrong by one.
    add(1, 2, {130, 128}, {Distribution::normal});
    add(1, 2, {128, 129}, {Distribution::normal});
    add(1, 2, {65, 321}, {Distribution::spike});
    // One key that a row does not see, in a whole block of keys.
    if (causal_) add(1, 1, {2, kv()}, {Distribution::normal});
    // Repairs in masked iterations, of P that are infinite or nearly so; two tiles for a cluster.
    if (causal_) add(1, 2, {256, 300}, {{Distribution::rising, 8}}, 2);
    // Copies are unrolled, a few rows each: the last row and the last key in every one of them, at
    // the beginning of a copy and in its middle.
    for (std::int64_t row = 8; row < 128 && !causal_; row += 8)
      add(1, 1, {row + (row % 16 == 0 ? 4 : 1), (row * 3) % 128 + 1}, {Distribution::normal});
  }

  // Views of a model's tensors, windows and sinks: few, because an element type has them all.
  void views() {
    const Problem grouped{.batch = 2, .heads = 4, .seq_q = 130, .seq_kv = 321, .own_kv_heads = 2};
    const auto add_kinds = [&](Problem problem, const std::vector<InputKind>& kinds) {
      if (takes(problem)) add_case(problem, kinds);
    };
    if (can(Capabilities::strided)) {
      Problem strided = grouped;
      strided.head_dim = dim_.head_dim;
      strided.strides = row_major_strides(strided);
      // As views of one tensor that holds Q, K and V, and of an O with other columns beside it.
      for (std::size_t i = 0; causal_ && i < 12; ++i)
        if (i % 3 != 1) strided.strides[i] *= 3;
      add_kinds(strided, {causal_ ? Distribution::spike : Distribution::needle});
    }
    // The window ends within a block of keys, at its ends, beside them; rows without a key.
    const auto add_window = [&](std::int64_t left, std::int64_t right, Lengths n, InputKind kind) {
      Problem windowed{.batch = 1, .heads = n.q == n.kv ? 1 : 2, .seq_q = n.q, .seq_kv = n.kv};
      windowed.window_left = left, windowed.window_right = right;
      windowed.sinks = can(Capabilities::sinks) && left % 2 == 0;
      if (can(Capabilities::windowed)) add_kinds(windowed, {kind});
    };
    if (!causal_) {
      for (const std::int64_t right : {-1, 0, 70}) add_window(0, right, {130, 321}, kNeedle);
      for (const std::int64_t left : {63, 128, -1}) add_window(left, 0, {130, 321}, kNeedle);
      add_window(63, 70, {321, 130}, kNormal);
      add_window(128, -1, {321, 130}, kNormal);
      add_window(128, 70, {600, 600}, Distribution::spike);
    } else {
      add_window(0, -1, {321, 130}, kNormal);
      add_window(63, -1, {600, 600}, {Distribution::rising, 8});
      add_window(128, -1, {600, 600}, Distribution::spike);
    }
    // A sink that outweighs all keys, and one that weighs nothing.
    if (can(Capabilities::sinks)) {
      Problem sunk = grouped;
      sunk.batch = 1;
      sunk.sinks = true;
      add_kinds(sunk, {causal_ ? Distribution::high : Distribution::low});
    }
  }

  Problem pack(std::vector<std::int64_t> queries, std::vector<std::int64_t> keys) const {
    Problem problem{.batch = std::ssize(queries),
                    .heads = 4,
                    .seq_q = *std::max_element(queries.begin(), queries.end()),
                    .seq_kv = *std::max_element(keys.begin(), keys.end()),
                    .own_kv_heads = 2,
                    .query_lengths = std::move(queries),
                    .lengths = std::move(keys)};
    takes(problem);
    return problem;
  }

  // Sequences one behind another: empty ones, single rows, ends at and beside the edges of tiles,
  // more queries than keys and fewer.
  void packed(Suite suite = Suite::quick) {
    if (!can(Capabilities::packed)) return;
    const Problem mixed = pack({130, 0, 1, 257, 64, 5, 20}, {321, 40, 128, 257, 0, 129, 1});
    add_case(mixed, {kNeedle, Distribution::spike});
    // Few thread blocks, so that each has tiles of several sequences.
    add_case(pack({1, 300, 128, 127, 0}, {300, 1, 128, 129, 7}), {kNeedle}, 2);
    Problem strided = mixed;
    strided.strides = row_major_strides(strided);
    for (std::size_t i = 0; causal_ && i < 12; ++i)
      if (i % 3 != 1) strided.strides[i] *= 3;
    strided.window_left = 63;
    strided.sinks = true;
    add_case(strided, {kNormal});
    // The scheduler looks at 32 sequences at a time, and first at the longest.
    const std::vector<std::int64_t> many = random_lengths(70, 90, 1);
    Problem short_ones = pack(many, many);
    short_ones.heads = 1, short_ones.own_kv_heads = 0;
    add_case(short_ones, {kNeedle}, 16);
    Problem equal{.batch = 40, .heads = 1, .seq_q = 50, .seq_kv = 50};
    takes(equal);
    add_case(equal, {kNeedle}, 16);
    if (suite == Suite::quick) return;
    add_case(mixed, all());
    const std::vector<std::int64_t> queries = random_lengths(40, 700, 2);
    add_case(pack(queries, queries), {kNormal, Distribution::spike});
    add_case(pack(queries, random_lengths(40, 1500, 3)), {kNeedle});
    Problem hundreds = pack(random_lengths(300, 300, 4), random_lengths(300, 300, 4));
    hundreds.heads = 1, hundreds.own_kv_heads = 0;
    add_case(hundreds, {kNeedle});
    add_case(pack({200, 4096, 1000, 30, 2048}, {200, 4096, 1000, 30, 2048}), {kNeedle});
  }

  void full() {
    quick();
    packed(Suite::full);
    for (const std::int64_t n : {256, 1024, 2048}) add(1, 1, square(n), {Distribution::normal});
    add(1, 1, square(8192), all());
    add(2, 3, square(1), {Distribution::normal});
    add(2, 3, square(1024), all());
    add(4, 16, square(1), {Distribution::normal});
    add(4, 16, square(512), {Distribution::needle, Distribution::large});
    add(4, 16, square(2048), {Distribution::normal});
    add(2, 3, {4 * q(), 9 * kv()}, all());
    add(2, 3, {9 * q(), 2 * kv()}, {Distribution::normal, Distribution::needle});
    add(1, 2, {q(), square(8192).kv}, {Distribution::uniform, Distribution::needle});
    if (!can(Capabilities::ragged)) return;
    for (std::size_t i = 0; i < kRaggedLengths.size(); ++i) {
      const std::int64_t n = kRaggedLengths[i];
      add(1, 2, {n, n}, {Distribution::normal});
      if (n > 1000) continue;
      add(2, 3, {n, n}, {Distribution::needle});
      const std::int64_t other = kRaggedLengths[(i + 4) % (kRaggedLengths.size() - 1)];
      add(2, 3, {n, other}, {Distribution::normal});
      add(2, 3, {other, n}, {Distribution::needle});
      add(1, 2, {other, n}, {Distribution::spike});
    }
  }

 private:
  bool can(Capabilities wanted) const { return has(rung_.capabilities, wanted); }
  std::int64_t q() const { return std::max(1, dim_.multiple_q); }
  std::int64_t kv() const { return std::max(1, dim_.multiple_kv); }
  std::int64_t longest() const { return std::max(q(), kv()); }
  Lengths tile() const { return {q(), kv()}; }
  static std::vector<InputKind> all() { return suite_inputs(); }
  static std::vector<InputKind> growing() {
    return {{Distribution::normal, 4},
            {Distribution::normal, 16},
            Distribution::rising,
            Distribution::spike};
  }

  static std::vector<InputKind> shifted() {
    return {
        Distribution::high, {Distribution::high, 40}, Distribution::low, {Distribution::low, 40}};
  }

  // seq_q == seq_kv == n, rounded up to whole tiles.
  Lengths square(std::int64_t n) const {
    const std::int64_t step = std::max<std::int64_t>(1, std::lcm(q(), kv()));
    const std::int64_t rounded = (n + step - 1) / step * step;
    return {rounded, rounded};
  }

  void add(std::int64_t batch, std::int64_t heads, Lengths n, const std::vector<InputKind>& kinds,
           int sms = 0) {
    Problem problem{batch,         heads,   n.q,         n.kv,
                    dim_.head_dim, causal_, rung_.dtype, can(Capabilities::lse)};
    problem.backward = can(Capabilities::backward);
    add_case(problem, kinds, sms);
  }

  // Heads of K and V that query heads share.
  void add_grouped(std::int64_t batch, std::int64_t heads, Lengths n, std::int64_t kv_heads,
                   const std::vector<InputKind>& kinds, int sms = 0) {
    if (!can(Capabilities::grouped)) return;
    Problem problem{batch,         heads,   n.q,         n.kv,
                    dim_.head_dim, causal_, rung_.dtype, can(Capabilities::lse)};
    problem.own_kv_heads = kv_heads;
    problem.backward = can(Capabilities::backward);
    add_case(problem, kinds, sms);
  }

  // Gives the problem the rung's types; false where the rung does not take it.
  bool takes(Problem& problem) const {
    problem.head_dim = dim_.head_dim;
    problem.dtype = rung_.dtype;
    problem.e4m3 = can(Capabilities::e4m3);
    problem.lse = can(Capabilities::lse);
    problem.causal = causal_;
    problem.backward = can(Capabilities::backward);
    return (problem.packed() ? can(Capabilities::packed)
                             : problem.lengths.empty() || can(Capabilities::lengths)) &&
           (problem.group() == 1 || can(Capabilities::grouped)) &&
           (problem.strides.empty() || can(Capabilities::strided)) &&
           (problem.page == 0 || can(Capabilities::paged));
  }

  // A problem with a cache for one query, which the mask does not change.
  void add_single(Problem problem, int sms = 0) {
    problem.seq_q = 1;
    if (!causal_ && takes(problem)) add_case(problem, {Distribution::needle}, sms);
  }

  // A problem with a cache: for each number of new queries that the rung takes, and in pages. The
  // quick suite has one size of pages, or none, for each number of queries; the other sizes with
  // one query, and further queries, with the last of the kinds.
  void add_cached(Problem problem, const std::vector<InputKind>& kinds, int sms = 0) {
    if (!takes(problem)) return;
    constexpr std::array<std::array<std::int64_t, 2>, 4> kPaired{
        {{1, 0}, {2, 16}, {5, 64}, {16, 0}}};
    for (const auto [queries, own_page] : kPaired) {
      if (queries > rung_.few_queries) break;
      problem.seq_q = queries;
      for (const std::int64_t page : {0, 16, 64}) {
        if (page > 0 && !can(Capabilities::paged)) break;
        const bool own = crossed_ || page == own_page || !can(Capabilities::paged);
        if (!own && queries > 1) continue;
        const bool whole = crossed_ || (own && queries == 1);
        problem.page = page;
        add_case(problem, whole ? kinds : std::vector{kinds.back()}, sms);
      }
    }
  }

  void add_case(const Problem& problem, const std::vector<InputKind>& kinds, int sms = 0) {
    for (const InputKind& kind : kinds) {
      const Case added{problem, kind, sms};
      if (std::find(cases_.begin(), cases_.end(), added) == cases_.end()) cases_.push_back(added);
    }
  }

  static constexpr Distribution kNormal = Distribution::normal;
  static constexpr Distribution kNeedle = Distribution::needle;
  const RungConstraints& rung_;
  const RungConstraints::HeadDim& dim_;
  bool causal_;
  bool crossed_ = true;  // all numbers of queries with all sizes of pages
  std::vector<Case>& cases_;
};

}  // namespace

const char* to_string(Suite suite) {
  return suite == Suite::quick ? "quick" : "full";
}

std::vector<InputKind> suite_inputs() {
  std::vector<InputKind> kinds(all_distributions().begin(), all_distributions().end());
  kinds.emplace_back(Distribution::normal, 4);
  kinds.emplace_back(Distribution::normal, 16);
  kinds.emplace_back(Distribution::low, 40);
  kinds.emplace_back(Distribution::high, 40);
  return kinds;
}

std::vector<Case> suite_cases(Suite suite, const RungConstraints& constraints) {
  std::vector<Case> cases;
  for (const RungConstraints::HeadDim& dim : constraints.head_dims) {
    for (const bool causal : {false, true}) {
      if (causal && !has(constraints.capabilities, Capabilities::causal)) continue;
      Collector collector(constraints, dim, causal, cases);
      if (constraints.few_queries > 0) {
        collector.cache(suite);
      } else if (has(constraints.capabilities, Capabilities::backward)) {
        collector.gradients(suite);
      } else {
        suite == Suite::quick ? collector.quick() : collector.full();
      }
    }
  }
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return a.problem.flops() < b.problem.flops();
  });
  return cases;
}

}  // namespace fa
