// SPDX-License-Identifier: MIT
// What the chapters from 44b to 45 say, counted on the machine.
#include <map>

#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;
using ptxvm::CountClass;

namespace {

/// Counts of a tile of 64 keys: of five tiles for each thread block less those of two.
struct TileCounts {
  std::uint64_t loads, conflicts, exponentials, shuffles, tensor, instructions;
};

TileCounts tile_of(const std::string& id, int group, int head_dim) {
  DeviceDescription card = h200_description();
  card.sms = 1;
  const auto counts_of = [&](std::int64_t tiles) {
    Problem problem{.batch = 1, .heads = group, .seq_q = 1, .head_dim = head_dim};
    problem.own_kv_heads = 1;
    problem.seq_kv = 12 * 64 * tiles;
    VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
    device.load(problem, make_inputs(problem, {Distribution::normal, InputKind::kLeastSpread}, 1));
    device.launch(std::get<LaunchPlan>(make_plan(*find_rung(id), problem, card)));
    return device.counts().front().report.total;
  };
  const ptxvm::Counts few = counts_of(2), many = counts_of(5);
  const auto each = [&](auto value) { return (value(many) - value(few)) / (12 * 3); };
  const auto of = [&](CountClass c) { return each([c](const auto& n) { return n.of(c); }); };
  return {each([](const auto& n) { return n.shared_load.wavefronts + n.ldmatrix.wavefronts; }),
          each([](const auto& n) { return n.shared_load.conflicts() + n.ldmatrix.conflicts(); }),
          of(CountClass::kExp),
          of(CountClass::kShuffle),
          of(CountClass::kTensor),
          each([](const auto& n) { return n.total_instructions(); })};
}

}  // namespace

TEST_CASE("from 44d on a group loads K and V once, and 44f's conflicts end with 44g") {
  for (const int head_dim : {128, 64}) {
    const auto loads = [&](const std::string& id, int group) {
      return tile_of(id, group, head_dim).loads;
    };
    const auto once = static_cast<std::uint64_t>(2 * 64 * head_dim * 2 / 128);  // 128 bytes each
    for (const int group : {1, 4, 8}) {
      CAPTURE(head_dim, group);
      CHECK(loads("44b", group) == group * once);
      CHECK(loads("44c", group) == group * once);
      CHECK(loads("44d", group) == once);
      CHECK(loads("44e", group) == once);
      CHECK(loads("44f", group) == once / 2 + 8 * (once / 2));
      for (const char* id : {"44g", "44h", "44i", "44j", "45"}) CHECK(loads(id, group) == once);
    }
    for (const char* id : {"44e", "44g", "44j", "45"}) {
      CHECK(tile_of(id, 4, head_dim).conflicts == 0);
    }
  }
}

TEST_CASE("exponentials, shuffles and mma of a tile, as the chapters from 44d to 45 say") {
  for (const int group : {4, 8}) {
    std::map<std::string, TileCounts> at;
    for (const char* id : {"44", "44c", "44d", "44e", "44f", "44g", "44h", "44i", "44j", "45"})
      at[id] = tile_of(id, group, 128);
    CAPTURE(group);
    const auto heads = static_cast<std::uint64_t>(group);
    // A warp has 16 keys: 8 loads of two rows.
    CHECK(at["44g"].exponentials == 4 * 9 * heads);
    CHECK(at["44h"].exponentials == 4 * (4 + 2));
    CHECK(at["44i"].exponentials == 4 * 4);
    CHECK(at["44e"].shuffles == 4 * heads * (8 * 4 + 5));
    CHECK(at["44f"].shuffles == 4 * heads * (8 + 5));
    CHECK(at["44h"].shuffles == 4 * (heads * 8 + 6 + 8));
    CHECK(at["44i"].shuffles == 4 * heads * 8);
    CHECK(at["44j"].shuffles == 4 * heads * 4);
    CHECK(at["45"].shuffles == 0);
    CHECK(at["44f"].tensor == 4 * 8);
    CHECK(at["45"].tensor == 4 * 16);
    CHECK(at["44d"].instructions < at["44c"].instructions);
    CHECK(at["44f"].instructions < at["44e"].instructions);
    CHECK(at["44h"].instructions < at["44g"].instructions);
    CHECK(at["44i"].instructions < at["44h"].instructions);
    CHECK(at["45"].instructions < at["44j"].instructions);
  }
}

TEST_CASE("parts of a head on a card of 132 SMs") {
  const Problem problem{
      .batch = 1, .heads = 32, .seq_q = 1, .seq_kv = 8192, .head_dim = 128, .own_kv_heads = 8};
  const auto parts = [&](std::string_view id) {
    const LaunchPlan plan = plan_of(*find_rung(id), problem);
    return plan.scratch.front().bytes / (32 * (128 + 1) * 4);
  };
  CHECK(parts("44") == 49);
  CHECK(parts("44b") == 49);
  CHECK(parts("44c") == 4 * 33);
  CHECK(parts("44d") == 4 * 33);
  CHECK(parts("44e") == 33);
  CHECK(parts("45") == 33);
}
