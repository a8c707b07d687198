// SPDX-License-Identifier: MIT
// The loops of fa limits in the virtual machine: their results are right, wrong ones are refused,
// and an iteration executes exactly the work that its rate is computed from.
#include "harness/measure/limits/limits.h"

#include <cstring>
#include <fstream>

#include "harness/measure/limits/loops.h"
#include "harness/tests/catch.h"
#include "ptxvm/launch.h"
#include "ptxvm/report.h"

namespace fa::limits {
namespace {

using ptxvm::CountClass;
using ptxvm::Counts;

constexpr int kBlocks = 2;
constexpr std::int64_t kCount = 4 * kChunk;

const std::vector<std::uint32_t>& operands() {
  static const std::vector<std::uint32_t> words = make_operands();
  return words;
}

const Loop& loop_named(const std::string& id) {
  for (const Loop& loop : all_loops())
    if (loop.id == id) return loop;
  FAIL("there is no loop " << id);
  return all_loops().front();
}

struct Launched {
  std::vector<std::uint32_t> output;
  Counts counts;
};

Launched launch(const Loop& loop, int iterations) {
  const std::string file = loop.only ? "/wgmma_loops.ptx" : "/loops.ptx";
  const auto module = ptxvm::Module::load(std::string(FA_LIMITS_PTX_DIR) + file);
  ptxvm::Memory memory;
  const std::span<const std::uint32_t> input(operands());
  const auto in = memory.upload("input", std::as_bytes(input));
  const std::size_t bytes =
      loop.words == 0 ? kCount * 16 : std::size_t{4} * kBlocks * loop.threads * loop.words;
  const auto out = memory.allocate("output", bytes, ptxvm::Fill::kZero);
  ptxvm::LaunchConfig config;
  config.grid = {kBlocks, 1, 1};
  config.block = {static_cast<std::uint32_t>(loop.threads), 1, 1};
  config.dynamic_shared_bytes = static_cast<std::uint32_t>(loop.shared);
  config.arguments = {ptxvm::Argument::pointer(in), ptxvm::Argument::pointer(out),
                      ptxvm::Argument::scalar(kCount), ptxvm::Argument::scalar(iterations)};
  ptxvm::Counters counters;
  ptxvm::Options options;
  options.observers.push_back(&counters);
  const auto result = ptxvm::launch(module, loop.entry, config, memory, options);
  if (result.fault) FAIL(result.fault->format());
  Launched launched{std::vector<std::uint32_t>(bytes / 4), counters.report().total};
  std::memcpy(launched.output.data(), memory.bytes(out).data(), bytes);
  return launched;
}

std::string verified(const Loop& loop, int iterations, std::span<const std::uint32_t> output) {
  return verify(loop, {iterations, kCount, operands(), output});
}

TEST_CASE("every loop computes what its check expects") {
  for (const Loop& loop : all_loops()) {
    for (const int iterations : {1, 2, kRestart + 3}) {
      CAPTURE(loop.id, iterations);
      CHECK(verified(loop, iterations, launch(loop, iterations).output).empty());
    }
  }
}

TEST_CASE("wrong results are refused") {
  for (const Loop& loop : all_loops()) {
    CAPTURE(loop.id);
    const std::vector<std::uint32_t> right = launch(loop, 3).output;
    REQUIRE(verified(loop, 3, right).empty());

    std::vector<std::uint32_t> nothing(right.size());
    CHECK_FALSE(verified(loop, 3, nothing).empty());
    // One word of the first thread block, one of the last; the check of the FMA loop looks at the
    // first thread.
    for (const std::size_t at : {std::size_t{0}, right.size() - 1}) {
      std::vector<std::uint32_t> damaged = right;
      damaged[at] ^= 0x3f000000;
      CHECK_FALSE(verified(loop, 3, damaged).empty());
    }
    // A loop that stops early; a copy is the same after one iteration.
    if (loop.words > 0) CHECK_FALSE(verified(loop, 3, launch(loop, 2).output).empty());
  }
}

struct Work {
  const char* id;
  CountClass instruction;
  double each;       ///< FLOP, exponentials or bytes of one warp instruction
  bool is_register;  ///< no access to shared memory in an iteration
};

// A warp is a quarter of a wgmma; an FMA instruction is two FLOP in each of 32 lanes.
constexpr double kWgmma = 2.0 * 64 * 128 * 16 / 4;
constexpr Work kWork[] = {
    {"wgmma_registers", CountClass::kWgmma, kWgmma, false},
    {"wgmma_shared", CountClass::kWgmma, kWgmma, false},
    {"attention_registers", CountClass::kWgmma, kWgmma, false},
    {"attention_shared", CountClass::kWgmma, kWgmma, false},
    {"mma_sync", CountClass::kTensor, 2.0 * 16 * 8 * 16, true},
    {"fma", CountClass::kFloat, 2.0 * 32, true},
    {"ex2", CountClass::kExp, 32, true},
    {"shared_load", CountClass::kLoadShared, 16 * 32, false},
    {"ldmatrix", CountClass::kLdMatrix, 16 * 32, false},
};

TEST_CASE("an iteration executes the work that its rate is computed from") {
  constexpr int kFew = 2, kMore = 10;  // no fresh start between them
  for (const Work& work : kWork) {
    CAPTURE(work.id);
    const Loop& loop = loop_named(work.id);
    const Counts few = launch(loop, kFew).counts, more = launch(loop, kMore).counts;
    const auto executed = static_cast<double>(more.of(work.instruction) - few.of(work.instruction));
    CHECK(executed * work.each == total_work(loop, kBlocks, 0, kMore - kFew));
    if (work.is_register) {
      CHECK(more.shared_load == few.shared_load);
      CHECK(more.global_load == few.global_load);
    }
  }
}

TEST_CASE("reads of shared memory have no bank conflicts, all bytes of a buffer are moved") {
  CHECK(launch(loop_named("shared_load"), 5).counts.shared_load.conflicts() == 0);
  CHECK(launch(loop_named("ldmatrix"), 5).counts.ldmatrix.conflicts() == 0);
  for (const char* id : {"l2_read", "memory_read", "memory_copy"}) {
    CAPTURE(id);
    const Loop& loop = loop_named(id);
    const Counts counts = launch(loop, 3).counts;
    const std::uint64_t written = loop.words == 0 ? counts.global_store.bytes : 0;
    CHECK(static_cast<double>(counts.global_load.bytes + written) ==
          total_work(loop, kBlocks, kCount, 3));
    CHECK(counts.global_load.sectors * 32 == counts.global_load.bytes);
  }
}

TEST_CASE("no loop counts more bytes of shared memory than its wavefronts can carry") {
  constexpr int kFew = 2, kMore = 10;
  int bounded = 0;
  for (const Loop& loop : all_loops()) {
    if (loop.most_per_clock == 0) continue;
    CAPTURE(loop.id);
    ++bounded;
    const auto wavefronts = [&](int iterations) {
      return launch(loop, iterations).counts.shared_requests().wavefronts;
    };
    const auto made = static_cast<double>(wavefronts(kMore) - wavefronts(kFew));
    CHECK(total_work(loop, kBlocks, 0, kMore - kFew) <= made * loop.most_per_clock);
  }
  CHECK(bounded == 2);
}

TEST_CASE("a rate above what the hardware can do is refused") {
  const Loop& bounded = loop_named("shared_load");
  CHECK(impossible(bounded, 126).empty());
  CHECK(impossible(bounded, 129).empty());
  CHECK(impossible(bounded, 468) ==
        "468 bytes a clock and SM, where 128 are possible: it left work out");
  CHECK(impossible(loop_named("mma_sync"), 1e6).empty());
}

TEST_CASE("which card runs which loop") {
  CHECK(unsupported(loop_named("mma_sync"), 80).empty());
  CHECK(unsupported(loop_named("mma_sync"), 75) ==
        "needs compute capability 8.0, this card has 7.5");
  CHECK(unsupported(loop_named("wgmma_shared"), 90).empty());
  for (const int sm : {80, 89, 100, 120})
    CHECK(unsupported(loop_named("wgmma_shared"), sm).find("9.0 alone") != std::string::npos);
}

TEST_CASE("iterations follow from a first launch") {
  CHECK(iterations_for(10, 0.5, 64) == 1280);
  CHECK(iterations_for(10, 400, 1) == 1);
  CHECK(iterations_for(10, 0, 1) == kMostIterations);
}

// --- rows ---

/// Three samples and two trains of launches that take so long.
ItemTimes times_of_launches(double spaced, double sustained) {
  ItemTimes times;
  times.spaced = {spaced, 2 * spaced, spaced / 2};
  times.back_to_back = {sustained, sustained};
  return times;
}

TEST_CASE("a row has the rates of its times") {
  const Loop& loop = loop_named("memory_read");
  LimitRow row = empty_row(loop, 4, kCount);
  CHECK(row.buffer_bytes == kCount * 16);
  const ClockReading clock{.clock_mhz = 1000.4, .power_w = 333.33, .samples = 2};
  put_times(row, loop, 1000, kCount, times_of_launches(10, 8), clock, 2);
  CHECK(row.status == Status::ok);
  const double bytes = static_cast<double>(kCount) * 16 * 1000;
  CHECK(row.work == bytes);
  CHECK(row.rate == bytes / 0.010 / 1e9);
  CHECK(row.rate_back_to_back == bytes / 0.008 / 1e9);
  CHECK(row.per_clock_sm.value() == Approx(bytes / 0.008 / 1000.4e6 / 2));
  CHECK(row.clock_mhz == 1000);
  CHECK(row.power_w == 333.3);
  CHECK(row.time_ms->n == 3);
}

TEST_CASE("times that cannot be those of the work are refused") {
  const auto refused = [](const Loop& loop, const ItemTimes& times, const std::string& why) {
    LimitRow row = empty_row(loop, 4, kCount);
    put_times(row, loop, 1 << 20, kCount, times, {.clock_mhz = 1.0, .power_w = {}}, 1);
    CHECK(row.status == Status::error);
    CHECK(row.reason.find(why) != std::string::npos);
    CHECK_FALSE(row.time_ms);
    CHECK(to_json(row)["rate"].is_null());
  };
  const Loop& loop = loop_named("shared_load");
  refused(loop, times_of_launches(1, 1), "its time does not grow");
  refused(loop, times_of_launches(10, 10), "it left work out");
  ItemTimes failed;
  failed.error = "no luck";
  refused(loop, failed, "no luck");
}

TEST_CASE("the document has what the committed one has, and says how many rounds were complete") {
  std::ifstream file(FA_LIMITS_JSON);
  const Json committed = Json::parse(file);
  Limits limits;
  limits.identity = {committed["generator"], committed["device"], committed["policy"]};
  for (const Loop& loop : all_loops()) {
    LimitRow row = empty_row(loop, loop.blocks, kCount);
    put_times(row, loop, 1, kCount, times_of_launches(10, 10), {}, 1);
    limits.rows.push_back(std::move(row));
  }
  limits.rounds = 2;
  const Json written = limits_document(limits);
  CHECK(written["policy"]["rounds"] == 2);
  const auto keys = [](const Json& object) {
    std::vector<std::string> names;
    for (const auto& each : object.items()) names.push_back(each.key());
    return names;
  };
  CHECK(keys(written) == keys(committed));
  limits.interrupted = true;
  CHECK(limits_document(limits)["interrupted"] == true);
  CHECK(keys(written["policy"]) == keys(committed["policy"]));
  REQUIRE(written["rows"].size() == committed["rows"].size());
  for (std::size_t i = 0; i < written["rows"].size(); ++i) {
    const Json &row = written["rows"][i], &there = committed["rows"][i];
    CHECK(keys(row) == keys(there));
    CHECK(row["entry"] == there["entry"]);
    CHECK(row["shared_bytes"] == there["shared_bytes"]);
    CHECK(keys(row["time_ms"]) == keys(there["time_ms"]));
  }
}

}  // namespace
}  // namespace fa::limits
