#include "harness/cli/count.h"

#include <utility>

#include "harness/bench/counts.h"
#include "harness/cli/arguments.h"

namespace fa::cli {

void CountProblem::declare(CLI::App& app, bool several_dims) {
  add_integer(app, "--batch", problem_.batch, 1, kMaxBatchOrHeads, "Batch (default 1)");
  add_integer(app, "--heads", problem_.heads, 1, kMaxBatchOrHeads, "Heads (default 2)");
  add_integer(app, "--seq", problem_.seq_q, 1, kMaxSequence, "Queries and keys (default 512)");
  add_integer(app, "--seq-kv", seq_kv_, 1, kMaxSequence, "Keys, where other than --seq");
  app.add_option_function<std::string>(
         "--dim",
         [this, several_dims](const std::string& text) {
           dims_ = several_dims ? parse_integers("--dim", text, 1, kMaxHeadDim)
                                : std::vector{parse_integer("--dim", text, 1, kMaxHeadDim)};
         },
         several_dims ? "head_dim, or a list: 128,64 (default 128)" : "head_dim (default 128)")
      ->type_name(several_dims ? "N,N,..." : "N");
  app.add_flag("--causal", problem_.causal, "Query i sees keys j <= i + seq_kv - seq_q only");
  add_inputs(app, inputs_);
}

std::vector<Problem> CountProblem::problems() const {
  std::vector<Problem> all;
  for (const std::int64_t dim : dims_) {
    Problem each = problem_;
    each.head_dim = static_cast<int>(dim);
    each.seq_kv = seq_kv_ > 0 ? seq_kv_ : each.seq_q;
    all.push_back(each);
  }
  return all;
}

Counting::Counting(VmOptions options, const InputKind& inputs)
    : device_([&] {
        options.counters = true;
        return std::move(options);
      }()),
      inputs_(inputs) {}

Counted Counting::count(BenchItem item) {
  if (!verifier_ || !(problem_ == item.problem)) {
    device_.require_memory(item.problem);
    const Inputs inputs = make_inputs(item.problem, inputs_, 1);
    verifier_ = std::make_unique<Verifier>(item.problem, inputs);
    device_.load(item.problem, inputs);
    problem_ = item.problem;
  }
  Counted counted;
  counted.verdict = pass_gate(
      device_, [&] { device_.launch(item.plan); }, *verifier_);
  item.inputs = inputs_;
  counted.item = std::move(item);
  counted.launches = device_.counts();
  counted.total = device_.total_counts();
  return counted;
}

Json counted_row(const Counted& counted, const std::string& run) {
  Json row = empty_row(counted.item, run);
  if (!counted.item.refused.empty()) return row;
  put_verdict(row, counted.verdict);
  row["counts"] = counted.verdict.ok ? counts_json(counted.total) : Json();
  return row;
}

}  // namespace fa::cli
