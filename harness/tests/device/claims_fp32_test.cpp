// SPDX-License-Identifier: MIT
// What the chapters a0 to a6 say about the kernels, as counts in closed form.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/environment/ptxas.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;
using ptxvm::CountClass;
using ptxvm::Counts;
using ptxvm::LineCounts;

namespace {

using Count = std::uint64_t;

constexpr Count kSeq = 256, kHeads = 2;
constexpr Count kSector = 8;  // floats
constexpr std::array<int, 3> kHeadDims{32, 64, 128};
constexpr Count kWarp = 32;
// Wavefronts of a warp's load of float4. It goes eight lanes at a time: four for 512 bytes in a
// row. Where every lane has its neighbour's address, as when half a warp or all of it reads the
// same 16 bytes, it goes sixteen lanes at a time. A load of single floats takes one in all these
// cases.
constexpr Count kFloat4 = 4, kFloat4Broadcast = 2;

/// What the launches of one plan did, in order.
const std::vector<LaunchCounts>& launches(std::string_view id, int dim,
                                          std::string_view tile = {}) {
  Problem problem = square(kSeq, dim, kHeads);
  problem.dtype = Dtype::f32;
  return fa_test::launches(id, problem, tile);
}

/// The same of a rung's last launch: its attention kernel, where it has one.
LaunchCounts attention(std::string_view id, int dim, std::string_view tile = {}) {
  return launches(id, dim, tile).back();
}

/// The shared loads that meet conflicts.
ptxvm::SharedTraffic conflicting_loads(const LaunchCounts& launch) {
  ptxvm::SharedTraffic sum;
  for (const LineCounts& line : launch.report.by_instruction) {
    if (line.counts.shared_load.conflicts() > 0) sum.add(line.counts.shared_load);
  }
  return sum;
}

Count dim_of(int dim) {
  return static_cast<Count>(dim);
}

// Pairs of a row of Q and a 32-key tile, in all heads: what a2 to a5 count in.
constexpr Count kRowTiles = kHeads * kSeq * (kSeq / 32);
// Warps that meet a 32-key tile: 8 rows each.
constexpr Count kWarpTiles = kRowTiles / 8;

// Of the shared loads of a2 to a5, those that do not read K. A warp has 8 rows: for four columns of
// D a float4 of Q for each row; in P V a float of V for each of 32 keys and D / 32 columns, and 8
// float4 of P for each row.
ptxvm::SharedTraffic loads_beside_k(Count width, Count D) {
  const Count q = kWarpTiles * width / 4 * 8, v = kWarpTiles * D, p = kWarpTiles * 8 * 8;
  ptxvm::SharedTraffic sum;
  sum.requests = q + v + p;
  sum.wavefronts = sum.ideal = kFloat4Broadcast * (q + p) + v;
  return sum;
}

}  // namespace

TEST_CASE("a0 writes S three times and reads it four times") {
  for (const int dim : kHeadDims) {
    INFO("head_dim " << dim);
    const std::vector<LaunchCounts>& steps = launches("a0", dim);
    REQUIRE(steps.size() == 3);
    const Count D = dim_of(dim), S = kHeads * kSeq * kSeq, tiles = kSeq / 64;
    const Counts &scores = steps[0].report.total, &softmax = steps[1].report.total,
                 &values = steps[2].report.total;
    // A tile of S reads 64 rows of Q and 64 rows of K; a tile of O reads V whole.
    CHECK(scores.global_load.sectors == kHeads * tiles * tiles * 128 * D / kSector);
    CHECK(scores.global_store.sectors == S / kSector);
    CHECK(softmax.global_load.sectors == 3 * S / kSector);
    CHECK(softmax.global_store.sectors == 2 * S / kSector);
    CHECK(values.global_load.sectors == S / kSector + kHeads * tiles * kSeq * D / kSector);
    CHECK(values.global_store.sectors == kHeads * kSeq * D / kSector);
    // For each step along the sum a half-warp reads a float4 of its four rows, and a float of each
    // 16th column: 4 of a tile of S, D / 16 of O. The eight warps of a tile take D and kSeq steps.
    const Count score_steps = kHeads * tiles * tiles * 8 * D,
                value_steps = kHeads * tiles * 8 * kSeq;
    CHECK(scores.shared_load.requests == score_steps * (1 + 4));
    CHECK(scores.shared_load.wavefronts == score_steps * (kFloat4Broadcast + 4));
    CHECK(values.shared_load.requests == value_steps * (1 + D / 16));
    CHECK(values.shared_load.wavefronts == value_steps * (kFloat4Broadcast + D / 16));
    // For 16 steps 64 x 16 floats are stored as a transposed slice, with 2-way conflicts: two of a
    // tile of S, one of O. The slice of V lies as it comes.
    CHECK(scores.shared_store.wavefronts == score_steps / 8 / 16 * 2 * (2 * 64 * 16 / 32));
    CHECK(values.shared_store.wavefronts ==
          value_steps / 8 / 16 * (2 * 64 * 16 / 32 + 16 * D / 32));
    // One exponential and one division for each score.
    CHECK(softmax.of(CountClass::kExp) == S / kWarp);
    CHECK(executed(steps[1], "div.approx") == S / kWarp);
  }
}

TEST_CASE("a0 keeps S and P in scratch memory, the square of the sequence; a1 and a3 need none") {
  Problem problem = square(kSeq, 64, kHeads);
  problem.dtype = Dtype::f32;
  const LaunchPlan standard = plan_of(*find_rung("a0"), problem);
  REQUIRE(standard.scratch.size() == 1);
  CHECK(standard.scratch[0].bytes == static_cast<std::int64_t>(kHeads * kSeq * kSeq * 4));
  CHECK(plan_of(*find_rung("a1"), problem).scratch.empty());
  CHECK(plan_of(*find_rung("a3"), problem).scratch.empty());
}

TEST_CASE("a1 reads Q and writes O once, two sectors for every 32 bytes, and streams K and V") {
  for (const int dim : kHeadDims) {
    INFO("head_dim " << dim);
    const LaunchCounts launch = attention("a1", dim);
    const Counts& counts = launch.report.total;
    const Count D = dim_of(dim), blocks = kHeads * kSeq / 128, elements = kHeads * kSeq * D;
    CHECK(counts.global_load.sectors == 2 * elements / kSector + blocks * 2 * kSeq * D / kSector);
    CHECK(counts.global_store.sectors == 2 * elements / kSector);
    // A thread takes one exponential a key and one a tile of 16 keys, and divides at the end.
    CHECK(counts.of(CountClass::kExp) == kHeads * kSeq / kWarp * (kSeq + kSeq / 16));
    CHECK(executed(launch, "div.approx") == elements / kWarp);
    // For four columns of 16 keys: one float4 of Q that is the lane's own, 16 of K and 16 of V.
    const Count warp_tiles = kHeads * kSeq / kWarp * (kSeq / 16);
    CHECK(counts.shared_load.requests == warp_tiles * (D / 4) * 33);
    CHECK(counts.shared_load.wavefronts ==
          warp_tiles * (D / 4) * (kFloat4 + 32 * kFloat4Broadcast));
    CHECK(counts.shared_load.conflicts() == 0);
  }
}

TEST_CASE("a2 reads and writes O, l and m once for every K/V tile") {
  for (const int dim : kHeadDims) {
    INFO("head_dim " << dim);
    const LaunchCounts launch = attention("a2", dim);
    const Counts& counts = launch.report.total;
    const Count D = dim_of(dim), tensor = kHeads * kSeq * D / kSector, tiles = kSeq / 32;
    // K and V once; for every tile of them Q, O, and one sector for m and l of each row.
    CHECK(counts.global_load.sectors == 2 * tensor + tiles * 2 * tensor + kRowTiles);
    // O, l and m as they start, then once for every tile.
    const Count start = tensor + 2 * kHeads * kSeq / kSector;
    CHECK(counts.global_store.sectors == start + tiles * tensor + kRowTiles);
    // Every element of O is divided in every tile; a row takes one exponential beside its scores.
    CHECK(executed(launch, "div.rn") == tiles * kHeads * kSeq * D / kWarp);
    CHECK(counts.of(CountClass::kExp) == 2 * kRowTiles);
  }
}

TEST_CASE("a3 reads Q once and K and V once a block, writes O once and divides once") {
  for (const int dim : kHeadDims) {
    for (const char* id : {"a3", "a4", "a5"}) {
      INFO(id << " at head_dim " << dim);
      const LaunchCounts launch = attention(id, dim);
      const Counts& counts = launch.report.total;
      const Count D = dim_of(dim), tensor = kHeads * kSeq * D / kSector, blocks = kSeq / 32;
      CHECK(counts.global_load.sectors == tensor + blocks * 2 * tensor);
      CHECK(counts.global_store.sectors == tensor);
      CHECK(counts.global_store.bytes == tensor * 32);
      CHECK(executed(launch, "div.approx") == kHeads * kSeq * D / kWarp);
      CHECK(counts.of(CountClass::kExp) == 2 * kRowTiles);
      // Into shared memory go a row of P, and the tiles as they were loaded, four sectors at once.
      CHECK(counts.shared_store.wavefronts == kRowTiles + counts.global_load.sectors / 4);
      // Five steps for the maximum of a row in a tile, and for its sum at the end.
      CHECK(counts.of(CountClass::kShuffle) == 5 * (kRowTiles + kHeads * kSeq));
    }
  }
}

TEST_CASE("K is read with 8-way bank conflicts in a2 and a3, with none in a4 and a5") {
  for (const int dim : kHeadDims) {
    const Count D = dim_of(dim);
    // A lane reads its row of K as float4. The rows of eight lanes start in the same bank.
    const Count loads = kWarpTiles * D / 4;
    const ptxvm::SharedTraffic others = loads_beside_k(D, D);
    for (const char* id : {"a2", "a3"}) {
      INFO(id << " at head_dim " << dim);
      const LaunchCounts launch = attention(id, dim);
      const ptxvm::SharedTraffic k = conflicting_loads(launch);
      CHECK(k.requests == loads);
      CHECK(k.ideal == kFloat4 * loads);
      CHECK(k.wavefronts == 8 * k.ideal);
      CHECK(launch.report.total.shared_load.requests == k.requests + others.requests);
      CHECK(launch.report.total.shared_load.wavefronts == k.wavefronts + others.wavefronts);
      CHECK(launch.report.total.shared_store.conflicts() == 0);
    }
    for (const char* id : {"a4", "a5"}) {
      INFO(id << " at head_dim " << dim);
      const Counts counts = attention(id, dim).report.total;
      // a5 reads four rows of K^T, a float of each, where a4 reads a float4 of K.
      const Count k_requests = id == std::string_view("a5") ? 4 * loads : loads;
      CHECK(counts.shared_load.requests == k_requests + others.requests);
      CHECK(counts.shared_load.wavefronts == kFloat4 * loads + others.wavefronts);
      CHECK(counts.shared_load.conflicts() == 0);
      CHECK(counts.shared_store.conflicts() == 0);
    }
  }
}

TEST_CASE("a5 transposes K in a launch of its own: one read, one write, no conflict") {
  for (const int dim : kHeadDims) {
    INFO("head_dim " << dim);
    const std::vector<LaunchCounts>& steps = launches("a5", dim);
    REQUIRE(steps.size() == 2);
    CHECK(steps[0].entry == "fa_a5_transposed_k_transpose_d" + std::to_string(dim));
    const Counts& counts = steps[0].report.total;
    const Count tensor = kHeads * kSeq * dim_of(dim) / kSector;
    CHECK(counts.global_load.sectors == tensor);
    CHECK(counts.global_store.sectors == tensor);
    CHECK(counts.shared_load.conflicts() == 0);
    CHECK(counts.shared_store.conflicts() == 0);
  }
}

TEST_CASE("all FP32 rungs multiply and add the same two products") {
  for (const int dim : kHeadDims) {
    for (const char* id : {"a0", "a1", "a2", "a3", "a4", "a5", "a6"}) {
      INFO(id << " at head_dim " << dim);
      Count fma = 0;
      for (const LaunchCounts& launch : launches(id, dim)) fma += executed(launch, "fma.rn.f32");
      const Count products = 2 * kHeads * kSeq * kSeq * dim_of(dim) / kWarp;
      CHECK(fma >= products);
      CHECK(fma - products <= products / 8);  // the rescaling of l and O
    }
  }
}

TEST_CASE("no FP32 rung spills at its own tiles") {
  int known = 0;
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::fp32) continue;
    for (const int head_dim : rung.head_dims()) {
      const char* const name = rung.find_instance(head_dim, rung.dtype)->entry;
      for (const int sm : {80, 90}) {
        const auto entry = ptxas_entry(name, sm);
        if (!entry) continue;
        ++known;
        INFO(name << " for " << sm);
        CHECK(entry->spill_stores + entry->spill_loads == 0);
        CHECK(entry->stack == 0);
      }
    }
  }
  CHECK(known > 0);
}

TEST_CASE("the loads of a6: what a thread's tile of S and of O needs") {
  for (const int dim : kHeadDims) {
    INFO("head_dim " << dim);
    const Count D = dim_of(dim), tiles = kSeq / 64;  // of keys
    const Count lanes = dim == 128 ? 16 : 8, columns = D / lanes;
    const Count warp_tiles = kHeads * kSeq / (8 * kWarp / lanes) * tiles;
    const Counts counts = attention("a6", dim).report.total;
    // For four columns of D or four keys: those of K or V, and 8 of Q or P.
    CHECK(counts.shared_load.requests ==
          warp_tiles * (D / 4 * (64 / lanes + 8) + 16 * (columns + 8)));
    CHECK(counts.shared_load.wavefronts ==
          warp_tiles * (D / 4 * (kFloat4 * 64 / lanes + kFloat4Broadcast * 8) +
                        16 * (kFloat4 * columns + kFloat4Broadcast * 8)));
    CHECK(counts.shared_load.conflicts() == 0);
    CHECK(counts.shared_store.conflicts() == 0);
    // Shared memory is idle part of the time: four warp instructions with FMA and one wavefront
    // per cycle.
    CHECK(counts.shared_load.wavefronts < counts.of(CountClass::kFloat) / 4);
    // The maximum of each row in a tile, and its sum at the end; a shuffle has 32 / lanes rows.
    const Count steps = lanes == 16 ? 4 : 3;
    CHECK(counts.of(CountClass::kShuffle) == steps * kHeads * kSeq * (tiles + 1) / (kWarp / lanes));
  }
}
