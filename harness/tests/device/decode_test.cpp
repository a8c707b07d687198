// SPDX-License-Identifier: MIT
// Rungs for new queries against a cache: right at every kind of cache, and each byte of it read
// once.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness/tests/catch.h"
#include "harness/tests/device/replay.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

std::vector<const Rung*> decode_rungs() {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : catalogue()) {
    if (rung.family == Family::decode) rungs.push_back(&rung);
  }
  return rungs;
}

Problem cache(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t keys,
              int head_dim) {
  return {.batch = batch,
          .heads = heads,
          .seq_q = 1,
          .seq_kv = keys,
          .head_dim = head_dim,
          .lse = true,
          .own_kv_heads = kv_heads};
}

DeviceDescription card_of(int sms) {
  DeviceDescription card = h200_description();
  card.sms = sms;
  return card;
}

/// Bytes that the cp.async of a plan read.
std::uint64_t copied(const Rung& rung, const Problem& problem) {
  return count(rung.id, problem).global_copy.bytes;
}

}  // namespace

TEST_CASE("every rung is right on cards of any size, in every order of warps") {
  for (const Rung* rung : decode_rungs()) {
    for (const int dim : rung->head_dims()) {
      Problem problem = cache(3, 8, 2, 500, dim);
      problem.lengths = {500, 0, 129};
      problem.seq_q = std::min<std::int64_t>(4, rung->most_queries());
      problem.causal = has(rung->capabilities, Capabilities::causal);
      set_types(*rung, problem);
      const Inputs inputs = make_inputs(problem, Distribution::needle, 3);
      const Verifier verifier(problem, inputs);
      for (const int sms : {1, 5, 132}) {
        CAPTURE(rung->name, dim, sms);
        const auto plan = std::get<LaunchPlan>(make_plan(*rung, problem, card_of(sms)));
        VmDevice device({.threads = 1, .ptx = kernels()});
        device.load(problem, inputs);
        const Verdict verdict = pass_gate(
            device, [&] { device.launch(plan); }, verifier, promised(plan));
        CHECK(verdict.reason == "");
      }
    }
  }
}

TEST_CASE("a plan is right for lengths other than those it was made for") {
  for (const Rung* rung : decode_rungs()) {
    VmDevice device({.ptx = kernels(), .max_warp_steps = 100'000});
    fa::test::check_replays(device, *rung);
  }
}

TEST_CASE("an entry without a key has zeros and a log-sum-exp of -infinity") {
  for (const Rung* rung : decode_rungs()) {
    Problem problem = cache(2, 4, 2, 70, 64);
    problem.lengths = {0, 70};
    set_types(*rung, problem);
    VmDevice device({.ptx = kernels()});
    device.load(problem, make_inputs(problem, Distribution::normal, 1));
    device.poison_output();
    device.launch(plan_of(*rung, problem));
    const HostTensor o = device.download_output(), lse = device.download_lse();
    CAPTURE(rung->name);
    for (std::int64_t i = 0; i < 4 * 64; ++i) REQUIRE(o.at(i) == 0);
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(lse.at(i) == -std::numeric_limits<float>::infinity());
      CHECK(std::isfinite(lse.at(4 + i)));
    }
  }
}

TEST_CASE("a query that sees no key has zeros and a log-sum-exp of -infinity") {
  for (const Rung* rung : decode_rungs()) {
    if (rung->most_queries() == 1) continue;
    Problem problem = cache(2, 2, 1, 70, 64);
    problem.lengths = {2, 70};
    problem.seq_q = 5;
    problem.causal = true;
    VmDevice device({.ptx = kernels()});
    device.load(problem, make_inputs(problem, Distribution::normal, 1));
    device.poison_output();
    device.launch(plan_of(*rung, problem));
    const HostTensor o = device.download_output(), lse = device.download_lse();
    for (std::int64_t row = 0; row < problem.q_rows(); ++row) {
      // The last of five queries sees both keys, the one before only the first.
      const bool sees = row >= 10 || row % 5 >= 3;
      CAPTURE(rung->name, row);
      CHECK(std::isfinite(lse.at(row)) == sees);
      CHECK((o.at(row * 64) != 0) == sees);
    }
  }
}

TEST_CASE("several queries read the bytes of one") {
  for (const Rung* rung : decode_rungs()) {
    Problem problem = cache(2, 8, 2, 400, 128);
    set_types(*rung, problem);
    const std::uint64_t once = copied(*rung, problem);
    for (const std::int64_t queries : {2, 4, 16}) {
      if (queries > rung->most_queries()) continue;
      problem.seq_q = queries;
      problem.causal = true;
      CAPTURE(rung->name, queries);
      if (rung->id == "48" && queries == 16) continue;  // more rows than it takes
      CHECK(copied(*rung, problem) == once);
    }
  }
}

TEST_CASE("52 has the bits of 45") {
  Problem problem = cache(3, 8, 2, 500, 128);
  problem.lengths = {500, 0, 129};
  const Inputs inputs = make_inputs(problem, Distribution::normal, 1);
  const auto output = [&](std::string_view id) {
    VmDevice device({.ptx = kernels()});
    device.load(problem, inputs);
    device.launch(std::get<LaunchPlan>(make_plan(*find_rung(id), problem, card_of(5))));
    return device.download_output();
  };
  CHECK(bitwise_equal(output("45"), output("52"), nullptr));
}

TEST_CASE("53 has no more splits of a short cache than a merge reads at a time") {
  const auto splits = [](std::int64_t batch, std::int64_t kv_heads, std::int64_t keys) {
    const Problem problem = cache(batch, 32, kv_heads, keys, 128);
    const auto plan =
        std::get<LaunchPlan>(make_plan(*find_rung("53"), problem, h200_description()));
    return plan.launches.front().grid.x;
  };
  CHECK(splits(1, 8, 1024) == 8);     // a tile each
  CHECK(splits(1, 8, 131072) == 16);  // 128 thread blocks
  CHECK(splits(1, 4, 5000) == 16);    // 64
  CHECK(splits(1, 4, 131072) == 32);  // 128
  CHECK(splits(16, 8, 8192) == 1);
  CHECK(splits(10, 8, 5000) == 3);  // 80 heads: 240 thread blocks on 132 SMs, not 80
}

TEST_CASE("53 has two thread blocks on an SM for more heads than SMs") {
  const auto first = [](Problem problem) {
    return std::get<LaunchPlan>(make_plan(*find_rung("53"), problem, h200_description()))
        .launches.front();
  };
  const Launch few = first(cache(16, 32, 8, 512, 128)), many = first(cache(32, 32, 8, 512, 128));
  CHECK(std::string_view(few.entry) == "fa_53_ahead_d128");
  CHECK(std::string_view(many.entry) == "fa_53_ahead_many_d128");
  CHECK(many.block == few.block / 2);
  CHECK(many.grid == Dim3{1, 8, 32});
  CHECK(few.early);
  CHECK(many.early);
  CHECK_FALSE(first(cache(17, 32, 8, 512, 128)).early);  // 136 thread blocks, room for 264
  Problem random = cache(64, 32, 8, 4096, 128);
  random.lengths.assign(64, 100);
  CHECK(first(random).grid.x == 4);
}

TEST_CASE("49 has one thread block an SM for 64 rows") {
  for (const int dim : {64, 128}) {
    const auto blocks = [&](std::string_view id, std::int64_t batch) {
      const Problem problem = cache(batch, 32, 8, 8192, dim);
      return std::get<LaunchPlan>(make_plan(*find_rung(id), problem, h200_description()))
          .launches.front()
          .grid.x;
    };
    CAPTURE(dim);
    CHECK(blocks("49", 1) == 128);   // 16 parts a head
    CHECK(blocks("49", 16) == 128);  // whole heads
    CHECK(blocks("48", 1) > 2 * 128);
    CHECK(blocks("48", 16) >= 2 * 128);
  }
}

TEST_CASE("in 46, 52 and 53 a head in one part is stored once") {
  const Problem problem = cache(2, 8, 2, 60, 128);  // a tile, which is not split
  const std::uint64_t result = std::uint64_t{2} * 8 * (128 * 2 + 4);
  const std::uint64_t parts = std::uint64_t{2} * 8 * (128 + 1) * 4;
  CHECK(count("45", problem).global_store.bytes == result + parts);
  for (const std::string_view id : {"46", "52", "53"}) {
    CAPTURE(id);
    CHECK(count(id, problem).global_store.bytes == result);
  }
}

TEST_CASE("the memory for parts of 46 follows from the grid") {
  const auto plan = [](std::string_view id, std::int64_t batch) {
    return std::get<LaunchPlan>(
        make_plan(*find_rung(id), cache(batch, 32, 8, 8192, 128), h200_description()));
  };
  const LaunchPlan some = plan("46", 33), many = plan("46", 64);  // 264 and 512 heads
  CHECK(some.launches.front().grid == Dim3{264});
  CHECK(many.launches.front().grid == Dim3{264});
  CHECK(some.scratch.front().bytes == many.scratch.front().bytes);
  CHECK(plan("45", 64).launches.front().grid == Dim3{1, 8, 64});
}

TEST_CASE("40 reads K and V once for each query head, those from 41 on once for a group") {
  for (const int dim : {64, 128}) {
    for (const std::int64_t kv_heads : {8, 2, 1}) {
      Problem problem = cache(3, 8, kv_heads, 400, dim);
      problem.lengths = {400, 37, 0};
      for (const Rung* rung : decode_rungs()) {
        if (rung->id == "40") continue;
        CAPTURE(rung->name, dim, kv_heads);
        set_types(*rung, problem);
        CHECK(copied(*rung, problem) == static_cast<std::uint64_t>(problem.kv_bytes()));
      }
      set_types(*find_rung("40"), problem);
      // 40 loads whole passes of 16 keys, and the last of its keys once more instead of others.
      problem.lengths = {400, 48, 0};
      const auto group = static_cast<std::uint64_t>(problem.group());
      const std::uint64_t q_and_lengths = std::uint64_t{3} * 8 * 32 * (16 + 4);
      CHECK(count("40", problem).global_load.bytes ==
            group * static_cast<std::uint64_t>(problem.kv_bytes()) + q_and_lengths);
      CHECK(copied(*find_rung("40"), problem) == 0);
    }
  }
}

TEST_CASE("splits fill the card's SMs and are never more than there are tiles") {
  const auto blocks = [](std::string_view id, const Problem& problem, int sms) {
    const auto plan = std::get<LaunchPlan>(make_plan(*find_rung(id), problem, card_of(sms)));
    const Dim3 grid = plan.launches.front().grid;
    return grid.x * grid.y * grid.z;
  };
  for (const std::string_view id : {"42", "43", "44", "45", "52"}) {
    CAPTURE(id);
    for (const int sms : {60, 132}) {
      const std::int64_t one = blocks(id, cache(1, 32, 8, 131072, 128), sms);
      CHECK(one > sms);
      CHECK(one <= 4 * sms);
      CHECK(one % 8 == 0);
    }
    CHECK(blocks(id, cache(1, 32, 8, 16, 128), 132) == 8);
    CHECK(blocks(id, cache(64, 32, 8, 8192, 128), 132) == 64 * 8);
  }
  CHECK(blocks("41", cache(1, 32, 8, 131072, 128), 132) == 8);
  CHECK(blocks("40", cache(1, 32, 8, 131072, 128), 132) == 32);
}

TEST_CASE("what a rung does not take is refused with the value and what is allowed") {
  const auto refusal = [](std::string_view id, const Problem& problem) {
    const PlanResult result = make_plan(*find_rung(id), problem, h200_description());
    const auto* refused = std::get_if<Unsupported>(&result);
    return refused ? refused->reason : "";
  };
  Problem problem = cache(1, 32, 1, 100, 128);
  CHECK(refusal("41", problem) ==
        "41_group: 32 query heads share a head of K and V, at most 16 are allowed");
  CHECK(refusal("45", problem) ==
        "45_mma: 32 query heads share a head of K and V, at most 8 are allowed");
  CHECK(refusal("40", problem) == "");
  problem = cache(1, 8, 2, 100, 128);
  CHECK(refusal("51", problem) == "51_e4m3: K and V of float16 are not its float8_e4m3");
  problem.e4m3 = true;
  CHECK(refusal("51", problem) == "");
  CHECK(refusal("50", problem) == "50_one takes no K and V of float8_e4m3; 51 does");
  problem.e4m3 = false;
  problem.page = 24;
  CHECK(refusal("50", problem) == "50_one: a page of 24 keys is no power of two");
  problem.page = 0;
  problem.seq_q = 5;
  CHECK(
      refusal("48", problem) ==
      "48_queries: 4 query heads with 5 queries each share a head of K and V, at most 16 rows are "
      "allowed");
  problem.seq_q = 16;
  CHECK(refusal("49", problem) == "");
  problem = cache(1, 8, 1, 100, 128);
  problem.seq_q = 9;
  CHECK(refusal("49", problem) ==
        "49_wgmma: 8 query heads with 9 queries each share a head of K and V, at most 64 rows are "
        "allowed");
  problem = cache(1, 4, 2, 100, 128);
  CHECK(refusal("08", problem)
            .starts_with("08_causal takes no heads of K and V that query heads share, writes no "
                         "log-sum-exp; 09, 31, 32"));
  problem.lse = false;
  CHECK(refusal("08", problem)
            .starts_with("08_causal takes no heads of K and V that query heads share; 09, 31, 32"));
  problem.seq_q = problem.seq_kv;
  problem.lengths = {100};
  CHECK(refusal("08", problem) ==
        "08_causal takes no heads of K and V that query heads share, takes no lengths that differ "
        "over the batch");
  problem.head_dim = 96;
  CHECK(refusal("08", problem) == "08_causal: head_dim 96 is not one of 64, 128");
  problem = cache(1, 4, 2, 100, 128);
  problem.seq_q = 17;
  CHECK(refusal("40", problem) ==
        "40_warp: seq_q 17 is above 1, the new queries against a cache of seq_kv keys that it "
        "takes");
  problem = cache(2, 4, 4, 100, 128);
  problem.lengths = {5, 101};
  CHECK(refusal("40", problem) == "40_warp: length 101 is not between 0 and seq_kv 100");
  problem.lengths = {5, 6};
  problem.lse = false;
  CHECK(refusal("09", problem)
            .starts_with("09_ragged takes no lengths that differ over the batch; 40"));
}
