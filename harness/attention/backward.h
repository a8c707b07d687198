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

/// The gradients as functions of Q, K, V, O, LSE and dO (Dao 2023, "FlashAttention-2", section
/// 3.2): P = exp(scale Q K^T - LSE), D = rowsum(dO O), dV = P^T dO, dS = P (dO V^T - D),
/// dQ = scale dS K, dK = scale dS^T Q. The heads of a row of dK or dV count over batch * kv_heads.
/// Rows must be sorted. Multi-threaded.
ExpectedRows reference_d_q(const Problem& problem, const Inputs& inputs,
                           const std::vector<RowId>& rows);
struct KeyGradientRows {
  ExpectedRows d_k, d_v;
};
KeyGradientRows reference_d_kv(const Problem& problem, const Inputs& inputs,
                               const std::vector<RowId>& rows);

/// The problem that has this one's keys as queries, so that choose_rows() chooses keys.
Problem transposed(const Problem& problem);

}  // namespace fa
