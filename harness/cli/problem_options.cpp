// SPDX-License-Identifier: MIT
#include "harness/cli/problem_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <string_view>
#include <utility>

#include "harness/cli/arguments.h"

namespace fa::cli {

ProblemOptions::ProblemOptions(ProblemUse use)
    : use_(std::move(use)), shape_(use_.shape), seqs_(use_.seqs), dims_{use_.shape.head_dim} {
  if (seqs_.empty()) seqs_ = {shape_.seq_q};
}

void ProblemOptions::declare(CLI::App& app) {
  each_field<Problem>([&](const auto& field) {
    auto& value = shape_.*field.member;
    if constexpr (requires { declare(app, field, value); }) {
      if (field.option) declare(app, field, value);
    }
  });
  if (use_.inputs) declare_inputs(app);
  if (use_.seed) decided_by_files_.push_back(add_seed(app, seed_));
}

void ProblemOptions::declare(CLI::App& app, const FieldFacts& field, bool& value) {
  const std::string_view name = field.name;
  if (field.if_set && !(name == "lse" ? use_.lse : use_.cache)) return;
  const bool square = name == "causal" && !use_.seq_kv;
  app.add_flag(field.option, value, square ? "Query i sees keys j <= i only" : field.help);
}

template <std::integral Integer>
void ProblemOptions::declare(CLI::App& app, const FieldFacts& field, Integer& value) {
  const std::string_view name = field.name;
  const bool window = name.starts_with("window");
  const auto add = [&](auto& of, const std::string& help) {
    return add_integer(app, field.option, of, window ? 0 : 1, field.most, help);
  };
  const auto with_default = [&](const std::string& help, const auto& otherwise) {
    return fmt::format("{} (default {})", help, otherwise);
  };
  if (name == "seq_q" && !use_.seqs.empty()) {
    seq_ = add_integers(app, "--seqs", seqs_, 1, field.most,
                        with_default("Sequence lengths", fmt::format("{}", fmt::join(seqs_, ","))));
  } else if (name == "seq_q") {
    seq_ = add(seqs_.front(), with_default(field.help, seqs_.front()));
    decided_by_files_.push_back(seq_);
  } else if (name == "seq_kv") {
    if (use_.seq_kv && use_.seqs.empty()) decided_by_files_.push_back(add(seq_kv_, field.help));
  } else if (name == "head_dim") {
    const std::string otherwise =
        use_.dim_default.empty() ? fmt::format("{}", value) : use_.dim_default;
    dim_ = use_.dims ? add_integers(app, field.option, dims_, 1, field.most,
                                    with_default("head_dim, or a list: 128,64", otherwise))
                     : add(dims_.front(), with_default(field.help, otherwise));
    decided_by_files_.push_back(dim_);
  } else if (!field.if_set) {
    decided_by_files_.push_back(add(value, with_default(field.help, value)));
    if (name == "batch") batch_ = decided_by_files_.back();
  } else if (use_.cache) {
    if (name == "own_kv_heads" && !use_.seqs.empty()) {
      add_integer(app, "--queries", queries_, 1, kMostKeys,
                  "New queries against a cache of --seqs keys (default as many as keys)");
    }
    const CLI::Option* added = add(value, field.help);
    if (!window) decided_by_files_.push_back(added);
  }
}

void ProblemOptions::declare(CLI::App& app, const FieldFacts& field, Dtype& value) {
  if (!use_.types) return;
  add_choice(app, field.option, value,
             {{to_string(Dtype::f16), Dtype::f16},
              {to_string(Dtype::f32), Dtype::f32},
              {to_string(Dtype::bf16), Dtype::bf16}},
             field.help);
}

void ProblemOptions::declare(CLI::App& app, const FieldFacts& field,
                             std::vector<std::int64_t>& numbers) {
  if (!use_.cache) return;
  if (std::string_view(field.name) == "strides") {
    add_choice(app, field.option, rows_first_, {{"bhnd", false}, {"bnhd", true}}, field.help);
    return;
  }
  bool& random = &numbers == &shape_.lengths ? random_lengths_ : random_query_lengths_;
  decided_by_files_.push_back(app.add_option_function<std::string>(
                                     field.option,
                                     [this, field, &numbers, &random](const std::string& text) {
                                       take_lengths(field, text, numbers, random);
                                     },
                                     field.help)
                                  ->type_name("N,N,...|random"));
}

void ProblemOptions::take_lengths(const FieldFacts& field, const std::string& text,
                                  std::vector<std::int64_t>& lengths, bool& random) {
  random = text == "random";
  lengths.clear();
  if (random) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    try {
      lengths.push_back(parse_integer(field.option, entry, 0, kMostKeys));
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
      pack(problem);
      if (rows_first_) problem.strides = row_major_strides(problem);
      if (const std::string error = cache_error(problem); !error.empty()) throw UsageError(error);
      all.push_back(problem);
    }
    // The lengths say how long the sequences are.
    if (shape_.packed() && seq_->count() == 0) break;
  }
  return all;
}

// The batch and the longest sequence follow from the lengths where they are not given.
void ProblemOptions::pack(Problem& problem) const {
  if (random_query_lengths_)
    problem.query_lengths = random_lengths(problem.batch, problem.seq_q, /*seed=*/1);
  if (!problem.packed()) return;
  if (problem.lengths.empty()) problem.lengths = problem.query_lengths;
  if (random_query_lengths_) return;
  if (batch_->count() == 0) problem.batch = std::ssize(problem.query_lengths);
  const auto greatest = [](const std::vector<std::int64_t>& lengths) {
    return std::max<std::int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  };
  if (seq_->count() > 0) return;
  problem.seq_q = greatest(problem.query_lengths);
  if (seq_kv_ == 0) problem.seq_kv = greatest(problem.lengths);
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
