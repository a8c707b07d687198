// SPDX-License-Identifier: MIT
// fa check: every instance of the rungs over a suite of problems and inputs, and the relations that
// hold between outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <type_traits>

#include "harness/attention/metamorphic.h"
#include "harness/attention/mutants.h"
#include "harness/attention/suite.h"
#include "harness/cli/app.h"
#include "harness/command/arguments.h"
#include "harness/command/terminal.h"
#include "harness/device/gate.h"
#include "harness/device/gpu.h"
#include "harness/device/make_device.h"
#include "harness/io/interrupt.h"
#include "harness/measure/item.h"

namespace fa::cli {
namespace {

/// One instance under check, and how it fared.
struct Subject {
  const Rung* rung;
  const Instance* instance;
  std::string name;
  int passed = 0, wrong = 0;
  int refused = 0;   ///< cases that the suite has and the rung does not take
  double worst = 0;  ///< largest error as a share of its tolerance
};

/// A case and the subjects it is for, by index.
struct SharedCase {
  Case content;
  std::vector<std::size_t> subjects;
};

RungConstraints constraints_of(const Subject& subject) {
  RungConstraints constraints;
  constraints.head_dims = {{.head_dim = subject.instance->head_dim,
                            .multiple_q = subject.instance->tile.Br,
                            .multiple_kv = subject.instance->tile.Bc}};
  constraints.capabilities = subject.rung->capabilities;
  constraints.dtype = subject.rung->dtype;
  if (subject.rung->family == Family::decode) {
    constraints.few_queries = subject.rung->most_queries();
  }
  return constraints;
}

/// The union of the subjects' suites, small problems first, so that each reference is computed
/// once.
std::vector<SharedCase> shared_cases(Suite suite, const std::vector<Subject>& subjects) {
  std::vector<SharedCase> shared;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    for (const Case& each : suite_cases(suite, constraints_of(subjects[i]))) {
      const auto found = std::find_if(shared.begin(), shared.end(), [&](const SharedCase& other) {
        return other.content == each;
      });
      if (found == shared.end()) {
        shared.push_back({each, {i}});
      } else {
        found->subjects.push_back(i);
      }
    }
  }
  std::stable_sort(shared.begin(), shared.end(), [](const SharedCase& a, const SharedCase& b) {
    return a.content.problem.flops() < b.content.problem.flops();
  });
  return shared;
}

/// Two tiles or more in every direction, two heads; against a cache 64 queries, so that some have
/// a spike.
Problem relation_problem(const Subject& subject) {
  if (subject.rung->family == Family::decode) {
    return {.batch = 2,
            .heads = 32,
            .seq_q = 1,
            .seq_kv = 4500,
            .head_dim = subject.instance->head_dim,
            .dtype = subject.rung->dtype,
            .own_kv_heads = 8,
            .e4m3 = has(subject.rung->capabilities, Capabilities::e4m3)};
  }
  const std::int64_t seq = 2 * std::lcm(subject.instance->tile.Br, subject.instance->tile.Bc);
  return {.batch = 1,
          .heads = 2,
          .seq_q = seq,
          .seq_kv = seq,
          .head_dim = subject.instance->head_dim,
          .causal = false,
          .dtype = subject.rung->dtype};
}

class CheckRun {
 public:
  CheckRun(Device& device, std::vector<Subject> subjects, Suite suite, std::uint64_t seed)
      : device_(device), subjects_(std::move(subjects)), suite_(suite), seed_(seed) {}

  Exit execute() {
    bool interrupted = false;
    try {
      check_all();
    } catch (const io::Interrupted&) {
      interrupted = true;
    } catch (...) {
      progress_.clear();
      if (any_passed()) summary(coloured("not checked", Colour::yellow));
      throw;
    }
    progress_.clear();
    const bool good = summary(interrupted ? coloured("not checked", Colour::yellow)
                                          : coloured("nothing ran", Colour::red));
    if (!interrupted) return good ? Exit::ok : Exit::wrong;
    print_note("interrupted: this is what was checked until then");
    return Exit::interrupted;
  }

 private:
  void check_all() {
    const std::vector<SharedCase> cases = shared_cases(suite_, subjects_);
    expect(cases);
    for (const SharedCase& each : cases) {
      check_case(each);
      progress_.advance(cost_of(each));
    }
    for (Subject& subject : subjects_) {
      check_relations(subject);
      progress_.advance(cost_of(subject));
    }
  }

  // Operations: two launches of each subject, and the relations' seven or so. A launch of a few
  // keys takes the machine as long as this many operations do.
  static constexpr double kOfAnyLaunch = 1e8;
  static double cost_of(const Problem& problem, double launches) {
    return launches * (problem.flops() + kOfAnyLaunch);
  }
  static double cost_of(const SharedCase& shared) {
    return cost_of(shared.content.problem, 2 * static_cast<double>(shared.subjects.size()));
  }
  static double cost_of(const Subject& subject) { return cost_of(relation_problem(subject), 7); }

  void expect(const std::vector<SharedCase>& cases) {
    double cost = 0;
    for (const SharedCase& each : cases) cost += cost_of(each);
    for (const Subject& subject : subjects_) cost += cost_of(subject);
    progress_.expect(cases.size() + subjects_.size(), cost);
  }

  void check_case(const SharedCase& shared) {
    const Problem& problem = shared.content.problem;
    const std::string where =
        fmt::format("{} {}", to_string(problem), to_string(shared.content.inputs));
    std::vector<std::pair<Subject*, Item>> queue;
    for (const std::size_t i : shared.subjects) {
      Subject& subject = subjects_[i];
      Item item = rung_item(*subject.rung, *subject.instance, problem, device_.description(),
                            shared.content.inputs);
      if (item.refused.empty()) {
        queue.emplace_back(&subject, std::move(item));
      } else {
        ++subject.refused;
      }
    }
    if (queue.empty()) return;
    progress_.show(where);
    device_.require_memory(problem);
    const Verifier verifier = [&] {
      const Inputs inputs = make_inputs(problem, shared.content.inputs, seed_);
      device_.load(problem, inputs);
      return Verifier(problem, inputs);
    }();
    for (const auto& [subject, each] : queue) {
      const Item& item = each;
      progress_.show(fmt::format("{}, {}", where, subject->name));
      const Verdict verdict = guarded(*subject, where, [&] {
        return pass_gate(
            device_, [&] { device_.launch(item.plan); }, verifier);
      });
      if (verdict.check.finite) subject->worst = std::max(subject->worst, verdict.check.ratio);
      record(*subject, verdict.ok, where, verdict.reason, verdict.details);
    }
  }

  void check_relations(Subject& subject) {
    const Forward forward = [&](const Problem& problem, const Inputs& inputs) {
      const Item item = rung_item(*subject.rung, *subject.instance, problem, device_.description());
      if (!item.refused.empty()) throw UsageError(item.refused);
      device_.load(problem, inputs);
      device_.launch(item.plan);
      return device_.download_output();
    };
    const auto relate = [&](const Problem& problem, const char* what, auto&& relation) {
      const std::string where = fmt::format("{} {}", to_string(problem), what);
      progress_.show(fmt::format("{}: {}", where, subject.name));
      const Inputs inputs = make_inputs(problem, Distribution::normal, seed_);
      try {
        const Relation result = guarded(subject, where, [&] { return relation(problem, inputs); });
        record(subject, result.ok, where, result.reason);
      } catch (const KernelFault& fault) {
        record(subject, false, where, fault.what(), fault.details);
      }
    };
    Problem problem = relation_problem(subject);
    relate(problem, "joint key permutation", [&](const Problem& p, const Inputs& inputs) {
      return joint_permutation(p, inputs, seed_, forward);
    });
    relate(problem, "constant score shift", [&](const Problem& p, const Inputs& inputs) {
      return constant_shift(p, inputs, forward);
    });
    const auto spikes = [&](const Problem& p, const Inputs& inputs) {
      return untouched_rows(p, inputs, make_inputs(p, Distribution::spike, seed_), forward);
    };
    relate(problem, "spikes in other rows", spikes);
    if (has(subject.rung->capabilities, Capabilities::lengths)) {
      Problem part = problem;
      part.lengths = {131, 0};
      if (has(subject.rung->capabilities, Capabilities::paged)) part.page = 16;
      relate(part, "unused memory", [&](const Problem& p, const Inputs& inputs) {
        return unused_memory(p, inputs, forward);
      });
    }
    if (!has(subject.rung->capabilities, Capabilities::causal)) return;
    problem.causal = true;
    if (subject.rung->family == Family::decode) problem.seq_q = kFewQueries / problem.group();
    relate(problem, "spikes in other rows", spikes);
    relate(problem, "causal prefix invariance", [&](const Problem& p, const Inputs& inputs) {
      return causal_prefix_invariance(p, inputs, p.seq_kv / 2 + 3, forward);
    });
  }

  /// Names the kernel in an error that ends the run.
  template <typename Body>
  std::invoke_result_t<Body> guarded(const Subject& subject, const std::string& where, Body body) {
    const auto described = [&](const std::exception& error) {
      return fmt::format("{} at {}: {}", subject.name, where, error.what());
    };
    try {
      return body();
    } catch (const OutOfMemory& error) {
      throw OutOfMemory(described(error));
    } catch (const DeviceError& error) {
      throw DeviceError(described(error));
    }
  }

  void record(Subject& subject, bool ok, const std::string& where, const std::string& reason,
              const std::string& details = {}) {
    ++(ok ? subject.passed : subject.wrong);
    if (ok) return;
    progress_.clear();
    fmt::print("{}: {} at {}: {}\n", coloured("wrong", Colour::red), subject.name, where, reason);
    if (!details.empty()) fmt::print("{}\n", details);
    std::fflush(stdout);
  }

  bool any_passed() const {
    return std::any_of(subjects_.begin(), subjects_.end(),
                       [](const Subject& subject) { return subject.passed > 0; });
  }

  /// Prints a line for each subject; true when all are good.
  bool summary(const std::string& untouched) const {
    std::size_t width = 0;
    for (const Subject& subject : subjects_) width = std::max(width, subject.name.size());
    bool good = true;
    for (const Subject& subject : subjects_) {
      good &= subject.wrong == 0 && subject.passed > 0;
      const std::string verdict = subject.wrong > 0    ? coloured("wrong", Colour::red)
                                  : subject.passed > 0 ? coloured("ok", Colour::green)
                                                       : untouched;
      fmt::print(
          "{:{}}  {:5} passed  {:3} wrong  {:3} refused  error up to {:.2f} of tolerance  {}\n",
          subject.name, width, subject.passed, subject.wrong, subject.refused, subject.worst,
          verdict);
    }
    return good;
  }

  Device& device_;
  std::vector<Subject> subjects_;
  Suite suite_;
  std::uint64_t seed_;
  Progress progress_;
};

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    add_rungs(app, words_, "or all (default all)");
    add_choice<Suite>(
        app, "--suite", suite_,
        {{to_string(Suite::quick), Suite::quick}, {to_string(Suite::full), Suite::full}},
        "Cases (default quick)");
    add_device(app, device_);
    add_seed(app, seed_);
    add_vm_options(app, vm_);
    add_no_ablations(app, no_ablations_);
    add_exact_buffers(app, exact_buffers_);
    app.add_flag("--mutants", mutants_,
                 "Instead, show that the check rejects wrong outputs made on the CPU; no device");
  }

  Exit execute() override {
    if (mutants_ && !words_.empty()) {
      throw UsageError(fmt::format("--mutants checks no rung, and '{}' is one", words_.front()));
    }
    if (mutants_) return check_mutants();
    const std::vector<const Rung*> rungs = select_rungs(words_);
    const std::unique_ptr<Device> device =
        make_device(device_, {.exact_buffers = exact_buffers_, .vm = vm_});
    print_note(fmt::format("device: {} ({})", device->name(), device->kind()));
    std::vector<Subject> subjects;
    for (const Rung* rung : rungs) {
      if (left_out(device_refusal(*rung, device->description()), rungs.size() == 1)) continue;
      for (const Instance& instance : rung->kernels->instances) {
        const bool own = &instance == rung->find_instance(instance.head_dim);
        if (!own && no_ablations_) continue;
        if (left_out(device_refusal(*rung, device->description(), &instance), false)) continue;
        subjects.push_back(
            {rung, &instance,
             fmt::format("{} {} d{}", rung->name, to_string(instance.tile), instance.head_dim)});
      }
    }
    if (subjects.empty()) throw DeviceError("none of these rungs runs on " + device->name());
    return CheckRun(*device, std::move(subjects), suite_, seed_).execute();
  }

 private:
  /// A rung that is asked for by name and cannot run is an error; as one of many, or a tile of
  /// several, it is left out, and that is said.
  static bool left_out(const std::optional<std::string>& refusal, bool by_name) {
    if (!refusal) return false;
    if (by_name) throw DeviceError(*refusal);
    print_note("not checked: " + *refusal);
    return true;
  }

  Exit check_mutants() const {
    const std::vector<Problem> problems = mutant_problems();
    const std::size_t pairs = problems.size() * all_distributions().size();
    std::vector<MutantResult> results;
    std::size_t judged = 0;
    Progress progress;
    double cost = 0;
    for (const Problem& problem : problems) cost += mutant_cost(problem);
    progress.expect(pairs, cost * static_cast<double>(all_distributions().size()));
    try {
      for (const Problem& problem : problems) {
        for (const Distribution distribution : all_distributions()) {
          progress.show(fmt::format("{} {}", to_string(problem), to_string(distribution)));
          const std::vector<MutantResult> some = mutant_results(problem, distribution, seed_);
          results.insert(results.end(), some.begin(), some.end());
          ++judged;
          progress.advance(mutant_cost(problem));
        }
      }
    } catch (const io::Interrupted&) {
      // What follows says what was judged until then.
    }
    progress.clear();
    if (judged > 0) fmt::print("{}", mutant_markdown(results));
    const Exit verdict = print_mistakes(results);
    if (judged == pairs) return verdict;
    print_note(fmt::format("interrupted: {} of {} pairs of problem and inputs were judged", judged,
                           pairs));
    return Exit::interrupted;
  }

  static Exit print_mistakes(const std::vector<MutantResult>& results) {
    Exit verdict = Exit::ok;
    for (const MutantResult& result : results) {
      const bool honest = is_honest(result.mutant);
      if (honest ? !result.rejected : result.rejected || !result.invisible.empty()) continue;
      verdict = Exit::wrong;
      fmt::print("{}: {} is {} at {} {}\n", coloured("wrong", Colour::red), result.mutant,
                 honest ? "rejected" : "not rejected", to_string(result.problem),
                 to_string(result.distribution));
    }
    return verdict;
  }

  std::vector<std::string> words_;
  std::string device_ = "auto";
  Suite suite_ = Suite::quick;
  std::uint64_t seed_ = 1;
  VmOptions vm_;
  bool no_ablations_ = false, exact_buffers_ = false, mutants_ = false;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace fa::cli
