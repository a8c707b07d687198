// SPDX-License-Identifier: MIT
#include "harness/attention/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "harness/attention/parallel.h"

namespace fa {
namespace {

constexpr std::int64_t kLevels = 65536;
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

// A bijection of 64-bit words in which every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 29)) * 0xa0761d6478bd642f;
  return x ^ (x >> 32);
}

// Floor of count * fraction, for a fraction in units of 2^-64.
std::int64_t scale_fraction(std::uint64_t fraction, std::int64_t count) {
  const auto n = static_cast<std::uint64_t>(count);
  // count is below 2^32 in every problem that fits a machine; 32 bits of the fraction are enough.
  return static_cast<std::int64_t>(((fraction >> 32) * n) >> 32);
}

// The z with P(Z <= z) = p for p in (0, 0.5], Newton's method from a start to the left of z.
double normal_quantile(double p, double start) {
  constexpr double kInverseRoot2Pi = 0.39894228040143267794;
  double z = start;
  for (int i = 0; i < 50; ++i) {
    const double density = kInverseRoot2Pi * std::exp(-0.5 * z * z);
    const double step = (0.5 * std::erfc(-z * std::sqrt(0.5)) - p) / density;
    z -= step;
    if (std::abs(step) < 1e-13) break;
  }
  return z;
}

// What each 16-bit slice of a hash stands for, as binary16.
using Levels = std::vector<std::uint16_t>;

Levels normal_levels(double factor) {
  Levels levels(kLevels);
  double z = -4.4;
  for (std::int64_t i = 0; i < kLevels / 2; ++i) {
    z = normal_quantile((static_cast<double>(i) + 0.5) / kLevels, z);
    const std::uint16_t half = float_to_half(static_cast<float>(factor * z));
    levels[static_cast<std::size_t>(i)] = half;
    levels[static_cast<std::size_t>(kLevels - 1 - i)] = half & 0x7fff;
  }
  return levels;
}

Levels uniform_levels() {
  Levels levels(kLevels);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i] = float_to_half(static_cast<float>(i >> 5) / 2048.0f);
  }
  return levels;
}

// Either sign, magnitude in [0.5, 1.5): rows of nearly the same length.
Levels needle_levels() {
  Levels levels(kLevels);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const float magnitude = 0.5f + static_cast<float>((i & 0x7fff) >> 5) / 1024.0f;
    levels[i] = float_to_half(i < kLevels / 2 ? -magnitude : magnitude);
  }
  return levels;
}
constexpr double kNeedleMeanSquare = 13.0 / 12;  // of the magnitudes above

Levels scaled(Levels levels, double factor) {
  for (std::uint16_t& level : levels) {
    level = float_to_half(static_cast<float>(factor * static_cast<double>(half_to_float(level))));
  }
  return levels;
}

struct Tables {
  Levels normal = normal_levels(1), large = normal_levels(10), uniform = uniform_levels(),
         needle = needle_levels();

  const Levels& q(Distribution distribution) const {
    if (distribution == Distribution::uniform) return uniform;
    return distribution == Distribution::large ? large : normal;
  }
  const Levels& k(Distribution distribution) const {
    if (distribution == Distribution::uniform) return uniform;
    return distribution == Distribution::needle ? needle : normal;
  }
  const Levels& v(Distribution distribution) const {
    return distribution == Distribution::uniform ? uniform : normal;
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

constexpr std::uint64_t tensor_key(std::uint64_t seed, std::uint64_t tensor) {
  return mix(seed * kGolden + tensor + 1);
}

std::uint64_t hash_at(std::uint64_t key, std::int64_t block) {
  return mix(key + static_cast<std::uint64_t>(block) * kGolden);
}

// Element `index` of the tensor with this key: a slice of the hash of its block of four.
std::uint16_t draw(const Levels& levels, std::uint64_t key, std::int64_t index) {
  return levels[(hash_at(key, index / 4) >> (16 * (index % 4))) & 0xffff];
}

template <class Store>
void draw_range(const Levels& levels, std::uint64_t key, std::int64_t begin, std::int64_t end,
                const Store& store) {
  std::int64_t i = begin;
  for (; i < end && i % 4 != 0; ++i) store(i, draw(levels, key, i));
  for (; i + 4 <= end; i += 4) {
    const std::uint64_t hash = hash_at(key, i / 4);
    store(i, levels[hash & 0xffff]);
    store(i + 1, levels[(hash >> 16) & 0xffff]);
    store(i + 2, levels[(hash >> 32) & 0xffff]);
    store(i + 3, levels[hash >> 48]);
  }
  for (; i < end; ++i) store(i, draw(levels, key, i));
}

void fill(HostTensor& tensor, const Levels& levels, std::uint64_t key) {
  parallel_for(tensor.size(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    if (tensor.dtype == Dtype::f16) {
      std::uint16_t* out = tensor.halfs().data();
      draw_range(levels, key, begin, end, [out](std::int64_t i, std::uint16_t h) { out[i] = h; });
    } else if (tensor.dtype == Dtype::bf16) {
      std::uint16_t* out = tensor.halfs().data();
      draw_range(levels, key, begin, end, [out](std::int64_t i, std::uint16_t h) {
        out[i] = float_to_bf16(half_to_float(h));
      });
    } else {
      float* out = tensor.floats().data();
      draw_range(levels, key, begin, end,
                 [out](std::int64_t i, std::uint16_t h) { out[i] = half_to_float(h); });
    }
  });
}

// Whether a row has a spike, where, and how large it is.
std::uint64_t spike_hash(std::uint64_t seed, std::int64_t head, std::int64_t row) {
  return hash_at(tensor_key(seed, 4) ^ static_cast<std::uint64_t>(head) * kGolden, row);
}

// Calls body(head, row) for every row of all heads, on all threads; count(head) is how many one
// has.
template <class Count, class Body>
void for_each_row(std::int64_t heads, const Count& count, const Body& body) {
  std::vector<std::int64_t> first{0};  // of each head, among the rows of all
  for (std::int64_t head = 0; head < heads; ++head) first.push_back(first.back() + count(head));
  parallel_for(first.back(), 256, [&](std::int64_t begin, std::int64_t end) {
    auto head = std::upper_bound(first.begin(), first.end(), begin) - first.begin() - 1;
    for (std::int64_t i = begin; i < end; ++i) {
      while (i >= first[static_cast<std::size_t>(head + 1)]) ++head;
      body(head, i - first[static_cast<std::size_t>(head)]);
    }
  });
}

// Calls body(head, row, first element of the row) for every row of Q.
template <class Body>
void for_each_query(const Problem& problem, const Body& body) {
  for_each_row(
      problem.batch * problem.heads,
      [&](std::int64_t head) { return problem.queries(head / problem.heads); },
      [&](std::int64_t head, std::int64_t row) {
        body(head, row, q_row(problem, head, row) * problem.head_dim);
      });
}

// Calls body(entry and head of K and V, key, its row of K and V) for every key. What lies behind a
// length costs nothing.
template <class Body>
void for_each_key(const Problem& problem, const Inputs& inputs, const Body& body) {
  for_each_row(
      problem.batch * problem.kv_heads(),
      [&](std::int64_t head) { return problem.length(head / problem.kv_heads()); },
      [&](std::int64_t head, std::int64_t key) {
        body(head, key, kv_row(problem, inputs, head * problem.group(), key));
      });
}

// Score that gives one key about ten times the weight of all others together. Those have scores of
// standard deviation sigma = t / sqrt(D), so their sum is about n exp(sigma^2 / 2): solve
// t = log(10 n) + t^2 / (2 D).
double needle_score(const Problem& problem) {
  const double d = problem.head_dim;
  const double log_weight = std::log(10.0 * static_cast<double>(problem.seq_kv));
  return d * (1 - std::sqrt(std::max(0.0, 1 - 2 * log_weight / d)));
}

// Each query is the key it looks for, scaled.
void fill_needle_queries(const Problem& problem, double spread, std::uint64_t seed,
                         std::uint64_t k_key, Inputs& inputs) {
  const std::int64_t d = problem.head_dim;
  const double factor =
      needle_score(problem) / (kNeedleMeanSquare * static_cast<double>(d) * problem.scale());
  const Levels levels = scaled(tables().needle, spread * factor);
  for_each_query(problem, [&](std::int64_t head, std::int64_t row, std::int64_t first) {
    const std::int64_t key = std::max<std::int64_t>(0, needle_key(problem, seed, head, row));
    if (problem.length(head / problem.heads) == 0) {
      for (std::int64_t c = 0; c < d; ++c) inputs.q.set(first + c, 0);
      return;
    }
    const std::int64_t source = kv_row(problem, inputs, head, key) * d;
    draw_range(levels, k_key, source, source + d, [&](std::int64_t index, std::uint16_t half) {
      inputs.q.set(first + index - source, half_to_float(half));
    });
  });
}

// The pages of all batch entries in a random order.
std::vector<std::int32_t> page_table(const Problem& problem, std::uint64_t seed) {
  const std::int64_t width = problem.table_width();
  if (width == 0) return {};
  std::vector<std::int32_t> order(static_cast<std::size_t>(problem.pages()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  std::vector<std::int32_t> table(static_cast<std::size_t>(problem.batch * width), -1);
  std::size_t next = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t i = 0; i * problem.page < problem.length(b); ++i) {
      table[static_cast<std::size_t>(b * width + i)] = order[next++];
    }
  }
  return table;
}

// The last column of Q is constant, that of K counts blocks of kRiseKeys keys from the middle of
// the sequence, which keeps scores small.
void overlay_rise(const Problem& problem, double spread, Inputs& inputs) {
  const std::int64_t d = problem.head_dim;
  const auto slope = static_cast<float>(spread * kRise / problem.scale());
  for_each_query(problem, [&](std::int64_t, std::int64_t, std::int64_t first) {
    inputs.q.set(first + d - 1, round_to_half(slope));
  });
  const std::int64_t last = (problem.seq_kv - 1) / kRiseKeys;
  const float middle = static_cast<float>(last) / 2;
  for_each_key(problem, inputs, [&](std::int64_t, std::int64_t key, std::int64_t row) {
    const std::int64_t block = key / kRiseKeys;
    inputs.k.set((row + 1) * d - 1, round_to_half(static_cast<float>(block) - middle));
  });
}

// The last columns of Q and K are constant: every score is shifted by the same amount.
void overlay_shift(const Problem& problem, double spread, double shift, Inputs& inputs) {
  const std::int64_t d = problem.head_dim;
  const double size = std::sqrt(std::abs(shift) / problem.scale());
  for_each_query(problem, [&](std::int64_t, std::int64_t, std::int64_t first) {
    inputs.q.set(first + d - 1, round_to_half(static_cast<float>(spread * size)));
  });
  for_each_key(problem, inputs, [&](std::int64_t, std::int64_t, std::int64_t row) {
    inputs.k.set((row + 1) * d - 1, round_to_half(static_cast<float>(std::copysign(size, shift))));
  });
}

// A query with a spike is the spike's key, scaled so that its own score is larger than the others
// by `gap`. The others have scores of standard deviation score / |key|, and the largest of n of
// them lies at sqrt(2 log n) deviations.
float spike_factor(const Problem& problem, double gap, double norm) {
  const double largest = std::sqrt(2 * std::log(static_cast<double>(problem.seq_kv) + 1)) / norm;
  const double score = gap / std::max(0.1, 1 - largest);
  return static_cast<float>(score / (norm * norm * problem.scale()));
}

void overlay_spikes(const Problem& problem, std::uint64_t seed, Inputs& inputs) {
  constexpr double kLeastGap = 70, kGreatestGap = 300;
  const std::int64_t d = problem.head_dim;
  for_each_query(problem, [&](std::int64_t head, std::int64_t row, std::int64_t first) {
    const std::int64_t key = spike_key(problem, seed, head, row);
    if (key < 0) return;
    const std::int64_t source = kv_row(problem, inputs, head, key) * d;
    double square = 0;
    for (std::int64_t c = 0; c < d; ++c) {
      const auto value = static_cast<double>(inputs.k.at(source + c));
      square += value * value;
    }
    const auto share = static_cast<double>(spike_hash(seed, head, row) >> 48) / kLevels;
    const double gap = kLeastGap + share * (kGreatestGap - kLeastGap);
    const float factor = spike_factor(problem, gap, std::sqrt(std::max(square, 1.0)));
    for (std::int64_t c = 0; c < d; ++c) {
      inputs.q.set(first + c, round_to_half(factor * inputs.k.at(source + c)));
    }
  });
}

}  // namespace

std::span<const Distribution> all_distributions() {
  static constexpr std::array kAll{Distribution::normal, Distribution::uniform, Distribution::large,
                                   Distribution::needle, Distribution::rising,  Distribution::spike,
                                   Distribution::low,    Distribution::high};
  return kAll;
}

const char* to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return "normal";
    case Distribution::uniform:
      return "uniform";
    case Distribution::large:
      return "large";
    case Distribution::needle:
      return "needle";
    case Distribution::rising:
      return "rising";
    case Distribution::spike:
      return "spike";
    case Distribution::low:
      return "low";
    case Distribution::high:
      return "high";
  }
  return "?";
}

std::optional<Distribution> parse_distribution(std::string_view text) {
  for (const Distribution distribution : all_distributions()) {
    if (text == to_string(distribution)) return distribution;
  }
  return std::nullopt;
}

std::string to_string(const InputKind& kind) {
  std::string text = to_string(kind.distribution);
  if (kind.spread == 1) return text;
  char number[32];
  std::snprintf(number, sizeof number, ", spread %g", kind.spread);
  return text + number;
}

std::int64_t needle_key(const Problem& problem, std::uint64_t seed, std::int64_t head,
                        std::int64_t row) {
  const Problem::Keys visible = visible_keys(problem, row, head);
  if (visible.count() == 0) return -1;
  const std::uint64_t start = hash_at(tensor_key(seed, 3), head);
  return visible.begin +
         scale_fraction(start + static_cast<std::uint64_t>(row) * kGolden, visible.count());
}

std::int64_t spike_key(const Problem& problem, std::uint64_t seed, std::int64_t head,
                       std::int64_t row) {
  const std::uint64_t hash = spike_hash(seed, head, row);
  if (hash % 8 != 0) return -1;
  const auto [begin, end] = visible_keys(problem, row, head);
  const std::int64_t length = problem.length(head / problem.heads), visible = end - begin;
  const std::int64_t hidden = length - visible;
  if (length == 0) return -1;
  const std::uint64_t fraction = hash << 24;  // other bits than those of the choices
  if (visible == 0 || (hidden > 0 && hash / 8 % 4 == 0)) {
    const std::int64_t among = scale_fraction(fraction, hidden);
    // Of a window every other one is a neighbour of it.
    if (problem.window_left >= 0 && begin > 0 && hash / 32 % 2 == 0) return begin - 1;
    return among < begin ? among : end + among - begin;
  }
  const std::array<std::int64_t, 3> last{visible - visible / 2, std::min<std::int64_t>(16, visible),
                                         1};
  const std::int64_t among = last[hash / 32 % last.size()];
  return end - among + scale_fraction(fraction, among);
}

std::int64_t q_row(const Problem& problem, std::int64_t head, std::int64_t row) {
  if (!problem.packed()) return head * problem.seq_q + row;
  const std::int64_t entry = head / problem.heads;
  return head % problem.heads * problem.stored_queries() + problem.first_query(entry) + row;
}

std::int64_t kv_row(const Problem& problem, const Inputs& inputs, std::int64_t head,
                    std::int64_t key) {
  const std::int64_t entry = head / problem.heads;
  const std::int64_t kv_head = head % problem.heads / problem.group();
  if (problem.packed()) return kv_head * problem.stored_keys() + problem.first_key(entry) + key;
  if (problem.page == 0) return (entry * problem.kv_heads() + kv_head) * problem.seq_kv + key;
  const auto slot = static_cast<std::size_t>(entry * problem.table_width() + key / problem.page);
  const std::int64_t page = inputs.page_table[slot];
  return (page * problem.kv_heads() + kv_head) * problem.page + key % problem.page;
}

float Inputs::k_scale(const Problem& problem, std::int64_t head) const {
  return kv_scales.empty() ? 1 : kv_scales[static_cast<std::size_t>(head / problem.group())];
}

float Inputs::v_scale(const Problem& problem, std::int64_t head) const {
  return kv_scales.empty()
             ? 1
             : kv_scales[kv_scales.size() / 2 + static_cast<std::size_t>(head / problem.group())];
}

void quantise_cache(const Problem& problem, Inputs& inputs, std::uint64_t seed) {
  if (!problem.e4m3 || inputs.k.dtype == Dtype::e4m3) return;
  const std::int64_t heads = problem.batch * problem.kv_heads(), d = problem.head_dim;
  inputs.kv_scales.clear();
  for (HostTensor* tensor : {&inputs.k, &inputs.v}) {
    const HostTensor values = std::move(*tensor);
    *tensor = make_tensor(Dtype::e4m3, values.shape, 0.0f);
    std::vector<float> scales(static_cast<std::size_t>(heads));
    const std::uint64_t key = tensor_key(seed, tensor == &inputs.k ? 6 : 7);
    parallel_for(heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head) {
        const std::int64_t length = problem.length(head / problem.kv_heads());
        const auto for_each = [&](auto&& body) {
          for (std::int64_t j = 0; j < length; ++j) {
            const std::int64_t first = kv_row(problem, inputs, head * problem.group(), j) * d;
            for (std::int64_t i = first; i < first + d; ++i) body(i);
          }
        };
        float largest = 0;
        for_each([&](std::int64_t i) { largest = std::max(largest, std::abs(values.at(i))); });
        const auto room = static_cast<float>(hash_at(key, head) >> 40) * 0x1p-24f;
        const float scale = largest > 0 ? largest * (1 + room) / kLargestE4m3 : 1;
        for_each([&](std::int64_t i) { tensor->set(i, values.at(i) / scale); });
        scales[static_cast<std::size_t>(head)] = scale;
      }
    });
    inputs.kv_scales.insert(inputs.kv_scales.end(), scales.begin(), scales.end());
  }
}

void require_inputs(const Problem& problem, const Inputs& inputs) {
  const auto expect = [&](const HostTensor& tensor, Dtype dtype, const Shape& shape,
                          const char* name) {
    if (tensor.dtype == dtype && tensor.shape == shape) return;
    throw std::invalid_argument(std::string(name) + " is " + to_string(tensor.dtype) + " " +
                                to_string(tensor.shape) + ", the problem (" + to_string(problem) +
                                ") needs " + to_string(dtype) + " " + to_string(shape));
  };
  expect(inputs.q, problem.dtype, q_shape(problem), "Q");
  expect(inputs.k, problem.kv_dtype(), kv_shape(problem), "K");
  expect(inputs.v, problem.kv_dtype(), kv_shape(problem), "V");
  if (std::ssize(inputs.kv_scales) != problem.kv_scales()) {
    throw std::invalid_argument("K and V have " + std::to_string(inputs.kv_scales.size()) +
                                " scales, the problem (" + to_string(problem) + ") needs " +
                                std::to_string(problem.kv_scales()));
  }
  if (inputs.sinks.size() != static_cast<std::size_t>(problem.sinks ? problem.heads : 0)) {
    throw std::invalid_argument("there are " + std::to_string(inputs.sinks.size()) +
                                " sinks, the problem (" + to_string(problem) + ") needs " +
                                std::to_string(problem.sinks ? problem.heads : 0));
  }
  if (problem.backward) {
    expect(inputs.o, problem.dtype, q_shape(problem), "O");
    expect(inputs.d_o, problem.dtype, q_shape(problem), "the gradient of O");
  }
  if (std::ssize(inputs.lse) != (problem.backward ? problem.q_rows() : 0)) {
    throw std::invalid_argument("the LSE has " + std::to_string(inputs.lse.size()) +
                                " rows, the problem (" + to_string(problem) + ") needs " +
                                std::to_string(problem.backward ? problem.q_rows() : 0));
  }
  if (std::ssize(inputs.page_table) != problem.batch * problem.table_width()) {
    throw std::invalid_argument("the page table has " + std::to_string(inputs.page_table.size()) +
                                " entries, the problem (" + to_string(problem) + ") needs " +
                                std::to_string(problem.batch * problem.table_width()));
  }
}

std::vector<std::int64_t> random_lengths(std::int64_t batch, std::int64_t seq_kv,
                                         std::uint64_t seed) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths.push_back(1 + scale_fraction(hash_at(tensor_key(seed, 5), b), seq_kv));
  }
  return lengths;
}

void fill_unused(const Problem& problem, Inputs& inputs, float k, float v) {
  const std::int64_t d = problem.head_dim;
  std::vector<char> used(static_cast<std::size_t>(inputs.k.size() / d));
  for_each_key(problem, inputs, [&](std::int64_t, std::int64_t, std::int64_t row) {
    used[static_cast<std::size_t>(row)] = 1;
  });
  parallel_for(std::ssize(used), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      if (used[static_cast<std::size_t>(row)] != 0) continue;
      for (std::int64_t i = row * d; i < (row + 1) * d; ++i) {
        // Either sign, so that some such scores would win a row's maximum by far.
        inputs.k.set(i, (row + i) % 2 == 0 ? k : -k);
        inputs.v.set(i, v);
      }
    }
  });
}

// From -4 to 12: among scores of standard deviation 1, a sink of 7 weighs as much as 700 keys.
std::vector<float> make_sinks(const Problem& problem, std::uint64_t seed) {
  std::vector<float> sinks;
  for (std::int64_t h = 0; problem.sinks && h < problem.heads; ++h) {
    const std::int64_t step = scale_fraction(hash_at(tensor_key(seed, 8), h), 256);
    sinks.push_back(static_cast<float>(step) / 16 - 4);
  }
  return sinks;
}

Inputs make_inputs(const Problem& problem, const InputKind& kind, std::uint64_t seed) {
  if (problem.batch < 1 || problem.heads < 1 || problem.seq_q < 1 || problem.seq_kv < 1 ||
      problem.head_dim < 1) {
    throw std::invalid_argument("inputs need positive extents, got " + to_string(problem));
  }
  if (const std::string error = cache_error(problem); !error.empty()) {
    throw std::invalid_argument(error);
  }
  const auto& [distribution, spread] = kind;
  if (!(spread >= InputKind::kLeastSpread && spread <= InputKind::kGreatestSpread)) {
    throw std::invalid_argument("a spread is a number from 1/16 to 128, got " +
                                std::to_string(spread));
  }
  const std::uint64_t k_key = tensor_key(seed, 1);
  Inputs inputs{make_tensor(problem.dtype, q_shape(problem)),
                make_tensor(problem.dtype, kv_shape(problem)),
                make_tensor(problem.dtype, kv_shape(problem)), page_table(problem, seed)};
  const Tables& t = tables();
  fill(inputs.v, t.v(distribution), tensor_key(seed, 2));
  fill(inputs.k, t.k(distribution), k_key);
  if (distribution == Distribution::needle) {
    fill_needle_queries(problem, spread, seed, k_key, inputs);
  } else {
    fill(inputs.q, scaled(t.q(distribution), spread), tensor_key(seed, 0));
  }
  if (distribution == Distribution::rising) overlay_rise(problem, spread, inputs);
  if (distribution == Distribution::low) overlay_shift(problem, spread, -kShift, inputs);
  if (distribution == Distribution::high) overlay_shift(problem, spread, kShift, inputs);
  if (distribution == Distribution::spike) overlay_spikes(problem, seed, inputs);
  quantise_cache(problem, inputs, seed);
  inputs.sinks = make_sinks(problem, seed);
  if (problem.backward) {
    inputs.d_o = make_tensor(problem.dtype, q_shape(problem));
    fill(inputs.d_o, t.v(distribution), tensor_key(seed, 9));
  }
  // Of e4m3 the largest.
  if ((!problem.lengths.empty() && !problem.packed()) || problem.page > 0)
    fill_unused(problem, inputs, problem.e4m3 ? 30000 : 100, 30000);
  return inputs;
}

}  // namespace fa
