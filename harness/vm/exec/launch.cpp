// SPDX-License-Identifier: MIT
// Checks a launch, spreads its clusters over host threads, collects the outcome.
#include "ptxvm/launch.h"

#include <algorithm>
#include <thread>

#include "exec/async.h"
#include "exec/communication.h"
#include "exec/grid.h"

namespace ptxvm {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxCluster = 16;  // 8 where the kernel must run on every GPU

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

uint64_t shared_bytes(const Program& program, const LaunchConfig& config) {
  return uint64_t{program.dynamic_offset} + config.dynamic_shared_bytes;
}

void check(const Program& program, const LaunchConfig& config, const Options& options) {
  const std::string who = "'" + program.name + "': ";
  if (!program.errors.empty()) throw Error(program.errors);
  if (!program.unsupported.empty()) throw Error(program.unsupported);
  if (config.grid.count() == 0 || config.grid.y > 65535 || config.grid.z > 65535 ||
      config.grid.x > 0x7fffffffu || config.grid.count() > 0xffffffffu) {
    throw Error(
        who + "the grid " + show(config.grid) +
        "; from (1, 1, 1) to (2147483647, 65535, 65535) are allowed, and 4294967295 blocks");
  }
  const uint64_t threads = config.block.count();
  if (threads == 0 || threads > kMaxThreads || config.block.z > 64) {
    throw Error(who + "a block of " + show(config.block) + " threads; from 1 to 1024 are allowed" +
                (config.block.z > 64 ? ", and at most 64 along z" : ""));
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
  const uint64_t shared = shared_bytes(program, config), most = options.card.largest_shared_bytes;
  if (shared > most) {
    throw Error(who + std::to_string(shared) + " bytes of shared memory; a block has at most " +
                std::to_string(most) + " on the " + std::string(options.card.name));
  }
  if (options.shared_base % 16 != 0 || options.shared_base == 0 || options.shared_base > 65536) {
    throw Error("shared_base must be a multiple of 16 from 16 to 65536");
  }
  if (options.threads < 0) {
    throw Error(std::to_string(options.threads) +
                " host threads; allowed: 1 and more, or 0 for one a core");
  }
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

// Blocks that the card holds at once. A cooperative grid must be among them.
uint64_t resident_blocks(const Program& program, const LaunchConfig& config,
                         const Options& options) {
  const Card& card = options.card;
  const std::string who = "'" + program.name + "': ";
  const uint64_t each = blocks_per_multiprocessor(
      card, static_cast<uint32_t>(config.block.count()),
      static_cast<uint32_t>(shared_bytes(program, config)), options.registers);
  if (each == 0) {
    throw Error(who + "a block of " + std::to_string(config.block.count()) + " threads with " +
                std::to_string(options.registers) + " registers each does not fit on the " +
                std::string(card.name));
  }
  const uint64_t all = each * card.multiprocessors;
  if (config.cooperative && config.grid.count() > all) {
    throw Error(who + "a cooperative launch of " + std::to_string(config.grid.count()) +
                " blocks; the " + std::string(card.name) + " holds " + std::to_string(all) +
                " of them at once: " + std::to_string(each) + " on each of " +
                std::to_string(card.multiprocessors) + " multiprocessors");
  }
  return all;
}

// Host threads that may run a cluster each at once.
uint64_t threads_with_room(const Program& program, const LaunchConfig& config,
                           const Options& options) {
  const uint64_t local = config.block.count() * config.cluster.count() * program.local_bytes;
  return local == 0 ? ~uint64_t{0} : std::max<uint64_t>(1, options.max_local_bytes / local);
}

// All clusters together have taken too long, and none of them is to blame.
Fault over_limit(const Kernel& kernel, uint64_t limit) {
  Fault f;
  f.kind = FaultKind::kStepLimit;
  f.kernel = kernel.name();
  f.message = "the blocks of the launch have executed more than " + std::to_string(limit) +
              " instructions, which is the limit";
  f.where = kernel.point_at(0, f.message);
  return f;
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
  state.clustered = program.required_cluster || complete.cluster.count() > 1;
  state.dynamic_shared_bytes = complete.dynamic_shared_bytes;
  state.parameters = parameter_bytes(program, complete);
  if (program.pairs && complete.cluster.count() > 1) {
    for (uint32_t rank = 0; rank < complete.cluster.count(); ++rank)
      state.pools.push_back(patched_pool(program, cluster_address(rank, options.shared_base)));
  } else {
    state.pools.push_back(patched_pool(program, options.shared_base));
  }
  state.observed = !options.observers.empty();
  state.resident_limit =
      std::max<uint64_t>(1, resident_blocks(program, complete, options) / complete.cluster.count());
  state.communicates = communicates(program);
  state.most_registers = most_registers(program);
  if (complete.cooperative) state.grid_workspace = memory.grid_workspace();
  memory.attach(module);
  state.constants = memory.constants(module);
  Printed printed;
  state.printed = &printed;

  LaunchInfo info;
  info.kernel = kernel;
  info.memory = &memory;
  info.grid = complete.grid;
  info.block = complete.block;
  info.cluster = complete.cluster;
  info.dynamic_shared_bytes = complete.dynamic_shared_bytes;
  for (const Observer* o : options.observers) {
    state.every_instruction |= o->wants_instructions();
    state.ordered |= o->wants_order();
  }
  info.ordered = state.ordered;
  for (Observer* o : options.observers) o->begin(info);

  const uint64_t clusters = complete.grid.count() / complete.cluster.count();
  uint64_t threads = options.threads != 0 ? static_cast<uint64_t>(options.threads)
                                          : std::max(1u, std::thread::hardware_concurrency());
  const bool cancels = cancels_clusters(program);
  threads = state.communicates || state.ordered || cancels ? 1 : std::min(threads, clusters);
  threads = std::min(threads, threads_with_room(program, complete, options));

  Work work(clusters, options.cta_order == Order::kReversed ? state.resident_limit : 0,
            options.max_steps);
  state.work = &work;
  // Half of the grid at most, so that a small one has something to cancel, too.
  if (cancels) work.allow_cancel(std::min(state.resident_limit, (clusters + 1) / 2));
  ProbeSets probes(options.observers);
  {
    std::vector<std::unique_ptr<GridRunner>> runners;
    for (uint64_t t = 0; t < threads; ++t) {
      runners.push_back(std::make_unique<GridRunner>(state, work, probes));
    }
    std::vector<std::jthread> pool;
    for (uint64_t t = 1; t < threads; ++t) {
      pool.emplace_back([&, t] { runners[t]->run(); });
    }
    runners[0]->run();
  }
  memory.forget_fresh();

  LaunchResult result;
  result.fault = work.result();
  result.stopped = work.stopped();
  result.printed = printed.take();
  result.steps = work.steps();
  if (!result.fault && !result.stopped && work.over_limit()) {
    result.fault = over_limit(kernel, options.max_steps);
  }
  for (size_t i = 0; i < options.observers.size(); ++i) {
    options.observers[i]->end(probes.take(i));
    for (Finding& f : options.observers[i]->findings()) result.findings.push_back(std::move(f));
  }
  return result;
}

}  // namespace ptxvm
