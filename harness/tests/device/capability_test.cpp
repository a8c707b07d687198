// SPDX-License-Identifier: MIT
// Which rungs run on which card, and what a plan takes from its device: with made-up descriptions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "harness/device/make_device.h"
#include "harness/environment/ptxas.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/small_problem.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

/// `shared_kib` is what CUDA allows a block of this compute capability; the rest is made up.
DeviceDescription card(int sm, std::size_t shared_kib, int sms = 100, std::int64_t l2_mib = 40) {
  return {.name = fmt::format("Card {}.{}", sm / 10, sm % 10),
          .sm = sm,
          .sms = sms,
          .l2_bytes = l2_mib << 20,
          .shared_bytes = shared_kib << 10};
}

const std::array kCards{card(80, 163), card(86, 99),   card(89, 99),
                        card(90, 227), card(100, 227), card(120, 99)};

/// Whole tiles of every instance, several of each.
constexpr std::int64_t kSeq = 3840;

std::string refusal(const PlanResult& result) {
  const auto* unsupported = std::get_if<Unsupported>(&result);
  return unsupported ? unsupported->reason : "";
}

std::string refusal(std::string_view id, const Problem& problem, const DeviceDescription& device,
                    std::string_view tile = {}) {
  return refusal(make_plan(*find_rung(id), problem, device, tile));
}

/// A problem that the rung takes where it runs at all.
Problem problem_for(const Rung& rung, int head_dim) {
  Problem problem = square(kSeq, head_dim, 3, 2);
  set_types(rung, problem);
  problem.seq_q = std::min(kSeq, rung.most_queries());
  return problem;
}

/// Static and dynamic shared memory of a block; the report of ptxas may lack the card's code.
std::size_t shared_bytes(const Launch& launch, int sm) {
  const auto compiled = ptxas_entry(launch.entry, sm);
  return launch.dynamic_shared + (compiled ? static_cast<std::size_t>(compiled->static_shared) : 0);
}

/// The ids in "...; 08, 09 do".
std::set<std::string> named_rungs(const std::string& sentence) {
  std::set<std::string> ids;
  const std::size_t begin = sentence.find("; ");
  if (begin == std::string::npos) return ids;
  std::string list = sentence.substr(begin + 2);
  list.resize(std::min(list.rfind(" do"), list.rfind(" take")));
  for (std::size_t at = 0; at < list.size(); at += 2) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    ids.insert(list.substr(at, end - at));
    at = end;
  }
  return ids;
}

/// The rungs of the ladder that have a plan for this problem on this card.
std::set<std::string> rungs_that_take(const Problem& problem, const DeviceDescription& device) {
  std::set<std::string> ids;
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::own && refusal(make_plan(rung, problem, device)).empty())
      ids.emplace(rung.id);
  }
  return ids;
}

// --- a rung of made-up instances -----------------------------------------------------------------

const Instance kFake[] = {
    {"fake_d64", nullptr, 64, {128, 64, 4}, 100 * 1024},
    {"fake_d64_exact", nullptr, 64, {64, 64, 4}, 99 * 1024},
    {"fake_d128", nullptr, 128, {128, 64, 4}, 99 * 1024 + 1},
    {"fake_d128_large", nullptr, 128, {128, 128, 4}, 200 * 1024},
};

PlanResult fake_plan(const Problem&, const Instance& instance, const DeviceDescription& device) {
  Launch launch;
  launch.entry = instance.entry;
  launch.grid = {device.sms};
  launch.block = 128;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {device.l2_bytes};
  return LaunchPlan{{launch}};
}

Rung fake_rung() {
  return {.id = "f",
          .name = "f_fake",
          .parent = "",
          .family = Family::own,
          .target = Target::sm_80,
          .dtype = Dtype::f16,
          .capabilities = Capabilities::none,
          .idea = "",
          .instances = kFake,
          .plan = fake_plan};
}

// --- persistent rungs ----------------------------------------------------------------------------

bool descends_from(const Rung& rung, std::string_view ancestor) {
  for (const Rung* each = &rung; each; each = find_rung(each->parent)) {
    if (each->id == ancestor) return true;
  }
  return false;
}

/// The rungs whose grid is no larger than the card.
std::vector<const Rung*> persistent_rungs() {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : catalogue()) {
    if (descends_from(rung, "26")) rungs.push_back(&rung);
  }
  return rungs;
}

DeviceDescription hopper_with(int sms, std::int64_t l2_mib = 50) {
  return card(90, 227, sms, l2_mib);
}

/// The integers among the arguments of all launches.
std::vector<std::int64_t> integers(const LaunchPlan& plan) {
  std::vector<std::int64_t> found;
  for (const Launch& launch : plan.launches) {
    for (const Argument& argument : launch.arguments) {
      if (const auto* value = std::get_if<std::int32_t>(&argument)) found.push_back(*value);
      if (const auto* value = std::get_if<std::int64_t>(&argument)) found.push_back(*value);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("code for sm_80 runs on 8.0 and newer, code for sm_90a and sm_100a on one capability") {
  for (const DeviceDescription& device : kCards) {
    for (const Rung& rung : catalogue()) {
      CAPTURE(device.name, rung.name);
      const bool runs =
          rung.target == Target::sm_80 || device.sm == (rung.target == Target::sm_90a ? 90 : 100);
      CHECK(device_refusal(rung, device).has_value() != runs);
      for (const int head_dim : rung.head_dims()) {
        // What refuses here is the architecture, or of some cards the shared memory.
        const Instance* own = rung.find_instance(head_dim, rung.dtype);
        const std::string why = refusal(make_plan(rung, problem_for(rung, head_dim), device));
        CHECK(why.empty() == (runs && own->shared_bytes <= device.shared_bytes));
        CHECK(why == device_refusal(rung, device, own).value_or(""));
      }
    }
  }
  CHECK(refusal("20", square(256, 128), card(120, 99)) ==
        "20_tma runs on compute capability 9.0 alone, because its code is for sm_90a; "
        "Card 12.0 has 12.0");
  CHECK(refusal("80", square(256, 128), card(90, 227)) ==
        "80_tensor_memory runs on compute capability 10.0 alone, because its code is for sm_100a; "
        "Card 9.0 has 9.0");
  CHECK(refusal("20", square(256, 128), card(86, 99)).ends_with("; Card 8.6 has 8.6"));
  CHECK(refusal("06", square(256, 128), card(75, 64)) ==
        "06_batched needs compute capability 8.0 or newer; Card 7.5 has 7.5");
}

TEST_CASE("what has a plan fits the card's shared memory, static memory counted, and no other") {
  for (const DeviceDescription& device : kCards) {
    for (const Rung& rung : catalogue()) {
      if (device_refusal(rung, device)) continue;
      for (const auto kernels : {rung.instances, rung.tuned}) {
        for (const Instance& instance : kernels) {
          CAPTURE(device.name, instance.entry);
          const Problem problem = problem_for(rung, instance.head_dim);
          const std::string tile = to_string(instance.tile);
          const PlanResult result = make_plan(rung, problem, device, tile);
          const auto* plan = std::get_if<LaunchPlan>(&result);
          if (!plan) CHECK(instance.shared_bytes > device.shared_bytes);
          if (!plan) continue;
          for (const Launch& launch : plan->launches)
            CHECK(shared_bytes(launch, device.sm) <= device.shared_bytes);
        }
      }
    }
  }
}

TEST_CASE("an instance that does not fit says so, and names a tile of the rung that does") {
  const Rung rung = fake_rung();
  const DeviceDescription small = card(86, 99);
  const auto why = [&](int head_dim, std::string_view tile = {}) {
    return refusal(make_plan(rung, square(256, head_dim), small, tile));
  };
  CHECK(why(64) ==
        "f_fake: tile 128x64w4 needs 102400 bytes of shared memory a block, Card 8.6 allows "
        "101376; --tile 64x64w4 fits");
  CHECK(why(64, "64x64w4").empty());
  CHECK(why(128) ==
        "f_fake: tile 128x64w4 needs 101377 bytes of shared memory a block, Card 8.6 allows "
        "101376");
  CHECK(why(128, "128x128w4").find("204800 bytes") != std::string::npos);
  const Instance& large = kFake[3];
  CHECK(device_refusal(rung, card(80, 163), &large));
  CHECK_FALSE(device_refusal(rung, card(90, 227), &large));
  CHECK_FALSE(device_refusal(rung, small));
}

TEST_CASE("a rung that lacks something says what, and names those that have it and run here") {
  Problem causal = square(kSeq, 128);
  causal.causal = true;
  Problem lse = square(kSeq, 128);
  lse.lse = true;
  Problem both = causal;
  both.lse = true;
  for (const DeviceDescription& device : kCards) {
    CAPTURE(device.name);
    for (const auto& [problem, what] : {std::pair{causal, "computes no causal mask"},
                                        {lse, "writes no log-sum-exp"},
                                        {both, "computes no causal mask, writes no log-sum-exp"}}) {
      const std::string why = refusal("06", problem, device);
      CHECK(why.starts_with(fmt::format("06_batched {}; 0", what)));
      CHECK(why.ends_with(named_rungs(why).size() == 1 ? " does" : " do"));
      CHECK(named_rungs(why) == rungs_that_take(problem, device));
    }
  }
  CHECK(named_rungs(refusal("06", causal, card(86, 99))).count("30") == 0);
  CHECK(named_rungs(refusal("06", causal, card(90, 227))).count("30") == 1);
  CHECK(refusal("08", both, card(86, 99)).starts_with("08_causal writes no log-sum-exp; 09"));

  Problem single = square(kSeq, 64);
  single.dtype = Dtype::f32;
  single.lse = true;
  CHECK(refusal("a0", single, card(90, 227)) == "a0_standard writes no log-sum-exp");
}

TEST_CASE("a rung of whole tiles names those that take any length") {
  const Problem odd = square(500, 128);
  for (const DeviceDescription& device : kCards) {
    CAPTURE(device.name);
    const std::string why = refusal("06", odd, device);
    CHECK(why.starts_with("06_batched: seq_q 500 is not a multiple of the tile's 128; 09"));
    CHECK(why.ends_with(named_rungs(why).size() == 1 ? " takes any length" : " take any length"));
    CHECK(named_rungs(why) == rungs_that_take(odd, device));
  }
  Problem single = square(500, 64);
  single.dtype = Dtype::f32;
  CHECK(refusal("a3", single, card(80, 163)) ==
        "a3_q_outer: seq_q 500 is not a multiple of the tile's 32");
}

TEST_CASE("a plan is made for the device it is given") {
  const DeviceDescription device = card(90, 227, 17, 3);
  const PlanResult result = make_plan(fake_rung(), square(256, 64), device);
  const auto& launch = std::get<LaunchPlan>(result).launches.front();
  CHECK(launch.grid == Dim3{17});
  CHECK(std::get<std::int64_t>(launch.arguments.front()) == 3 << 20);
}

TEST_CASE("a device is described as it will be made") {
  const DeviceDescription described = describe_device("vm");
  const auto device = make_device("vm");
  CHECK(described.name == device->name());
  CHECK(described.sm == device->sm());
  CHECK(described.sms == device->description().sms);
  CHECK(described.l2_bytes == device->description().l2_bytes);
  CHECK(described.shared_bytes == device->description().shared_bytes);
  CHECK_THROWS_AS(describe_device("tpu"), std::invalid_argument);
}

TEST_CASE("a persistent grid is as large as the card, whatever card it is") {
  REQUIRE(persistent_rungs().size() > 5);
  for (const Rung* rung : persistent_rungs()) {
    for (const bool masked : {false, true}) {
      if (masked && !has(rung->capabilities, Capabilities::causal)) continue;
      for (const int sms : {1, 7, 78, 132, 264}) {
        CAPTURE(rung->name, masked, sms);
        Problem problem = square(kSeq, 128, 16, 4);  // some 2000 tiles
        problem.causal = masked;
        const auto plan = std::get<LaunchPlan>(make_plan(*rung, problem, hopper_with(sms)));
        for (const Launch& launch : plan.launches) {
          const std::int64_t blocks = launch.grid.x * launch.grid.y * launch.grid.z;
          CHECK(blocks % launch.cluster.x == 0);
          CHECK(blocks <= std::max<std::int64_t>(sms, launch.cluster.x));
          CHECK(blocks > sms / 2);
        }
      }
    }
  }
}

// gpu_test launches each instance at this problem.
TEST_CASE("every instance takes a small problem on a card that runs it") {
  for (const Rung& rung : catalogue()) {
    const DeviceDescription device = card(rung.target == Target::sm_100a ? 100 : 90, 227);
    for (const auto kernels : {rung.instances, rung.tuned}) {
      for (const Instance& instance : kernels) {
        CAPTURE(instance.entry);
        const Problem problem = test::small_problem(rung, instance);
        CHECK(std::holds_alternative<LaunchPlan>(make_plan(rung, instance, problem, device)));
      }
    }
  }
}

TEST_CASE("a grid that no card takes is refused, with its extents") {
  Problem problem{.batch = 4096, .heads = 16, .seq_q = 128, .seq_kv = 128, .head_dim = 128};
  problem.backward = true;
  const auto reason = [&](const char* id) {
    const PlanResult plan = make_plan(*find_rung(id), problem, hopper_with(132));
    const auto* refused = std::get_if<Unsupported>(&plan);
    return refused ? refused->reason : "";
  };
  CHECK(reason("65") == "");
  CHECK(reason("66").find("its grid of 1 x 1 x 65536 thread blocks is above") != std::string::npos);
  problem.batch = 512;
  problem.seq_q = problem.seq_kv = 16384;
  CHECK(reason("70") == "");
  CHECK(reason("73").find("x 65536 x") != std::string::npos);
}

TEST_CASE("heads whose tiles are handed out at the same time are as many as the L2 can hold") {
  Problem problem = square(8192, 128, 16, 4);
  problem.causal = true;
  const auto with = [&](std::int64_t l2_mib) {
    return integers(
        std::get<LaunchPlan>(make_plan(*find_rung("32"), problem, hopper_with(132, l2_mib))));
  };
  CHECK(with(8) != with(60));
  CHECK(with(1024) == with(2048));  // both hold all heads
}

TEST_CASE("heads of a gradient whose key blocks alternate, and waves of a block for each SM") {
  const auto main_launch = [](std::string_view id, Problem problem, int sms = 132) {
    problem.backward = true;
    const PlanResult result = make_plan(*find_rung(id), problem, hopper_with(sms, 50));
    return std::get<LaunchPlan>(result).launches[1];
  };
  const auto heads = [&](std::string_view id, std::int64_t seq, bool causal) {
    Problem problem = square(seq, 128, 16);
    problem.causal = causal;
    return main_launch(id, problem).grid.x;
  };
  // Four heads of 4096 rows fill 16 MiB of an L2 of 50, of 16384 rows 64.
  for (const std::string_view id : {"70", "71", "72"}) {
    CAPTURE(id);
    CHECK(heads(id, 4096, false) == 4);
    CHECK(heads(id, 16384, false) == 2);
    CHECK(heads(id, 16384, true) == 4);
  }
  CHECK(heads("73", 16384, false) == 1);
  Problem shared = square(8192, 128, 64);
  shared.own_kv_heads = 8;
  const auto wave = [&](std::string_view id, int sms) {
    return std::get<std::int32_t>(main_launch(id, shared, sms).arguments[26]);
  };
  for (const std::string_view id : {"72", "73"}) {
    CAPTURE(id);
    shared.causal = false;
    CHECK(wave(id, 132) == 0);
    shared.causal = true;
    CHECK(main_launch(id, shared).grid.x == 8);
    CHECK(wave(id, 132) == 132);
    CHECK(wave(id, 114) == 114);
    shared.window_left = 100;
    CHECK(wave(id, 132) == 0);
    shared.window_left = -1;
  }
}
