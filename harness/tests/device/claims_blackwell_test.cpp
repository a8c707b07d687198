// SPDX-License-Identifier: MIT
// What the chapters of 80 to 83 say about the kernels, as counts.
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;
using ptxvm::CountClass;
using Count = std::uint64_t;

namespace {

constexpr Count kSeq = 512, kHeads = 2, kBc = 128, kKeyBlocks = kSeq / kBc;
constexpr const char* kIds[] = {"80", "81", "82", "83"};

Count row_tiles(std::string_view id) {
  return kHeads * kSeq / static_cast<Count>(find_rung(id)->instances.front().tile.Br);
}

/// Thread blocks that multiply together and share K and V.
Count pair_of(std::string_view id, const Problem& problem) {
  return static_cast<Count>(plan_of(*find_rung(id), problem).launches.front().cluster.x);
}

/// Warps whose threads have the rows.
constexpr Count kRowWarps = kHeads * kSeq / 32;

HostTensor output_of(std::string_view id, const Problem& problem) {
  VmDevice device({.checkers = false, .ptx = kernels()});
  device.load(problem, make_inputs(problem, Distribution::rising, 1));
  device.launch(plan_of(*find_rung(id), problem));
  return device.download_output();
}

}  // namespace

TEST_CASE("every Blackwell rung has its claims") {
  for (const Rung& rung : catalogue()) {
    CHECK((std::ranges::find(kIds, rung.id) != std::end(kIds)) ==
          (rung.family == Family::blackwell));
  }
}

TEST_CASE("one thread issues the products, and no row needs a shuffle") {
  for (const char* id : kIds) {
    for (const int dim : {64, 128}) {
      INFO(id << " at head_dim " << dim);
      const Problem problem = square(kSeq, dim, kHeads);
      const ptxvm::Counts counts = count(id, problem);
      const auto D = static_cast<Count>(dim);
      const Count tiles = kHeads * kSeq / 128 / pair_of(id, problem);
      CHECK(counts.of(CountClass::kTcgen05) == tiles * kKeyBlocks * (D / 16 + kBc / 16));
      CHECK(counts.of(CountClass::kTensor) + counts.of(CountClass::kWgmma) == 0);
      // Each warp finds its number.
      const auto warps = static_cast<Count>(find_rung(id)->instances.front().tile.warps);
      CHECK(counts.of(CountClass::kShuffle) == row_tiles(id) * warps);
      CHECK(counts.global_store.bytes == kHeads * kSeq * D * 2);
      CHECK(counts.global_store.sectors * 32 == counts.global_store.bytes);
      CHECK(counts.bulk_load.bytes ==
            (kHeads * kSeq + 2 * row_tiles(id) / pair_of(id, problem) * kSeq) * D * 2);
    }
  }
}

TEST_CASE("O is loaded and stored only where a reference was raised") {
  const Problem problem = square(kSeq, 128, kHeads);
  for (const char* id : kIds) {
    INFO(id);
    // S in four loads, P in two stores, and at the end O in four loads.
    const Count lean = kRowWarps * (kKeyBlocks * (4 + 2) + 4);
    CHECK(count(id, problem).of(CountClass::kTensorMemory) == lean);
    VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
    device.load(problem, make_inputs(problem, Distribution::rising, 1));
    device.launch(plan_of(*find_rung(id), problem));
    const Count rising = device.total_counts().of(CountClass::kTensorMemory);
    CHECK(rising > lean);
    CHECK(rising <= lean + kRowWarps * (kKeyBlocks - 1) * (4 + 4));
  }
}

TEST_CASE("81 has the output of 80; it sends each alpha through shared memory") {
  const Problem problem = square(kSeq, 128, kHeads);
  CHECK(bitwise_equal(output_of("80", problem), output_of("81", problem)));
  CHECK(executed("80", problem, "st.shared") == 0);
  CHECK(executed("81", problem, "st.shared") == kRowWarps * (kKeyBlocks - 1));
}

TEST_CASE("82 computes three quarters of the exponentials of 81 with ex2") {
  for (const int dim : {64, 128}) {
    const Problem problem = square(kSeq, dim, kHeads);
    const Count scores = kRowWarps * kSeq, alphas = kRowWarps * kKeyBlocks;
    CHECK(count("81", problem).of(CountClass::kExp) == scores + alphas);
    CHECK(count("82", problem).of(CountClass::kExp) == scores * 3 / 4 + alphas);
  }
}

TEST_CASE("83 has the output of 82, with half of the products and of the bytes of K and V") {
  for (const int dim : {64, 128}) {
    const Problem problem = square(kSeq, dim, kHeads);
    CHECK(pair_of("82", problem) == 1);
    CHECK(pair_of("83", problem) == 2);
    CHECK(bitwise_equal(output_of("82", problem), output_of("83", problem)));
  }
}

TEST_CASE("of an odd number of row tiles one block of 83 has no queries") {
  const Problem problem = square(3 * 256, 128, 1);
  CHECK(plan_of(*find_rung("83"), problem).launches.front().grid.x == 4);
  CHECK(bitwise_equal(output_of("82", problem), output_of("83", problem)));
}
