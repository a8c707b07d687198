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
#include "harness/bench/bench.h"
#include "harness/bench/nvml.h"
#include "harness/bench/timing.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/terminal.h"
#include "harness/device/host_memory.h"
#include "harness/device/make_device.h"
#include "harness/io/file.h"
#include "harness/io/interrupt.h"
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

class RunCommand final : public Command {
 public:
  explicit RunCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

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
    app.add_flag(
        "--exact-buffers", exact_buffers_,
        "No red zones around the tensors: compute-sanitizer then sees every access outside");
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    check_options();
    if (from_files()) take_problem_of_files(rung);
    problem_.dtype = rung.dtype;
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
    const Inputs inputs = from_files() ? load_files(rung) : make_inputs(problem_, inputs_, seed_);
    device->load(problem_, inputs);
    item.inputs = inputs_;
    if (from_files()) item.inputs.name = "files";
    const Exit result = launch_only_ ? launch_once(*device, item) : verify(*device, item, inputs);
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
    }
    problem_.seq_kv = seq_kv_ > 0 ? seq_kv_ : problem_.seq_q;
    io::require_distinct(
        std::array<io::NamedFile, 3>{
            {{"--output", output_}, {"--json", json_}, {"--trace", trace_path_}}},
        std::array<io::NamedFile, 3>{{{"--q", q_}, {"--k", k_}, {"--v", v_}}});
    require_own_file("--output", output_, kNpyMagic, overwrite_);
    require_own_file("--trace", trace_path_, kTraceBeginning, overwrite_);
    require_results_file("--json", json_, overwrite_);
  }

  /// From the headers alone; the files are read when what they need has been asked for.
  void take_problem_of_files(const Rung& rung) {
    const bool lse = problem_.lse;
    problem_ = npy_problem(q_, k_, v_, problem_.causal);
    problem_.lse = lse;
    if (problem_.dtype == rung.dtype) return;
    print_note(fmt::format("the files hold {}, {} takes {}: converted", to_string(problem_.dtype),
                           rung.name, to_string(rung.dtype)));
    converted_from_ = problem_;
  }

  Inputs load_files(const Rung& rung) const {
    if (!converted_from_) return load_inputs(q_, k_, v_);
    require_host_bytes(converted_from_->input_bytes() + check_host_bytes(problem_),
                       to_string(problem_), "the files and what they are converted to");
    Inputs inputs = load_inputs(q_, k_, v_);
    inputs.q = converted(inputs.q, rung.dtype, q_.string());
    inputs.k = converted(inputs.k, rung.dtype, k_.string());
    inputs.v = converted(inputs.v, rung.dtype, v_.string());
    return inputs;
  }

  Exit launch_once(Device& device, const BenchItem& item) {
    device.launch(item.plan);
    const HostTensor output = device.download_output();
    fmt::print("{} on {}: launched once, not verified\n", item.name,
               describe(problem_, item.inputs));
    std::fflush(stdout);
    if (!output_.empty()) write_npy(output_, output, overwrite_);
    return Exit::ok;
  }

  Exit verify(Device& device, const BenchItem& item, const Inputs& inputs) {
    const Verifier verifier(problem_, inputs);
    HostTensor output;
    const Verdict verdict = pass_gate(
        device, [&] { device.launch(item.plan); }, verifier, &output);
    print_verdict(item, verdict);
    // The verdict is with the reader before anything is written, which may fail.
    std::fflush(stdout);
    if (!output_.empty() && !output.bytes.empty()) write_npy(output_, output, overwrite_);

    Json row = empty_row(item, utc_now());
    put_verdict(row, verdict);
    if (auto* gpu = dynamic_cast<GpuDevice*>(&device)) finish_on_gpu(*gpu, item, verdict.ok, row);
    if (auto* vm = dynamic_cast<VmDevice*>(&device)) finish_on_vm(*vm, row);
    if (io::interrupt_flag()) return Exit::interrupted;
    return verdict.ok ? Exit::ok : Exit::wrong;
  }

  void print_verdict(const BenchItem& item, const Verdict& verdict) const {
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
  }

  void finish_on_gpu(GpuDevice& gpu, const BenchItem& item, bool correct, Json& row) {
    const std::unique_ptr<Nvml> nvml = Nvml::open(gpu.properties().pci_bus_id);
    put_resources(row, item.plan, [&gpu](const Launch& launch) {
      return resources_json(gpu.resources(launch), ptxas_entry(launch.entry, gpu.sm()));
    });
    try {
      if (correct && !no_time_) time(gpu, item, row);
    } catch (const io::Interrupted&) {
      print_note("interrupted: verified, not timed");
    }
    std::fflush(stdout);
    if (json_.empty()) return;
    ResultsFile file(json_,
                     {generator_json(source_state(), argv_), device_json(gpu, nvml.get()),
                      policy_json(kRunPolicy, seed_, gpu, nvml.get())},
                     overwrite_);
    file.put(std::span(&row, 1));
  }

  void finish_on_vm(const VmDevice& vm, Json& row) {
    if (json_.empty()) return;
    ResultsFile file(
        json_, {generator_json(source_state(), argv_), device_json(vm), vm_policy_json(seed_)},
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

  std::vector<std::string> argv_;
  std::string rung_word_, tile_;
  std::filesystem::path q_, k_, v_, output_, json_, trace_path_;
  std::string device_ = "auto";
  VmOptions vm_;
  Problem problem_;
  std::optional<Problem> converted_from_;  ///< of files with another dtype
  std::int64_t seq_kv_ = 0;
  InputKind inputs_;
  std::uint64_t seed_ = 1;
  bool overwrite_ = false, no_time_ = false, launch_only_ = false, exact_buffers_ = false;
  std::vector<CLI::Option*> shape_, generated_;
};

}  // namespace

std::unique_ptr<Command> make_run_command(std::vector<std::string> words) {
  return std::make_unique<RunCommand>(std::move(words));
}

}  // namespace fa::cli
