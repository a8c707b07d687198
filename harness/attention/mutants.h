// SPDX-License-Identifier: MIT
// Wrong outputs on purpose: what the check has to reject, and the honest output that it must not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/attention/check.h"
#include "harness/attention/inputs.h"
#include "kernels/problem.h"

namespace fa {

/// One way to be wrong. Output rows are made by emulating a fused kernel on the CPU (tiles of 64
/// keys, running maximum or a guarded reference, exp2 with the folded scale, P in FP16) with the
/// fault built in.
struct Mutant {
  const char* name;  ///< "keys_permuted"
  const char* what;  ///< one phrase for the documentation
  /// Why this fault cannot be seen with such inputs, nullptr when the check has to reject it.
  const char* (*invisible)(const Problem& problem, Distribution distribution);
  struct Fault;
  const Fault* fault;
};

/// All mutants, in the order of the documentation.
std::span<const Mutant> all_mutants();

/// The whole output with the fault. Rows not in `only` (sorted) are 0 when it is given: a mutant at
/// a large shape needs no more than the rows that are verified.
HostTensor mutant_output(const Mutant& mutant, const Problem& problem, const Inputs& inputs,
                         const std::vector<RowId>* only = nullptr);

/// The same computation without a fault: online softmax over tiles of `tile_keys` keys. With
/// `truncate` the accumulator drops bits as tensor cores do, else FP32 additions round to nearest.
HostTensor honest_output(const Problem& problem, const Inputs& inputs, int tile_keys = 64,
                         bool truncate = false, const std::vector<RowId>* only = nullptr);

/// The same in the way of a guarded kernel: the reference is the first tile's maximum and rises, by
/// whole powers of two, only where P would be too large for half.
HostTensor guarded_output(const Problem& problem, const Inputs& inputs,
                          const std::vector<RowId>* only = nullptr);

/// Whether a result of this name has no fault: "honest", "honest_guarded", "honest_split".
bool is_honest(std::string_view name);

/// One cell of the table in the documentation.
struct MutantResult {
  std::string mutant;  ///< name of the mutant, or one of is_honest()
  Problem problem;
  Distribution distribution = Distribution::normal;
  bool rejected = false;
  bool finite = true;
  double ratio = 0;       ///< error / tolerance; meaningless when not finite
  std::string invisible;  ///< the stated reason why it need not be rejected; empty when it must
};

/// Runs the honest outputs, every mutant that can be seen and those of the guard through the check,
/// on one problem. Throws io::Interrupted.
std::vector<MutantResult> mutant_results(const Problem& problem, Distribution distribution,
                                         std::uint64_t seed = 1);

/// Work of mutant_results() in any unit.
double mutant_cost(const Problem& problem);

/// The problems that the documentation and the tests use: FP16, FP32 and e4m3, causal and not, with
/// a window, with sinks, packed; up to 8192 keys; a paged cache with grouped heads and lengths from
/// 0 on.
std::vector<Problem> mutant_problems();

/// Markdown: a row per mutant, a column per distribution, each cell the smallest error / tolerance
/// over the problems where the fault can be seen (for the honest outputs the largest).
std::string mutant_markdown(std::span<const MutantResult> results);

}  // namespace fa
