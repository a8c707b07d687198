// SPDX-License-Identifier: MIT
// mma.sync with tf32, 8-bit, 4-bit, 1-bit and f64 operands (PTX ISA 9.7.14.5).
#include <cmath>

#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/ops/tensor_kind.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

struct Product {
  num::TensorKind kind;
  uint8_t halves, steps;  // rows / 8, of 16 bytes of k
};

Step multiply_any(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto product = op.aux.as<Product>();
  const num::TensorKind kind = product.kind;
  const int halves = product.halves, steps = product.steps;
  const int sums = kind.sum == num::Sum::kF16 ? halves : 2 * halves;
  uint32_t* reg[4 + 4 + 2 + 4];
  const int count = 2 * sums + steps * (halves + 1);
  for (int i = 0; i < count; ++i) reg[i] = w.at<uint32_t>(op.list[i]);
  uint32_t* const* a = reg + sums;
  uint32_t* const* b = a + steps * halves;
  num::multiply_fragments(kind, 8 * halves, steps, reg, a, b, b + steps);
  return Step::kNext;
}

// kHalves: rows / 8. A lane holds one element of each register: row l/4 of A and column l/4 of B,
// at l%4 of four in k.
template <int kHalves, int kSteps>
Step multiply_double(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  constexpr int kSums = 2 * kHalves;
  double sums[kHalves * 8][8];
  const auto at = [&](int i) { return w.at<double>(op.list[i]); };
  const auto for_sums = [&](int first, auto f) {
    for (int i = 0; i < kSums; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        f(sums[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2], at(first + i)[lane]);
      }
    }
  };
  constexpr int kA = kSums, kB = kA + kHalves * kSteps, kC = kB + kSteps;
  for_sums(kC, [](double& sum, double& c) { sum = c; });
  for (int row = 0; row < kHalves * 8; ++row) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < kSteps * 4; ++k) {
        const double a = at(kA + k / 4 * kHalves + row / 8)[row % 8 * 4 + k % 4];
        const double b = at(kB + k / 4)[n * 4 + k % 4];
        sums[row][n] = std::fma(a, b, sums[row][n]);
      }
    }
  }
  for_sums(0, [](double& sum, double& d) { d = sum; });
  return Step::kNext;
}

}  // namespace

Bound mma_any(Modifiers& m) {
  const num::TensorKind kind = tensor_kind_of(m);
  const auto& operands = m.spelling().operands;
  const int steps = operands[2].count, halves = operands[1].count / steps;
  m.choice({"m16n8k16", "m16n8k32"});
  return code(multiply_any,
              Product{kind, static_cast<uint8_t>(halves), static_cast<uint8_t>(steps)});
}

Bound mma_f64(Modifiers& m) {
  switch (m.choice({"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"})) {
    case 0:
      return code(multiply_double<1, 1>);
    case 1:
      return code(multiply_double<2, 1>);
    case 2:
      return code(multiply_double<2, 2>);
    default:
      return code(multiply_double<2, 4>);
  }
}

}  // namespace ptxvm::ops
