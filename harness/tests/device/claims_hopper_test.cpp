// SPDX-License-Identifier: MIT
// What the chapters of 20 to 39 say about the kernels, as counts; and what 10 and 28 of errors.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "harness/attention/reference.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"
#include "kernels/planners.h"

using namespace fa_test;
using ptxvm::CountClass;
using Count = std::uint64_t;

namespace {

constexpr Count kSeq = 512, kHeads = 2;

struct Claim {
  const char* id;
  bool q_in_registers = false;  // ldmatrix once a tile, and wgmma reads no Q
  bool guarded = false;         // no alpha where no P comes near the largest half
  int store_bytes = 4;          // of a lane's stores of O; 0: bulk copies store it
  Count row_exps = 0;           // exponentials of each row besides those of its scores
};

constexpr Claim kClaims[] = {
    {"22"},
    {"23"},
    {"24"},
    {"25"},
    {"26"},
    {.id = "27", .q_in_registers = true},
    {.id = "28", .q_in_registers = true, .guarded = true},
    {.id = "29", .q_in_registers = true, .guarded = true},
    {.id = "30", .q_in_registers = true, .guarded = true},
    {.id = "31", .q_in_registers = true, .guarded = true},
    {.id = "32", .q_in_registers = true, .guarded = true},
    {.id = "33", .q_in_registers = true, .guarded = true, .store_bytes = 0},
    {.id = "34", .q_in_registers = true, .guarded = true, .store_bytes = 0},
    {.id = "35", .q_in_registers = true, .guarded = true, .store_bytes = 0},
    {.id = "36", .q_in_registers = true, .guarded = true, .store_bytes = 0},
    {.id = "37", .q_in_registers = true, .guarded = true, .store_bytes = 0},
    {.id = "38", .q_in_registers = true, .guarded = true, .store_bytes = 0, .row_exps = 2},
    {.id = "39", .q_in_registers = true, .guarded = true, .store_bytes = 0, .row_exps = 2},
};

/// The work of a rung without a mask: how often what happens.
struct Work {
  Count D, Br, Bc, tiles, key_blocks, warps;  // warps: those that compute, of a block
  Count sharing;                              // tiles that share a copy of K and V

  Work(std::string_view id, int dim) : D(static_cast<Count>(dim)) {
    const Tile tile = find_rung(id)->find_instance(dim, Dtype::f16)->tile;
    Br = static_cast<Count>(tile.Br);
    Bc = static_cast<Count>(tile.Bc);
    sharing = id >= "34" && id < "39" ? 2 : 1;
    tiles = kHeads * ((kSeq + sharing * Br - 1) / (sharing * Br)) * sharing;
    key_blocks = (kSeq + Bc - 1) / Bc;
    warps = Br / 16;
  }
};

}  // namespace

TEST_CASE("every Hopper rung from 22 on has one claim, and every claim a Hopper rung") {
  for (const Rung& rung : catalogue()) {
    INFO(rung.name);
    const auto claims = std::count_if(std::begin(kClaims), std::end(kClaims),
                                      [&](const Claim& claim) { return claim.id == rung.id; });
    CHECK(claims == (rung.family == Family::hopper && rung.id >= "22" ? 1 : 0));
  }
  for (const Claim& claim : kClaims) {
    INFO(claim.id);
    CHECK(find_rung(claim.id) != nullptr);
  }
}

TEST_CASE("the TMA brings Q once a tile, and K and V once for each tile of queries") {
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::hopper) continue;
    for (const int dim : {64, 128}) {
      INFO(rung.name << " at head_dim " << dim);
      const Work w(rung.id, dim);
      const ptxvm::Counts counts = count(rung.id, square(kSeq, dim, kHeads));
      CHECK(counts.bulk_load.bytes == w.tiles * (w.Br + 2 * w.key_blocks * w.Bc) * w.D * 2);
      // Rows beyond the end are not read, nor twice what lands in two blocks. 39 reads the last
      // row once more for each 64 rows that are all beyond the end.
      const Count beyond = rung.id == "39" ? (w.tiles * w.Br - kHeads * kSeq) / 64 : 0;
      CHECK(counts.bulk_load.global_bytes ==
            ((kHeads + w.tiles / w.sharing * 2) * kSeq + beyond) * w.D * 2);
      CHECK(counts.global_load.bytes + counts.global_copy.bytes == 0);
      CHECK(counts.global_store.bytes + counts.bulk_store.global_bytes == kHeads * kSeq * w.D * 2);
    }
  }
}

TEST_CASE("20 multiplies as 06 does, with the same ldmatrix and no conflicts") {
  for (const int dim : {64, 128}) {
    const ptxvm::Counts parent = count("06", square(kSeq, dim, kHeads));
    const ptxvm::Counts counts = count("20", square(kSeq, dim, kHeads));
    CHECK(counts.of(CountClass::kTensor) == parent.of(CountClass::kTensor));
    CHECK(counts.ldmatrix == parent.ldmatrix);
    CHECK(counts.ldmatrix.conflicts() == 0);
  }
}

TEST_CASE("21: wgmma does Q K^T, mma.sync P V; O goes through shared memory") {
  for (const int dim : {64, 128}) {
    INFO("head_dim " << dim);
    const Work w("21", dim);
    const Problem problem = square(kSeq, dim, kHeads);
    const ptxvm::Counts counts = count("21", problem);
    const Count products = w.tiles * w.warps * w.key_blocks;
    CHECK(executed("21", problem, "wgmma.mma_async") == products * w.D / 16);
    CHECK(counts.wgmma_bytes == products / 4 * (64 + w.Bc) * w.D * 2);
    CHECK(counts.of(CountClass::kTensor) == products * (w.Bc / 16) * (w.D / 8));
    CHECK(counts.of(CountClass::kLdMatrix) == products * (w.Bc / 16) * (w.D / 16));
    CHECK(counts.ldmatrix.conflicts() == 0);
    CHECK(counts.global_store.requests == kHeads * kSeq * w.D * 2 / 16 / 32);
    CHECK(counts.shared_store.requests > 0);
    CHECK(counts.global_store.sectors == kHeads * kSeq * w.D * 2 / 32);
  }
}

TEST_CASE("wgmma does both products; what it reads, and exponentials and stores") {
  for (const Claim& claim : kClaims) {
    for (const int dim : {64, 128}) {
      INFO(claim.id << " at head_dim " << dim);
      const Work w(claim.id, dim);
      const Problem problem = square(kSeq, dim, kHeads);
      const ptxvm::Counts counts = count(claim.id, problem);
      // Four warps issue each, for 64 rows: D / 16 for Q K^T, Bc / 16 for P V.
      const Count issued = w.tiles * w.warps * w.key_blocks;
      CHECK(executed(claim.id, problem, "wgmma.mma_async") == issued * (w.D + w.Bc) / 16);
      CHECK(counts.of(CountClass::kTensor) == 0);
      const Count q_bytes = claim.q_in_registers ? 0 : 64 * w.D * 2;
      CHECK(counts.wgmma_bytes == issued / 4 * (q_bytes + 2 * w.Bc * w.D * 2));
      CHECK(counts.of(CountClass::kLdMatrix) ==
            (claim.q_in_registers ? w.tiles * w.warps * w.D / 16 : 0));
      // One a score, and one for alpha of each of the two rows of a lane.
      const Count alphas = claim.guarded ? 0 : w.tiles * w.warps * 2 * w.key_blocks;
      const Count ends = w.tiles * w.warps * 2 * claim.row_exps;
      CHECK(counts.of(CountClass::kExp) ==
            w.tiles * w.key_blocks * w.Br * w.Bc / 32 + alphas + ends);
      const Count output = kHeads * kSeq * w.D * 2, bytes = static_cast<Count>(claim.store_bytes);
      CHECK(counts.global_store.requests == (bytes == 0 ? 0 : output / bytes / 32));
      // From 33 on: a copy of 16 rows a warp, whose tiles stmatrix wrote without conflicts.
      // 39 stores no 16 rows that are all beyond the end.
      const Count stored =
          std::string_view(claim.id) == "39" ? kHeads * kSeq / 16 : w.tiles * w.warps;
      CHECK(counts.bulk_store.copies == (bytes == 0 ? stored : 0));
      CHECK(counts.of(CountClass::kStMatrix) == (bytes == 0 ? w.tiles * w.warps * w.D / 16 : 0));
      CHECK(counts.stmatrix.conflicts() == 0);
    }
  }
}

namespace {

/// Output of a plan in the virtual machine, for inputs that are always the same.
HostTensor output_of(const LaunchPlan& plan, const Problem& problem,
                     const InputKind& kind = Distribution::normal) {
  VmDevice device({.checkers = false, .ptx = kernels()});
  device.load(problem, make_inputs(problem, kind, 1));
  device.poison_output();
  device.launch(plan);
  return device.download_output();
}

}  // namespace

TEST_CASE("with the maximum as reference, O is more precise the more one key dominates") {
  Problem problem = square(2 * kSeq, 128);
  for (const double spread : {1., 4.}) {
    const InputKind kind = {Distribution::normal, spread};
    const ReferenceRows rows =
        reference_rows(problem, make_inputs(problem, kind, 1), choose_rows(problem, 1 << 30, 1));
    const auto rms = [&](std::string_view id) {
      const HostTensor o = output_of(plan_of(*find_rung(id), problem), problem, kind);
      double squares = 0;
      for (std::size_t i = 0; i < rows.exact.size(); ++i) {
        const double error = o.at(static_cast<std::int64_t>(i)) - rows.exact[i];
        squares += error * error;
      }
      return std::sqrt(squares);
    };
    problem.lse = false;
    const double lazy = rms("10") / rms("06"), guarded = rms("28") / rms("27");
    problem.lse = true;  // then 39 watches for keys that dominate
    const double watched = rms("39") / rms("27");
    INFO("spread " << spread << ": 10 " << lazy << ", 28 " << guarded << ", 39 " << watched);
    CHECK(lazy == Approx(spread == 1 ? 1.04 : 1.21).margin(0.01));
    CHECK(guarded == Approx(spread == 1 ? 1.05 : 1.34).margin(0.01));
    CHECK(watched == Approx(1.04).margin(0.01));
  }
}

TEST_CASE("30 visits the key blocks up to the diagonal, and no others") {
  for (const int dim : {64, 128}) {
    INFO("head_dim " << dim);
    Problem problem = square(kSeq, dim, kHeads);
    problem.causal = true;
    const Work w("30", dim);
    REQUIRE(w.Br == w.Bc);
    const Count row_tiles = kSeq / w.Br, visits = kHeads * row_tiles * (row_tiles + 1) / 2;
    const ptxvm::Counts counts = count("30", problem);
    CHECK(executed("30", problem, "wgmma.mma_async") == visits * w.warps * (w.D + w.Bc) / 16);
    CHECK(counts.of(CountClass::kExp) == visits * w.Br * w.Bc / 32);
    CHECK(counts.bulk_load.bytes == (kHeads * kSeq + 2 * visits * w.Bc) * w.D * 2);
  }
}

TEST_CASE("on whole tiles 31 has the bits of 30, and without a mask 30 those of 29") {
  for (const int dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      Problem problem = square(kSeq, dim, kHeads);
      problem.causal = causal;
      const HostTensor expected = output_of(plan_of(*find_rung("30"), problem), problem);
      for (const char* id : {"29", "31"}) {
        if (causal && !has(find_rung(id)->capabilities, Capabilities::causal)) continue;
        std::string difference;
        const bool same = bitwise_equal(
            expected, output_of(plan_of(*find_rung(id), problem), problem), &difference);
        INFO(id << " head_dim " << dim << ": " << difference);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("32 asks once for each tile, and clears the counter for the next launch") {
  const Problem problem = square(kSeq, 128, kHeads);
  const Work w("32", 128);
  const HostTensor expected = output_of(plan_of(*find_rung("31"), problem), problem);
  LaunchPlan plan = plan_of(*find_rung("32"), problem);
  REQUIRE(plan.launches.size() == 1);
  for (const Count blocks : {w.tiles, Count{3}, Count{1}}) {
    plan.launches.front().grid.x = static_cast<std::int64_t>(blocks);
    VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
    device.load(problem, make_inputs(problem, Distribution::normal, 1));
    for (const int launch : {1, 2}) {
      device.poison_output();
      device.launch(plan);
      std::string difference;
      const bool same = bitwise_equal(expected, device.download_output(), &difference);
      INFO(blocks << " blocks, launch " << launch << ": " << difference);
      CHECK(same);
      // A block asks for all its tiles but the first, and once in vain; then it says that it ends,
      // and the last one clears the counter.
      const Count asked = w.tiles, ends = blocks;
      CHECK(device.total_counts().of(CountClass::kAtomic) == asked + ends + 1);
    }
  }
}

TEST_CASE("32 has the bits of 31, however many heads are handed out together") {
  // At head_dim 128, where their tiles are the same.
  Problem problem = square(700, 128, 6);
  problem.causal = true;
  const HostTensor expected = output_of(plan_of(*find_rung("31"), problem), problem);
  const Rung& rung = *find_rung("32");
  const Tile tile = rung.find_instance(problem.head_dim, problem.dtype)->tile;
  REQUIRE(tile == find_rung("31")->find_instance(problem.head_dim, problem.dtype)->tile);
  for (const int section : {1, 2, 3, 6}) {
    LaunchPlan plan = plan_of(rung, problem);
    plan.launches.front().arguments =
        tma_arguments(problem, tile, {.section = section, .counter = ScratchRef{0}});
    std::string difference;
    const bool same = bitwise_equal(expected, output_of(plan, problem), &difference);
    INFO(section << " together: " << difference);
    CHECK(same);
  }
}

TEST_CASE("33 has the bits of 32") {
  for (const int dim : {64, 128}) {
    Problem problem = square(700, dim, 2);
    problem.causal = true;
    std::string difference;
    const bool same =
        bitwise_equal(output_of(plan_of(*find_rung("32"), problem), problem),
                      output_of(plan_of(*find_rung("33"), problem), problem), &difference);
    INFO("head_dim " << dim << ": " << difference);
    CHECK(same);
  }
}

static void expect_bits_and_one_request_for_two(std::string_view id, std::string_view alone,
                                                std::span<const int> dims,
                                                std::string_view tile = {}) {
  for (const int dim : dims) {
    Problem problem = square(700, dim, 2);
    problem.causal = true;
    const LaunchPlan plan = plan_of(*find_rung(id), problem, tile);
    CHECK(plan.launches.front().cluster == Dim3{2});
    std::string difference;
    const bool same = bitwise_equal(output_of(plan_of(*find_rung(alone), problem), problem),
                                    output_of(plan, problem), &difference);
    INFO(id << " head_dim " << dim << ": " << difference);
    CHECK(same);
  }
  const Problem problem = square(kSeq, 128, kHeads);
  const Work w(id, 128);
  LaunchPlan plan = plan_of(*find_rung(id), problem, tile);
  for (const Count blocks : {w.tiles, Count{4}, Count{2}}) {
    plan.launches.front().grid.x = static_cast<std::int64_t>(blocks);
    VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
    device.load(problem, make_inputs(problem, Distribution::normal, 1));
    for (const int launch : {1, 2}) {
      INFO(blocks << " blocks, launch " << launch);
      device.launch(plan);
      // As 32, with one of two blocks that asks; both say that they end.
      CHECK(device.total_counts().of(CountClass::kAtomic) == w.tiles / 2 + blocks + 1);
    }
  }
}

TEST_CASE("34 to 38 have the bits of 32, whoever loads and stores, and ask once for two tiles") {
  constexpr int kDims[] = {128, 64};
  for (const char* id : {"34", "35", "36", "37", "38"})
    expect_bits_and_one_request_for_two(id, "32", kDims);
}

TEST_CASE("39 has the same bits in clusters, and asks once for two tiles") {
  constexpr int kDims[] = {128};
  expect_bits_and_one_request_for_two("39", "39", kDims, "256x128w12");
}

TEST_CASE("39 has clusters where sequences are long at head_dim 128") {
  const auto cluster = [](const Problem& p) {
    return plan_of(*find_rung("39"), p).launches.front().cluster;
  };
  CHECK(cluster(square(2048, 128)) == Dim3{});
  CHECK(cluster(square(2049, 128)) == Dim3{2});
  CHECK(cluster(square(8192, 64)) == Dim3{});
  Problem packed = square(4000, 128);
  packed.batch = 2, packed.query_lengths = packed.lengths = {4000, 96};
  CHECK(cluster(packed) == Dim3{});
  packed.query_lengths = packed.lengths = {4000, 98};
  CHECK(cluster(packed) == Dim3{2});
}

TEST_CASE("36 executes the same instructions and moves the same bytes for views of a model") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    for (const int dim : {64, 128}) {
      Problem problem = square(700, dim, 4, 2);
      problem.dtype = dtype;
      problem.causal = true;
      VmDevice plain({.checkers = false, .counters = true, .ptx = kernels()});
      VmDevice strided({.checkers = false, .counters = true, .ptx = kernels()});
      for (VmDevice* device : {&plain, &strided}) {
        if (device == &strided) problem.strides = row_major_strides(problem);
        device->load(problem, make_inputs(problem, Distribution::normal, 1));
        device->poison_output();
        device->launch(plan_of(*find_rung("36"), problem));
      }
      INFO(to_string(problem));
      const ptxvm::Counts expected = plain.total_counts(), counts = strided.total_counts();
      CHECK(counts.bulk_load == expected.bulk_load);
      CHECK(counts.total_instructions() == expected.total_instructions());
      std::string difference;
      const bool same =
          bitwise_equal(plain.download_output(), strided.download_output(), &difference);
      INFO(difference);
      CHECK(same);
    }
  }
}

TEST_CASE("36 repairs no row in bfloat16 where its halves repair some") {
  for (const int dim : {64, 128}) {
    Problem problem = square(kSeq, dim, 1);
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      problem.dtype = dtype;
      VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
      device.load(problem, make_inputs(problem, {Distribution::rising, 1}, 1));
      device.launch(plan_of(*find_rung("36"), problem));
      INFO(to_string(problem));
      // Only a repair takes a logarithm: this problem asks for no log-sum-exp.
      const Count repairs = executed(device.counts().front(), "lg2.approx");
      CHECK((repairs > 0) == (dtype == Dtype::f16));
    }
  }
}

namespace {

/// Key blocks of a window, from what the rows see alone.
struct Blocks {
  Count multiplied = 0;  // by 64 rows
  Count masked = 0;      // of these
  Count loaded = 0;      // for the rows of a cluster
  Count rows = 0;        // of the clusters
};

/// Of a head of a batch entry. `tile` is of all blocks that share copies of K and V.
void add_blocks(const Problem& p, std::int64_t entry, const Tile& tile, Blocks& sum) {
  const std::int64_t Bc = tile.Bc, cluster = tile.Br, rows = p.queries(entry);
  const auto seen = [&](std::int64_t row) { return p.visible(std::min(row, rows - 1), entry); };
  // The blocks from the first key of the first row to the last key of the last; one if none is
  // seen.
  const auto blocks = [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = seen(first).begin / Bc;
    return std::pair(begin, std::max(begin + 1, (seen(last).end + Bc - 1) / Bc));
  };
  for (std::int64_t first = 0; first < rows; first += cluster) {
    sum.rows += static_cast<Count>(cluster);
    const auto [loaded, loaded_end] = blocks(first, first + cluster - 1);
    sum.loaded += static_cast<Count>(loaded_end - loaded);
    for (std::int64_t row = first; row < first + cluster; row += 64) {
      const auto [begin, end] = blocks(row, row + 63);
      sum.multiplied += static_cast<Count>(end - begin);
      // With a bound on the left, up to the block in which the last row sees its first key.
      const bool bounded = p.window_left >= 0 && p.window_left < p.length(entry);
      const std::int64_t full = seen(row + 63).begin / Bc + bounded;
      for (std::int64_t j = begin; j < end; ++j)
        sum.masked += j < full || (j + 1) * Bc > seen(row).end;
    }
  }
}

Blocks blocks_of(const Problem& p, const Tile& tile) {
  Blocks sum;
  for (std::int64_t entry = 0; entry < p.batch; ++entry) add_blocks(p, entry, tile, sum);
  const auto heads = static_cast<Count>(p.heads);
  return {sum.multiplied * heads, sum.masked * heads, sum.loaded * heads, sum.rows * heads};
}

/// Of a rung that adds `row_exps` exponentials for each row.
void check_blocks(std::string_view id, const Problem& p, Count row_exps) {
  INFO(id << " " << to_string(p));
  const Work w(id, p.head_dim);
  Tile tile = find_rung(id)->find_instance(p.head_dim, p.dtype)->tile;
  tile.Br *= static_cast<int>(w.sharing);
  const Blocks blocks = blocks_of(p, tile);
  const ptxvm::Counts counts = count(id, p);
  CHECK(executed(id, p, "wgmma.mma_async") == blocks.multiplied * 4 * (w.D + w.Bc) / 16);
  CHECK(counts.of(CountClass::kExp) ==
        blocks.multiplied * 64 * w.Bc / 32 + row_exps * blocks.rows / 8);
  // One select for each score of a masked block: no row is repaired.
  CHECK(executed(id, p, "selp.f32") == blocks.masked * 64 * w.Bc / 32);
  CHECK(counts.bulk_load.bytes == (blocks.rows + w.sharing * 2 * blocks.loaded * w.Bc) * w.D * 2);
}

void check_window(const Problem& p) {
  check_blocks("37", p, 0);
}

/// The rows of a batch entry of a packed batch, as a problem of its own.
Inputs inputs_of(const Problem& batch, const Inputs& all, std::int64_t entry, const Problem& own) {
  Inputs inputs = make_inputs(own, Distribution::normal, 1);
  for (std::int64_t head = 0; head < batch.heads; ++head) {
    const std::int64_t from = entry * batch.heads + head, d = batch.head_dim;
    for (std::int64_t i = 0; i < own.seq_q * d; ++i)
      inputs.q.set(q_row(own, head, 0) * d + i, all.q.at(q_row(batch, from, 0) * d + i));
    for (std::int64_t i = 0; i < own.seq_kv * d; ++i) {
      const std::int64_t to = kv_row(own, inputs, head, 0) * d + i;
      inputs.k.set(to, all.k.at(kv_row(batch, all, from, 0) * d + i));
      inputs.v.set(to, all.v.at(kv_row(batch, all, from, 0) * d + i));
    }
  }
  return inputs;
}

Problem packed(std::vector<std::int64_t> queries, std::vector<std::int64_t> keys, int dim) {
  return {.batch = std::ssize(queries),
          .heads = 2,
          .seq_q = *std::max_element(queries.begin(), queries.end()),
          .seq_kv = *std::max_element(keys.begin(), keys.end()),
          .head_dim = dim,
          .query_lengths = std::move(queries),
          .lengths = std::move(keys)};
}

}  // namespace

TEST_CASE("37 loads and multiplies the key blocks that a window touches, and no others") {
  for (const int dim : {64, 128}) {
    for (const std::int64_t left : {-1, 0, 63, 127, 128, 300}) {
      for (const std::int64_t right : {-1, 0, 1, 70, 200}) {
        Problem p = square(700, dim);
        p.window_left = left;
        p.window_right = right;
        check_window(p);
        if (left == 63 || left == 300) {
          p.seq_q = 300;
          check_window(p);
          std::swap(p.seq_q, p.seq_kv);
          check_window(p);
        }
      }
    }
  }
  // A window of 1024 keys among 8192: nine blocks for 64 rows, two or three masked, and ten
  // loaded for 256 rows; fewer for the first 1024 rows.
  Problem p = square(8192, 128);
  p.causal = true;
  p.window_left = 1023;
  const Blocks blocks = blocks_of(p, {256, 128, 12});
  CHECK(blocks.multiplied == 112 * 9 + 2 * (8 * 9 / 2));
  CHECK(blocks.masked == 56 * 5 + 2 * (1 + 7 * 2));
  CHECK(blocks.loaded == 28 * 10 + 2 + 4 + 6 + 8);
}

TEST_CASE("38 adds two exponentials for each row, and a sink changes no count") {
  for (const int dim : {64, 128}) {
    INFO("head_dim " << dim);
    Problem problem = square(kSeq, dim, kHeads);
    const ptxvm::Counts before = count("38", problem);
    problem.sinks = true;
    const ptxvm::Counts after = count("38", problem);
    CHECK(after.of(CountClass::kExp) == before.of(CountClass::kExp));
    CHECK(after.bulk_load == before.bulk_load);
    // Each lane of a consumer loads the sink of its head.
    const Work w("38", dim);
    CHECK(after.global_load.requests == w.tiles * w.warps);
  }
}

TEST_CASE("39 loads and multiplies the key blocks that each sequence touches, and no others") {
  for (const int dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      Problem p = packed({300, 0, 64, 1, 700, 20}, {300, 90, 321, 257, 700, 0}, dim);
      p.causal = causal;
      check_blocks("39", p, 2);
      p.window_left = 100;
      check_blocks("39", p, 2);
      check_blocks("39", square(300, dim, 2), 2);
    }
  }
}

TEST_CASE("39 gives each sequence the bits that it has alone") {
  for (const int dim : {64, 128}) {
    Problem p = packed({300, 1, 64, 520}, {300, 257, 321, 520}, dim);
    p.causal = true;
    const Inputs all = make_inputs(p, Distribution::normal, 1);
    VmDevice device({.ptx = kernels()});
    device.load(p, all);
    device.launch(plan_of(*find_rung("39"), p));
    const HostTensor together = device.download_output();
    for (std::int64_t entry = 0; entry < p.batch; ++entry) {
      Problem own = p;
      own.batch = 1, own.seq_q = p.queries(entry), own.seq_kv = p.length(entry);
      own.query_lengths.clear(), own.lengths.clear();
      device.load(own, inputs_of(p, all, entry, own));
      device.launch(plan_of(*find_rung("39"), own));
      const HostTensor alone = device.download_output();
      for (std::int64_t head = 0; head < p.heads; ++head)
        for (std::int64_t i = 0; i < own.seq_q * dim; ++i) {
          const std::int64_t first = q_row(p, entry * p.heads + head, 0) * dim;
          if (together.at(first + i) == alone.at(q_row(own, head, 0) * dim + i)) continue;
          FAIL(to_string(own) << ", element " << i << " of head " << head);
        }
    }
  }
}
