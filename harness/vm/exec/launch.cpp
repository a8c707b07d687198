// SPDX-License-Identifier: MIT
// Checks a launch, spreads its clusters over host threads, collects the outcome.
#include "ptxvm/launch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "exec/fault.h"
#include "exec/scheduler.h"

namespace ptxvm {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxCluster = 16;     // 8 where the kernel must run on every GPU
constexpr uint32_t kMaxShared = 232448;  // of a block on sm_90: 227 KiB

std::string show(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

std::vector<std::byte> parameter_bytes(const Program& program, const LaunchConfig& config) {
  const auto& parameters = program.parameters;
  if (parameters.size() != config.arguments.size()) {
    throw Error("'" + program.name + "' takes " + std::to_string(parameters.size()) +
                (parameters.size() == 1 ? " argument, not " : " arguments, not ") +
                std::to_string(config.arguments.size()));
  }
  std::vector<std::byte> bytes(program.parameter_bytes);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto argument = config.arguments[i].bytes();
    if (argument.size() != parameters[i].size) {
      throw Error("argument " + std::to_string(i) + " of '" + program.name + "' has " +
                  std::to_string(argument.size()) + " bytes; parameter '" + parameters[i].name +
                  "' (" + parameters[i].type + ") has " + std::to_string(parameters[i].size));
    }
    if (!argument.empty()) {
      std::memcpy(bytes.data() + parameters[i].offset, argument.data(), argument.size());
    }
  }
  return bytes;
}

void check(const Program& program, const LaunchConfig& config, const Options& options) {
  const std::string who = "'" + program.name + "': ";
  if (!program.unsupported.empty()) throw Error(program.unsupported);
  if (config.grid.count() == 0) throw Error(who + "the grid " + show(config.grid) + " is empty");
  if (config.grid.y > 65535 || config.grid.z > 65535 || config.grid.x > 0x7fffffffu ||
      config.grid.count() > 0xffffffffu) {
    throw Error(who + "the grid " + show(config.grid) + " is too large");
  }
  const uint64_t threads = config.block.count();
  if (threads == 0 || threads > kMaxThreads || config.block.z > 64) {
    throw Error(who + "a block of " + show(config.block) + " threads; from 1 to 1024 are allowed");
  }
  if (program.max_threads && threads > program.max_threads->count()) {
    throw Error(who + "a block of " + std::to_string(threads) +
                " threads; the kernel was compiled for at most " +
                std::to_string(program.max_threads->count()));
  }
  if (program.required_threads && !(*program.required_threads == config.block)) {
    throw Error(who + "a block of " + show(config.block) + " threads; the kernel requires " +
                show(*program.required_threads));
  }
  const Dim3 cluster = config.cluster;
  if (cluster.count() == 0 || cluster.count() > kMaxCluster) {
    throw Error(who + "a cluster of " + show(cluster) + " blocks; from 1 to 16 are allowed");
  }
  if (config.grid.x % cluster.x != 0 || config.grid.y % cluster.y != 0 ||
      config.grid.z % cluster.z != 0) {
    throw Error(who + "the grid " + show(config.grid) + " is not a multiple of the cluster " +
                show(cluster));
  }
  if (program.required_cluster && cluster.count() != 1 && !(*program.required_cluster == cluster)) {
    throw Error(who + "a cluster of " + show(cluster) + " blocks; the kernel requires " +
                show(*program.required_cluster));
  }
  const uint64_t shared = uint64_t{program.dynamic_offset} + config.dynamic_shared_bytes;
  if (shared > kMaxShared) {
    throw Error(who + std::to_string(shared) + " bytes of shared memory; a block has at most " +
                std::to_string(kMaxShared));
  }
  if (options.shared_base % 16 != 0 || options.shared_base == 0 || options.shared_base > 65536) {
    throw Error("shared_base must be a multiple of 16 from 16 to 65536");
  }
  if (options.threads < 0) throw Error("the number of threads is negative");
}

std::vector<std::byte> patched_pool(const Program& program, uint32_t shared_base) {
  std::vector<std::byte> pool = program.pool;
  auto move = [&]<class T>(const std::vector<uint32_t>& places, T) {
    for (uint32_t at : places) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        T v;
        std::memcpy(&v, &pool[at + lane * sizeof v], sizeof v);
        v += shared_base;
        std::memcpy(&pool[at + lane * sizeof v], &v, sizeof v);
      }
    }
  };
  move(program.shared_patches, uint32_t{});
  move(program.shared_patches_wide, uint64_t{});
  return pool;
}

// Hands out clusters in launch order. After a fault only earlier clusters still run, so that the
// fault of the first faulty one is reported however many threads there are.
class Work {
 public:
  Work(uint64_t count, bool reversed) : count_(count), reversed_(reversed) {}

  // Position in launch order; the index is `index_of(position)`.
  bool take(uint64_t& position) {
    position = next_.fetch_add(1);
    return position < count_ && position < stop_.load();
  }
  uint64_t index_of(uint64_t position) const {
    return reversed_ ? count_ - 1 - position : position;
  }

  void fail(uint64_t position, Fault fault) {
    const std::lock_guard lock(mutex_);
    if (position >= stop_.load()) return;
    stop_.store(position);
    fault_ = std::move(fault);
  }
  void stop() {
    stop_.store(0);
    stopped_.store(true);
  }
  bool stopped() const { return stopped_.load(); }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    stop_.store(0);
    error_ = std::move(error);
  }

  std::optional<Fault> result() {
    if (error_) std::rethrow_exception(error_);
    return std::move(fault_);
  }

 private:
  uint64_t count_;
  bool reversed_;
  std::atomic<uint64_t> next_{0}, stop_{UINT64_MAX};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::optional<Fault> fault_;
  std::exception_ptr error_;
};

uint64_t run_worker(Work& work, LaunchState& state,
                    const std::vector<std::unique_ptr<Probe>>& probes) {
  try {
    ClusterRunner runner(state, probes);
    uint64_t position = 0;
    while (work.take(position)) {
      try {
        runner.run(work.index_of(position));
      } catch (FaultError& e) {
        work.fail(position, std::move(e.fault));
        break;
      } catch (const Stopped&) {
        work.stop();
        break;
      }
    }
    return runner.steps();
  } catch (...) {
    work.fail(std::current_exception());
    return 0;
  }
}

}  // namespace

LaunchResult launch(const Module& module, std::string_view entry, const LaunchConfig& config,
                    Memory& memory, const Options& options) {
  const Kernel& kernel = module.kernel(entry);
  const Program& program = kernel.program();
  LaunchConfig complete = config;
  // A kernel that says how large its clusters are needs no launch attribute.
  if (program.required_cluster && complete.cluster == Dim3{})
    complete.cluster = *program.required_cluster;
  check(program, complete, options);

  LaunchState state;
  state.module = &module;
  state.program = &program;
  state.options = &options;
  state.kernels = &num::kernels(options.portable_math);
  state.memory = &memory;
  state.grid = complete.grid;
  state.block = complete.block;
  state.cluster = complete.cluster;
  state.dynamic_shared_bytes = complete.dynamic_shared_bytes;
  state.parameters = parameter_bytes(program, complete);
  state.pool = patched_pool(program, options.shared_base);
  state.observed = !options.observers.empty();
  memory.attach(module);

  LaunchInfo info;
  info.kernel = kernel;
  info.grid = complete.grid;
  info.block = complete.block;
  info.cluster = complete.cluster;
  info.dynamic_shared_bytes = complete.dynamic_shared_bytes;
  for (Observer* o : options.observers) {
    state.every_instruction |= o->wants_instructions();
    o->begin(info);
  }

  const uint64_t clusters = complete.grid.count() / complete.cluster.count();
  uint64_t threads = options.threads != 0 ? static_cast<uint64_t>(options.threads)
                                          : std::max(1u, std::thread::hardware_concurrency());
  threads = std::min(threads, clusters);
  std::vector<std::vector<std::unique_ptr<Probe>>> probes(threads);
  for (auto& own : probes) {
    for (Observer* o : options.observers) own.push_back(o->make_probe());
  }

  Work work(clusters, options.cta_order == Order::kReversed);
  std::vector<uint64_t> steps(threads, 0);
  {
    std::vector<std::jthread> pool;
    for (uint64_t t = 1; t < threads; ++t) {
      pool.emplace_back([&, t] { steps[t] = run_worker(work, state, probes[t]); });
    }
    steps[0] = run_worker(work, state, probes[0]);
  }

  LaunchResult result;
  result.fault = work.result();
  result.stopped = work.stopped();
  for (uint64_t s : steps) result.steps += s;
  for (size_t i = 0; i < options.observers.size(); ++i) {
    std::vector<std::unique_ptr<Probe>> own;
    for (auto& p : probes) own.push_back(std::move(p[i]));
    options.observers[i]->end(own);
    for (Finding& f : options.observers[i]->findings()) result.findings.push_back(std::move(f));
  }
  return result;
}

}  // namespace ptxvm
