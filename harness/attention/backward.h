// SPDX-License-Identifier: MIT
// The gradients of attention on the CPU for chosen rows.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/attention/host_tensor.h"
#include "harness/attention/inputs.h"
#include "harness/attention/reference.h"
#include "kernels/problem.h"

namespace fa {

/// The results of a backward pass, with the shapes and types of Q, K and V.
struct Gradients {
  HostTensor d_q, d_k, d_v;
};

/// Makes O and the LSE of a backward pass from Q, K and V: those of an exact forward pass, rounded
/// to their types. Does nothing for a forward pass. Multi-threaded.
void complete_inputs(const Problem& problem, Inputs& inputs);

/// make_inputs(), completed.
Inputs make_pass_inputs(const Problem& problem, const InputKind& kind, std::uint64_t seed);

/// Rows of one gradient, each head_dim long, in the order they were asked for. Members mean what
/// those of ReferenceRows do.
struct GradientRows {
  std::vector<double> exact;
  /// P = exp(S - LSE) and dS = P (dO V^T - D) in FP32, each rounded to the type of Q ahead of its
  /// products, whose FP32 accumulator truncates after each 8 rows, as tensor cores do; without
  /// these roundings for f32.
  std::vector<float> straightforward;
  /// Per row and per element: what independent relative errors of the weights (P or dS) amount to,
  /// per unit of error.
  std::vector<double> spread, element_spread;
  /// Per element: what errors of dS amount to that do not shrink with it. Independent ones: 2^-22 P
  /// of the lengths |dO| |V| + |dO| |O|, from sums of head_dim products, in whatever order, ahead
  /// of their difference; 2^-126 of them, as ex2 flushes smaller P to 0; and for float16 half of
  /// its smallest step, 2^-25, of scale dS. And, but for float32, those that all go the same way:
  /// what truncation on tensor cores takes from dO V^T. For dV, 2^-124 of dO.
  std::vector<double> cancelled;
  /// Per row, the largest magnitude of a scaled score with a query or key that it sees.
  std::vector<double> largest_score;
};

/// The gradients as functions of Q, K, V, O, LSE and dO (Dao 2023, "FlashAttention-2", section
/// 3.2): P = exp(scale Q K^T - LSE), D = rowsum(dO O), dV = P^T dO, dS = P (dO V^T - D),
/// dQ = scale dS K, dK = scale dS^T Q. The heads of a row of dK or dV count over batch * kv_heads.
/// Rows must be sorted. Multi-threaded.
GradientRows reference_d_q(const Problem& problem, const Inputs& inputs,
                           const std::vector<RowId>& rows);
struct KeyGradientRows {
  GradientRows d_k, d_v;
};
KeyGradientRows reference_d_kv(const Problem& problem, const Inputs& inputs,
                               const std::vector<RowId>& rows);

/// The problem that has this one's keys as queries, so that choose_rows() chooses keys.
Problem transposed(const Problem& problem);

}  // namespace fa
