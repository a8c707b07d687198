// SPDX-License-Identifier: MIT
// The verdict on an output: every element finite, every verified row within a derived tolerance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/attention/backward.h"
#include "harness/attention/host_tensor.h"
#include "harness/attention/inputs.h"
#include "harness/attention/reference.h"
#include "kernels/problem.h"

namespace fa {

struct CheckReport {
  bool ok = false;
  std::string reason;  ///< empty when ok; else one line naming the worst element
  double max_error =
      0;  ///< |O - exact| at the worst element, the largest multiple of its tolerance
  double reference_error = 0;  ///< what the straightforward computation is allowed to err there
  double tolerance = 0;        ///< 2 * reference_error + floor, at the worst element
  double floor = 0;            ///< rounding to the output dtype, and the least error of P
  double ratio = 0;            ///< max_error / tolerance; above 1 is wrong
  std::int64_t rows_checked = 0;
  std::int64_t rows_total = 0;
  bool finite = false;          ///< over the whole tensor
  std::int64_t non_finite = 0;  ///< number of NaN and infinite elements
};

/// The verdict on an LSE.
struct LseReport {
  bool ok = false;
  std::string reason;    ///< empty when ok; else one line naming the worst row
  double max_error = 0;  ///< |LSE - exact| at the worst row
  double tolerance = 0;  ///< there
  double ratio = 0;      ///< max_error / tolerance; above 1 is wrong
};

struct VerifierOptions {
  /// Multiply-adds of Q K^T that the reference may spend: about a second on two cores.
  std::int64_t budget = std::int64_t{1} << 30;
  /// Chooses the sampled rows.
  std::uint64_t seed = 1;
};

/// Holds the reference rows of one problem and its inputs; checks any number of outputs.
///
/// The tolerance of element c of row i is  2 E s_i + floor_ic, the same rule for every kernel:
///   s_i       ExpectedRows::spread, which follows |O| down as the row sees more keys,
///   E         the largest |straightforward - exact| / s_i of all verified elements,
///   floor_ic  half an ulp of the output dtype at exact_ic (the final rounding, which nobody
///             escapes and nobody needs twice), plus for f16 2 * 2^-11 max(s_i, s_ic), for bf16
///             2^-7 max(s_i, s_ic), with s_ic the ExpectedRows::element_spread (P's own rounding:
///             the straightforward computation has the largest P of a row exactly 1, a kernel whose
///             reference is not the maximum has not), for f32 2^-24 (16 s_i + 4 |exact_ic|)
///             (approximate exp2 and reciprocal), and for each type 2^-24 s_i times the largest
///             |score| of the row (one more rounding of it).
/// The same holds for the elements of a gradient, whose E is its own, with the members of
/// ExpectedRows; floor_ic also has ExpectedRows::cancelled.
class Verifier {
 public:
  /// Computes the reference; multi-threaded. The inputs are not needed afterwards.
  Verifier(const Problem& problem, const Inputs& inputs, const VerifierOptions& options = {});

  /// Judges an output. Throws std::invalid_argument when dtype or shape are not the problem's.
  CheckReport check(const HostTensor& output) const;

  /// Judges the gradients of a backward pass; the report is of all three, its worst element that of
  /// the worst.
  CheckReport check(const Gradients& gradients) const;

  /// Judges an LSE, float32 [B, H, Nq, 1], on the verified rows; a NaN anywhere is wrong. A row
  /// without a visible key must be exactly -infinity. The tolerance of the others is twice the
  /// largest error of the straightforward computation, plus 2^-22 |LSE| (a kernel that works in
  /// base 2 rounds its factor, the maximum times it, the sum and the product with ln 2, each by
  /// 2^-24 of the result), plus for f16 and bf16 2^-11 (a row sum may be that of the rounded P),
  /// else 2^-20 (approximate exp2 and logarithm).
  LseReport check_lse(const HostTensor& lse) const;

  const Problem& problem() const { return problem_; }
  /// The verified rows of O or of the gradient of Q, sorted.
  const std::vector<RowId>& rows() const { return rows_; }

 private:
  /// What a tensor must hold in its verified rows.
  struct Expected : ExpectedRows {
    const char* name;  // for messages; empty for O
    Dtype dtype;
    Shape shape;
    std::vector<std::int64_t> rows;  // in the tensor
    double relative_error;           // E

    void measure();
    double tolerance(std::size_t element, double* floor) const;
    CheckReport check(const HostTensor& output) const;
  };
  void expect_gradients(const Inputs& inputs, const VerifierOptions& options);
  void expect(const char* name, const Problem& of, const std::vector<RowId>& ids,
              ExpectedRows reference);

  Problem problem_;
  std::vector<RowId> rows_;
  std::vector<Expected> expected_;  // O, or the gradients of Q, K and V
  std::vector<double> lse_;         // per row
  double lse_error_ = 0;            // largest error of the straightforward LSE
};

}  // namespace fa
