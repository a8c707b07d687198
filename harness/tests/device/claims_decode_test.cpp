// SPDX-License-Identifier: MIT
// What the chapters from 43 to 45, of 49 and of 51 say, counted on the machine.
#include <string_view>

#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;
using ptxvm::CountClass;

namespace {

/// Counts of a tile of 64 keys: of five tiles for each thread block less those of two.
struct TileCounts {
  std::uint64_t loads, conflicts, exponentials, shuffles, tensor, instructions, movmatrix, wgmma,
      wgmma_wavefronts;
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
          each([](const auto& n) { return n.total_instructions(); }),
          of(CountClass::kMovMatrix),
          of(CountClass::kWgmma),
          each([](const auto& n) { return n.wgmma_wavefronts(); })};
}

/// Of a key: shared wavefronts by what causes them, mma and instructions, of 3 * 2048 further keys.
struct KeyCounts {
  double copies, loads, stores, matrices, conflicts, tensor, instructions;
  [[nodiscard]] double wavefronts() const { return copies + loads + stores + matrices; }
};

KeyCounts key_of(const std::string& id, int head_dim) {
  const Rung& rung = *find_rung(id);
  DeviceDescription card = h200_description();
  card.sms = 1;
  const auto counts_of = [&](std::int64_t keys) {
    Problem problem{.batch = 1, .heads = 4, .seq_q = 1, .seq_kv = keys, .head_dim = head_dim};
    problem.own_kv_heads = 1;
    set_types(rung, problem);
    VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
    device.load(problem, make_inputs(problem, {Distribution::normal, InputKind::kLeastSpread}, 1));
    device.launch(std::get<LaunchPlan>(make_plan(rung, problem, card)));
    return device.counts().front().report.total;
  };
  constexpr std::int64_t kKeys = 2048;
  const ptxvm::Counts few = counts_of(2 * kKeys), many = counts_of(5 * kKeys);
  const auto each = [&](auto value) {
    return static_cast<double>(value(many) - value(few)) / (3 * kKeys);
  };
  return {each([](const auto& n) { return n.shared_copy.wavefronts; }),
          each([](const auto& n) { return n.shared_load.wavefronts; }),
          each([](const auto& n) { return n.shared_store.wavefronts; }),
          each([](const auto& n) { return n.ldmatrix.wavefronts; }),
          each([](const auto& n) {
            return n.shared_load.conflicts() + n.shared_store.conflicts() + n.ldmatrix.conflicts();
          }),
          each([](const auto& n) { return n.of(CountClass::kTensor); }),
          each([](const auto& n) { return n.total_instructions(); })};
}

}  // namespace

TEST_CASE("wavefronts of a key in 50 and 51: its bytes, copied once and read once") {
  for (const int head_dim : {128, 64}) {
    CAPTURE(head_dim);
    const double bytes = 2 * head_dim / 128.0;  // of K and V in e4m3
    const KeyCounts k50 = key_of("50", head_dim), k51 = key_of("51", head_dim);
    CHECK(k50.copies == 2 * bytes);
    CHECK(k50.matrices == 2 * bytes);
    CHECK(k50.wavefronts() == 4 * bytes);
    CHECK(k51.copies == bytes);
    CHECK(k51.matrices == bytes);
    CHECK(k51.wavefronts() == 2 * bytes);
    for (const KeyCounts* each : {&k50, &k51}) {
      CHECK(each->conflicts == 0);
      CHECK(each->tensor == head_dim / 128.0);
    }
    CHECK(k50.instructions < k51.instructions);
  }
}

TEST_CASE("44 and 45 load K and V once for a group, without a bank conflict") {
  for (const int head_dim : {128, 64}) {
    const auto once = static_cast<std::uint64_t>(2 * 64 * head_dim * 2 / 128);  // 128 bytes each
    for (const int group : {1, 4, 8}) {
      for (const char* id : {"44", "45"}) {
        CAPTURE(head_dim, group, id);
        const TileCounts n = tile_of(id, group, head_dim);
        CHECK(n.loads == once);
        CHECK(n.conflicts == 0);
      }
    }
  }
}

TEST_CASE("exponentials, shuffles and mma of a tile, as the chapters from 43 to 45 say") {
  for (const int group : {4, 8}) {
    CAPTURE(group);
    const TileCounts k43 = tile_of("43", group, 128), k44 = tile_of("44", group, 128),
                     k45 = tile_of("45", group, 128);
    const auto heads = static_cast<std::uint64_t>(group);
    // A warp has 16 keys: 8 loads of two rows.
    CHECK(k44.exponentials == 4 * 9 * heads);
    CHECK(k45.exponentials == 4 * 4);
    CHECK(k44.shuffles == 4 * heads * (8 + 5));
    CHECK(k45.shuffles == 0);
    CHECK(k44.tensor == 4 * 8);
    CHECK(k45.tensor == 4 * 16);
    CHECK(k44.instructions < k43.instructions);
    CHECK(k45.instructions < k44.instructions);
  }
}

TEST_CASE("parts of a head on a card of 132 SMs") {
  const Problem problem{
      .batch = 1, .heads = 32, .seq_q = 1, .seq_kv = 8192, .head_dim = 128, .own_kv_heads = 8};
  const auto parts = [&](std::string_view id) {
    const LaunchPlan plan = plan_of(*find_rung(id), problem);
    return plan.scratch.front().bytes / (32 * (128 + 1) * 4);
  };
  CHECK(parts("43") == 49);
  CHECK(parts("44") == 33);
  CHECK(parts("45") == 33);
}

TEST_CASE(
    "a tile of 49, whatever the rows of Q: wgmma alone, K and V read once by each of its halves") {
  for (const int head_dim : {128, 64}) {
    const auto dim = static_cast<std::uint64_t>(head_dim);
    const TileCounts many = tile_of("49", 64, head_dim), few = tile_of("49", 4, head_dim);
    CAPTURE(head_dim);
    CHECK(many.exponentials == 64 * 64 / 32);
    CHECK(many.conflicts == 0);
    CHECK(many.loads == 0);
    CHECK(many.tensor == 0);
    CHECK(many.movmatrix == 0);
    CHECK(many.wgmma == 4 * (dim / 16 + 4));
    CHECK(many.wgmma_wavefronts == 2 * 64 * dim * 2 / 128);
    CHECK(few.instructions == many.instructions);
  }
  CHECK(tile_of("49", 64, 128).instructions == 2224);
}
