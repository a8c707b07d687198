// fa run: one rung, one problem, one verdict.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "harness/attention/npy.h"
#include "harness/cli/app.h"
#include "harness/command/arguments.h"
#include "harness/command/problem_options.h"
#include "harness/command/terminal.h"
#include "harness/device/make_device.h"
#include "harness/environment/nvml.h"
#include "harness/measure/identity.h"
#include "harness/measure/measured.h"
#include "ptxvm/observer.h"
#include "ptxvm/trace.h"

namespace fa::cli {
namespace {

/// Enough for one line of information; comparisons are `fa bench`'s work.
constexpr TimingPolicy kRunPolicy{
    .rounds = 3, .warmup_ms = 30, .spaced_ms = 60, .lead_ms = 20, .back_to_back_ms = 50};

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
    app.add_flag("--overwrite", overwrite_, "Replace a --json file of another run");
    app.add_flag("--no-time", no_time_, "Do not time the kernel");
    app.add_flag("--launch-only", launch_only_,
                 "One launch, neither verified nor timed: for profilers and sanitizers");
    add_exact_buffers(app, exact_buffers_);
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    check_options();
    problem_ = shape_.problem();
    Inputs inputs = load_files(rung);
    if (!from_files()) problem_.dtype = rung.dtype;
    const DeviceDescription described = describe_device(device_);
    RowInputs row_inputs = shape_.inputs();
    if (from_files()) row_inputs.name = "files";
    const Item item = rung_item(rung, problem_, tile_, described, row_inputs);
    if (!item.refused.empty()) {
      if (device_refusal(rung, described, item.instance)) throw DeviceError(item.refused);
      throw UsageError(item.refused);
    }

    ptxvm::Trace trace;
    if (!trace_path_.empty()) vm_.observers = {&trace};
    Progress progress;
    BlockProgress blocks(progress, item.name);
    if (vm_.checkers) vm_.observers.push_back(&blocks);
    const std::unique_ptr<Device> device =
        make_device(device_, {.exact_buffers = exact_buffers_, .vm = vm_});
    print_note(fmt::format("device: {} ({})", device->name(), device->kind()));
    device->require_memory(problem_);
    if (!from_files()) inputs = make_inputs(problem_, shape_.inputs(), shape_.seed());
    device->load(problem_, inputs);
    blocks.expect(item.plan, launch_only_ ? 1 : 2);
    const Exit result = launch_only_ ? launch_once(*device, item) : verify(*device, item, inputs);
    if (!trace_path_.empty()) write_atomically(trace_path_, trace.json());
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
      require_writable_path("--trace", trace_path_);
    }
    if (!output_.empty()) require_writable_path("--output", output_);
    if (!json_.empty()) {
      require_writable_path("--json", json_);
      if (!overwrite_) read_results(json_);
    }
  }

  Inputs load_files(const Rung& rung) {
    if (!from_files()) return {};
    LoadedProblem loaded = load_problem(q_, k_, v_, problem_.causal);
    loaded.problem.lse = problem_.lse;
    problem_ = loaded.problem;
    if (problem_.dtype != rung.dtype) {
      print_note(fmt::format("the files hold {}, {} takes {}: converted", to_string(problem_.dtype),
                             rung.name, to_string(rung.dtype)));
      loaded.inputs.q = converted(loaded.inputs.q, rung.dtype, q_);
      loaded.inputs.k = converted(loaded.inputs.k, rung.dtype, k_);
      loaded.inputs.v = converted(loaded.inputs.v, rung.dtype, v_);
      problem_.dtype = rung.dtype;
    }
    return std::move(loaded.inputs);
  }

  Exit launch_once(Device& device, const Item& item) {
    device.launch(item.plan);
    const HostTensor output = device.download_output();
    if (!output_.empty()) write_npy(output_, output);
    fmt::print("{} on {}: launched once, not verified\n", item.name,
               describe(problem_, item.key.inputs));
    return Exit::ok;
  }

  Exit verify(Device& device, const Item& item, const Inputs& inputs) {
    const Verifier verifier(problem_, inputs);
    HostTensor output;
    const Verdict verdict = pass_gate(
        device, [&] { device.launch(item.plan); }, verifier, &output);
    if (!output_.empty()) write_npy(output_, output);

    fmt::print("{} on {}\n", item.name, describe(problem_, item.key.inputs));
    const CheckReport& check = verdict.check;
    fmt::print("{}\n", verdict.ok ? coloured("correct", Colour::green)
                                  : coloured("wrong", Colour::red) + ": " + verdict.reason);
    if (!verdict.details.empty()) fmt::print("{}\n", verdict.details);
    fmt::print("error {:.3g}, tolerance {:.3g} ({:.2f} of it), {} of {} rows verified\n",
               check.max_error, check.tolerance, check.ratio, check.rows_checked, check.rows_total);
    if (problem_.lse) {
      fmt::print("LSE: error {:.3g}, tolerance {:.3g} ({:.2f} of it)\n", verdict.lse.max_error,
                 verdict.lse.tolerance, verdict.lse.ratio);
    }

    Row row = empty_row(item, utc_now());
    put_verdict(row, verdict);
    put_resources(row, item.plan, device);
    if (verdict.ok && !no_time_ && device.has_clock()) time(device, item, row);
    if (!json_.empty()) write(device, row);
    return verdict.ok ? Exit::ok : Exit::wrong;
  }

  void write(const Device& device, const Row& row) {
    const std::string bus = device.facts().pci_bus_id;
    const std::unique_ptr<Nvml> nvml = bus.empty() ? nullptr : Nvml::open(bus);
    const auto policy = device.has_clock() ? std::optional(kRunPolicy) : std::nullopt;
    ResultsFile file(json_,
                     {generator_json(source_state(), argv_), device_json(device, nvml.get()),
                      policy_json(policy, shape_.seed(), device, nvml.get())},
                     overwrite_);
    file.put(std::span(&row, 1));
  }

  void time(Device& device, const Item& item, Row& row) {
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
    fmt::print(
        "{:.4g} ms, {:.1f} TFLOPS (median of {} launches; back-to-back {:.4g} ms, {:.1f} "
        "TFLOPS)\n",
        row.time_ms->median, row.tflops.value(), row.time_ms->n, row.time_ms->back_to_back.value(),
        row.tflops_back_to_back.value());
    for (const RowLaunch& part : row.launches) {
      if (part.time_ms) fmt::print("  {:.4g} ms {}\n", part.time_ms->median, part.entry);
    }
  }

  std::vector<std::string> argv_;
  std::string rung_word_, tile_, q_, k_, v_, output_, json_, trace_path_;
  std::string device_ = "auto";
  VmOptions vm_;
  ProblemOptions shape_{
      {.shape = {}, .seqs = {}, .dim_default = {}, .seq_kv = true, .lse = true, .seed = true}};
  Problem problem_;
  bool overwrite_ = false, no_time_ = false, launch_only_ = false, exact_buffers_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command(std::vector<std::string> words) {
  return std::make_unique<RunCommand>(std::move(words));
}

}  // namespace fa::cli
