// SPDX-License-Identifier: MIT
// The device and the stopwatch on a real GPU; skipped where there is none.
#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <set>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "harness/device/cuda_check.h"
#include "harness/device/gate.h"
#include "harness/device/gpu_launch.h"
#include "harness/device/gpu_stopwatch.h"
#include "harness/device/make_device.h"
#include "harness/environment/nvml.h"
#include "harness/environment/occupancy.h"
#include "harness/measure/inputs_for.h"
#include "harness/tests/bench/gpu_test_kernels.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/replay.h"
#include "harness/tests/device/small_problem.h"
#include "kernels/catalogue.h"

namespace fa {
namespace {

using test::no_gpu;
using test::single_block;

const Problem kProblem{.batch = 2, .heads = 3, .seq_q = 128, .seq_kv = 256, .head_dim = 64};

TEST_CASE("properties, and make_device takes the GPU") {
  if (no_gpu()) return;
  const auto device = make_device("auto");
  CHECK(device->kind() == "gpu");
  const GpuDevice gpu;
  CHECK(gpu.sm() >= 50);
  CHECK(*gpu.facts().l2 > 0);
  CHECK(*gpu.facts().memory > 0);
  CHECK_FALSE(gpu.facts().pci_bus_id.empty());
}

TEST_CASE("what was poisoned is downloaded as NaN, buffers start intact") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  const HostTensor output = device.download_output();
  CHECK(count_non_finite(output) == output.size());
  CHECK(device.damaged_red_zones().empty());
}

TEST_CASE("launches in turn take copies of K and V that do not fit into the L2 together") {
  if (no_gpu()) return;
  GpuDevice device;
  const std::size_t l2 = *device.facts().l2;
  const auto held = [&](Tensor tensor, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    check_cuda(cudaMemcpy(data.data(), device.address(tensor), bytes, cudaMemcpyDeviceToHost), "");
    return data;
  };
  Problem cache{.heads = 8, .seq_q = 1, .seq_kv = 1024, .head_dim = 128};  // 4 MiB
  device.load(cache, make_inputs(cache, Distribution::normal, 1));
  const std::vector<std::byte> keys = held(Tensor::k, 2 << 20), values = held(Tensor::v, 2 << 20);
  const int copies = device.make_cache_copies(64);
  REQUIRE(copies == std::min(64, static_cast<int>(1 + (2 * l2 + (4 << 20) - 1) / (4 << 20))));
  CHECK_FALSE(device.cache_is_hot());
  std::set<void*> places;
  for (int i = 0; i < copies; ++i, device.turn_cache()) {
    places.insert(device.address(Tensor::k));
    places.insert(device.address(Tensor::v));
    CHECK((held(Tensor::k, 2 << 20) == keys && held(Tensor::v, 2 << 20) == values));
  }
  CHECK(places.size() == 2 * static_cast<std::size_t>(copies));
  CHECK(places.count(device.address(Tensor::k)) == 1);  // the first again

  CHECK(device.make_cache_copies(2) == 2);
  CHECK(device.cache_is_hot());
  cache.batch = 64;  // 256 MiB, of which a launch finds nothing when it starts
  device.load(cache, make_inputs(cache, Distribution::normal, 1));
  CHECK(device.make_cache_copies(64) == (2 * l2 > (256u << 20) ? 2 : 1));
  CHECK_FALSE(device.cache_is_hot());
}

TEST_CASE("copies larger than a chunk arrive whole") {
  if (no_gpu()) return;
  // 48 MiB and a bit: three full chunks and a rest.
  const Problem large{.batch = 1, .heads = 6, .seq_q = 32771, .seq_kv = 16, .head_dim = 128};
  GpuDevice device;
  const Inputs inputs = make_inputs(large, Distribution::uniform, 1);
  device.load(large, inputs);
  // One element of the last chunk, which must be found at its place.
  device.poison_output();
  device.launch({{single_block(test::kStrayWrite, {Tensor::o, large.q_elements() - 3})}});
  const HostTensor output = device.download_output();
  CHECK(output.size() == large.q_elements());
  CHECK(count_non_finite(output) == output.size() - 1);
  CHECK(output.at(output.size() - 3) == 1.f);
}

TEST_CASE("a write just outside O is found on both sides, inside it is not") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  const auto write_at = [&](std::int64_t offset) {
    device.launch({{single_block(test::kStrayWrite, {Tensor::o, offset})}});
    return device.damaged_red_zones();
  };
  CHECK(write_at(0).empty());
  CHECK(write_at(kProblem.q_elements() - 1).empty());
  CHECK(device.download_output().at(0) == 1.f);
  CHECK(write_at(-1) == std::vector<std::string>{"O"});
  CHECK(write_at(0).empty());  // repaired
  CHECK(write_at(kProblem.q_elements()) == std::vector<std::string>{"O"});
}

/// One launch that writes one element of a scratch buffer of a plan with these sizes.
LaunchPlan scratch_plan(std::vector<Scratch> scratch, int index, std::int64_t offset) {
  return {{single_block(test::kStrayWrite, {ScratchRef{index}, offset})}, std::move(scratch)};
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

TEST_CASE("a write beside a scratch buffer is found, and names it") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  const std::vector<Scratch> two{{"first", 1000}, {"second", 2048}};
  const auto damaged_by = [&](const std::vector<Scratch>& scratch, int index, std::int64_t offset) {
    device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
    device.launch(scratch_plan(scratch, index, offset));
    return device.damaged_red_zones();
  };
  CHECK(damaged_by(two, 0, 0).empty());
  CHECK(damaged_by(two, 1, 1023).empty());
  CHECK(damaged_by(two, 0, -1) == std::vector<std::string>{"first"});
  CHECK(damaged_by(two, 0, 500) == std::vector<std::string>{"first"});
  CHECK(damaged_by(two, 1, -1) == std::vector<std::string>{"second"});
  CHECK(damaged_by(two, 1, 1024) == std::vector<std::string>{"second"});
}

TEST_CASE("plans share their scratch memory, whoever comes first, and each has its red zones") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  const std::vector<Scratch> small{{"l", 64}, {"m", 64}};
  const std::vector<Scratch> large{{"S", 64 << 20}};
  device.launch(scratch_plan(small, 0, 0));
  device.launch(scratch_plan(large, 0, 0));
  device.synchronize();
  const std::size_t free = free_memory();
  for (int turn = 0; turn < 4; ++turn) {
    device.launch(scratch_plan(small, 1, 0));
    device.launch(scratch_plan(large, 0, (32 << 20) - 1));
  }
  device.synchronize();
  CHECK(free_memory() == free);

  // What the turns left in the memory is no damage; after a poisoning it is looked at again.
  CHECK(device.damaged_red_zones().empty());
  device.poison_output();
  device.launch(scratch_plan(small, 1, 0));
  CHECK(device.damaged_red_zones().empty());
  device.poison_output();
  device.launch(scratch_plan(small, 1, 32));
  CHECK(device.damaged_red_zones() == std::vector<std::string>{"m"});
  CHECK(device.damaged_red_zones().empty());  // repaired
}

TEST_CASE("scratch that does not fit is refused, and the next plan runs") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  const std::vector<Scratch> fits{{"l", 4096}};
  device.launch(scratch_plan(fits, 0, 0));
  const std::size_t free = free_memory();
  try {
    device.launch(scratch_plan({{"S", std::int64_t{1} << 50}}, 0, 0));
    FAIL("not refused");
  } catch (const OutOfMemory& error) {
    CHECK(std::string(error.what()).find("for its scratch buffers") != std::string::npos);
  }
  CHECK_NOTHROW(device.launch(scratch_plan(fits, 0, 0)));
  CHECK_NOTHROW(device.synchronize());
  CHECK(free_memory() == free);
}

TEST_CASE("recorded launches keep their scratch memory when a later plan needs more") {
  if (no_gpu()) return;
  GpuDevice device({.red_zone = GENERATE(std::size_t{4096}, std::size_t{0})});
  GpuStopwatch stopwatch(device, L2Policy::warm);
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  constexpr std::int64_t kSmall = 64 << 20, kLarge = 128 << 20;
  const auto launch = [&] { device.launch(scratch_plan({{"S", kSmall}}, 0, 0)); };
  stopwatch.untimed(launch);
  auto record = stopwatch.record(launch, 2);
  REQUIRE(record);
  const std::size_t before = free_memory();
  device.launch(scratch_plan({{"P", kLarge}}, 0, 0));
  device.synchronize();
  CHECK(free_memory() + kLarge <= before);
  CHECK(stopwatch.train(*record, 1, 1));
  record.reset();
  CHECK(free_memory() + kLarge >= before + kSmall - (4 << 20));
}

TEST_CASE("a zeroed scratch buffer starts as zeros, and nobody but its plan writes to it") {
  if (no_gpu()) return;
  for (const std::size_t red_zone : {std::size_t{4096}, std::size_t{0}}) {
    GpuDevice device({.red_zone = red_zone});
    device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
    const Scratch counter{.name = "counter", .bytes = 4, .zeroed = true};
    /// What the plan finds in its counter; it leaves another value there.
    const auto found = [&](const Scratch& zeroed, std::int32_t left) {
      device.launch(
          {{single_block(test::kCounter, {Tensor::o, ScratchRef{1}, left})}, {{"l", 64}, zeroed}});
      return device.download_output().at(0);
    };
    CHECK(found(counter, 0) == 0.f);
    device.poison_output();
    CHECK(found(counter, 7) == 0.f);
    // Other plans come between, the output is poisoned, a larger problem is loaded.
    device.launch(scratch_plan({{"S", 1 << 20}}, 0, 0));
    CHECK(found({.name = "tickets", .bytes = 4, .zeroed = true}, 5) == 0.f);
    CHECK(found({.name = "counter", .bytes = 8, .zeroed = true}, 3) == 0.f);
    device.poison_output();
    Problem larger = kProblem;
    larger.heads = 5;
    device.load(larger, make_inputs(larger, Distribution::normal, 1));
    CHECK(found(counter, 0) == 7.f);
    CHECK(device.damaged_red_zones().empty());
    CHECK(device.nonzero_scratch() == std::vector<std::string>{"tickets", "counter"});
    CHECK(device.nonzero_scratch().empty());
    CHECK(found({.name = "tickets", .bytes = 4, .zeroed = true}, 0) == 0.f);
  }
}

TEST_CASE("two devices have counters of their own") {
  if (no_gpu()) return;
  GpuDevice first;
  GpuDevice second;
  const LaunchPlan plan{{single_block(test::kCounter, {Tensor::o, ScratchRef{0}, std::int32_t{9}})},
                        {{.name = "counter", .bytes = 4, .zeroed = true}}};
  for (GpuDevice* device : {&first, &second}) {
    device->load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
    device->launch(plan);
    CHECK(device->download_output().at(0) == 0.f);
  }
}

/// Memory of a test's own on the GPU.
class GpuMemory {
 public:
  explicit GpuMemory(std::size_t bytes) {
    check_cuda(cudaMalloc(&memory_, bytes), "allocating memory for a test");
    check_cuda(cudaMemset(memory_, 0, bytes), "zeroing memory for a test");
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { ignore_cuda(cudaFree(memory_)); }
  void* data() const { return memory_; }
  Argument argument() const {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(memory_));
  }

 private:
  void* memory_ = nullptr;
};

/// A stream of launches of one problem, each followed by a comparison with the output of a launch
/// that had the GPU for itself; of gradients with that of K, as dQ has no order of its sums.
class LaunchStream {
 public:
  LaunchStream(const Rung& rung, const Problem& problem)
      : compared_(problem.backward ? Tensor::d_k : Tensor::o),
        words_((problem.backward ? problem.kv_elements() : problem.q_elements()) *
               static_cast<std::int64_t>(size_of(problem.dtype)) / 4),
        expected_(static_cast<std::size_t>(words_) * 4),
        differences_(sizeof(unsigned long long)) {
    const Inputs inputs = inputs_for(device_, problem, Distribution::normal, 1);
    device_.load(problem, inputs);
    plan_ = std::get<LaunchPlan>(make_plan(rung, problem, device_.description()));
    device_.launch(plan_);
    device_.synchronize();
    check_cuda(cudaMemcpy(expected_.data(), device_.address(compared_),
                          static_cast<std::size_t>(words_) * 4, cudaMemcpyDeviceToDevice),
               "keeping the expected output");
    compare_ = single_block(test::kCompare,
                            {compared_, expected_.argument(), words_, differences_.argument()});
    compare_.block = 256;
    compare_.grid.x = 16;
  }

  /// Enqueued only; an element that is not written is NaN, so it differs.
  void launch() {
    device_.poison_output();
    device_.launch(plan_);
    compare();
  }
  /// As if the rung had written nothing.
  void launch_nothing() {
    device_.poison_output();
    compare();
  }

  /// Words that differed in any launch so far.
  unsigned long long differences() {
    device_.synchronize();
    unsigned long long count = 0;
    check_cuda(cudaMemcpy(&count, differences_.data(), sizeof(count), cudaMemcpyDeviceToHost),
               "reading the number of differences");
    return count;
  }
  std::int64_t words() const { return words_; }

 private:
  void compare() { device_.launch({{compare_}}); }

  GpuDevice device_;
  Tensor compared_;
  std::int64_t words_;
  GpuMemory expected_, differences_;
  LaunchPlan plan_;
  Launch compare_;
};

TEST_CASE("two streams launch a rung at once, with the bits of one stream") {
  if (no_gpu()) return;
  const DeviceDescription device = gpu_description();
  // Few tiles: launches of both streams are on the GPU at the same time.
  Problem square{
      .batch = 1, .heads = 3, .seq_q = 1024, .seq_kv = 1024, .head_dim = 128, .causal = true};
  Problem cached{
      .batch = 1, .heads = 12, .seq_q = 1, .seq_kv = 4096, .head_dim = 128, .own_kv_heads = 3};
  int rungs = 0;
  for (const Rung& rung : catalogue()) {
    const Instance* instance = rung.find_instance(128, rung.dtype);
    if (rung.family == Family::own || device_refusal(rung, device, instance)) continue;
    const bool decodes = rung.family == Family::decode;
    if (rung.dtype != Dtype::f16) continue;
    if (!decodes && !has(rung.capabilities, Capabilities::causal)) continue;
    CAPTURE(rung.name);
    Problem& problem = decodes ? cached : square;
    set_types(rung, problem);
    Problem other = problem;
    other.heads = decodes ? 20 : 5;
    other.own_kv_heads = decodes ? 5 : 0;
    other.seq_kv = 768;
    if (!decodes) other.seq_q = 768;
    LaunchStream first(rung, problem);
    LaunchStream second(rung, other);
    for (int i = 0; i < 1000; ++i) {
      first.launch();
      second.launch();
    }
    CHECK(first.differences() == 0);
    CHECK(second.differences() == 0);
    // The comparison sees what differs.
    first.launch_nothing();
    CHECK(first.differences() == static_cast<unsigned long long>(first.words()));
    ++rungs;
  }
  CHECK(rungs >= 2);
}

/// 64 times two launches, the second with the output of the first as its queries: the outputs of
/// the second. What a launch reads too soon is of the pair before.
std::vector<std::byte> outputs_of_pairs(GpuDevice& device, const LaunchPlan& plan,
                                        const Problem& problem) {
  constexpr std::size_t kPairs = 64;
  const std::size_t bytes = static_cast<std::size_t>(problem.q_elements()) * size_of(problem.dtype);
  Problem many = problem;
  many.batch *= kPairs;
  many.seq_kv = 1;
  const Inputs queries = make_inputs(many, Distribution::normal, 2);
  const GpuMemory asked(kPairs * bytes), between(bytes), answers(kPairs * bytes);
  check_cuda(
      cudaMemcpy(asked.data(), queries.q.bytes.data(), kPairs * bytes, cudaMemcpyHostToDevice),
      "copying queries");
  std::deque<GpuMemory> scratch;
  std::vector<void*> places;
  for (const Scratch& wanted : plan.scratch)
    places.push_back(scratch.emplace_back(static_cast<std::size_t>(wanted.bytes)).data());

  for (const Launch& step : plan.launches) raise_shared_limit(step);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream), "making a stream");
  const auto launch = [&](void* q, void* o) {
    GpuBuffers buffers{.scratch = places};
    for (const Tensor kept : {Tensor::k, Tensor::v})
      buffers.tensors[static_cast<std::size_t>(kept)] = device.address(kept);
    buffers.tensors[static_cast<std::size_t>(Tensor::q)] = q;
    buffers.tensors[static_cast<std::size_t>(Tensor::o)] = o;
    for (const Launch& step : plan.launches) launch_on_gpu(step, problem.dtype, buffers, stream);
  };
  for (std::size_t i = 0; i < kPairs; ++i) {
    launch(static_cast<std::byte*>(asked.data()) + i * bytes, between.data());
    launch(between.data(), static_cast<std::byte*>(answers.data()) + i * bytes);
  }
  check_cuda(cudaStreamSynchronize(stream), "waiting for pairs of launches");
  ignore_cuda(cudaStreamDestroy(stream));
  std::vector<std::byte> read(kPairs * bytes);
  check_cuda(cudaMemcpy(read.data(), answers.data(), read.size(), cudaMemcpyDeviceToHost),
             "reading answers");
  return read;
}

TEST_CASE("a launch that begins early reads what the one ahead of it wrote") {
  if (no_gpu()) return;
  GpuDevice device;
  const Problem problem{
      .batch = 1, .heads = 32, .seq_q = 1, .seq_kv = 2048, .head_dim = 128, .own_kv_heads = 8};
  int rungs = 0;
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::decode || device_refusal(rung, device.description())) continue;
    const auto planned = make_plan(rung, problem, device.description());
    if (!std::holds_alternative<LaunchPlan>(planned)) continue;
    LaunchPlan plan = std::get<LaunchPlan>(planned);
    if (!plan.launches.front().early) continue;
    CAPTURE(rung.name);
    device.load(problem, make_inputs(problem, Distribution::normal, 1));
    const std::vector<std::byte> early = outputs_of_pairs(device, plan, problem);
    plan.launches.front().early = false;
    CHECK(early == outputs_of_pairs(device, plan, problem));
    ++rungs;
  }
  CHECK((rungs >= 1 || device.sm() != 90));  // none of them runs on another card
}

TEST_CASE("dynamic shared memory beyond 48 KiB is asked for") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  constexpr std::int32_t kBytes = 96 << 10;
  const Launch launch = single_block(test::kShared, {Tensor::o, kBytes}, kBytes);
  device.launch({{launch}});
  CHECK(device.download_output().at(0) == 96.f);
  const KernelResources used = device.resources(launch).value();
  CHECK(used.dynamic_shared == kBytes);
  CHECK(used.registers > 0);
  CHECK(used.blocks_per_sm >= 1);
}

TEST_CASE("launch errors are thrown at the launch and leave the device usable") {
  if (no_gpu()) return;
  GpuDevice device;
  device.load(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  Launch launch = single_block(test::kSpin, {std::int64_t{0}});
  launch.block = 4096;
  CHECK_THROWS_AS(device.launch({{launch}}), KernelFault);
  launch.block = 32;
  launch.grid.y = 70000;
  CHECK_THROWS_AS(device.launch({{launch}}), KernelFault);
  launch.grid.y = 0;
  CHECK_THROWS_AS(device.launch({{launch}}), KernelFault);
  launch.grid.y = 1;
  launch.dynamic_shared = 1 << 20;
  CHECK_THROWS_AS(device.launch({{launch}}), KernelFault);
  launch.dynamic_shared = 0;
  launch.arguments = {ScratchRef{0}};
  CHECK_THROWS_AS(device.launch({{launch}}), KernelFault);
  launch.arguments = {std::int64_t{0}};
  CHECK_NOTHROW(device.launch({{launch}}));
  CHECK_NOTHROW(device.synchronize());
}

TEST_CASE("a problem that does not fit is refused before anything is allocated") {
  if (no_gpu()) return;
  GpuDevice device;
  const Problem huge{.batch = 65535, .heads = 65535, .seq_q = 1 << 30, .seq_kv = 1 << 30};
  try {
    device.require_memory(huge);
    FAIL("not refused");
  } catch (const OutOfMemory& error) {
    const std::string message = error.what();
    CHECK(message.find("needs") != std::string::npos);
    CHECK(message.find("are free") != std::string::npos);
  }
  CHECK_NOTHROW(device.require_memory(kProblem));
}

TEST_CASE("every rung passes the gate at a small shape, recorded as well") {
  if (no_gpu()) return;
  GpuDevice device;
  GpuStopwatch stopwatch(device, L2Policy::warm);
  for (const Rung& rung : catalogue()) {
    for (const Instance& instance : rung.instances) {
      if (device_refusal(rung, device.description(), &instance)) continue;
      CAPTURE(instance.entry);
      const Problem problem = test::small_problem(rung, instance);
      const PlanResult plan = make_plan(rung, instance, problem, device.description());
      REQUIRE(std::holds_alternative<LaunchPlan>(plan));
      const Inputs inputs = make_pass_inputs(problem, Distribution::needle, 1);
      device.load(problem, inputs);
      const Verifier verifier(problem, inputs);
      const auto launch = [&] { device.launch(std::get<LaunchPlan>(plan)); };
      const Repeat repeat = promised(std::get<LaunchPlan>(plan));
      CHECK(pass_gate(device, launch, verifier, repeat).reason == "");
      const auto record = stopwatch.record(launch, 2);
      REQUIRE(record);
      CHECK(pass_gate(device, *record, verifier, repeat).reason == "");
    }
  }
}

TEST_CASE("a plan is right for lengths other than those it was made for") {
  if (no_gpu()) return;
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::decode) continue;
    GpuDevice device;
    test::check_replays(device, rung);
  }
}

TEST_CASE("computed occupancy is the driver's") {
  if (no_gpu()) return;
  GpuDevice device;
  const SmLimits* limits = sm_limits(device.sm());
  if (!limits) {
    WARN("the limits of this card are not known");
    return;
  }
  int compared = 0;
  for (const Rung& rung : catalogue()) {
    for (const auto kernels : {rung.instances, rung.tuned}) {
      for (const Instance& instance : kernels) {
        if (device_refusal(rung, device.description(), &instance)) continue;
        CAPTURE(instance.entry);
        const Problem problem = test::small_problem(rung, instance);
        const PlanResult plan = make_plan(rung, instance, problem, device.description());
        REQUIRE(std::holds_alternative<LaunchPlan>(plan));
        for (const Launch& launch : std::get<LaunchPlan>(plan).launches) {
          const KernelResources used = device.resources(launch).value();
          const Occupancy computed =
              occupancy(*limits, {.threads = used.threads,
                                  .registers = used.registers,
                                  .shared = used.static_shared + used.dynamic_shared});
          CHECK(computed.blocks == used.blocks_per_sm);
          ++compared;
        }
      }
    }
  }
  CHECK(compared >= 7);
}

TEST_CASE("the stopwatch measures the kernel, not the host") {
  if (no_gpu()) return;
  GpuDevice device;
  GpuStopwatch stopwatch(device, L2Policy::flush);
  const auto spin = [&](double ms) {
    device.launch({{single_block(test::kSpin, {static_cast<std::int64_t>(ms * 1e6)})}});
  };
  stopwatch.untimed([&] { spin(0.01); });

  const auto one = stopwatch.single([&] { spin(2); });
  REQUIRE(one);
  CHECK(*one == Approx(2).epsilon(0.05));

  // 5 ms of host time before the launch is not in the sample.
  const auto slow_host = stopwatch.single([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    spin(2);
  });
  REQUIRE(slow_host);
  CHECK(*slow_host == Approx(2).epsilon(0.05));

  const auto many = stopwatch.train([&] { spin(0.5); }, 20, 100);
  REQUIRE(many);
  CHECK(*many == Approx(10).epsilon(0.05));

  // More than the queue takes: the host goes on while the first ones run.
  const auto long_train = stopwatch.train([&] { spin(0.1); }, 2000, 100);
  REQUIRE(long_train);
  CHECK(*long_train == Approx(200).epsilon(0.05));
  // The device would have to wait for the host: no sample.
  const auto starved = stopwatch.train(
      [&] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        spin(0.01);
      },
      1000, 100);
  CHECK_FALSE(starved);
}

TEST_CASE("a launch that takes the host longer than the device is recorded and replayed") {
  if (no_gpu()) return;
  GpuDevice device;
  GpuStopwatch stopwatch(device, L2Policy::warm);
  const auto spin = [&] { device.launch({{single_block(test::kSpin, {std::int64_t{100'000}})}}); };
  stopwatch.untimed(spin);
  const auto slow = [&] {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    spin();
  };
  CHECK_FALSE(stopwatch.train(slow, 1000, 100));
  const auto record = stopwatch.record(slow, 100);
  REQUIRE(record);
  const auto replayed = stopwatch.train(*record, 10, 1);
  REQUIRE(replayed);
  CHECK(*replayed == Approx(100).epsilon(0.05));

  // What waits for the device cannot be recorded, and leaves the stream as it was.
  CHECK_FALSE(stopwatch.record(
      [&] {
        spin();
        device.synchronize();
      },
      2));
  CHECK(stopwatch.train(spin, 10, 100));
}

TEST_CASE("a launch that waits for the device gives no sample, and the next one works") {
  if (no_gpu()) return;
  GpuDevice device;
  GpuStopwatch stopwatch(device, L2Policy::warm);
  const auto spin = [&] { device.launch({{single_block(test::kSpin, {std::int64_t{1000}})}}); };
  const auto waited = stopwatch.single([&] {
    spin();
    device.synchronize();
  });
  CHECK_FALSE(waited);
  CHECK(stopwatch.single(spin));
}

TEST_CASE("a launch that throws leaves an empty stream") {
  if (no_gpu()) return;
  GpuDevice device;
  GpuStopwatch stopwatch(device, L2Policy::warm);
  CHECK_THROWS_AS(stopwatch.single([] { throw DeviceError("no"); }), DeviceError);
  const auto start = std::chrono::steady_clock::now();
  CHECK_NOTHROW(device.synchronize());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100));
}

TEST_CASE("NVML reads plausible clocks and power") {
  if (no_gpu()) return;
  GpuDevice device;
  const auto nvml = Nvml::open(device.facts().pci_bus_id);
  if (!nvml) {
    WARN("NVML is not available");
    return;
  }
  ClockSampler sampler(nvml.get(), 1);
  sampler.open(0);
  device.launch({{single_block(test::kSpin, {std::int64_t{200'000'000}})}});
  device.synchronize();
  sampler.close();
  const ClockReading reading = sampler.reading(0);
  CHECK(reading.samples > 3);
  REQUIRE(reading.clock_mhz);
  CHECK(*reading.clock_mhz > 100);
  CHECK(*reading.clock_mhz < 5000);
  if (reading.power_w) CHECK(*reading.power_w > 5);
  CHECK(nvml->driver_version());
}

}  // namespace
}  // namespace fa
