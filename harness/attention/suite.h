// SPDX-License-Identifier: MIT
// Which problems `fa check` runs for a rung.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/attention/inputs.h"
#include "kernels/problem.h"
#include "kernels/types.h"

namespace fa {

enum class Suite { quick, full };

/// "quick", "full".
const char* to_string(Suite suite);

/// What a rung takes, as the suite needs to know it.
struct RungConstraints {
  struct HeadDim {
    int head_dim = 128;
    int multiple_q = 64;   ///< seq_q must be a multiple of this (Br) unless ragged
    int multiple_kv = 64;  ///< seq_kv must be a multiple of this (Bc) unless ragged
  };
  std::vector<HeadDim> head_dims;
  Capabilities capabilities = Capabilities::none;  ///< with lse, every case asks for it
  Dtype dtype = Dtype::f16;
  /// Of a rung for new queries against a cache: how many a batch entry may have; 0 for any other.
  std::int64_t few_queries = 0;
};

struct Case {
  Problem problem;
  InputKind inputs;
  /// SMs that the launch is planned for; 0: those of the device. Few of them give each thread block
  /// of a persistent kernel several tiles.
  int sms = 0;
  bool operator==(const Case&) const = default;
};

/// The distributions, scores of standard deviation 4 and 16, and shifts by 8000.
std::vector<InputKind> suite_inputs();

/// Cases in order of growing size, without repeats.
///
/// quick  seconds on the virtual machine: one tile, several batches, heads and tiles with narrow
///        scores, wide, rising and spiking scores over 512 keys, seq_q != seq_kv, a few ragged
///        lengths; at most 8 query tiles or 640 rows.
/// Rungs for few queries have cases of their own: groups of heads, lengths, pages, each as far as
/// the rung takes them; so have those that compute gradients.
///
/// full   B x H in {1x1, 2x3, 4x16}, N from one tile to 8192, every kind of inputs, seq_q != seq_kv
///        both ways, every ragged length of {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 8191}.
std::vector<Case> suite_cases(Suite suite, const RungConstraints& constraints);

}  // namespace fa
