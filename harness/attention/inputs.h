// Q, K and V drawn from a seed: the same values on every machine, for any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/attention/host_tensor.h"
#include "harness/attention/problem.h"

namespace fa {

/// What the elements of Q, K and V look like. All values are exact in binary16, so that an FP32
/// problem has the same inputs as the FP16 problem of the same shape and seed.
///
/// normal   N(0, 1): 65536 quantiles, to 4.3 sigma. |O| is about sqrt(e / seq_kv).
/// uniform  [0, 1) in steps of 2^-11. Nearly equal weights and sums of one sign: an accumulator
/// that
///          is too narrow, or a biased rounding, shows here and nowhere else. The posts use it.
/// large    normal with Q ten times larger: scores reach +-50, exp() without the maximum taken off
///          overflows FP16, and a few keys share each row.
/// needle   one key per row holds about 9/10 of the weight: needle_key(). A key, row, column or
/// tile
///          in the wrong place is an error of the size of V itself.
enum class Distribution { normal, uniform, large, needle };

/// All of them, in the order above.
std::span<const Distribution> all_distributions();

/// "normal", "uniform", "large", "needle".
const char* to_string(Distribution distribution);

/// The distribution of that name; nullopt for any other text.
std::optional<Distribution> parse_distribution(std::string_view text);

struct Inputs {
  HostTensor q;  ///< [B, H, seq_q, D]
  HostTensor k;  ///< [B, H, seq_kv, D]
  HostTensor v;  ///< [B, H, seq_kv, D]
};

/// Draws the inputs. Each element depends on (distribution, seed, tensor, index) alone; needle's Q
/// depends on the problem's shape and mask as well. Multi-threaded. Throws std::invalid_argument
/// when an extent is not positive.
Inputs make_inputs(const Problem& problem, Distribution distribution, std::uint64_t seed);

/// The key that dominates a row of the needle inputs, -1 when the row sees no key. `head` counts
/// over batch * heads. Low-discrepancy over the visible keys, so that all tiles get their share.
std::int64_t needle_key(const Problem& problem, std::uint64_t seed, std::int64_t head,
                        std::int64_t row);

}  // namespace fa
