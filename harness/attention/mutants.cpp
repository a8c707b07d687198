#include "harness/attention/mutants.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>

#include "harness/attention/parallel.h"

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
  bool no_rescale = false;      // O keeps the weights of the old maximum
  bool no_rescale_sum = false;  // the row sum does
  bool no_normalisation = false;
  bool stale_batch = false;     // K and V of batch 0 for all
  bool next_head_v = false;     // V of the next head
  bool missing_tile = false;    // the middle tile of keys
  bool stale_v_tile = false;    // odd tiles multiply the V of the tile before
  bool no_mask = false;         // causal only
  std::int64_t mask_shift = 0;  // causal only: keys seen too many
  bool top_left_mask = false;   // causal only
  Accumulator accumulator = Accumulator::nearest;
  double gain = 1;  // on O
  bool one_nan = false;
  bool zero_tail = false;  // the last 16 rows of each head are never written, and are 0
};

namespace {

using Fault = Mutant::Fault;
constexpr std::int64_t kTile = 64;

std::size_t idx(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// One head of the inputs as floats, K transposed to [D, seq_kv] so that scores vectorise over keys.
struct HeadData {
  std::vector<float> q, k, v;

  HeadData(const Problem& p, const Inputs& inputs, std::int64_t q_head, std::int64_t k_head,
           std::int64_t v_head)
      : q(idx(p.seq_q * p.head_dim)), k(idx(p.seq_kv * p.head_dim)), v(k.size()) {
    const std::int64_t d = p.head_dim;
    parallel_for(p.seq_q, 512, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * d; i < end * d; ++i) {
        q[idx(i)] = inputs.q.at(q_head * p.seq_q * d + i);
      }
    });
    parallel_for(p.seq_kv, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = 0; c < d; ++c) {
        for (std::int64_t j = begin; j < end; ++j) {
          k[idx(c * p.seq_kv + j)] = inputs.k.at((k_head * p.seq_kv + j) * d + c);
        }
      }
      for (std::int64_t i = begin * d; i < end * d; ++i) {
        v[idx(i)] = inputs.v.at(v_head * p.seq_kv * d + i);
      }
    });
  }
};

float truncate_to_float(double value) {
  const auto nearest = static_cast<float>(value);
  return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0f)
                                                                  : nearest;
}

std::int64_t keys_seen(const Problem& p, const Fault& fault, std::int64_t row) {
  std::int64_t seen = visible_keys(p, row);
  if (p.causal) {
    if (fault.no_mask) seen = p.seq_kv;
    if (fault.top_left_mask) seen = std::min(row + 1, p.seq_kv);
    seen = std::clamp<std::int64_t>(seen + fault.mask_shift, 0, p.seq_kv);
  }
  return fault.half_keys ? std::min(seen, (p.seq_kv + 1) / 2) : seen;
}

// One row of a fused kernel: tiles of keys, running maximum m and sum l, O rescaled when m grows.
void flash_row(const Problem& p, const HeadData& head, std::int64_t row, std::int64_t tile,
               const Fault& fault, float* out) {
  const std::int64_t d = p.head_dim, n = p.seq_kv, seen = keys_seen(p, fault, row);
  const bool half = p.dtype == Dtype::f16;
  const double temperature = std::exp2(fault.temperature_log2) * (fault.no_scale ? 1 : p.scale());
  const auto factor = static_cast<float>(temperature * std::numbers::log2e);
  const float* q = &head.q[idx(row * d)];
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  std::vector<float> s(idx(tile)), o(idx(d), 0.0f);
  for (std::int64_t first = 0; first < seen; first += tile) {
    const std::int64_t count = std::min(tile, seen - first), t = first / tile;
    if (fault.missing_tile && t == (n + tile - 1) / tile / 2) continue;
    std::fill(s.begin(), s.end(), 0.0f);
    for (std::int64_t c = 0; c < d; ++c) {
      const float* k = &head.k[idx((fault.swap_k_halves ? (c + d / 2) % d : c) * n)];
      for (std::int64_t j = 0; j < count; ++j) s[idx(j)] += q[c] * k[first + j];
    }
    if (fault.swap_keys) {
      for (std::int64_t j = 0; j + 8 < count; ++j) {
        if ((j & 8) == 0) std::swap(s[idx(j)], s[idx(j + 8)]);
      }
    }
    float m_new = m;
    for (std::int64_t j = 0; j < count; ++j) m_new = std::max(m_new, s[idx(j)]);
    if (fault.no_max) m_new = 0;
    const float rescale = std::exp2((m - m_new) * factor);
    if (!fault.no_rescale_sum && !fault.no_max) l *= rescale;
    if (!fault.no_rescale && !fault.no_max) {
      for (float& value : o) value *= rescale;
    }
    m = m_new;
    for (std::int64_t j = 0; j < count; ++j) {
      s[idx(j)] = std::exp2(s[idx(j)] * factor - m * factor);
      l += s[idx(j)];
      if (half) s[idx(j)] = round_to_half(s[idx(j)]);
    }
    const float* v = &head.v[idx((fault.stale_v_tile && t % 2 == 1 ? first - tile : first) * d)];
    constexpr std::int64_t kStep = 16;  // keys of one mma
    for (std::int64_t j = 0; j < count; j += kStep) {
      const std::int64_t keys = std::min(kStep, count - j);
      if (fault.accumulator == Fault::Accumulator::nearest) {
        for (std::int64_t i = j; i < j + keys; ++i) {
          for (std::int64_t c = 0; c < d; ++c) o[idx(c)] += s[idx(i)] * v[i * d + c];
        }
        continue;
      }
      for (std::int64_t c = 0; c < d; ++c) {
        double sum = static_cast<double>(o[idx(c)]);
        for (std::int64_t i = j; i < j + keys; ++i) {
          sum += static_cast<double>(s[idx(i)]) * static_cast<double>(v[i * d + c]);
        }
        o[idx(c)] = fault.accumulator == Fault::Accumulator::half
                        ? round_to_half(static_cast<float>(sum))
                        : truncate_to_float(sum);
      }
    }
  }
  const float inverse = fault.no_normalisation ? 1.0f : 1.0f / l;
  for (std::int64_t c = 0; c < d; ++c) {
    const float value = seen == 0 ? 0.0f : o[idx((c + fault.rotate_columns) % d)] * inverse;
    out[c] = fault.constant.value_or(static_cast<float>(fault.gain) * value);
  }
}

HostTensor faulty_output(const Problem& p, const Inputs& inputs, std::int64_t tile,
                         const Fault& fault, const std::vector<RowId>* only) {
  std::vector<RowId> all;
  if (only == nullptr) {
    for (std::int64_t h = 0; h < p.batch * p.heads; ++h) {
      for (std::int64_t i = 0; i < p.seq_q; ++i) all.push_back({h, i});
    }
    only = &all;
  }
  HostTensor output = make_tensor(p.dtype, q_shape(p), 0.0f);
  for (auto begin = only->begin(); begin != only->end();) {
    const std::int64_t h = begin->head;
    const auto end = std::find_if(begin, only->end(), [h](RowId r) { return r.head != h; });
    const std::int64_t kv = fault.stale_batch ? h % p.heads : h;
    const std::int64_t next = h / p.heads * p.heads + (h + 1) % p.heads;
    const HeadData head(p, inputs, h, kv, fault.next_head_v ? next : kv);
    parallel_for(end - begin, 4, [&](std::int64_t first, std::int64_t last) {
      std::vector<float> row(idx(p.head_dim));
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t i = begin[r].row;
        if (fault.zero_tail && i >= p.seq_q - 16) continue;
        flash_row(p, head, (i + fault.rotate_rows) % p.seq_q, tile, fault, row.data());
        for (std::int64_t c = 0; c < p.head_dim; ++c) {
          output.set((h * p.seq_q + i) * p.head_dim + c, row[idx(c)]);
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
  return p.heads < 2 ? "there is a single head" : nullptr;
}
const char* not_causal(const Problem& p, Distribution) {
  return p.causal ? nullptr : "there is no mask";
}
const char* square(const Problem& p, Distribution) {
  return p.causal && p.seq_q != p.seq_kv ? nullptr : "the two alignments coincide";
}
const char* in_range(const Problem& p, Distribution distribution) {
  return p.dtype == Dtype::f16 && distribution == Distribution::large
             ? nullptr
             : "the same function while exp stays in range";
}
const char* short_sums(const Problem& p, Distribution) {
  return p.seq_kv < 512 ? "short sums lose no more than P's own rounding" : nullptr;
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
    {"no_rescale", "O is not rescaled when the maximum grows", one_tile, &kNoRescale},
    {"no_rescale_sum", "the row sum is not rescaled", one_tile, &kNoRescaleSum},
    {"no_normalisation", "O is not divided by the row sum", one_key, &kNoNormalisation},
    {"stale_batch", "K and V of batch 0 for every batch", one_batch, &kStaleBatch},
    {"next_head_v", "V of the next head", one_head, &kNextHeadV},
    {"missing_tile", "the middle tile of keys is skipped", always_visible, &kMissingTile},
    {"stale_v_tile", "odd tiles multiply the V of the tile before", one_tile, &kStaleVTile},
    {"no_mask", "the causal mask is ignored", not_causal, &kNoMask},
    {"mask_late", "each row sees one key too many", not_causal, &kMaskLate},
    {"mask_early", "each row sees one key too few", not_causal, &kMaskEarly},
    {"top_left_mask", "the mask is aligned top left", square, &kTopLeft},
    {"half_accumulator", "P V accumulates in FP16", short_sums, &kHalfAccumulator},
    {"gain", "O is 0.5 % too large", always_visible, &kGain},
    {"one_nan", "one element is NaN", always_visible, &kOneNan},
    {"zero_tail", "the last 16 rows of each head are 0", always_visible, &kZeroTail},
};

}  // namespace

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

std::vector<Problem> mutant_problems() {
  return {
      {.batch = 2, .heads = 3, .seq_q = 128, .seq_kv = 192, .head_dim = 64},
      {.batch = 2, .heads = 2, .seq_q = 256, .seq_kv = 512, .head_dim = 128},
      {.batch = 2, .heads = 2, .seq_q = 320, .seq_kv = 320, .head_dim = 64, .causal = true},
      {.batch = 2, .heads = 2, .seq_q = 129, .seq_kv = 1000, .head_dim = 128, .causal = true},
      {.batch = 2, .heads = 2, .seq_q = 192, .seq_kv = 256, .head_dim = 32, .dtype = Dtype::f32},
      {.batch = 2, .heads = 2, .seq_q = 8192, .seq_kv = 8192, .head_dim = 128},
  };
}

std::vector<MutantResult> mutant_table(
    std::span<const Problem> problems, std::uint64_t seed,
    const std::function<void(const Problem&, Distribution)>& progress) {
  std::vector<MutantResult> results;
  for (const Problem& problem : problems) {
    for (const Distribution distribution : all_distributions()) {
      if (progress) progress(problem, distribution);
      const Inputs inputs = make_inputs(problem, distribution, seed);
      const Verifier verifier(problem, inputs, {.budget = std::int64_t{1} << 27, .seed = seed});
      auto judge = [&](const char* name, const HostTensor& output, const char* invisible) {
        const CheckReport report = verifier.check(output);
        results.push_back({name, problem, distribution, !report.ok, report.finite, report.ratio,
                           invisible == nullptr ? "" : invisible});
      };
      judge("honest", honest_output(problem, inputs, kTile, false, &verifier.rows()), nullptr);
      for (const Mutant& mutant : kMutants) {
        judge(mutant.name, mutant_output(mutant, problem, inputs, &verifier.rows()),
              mutant.invisible(problem, distribution));
      }
    }
  }
  return results;
}

std::string mutant_markdown(std::span<const MutantResult> results) {
  auto row = [&](const char* name, const char* what) {
    std::string text = std::string("| `") + name + "` | " + what + " |";
    for (const Distribution distribution : all_distributions()) {
      const bool honest = std::string_view(name) == "honest";
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
  table += "\n|---|---|---:|---:|---:|---:|\n";
  table += row("honest", "nothing: the fused computation, tile by tile");
  for (const Mutant& mutant : kMutants) table += row(mutant.name, mutant.what);
  return table;
}

}  // namespace fa
