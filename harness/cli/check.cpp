// SPDX-License-Identifier: MIT
// fa check: every instance of the rungs over a suite of problems and inputs, and the relations that
// hold between outputs.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <type_traits>

#include "harness/attention/metamorphic.h"
#include "harness/attention/mutants.h"
#include "harness/attention/suite.h"
#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/terminal.h"
#include "harness/device/gate.h"
#include "harness/device/gpu.h"
#include "harness/device/host_memory.h"
#include "harness/device/make_device.h"
#include "harness/io/interrupt.h"
#include "harness/measure/inputs_for.h"
#include "harness/measure/item.h"

namespace fa::cli {
namespace {

/// One instance under check, and how it fared.
struct Subject {
  const Rung* rung;
  const Instance* instance;
  std::string name;
  int passed = 0, wrong = 0;
  int refused = 0;  ///< cases that the suite has and the rung does not take
  /// Largest error as a share of its tolerance; nothing while no output was finite.
  std::optional<double> worst = {};
};

/// What a checker found in cases of one rung, at one place of its source.
struct FindingGroup {
  const Rung* rung;
  std::string kind, place, first;  ///< the first case
  int cases = 0;
  std::size_t last = 0;  ///< the last case that has it, by its task
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
  constraints.dtype = subject.rung->dtype_of(*subject.instance);
  if (subject.rung->family == Family::decode) {
    constraints.few_queries = subject.rung->most_queries();
  }
  return constraints;
}

DeviceDescription device_for(const Case& asked, DeviceDescription device) {
  if (asked.sms > 0) device.sms = std::min(device.sms, asked.sms);
  return device;
}

/// Whether a case for few SMs would repeat what the whole device does with it. A planner that fails
/// is judged with the case.
bool is_the_same_on_few_sms(const Subject& subject, const Case& asked,
                            const DeviceDescription& device) try {
  if (asked.sms == 0) return false;
  const auto launches = [&](const DeviceDescription& each) {
    return rung_item(*subject.rung, *subject.instance, asked.problem, each, asked.inputs)
        .plan.launches;
  };
  return launches(device) == launches(device_for(asked, device));
} catch (const KernelFault&) {
  return false;
}

/// The union of the subjects' suites, small problems first, so that each reference is computed
/// once.
std::vector<SharedCase> shared_cases(Suite suite, const std::vector<Subject>& subjects,
                                     const DeviceDescription& device) {
  std::vector<SharedCase> shared;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    for (const Case& each : suite_cases(suite, constraints_of(subjects[i]))) {
      if (is_the_same_on_few_sms(subjects[i], each, device)) continue;
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
            .seq_kv = 2300,
            .head_dim = subject.instance->head_dim,
            .dtype = subject.rung->dtype_of(*subject.instance),
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
          .dtype = subject.rung->dtype_of(*subject.instance)};
}

/// A case while its subjects are checked: inputs and reference are made by whoever comes first.
class Judged {
 public:
  explicit Judged(const SharedCase& shared)
      : content_(shared.content), left_(shared.subjects.size()) {}

  const Case& content() const { return content_; }
  std::string where() const {
    const std::string where =
        fmt::format("{} {}", to_string(content_.problem), to_string(content_.inputs));
    if (content_.sms == 0) return where;
    return fmt::format("{} on {} SM{}", where, content_.sms, content_.sms == 1 ? "" : "s");
  }

  /// Loads the inputs into a device. Its host memory must have been asked for.
  const Verifier& load(Device& device, std::uint64_t seed, bool alone) {
    std::call_once(made_, [&] {
      inputs_ = inputs_for(device, content_.problem, content_.inputs, seed);
      verifier_.emplace(content_.problem, *inputs_);
    });
    device.load(content_.problem, *inputs_);
    if (alone) inputs_.reset();
    return *verifier_;
  }

  /// One subject needs it no longer.
  void release() {
    if (--left_ > 0) return;
    inputs_.reset();
    verifier_.reset();
  }

 private:
  Case content_;
  std::atomic<std::size_t> left_;
  std::once_flag made_;
  std::optional<Inputs> inputs_;
  std::optional<Verifier> verifier_;
};

/// What one check of a subject found.
struct Outcome {
  bool refused = false, ok = false;
  std::string where, reason = {};
  std::vector<KernelFinding> findings = {};
  std::optional<double> worst = {};
};

/// A device, and the case that is loaded into it.
struct Worker {
  Device& device;
  const Judged* loaded = nullptr;
  const Verifier* verifier = nullptr;
};

/// One check of a subject.
struct Task {
  std::size_t subject;
  double cost;
  std::function<Outcome(Worker&)> run;
};

/// Checks the subjects on one device or on several at once, which does not change what is printed.
class CheckRun {
 public:
  CheckRun(std::vector<std::unique_ptr<Device>> devices, std::vector<Subject> subjects, Suite suite,
           std::uint64_t seed, bool fail_fast)
      : devices_(std::move(devices)),
        subjects_(std::move(subjects)),
        suite_(suite),
        seed_(seed),
        fail_fast_(fail_fast) {}

  Exit execute() {
    std::optional<io::Interrupted> interrupted;
    try {
      check_all();
    } catch (const io::Interrupted& interruption) {
      interrupted = interruption;
    } catch (...) {
      progress_.clear();
      if (any_passed()) summary(coloured("not checked", Colour::yellow));
      throw;
    }
    progress_.clear();
    const bool good = summary(interrupted || fail_fast_ ? coloured("not checked", Colour::yellow)
                                                        : coloured("nothing ran", Colour::red));
    if (!interrupted) return good ? Exit::ok : Exit::wrong;
    print_note(interrupted->note("this is what was checked until then"));
    return Exit::interrupted;
  }

 private:
  void check_all() {
    for (const SharedCase& each : shared_cases(suite_, subjects_, devices_.front()->description()))
      add_case(each);
    for (std::size_t i = 0; i < subjects_.size(); ++i) add_relations(i);
    double cost = 0;
    for (const Task& task : tasks_) cost += task.cost;
    progress_.expect(tasks_.size(), cost);

    outcomes_.resize(tasks_.size());
    {
      std::vector<std::jthread> others;
      // Asked once, because those that have begun take memory.
      const std::size_t count = workers();
      for (std::size_t i = 1; i < count; ++i)
        others.emplace_back([this, i] { work(*devices_[i]); });
      work(*devices_.front());
    }
    // What was found behind the one that failed counts as well.
    for (; recorded_ < tasks_.size(); ++recorded_) record_next();
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Devices at work: each may hold the largest of the problems, with inputs and outputs.
  std::size_t workers() const {
    const std::size_t most = std::min(devices_.size(), tasks_.size());
    const std::optional<std::uint64_t> available = io::available_memory();
    if (!available || largest_ == 0) return most;
    return std::min(most, static_cast<std::size_t>(static_cast<double>(*available) / largest_));
  }

  void work(Device& device) {
    Worker worker{device};
    for (std::size_t i = next_++; i < tasks_.size(); i = next_++) {
      try {
        io::stop_if_interrupted();
        Outcome outcome = tasks_[i].run(worker);
        const std::lock_guard lock(mutex_);
        outcomes_[i] = std::move(outcome);
        for (; recorded_ < tasks_.size() && outcomes_[recorded_]; ++recorded_) record_next();
      } catch (...) {
        next_ = tasks_.size();
        const std::lock_guard lock(mutex_);
        if (i < failed_) failed_ = i, failure_ = std::current_exception();
        return;
      }
      progress_.advance(tasks_[i].cost);
    }
  }

  // Operations: two launches of each subject, and the relations' seven or so. A launch of a few
  // keys takes the machine as long as this many operations do.
  static constexpr double kOfAnyLaunch = 1e8;
  static double cost_of(const Problem& problem) { return 2 * (problem.flops() + kOfAnyLaunch); }

  void add_case(const SharedCase& shared) {
    const Problem& problem = shared.content.problem;
    largest_ = std::max(largest_, problem.stored_bytes() + check_host_bytes(problem));
    const auto judged = std::make_shared<Judged>(shared);
    for (const std::size_t i : shared.subjects) {
      tasks_.push_back({i, cost_of(problem), [this, i, judged](Worker& worker) {
                          Outcome outcome = check_case(subjects_[i], *judged, worker);
                          judged->release();
                          return outcome;
                        }});
    }
  }

  /// A fault that no verdict of the gate reports, as that of a planner, is a wrong outcome, too.
  static Outcome wrong(const std::string& where, const KernelFault& fault) {
    return {.where = where, .reason = fault.what(), .findings = fault.findings};
  }

  Outcome check_case(const Subject& subject, Judged& judged, Worker& worker) try {
    const Problem& problem = judged.content().problem;
    Outcome outcome{.where = judged.where()};
    const Item item = rung_item(*subject.rung, *subject.instance, problem,
                                device_for(judged.content(), worker.device.description()),
                                judged.content().inputs);
    if (!item.refused.empty()) {
      outcome.refused = true;
      return outcome;
    }
    progress_.show(fmt::format("{}, {}", outcome.where, subject.name));
    if (worker.loaded != &judged) {
      worker.device.require_memory(problem);
      worker.verifier = &judged.load(worker.device, seed_, devices_.size() == 1);
      worker.loaded = &judged;
    }
    const Verdict verdict = guarded(subject, outcome.where, [&] {
      return pass_gate(
          worker.device, [&] { worker.device.launch(item.plan); }, *worker.verifier,
          promised(item.plan));
    });
    if (verdict.check.finite) outcome.worst = verdict.check.ratio;
    outcome.ok = verdict.ok;
    outcome.reason = verdict.reason;
    outcome.findings = verdict.findings;
    return outcome;
  } catch (const KernelFault& fault) {
    return wrong(judged.where(), fault);
  }

  using Relate =
      std::function<Relation(const Problem& problem, const Inputs& inputs, const Forward& forward)>;

  void add_relation(std::size_t i, const Problem& problem, const char* what, Relate relate,
                    int sms = 0) {
    tasks_.push_back({i, cost_of(problem), [this, i, problem, what, relate, sms](Worker& worker) {
                        return check_relation(subjects_[i], problem, what, relate, sms, worker);
                      }});
  }

  Outcome check_relation(const Subject& subject, const Problem& problem, const char* what,
                         const Relate& relate, int sms, Worker& worker) {
    worker.loaded = nullptr;
    Outcome outcome{.where = fmt::format("{} {}", to_string(problem), what)};
    progress_.show(fmt::format("{}: {}", outcome.where, subject.name));
    const DeviceDescription device =
        device_for({problem, Distribution::normal, sms}, worker.device.description());
    const Forward forward = [&](const Problem& asked, const Inputs& inputs) {
      const Item item = rung_item(*subject.rung, *subject.instance, asked, device);
      if (!item.refused.empty()) throw UsageError(item.refused);
      worker.device.load(asked, inputs);
      worker.device.launch(item.plan);
      HostTensor output = worker.device.download_output();
      const Leftovers left = repair(worker.device);
      if (!left.empty()) throw KernelFault(left.reason());
      return output;
    };
    const Inputs inputs = make_inputs(problem, Distribution::normal, seed_);
    try {
      const Relation result =
          guarded(subject, outcome.where, [&] { return relate(problem, inputs, forward); });
      outcome.ok = result.ok;
      outcome.reason = result.reason;
    } catch (const KernelFault& fault) {
      return wrong(outcome.where, fault);
    }
    return outcome;
  }

  void add_relations(std::size_t i) {
    const Subject& subject = subjects_[i];
    if (has(subject.rung->capabilities, Capabilities::backward)) return;
    Problem problem = relation_problem(subject);
    add_relation(i, problem, "joint key permutation",
                 [seed = seed_](const Problem& p, const Inputs& inputs, const Forward& forward) {
                   return joint_permutation(p, inputs, seed, forward);
                 });
    add_relation(i, problem, "constant score shift", constant_shift);
    const Relate spikes = [seed = seed_](const Problem& p, const Inputs& inputs,
                                         const Forward& forward) {
      return untouched_rows(p, inputs, make_inputs(p, Distribution::spike, seed), forward);
    };
    add_relation(i, problem, "spikes in other rows", spikes);
    if (has(subject.rung->capabilities, Capabilities::lengths)) {
      Problem part = problem;
      // An empty entry; then a last key in each of the groups of rows that a tile is copied by.
      part.lengths = {0};
      for (std::int64_t length = 1; length < 256; length += 8) part.lengths.push_back(length);
      part.batch = std::ssize(part.lengths);
      part.heads = 8, part.own_kv_heads = 2, part.seq_kv = 300;
      if (has(subject.rung->capabilities, Capabilities::paged)) part.page = 16;
      // On 4 SMs a thread block has several tiles, so that all its copies are looked at.
      add_relation(i, part, "unused memory", unused_memory, 4);
    }
    if (has(subject.rung->capabilities, Capabilities::packed)) {
      Problem batch = problem;
      batch.query_lengths = {130, 64, 0, 1, 257, 5}, batch.lengths = {321, 127, 40, 1, 0, 129};
      batch.batch = std::ssize(batch.lengths);
      batch.seq_q = 257, batch.seq_kv = 321;
      add_relation(i, batch, "poisoned neighbours", neighbours, 4);
    }
    if (!has(subject.rung->capabilities, Capabilities::causal)) return;
    problem.causal = true;
    if (subject.rung->family == Family::decode) problem.seq_q = kFewQueries / problem.group();
    add_relation(i, problem, "spikes in other rows", spikes);
    add_relation(i, problem, "causal prefix invariance",
                 [](const Problem& p, const Inputs& inputs, const Forward& forward) {
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

  /// Counts the outcome whose turn it is, if there is one, and prints what is wrong.
  void record_next() {
    std::optional<Outcome>& outcome = outcomes_[recorded_];
    if (!outcome) return;
    Subject& subject = subjects_[tasks_[recorded_].subject];
    ++(outcome->refused ? subject.refused : outcome->ok ? subject.passed : subject.wrong);
    if (outcome->worst) subject.worst = std::max(subject.worst.value_or(0), *outcome->worst);
    if (!outcome->refused && !outcome->ok) {
      if (fail_fast_) next_ = tasks_.size();
      print_wrong(subject, *outcome);
    }
    outcome.emplace();
  }

  /// Prints what is wrong, of findings those that no case of the rung had before.
  void print_wrong(const Subject& subject, const Outcome& outcome) {
    const std::string first = fmt::format("{} at {}", subject.name, outcome.where);
    std::vector<KernelFinding> fresh;
    for (const KernelFinding& finding : outcome.findings) {
      FindingGroup& group = group_of(subject, finding);
      if (group.cases > 0 && group.last == recorded_) continue;
      if (group.cases++ == 0) group.first = first, fresh.push_back(finding);
      group.last = recorded_;
    }
    if (fresh.empty() && !outcome.findings.empty()) return;
    progress_.clear();
    fmt::print("{}: {}: {}\n", coloured("wrong", Colour::red), first, outcome.reason);
    if (!fresh.empty()) fmt::print("{}\n", text_of(fresh));
    std::fflush(stdout);
  }

  FindingGroup& group_of(const Subject& subject, const KernelFinding& finding) {
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const FindingGroup& each) {
      return each.rung == subject.rung && each.kind == finding.kind && each.place == finding.place;
    });
    if (found != groups_.end()) return *found;
    return groups_.emplace_back(FindingGroup{subject.rung, finding.kind, finding.place, {}});
  }

  void print_groups() const {
    for (const FindingGroup& group : groups_) {
      if (group.cases == 1) continue;
      fmt::print("{}: {} at {}: in {} cases, the first: {}\n", group.rung->name, group.kind,
                 group.place, group.cases, group.first);
    }
  }

  bool any_passed() const {
    return std::any_of(subjects_.begin(), subjects_.end(),
                       [](const Subject& subject) { return subject.passed > 0; });
  }

  /// Prints a line for each subject; true when all are good.
  bool summary(const std::string& untouched) const {
    print_groups();
    std::size_t width = 0;
    for (const Subject& subject : subjects_) width = std::max(width, subject.name.size());
    bool good = true;
    for (const Subject& subject : subjects_) {
      good &= subject.wrong == 0 && subject.passed > 0;
      const std::string verdict = subject.wrong > 0    ? coloured("wrong", Colour::red)
                                  : subject.passed > 0 ? coloured("ok", Colour::green)
                                                       : untouched;
      const std::string worst = subject.worst
                                    ? fmt::format("error up to {:.2f} of tolerance", *subject.worst)
                                    : "no output to compare";
      fmt::print("{:{}}  {:5} passed  {:3} wrong  {:3} refused  {}  {}\n", subject.name, width,
                 subject.passed, subject.wrong, subject.refused, worst, verdict);
    }
    return good;
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Subject> subjects_;
  Suite suite_;
  std::uint64_t seed_;
  bool fail_fast_;
  Progress progress_;
  std::vector<Task> tasks_;
  double largest_ = 0;  // host bytes that one device takes for a case
  std::atomic<std::size_t> next_ = 0;

  std::mutex mutex_;  // of what follows, while several work
  std::vector<std::optional<Outcome>> outcomes_;
  std::size_t recorded_ = 0;  // outcomes before this one are counted
  std::vector<FindingGroup> groups_;
  std::size_t failed_ = std::numeric_limits<std::size_t>::max();  // the first that threw
  std::exception_ptr failure_;
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
    app.add_flag("--fail-fast", fail_fast_, "End at the first case that is wrong");
    app.add_flag("--mutants", mutants_,
                 "Instead, show that the check rejects wrong outputs made on the CPU; no device");
    app_ = &app;
  }

  Exit execute() override {
    if (mutants_ && !words_.empty()) {
      throw UsageError(fmt::format("--mutants checks no rung, and '{}' is one", words_.front()));
    }
    if (mutants_) {
      allow_beside(*app_, "--mutants", {"--seed"});
      return check_mutants();
    }
    const std::vector<const Rung*> rungs = select_rungs(words_);
    std::vector<std::unique_ptr<Device>> devices = make_devices();
    const DeviceDescription& description = devices.front()->description();
    print_note(fmt::format("device: {} ({})", description.name, devices.front()->kind()));
    std::vector<Subject> subjects;
    for (const Rung* rung : rungs) {
      if (left_out(device_refusal(*rung, description), rungs.size() == 1)) continue;
      for (const Instance& instance : rung->instances) {
        const bool own =
            &instance == rung->find_instance(instance.head_dim, rung->dtype_of(instance));
        if (!own && no_ablations_) continue;
        if (left_out(device_refusal(*rung, description, &instance), false)) continue;
        subjects.push_back({rung, &instance,
                            fmt::format("{} {} d{}{}", rung->name, to_string(instance.tile),
                                        instance.head_dim, instance.bf16 ? " bfloat16" : "")});
      }
    }
    if (subjects.empty()) throw DeviceError("none of these rungs runs on " + description.name);
    return CheckRun(std::move(devices), std::move(subjects), suite_, seed_, fail_fast_).execute();
  }

 private:
  /// The GPU; or a virtual machine for each host thread, because the suite's launches are small.
  std::vector<std::unique_ptr<Device>> make_devices() const {
    DeviceOptions options{.exact_buffers = exact_buffers_, .vm = vm_};
    options.vm.ptx = std::make_shared<PtxLibrary>();
    const unsigned machines = vm_.threads > 0 ? static_cast<unsigned>(vm_.threads)
                                              : std::max(1u, std::thread::hardware_concurrency());
    options.vm.threads = 1;
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(make_device(device_, options));
    while (devices.front()->kind() == "vm" && devices.size() < machines)
      devices.push_back(make_device("vm", options));
    return devices;
  }

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
  const CLI::App* app_ = nullptr;
  bool no_ablations_ = false, exact_buffers_ = false, mutants_ = false, fail_fast_ = false;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace fa::cli
