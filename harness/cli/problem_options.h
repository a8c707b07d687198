// SPDX-License-Identifier: MIT
// The options that say what a command runs, declared once for all commands.
#pragma once

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/attention/inputs.h"
#include "kernels/catalogue.h"
#include "kernels/problem.h"

namespace fa::cli {

/// Which of them a command has, and what they are without being given.
struct ProblemUse {
  Problem shape;                   ///< defaults
  std::vector<std::int64_t> seqs;  ///< not empty: --seqs, a list, instead of --seq
  std::string dim_default;         ///< of --dim, where it is not shape.head_dim alone
  bool seq_kv = false;             ///< --seq-kv
  bool dims = false;               ///< --dim is a list
  bool lse = false;                ///< --lse
  bool seed = false;               ///< --seed
  bool cache = false;              ///< --kv-heads, --lengths, --page, --layout, --sinks, windows
  bool types = false;              ///< --dtype
  bool inputs = true;              ///< --inputs, --spread
};

/// --batch, --heads, --seq, --dim, --causal and what else the use says.
class ProblemOptions {
 public:
  explicit ProblemOptions(ProblemUse use);

  void declare(CLI::App& app);

  /// Each sequence length with each head_dim, float16 unless --dtype says otherwise. Throws
  /// UsageError where kv_heads, lengths or page do not fit the rest.
  std::vector<Problem> problems() const;
  /// The first of them.
  Problem problem() const { return problems().front(); }
  /// Whether files hold [batch, row, head, head_dim].
  bool rows_first() const { return rows_first_; }
  const InputKind& inputs() const { return inputs_; }
  std::uint64_t seed() const { return seed_; }
  bool dim_given() const { return dim_->count() > 0; }
  /// The first option that was given of those that files of Q, K and V decide; nullptr for none.
  const CLI::Option* given_shape() const;

 private:
  // The option of one field. Fields that a command leaves as they are have none.
  void declare(CLI::App& app, const FieldFacts& field, bool& value);
  template <std::integral Integer>
  void declare(CLI::App& app, const FieldFacts& field, Integer& value);
  void declare(CLI::App& app, const FieldFacts& field, std::vector<std::int64_t>& numbers);
  void declare(CLI::App& app, const FieldFacts& field, Dtype& value);
  void declare_inputs(CLI::App& app);
  void take_lengths(const FieldFacts& field, const std::string& text,
                    std::vector<std::int64_t>& lengths, bool& random);
  void pack(Problem& problem) const;

  ProblemUse use_;
  Problem shape_;
  std::vector<std::int64_t> seqs_, dims_;
  std::int64_t seq_kv_ = 0;
  std::int64_t queries_ = 0;  ///< new queries against seqs; 0: as many as keys
  bool random_lengths_ = false, random_query_lengths_ = false;
  bool rows_first_ = false;  ///< --layout bnhd
  InputKind inputs_;
  std::uint64_t seed_ = 1;
  const CLI::Option *batch_ = nullptr, *seq_ = nullptr;
  CLI::Option* dim_ = nullptr;
  std::vector<const CLI::Option*> decided_by_files_;
};

/// Why a rung refuses a problem, and for rungs that take few queries options that they take.
std::string with_example(const std::string& refused, const Rung& rung, const Problem& problem);

}  // namespace fa::cli
