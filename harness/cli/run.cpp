// fa run: one rung, one problem, one verdict.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "harness/attention/npy.h"
#include "harness/bench/bench.h"
#include "harness/bench/nvml.h"
#include "harness/bench/timing.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/terminal.h"
#include "harness/device/make_device.h"
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

class RunCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("rung", rung_word_, "Rung: id (06 or 6) or name (06_batched, batched)")
        ->required();
    shape_ = {
        add_integer(app, "--batch", problem_.batch, 1, kMaxBatchOrHeads, "Batch (default 1)"),
        add_integer(app, "--heads", problem_.heads, 1, kMaxBatchOrHeads, "Heads (default 2)"),
        add_integer(app, "--seq", problem_.seq_q, 1, kMaxSequence,
                    "Queries and keys (default 512)"),
        add_integer(app, "--seq-kv", seq_kv_, 1, kMaxSequence, "Keys, where other than --seq"),
        add_integer(app, "--dim", problem_.head_dim, 1, kMaxHeadDim, "head_dim (default 128)")};
    app.add_flag("--causal", problem_.causal, "Query i sees keys j <= i + seq_kv - seq_q only");
    app.add_flag("--lse", problem_.lse, "Ask for the log-sum-exp of every row too, and check it");
    generated_ = add_inputs(app, inputs_);
    generated_.push_back(add_seed(app, seed_));
    add_device(app, device_);
    add_vm_options(app, vm_);
    app.add_option("--tile", tile_, "Another instance of the rung, such as 64x32w2 (see fa list)")
        ->type_name("TILE");
    app.add_option("--q", q_, "Q from a .npy file: float16 or float32, [B, H, N, D]")
        ->type_name("FILE");
    app.add_option("--k", k_, "K, likewise")->type_name("FILE");
    app.add_option("--v", v_, "V, likewise")->type_name("FILE");
    app.add_option("--output", output_, "Write O to a .npy file")->type_name("FILE");
    app.add_option("--json", json_, "Write the result as a row of a result file")
        ->type_name("FILE");
    app.add_option("--trace", trace_path_,
                   "Write what the warps of block 0 did and waited for, in steps of the virtual "
                   "machine, for ui.perfetto.dev")
        ->type_name("FILE");
    app.add_flag("--overwrite", overwrite_, "Replace a --json file of another run");
    app.add_flag("--no-time", no_time_, "Do not time the kernel");
    app.add_flag("--launch-only", launch_only_,
                 "One launch, neither verified nor timed: for profilers and sanitizers");
    app.add_flag(
        "--exact-buffers", exact_buffers_,
        "No red zones around the tensors: compute-sanitizer then sees every access outside");
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    check_options();
    Inputs inputs = load_files(rung);
    if (!from_files()) problem_.dtype = rung.dtype;
    const DeviceDescription described = describe_device(device_);
    BenchItem item = rung_item(rung, problem_, tile_, described);
    if (!item.refused.empty()) {
      if (device_refusal(rung, described, item.instance)) throw DeviceError(item.refused);
      throw UsageError(item.refused);
    }

    ptxvm::Trace trace;
    if (!trace_path_.empty()) vm_.observers = {&trace};
    const std::unique_ptr<Device> device =
        make_device(device_, {.exact_buffers = exact_buffers_, .vm = vm_});
    print_note(fmt::format("device: {} ({})", device->name(), device->kind()));
    device->require_memory(problem_);
    if (!from_files()) inputs = make_inputs(problem_, inputs_, seed_);
    device->load(problem_, inputs);
    item.inputs = inputs_;
    if (from_files()) item.inputs.name = "files";
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
      for (const auto& group : {shape_, generated_}) {
        for (const CLI::Option* option : group) {
          if (option->count() > 0) {
            throw UsageError(option->get_name() +
                             " cannot be combined with --q, --k and --v: the files decide it");
          }
        }
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
    problem_.seq_kv = seq_kv_ > 0 ? seq_kv_ : problem_.seq_q;
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

  Exit launch_once(Device& device, const BenchItem& item) {
    device.launch(item.plan);
    const HostTensor output = device.download_output();
    if (!output_.empty()) write_npy(output_, output);
    fmt::print("{} on {}: launched once, not verified\n", item.name,
               describe(problem_, item.inputs));
    return Exit::ok;
  }

  Exit verify(Device& device, const BenchItem& item, const Inputs& inputs) {
    const Verifier verifier(problem_, inputs);
    HostTensor output;
    const Verdict verdict = pass_gate(
        device, [&] { device.launch(item.plan); }, verifier, &output);
    if (!output_.empty()) write_npy(output_, output);

    fmt::print("{} on {}\n", item.name, describe(problem_, item.inputs));
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

    Json row = empty_row(item, utc_now());
    put_verdict(row, verdict);
    if (auto* gpu = dynamic_cast<GpuDevice*>(&device)) finish_on_gpu(*gpu, item, verdict.ok, row);
    if (auto* vm = dynamic_cast<VmDevice*>(&device)) finish_on_vm(*vm, row);
    return verdict.ok ? Exit::ok : Exit::wrong;
  }

  void finish_on_gpu(GpuDevice& gpu, const BenchItem& item, bool correct, Json& row) {
    const std::unique_ptr<Nvml> nvml = Nvml::open(gpu.properties().pci_bus_id);
    put_resources(row, item.plan, [&gpu](const Launch& launch) {
      return resources_json(gpu.resources(launch), ptxas_entry(launch.entry, gpu.sm()));
    });
    if (correct && !no_time_) time(gpu, item, row);
    if (json_.empty()) return;
    ResultsFile file(
        json_,
        {generator_json(source_state(), {"run", rung_word_}), device_json(gpu, nvml.get()),
         policy_json(kRunPolicy, seed_, gpu, nvml.get())},
        overwrite_);
    file.put(std::span(&row, 1));
  }

  void finish_on_vm(const VmDevice& vm, Json& row) {
    if (json_.empty()) return;
    ResultsFile file(json_,
                     {generator_json(source_state(), {"run", rung_word_}), device_json(vm),
                      vm_policy_json(seed_)},
                     overwrite_);
    file.put(std::span(&row, 1));
  }

  void time(GpuDevice& gpu, const BenchItem& item, Json& row) {
    GpuStopwatch stopwatch(gpu, kRunPolicy.l2);
    const std::function<void(const LaunchPlan&)> launch = [&](const LaunchPlan& plan) {
      gpu.launch(plan);
    };
    std::vector<TimedItem> work = part_items(item, launch);
    work.insert(work.begin(), {item.name, [&] { launch(item.plan); }});
    const std::vector<ItemTimes> times = time_interleaved(work, kRunPolicy, stopwatch);
    if (times.front().error) throw DeviceError(*times.front().error);
    put_times(row, item, times.front());
    put_part_times(row, std::span(times).subspan(1));
    const Json& ms = row["time_ms"];
    fmt::print(
        "{:.4g} ms, {:.1f} TFLOPS (median of {} launches; back-to-back {:.4g} ms, {:.1f} "
        "TFLOPS)\n",
        ms["median"].get<double>(), row["tflops"].get<double>(), ms["n"].get<int>(),
        ms["back_to_back"].get<double>(), row["tflops_back_to_back"].get<double>());
    for (const Json& part : row.value("launches", Json::array())) {
      if (part["time_ms"].is_null()) continue;
      fmt::print("  {:.4g} ms {}\n", part["time_ms"]["median"].get<double>(),
                 part["entry"].get<std::string>());
    }
  }

  std::string rung_word_, tile_, q_, k_, v_, output_, json_, trace_path_;
  std::string device_ = "auto";
  VmOptions vm_;
  Problem problem_;
  std::int64_t seq_kv_ = 0;
  InputKind inputs_;
  std::uint64_t seed_ = 1;
  bool overwrite_ = false, no_time_ = false, launch_only_ = false, exact_buffers_ = false;
  std::vector<CLI::Option*> shape_, generated_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace fa::cli
