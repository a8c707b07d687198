// SPDX-License-Identifier: MIT
#include "harness/cli/problem_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "harness/cli/arguments.h"

namespace fa::cli {
namespace {

// Largest extents that are taken from the command line; a rung may take less.
constexpr std::int64_t kMaxBatchOrHeads = 65535;
constexpr std::int64_t kMaxSequence = std::int64_t{1} << 30;
constexpr std::int64_t kMaxHeadDim = 1024;

}  // namespace

ProblemOptions::ProblemOptions(ProblemUse use)
    : use_(std::move(use)), shape_(use_.shape), seqs_(use_.seqs), dims_{use_.shape.head_dim} {
  if (seqs_.empty()) seqs_ = {shape_.seq_q};
}

void ProblemOptions::declare(CLI::App& app) {
  decided_by_files_ = {add_integer(app, "--batch", shape_.batch, 1, kMaxBatchOrHeads,
                                   fmt::format("Batch (default {})", shape_.batch)),
                       add_integer(app, "--heads", shape_.heads, 1, kMaxBatchOrHeads,
                                   fmt::format("Heads (default {})", shape_.heads))};
  declare_seq(app);
  declare_dim(app);
  app.add_flag("--causal", shape_.causal,
               use_.seq_kv ? "Query i sees keys j <= i + seq_kv - seq_q only"
                           : "Query i sees keys j <= i only");
  if (use_.lse) {
    app.add_flag("--lse", shape_.lse, "Ask for the log-sum-exp of every row too, and check it");
  }
  if (use_.cache) declare_cache(app);
  declare_inputs(app);
  if (use_.seed) decided_by_files_.push_back(add_seed(app, seed_));
}

void ProblemOptions::declare_seq(CLI::App& app) {
  if (!use_.seqs.empty()) {
    add_integers(app, "--seqs", seqs_, 1, kMaxSequence,
                 fmt::format("Sequence lengths (default {})", fmt::join(seqs_, ",")));
    return;
  }
  decided_by_files_.push_back(
      add_integer(app, "--seq", seqs_.front(), 1, kMaxSequence,
                  fmt::format("Queries and keys (default {})", seqs_.front())));
  if (!use_.seq_kv) return;
  decided_by_files_.push_back(
      add_integer(app, "--seq-kv", seq_kv_, 1, kMaxSequence, "Keys, where other than --seq"));
}

void ProblemOptions::declare_dim(CLI::App& app) {
  const std::string otherwise =
      use_.dim_default.empty() ? fmt::format("{}", shape_.head_dim) : use_.dim_default;
  dim_ = use_.dims
             ? add_integers(app, "--dim", dims_, 1, kMaxHeadDim,
                            fmt::format("head_dim, or a list: 128,64 (default {})", otherwise))
             : add_integer(app, "--dim", dims_.front(), 1, kMaxHeadDim,
                           fmt::format("head_dim (default {})", otherwise));
  decided_by_files_.push_back(dim_);
}

void ProblemOptions::declare_cache(CLI::App& app) {
  if (!use_.seqs.empty()) {
    add_integer(app, "--queries", queries_, 1, kMaxSequence,
                "New queries against a cache of --seqs keys (default as many as keys)");
  }
  decided_by_files_.push_back(
      add_integer(app, "--kv-heads", shape_.own_kv_heads, 1, kMaxBatchOrHeads,
                  "Heads of K and V, which query heads share (default as many as --heads)"));
  decided_by_files_.push_back(
      app.add_option_function<std::string>(
             "--lengths", [this](const std::string& text) { take_lengths(text); },
             "Keys of each batch entry: 300,0,17, or random from 1 to all (default all)")
          ->type_name("N,N,...|random"));
  decided_by_files_.push_back(add_integer(app, "--page", shape_.page, 1, kMaxSequence,
                                          "Keys of a page of the cache (default not paged)"));
}

void ProblemOptions::take_lengths(const std::string& text) {
  random_lengths_ = text == "random";
  shape_.lengths.clear();
  if (random_lengths_) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    try {
      shape_.lengths.push_back(parse_integer("--lengths", entry, 0, kMaxSequence));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}, nor is all of it random", error.what()));
    }
    begin = end + 1;
  }
}

void ProblemOptions::declare_inputs(CLI::App& app) {
  std::vector<std::pair<std::string, Distribution>> distributions;
  for (const Distribution each : all_distributions()) {
    distributions.emplace_back(to_string(each), each);
  }
  decided_by_files_.push_back(add_choice(app, "--inputs", inputs_.distribution, distributions,
                                         "Distribution of Q, K and V (default normal)"));
  decided_by_files_.push_back(
      app.add_option_function<std::string>(
             "--spread",
             [this](const std::string& text) { inputs_.spread = parse_spread("--spread", text); },
             "Factor on Q: the standard deviation of normal scores (default 1)")
          ->type_name("S"));
}

std::vector<Problem> ProblemOptions::problems() const {
  std::vector<Problem> all;
  for (const std::int64_t seq : seqs_) {
    for (const std::int64_t dim : dims_) {
      Problem problem = shape_;
      problem.seq_q = queries_ > 0 ? queries_ : seq;
      problem.seq_kv = seq_kv_ > 0 ? seq_kv_ : seq;
      problem.head_dim = static_cast<int>(dim);
      if (problem.own_kv_heads == problem.heads) problem.own_kv_heads = 0;
      if (random_lengths_) {
        problem.lengths = random_lengths(problem.batch, problem.seq_kv, /*seed=*/1);
      }
      if (const std::string error = cache_error(problem); !error.empty()) throw UsageError(error);
      all.push_back(problem);
    }
  }
  return all;
}

std::string with_example(const std::string& refused, const Rung& rung, const Problem& problem) {
  if (problem.seq_q <= rung.most_queries()) return refused;
  return fmt::format("{}; --seq 1 --seq-kv {} are one query and its cache", refused,
                     problem.seq_kv);
}

const CLI::Option* ProblemOptions::given_shape() const {
  for (const CLI::Option* option : decided_by_files_) {
    if (option->count() > 0) return option;
  }
  return nullptr;
}

}  // namespace fa::cli
