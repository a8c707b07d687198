// SPDX-License-Identifier: MIT
// A whole bench on a real GPU, with peers of our own; skipped where there is none.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "harness/device/gpu_stopwatch.h"
#include "harness/measure/bench.h"
#include "harness/measure/measured.h"
#include "harness/tests/bench/gpu_test_kernels.h"
#include "harness/tests/bench/json_printer.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

struct Fixture {
  fs::path path = fs::temp_directory_path() / fmt::format("fa_gpu_bench_{}.json", ::getpid());
  BenchOptions options;
  std::vector<std::string> notes;
  BenchReport report{.note = [this](const std::string& text) { notes.push_back(text); },
                     .progress = {},
                     .finished = {}};

  Fixture() {
    fs::remove(path);
    options.rungs = match_rungs("06");
    options.problems = {{.batch = 1, .heads = 2, .seq_q = 512, .seq_kv = 512, .head_dim = 128}};
    options.policy = {
        .rounds = 2, .warmup_ms = 2, .spaced_ms = 10, .lead_ms = 2, .back_to_back_ms = 5};
    options.json = path;
    options.argv = {"bench"};
  }
  ~Fixture() { fs::remove(path); }

  Json document() const {
    std::ifstream in(path);
    return Json::parse(in);
  }
  Json row(const std::string& id) const {
    const Json rows = document()["rows"];
    for (const Json& each : rows) {
      if (each["id"] == id) return each;
    }
    return {};
  }
};

Peer wrong_peer() {
  Peer peer;
  peer.id = "wrong";
  peer.launch = [](const Problem& problem, const PeerTensors& tensors, GpuStream stream) {
    if (!tensors.o) return;
    cudaMemsetAsync(tensors.o, 0, static_cast<std::size_t>(problem.q_elements()) * 2, stream);
  };
  return peer;
}

TEST_CASE_METHOD(Fixture, "rungs and peers become rows, and a second run keeps them") {
  if (test::no_gpu()) return;
  GpuDevice device;
  options.peers.push_back(wrong_peer());
  Peer refusing;
  refusing.id = "refusing";
  refusing.launch = [](const Problem&, const PeerTensors&, GpuStream) {
    throw PeerUnsupported("not this shape");
  };
  options.peers.push_back(refusing);
  Peer product;
  product.id = "product";
  product.matmul = {64, 64, 64};
  product.launch = [](const Problem&, const PeerTensors&, GpuStream stream) {
    cudaStreamQuery(stream);
  };
  options.peers.push_back(product);

  const BenchOutcome first = run_bench(device, options, report);
  CHECK(first.incorrect == 1);
  CHECK(first.unsupported == 1);
  CHECK(first.failed == 0);
  const Json rung = row("06");
  CHECK(rung["status"] == "ok");
  CHECK(rung["reason"] == "");
  CHECK(rung["time_ms"]["median"].get<double>() > 0);
  CHECK(rung["time_ms"]["n"].get<int>() >= 2);
  CHECK(rung["tflops"].get<double>() > 0);
  CHECK(rung["check"]["repeatable"] == true);
  CHECK(rung["resources"]["registers"].get<int>() > 32);
  CHECK(row("wrong")["status"] == "incorrect");
  CHECK(row("wrong")["time_ms"].is_null());
  CHECK(row("refusing")["status"] == "unsupported");
  CHECK(row("refusing")["reason"] == "not this shape");
  CHECK(row("product")["check"].is_null());

  options.peers.clear();
  const std::string before = document().dump();
  const BenchOutcome second = run_bench(device, options, report);
  CHECK(second.kept > 0);
  CHECK(second.kept == second.ok);
  CHECK(document().dump() == before);
}

TEST_CASE_METHOD(Fixture,
                 "a peer that waits for the device is an error, the rung beside it is fine") {
  if (test::no_gpu()) return;
  GpuDevice device;
  Peer waiting;
  waiting.id = "waiting";
  waiting.matmul = {64, 64, 64};
  waiting.launch = [](const Problem&, const PeerTensors&, GpuStream stream) {
    cudaStreamSynchronize(stream);
  };
  options.peers = {waiting};
  const BenchOutcome outcome = run_bench(device, options, report);
  CHECK(outcome.failed == 1);
  CHECK(row("waiting")["reason"].get<std::string>().find("waits for the device") !=
        std::string::npos);
  CHECK(row("06")["status"] == "ok");
}

/// A rung of two launches, neither of which does anything useful, with scratch of its own.
PlanResult spin_plan(const Problem&, const Instance&) {
  Launch first = test::single_block(test::kSpin, {std::int64_t{200'000}});
  Launch second = test::single_block(test::kSpin, {std::int64_t{500'000}});
  first.entry = "first";
  second.entry = "second";
  return LaunchPlan{{first, second}, {{"S", 1 << 20}}};
}

/// Asks for more scratch than any card has.
PlanResult greedy_plan(const Problem& problem, const Instance& instance, const DeviceDescription&) {
  LaunchPlan plan = std::get<LaunchPlan>(spin_plan(problem, instance));
  plan.scratch.front().bytes = std::int64_t{1} << 50;
  return plan;
}

const Instance kSpinInstance[] = {{"first", test::kSpin, 128, {64, 64, 1}, 0}};

TEST_CASE_METHOD(Fixture, "scratch that does not fit is a row, and the rungs beside it are timed") {
  if (test::no_gpu()) return;
  GpuDevice device;
  Rung greedy = *options.rungs.front();
  greedy.id = "90";
  greedy.instances = kSpinInstance;
  greedy.plan = greedy_plan;
  options.rungs.insert(options.rungs.begin(), &greedy);
  const BenchOutcome outcome = run_bench(device, options, report);
  CHECK(outcome.failed == 1);
  CHECK(row("90")["status"] == "out_of_memory");
  CHECK(row("90")["peak_bytes"].get<std::int64_t>() > std::int64_t{1} << 50);
  CHECK(row("90")["launches"].size() == 2);
  CHECK(row("06")["status"] == "ok");
}

TEST_CASE("the launches of a plan are timed one by one") {
  if (test::no_gpu()) return;
  GpuDevice device;
  const Problem problem{.batch = 1, .heads = 1, .seq_q = 64, .seq_kv = 64, .head_dim = 128};
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  Item item;
  item.name = "spin";
  item.plan = std::get<LaunchPlan>(spin_plan(problem, kSpinInstance[0]));
  const std::function<void(const LaunchPlan&)> launch = [&](const LaunchPlan& plan) {
    device.launch(plan);
  };
  GpuStopwatch stopwatch(device, L2Policy::warm);
  const std::vector<ItemTimes> times =
      time_interleaved(part_items(item, launch), {.rounds = 2, .warmup_ms = 1}, stopwatch);
  Row row;
  put_resources(row, item.plan, device);
  put_part_times(row, times);
  CHECK(row.launches[0].time_ms.value().median == Approx(0.2).epsilon(0.1));
  CHECK(row.launches[1].time_ms.value().median == Approx(0.5).epsilon(0.1));
  CHECK(row.resources.value().registers > 0);
}

TEST_CASE_METHOD(Fixture, "a problem beyond the card's memory is a row, not a crash") {
  if (test::no_gpu()) return;
  GpuDevice device;
  options.problems = {{.batch = 60000, .heads = 60000, .seq_q = 1 << 20, .seq_kv = 1 << 20}};
  const BenchOutcome outcome = run_bench(device, options, report);
  CHECK(outcome.ok == 0);
  CHECK(outcome.failed > 0);
  CHECK(row("06")["status"] == "out_of_memory");
  CHECK(row("06")["reason"].get<std::string>().find("bytes") != std::string::npos);
}

}  // namespace
}  // namespace fa
