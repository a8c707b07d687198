// SPDX-License-Identifier: MIT
#include "harness/attention/mutants.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/attention/parallel.h"
#include "harness/attention/rows.h"

namespace fa {

/// What the emulated kernel does differently. The default is the honest kernel.
struct Mutant::Fault {
  enum class Accumulator { nearest, truncate, half };

  std::optional<float> constant = {};
  bool half_keys = false;           // sees the first half of the keys only
  bool swap_keys = false;           // K of key j ^ 8 with V of key j
  bool swap_k_halves = false;       // K's columns c and c + D/2 exchanged
  std::int64_t rotate_columns = 0;  // of O
  std::int64_t rotate_rows = 0;     // of O, within a head
  double temperature_log2 = 0;      // scores multiplied by 2^this
  bool no_scale = false;
  bool no_max = false;          // exp without the maximum taken off
  bool max_from_zero = false;   // the running maximum starts at 0, not at -infinity
  bool no_rescale = false;      // O keeps the weights of the old maximum
  bool no_rescale_sum = false;  // the row sum does
  bool no_normalisation = false;
  bool stale_batch = false;                        // K and V of batch 0 for all
  bool next_head_v = false;                        // V of the next head
  bool missing_tile = false;                       // the middle tile of keys
  bool stale_v_tile = false;                       // odd tiles multiply the V of the tile before
  bool no_mask = false;                            // causal only
  std::int64_t mask_shift = 0;                     // causal only: keys seen too many
  bool top_left_mask = false;                      // causal only
  bool no_window = false;                          // sees what lies before it
  std::int64_t window_shift = 0, right_shift = 0;  // keys that the window is moved, on each side
  bool no_sink = false, sink_twice = false, next_sink = false;
  Accumulator accumulator = Accumulator::nearest;
  double gain = 1;  // on O
  bool one_nan = false;
  bool zero_tail = false;  // the last 16 rows of each head are never written, and are 0

  // A cache, and its keys in parts.
  bool wrong_group = false;       // query head h reads K and V head h % kv_heads
  bool next_page_v = false;       // V of the page after
  bool next_scale = false;        // of K, that of the next head
  bool swap_scales = false;       // K has that of V, V that of K
  std::int64_t length_shift = 0;  // keys too many

  // A packed batch.
  std::int64_t query_shift = 0, key_shift = 0;  // rows that sequences begin late
  bool longest_alignment = false;               // the mask of each is that of the longest
  bool empty_skipped = false;                   // rows of a sequence without keys are not written
  std::int64_t parts = 1;                       // of a row's keys, merged at the end
  bool part_dropped = false;                    // the middle one
  enum class Merge { lse, equal, max } merge = Merge::lse;

  // The reference is the first tile's maximum, and rises only where P would not fit half.
  bool guarded = false;
  bool no_guard = false;         // never
  bool guard_keeps_o = false;    // O stays at the old reference
  bool guard_keeps_sum = false;  // the row sum does
  bool guard_keeps_reference = false;
  bool guard_finite_only = false;  // P that is infinite in FP32 is not computed again
};

namespace {

using Fault = Mutant::Fault;
constexpr const char *kHonest = "honest", *kHonestGuarded = "honest_guarded",
                     *kHonestSplit = "honest_split";
constexpr std::int64_t kTile = 64;
constexpr std::int64_t kParts = 5;
constexpr std::int64_t kVerified = std::int64_t{1} << 26;  ///< products: rows, keys, columns

// The scores of a row of Q and every key, of each row that was needed; the others are empty.
using Scores = std::vector<std::vector<float>>;

// One head of the inputs as floats, K transposed to [D, seq_kv] so that scores vectorise over keys.
struct HeadData {
  const std::vector<float>&q, &k, &v;
  std::optional<float> sink;
  Scores* scores;  // null: not kept
};

// The heads of one problem, each converted once for all mutants. They count over batch * heads of
// Q. What lies behind a length is there too, if it lies anywhere. Scores, in which few mutants
// differ, are kept where many mutants have the same few rows.
class Heads {
 public:
  Heads(const Problem& p, const Inputs& inputs, bool keeps_scores)
      : p_(p), inputs_(inputs), keeps_scores_(keeps_scores) {}

  HeadData of(std::int64_t q_head, std::int64_t k_head, std::int64_t v_head, const Fault& fault) {
    const std::int64_t next = k_head / p_.heads * p_.heads + (k_head + p_.group()) % p_.heads;
    float k_scale = inputs_.k_scale(p_, fault.next_scale ? next : k_head);
    float v_scale = inputs_.v_scale(p_, v_head);
    if (fault.swap_scales) std::swap(k_scale, v_scale);
    std::optional<float> sink;
    if (p_.sinks) sink = inputs_.sinks[idx((q_head + (fault.next_sink ? 1 : 0)) % p_.heads)];
    const std::int64_t shift = fault.next_page_v ? p_.page : fault.key_shift;
    const std::vector<float>&of_q = q(q_head, fault.query_shift),
          &of_k = k(k_head, k_scale, fault.key_shift);
    Scores* scores = nullptr;
    if (keeps_scores_ && !fault.swap_k_halves) {
      scores = &scores_[{&of_q, &of_k}];
      scores->resize(idx(p_.queries(q_head / p_.heads)));
    }
    return {of_q, of_k, v(v_head, v_scale, shift), sink, scores};
  }

 private:
  // By head, factor and by how many rows they come from behind.
  using Made = std::map<std::tuple<std::int64_t, float, std::int64_t>, std::vector<float>>;

  const std::vector<float>& q(std::int64_t head, std::int64_t shift) {
    const auto [found, is_new] = q_.try_emplace({head, 1.0f, shift});
    std::vector<float>& out = found->second;
    if (!is_new) return out;
    const std::int64_t size = p_.queries(head / p_.heads) * p_.head_dim;
    const std::int64_t first = (q_row(p_, head, 0) + shift) * p_.head_dim;
    out.resize(idx(size));
    for (std::int64_t i = 0; i < size; ++i)
      out[idx(i)] = inputs_.q.at(std::clamp<std::int64_t>(first + i, 0, inputs_.q.size() - 1));
    return out;
  }

  const std::vector<float>& k(std::int64_t head, float scale, std::int64_t shift) {
    return keys(k_, {head, scale, shift},
                [&](std::vector<float>& out, std::int64_t row, std::int64_t j) {
                  for (std::int64_t c = 0; c < p_.head_dim; ++c) {
                    out[idx(c * p_.seq_kv + j)] = scale * inputs_.k.at(row * p_.head_dim + c);
                  }
                });
  }

  const std::vector<float>& v(std::int64_t head, float scale, std::int64_t shift) {
    return keys(v_, {head, scale, shift},
                [&](std::vector<float>& out, std::int64_t row, std::int64_t j) {
                  for (std::int64_t c = 0; c < p_.head_dim; ++c) {
                    out[idx(j * p_.head_dim + c)] = scale * inputs_.v.at(row * p_.head_dim + c);
                  }
                });
  }

  /// `put` copies a stored row to key j.
  template <typename Put>
  const std::vector<float>& keys(Made& made, const Made::key_type& key, Put put) {
    const auto& [head, scale, shift] = key;
    const auto [found, is_new] = made.try_emplace(key);
    std::vector<float>& out = found->second;
    if (!is_new) return out;
    out.resize(idx(p_.seq_kv * p_.head_dim));
    const std::int64_t length = std::max<std::int64_t>(1, p_.length(head / p_.heads));
    const std::int64_t rows = inputs_.k.size() / p_.head_dim;
    parallel_for(p_.seq_kv, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        const std::int64_t source = p_.packed() || shift == 0 ? j + shift : (j + shift) % length;
        put(out, std::clamp<std::int64_t>(kv_row(p_, inputs_, head, source), 0, rows - 1), j);
      }
    });
    return out;
  }

  const Problem& p_;
  const Inputs& inputs_;
  Made q_, k_, v_;
  bool keeps_scores_;
  std::map<std::pair<const std::vector<float>*, const std::vector<float>*>, Scores> scores_;
};

float truncate_to_float(double value) {
  const auto nearest = static_cast<float>(value);
  return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0f)
                                                                  : nearest;
}

Problem::Keys keys_seen(const Problem& p, const Fault& fault, std::int64_t head, std::int64_t row) {
  auto [first, seen] = visible_keys(p, row, head);
  if (p.causal && fault.longest_alignment)
    seen = std::clamp<std::int64_t>(row + 1 + p.seq_kv - p.seq_q, 0, p.length(head / p.heads));
  if (p.windowed()) {
    if (fault.no_window) first = 0;
    first = std::clamp<std::int64_t>(first + fault.window_shift, 0, seen);
    if (p.window_right >= 0) seen = std::min(seen + fault.right_shift, p.length(head / p.heads));
  }
  if (!p.lengths.empty()) {
    seen = std::clamp<std::int64_t>(seen + fault.length_shift, 0, p.seq_kv);
  }
  if (p.causal) {
    if (fault.no_mask) seen = p.seq_kv;
    if (fault.top_left_mask) seen = std::min(row + 1, p.seq_kv);
    seen = std::clamp<std::int64_t>(seen + fault.mask_shift, 0, p.seq_kv);
  }
  if (fault.half_keys) seen = std::min(seen, (p.seq_kv + 1) / 2);
  return {std::min(first, seen), seen};
}

// A row on its way through the tiles.
struct RowState {
  float reference = -std::numeric_limits<float>::infinity();  // of the scores
  float sum = 0;
  std::vector<float> o = {};

  void scale_o(float by) {
    for (float& value : o) value *= by;
  }
};

// 2^(factor * (s - reference)).
void exponentials(std::span<float> s, float factor, float reference) {
  for (float& value : s) value = std::exp2(value * factor - reference * factor);
}

// Turns the scores of a tile into weights: the reference is the running maximum.
void online_softmax(std::span<float> s, float factor, const Fault& fault, RowState& row) {
  if (fault.max_from_zero) row.reference = std::max(row.reference, 0.0f);
  float m = std::max(row.reference, *std::max_element(s.begin(), s.end()));
  if (fault.no_max) m = 0;
  const float rescale = std::exp2((row.reference - m) * factor);
  if (!fault.no_rescale_sum && !fault.no_max) row.sum *= rescale;
  if (!fault.no_rescale && !fault.no_max) row.scale_o(rescale);
  row.reference = m;
  exponentials(s, factor, m);
  for (const float p : s) row.sum += p;
}

// The same with the guard: the reference stays until a sum of weights is large enough that one of
// them might not fit half. It then rises by a whole number of powers of two, which scales exactly.
void guarded_softmax(std::span<float> s, float factor, const Fault& fault, RowState& row) {
  constexpr float kLargestSum = 0x1p15f;
  const std::vector<float> scores(s.begin(), s.end());
  const float largest_score = *std::max_element(s.begin(), s.end());
  const bool first = std::isinf(row.reference);
  if (first) row.reference = largest_score;
  exponentials(s, factor, row.reference);
  const float sum = std::accumulate(s.begin(), s.end(), 0.0f);
  if (!first && sum > kLargestSum && !fault.no_guard) {
    int exponent = 0;
    const float largest = *std::max_element(s.begin(), s.end());
    if (std::isfinite(largest)) {
      std::frexp(largest, &exponent);
    } else {
      exponent = static_cast<int>(std::ceil((largest_score - row.reference) * factor));
    }
    const float by = std::ldexp(1.0f, -exponent);
    const float raised = row.reference + static_cast<float>(exponent) / factor;
    if (!fault.guard_keeps_o) row.scale_o(by);
    if (!fault.guard_keeps_sum) row.sum *= by;
    if (!fault.guard_keeps_reference) row.reference = raised;
    if (std::isfinite(largest) || fault.guard_finite_only) {
      for (float& p : s) p *= by;
    } else {
      std::copy(scores.begin(), scores.end(), s.begin());
      exponentials(s, factor, raised);
    }
  }
  for (const float p : s) row.sum += p;
}

// Adds the rows to `out`, each by its weight, one after the other; four at a time, as most of the
// time goes into loading and storing `out`.
template <typename Row>
void add_rows(const float* weights, std::int64_t rows, Row row, float* out, std::int64_t size) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float *a = row(i), *b = row(i + 1), *c = row(i + 2), *d = row(i + 3), *w = weights + i;
    const float wa = w[0], wb = w[1], wc = w[2], wd = w[3];
    for (std::int64_t j = 0; j < size; ++j)
      out[j] = out[j] + wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j];
  }
  for (; i < rows; ++i) {
    const float* a = row(i);
    for (std::int64_t j = 0; j < size; ++j) out[j] += weights[i] * a[j];
  }
}

// Q K^T of a row with these keys; the others are left as they are.
void multiply_keys(const Problem& p, const HeadData& head, std::int64_t row, Problem::Keys keys,
                   const Fault& fault, std::vector<float>& scores) {
  const std::int64_t d = p.head_dim, n = p.seq_kv;
  const float* q = &head.q[idx(row * d)];
  scores.resize(idx(n));
  constexpr std::int64_t kAtOnce = 512;  // stay in the first cache
  for (std::int64_t first = keys.begin; first < keys.end; first += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, keys.end - first);
    float* s = &scores[idx(first)];
    std::fill(s, s + count, 0.0f);
    const auto column = [&](std::int64_t c) {
      return &head.k[idx((fault.swap_k_halves ? (c + d / 2) % d : c) * n + first)];
    };
    add_rows(q, d, column, s, count);
  }
}

// A row's keys in a fused kernel, tile by tile.
RowState flash_keys(const Problem& p, const HeadData& head, const std::vector<float>& scores,
                    Problem::Keys keys_of_part, std::int64_t tile, const Fault& fault,
                    float factor) {
  const std::int64_t d = p.head_dim, n = p.seq_kv, seen = keys_of_part.end;
  RowState state{.o = std::vector<float>(idx(d), 0.0f)};
  std::vector<float>& o = state.o;
  std::vector<float> s(idx(tile));
  std::vector<double> sums;
  for (std::int64_t first = keys_of_part.begin; first < seen; first += tile) {
    const std::int64_t count = std::min(tile, seen - first), t = first / tile;
    if (fault.missing_tile && t == (n + tile - 1) / tile / 2) continue;
    std::copy_n(&scores[idx(first)], count, s.begin());
    if (fault.swap_keys) {
      for (std::int64_t j = 0; j + 8 < count; ++j) {
        if ((j & 8) == 0) std::swap(s[idx(j)], s[idx(j + 8)]);
      }
    }
    const std::span<float> weights(s.data(), idx(count));
    fault.guarded ? guarded_softmax(weights, factor, fault, state)
                  : online_softmax(weights, factor, fault, state);
    for (float& weight : weights) weight = rounded_to(p.dtype, weight);
    const float* v = &head.v[idx((fault.stale_v_tile && t % 2 == 1 ? first - tile : first) * d)];
    constexpr std::int64_t kStep = 16;  // keys of one mma
    for (std::int64_t j = 0; j < count; j += kStep) {
      const std::int64_t keys = std::min(kStep, count - j);
      if (fault.accumulator == Fault::Accumulator::nearest) {
        add_rows(
            &s[idx(j)], keys, [&](std::int64_t i) { return v + (j + i) * d; }, o.data(), d);
        continue;
      }
      sums.assign(o.begin(), o.end());
      for (std::int64_t i = j; i < j + keys; ++i) {
        const auto weight = static_cast<double>(s[idx(i)]);
        for (std::int64_t c = 0; c < d; ++c)
          sums[idx(c)] += weight * static_cast<double>(v[i * d + c]);
      }
      for (std::int64_t c = 0; c < d; ++c) {
        o[idx(c)] = fault.accumulator == Fault::Accumulator::half
                        ? round_to_half(static_cast<float>(sums[idx(c)]))
                        : truncate_to_float(sums[idx(c)]);
      }
    }
  }
  return state;
}

// Parts of a row become one: each weighs what its reference and its sum say, or what a wrong merge
// says.
RowState merged(const std::vector<RowState>& parts, float factor, const Fault& fault) {
  RowState all{.o = std::vector<float>(parts.front().o.size(), 0.0f)};
  for (const RowState& part : parts) all.reference = std::max(all.reference, part.reference);
  for (const RowState& part : parts) {
    if (part.sum == 0) continue;
    float weight = std::exp2((part.reference - all.reference) * factor);
    if (fault.merge == Fault::Merge::equal) weight = 1 / part.sum;
    if (fault.merge == Fault::Merge::max) weight /= part.sum;
    for (std::size_t c = 0; c < all.o.size(); ++c) all.o[c] += weight * part.o[c];
    all.sum += weight * part.sum;
  }
  return all;
}

// One row of a fused kernel, in one part or several.
void flash_row(const Problem& p, const HeadData& head, RowId id, std::int64_t tile,
               const Fault& fault, float* out) {
  const double temperature = std::exp2(fault.temperature_log2) * (fault.no_scale ? 1 : p.scale());
  const auto factor = static_cast<float>(temperature * std::numbers::log2e);
  const std::int64_t d = p.head_dim;
  const auto [first, seen] = keys_seen(p, fault, id.head, id.row);
  const std::int64_t share = (seen - first + fault.parts - 1) / fault.parts;
  // A row of the output is computed by one thread, and has one row of scores.
  std::vector<float> own;
  std::vector<float>& scores = head.scores ? (*head.scores)[idx(id.row)] : own;
  if (scores.empty()) {
    const Problem::Keys needed =
        head.scores ? Problem::Keys{0, p.seq_kv} : Problem::Keys{first, seen};
    multiply_keys(p, head, id.row, needed, fault, scores);
  }
  std::vector<RowState> parts;
  for (std::int64_t i = 0; i < fault.parts; ++i) {
    if (fault.part_dropped && i == fault.parts / 2) continue;
    const Problem::Keys keys{std::min(first + i * share, seen),
                             std::min(first + (i + 1) * share, seen)};
    parts.push_back(flash_keys(p, head, scores, keys, tile, fault, factor));
  }
  RowState state = fault.parts == 1 ? std::move(parts.front()) : merged(parts, factor, fault);
  for (int i = fault.no_sink ? 0 : fault.sink_twice ? 2 : 1; head.sink && i > 0; --i) {
    const float sink = *head.sink / static_cast<float>(p.scale());  // among the scores unscaled
    const float top = std::max(state.reference, sink),
                by = std::exp2((state.reference - top) * factor);
    state.sum = state.sum * by + std::exp2((sink - top) * factor);
    state.scale_o(by);
    state.reference = top;
  }
  const float inverse = fault.no_normalisation ? 1.0f : 1.0f / state.sum;
  for (std::int64_t c = 0; c < d; ++c) {
    const float value =
        state.sum == 0 ? 0.0f : state.o[idx((c + fault.rotate_columns) % d)] * inverse;
    out[c] = fault.constant.value_or(static_cast<float>(fault.gain) * value);
  }
}

HostTensor faulty_output(const Problem& p, Heads& heads, std::int64_t tile, const Fault& fault,
                         const std::vector<RowId>* only) {
  std::vector<RowId> all;
  if (only == nullptr) {
    for (std::int64_t h = 0; h < p.batch * p.heads; ++h) {
      for (std::int64_t i = 0; i < p.queries(h / p.heads); ++i) all.push_back({h, i});
    }
    only = &all;
  }
  HostTensor output = make_tensor(p.dtype, q_shape(p), 0.0f);
  for (auto begin = only->begin(); begin != only->end();) {
    const std::int64_t h = begin->head;
    const auto end = std::find_if(begin, only->end(), [h](RowId r) { return r.head != h; });
    const std::int64_t entry = h / p.heads, own = h % p.heads;
    // A query head whose group is the one that the kernel takes.
    const std::int64_t shared = fault.wrong_group ? own % p.kv_heads() * p.group() : own;
    const std::int64_t kv = (fault.stale_batch ? 0 : entry * p.heads) + shared;
    const std::int64_t next = entry * p.heads + (own + p.group()) % p.heads;
    const HeadData head = heads.of(h, kv, fault.next_head_v ? next : kv, fault);
    const std::int64_t rows = p.queries(entry);
    parallel_for(end - begin, 4, [&](std::int64_t first, std::int64_t last) {
      std::vector<float> row(idx(p.head_dim));
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t i = begin[r].row;
        if (fault.zero_tail && i >= rows - 16) continue;
        const RowId source{h, (i + fault.rotate_rows) % rows};
        flash_row(p, head, source, tile, fault, row.data());
        if (fault.empty_skipped && p.length(entry) == 0)
          std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
        for (std::int64_t c = 0; c < p.head_dim; ++c) {
          output.set(q_row(p, h, i) * p.head_dim + c, row[idx(c)]);
        }
      }
    });
    begin = end;
  }
  if (fault.one_nan) {
    output.set(output.size() / 8 * 5, std::numeric_limits<float>::quiet_NaN());
  }
  return output;
}

HostTensor faulty_output(const Problem& p, const Inputs& inputs, std::int64_t tile,
                         const Fault& fault, const std::vector<RowId>* only) {
  Heads heads(p, inputs, false);
  return faulty_output(p, heads, tile, fault, only);
}

// Why a fault is out of reach of some inputs.
using Invisible = const char* (*)(const Problem&, Distribution);

const char* always_visible(const Problem&, Distribution) {
  return nullptr;
}
const char* one_key(const Problem& p, Distribution) {
  return p.seq_kv < 2 ? "there is a single key" : nullptr;
}
const char* few_keys(const Problem& p, Distribution) {
  return p.seq_kv <= 8 ? "there are no 9 keys" : nullptr;
}
const char* one_tile(const Problem& p, Distribution) {
  return p.seq_kv <= kTile ? "there is a single tile" : nullptr;
}
const char* few_rows(const Problem& p, Distribution) {
  return 16 % p.seq_q == 0 ? "16 is a whole number of turns" : nullptr;
}
const char* one_batch(const Problem& p, Distribution) {
  return p.batch < 2 ? "there is a single batch" : nullptr;
}
const char* one_head(const Problem& p, Distribution) {
  return p.kv_heads() < 2 ? "there is a single head of K and V" : nullptr;
}
const char* not_causal(const Problem& p, Distribution) {
  return p.causal ? nullptr : "there is no mask";
}
const char* square(const Problem& p, Distribution) {
  return p.causal && p.seq_q != p.seq_kv ? nullptr : "the two alignments coincide";
}
const char* in_range(const Problem& p, Distribution distribution) {
  const bool far_up = distribution == Distribution::large || distribution == Distribution::spike ||
                      distribution == Distribution::low || distribution == Distribution::high ||
                      (distribution == Distribution::rising && p.seq_kv >= 512);
  return p.dtype == Dtype::f16 && far_up ? nullptr : "the same function while exp stays in range";
}
const char* not_low(const Problem&, Distribution distribution) {
  return distribution == Distribution::low ? nullptr : "some score of a row is not far below 0";
}
const char* short_sums(const Problem& p, Distribution distribution) {
  return p.seq_kv < 512 || distribution == Distribution::rising
             ? "short sums lose no more than P's own rounding"
             : nullptr;
}
// Rising scores leave all weight to the last 128 keys that a row sees.
const char* middle_is_idle(const Problem& p, Distribution distribution) {
  const bool some_row_ends_there = p.causal && 2 * (p.seq_kv - p.seq_q) < p.seq_kv;
  return distribution == Distribution::rising && !some_row_ends_there ? "the last keys decide a row"
                                                                      : nullptr;
}
const char* odd_tile(const Problem& p, Distribution distribution) {
  const bool even_tile_decides = !p.causal && (p.seq_kv - 1) / kTile % 2 == 0;
  return distribution == Distribution::rising && even_tile_decides ? "the last keys decide a row"
                                                                   : one_tile(p, distribution);
}
const char* guard_is_idle(const Problem& p, Distribution distribution) {
  if (p.dtype != Dtype::f16) return "P is not rounded to half";
  if (p.seq_kv <= 2 * kTile) return "the maximum lies in the first tile";
  const bool sure = distribution == Distribution::rising || distribution == Distribution::spike;
  return sure ? nullptr : "few rows have a P too large for half, or none";
}
const char* nothing_follows(const Problem& p, Distribution distribution) {
  return p.seq_kv <= 3 * kTile || p.windowed() ? "no tile follows one that is repaired"
                                               : guard_is_idle(p, distribution);
}
const char* always_finite(const Problem& p, Distribution distribution) {
  return distribution == Distribution::spike ? guard_is_idle(p, distribution)
                                             : "P is finite in FP32";
}

const char* not_grouped(const Problem& p, Distribution) {
  return p.group() > 1 && p.kv_heads() > 1 ? nullptr : "no two groups of heads";
}
const char* one_page(const Problem& p, Distribution) {
  return p.table_width() > 1 ? nullptr : "there are no two pages";
}
const char* no_scales(const Problem& p, Distribution distribution) {
  return p.e4m3 ? one_head(p, distribution) : "K and V have no scales";
}
const char* one_length(const Problem& p, Distribution) {
  if (p.packed() && p.causal) return "only the last row of a sequence sees its last key";
  return p.lengths.empty() ? "every batch entry has all keys" : nullptr;
}
const char* not_packed(const Problem& p, Distribution) {
  return p.packed() ? nullptr : "the batch is not packed";
}
const char* not_packed_causal(const Problem& p, Distribution distribution) {
  return p.causal ? not_packed(p, distribution) : "there is no mask";
}
const char* no_window(const Problem& p, Distribution) {
  return p.windowed() ? nullptr : "there is no window";
}
const char* no_sinks(const Problem& p, Distribution distribution) {
  if (!p.sinks) return "there are no sinks";
  const bool near = distribution == Distribution::normal || distribution == Distribution::uniform ||
                    distribution == Distribution::needle;
  return near ? nullptr : "the sink, or all keys, weigh nothing in some rows";
}
const char* few_parts(const Problem& p, Distribution) {
  return p.seq_kv < kParts ? "there are fewer keys than parts" : nullptr;
}
const char* middle_part_is_idle(const Problem& p, Distribution distribution) {
  const char* few = few_parts(p, distribution);
  return few != nullptr ? few : middle_is_idle(p, distribution);
}
const char* equal_parts(const Problem& p, Distribution distribution) {
  return distribution == Distribution::uniform && p.seq_kv > 1000 ? "the parts weigh the same"
                                                                  : few_parts(p, distribution);
}
// Rising scores leave all weight to the last 128 keys that a row sees.
const char* one_part_decides(const Problem& p, Distribution distribution) {
  return distribution == Distribution::rising && p.seq_kv / kParts >= kRiseKeys
             ? "the last keys decide a row"
             : few_parts(p, distribution);
}

constexpr Fault::Accumulator kHalf = Fault::Accumulator::half;
const double kLogLn2 = std::log2(std::numbers::ln2);

const Fault kConstant{.constant = 0.5f};
const Fault kHalfKeys{.half_keys = true};
const Fault kSwapKeys{.swap_keys = true};
const Fault kSwapKHalves{.swap_k_halves = true};
const Fault kRotateColumns{.rotate_columns = 8};
const Fault kRotateRows{.rotate_rows = 16};
const Fault kNoScale{.no_scale = true};
const Fault kWrongBase{.temperature_log2 = kLogLn2};
const Fault kNoMax{.no_max = true};
const Fault kMaxFromZero{.max_from_zero = true};
const Fault kNoRescale{.no_rescale = true};
const Fault kNoRescaleSum{.no_rescale_sum = true};
const Fault kNoNormalisation{.no_normalisation = true};
const Fault kStaleBatch{.stale_batch = true};
const Fault kNextHeadV{.next_head_v = true};
const Fault kMissingTile{.missing_tile = true};
const Fault kStaleVTile{.stale_v_tile = true};
const Fault kNoMask{.no_mask = true};
const Fault kMaskLate{.mask_shift = 1};
const Fault kMaskEarly{.mask_shift = -1};
const Fault kTopLeft{.top_left_mask = true};
const Fault kHalfAccumulator{.accumulator = kHalf};
const Fault kGain{.gain = 1.005};
const Fault kOneNan{.one_nan = true};
const Fault kZeroTail{.zero_tail = true};
const Fault kWrongGroup{.wrong_group = true};
const Fault kNextPageV{.next_page_v = true};
const Fault kNextScale{.next_scale = true};
const Fault kSwapScales{.swap_scales = true};
const Fault kLengthLate{.length_shift = 1};
const Fault kLengthEarly{.length_shift = -1};
const Fault kQueriesLate{.query_shift = 1};
const Fault kQueriesEarly{.query_shift = -1};
const Fault kKeysLate{.key_shift = 1};
const Fault kKeysEarly{.key_shift = -1};
const Fault kLongestAlignment{.longest_alignment = true};
const Fault kEmptySkipped{.empty_skipped = true};
const Fault kNoWindow{.no_window = true};
const Fault kWindowLate{.window_shift = -1};
const Fault kWindowEarly{.window_shift = 1};
const Fault kRightLate{.right_shift = 1};
const Fault kNoSink{.no_sink = true};
const Fault kSinkTwice{.sink_twice = true};
const Fault kNextSink{.next_sink = true};
const Fault kSplit{.parts = kParts};
const Fault kPartDropped{.parts = kParts, .part_dropped = true};
const Fault kMergedEqually{.parts = kParts, .merge = Fault::Merge::equal};
const Fault kMergedByMax{.parts = kParts, .merge = Fault::Merge::max};
const Fault kGuarded{.guarded = true};
const Fault kNoGuard{.guarded = true, .no_guard = true};
const Fault kGuardKeepsO{.guarded = true, .guard_keeps_o = true};
const Fault kGuardKeepsSum{.guarded = true, .guard_keeps_sum = true};
const Fault kGuardKeepsReference{.guarded = true, .guard_keeps_reference = true};
const Fault kGuardFiniteOnly{.guarded = true, .guard_finite_only = true};

const Mutant kMutants[] = {
    {"constant", "every element is 0.5", always_visible, &kConstant},
    {"half_keys", "the second half of the keys is dropped", one_key, &kHalfKeys},
    {"keys_permuted", "key j is scored with the K of key j ^ 8", few_keys, &kSwapKeys},
    {"k_halves_swapped", "the halves of K's columns are exchanged", always_visible, &kSwapKHalves},
    {"columns_rotated", "columns of O rotated by 8", always_visible, &kRotateColumns},
    {"rows_rotated", "rows of O rotated by 16", few_rows, &kRotateRows},
    {"no_scale", "scores are not divided by sqrt(D)", one_key, &kNoScale},
    {"wrong_base", "exp2 without log2(e) in the scale", one_key, &kWrongBase},
    {"no_max", "exp without the maximum taken off", in_range, &kNoMax},
    {"max_from_zero", "the running maximum starts at 0", not_low, &kMaxFromZero},
    {"no_rescale", "O is not rescaled when the maximum grows", one_tile, &kNoRescale},
    {"no_rescale_sum", "the row sum is not rescaled", one_tile, &kNoRescaleSum},
    {"no_normalisation", "O is not divided by the row sum", one_key, &kNoNormalisation},
    {"stale_batch", "K and V of batch 0 for every batch", one_batch, &kStaleBatch},
    {"next_head_v", "V of the next head", one_head, &kNextHeadV},
    {"missing_tile", "the middle tile of keys is skipped", middle_is_idle, &kMissingTile},
    {"stale_v_tile", "odd tiles multiply the V of the tile before", odd_tile, &kStaleVTile},
    {"no_mask", "the causal mask is ignored", not_causal, &kNoMask},
    {"mask_late", "each row sees one key too many", not_causal, &kMaskLate},
    {"mask_early", "each row sees one key too few", not_causal, &kMaskEarly},
    {"top_left_mask", "the mask is aligned top left", square, &kTopLeft},
    {"half_accumulator", "P V accumulates in FP16", short_sums, &kHalfAccumulator},
    {"gain", "O is 0.5 % too large", always_visible, &kGain},
    {"one_nan", "one element is NaN", always_visible, &kOneNan},
    {"zero_tail", "the last 16 rows of each head are 0", always_visible, &kZeroTail},
    {"wrong_group", "grouped heads: query head h reads K and V head h % kv_heads", not_grouped,
     &kWrongGroup},
    {"wrong_page", "pages: V of the page after", one_page, &kNextPageV},
    {"next_scale", "e4m3: K has the scale of the next head", no_scales, &kNextScale},
    {"scales_swapped", "e4m3: K has the scale of V, V that of K", no_scales, &kSwapScales},
    {"length_late", "lengths: a key too many", one_length, &kLengthLate},
    {"length_early", "lengths: a key too few", one_length, &kLengthEarly},
    {"queries_late", "packed: Q of a sequence begins a row late", not_packed, &kQueriesLate},
    {"queries_early", "packed: Q of a sequence begins a row early", not_packed, &kQueriesEarly},
    {"keys_late", "packed: K and V of a sequence begin a row late", not_packed, &kKeysLate},
    {"keys_early", "packed: K and V of a sequence begin a row early", not_packed, &kKeysEarly},
    {"longest_alignment", "packed: the mask is aligned as that of the longest sequence",
     not_packed_causal, &kLongestAlignment},
    {"empty_skipped", "packed: rows of a sequence without keys are not written", not_packed,
     &kEmptySkipped},
    {"no_window", "window: what lies before it is seen", no_window, &kNoWindow},
    {"window_late", "window: a key too many before the query", no_window, &kWindowLate},
    {"window_early", "window: a key too few before the query", no_window, &kWindowEarly},
    {"right_late", "window: a key too many behind the query", no_window, &kRightLate},
    {"no_sink", "sinks: none is added", no_sinks, &kNoSink},
    {"sink_twice", "sinks: added twice", no_sinks, &kSinkTwice},
    {"next_sink", "sinks: that of the next head", no_sinks, &kNextSink},
    {"split_dropped", "split keys: one of five parts is not merged", middle_part_is_idle,
     &kPartDropped},
    {"merged_equally", "split keys: the parts have equal weights", equal_parts, &kMergedEqually},
    {"merged_by_max", "split keys: a part weighs exp of its maximum, not of its log-sum-exp",
     one_part_decides, &kMergedByMax},
    {"guard_removed", "guarded: P too large for half is not repaired", guard_is_idle, &kNoGuard},
    {"guard_keeps_o", "guarded: O is not repaired with P", guard_is_idle, &kGuardKeepsO},
    {"guard_keeps_sum", "guarded: the row sum is not repaired with P", guard_is_idle,
     &kGuardKeepsSum},
    {"guard_keeps_reference", "guarded: the reference is not raised", nothing_follows,
     &kGuardKeepsReference},
    {"guard_finite_only", "guarded: P that is infinite in FP32 is scaled like any other",
     always_finite, &kGuardFiniteOnly},
};

}  // namespace

bool is_honest(std::string_view name) {
  return name == kHonest || name == kHonestGuarded || name == kHonestSplit;
}

std::span<const Mutant> all_mutants() {
  return kMutants;
}

HostTensor mutant_output(const Mutant& mutant, const Problem& problem, const Inputs& inputs,
                         const std::vector<RowId>* only) {
  return faulty_output(problem, inputs, kTile, *mutant.fault, only);
}

HostTensor honest_output(const Problem& problem, const Inputs& inputs, int tile_keys, bool truncate,
                         const std::vector<RowId>* only) {
  Fault none;
  if (truncate) none.accumulator = Fault::Accumulator::truncate;
  return faulty_output(problem, inputs, tile_keys, none, only);
}

HostTensor guarded_output(const Problem& problem, const Inputs& inputs,
                          const std::vector<RowId>* only) {
  return faulty_output(problem, inputs, kTile, kGuarded, only);
}

std::vector<Problem> mutant_problems() {
  return {
      {.batch = 2, .heads = 3, .seq_q = 128, .seq_kv = 192, .head_dim = 64},
      {.batch = 2, .heads = 2, .seq_q = 256, .seq_kv = 512, .head_dim = 128},
      {.batch = 2, .heads = 2, .seq_q = 320, .seq_kv = 320, .head_dim = 64, .causal = true},
      {.batch = 2, .heads = 2, .seq_q = 129, .seq_kv = 1000, .head_dim = 128, .causal = true},
      {.batch = 2, .heads = 2, .seq_q = 192, .seq_kv = 256, .head_dim = 32, .dtype = Dtype::f32},
      {.batch = 2, .heads = 2, .seq_q = 8192, .seq_kv = 8192, .head_dim = 128},
      {.batch = 4,
       .heads = 8,
       .seq_q = 4,
       .seq_kv = 640,
       .head_dim = 64,
       .causal = true,
       .own_kv_heads = 2,
       .lengths = {600, 1, 0, 333},
       .page = 16},
      {.batch = 2,
       .heads = 8,
       .seq_q = 1,
       .seq_kv = 128,
       .head_dim = 128,
       .own_kv_heads = 4,
       .e4m3 = true},
      {.batch = 2,
       .heads = 4,
       .seq_q = 300,
       .seq_kv = 300,
       .head_dim = 64,
       .window_left = 60,
       .window_right = 20},
      {.batch = 2, .heads = 3, .seq_q = 65, .seq_kv = 200, .head_dim = 64, .sinks = true},
      {.batch = 4,
       .heads = 2,
       .seq_q = 150,
       .seq_kv = 200,
       .head_dim = 64,
       .causal = true,
       .query_lengths = {150, 40, 7, 33},
       .lengths = {150, 200, 0, 90}},
      {.batch = 3,
       .heads = 4,
       .seq_q = 70,
       .seq_kv = 131,
       .head_dim = 64,
       .own_kv_heads = 2,
       .query_lengths = {60, 9, 70},
       .lengths = {100, 0, 131}},
  };
}

std::vector<MutantResult> mutant_results(const Problem& problem, Distribution distribution,
                                         std::uint64_t seed) {
  std::vector<MutantResult> results;
  const Inputs inputs = make_inputs(problem, distribution, seed);
  const Verifier verifier(problem, inputs, {.budget = kVerified, .seed = seed});
  Heads heads(problem, inputs, true);
  auto judge = [&](const char* name, const Fault& fault, const char* invisible) {
    const CheckReport report =
        verifier.check(faulty_output(problem, heads, kTile, fault, &verifier.rows()));
    results.push_back({name, problem, distribution, !report.ok, report.finite, report.ratio,
                       invisible == nullptr ? "" : invisible});
  };
  judge(kHonest, Fault(), nullptr);
  judge(kHonestGuarded, kGuarded, nullptr);
  judge(kHonestSplit, kSplit, nullptr);
  for (const Mutant& mutant : kMutants) {
    // What else is wrong with a row of sinks shows less than without them.
    if (problem.sinks && mutant.invisible != no_sinks) continue;
    const char* invisible = mutant.invisible(problem, distribution);
    // Nobody asks what the others do where they cannot be seen.
    if (invisible != nullptr && !mutant.fault->guarded) continue;
    judge(mutant.name, *mutant.fault, invisible);
  }
  return results;
}

double mutant_cost(const Problem& problem) {
  const double products = problem.rows() * static_cast<double>(problem.seq_kv) * problem.head_dim;
  return std::min(products, static_cast<double>(kVerified));
}

std::string mutant_markdown(std::span<const MutantResult> results) {
  auto row = [&](const char* name, const char* what) {
    std::string text = std::string("| `") + name + "` | " + what + " |";
    for (const Distribution distribution : all_distributions()) {
      const bool honest = is_honest(name);
      double least = honest ? 0 : std::numeric_limits<double>::infinity();
      bool seen = false;
      for (const MutantResult& r : results) {
        if (r.mutant != name || r.distribution != distribution || !r.invisible.empty()) continue;
        seen = true;
        if (r.finite) least = honest ? std::max(least, r.ratio) : std::min(least, r.ratio);
      }
      char cell[32] = " -";
      if (seen && std::isinf(least)) {
        std::snprintf(cell, sizeof cell, " not finite");
      } else if (seen) {
        std::snprintf(cell, sizeof cell, least < 10 ? " %.2f" : " %.0f", least);
      }
      text += std::string(cell) + " |";
    }
    return text + "\n";
  };
  std::string table = "| mutant | what is wrong |";
  for (const Distribution distribution : all_distributions()) {
    table += std::string(" ") + to_string(distribution) + " |";
  }
  table += "\n|---|---|";
  for (std::size_t i = 0; i < all_distributions().size(); ++i) table += "---:|";
  table += "\n";
  table += row(kHonest, "nothing: the fused computation, tile by tile");
  table += row(kHonestGuarded, "nothing: the same with a reference that rises only where it must");
  table +=
      row(kHonestSplit, "nothing: the same in five parts of the keys, merged by their log-sum-exp");
  for (const Mutant& mutant : kMutants) table += row(mutant.name, mutant.what);
  return table;
}

}  // namespace fa
