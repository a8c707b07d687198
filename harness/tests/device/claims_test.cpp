// SPDX-License-Identifier: MIT
// What the chapters say about the kernels, as counts.
#include <algorithm>

#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;
using ptxvm::CountClass;
using ptxvm::Counts;

namespace {

constexpr std::int64_t kSeq = 512, kHeads = 2;

/// ldmatrix on V: the ones with .trans, by the line that issues them.
std::uint64_t v_loads(std::string_view id, const Problem& problem) {
  std::uint64_t sum = 0;
  for (const LaunchCounts& launch : launches(id, problem)) {
    for (const ptxvm::LineCounts& line : launch.report.by_instruction) {
      const bool transposed =
          line.opcode.starts_with("ldmatrix") && line.opcode.find(".trans") != std::string::npos;
      if (transposed) sum += line.counts.of(CountClass::kLdMatrix);
    }
  }
  return sum;
}

double per_tensor(const Counts& counts, std::uint64_t value) {
  return static_cast<double>(value) / static_cast<double>(counts.of(CountClass::kTensor));
}

}  // namespace

TEST_CASE("01 meets 8-way bank conflicts in ldmatrix, the later Ampere rungs none") {
  for (const int dim : {64, 128}) {
    for (const Rung& rung : catalogue()) {
      if (rung.family != Family::ampere) continue;
      const Counts counts = count(rung.id, square(kSeq, dim, kHeads));
      INFO(rung.name << " at head_dim " << dim);
      // Rows of 128 or of 256 bytes: either way the eight rows of a matrix meet in four banks.
      const std::uint64_t ways = rung.id == "01" ? 8 : 1;
      CHECK(counts.ldmatrix.wavefronts == ways * counts.ldmatrix.ideal);
      CHECK(counts.shared_load.conflicts() == 0);
      if (rung.id != "01") CHECK(counts.shared_store.conflicts() == 0);
    }
  }
}

TEST_CASE("the swizzle alone removes the conflicts: 01 and 02 at one tile differ in nothing else") {
  for (const char* tile : {"64x32w2", "64x128w4"}) {
    const Counts base = count("01", square(kSeq, 128, kHeads), tile);
    const Counts swizzled = count("02", square(kSeq, 128, kHeads), tile);
    INFO(tile);
    CHECK(base.ldmatrix.ideal == swizzled.ldmatrix.wavefronts);
    CHECK(base.ldmatrix.requests == swizzled.ldmatrix.requests);
    CHECK(base.global_copy == swizzled.global_copy);
    CHECK(base.of(CountClass::kTensor) == swizzled.of(CountClass::kTensor));
    CHECK(base.of(CountClass::kExp) == swizzled.of(CountClass::kExp));
  }
}

TEST_CASE("03 moves the same data as 02: only the order changes") {
  const Counts before = count("02", square(kSeq, 128, kHeads));
  const Counts after = count("03", square(kSeq, 128, kHeads));
  CHECK(before.ldmatrix == after.ldmatrix);
  CHECK(before.global_copy == after.global_copy);
  CHECK(before.of(CountClass::kTensor) == after.of(CountClass::kTensor));
}

TEST_CASE("04 halves the ldmatrix instructions of V and leaves their wavefronts") {
  for (const int dim : {64, 128}) {
    const Problem problem = square(kSeq, dim, kHeads);
    CHECK(v_loads("03", problem) == 2 * v_loads("04", problem));
    CHECK(count("03", problem).ldmatrix.wavefronts == count("04", problem).ldmatrix.wavefronts);
  }
}

TEST_CASE("05 cuts float instructions and keeps the exponentials") {
  for (const int dim : {64, 128}) {
    const Counts before = count("04", square(kSeq, dim, kHeads));
    const Counts after = count("05", square(kSeq, dim, kHeads));
    CHECK(after.of(CountClass::kExp) == before.of(CountClass::kExp));
    // One multiplication by the scale for each score, each lane of a warp handling one.
    const auto scores = static_cast<std::uint64_t>(kHeads * kSeq * kSeq / 32);
    CHECK(before.of(CountClass::kFloat) - after.of(CountClass::kFloat) >= scores);
  }
}

TEST_CASE("06 cuts ldmatrix for each mma, at its own tile and against 05 at that tile") {
  const Counts parent = count("05", square(kSeq, 128, kHeads));
  const Counts at_tile = count("05", square(kSeq, 128, kHeads), "128x64w4");
  const Counts batched = count("06", square(kSeq, 128, kHeads));
  // 136 and 144 ldmatrix for 256 mma become 80; the loads of Q are the rest of docs/06_batched.md.
  CHECK(per_tensor(parent, parent.of(CountClass::kLdMatrix)) == 136.0 / 256);
  CHECK(per_tensor(at_tile, at_tile.of(CountClass::kLdMatrix)) == 144.0 / 256);
  CHECK(per_tensor(batched, batched.of(CountClass::kLdMatrix)) == 80.0 / 256);
  // Blocks of 128 query rows read K and V half as often as blocks of 64.
  CHECK(batched.global_copy.bytes < parent.global_copy.bytes * 6 / 10);
}

TEST_CASE("07 does the same work as 06 in another order") {
  const Counts before = count("06", square(kSeq, 128, kHeads));
  const Counts after = count("07", square(kSeq, 128, kHeads));
  CHECK(before.ldmatrix == after.ldmatrix);
  CHECK(before.global_copy == after.global_copy);
  for (const auto which : {CountClass::kTensor, CountClass::kExp, CountClass::kLdMatrix}) {
    CHECK(before.of(which) == after.of(which));
  }
}

TEST_CASE("10 rescales O for the first key block alone when no maximum grows by more than 8") {
  for (const int dim : {64, 128}) {
    const Problem problem = square(kSeq, dim, kHeads);
    const Counts before = count("06", problem), after = count("10", problem);
    CHECK(before.ldmatrix == after.ldmatrix);
    CHECK(before.of(CountClass::kTensor) == after.of(CountClass::kTensor));
    // A warp has 32 rows: an alpha of every row for every key block but the first.
    const std::uint64_t blocks = kSeq / (dim == 128 ? 64 : 128), warps = kHeads * kSeq / 32;
    CHECK(before.of(CountClass::kExp) - after.of(CountClass::kExp) == 4 * warps * (blocks - 1));
  }
}

TEST_CASE("11 does the work of 10 in another order") {
  const Problem problem = square(kSeq, 128, kHeads);
  const Counts before = count("10", problem), after = count("11", problem);
  CHECK(before.ldmatrix == after.ldmatrix);
  CHECK(before.global_copy == after.global_copy);
  for (const auto which : {CountClass::kTensor, CountClass::kExp, CountClass::kShuffle}) {
    CHECK(before.of(which) == after.of(which));
  }
}

TEST_CASE(
    "tensor instructions, bytes and sectors equal their closed forms in every Ampere instance") {
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::ampere) continue;
    for (const Instance& instance : rung.instances) {
      INFO(instance.entry);
      const Problem p = square(kSeq, instance.head_dim, kHeads);
      const Counts counts = count(rung.id, p, to_string(instance.tile));
      const auto dim = static_cast<std::uint64_t>(p.head_dim);
      const auto seq = static_cast<std::uint64_t>(kSeq), heads = std::uint64_t{kHeads};
      CHECK(counts.of(CountClass::kTensor) == 4 * heads * seq * seq * dim / 4096);
      // Each block reads its rows of Q once, and all of K and V.
      const std::uint64_t blocks = seq / static_cast<std::uint64_t>(instance.tile.Br) * heads;
      const std::uint64_t row = dim * 2;
      CHECK(counts.global_copy.bytes == heads * seq * row + blocks * 2 * seq * row);
      CHECK(counts.global_copy.sectors * 32 == counts.global_copy.bytes);
      CHECK(counts.of(CountClass::kCpAsync) * 512 == counts.global_copy.bytes);
      CHECK(counts.global_store.bytes == heads * seq * row);
      CHECK(counts.global_store.sectors * 32 == counts.global_store.bytes);
      CHECK(counts.local_bytes == 0);
    }
  }
}

namespace {

// What the loop bounds of 08 and 09 promise, from the mask's definition alone.
struct Visits {
  std::uint64_t blocks = 0;  // key blocks
  std::uint64_t masked = 0;  // of these, with a key that some row of the tile must not see
  std::uint64_t rows = 0;    // of K, and as many of V
};

Visits visits_of(const Problem& p, const Tile& tile) {
  Visits visits;
  for (std::int64_t first = 0; first < p.seq_q; first += tile.Br) {
    const std::int64_t last = std::min(first + tile.Br, p.seq_q) - 1;
    // A tile without a visible key takes one block, so that its zeros come out of the same code.
    const std::int64_t seen = std::max<std::int64_t>(1, visible_keys(p, last).end);
    const std::int64_t blocks = (seen + tile.Bc - 1) / tile.Bc;
    visits.blocks += static_cast<std::uint64_t>(blocks);
    visits.masked += static_cast<std::uint64_t>(blocks - visible_keys(p, first).end / tile.Bc);
    visits.rows += static_cast<std::uint64_t>(std::min(p.seq_kv, blocks * tile.Bc));
  }
  const auto heads = static_cast<std::uint64_t>(p.batch * p.heads);
  return {visits.blocks * heads, visits.masked * heads, visits.rows * heads};
}

Problem causal(Problem problem) {
  problem.causal = true;
  return problem;
}

Problem lengths(std::int64_t seq_q, std::int64_t seq_kv, int head_dim) {
  return {.batch = 1, .heads = kHeads, .seq_q = seq_q, .seq_kv = seq_kv, .head_dim = head_dim};
}

void check_visits(std::string_view id, const Problem& p) {
  INFO(id << " at " << to_string(p));
  const Tile tile = find_rung(id)->find_instance(p.head_dim, p.dtype)->tile;
  const Visits visits = visits_of(p, tile);
  const Counts counts = count(id, p);
  const auto dim = static_cast<std::uint64_t>(p.head_dim);
  const auto scores = static_cast<std::uint64_t>(tile.Br) * static_cast<std::uint64_t>(tile.Bc);
  const auto q_rows = static_cast<std::uint64_t>(p.q_rows());
  CHECK(counts.of(CountClass::kTensor) == visits.blocks * 2 * scores * dim / 2048);
  CHECK(counts.global_copy.bytes == (q_rows + 2 * visits.rows) * dim * 2);
  CHECK(counts.global_store.bytes == q_rows * (dim * 2 + (p.lse ? 4 : 0)));
  CHECK(counts.global_load.bytes == 0);
  // One select for each score of a masked block, and nowhere else.
  CHECK(executed(id, p, "selp.f32") == visits.masked * scores / 32);
}

}  // namespace

TEST_CASE("08 visits the blocks up to the diagonal, and masks only those that it crosses") {
  for (const int dim : {64, 128}) {
    check_visits("08", lengths(512, 512, dim));
    for (const auto& [seq_q, seq_kv] :
         {std::pair{512, 512}, {128, 512}, {512, 128}, {384, 256}, {256, 640}}) {
      check_visits("08", causal(lengths(seq_q, seq_kv, dim)));
    }
  }
  // Whole tiles of 128 rows: n (n + 1) / 2 of n^2, of which each masks one square on the diagonal.
  const Visits square_visits = visits_of(causal(square(8192, 128)), {128, 64, 4});
  CHECK(square_visits.blocks == 2 * 64 * 65 / 2);
  CHECK(square_visits.masked == 2 * 64);
}

TEST_CASE("08 does not pay for the mask where there is none") {
  for (const int dim : {64, 128}) {
    const Problem problem = square(kSeq, dim, kHeads);
    const Counts before = count("06", problem), after = count("08", problem);
    CHECK(before.ldmatrix == after.ldmatrix);
    CHECK(before.global_copy == after.global_copy);
    for (const auto which : {CountClass::kTensor, CountClass::kExp, CountClass::kFloat}) {
      CHECK(before.of(which) == after.of(which));
    }
  }
}

TEST_CASE("09 visits the same blocks, reads the rows that exist and writes no others") {
  for (const int dim : {64, 128}) {
    for (const bool masked : {false, true}) {
      for (const auto& [seq_q, seq_kv] :
           {std::pair{1, 1}, {129, 1000}, {1000, 129}, {257, 255}, {63, 65}, {512, 512}}) {
        for (const bool lse : {false, true}) {
          Problem p = lengths(seq_q, seq_kv, dim);
          p.causal = masked;
          p.lse = lse;
          check_visits("09", p);
        }
      }
    }
  }
}

TEST_CASE("09 does the work of 08 on whole tiles") {
  for (const int dim : {64, 128}) {
    for (const bool masked : {false, true}) {
      Problem problem = square(kSeq, dim, kHeads);
      problem.causal = masked;
      const Counts before = count("08", problem), after = count("09", problem);
      CHECK(before.ldmatrix == after.ldmatrix);
      CHECK(before.global_copy == after.global_copy);
      CHECK(before.global_store == after.global_store);
      for (const auto which : {CountClass::kTensor, CountClass::kExp, CountClass::kCpAsync}) {
        CHECK(before.of(which) == after.of(which));
      }
    }
  }
}
