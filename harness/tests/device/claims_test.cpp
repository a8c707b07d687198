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
  VmDevice device({.checkers = false, .counters = true});
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  device.launch(plan_of(*find_rung(id), problem));
  std::uint64_t sum = 0;
  for (const LaunchCounts& launch : device.counts()) {
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

TEST_CASE("01 meets 8-way bank conflicts in ldmatrix, the later rungs none") {
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

TEST_CASE("tensor instructions, bytes and sectors equal their closed forms in every instance") {
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::ampere) continue;
    for (const Instance& instance : rung.kernels->instances) {
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
