// SPDX-License-Identifier: MIT
// Q, K and V drawn from a seed: the same values on every machine, for any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/attention/host_tensor.h"
#include "kernels/problem.h"

namespace fa {

/// What the elements of Q, K and V look like. All values are exact in binary16, so that an FP32
/// problem has the same inputs as the FP16 problem of the same shape and seed; those of a bfloat16
/// problem are rounded.
///
/// normal   N(0, 1): 65536 quantiles, to 4.3 sigma. |O| is about sqrt(e / seq_kv).
/// uniform  [0, 1) in steps of 2^-11. Nearly equal weights and sums of one sign: an accumulator
///          that is too narrow, or a biased rounding, shows here and nowhere else. The posts use
///          it.
/// large    normal with Q ten times larger: scores reach +-50, exp() without the maximum taken off
///          overflows FP16, and a few keys share each row.
/// needle   one key per row holds about 9/10 of the weight: needle_key(). A key, row, column or
///          tile in the wrong place is an error of the size of V itself.
/// rising   normal, but the last column of Q is constant and that of K grows with the key: scores
///          grow by kRise every kRiseKeys keys, so that every such block raises the maximum.
/// spike    normal, but in about one row of eight one key exceeds all others by 60 to 400 (from
///          head_dim 64 on; below, not in all): exp() with another key's score taken off overflows
///          FP32 from 88 on. spike_key() says where. All elements but the Q of those rows are those
///          of normal.
/// low      normal, but the last columns of Q and K are constant and lower every score by kShift: a
///          running maximum that starts at a finite number shows.
/// high     the same, kShift higher: a maximum that is clipped shows.
enum class Distribution { normal, uniform, large, needle, rising, spike, low, high };

inline constexpr double kRise = 12;  ///< natural units of score, at a spread of 1
inline constexpr std::int64_t kRiseKeys = 128;
inline constexpr double kShift = 200;  ///< natural units of score, at a spread of 1

/// All of them, in the order above.
std::span<const Distribution> all_distributions();

/// "normal", "uniform", "large", "needle", "rising", "spike", "low", "high".
const char* to_string(Distribution distribution);

/// The distribution of that name; nullopt for any other text.
std::optional<Distribution> parse_distribution(std::string_view text);

/// A distribution and the factor on its Q, except in the rows with a spike. The scores of normal
/// inputs have the spread as their standard deviation.
struct InputKind {
  static constexpr double kLeastSpread = 1.0 / 16, kGreatestSpread = 128;

  // NOLINTNEXTLINE(google-explicit-constructor): a distribution alone has the spread 1.
  InputKind(Distribution name = Distribution::normal, double factor = 1)
      : distribution(name), spread(factor) {}

  Distribution distribution;
  double spread;  ///< in [kLeastSpread, kGreatestSpread]

  bool operator==(const InputKind&) const = default;
};

/// "normal", "normal, spread 8".
std::string to_string(const InputKind& kind);

/// A value of K or V is its element times the scale of its head and batch entry.
struct Inputs {
  HostTensor q;  ///< q_shape(): [B, H, seq_q, D]
  HostTensor k;  ///< kv_shape(): [B, kv_heads, seq_kv, D], or [pages, kv_heads, page, D]
  HostTensor v;  ///< likewise
  /// Where page i of batch entry b lies, at b * table_width() + i; -1 for a page it does not have.
  /// Empty unless K and V are paged.
  std::vector<std::int32_t> page_table = {};
  /// [2, batch, kv_heads]: scales of K, then of V. Empty, and all scales 1, unless they are e4m3.
  std::vector<float> kv_scales = {};
  /// [heads], in natural units of score. Empty unless the problem has sinks.
  std::vector<float> sinks = {};
  /// Of a backward pass: O and its gradient, [B, H, seq_q, D], and the log-sum-exp of every row,
  /// natural log, -infinity for a row that sees no key. Empty for a forward pass.
  HostTensor o = {}, d_o = {};
  std::vector<float> lse = {};

  /// Of K and of V, for a head that counts over batch * heads of Q.
  float k_scale(const Problem& problem, std::int64_t head) const;
  float v_scale(const Problem& problem, std::int64_t head) const;
};

/// Rounds K and V to e4m3 where the problem has them so and the inputs not yet. A head's scale maps
/// its largest value to 448 at most: as in a model, where scales are set before the values are
/// known, there is some room above, up to a factor of two, which the seed decides for each scale.
/// Heads of zeros have the scale 1.
void quantise_cache(const Problem& problem, Inputs& inputs, std::uint64_t seed);

/// Row of Q and O, each head_dim long, and of the LSE, of a query. `head` counts over batch *
/// heads.
std::int64_t q_row(const Problem& problem, std::int64_t head, std::int64_t row);

/// Row of K and V, each head_dim long, of a key. `head` counts over batch * heads of Q.
std::int64_t kv_row(const Problem& problem, const Inputs& inputs, std::int64_t head,
                    std::int64_t key);

/// Throws std::invalid_argument when dtypes, shapes or the page table are not the problem's.
void require_inputs(const Problem& problem, const Inputs& inputs);

/// The sinks of a problem's heads, drawn from the seed; none where it has none.
std::vector<float> make_sinks(const Problem& problem, std::uint64_t seed);

/// The lengths of a batch whose entries are uniform from 1 to seq_kv, the same for the same seed.
std::vector<std::int64_t> random_lengths(std::int64_t batch, std::int64_t seq_kv,
                                         std::uint64_t seed);

/// Replaces the rows of K and V that are no key of any batch entry: what lies behind a length, the
/// rest of a last page, pages in no table.
void fill_unused(const Problem& problem, Inputs& inputs, float k, float v);

/// Draws the inputs, of a backward pass without O and the LSE (complete_inputs()). Each element
/// depends on (kind, seed, tensor, index) alone; that of needle's and spike's Q and rising's K on
/// the problem's shape and mask as well. Rows that are no key hold large values, and pages lie in
/// an order of the seed's. Multi-threaded. Throws std::invalid_argument when an extent is not
/// positive, the cache has an error or the spread is out of range.
Inputs make_inputs(const Problem& problem, const InputKind& kind, std::uint64_t seed);

/// Problem::visible() of a row. `head` counts over batch * heads: it says whose length.
inline Problem::Keys visible_keys(const Problem& problem, std::int64_t row, std::int64_t head = 0) {
  return problem.visible(row, head / problem.heads);
}

/// The key that dominates a row of the needle inputs, -1 when the row sees no key. `head` counts
/// over batch * heads. Low-discrepancy over the visible keys, so that all tiles get their share.
std::int64_t needle_key(const Problem& problem, std::uint64_t seed, std::int64_t head,
                        std::int64_t row);

/// The key with the spike of a row of the spike inputs, -1 in rows without one. A third of the
/// spikes each stand anywhere in the second half of the visible keys, in the last 16 of them, and
/// at the last of them; under the mask a quarter of all stand at a hidden key instead, whose weight
/// must stay 0.
std::int64_t spike_key(const Problem& problem, std::uint64_t seed, std::int64_t head,
                       std::int64_t row);

}  // namespace fa
