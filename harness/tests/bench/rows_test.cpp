// SPDX-License-Identifier: MIT
// Items, rows and resume of a bench: rungs and peers of our own, no GPU.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/io/file.h"
#include "harness/measure/bench.h"
#include "harness/measure/identity.h"
#include "harness/measure/measured.h"
#include "harness/results/json_file.h"
#include "harness/tests/bench/json_printer.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

const Instance kInstances[] = {{"fake_d64", nullptr, 64, {64, 64, 4}, 1024},
                               {"fake_d64_wide", nullptr, 64, {128, 64, 4}, 2048},
                               {"fake_d128", nullptr, 128, {64, 32, 2}, 4096}};

PlanResult fake_plan(const Problem& problem, const Instance& instance, const DeviceDescription&) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  Launch launch;
  launch.entry = instance.entry;
  launch.block = instance.tile.warps * 32;
  return LaunchPlan{{launch}};
}

const DeviceDescription kDevice = h200_description();

Rung fake_rung(std::string_view id, std::string_view name, Dtype dtype) {
  return {.id = id,
          .name = name,
          .parent = "",
          .family = Family::ampere,
          .target = Target::sm_80,
          .dtype = dtype,
          .capabilities = Capabilities::none,
          .idea = "none",
          .instances = kInstances,
          .plan = fake_plan};
}

struct Fixture {
  Rung half = fake_rung("90", "90_half", Dtype::f16);
  Rung single = fake_rung("91", "91_single", Dtype::f32);
  Problem problem{.batch = 2, .heads = 3, .seq_q = 128, .seq_kv = 128, .head_dim = 64};
  BenchOptions options;
  std::string peer_refusal;

  Fixture() {
    options.rungs = {&half, &single};
    Peer peer;
    peer.id = "fa2";
    peer.variant = "torch";
    peer.unsupported = [this](const Problem&) { return peer_refusal; };
    options.peers.push_back(peer);
    Peer missing;
    missing.id = "fa3";
    missing.unavailable_reason = "flash_attn_interface is not installed";
    options.peers.push_back(missing);
    Peer matmul;
    matmul.id = "cublas";
    matmul.matmul = {8192, 8192, 8192};
    options.peers.push_back(matmul);
    Peer copy;
    copy.id = "copy";
    copy.copy_bytes = 1 << 20;
    options.peers.push_back(copy);
  }

  /// The first item with a plan of three launches and two scratch buffers.
  Item item_of_several() const {
    Item item = bench_items(options, problem, kDevice).front();
    const Launch one = item.plan.launches.front();
    for (const char* entry : {"fake_softmax", "fake_values"}) {
      Launch next = one;
      next.entry = entry;
      item.plan.launches.push_back(next);
    }
    item.plan.scratch = {{"S", 1000}, {"l", 24}};
    return item;
  }
};

ItemTimes spaced(std::vector<double> ms) {
  return {.spaced = std::move(ms), .back_to_back = {}, .expired = 0, .error = {}};
}

RowResources fake_resources(const Launch& launch) {
  const auto registers = static_cast<int>(std::string_view(launch.entry).size());
  return resources_of({.registers = registers}, std::nullopt);
}

TEST_CASE_METHOD(Fixture, "items: own tile, its ablations, then the peers") {
  const auto items = bench_items(options, problem, kDevice);
  REQUIRE(items.size() == 6);
  CHECK(items[0].key.variant == "64x64w4");
  CHECK_FALSE(items[0].ablation);
  CHECK(items[1].key.variant == "128x64w4");
  CHECK(items[1].ablation);
  CHECK(items[1].plan.launches.front().entry == std::string("fake_d64_wide"));
  CHECK(items[2].key.id == "fa2");
  CHECK(items[3].refused == "flash_attn_interface is not installed");
  CHECK(items[4].peer->is_matmul());

  options.ablations = false;
  CHECK(bench_items(options, problem, kDevice).size() == 5);
  problem.dtype = Dtype::f32;
  CHECK(bench_items(options, problem, kDevice).front().key.id == "91");
}

TEST_CASE_METHOD(Fixture, "items of a sweep: tiles that only fa tune has, each once, or a choice") {
  const Instance tuned[] = {{"fake_d64_again", nullptr, 64, {64, 64, 4}, 1024},
                            {"fake_d64_small", nullptr, 64, {32, 64, 2}, 512},
                            {"fake_d128_small", nullptr, 128, {32, 64, 2}, 512}};
  half.tuned = tuned;
  options.peers.clear();
  CHECK(bench_items(options, problem, kDevice).size() == 2);
  options.tuned = true;
  const auto items = bench_items(options, problem, kDevice);
  REQUIRE(items.size() == 3);
  CHECK(items[0].instance->entry == std::string("fake_d64"));
  CHECK(items[2].key.variant == "32x64w2");
  CHECK(items[2].ablation);
  CHECK(items[2].plan.launches.front().entry == std::string("fake_d64_small"));
  CHECK(half.find_instance(64, half.dtype, "32x64w2") == &tuned[1]);

  options.tiles = {"32x64w2", "64x64w4"};
  const auto chosen = bench_items(options, problem, kDevice);
  REQUIRE(chosen.size() == 2);
  CHECK(chosen[0].key.variant == "64x64w4");
  CHECK(chosen[1].key.variant == "32x64w2");
}

TEST_CASE_METHOD(Fixture, "items that cannot run carry the reason") {
  problem.head_dim = 96;
  auto items = bench_items(options, problem, kDevice);
  REQUIRE(items.size() == 5);
  CHECK(items[0].key.variant.empty());
  CHECK(items[0].refused.find("head_dim 96 is not one of 64, 128") != std::string::npos);

  problem.head_dim = 64;
  problem.seq_q = problem.seq_kv = 192;
  items = bench_items(options, problem, kDevice);
  CHECK(items[0].refused.empty());
  CHECK(items[1].refused.find("not a multiple") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "what is wrong with a planner is wrong with the rung") {
  const auto message = [&](decltype(Rung::plan) plan) -> std::string {
    half.plan = plan;
    try {
      rung_item(half, problem, "", kDevice);
    } catch (const KernelFault& fault) {
      return fault.what();
    }
    return {};
  };
  using Description = const DeviceDescription&;
  CHECK(message(fake_plan).empty());
  CHECK(message([](const Problem&, const Instance&, Description) -> PlanResult {
          throw std::out_of_range("no such tile");
        }) == "the planner of 90_half threw an exception: no such tile");
  CHECK(message([](const Problem&, const Instance&, Description) -> PlanResult { throw 42; }) ==
        "the planner of 90_half threw what is no std::exception");
  CHECK(message([](const Problem&, const Instance&, Description) -> PlanResult {
          return LaunchPlan{};
        }) == "the planner of 90_half gave a plan without launches");
  CHECK(message([](const Problem&, const Instance&, Description) -> PlanResult {
          return LaunchPlan{{Launch{}}};
        }) == "the planner of 90_half gave a launch without an entry");
}

TEST_CASE_METHOD(Fixture, "rows: every field is there, rates follow from the times") {
  const auto items = bench_items(options, problem, kDevice);
  Row row = empty_row(items[1], "2026-01-02T03:04:05Z");
  CHECK(row.status == Status::error);
  CHECK(row.ablation);
  CHECK(row.entry == "fake_d64_wide");
  CHECK_FALSE(row.time_ms);
  CHECK(row.run == "2026-01-02T03:04:05Z");

  put_times(row, items[1],
            {.spaced = {2, 1, 3}, .back_to_back = {4, 4}, .expired = 0, .error = {}});
  CHECK(row.time_ms->median == 2);
  CHECK(row.time_ms->n == 3);
  CHECK(row.time_ms->back_to_back == 4);
  const double flops = 4.0 * 2 * 3 * 128 * 128 * 64;
  CHECK(row.tflops.value() == Approx(flops / 2e-3 / 1e12).epsilon(1e-5));
  CHECK(row.tflops_back_to_back.value() == Approx(flops / 4e-3 / 1e12).epsilon(1e-5));
  CHECK(row.gbs.value() == Approx(4.0 * 2 * 3 * 128 * 64 * 2 / 2e-3 / 1e9).epsilon(1e-5));

  Row product = empty_row(items[4], "r");
  CHECK(product.matmul == std::array<std::int64_t, 3>{8192, 8192, 8192});
  CHECK_FALSE(to_json(product).contains("ablation"));
  put_times(product, items[4], {.spaced = {1.6}, .back_to_back = {2}, .expired = 0, .error = {}});
  CHECK(product.tflops.value() == Approx(2.0 * 8192 * 8192 * 8192 / 1.6e-3 / 1e12).epsilon(1e-5));

  Row copy = empty_row(items[5], "r");
  CHECK(copy.copy_bytes == 1 << 20);
  put_times(copy, items[5], {.spaced = {0.5}, .back_to_back = {1}, .expired = 0, .error = {}});
  CHECK_FALSE(copy.tflops);
  CHECK(copy.gbs.value() == Approx(2.0 * (1 << 20) / 0.5e-3 / 1e9).epsilon(1e-5));

  CHECK(empty_row(items[3], "r").status == Status::unsupported);
}

TEST_CASE_METHOD(Fixture, "a matrix product has the problem's dtype") {
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
    problem.dtype = dtype;
    const auto items = bench_items(options, problem, kDevice);
    const Item& item = items[items.size() - 2];
    REQUIRE(item.key.id == "cublas");
    Row row = empty_row(item, "r");
    put_times(row, item, {.spaced = {2}, .back_to_back = {2}, .expired = 0, .error = {}});
    const double bytes = 3.0 * 8192 * 8192 * static_cast<double>(size_of(dtype));
    CHECK(row.gbs.value() == Approx(bytes / 2e-3 / 1e9).epsilon(1e-5));
  }
}

TEST_CASE_METHOD(Fixture, "peak bytes are the tensors and the plan's scratch") {
  const auto tensors = static_cast<std::int64_t>(problem.bytes());
  CHECK(tensors == 4 * 2 * 3 * 128 * 64 * 2);
  const Item plain = bench_items(options, problem, kDevice).front();
  CHECK(empty_row(plain, "r").peak_bytes == tensors);
  CHECK(empty_row(item_of_several(), "r").peak_bytes == tensors + 1024);

  Item beyond = item_of_several();
  beyond.plan.scratch.front().bytes = std::int64_t{1} << 60;
  CHECK_FALSE(empty_row(beyond, "r").peak_bytes);
  problem.head_dim = 96;
  CHECK_FALSE(empty_row(bench_items(options, problem, kDevice).front(), "r").peak_bytes);
}

TEST_CASE_METHOD(Fixture, "a plan of one launch has its resources and no parts") {
  const Item item = bench_items(options, problem, kDevice).front();
  CHECK(launch_parts(item.plan).empty());
  CHECK(part_items(item, [](const LaunchPlan&) {}).empty());
  Row row = empty_row(item, "r");
  put_resources(row, item.plan, fake_resources);
  put_part_times(row, {});
  CHECK(row.resources.value().registers == 8);
  CHECK(row.launches.empty());
  CHECK_FALSE(to_json(row).contains("launches"));
}

TEST_CASE_METHOD(Fixture, "each launch of a plan is timed alone, after a pass of the whole plan") {
  const Item item = item_of_several();
  std::vector<LaunchPlan> launched;
  const std::function<void(const LaunchPlan&)> launch = [&](const LaunchPlan& plan) {
    launched.push_back(plan);
  };
  const std::vector<TimedItem> parts = part_items(item, launch);
  REQUIRE(parts.size() == 3);
  for (const TimedItem& part : parts) {
    CHECK(part.spaced_only);
    part.prepare();
    part.launch();
  }
  REQUIRE(launched.size() == 6);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(launched[2 * i].launches.size() == 3);
    REQUIRE(launched[2 * i + 1].launches.size() == 1);
    CHECK(launched[2 * i + 1].launches.front().entry == item.plan.launches[i].entry);
    CHECK(launched[2 * i + 1].scratch.size() == 2);
  }
}

TEST_CASE_METHOD(Fixture, "the resources of several launches are those of the longest") {
  const Item item = item_of_several();
  Row row = empty_row(item, "r");
  put_resources(row, item.plan, fake_resources);
  CHECK_FALSE(row.resources);
  REQUIRE(row.launches.size() == 3);
  CHECK(row.launches[1].entry == "fake_softmax");
  CHECK_FALSE(row.launches[1].time_ms);
  CHECK(row.launches[1].resources.registers == 12);

  ItemTimes failed = spaced({});
  failed.error = "no luck";
  put_part_times(row, std::vector<ItemTimes>{spaced({2, 2, 9}), spaced({3}), failed});
  CHECK(row.launches[0].time_ms.value().median == 2);
  CHECK(row.launches[0].time_ms->n == 3);
  CHECK_FALSE(row.launches[0].time_ms->back_to_back);
  CHECK_FALSE(row.launches[2].time_ms);
  CHECK(row.resources.value().registers == row.launches[1].resources.registers);
}

TEST_CASE_METHOD(Fixture, "a problem is complete when each wanted row is final") {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("fa_rows_{}.json", ::getpid());
  std::filesystem::remove(path);
  ResultsFile file(path, {Json::object(), Json::object(), Json::object()}, false);
  auto items = bench_items(options, problem, kDevice);
  CHECK_FALSE(is_complete(file, items));
  std::vector<Row> rows;
  for (const Item& item : items) {
    rows.push_back(empty_row(item, "r"));
    if (item.refused.empty()) rows.back().settle(Status::ok, "");
  }
  rows[1].status = Status::out_of_memory;
  file.put(rows);
  CHECK(is_complete(file, items));

  SECTION("a wrong or failed row is measured again") {
    for (const Status status : {Status::incorrect, Status::error}) {
      rows[0].status = status;
      file.put(rows);
      CHECK_FALSE(is_complete(file, items));
    }
  }
  SECTION("a peer that has become available is measured") {
    options.peers[1].unavailable_reason.clear();
    items = bench_items(options, problem, kDevice);
    CHECK_FALSE(is_complete(file, items));
  }
  SECTION("fewer items are complete as well") {
    options.ablations = false;
    items = bench_items(options, problem, kDevice);
    CHECK(is_complete(file, items));
  }
  SECTION("another problem is not") {
    problem.batch = 7;
    CHECK_FALSE(is_complete(file, bench_items(options, problem, kDevice)));
  }
  SECTION("the same problem on other inputs is not") {
    options.inputs = {Distribution::normal, 4};
    CHECK_FALSE(is_complete(file, bench_items(options, problem, kDevice)));
    options.inputs = Distribution::rising;
    CHECK_FALSE(is_complete(file, bench_items(options, problem, kDevice)));
    options.inputs = {};
    CHECK(is_complete(file, bench_items(options, problem, kDevice)));
  }
  std::filesystem::remove(path);
}

TEST_CASE_METHOD(Fixture, "a sample file for the schema test") {
  peer_refusal = "causal only";
  const auto items = bench_items(options, problem, kDevice);
  std::vector<Row> rows;
  for (const Item& item : items) rows.push_back(empty_row(item, utc_now()));
  options.inputs = {Distribution::rising, 2};
  rows.push_back(empty_row(bench_items(options, problem, kDevice).front(), utc_now()));
  rows.back().settle(Status::out_of_memory, "on inputs of its own");
  Verdict verdict;
  verdict.ok = verdict.repeatable = verdict.check.finite = true;
  verdict.check.rows_checked = 10;
  verdict.check.rows_total = 768;
  verdict.check.max_error = 1.0 / 3;
  CHECK_FALSE(check_of(verdict).lse);
  verdict.lse = {.ok = true, .reason = {}, .max_error = 0.001, .tolerance = 0.01, .ratio = 0.1};
  rows[0].check = check_of(verdict);
  rows[0].key.problem.lse = true;
  CHECK(to_json(rows[0])["check"]["lse"]["ratio"] == 0.1);
  rows[0].resources = resources_of({.registers = 255, .blocks_per_sm = 1}, std::nullopt);
  CHECK(to_json(rows[0])["resources"]["limited_by"].is_null());
  const KernelResources known{.sm = 90, .threads = 128, .registers = 255, .dynamic_shared = 65536};
  rows[0].resources = resources_of(known, PtxasEntry{.spill_stores = 8, .spill_loads = 4});
  CHECK(to_json(rows[0])["resources"]["limited_by"] == Json::array({"registers"}));
  rows[0].peak_bytes = 1234;
  rows[0].clock_mhz = 1500.0;
  rows[0].settle(Status::ok, "");
  put_times(rows[0], items[0],
            {.spaced = {1.25}, .back_to_back = {1.5}, .expired = 0, .recorded = true, .error = {}});
  put_resources(rows[0], item_of_several().plan, [&](const Launch&) {
    return resources_of(known, PtxasEntry{.spill_stores = 8, .spill_loads = 4});
  });
  put_part_times(rows[0], std::vector<ItemTimes>{spaced({1}), spaced({0.5}), spaced({})});
  CHECK(to_json(rows[0])["time_ms"]["recorded"] == true);
  verdict.check.finite = false;
  verdict.check.max_error = NAN;
  rows[1].check = check_of(verdict);
  rows[1].settle(Status::incorrect, "one NaN");
  put_times(rows[4], items[4], {.spaced = {1.6}, .back_to_back = {2}, .expired = 0, .error = {}});
  rows[4].settle(Status::ok, "");
  put_times(rows[5], items[5], {.spaced = {1.6}, .back_to_back = {2}, .expired = 0, .error = {}});
  rows[5].settle(Status::ok, "");
  CHECK_FALSE(to_json(rows[5])["time_ms"].contains("recorded"));

  const SourceState source{.git_sha = std::string(40, 'a'), .git_dirty = false, .warning = {}};
  const FileIdentity identity{
      .generator = generator_json(source, {"bench", "all"}),
      .device = {{"kind", "gpu"},
                 {"name", "none"},
                 {"sm", 90},
                 {"sms", 132},
                 {"memory", 1},
                 {"l2", 1},
                 {"driver", nullptr},
                 {"power_limit", nullptr}},
      .policy = {
          {"rounds", 5}, {"l2", "flush"}, {"inputs", "normal"}, {"seed", 1}, {"flops", "f"}}};
  io::write_file(FA_SAMPLE_RESULTS, document_text(results_document(identity, rows)));
  const auto read = read_results(FA_SAMPLE_RESULTS);
  REQUIRE(read);
  CHECK(read->rows.front().time_ms.value().recorded);
}

}  // namespace
}  // namespace fa
