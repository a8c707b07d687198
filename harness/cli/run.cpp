// SPDX-License-Identifier: MIT
// fa run: one rung, one problem, one verdict.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "harness/attention/npy.h"
#include "harness/attention/stored.h"
#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/terminal.h"
#include "harness/device/host_memory.h"
#include "harness/device/make_device.h"
#include "harness/environment/nvml.h"
#include "harness/io/file.h"
#include "harness/io/interrupt.h"
#include "harness/measure/identity.h"
#include "harness/measure/inputs_for.h"
#include "harness/measure/measured.h"
#include "harness/results/comparison.h"
#include "ptxvm/observer.h"
#include "ptxvm/trace.h"

namespace fa::cli {
namespace {

/// Enough for one line of information; comparisons are `fa bench`'s work.
constexpr TimingPolicy kRunPolicy{
    .rounds = 3, .warmup_ms = 30, .spaced_ms = 60, .lead_ms = 20, .back_to_back_ms = 50};

/// How Trace::json() begins: a file that begins so is an earlier trace.
constexpr std::string_view kTraceBeginning = R"({"displayTimeUnit":"ms","otherData":{"kernel":)";

/// The tensor with every element rounded to another dtype. Throws InputError for a value that
/// becomes infinite.
HostTensor converted(const HostTensor& from, Dtype dtype, const std::string& name) {
  HostTensor to = make_tensor(dtype, from.shape);
  for (std::int64_t i = 0; i < from.size(); ++i) to.set(i, from.at(i));
  const std::int64_t bad = find_non_finite(to);
  if (bad >= 0) {
    throw InputError(fmt::format("{}: {} at {} does not fit {}", name, from.at(bad),
                                 describe_index(from.shape, bad), to_string(dtype)));
  }
  return to;
}

/// Shows how many thread blocks the virtual machine has run.
class BlockProgress final : public ptxvm::Observer {
 public:
  BlockProgress(Progress& progress, std::string name)
      : progress_(progress), name_(std::move(name)) {}

  void expect(const LaunchPlan& plan, int passes) {
    double blocks = 0;
    for (const Launch& each : plan.launches) {
      blocks += static_cast<double>(each.grid.x * each.grid.y * each.grid.z);
    }
    progress_.expect(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(passes),
                     blocks * passes);
  }
  std::unique_ptr<ptxvm::Probe> make_probe() override { return std::make_unique<Blocks>(*this); }
  void end(std::span<const std::unique_ptr<ptxvm::Probe>> /*probes*/) override {
    progress_.clear();
  }

 private:
  class Blocks final : public ptxvm::Probe {
   public:
    explicit Blocks(BlockProgress& owner) : owner_(owner) {}
    void cta_end(const ptxvm::CtaEvent& /*event*/) override {
      owner_.progress_.advance(1);
      owner_.progress_.show(owner_.name_ + ", thread blocks");
    }

   private:
    BlockProgress& owner_;
  };

  Progress& progress_;
  std::string name_;
};

class RunCommand final : public Command {
 public:
  explicit RunCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    add_rung(app, rung_word_);
    shape_.declare(app);
    add_device(app, device_);
    add_vm_options(app, vm_);
    add_tile(app, tile_);
    add_file(app, "--q", q_, "Q from a .npy file: float16 or float32, [B, H, N, D]");
    add_file(app, "--k", k_, "K, likewise");
    add_file(app, "--v", v_, "V, likewise");
    add_file(app, "--output", output_, "Write O to a .npy file");
    add_file(app, "--json", json_, "Write the result as a row of a result file");
    add_file(app, "--trace", trace_path_,
             "Write what the warps of block 0 did and waited for, in steps of the virtual machine, "
             "for ui.perfetto.dev");
    app.add_flag("--overwrite", overwrite_,
                 "Replace files that hold something else, or results of another run");
    app.add_flag("--no-time", no_time_, "Do not time the kernel");
    app.add_flag("--launch-only", launch_only_,
                 "One launch, neither verified nor timed: for profilers and sanitizers");
    add_exact_buffers(app, exact_buffers_);
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    check_options();
    problem_ = shape_.problem();
    if (from_files()) take_problem_of_files(rung);
    set_types(rung, problem_);
    if (problem_.backward && (from_files() || !output_.empty())) {
      throw UsageError(fmt::format(
          "{} computes gradients; --q, --k, --v and --output are for rungs that compute O",
          rung.name));
    }
    const DeviceDescription described = describe_device(device_);
    RowInputs row_inputs = shape_.inputs();
    if (from_files()) row_inputs.name = "files";
    const Item item = rung_item(rung, problem_, tile_, described, row_inputs);
    if (!item.refused.empty()) {
      if (device_refusal(rung, described, item.instance)) throw DeviceError(item.refused);
      throw UsageError(with_example(item.refused, rung, problem_));
    }

    ptxvm::Trace trace;
    if (!trace_path_.empty()) vm_.observers = {&trace};
    Progress progress;
    BlockProgress blocks(progress, item.name);
    if (vm_.checkers) vm_.observers.push_back(&blocks);
    vm_.printed = [this](const std::string& text) {
      if (launches_ == 1) fmt::print("{}", text);
    };
    const std::unique_ptr<Device> device =
        make_device(device_, {.exact_buffers = exact_buffers_, .vm = vm_});
    print_note(fmt::format("device: {} ({})", device->name(), device->kind()));
    open_results(*device);
    device->require_memory(problem_);
    const std::optional<Verifier> verifier = load(*device);
    blocks.expect(item.plan, launch_only_ ? 1 : 2);
    const Exit result = verifier ? verify(*device, item, *verifier) : launch_once(*device, item);
    if (!trace_path_.empty()) {
      const std::array<std::string_view, 1> whole{trace.json()};
      io::write_replaceable(trace_path_, whole, kTraceBeginning, overwrite_);
    }
    return result;
  }

 private:
  bool from_files() const { return !q_.empty() || !k_.empty() || !v_.empty(); }

  void check_options() {
    if (from_files()) {
      if (q_.empty() || k_.empty() || v_.empty()) {
        throw UsageError("--q, --k and --v must be given together");
      }
      if (const CLI::Option* option = shape_.given_shape()) {
        throw UsageError(option->get_name() +
                         " cannot be combined with --q, --k and --v: the files decide it");
      }
    }
    if (launch_only_ && !json_.empty()) {
      throw UsageError("--json cannot be combined with --launch-only: nothing is verified");
    }
    if (!trace_path_.empty()) {
      if (device_ == "gpu") {
        throw UsageError("--trace cannot be combined with --device gpu: the machine traces");
      }
      device_ = "vm";
    }
    io::require_distinct(
        std::array<io::NamedFile, 3>{
            {{"--output", output_}, {"--json", json_}, {"--trace", trace_path_}}},
        std::array<io::NamedFile, 3>{{{"--q", q_}, {"--k", k_}, {"--v", v_}}});
    require_new_file("--output", output_, overwrite_);
    require_own_file("--trace", trace_path_, kTraceBeginning, overwrite_);
    require_results_file("--json", json_, overwrite_);
  }

  /// From the headers alone; the files are read when what they need has been asked for.
  void take_problem_of_files(const Rung& rung) {
    const Problem asked = problem_;
    problem_ = npy_problem(q_, k_, v_, asked.causal, shape_.rows_first());
    problem_.lse = asked.lse;
    problem_.window_left = asked.window_left;
    problem_.window_right = asked.window_right;
    problem_.sinks = asked.sinks;
    if (types_match(rung, problem_) && asked.dtype == Dtype::f16) return;
    Problem taken = problem_;
    taken.dtype = asked.dtype;
    set_types(rung, taken);
    print_note(fmt::format("the files hold {}, {} takes {}: converted", to_string(problem_.dtype),
                           rung.name, types_text(taken)));
    converted_from_ = problem_;
    problem_ = taken;
  }

  static std::string types_text(const Problem& problem) {
    if (!problem.e4m3) return to_string(problem.dtype);
    return fmt::format("{}, K and V {}", to_string(problem.dtype), to_string(problem.kv_dtype()));
  }

  Inputs load_files() const {
    const auto loaded = [this] {
      Inputs inputs = load_inputs(q_, k_, v_);
      inputs.sinks = make_sinks(problem_, shape_.seed());
      if (shape_.rows_first()) {
        int number = 0;
        for (HostTensor* each : {&inputs.q, &inputs.k, &inputs.v}) {
          const HostTensor stored = std::move(*each);
          const auto [batch, rows, heads, columns] = stored.shape;
          *each = make_tensor(stored.dtype, {batch, heads, rows, columns});
          gather_rows(problem_, number++, stored.bytes.data(), *each);
        }
      }
      return inputs;
    };
    if (!converted_from_) return loaded();
    require_host_bytes(converted_from_->input_bytes() + check_host_bytes(problem_),
                       to_string(problem_), "the files and what they are converted to");
    Inputs inputs = loaded();
    inputs.q = converted(inputs.q, problem_.dtype, q_.string());
    inputs.k = converted(inputs.k, problem_.dtype, k_.string());
    inputs.v = converted(inputs.v, problem_.dtype, v_.string());
    quantise_cache(problem_, inputs, shape_.seed());
    return inputs;
  }

  /// The inputs go to the device, and what the check needs of them to a verifier.
  std::optional<Verifier> load(Device& device) const {
    const Inputs inputs =
        from_files() ? load_files() : inputs_for(device, problem_, shape_.inputs(), shape_.seed());
    device.load(problem_, inputs);
    if (launch_only_) return std::nullopt;
    return Verifier(problem_, inputs);
  }

  void launch(Device& device, const LaunchPlan& plan) {
    ++launches_;
    device.launch(plan);
  }

  /// O in the layout of the inputs; NumPy has no bfloat16, and float32 holds its values.
  void write_output(const HostTensor& o) const {
    HostTensor written = o.dtype == Dtype::bf16 ? converted(o, Dtype::f32, "O") : o;
    if (shape_.rows_first()) {
      HostTensor stored =
          make_tensor(written.dtype, {o.shape[0], o.shape[2], o.shape[1], o.shape[3]});
      scatter_rows(problem_, static_cast<int>(Tensor::o), written, stored.bytes.data());
      written = std::move(stored);
    }
    write_npy(output_, written, overwrite_);
  }

  Exit launch_once(Device& device, const Item& item) {
    launch(device, item.plan);
    const HostTensor output = device.download_output();
    fmt::print("{} on {}: launched once, not verified\n", item.name,
               describe(problem_, item.key.inputs));
    std::fflush(stdout);
    if (!output_.empty()) write_output(output);
    return Exit::ok;
  }

  Exit verify(Device& device, const Item& item, const Verifier& verifier) {
    HostTensor output;
    const Verdict verdict = pass_gate(
        device, [&] { launch(device, item.plan); }, verifier, promised(item.plan), &output);
    print_verdict(item, verdict);
    // The verdict is with the reader before anything is written, which may fail.
    std::fflush(stdout);
    if (!output_.empty() && !output.bytes.empty()) write_output(output);

    Row row = empty_row(item, utc_now());
    put_verdict(row, verdict);
    put_resources(row, item.plan, device);
    std::exception_ptr failure;
    try {
      if (verdict.ok && !no_time_ && device.has_clock()) time(device, item, row);
    } catch (const io::Interrupted&) {
      print_note("interrupted: verified, not timed");
    } catch (const std::exception& error) {
      row.settle(Status::error, error.what());
      failure = std::current_exception();
    }
    std::fflush(stdout);
    if (results_) results_->put(std::span(&row, 1));
    if (failure) std::rethrow_exception(failure);
    if (io::interrupt_flag()) return Exit::interrupted;
    return verdict.ok ? Exit::ok : Exit::wrong;
  }

  void print_verdict(const Item& item, const Verdict& verdict) const {
    fmt::print("{} on {}\n", item.name, describe(problem_, item.key.inputs));
    const CheckReport& check = verdict.check;
    fmt::print("{}\n", verdict.ok ? coloured("correct", Colour::green)
                                  : coloured("wrong", Colour::red) + ": " + verdict.reason);
    if (!verdict.findings.empty()) fmt::print("{}\n", text_of(verdict.findings));
    if (check.rows_total == 0) return;  // the kernel did not get to its end
    const std::string rows =
        fmt::format("{} of {} rows verified", check.rows_checked, check.rows_total);
    if (check.tolerance == 0) {
      fmt::print("no verified element is finite, {}\n", rows);
    } else {
      fmt::print("error {:.3g}, tolerance {:.3g} ({:.2f} of it), {}\n", check.max_error,
                 check.tolerance, check.ratio, rows);
    }
    if (problem_.lse) {
      fmt::print("LSE: error {:.3g}, tolerance {:.3g} ({:.2f} of it)\n", verdict.lse.max_error,
                 verdict.lse.tolerance, verdict.lse.ratio);
    }
  }

  /// Refuses a file of another measurement before any work is done.
  void open_results(const Device& device) {
    if (json_.empty()) return;
    const std::string bus = device.facts().pci_bus_id;
    const std::unique_ptr<Nvml> nvml = bus.empty() ? nullptr : Nvml::open(bus);
    const auto policy = device.has_clock() ? std::optional(kRunPolicy) : std::nullopt;
    results_.emplace(
        json_,
        FileIdentity{generator_json(source_state(), argv_), device_json(device, nvml.get()),
                     policy_json(policy, shape_.seed(), device, nvml.get())},
        overwrite_);
  }

  void time(Device& device, const Item& item, Row& row) const {
    const std::unique_ptr<Stopwatch> stopwatch = device.make_stopwatch(kRunPolicy.l2);
    const std::function<void(const LaunchPlan&)> launch = [&](const LaunchPlan& plan) {
      device.launch(plan);
    };
    std::vector<TimedItem> work = part_items(item, launch);
    work.insert(work.begin(), {item.name, [&] { launch(item.plan); }});
    const std::vector<ItemTimes> times = time_interleaved(work, kRunPolicy, *stopwatch);
    if (times.front().error) throw DeviceError(*times.front().error);
    put_times(row, item, times.front());
    put_part_times(row, std::span(times).subspan(1));
    const double median = row.time_ms->median, steady = row.time_ms->back_to_back.value();
    const auto rate = [&](double ms) {  // none where no query sees a key
      const std::optional<double> found = rate_at(row, ms);
      return found ? fmt::format(", {:.1f} {}", *found, rate_unit(problem_)) : "";
    };
    fmt::print("{:.4g} ms{} (median of {} launches; back-to-back {:.4g} ms{})\n", median,
               rate(median), row.time_ms->n, steady, rate(steady));
    for (const RowLaunch& part : row.launches) {
      if (part.time_ms) fmt::print("  {:.4g} ms {}\n", part.time_ms->median, part.entry);
    }
  }

  std::vector<std::string> argv_;
  std::string rung_word_, tile_;
  std::filesystem::path q_, k_, v_, output_, json_, trace_path_;
  std::string device_ = "auto";
  VmOptions vm_;
  ProblemOptions shape_{{.shape = {},
                         .seqs = {},
                         .dim_default = {},
                         .seq_kv = true,
                         .lse = true,
                         .seed = true,
                         .cache = true,
                         .types = true}};
  Problem problem_;
  std::optional<Problem> converted_from_;  ///< of files with another dtype
  std::optional<ResultsFile> results_;
  int launches_ = 0;  ///< kernels print in the first, and say the same later
  bool overwrite_ = false, no_time_ = false, launch_only_ = false, exact_buffers_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command(std::vector<std::string> words) {
  return std::make_unique<RunCommand>(std::move(words));
}

}  // namespace fa::cli
