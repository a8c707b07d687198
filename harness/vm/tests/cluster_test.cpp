// SPDX-License-Identifier: MIT
// Blocks of a cluster: each other's shared memory, remote mbarriers, multicast, the common barrier.
#include <cstring>
#include <numeric>

#include "catch.h"
#include "ptxvm/races.h"
#include "ptxvm/trace.h"
#include "run_ptx.h"

using namespace ptxvm;
using ptxvm_test::fault;
using ptxvm_test::found;

namespace {

constexpr uint32_t kBlocks = 2, kTiles = 6;

struct ClusterRun {
  LaunchResult result;
  std::vector<uint32_t> out;
  CountReport counts;
  std::string trace;
  std::string fault, found;  ///< See run_ptx.h.
};

struct Setup {
  uint32_t threads = 64, blocks = kBlocks, cluster = kBlocks;
  Order order = Order::kForward;
  int host_threads = 1;
};

// Tile t, half h, word i.
uint32_t word(uint32_t tile, uint32_t half, uint32_t i) {
  return tile * 1000 + half * 100 + i;
}

ClusterRun run(const std::string& text, const Setup& setup = {}) {
  const Module module = Module::parse(text, "cluster.ptx");
  Memory memory;
  std::vector<uint32_t> tensor;
  for (uint32_t t = 0; t < kTiles; ++t) {
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t i = 0; i < 64; ++i) tensor.push_back(word(t, half, i));
    }
  }
  TensorMap map;
  map.base = memory.upload("tensor", std::as_bytes(std::span(tensor)));
  map.dims = {128, 2 * kTiles, 1, 1, 1};
  map.strides = {2, 256, 256, 256, 256};
  map.box = {128, 1, 1, 1, 1};
  const Address out = memory.allocate("out", size_t{setup.blocks} * kTiles * 512, Fill::kZero);
  LaunchConfig config;
  config.grid = {setup.blocks, 1, 1};
  config.cluster = {setup.cluster, 1, 1};
  config.block = {setup.threads, 1, 1};
  config.arguments = {Argument::tensor_map(map), Argument::pointer(out)};
  Races races;
  Counters counters;
  Trace trace({0, 1});
  Options options;
  options.threads = setup.host_threads;
  options.warp_order = setup.order;
  options.observers = {&races, &counters, &trace};
  ClusterRun r;
  r.result = launch(module, "k", config, memory, options);
  r.fault = fault(r.result, module.kernel("k"));
  r.found = found(r.result, module.kernel("k"));
  r.out.resize(memory.bytes(out).size() / 4);
  std::memcpy(r.out.data(), memory.bytes(out).data(), r.out.size() * 4);
  r.counts = counters.report();
  r.trace = trace.json();
  return r;
}

// %out is the thread's place in the buffer, 4 bytes each; %rank and %peer are blocks of the
// cluster.
std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{
  .reg .b64 %d<8>, %out, %map;
  .reg .b32 %r<24>, %thread, %lane, %warp, %rank, %peer, %block;
  .reg .pred %p<8>, %first;
  .shared .align 1024 .b8 tiles[1024];
  .shared .align 8 .b8 full[16];
  .shared .align 8 .b8 empty[16];
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [out];
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  and.b32 %lane, %thread, 31;
  shr.u32 %warp, %thread, 5;
  mov.u32 %rank, %cluster_ctarank;
  xor.b32 %peer, %rank, 1;
  setp.eq.u32 %first, %thread, 0;
)" + body +
         "  ret;\n}\n";
}

const std::string kSync =
    "  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n";

const std::string kRelaxed =
    "  barrier.cluster.arrive.relaxed.aligned;\n  barrier.cluster.wait.acquire.aligned;\n";

// What is found in both orders of the warps.
std::string in_both_orders(const std::string& body) {
  const std::string forward = run(kernel(body), {.order = Order::kForward}).found;
  const std::string reversed = run(kernel(body), {.order = Order::kReversed}).found;
  return forward == reversed ? forward : forward + "reversed:\n" + reversed;
}

// Both blocks load half of each tile for both; a ring of two stages.
const std::string kRing = R"(
  @%first mbarrier.init.shared.b64 [full], 1;
  @%first mbarrier.init.shared.b64 [full+8], 1;
  @%first mbarrier.init.shared.b64 [empty], 64;
  @%first mbarrier.init.shared.b64 [empty+8], 64;
  @%first fence.mbarrier_init.release.cluster;  // sync
  barrier.cluster.arrive.release.aligned;  // sync
  barrier.cluster.wait.acquire.aligned;  // sync
  mov.u32 %r1, 0;
  setp.ne.u32 %p1, %warp, 0;
  @%p1 bra $consume;
  @!%first bra $end;
$produce:
  and.b32 %r2, %r1, 1;
  shr.u32 %r3, %r1, 1;
  and.b32 %r3, %r3, 1;
  xor.b32 %r3, %r3, 1;
  mov.u32 %r4, empty;
  mad.lo.u32 %r4, %r2, 8, %r4;
$wait_empty:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], %r3;  // sync
  @!%p2 bra $wait_empty;  // with the line before
  mov.u32 %r5, full;
  mad.lo.u32 %r5, %r2, 8, %r5;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 512;  // sync
  mov.u32 %r6, tiles;
  mad.lo.u32 %r6, %r2, 512, %r6;
  mad.lo.u32 %r6, %rank, 256, %r6;
  mad.lo.u32 %r7, %r1, 2, %rank;
  mov.u16 %mask, 3;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r6], [%map, {0, %r7}], [%r5], %mask;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p3, %r1, 6;
  @%p3 bra $produce;
  bra $end;
$consume:
  and.b32 %r2, %r1, 1;
  shr.u32 %r3, %r1, 1;
  and.b32 %r3, %r3, 1;
  mov.u32 %r5, full;
  mad.lo.u32 %r5, %r2, 8, %r5;
$wait_full:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], %r3;  // sync
  @!%p2 bra $wait_full;  // with the line before
  mov.u32 %r6, tiles;
  mad.lo.u32 %r6, %r2, 512, %r6;
  mad.lo.u32 %r6, %lane, 16, %r6;
  ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r6];
  mad.lo.u32 %r12, %block, 6, %r1;
  mad.lo.u32 %r12, %r12, 32, %lane;
  mad.wide.u32 %d1, %r12, 16, %out;
  st.global.v4.b32 [%d1], {%r8, %r9, %r10, %r11};
  mov.u32 %r4, empty;
  mad.lo.u32 %r4, %r2, 8, %r4;
  mapa.shared::cluster.u32 %r13, %r4, %peer;
  mbarrier.arrive.shared::cta.b64 _, [%r4];  // sync
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];  // sync
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p3, %r1, 6;
  @%p3 bra $consume;
$end:
  barrier.cluster.arrive.release;  // sync
  barrier.cluster.wait.acquire;  // sync
)";

std::string ring(const std::string& body = kRing) {
  std::string text = kernel(body);
  const std::string before = "  .reg .pred %p<8>";
  return text.replace(text.find(before), before.size(), "  .reg .b16 %mask;\n" + before);
}

void check_ring(const ClusterRun& r, uint32_t blocks) {
  if (r.result.fault) FAIL(r.result.fault->format());
  for (const Finding& f : r.result.findings) FAIL_CHECK(format(f));
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t t = 0; t < kTiles; ++t) {
      for (uint32_t i = 0; i < 128; ++i)
        REQUIRE(r.out[(b * kTiles + t) * 128 + i] == word(t, i / 64, i % 64));
    }
  }
}

// Lines that end in `// sync`, each left out; a wait goes with its loop.
std::vector<std::string> mutants(std::vector<std::string>& names) {
  std::vector<std::string> out;
  const std::string mark = "  // sync\n", more = "  // with the line before\n";
  for (size_t at = kRing.find(mark); at != std::string::npos; at = kRing.find(mark, at + 1)) {
    const size_t begin = kRing.rfind('\n', at) + 1;
    size_t end = at + mark.size();
    names.push_back(kRing.substr(begin, at - begin));
    const size_t next = kRing.find('\n', end) + 1;
    if (kRing.substr(end, next - end).ends_with(more)) end = next;
    out.push_back(kRing.substr(0, begin) + kRing.substr(end));
  }
  return out;
}

}  // namespace

TEST_CASE("blocks of a cluster know their places") {
  const ClusterRun r = run(kernel(R"(
  mov.u32 %r1, %cluster_nctarank;
  mov.u32 %r2, %clusterid.x;
  mad.lo.u32 %r3, %r2, 100, %rank;
  mad.lo.u32 %r3, %r1, 10, %r3;
  mad.lo.u32 %r4, %block, 64, %thread;
  mad.wide.u32 %d1, %r4, 4, %out;
  st.global.u32 [%d1], %r3;
)"),
                           {.blocks = 4});
  REQUIRE(r.result.ok());
  for (uint32_t b = 0; b < 4; ++b) CHECK(r.out[b * 64 + 7] == b / 2 * 100 + 20 + b % 2);
}

TEST_CASE("shared memory of another block, by shared and by generic addresses") {
  for (const bool generic : {false, true}) {
    const std::string access = generic ? R"(
  cvt.u64.u32 %d2, %r1;
  cvta.shared.u64 %d2, %d2;
  mapa.u64 %d3, %d2, %peer;
  getctarank.u64 %r5, %d3;
  ld.u32 %r3, [%d3];
  add.u32 %r3, %r3, %r5;
  st.u32 [%d3+512], %r3;
)"
                                       : R"(
  mapa.shared::cluster.u32 %r2, %r1, %peer;
  getctarank.shared::cluster.u32 %r5, %r2;
  ld.shared::cluster.u32 %r3, [%r2];
  add.u32 %r3, %r3, %r5;
  st.shared::cluster.u32 [%r2+512], %r3;
)";
    const std::string text = kernel(
        "  mov.u32 %r1, tiles;\n  mad.lo.u32 %r1, %thread, 4, %r1;\n"
        "  mad.lo.u32 %r4, %rank, 1000, %thread;\n"
        "  st.shared.u32 [%r1], %r4;\n" +
        kSync + access + kSync + R"(
  ld.shared.u32 %r6, [%r1+512];
  mad.lo.u32 %r4, %block, 64, %thread;
  mad.wide.u32 %d1, %r4, 4, %out;
  st.global.u32 [%d1], %r6;
)");
    for (Order order : {Order::kForward, Order::kReversed}) {
      const ClusterRun r = run(text, {.order = order});
      if (r.result.fault) FAIL(r.result.fault->format());
      for (const Finding& f : r.result.findings) FAIL_CHECK(format(f));
      // What was read is the block's own word, and the rank is its own too.
      for (uint32_t b = 0; b < kBlocks; ++b) CHECK(r.out[b * 64 + 5] == b * 1000 + 5 + b);
    }
  }
}

TEST_CASE("a window of shared memory is the block's, or that of the cluster") {
  const ClusterRun r = run(kernel(R"(
  mov.u64 %d1, tiles;
  cvta.shared::cluster.u64 %d1, %d1;
  mapa.u64 %d2, %d1, %rank;
  mapa.u64 %d3, %d1, %peer;
  mov.u32 %r1, 0;
  isspacep.shared %p1, %d2;
  @%p1 or.b32 %r1, %r1, 1;
  isspacep.shared::cta %p1, %d3;
  @%p1 or.b32 %r1, %r1, 2;
  isspacep.shared %p1, %d3;
  @%p1 or.b32 %r1, %r1, 4;
  isspacep.shared::cluster %p1, %d1;
  @%p1 or.b32 %r1, %r1, 8;
  isspacep.shared::cluster %p1, %d3;
  @%p1 or.b32 %r1, %r1, 16;
  add.u64 %d4, %d3, 0x2000000;
  isspacep.shared::cluster %p1, %d4;
  @%p1 or.b32 %r1, %r1, 32;
  isspacep.shared::cluster %p1, %out;
  @%p1 or.b32 %r1, %r1, 64;
  cvta.to.shared::cluster.u64 %d5, %d3;
  cvt.u32.u64 %r2, %d5;
  getctarank.shared::cluster.u32 %r3, %r2;
  setp.eq.u32 %p1, %r3, %peer;
  @%p1 or.b32 %r1, %r1, 128;
  mad.lo.u32 %r4, %block, 64, %thread;
  mad.wide.u32 %d6, %r4, 4, %out;
  st.global.u32 [%d6], %r1;
)" + kSync));
  if (r.result.fault) FAIL(r.result.fault->format());
  for (uint32_t b = 0; b < kBlocks; ++b) CHECK(r.out[b * 64 + 3] == 1 + 8 + 16 + 128);
}

TEST_CASE("a ring of multicast tiles") {
  for (const uint32_t blocks : {2u, 6u}) {
    for (Order order : {Order::kForward, Order::kReversed}) {
      for (const int threads : {1, 2}) {
        const ClusterRun r =
            run(ring(), {.blocks = blocks, .order = order, .host_threads = threads});
        check_ring(r, blocks);
        // Each block asks for half of the bytes that come to it.
        CHECK(r.counts.total.bulk_load.global_bytes == uint64_t{blocks} * kTiles * 256);
        CHECK(r.counts.total.bulk_load.bytes == uint64_t{blocks} * kTiles * 512);
      }
    }
  }
  const ClusterRun r = run(ring());
  CHECK(r.trace.find("bulk load: 256 bytes, to block 1 of the cluster") != std::string::npos);
  CHECK(r.trace.find("wait: cluster") != std::string::npos);
}

TEST_CASE("every synchronisation of the ring is needed") {
  std::vector<std::string> names;
  const std::vector<std::string> all = mutants(names);
  REQUIRE(all.size() == 10);
  for (size_t i = 0; i < all.size(); ++i) {
    std::string caught;
    for (Order order : {Order::kForward, Order::kReversed})
      caught += run(ring(all[i]), {.order = order}).found;
    INFO(names[i]);
    CHECK(!caught.empty());
  }
}

TEST_CASE("a block that uses another's memory before or after its time is found") {
  const std::string body = R"(
  mov.u32 %r1, tiles;
  mad.lo.u32 %r1, %thread, 4, %r1;
  mapa.shared::cluster.u32 %r2, %r1, %peer;
)";
  const std::string write = "  st.shared::cluster.u32 [%r2], 1;\n";
  const auto checked = [&](const std::string& rest) { return in_both_orders(body + rest); };
  CHECK(checked(kSync + write + kSync) == "");
  CHECK(checked(write + kSync) == "cluster 26 x4\n");
  CHECK(checked(kSync + write) ==
        "invalid 28 block 1 warp 0 lane 0\ncluster 28\n"
        "reversed:\ninvalid 28 warp 1 lane 0\ncluster 28\n");
  // Not ordered with the block's own access.
  const std::string read = "  ld.shared.u32 %r3, [%r1];\n";
  CHECK(checked(kSync + write + read + kSync) == "race 29/28 x2\nrace 28/29 x2\n");
  CHECK(checked(kSync + write + kSync + read) == "");
  // A relaxed arrival releases nothing.
  CHECK(checked(kSync + write + kRelaxed + read) == "race 31/28 x4\ncluster 28 x4\n");
}

// As CUTLASS begins every kernel of a cluster.
TEST_CASE("a relaxed arrival hands on what a fence covers: mbarriers, or all") {
  const std::string init = "  @%first mbarrier.init.shared.b64 [full], 1;\n";
  const std::string fence = "  fence.mbarrier_init.release.cluster;\n";
  const std::string arrive =
      "  mov.u32 %r1, full;\n  mapa.shared::cluster.u32 %r1, %r1, %peer;\n"
      "  @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];\n" +
      kSync;
  CHECK(in_both_orders(init + fence + kRelaxed + arrive) == "");
  CHECK(in_both_orders(init + kSync + arrive) == "");
  CHECK(in_both_orders(init + kRelaxed + arrive) == "mbarrier 27/22 x2\n");
  // The fence comes before the initialisation, or behind the arrival.
  CHECK(in_both_orders(fence + init + kRelaxed + arrive) == "mbarrier 28/23 x2\n");
  CHECK(in_both_orders(init + kRelaxed + fence + arrive) == "mbarrier 28/22 x2\n");
  // Ordinary accesses take a fence that covers them.
  const std::string write =
      "  mov.u32 %r1, tiles;\n  mapa.shared::cluster.u32 %r2, %r1, %peer;\n"
      "  @%first st.shared::cluster.u32 [%r2], %thread;\n";
  const std::string read = "  @%first ld.shared.u32 %r3, [%r1];\n";
  CHECK(in_both_orders(kRelaxed + write + "  fence.acq_rel.cluster;\n" + kRelaxed + read) == "");
  for (const char* other :
       {"", "  fence.acq_rel.cta;\n", "  fence.mbarrier_init.release.cluster;\n"}) {
    INFO(other);
    const std::string line = *other ? "30" : "29";
    CHECK(in_both_orders(kRelaxed + write + other + kRelaxed + read) ==
          "race " + line + "/26 x2\ncluster 26 x2\n");
  }
  CHECK(in_both_orders(kRelaxed + "  fence.acq_rel.cluster;\n" + write + kRelaxed + read) ==
        "race 30/27 x2\ncluster 27 x2\n");
}

// The checker remembers 64 readers of a place apart; the warps of a large cluster are more.
TEST_CASE("blocks that keep to themselves have no races, however many warps read") {
  const ClusterRun r = run(kernel("  mov.u32 %r1, tiles;\n"
                                  "  @%first st.shared.u32 [%r1], %thread;\n"
                                  "  bar.sync 0;\n"
                                  "  ld.shared.u32 %r3, [%r1];\n"
                                  "  bar.sync 0;\n"
                                  "  @%first st.shared.u32 [%r1], %r3;\n"),
                           {.threads = 1024, .blocks = 4, .cluster = 4});
  if (r.result.fault) FAIL(r.result.fault->format());
  for (const Finding& f : r.result.findings) FAIL_CHECK(format(f));
}

TEST_CASE("misuse of clusters") {
  const auto stopped = [](const std::string& body) { return run(ring(body)).fault; };
  CHECK_NOTHROW(run(kernel(""), {.blocks = 4}));
  CHECK_THROWS_AS(run(kernel(""), {.blocks = 3}), Error);
  CHECK_NOTHROW(run(kernel(""), {.blocks = 16, .cluster = 16}));
  CHECK_THROWS_AS(run(kernel(""), {.blocks = 17, .cluster = 17}), Error);
  CHECK(stopped("  mov.u32 %r1, full;\n  mapa.shared::cluster.u32 %r2, %r1, 2;\n"
                "  ld.shared::cluster.u32 %r1, [%r2];\n") == "out of bounds 25 warp 0 lane 0");
  CHECK(stopped("  ld.shared::cluster.u32 %r1, [167773184];\n") ==
        "out of bounds 23 warp 0 lane 0");
  CHECK(stopped("  mov.u32 %r1, full;\n  mapa.shared::cluster.u32 %r2, %r1, %peer;\n"
                "  ld.shared.u32 %r3, [%r2];\n") == "out of bounds 25 warp 0 lane 0");
  CHECK(stopped("  barrier.cluster.arrive.aligned;\n  barrier.cluster.arrive.aligned;\n") ==
        "invalid 24 warp 0");
  CHECK(stopped("  barrier.cluster.wait.aligned;\n") == "invalid 23 warp 0");
  const std::string init = "  @%first mbarrier.init.shared.b64 [full], 1;\n" + kSync;
  CHECK(stopped(init +
                "  mov.u32 %r1, full;\n  cvt.u64.u32 %d1, %r1;\n  cvta.shared.u64 %d1, %d1;\n"
                "  mapa.u64 %d2, %d1, %peer;\n"
                "  mbarrier.test_wait.parity.b64 %p1, [%d2], 0;\n") ==
        "invalid 30 block 1 warp 1 lane 0");
  CHECK(stopped(init + "  mov.u16 %mask, 5;\n  mov.u32 %r1, tiles;\n  mov.u32 %r2, full;\n"
                       "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                       ".multicast::cluster [%r1], [%out], 16, [%r2], %mask;\n") ==
        "invalid 29 block 1 warp 1 lane 0");
  // Warps of block 0 wait for the cluster, those of block 1 for threads that there are not.
  CHECK(stopped("  setp.eq.u32 %p1, %rank, 1;\n  @%p1 bra $end;\n" + kSync +
                "$end:\n  bar.sync 1, 96;\n") == "deadlock 26");
  // An arrival in another block gives no state.
  const auto refused_at = [](const std::string& destination) {
    try {
      Module::parse(kernel("  mbarrier.arrive.shared::cluster.b64 " + destination + ", [full];\n"),
                    "cluster.ptx");
    } catch (const Error& error) {
      const SourceLocation& where = error.diagnostics().at(0).where;
      return std::to_string(where.line) + ":" + std::to_string(where.column);
    }
    return std::string();
  };
  CHECK(refused_at("_") == "");
  CHECK(refused_at("%d1") == "22:39");
}
