// SPDX-License-Identifier: MIT
// Atomic updates of vectors, reductions by bulk copies, and what completes on the mbarrier of
// another block: copies between shared memories, st.async and red.async.
#include <array>

#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// Two blocks of a cluster, or one, each with 64 words of shared memory at `words` and a barrier at
// `bar`; every thread stores %r9 at its place at the end. A single block is its own peer.
struct Pair {
  LaunchResult result;
  std::vector<uint32_t> out;
  std::string found;
};

Pair run_pair(const std::string& issue, uint32_t bytes, const std::string& value = "",
              uint32_t blocks = 2, const std::string& directives = "") {
  const std::string text = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
)" + directives + R"({
  .reg .b64 %d<4>, %out;
  .reg .b32 %r<16>, %thread, %peer, %there, %bar;
  .reg .pred %p<4>, %first;
  .shared .align 128 .b8 words[256];
  .shared .align 128 .b8 sent[256];
  .shared .align 8 .b8 barrier[8];
  ld.param.u64 %out, [out];
  mov.u32 %thread, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  xor.b32 %peer, %r1, )" + std::to_string(blocks - 1) +
                           R"(;
  setp.eq.u32 %first, %thread, 0;
  mov.u32 %r2, words;
  mov.u32 %r3, barrier;
  mapa.shared::cluster.u32 %there, %r2, %peer;
  mapa.shared::cluster.u32 %bar, %r3, %peer;
  shl.b32 %r4, %thread, 2;
  add.u32 %r5, %r2, %r4;
  add.u32 %there, %there, %r4;
  mov.u32 %r6, sent;
  add.u32 %r7, %r6, %r4;
  mad.lo.u32 %r8, %r1, 1000, %thread;
  st.shared.u32 [%r7], %r8;
)" + value + R"(
  @%first mbarrier.init.shared.b64 [%r3], 1;
  @%first fence.mbarrier_init.release.cluster;
  @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], )" +
                           std::to_string(bytes) + R"(;
  fence.proxy.async.shared::cta;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
)" + issue + R"(
$wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0;
  @!%p1 bra $wait;
  ld.shared.u32 %r9, [%r5];
  mad.lo.u32 %r10, %r1, 64, %thread;
  mad.wide.u32 %d1, %r10, 4, %out;
  st.global.u32 [%d1], %r9;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ret;
}
)";
  const Module module = Module::parse(text, "pair.ptx");
  Memory memory;
  const Address out = memory.allocate("out", 2 * 64 * 4, Fill::kZero);
  LaunchConfig config;
  config.grid = config.cluster = {blocks, 1, 1};
  config.block = {64, 1, 1};
  config.arguments = {Argument::pointer(out)};
  Races races;
  Options options;
  options.observers = {&races};
  Pair p;
  p.result = launch(module, "k", config, memory, options);
  p.found = found(p.result, module.kernel("k"));
  p.out.resize(128);
  std::memcpy(p.out.data(), memory.bytes(out).data(), 512);
  return p;
}

void check_swapped(const Pair& p) {
  if (p.result.fault) FAIL(p.result.fault->format());
  CHECK(p.found == "");
  for (uint32_t i = 0; i < 128; ++i) CHECK(p.out[i] == (i < 64 ? 1000 + i : i - 64));
}

}  // namespace

TEST_CASE("atom and red combine vectors element by element") {
  const Run r = run(kernel(R"(
    mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000; mov.f32 %f4, %f1;
    setp.ne.u32 %p1, %lane, 7;
    red.global.add.v4.f32 [%base], {%f1, %f2, %f3, %f4};
    bar.warp.sync 0xffffffff;
    @%p1 bra $end;
    atom.global.gpu.acq_rel.add.v2.f32 {%f5, %f6}, [%base+8], {%f1, %f2};
    st.global.v2.f32 [%base+32], {%f5, %f6};
$end:)",
                           "sm_90"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<float>(0, 0) == 32);
  CHECK(r.at<float>(0, 1) == 64);
  CHECK(r.at<float>(0, 2) == 97);
  CHECK(r.at<float>(0, 3) == 34);
  CHECK(r.at<float>(2, 0) == 96);
  CHECK(r.at<float>(2, 1) == 32);
}

TEST_CASE("vectors of 16-bit floats: sums, minima, maxima") {
  // 1, -2, NaN, -0 against 3, -3, 1, 0
  const std::string values =
      "mov.b16 %h1, 0x3c00; mov.b16 %h2, 0xc000; mov.b16 %h3, 0x7e00; mov.b16 %h4, 0x8000;\n"
      "mov.b16 %h5, 0x4200; mov.b16 %h6, 0xc200; mov.b16 %h7, 0x3c00; mov.b16 %h8, 0x0000;\n"
      "setp.ne.u32 %p1, %lane, 0; @%p1 exit;\n"
      "st.global.v4.b16 [%base], {%h1, %h2, %h3, %h4};\n";
  const auto after = [&](const std::string& update) {
    const Run r = run(kernel(values + update, "sm_90"));
    if (r.result.fault) FAIL(r.result.fault->format());
    return std::array{r.at<uint16_t>(0, 0), r.at<uint16_t>(0, 1), r.at<uint16_t>(0, 2),
                      r.at<uint16_t>(0, 3)};
  };
  CHECK(after("red.global.add.noftz.v4.f16 [%base], {%h5, %h6, %h7, %h8};") ==
        std::array<uint16_t, 4>{0x4400, 0xc500, 0x7fff, 0x0000});
  CHECK(after("red.global.min.noftz.v4.f16 [%base], {%h5, %h6, %h7, %h8};") ==
        std::array<uint16_t, 4>{0x3c00, 0xc200, 0x3c00, 0x8000});
  CHECK(after("red.global.max.noftz.v4.f16 [%base], {%h5, %h6, %h7, %h8};") ==
        std::array<uint16_t, 4>{0x4200, 0xc000, 0x3c00, 0x0000});
  CHECK(after("mov.b32 %r1, {%h5, %h6}; mov.b32 %r2, {%h7, %h8};\n"
              "red.global.max.noftz.v2.f16x2 [%base], {%r1, %r2};") ==
        std::array<uint16_t, 4>{0x4200, 0xc000, 0x3c00, 0x0000});
}

TEST_CASE("an atomic vector is one of global memory") {
  const Run r =
      run(kernel(".shared .align 16 .b8 s[16];\nmov.u32 %r1, s; cvt.u64.u32 %d1, %r1;\n"
                 "cvta.shared.u64 %d1, %d1; mov.f32 %f1, 0f00000000;\n"
                 "red.add.v2.f32 [%d1], {%f1, %f1};",
                 "sm_90"));
  CHECK(r.fault == "invalid 21 warp 0 lane 0");
}

TEST_CASE("bulk copies combine with what stands in global memory") {
  const auto reduced = [](const std::string& operation, uint32_t word) {
    const Run r =
        run(kernel(".shared .align 128 .b8 s[128];\nmov.u32 %r1, s;\n"
                   "mad.lo.u32 %r2, %lane, 4, %r1; mov.u32 %r3, " +
                       std::to_string(word) +
                       ";\n"
                       "st.shared.u32 [%r2], %r3;\n"
                       "mad.wide.u32 %d1, %lane, 4, %base; st.global.u32 [%d1], 40;\n"
                       "fence.proxy.async; bar.sync 0;\n"
                       "setp.eq.u32 %p1, %lane, 0;\n@!%p1 bra $end;\n"
                       "cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                       operation +
                       " [%base], [%r1], 128;\n"
                       "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n$end:",
                   "sm_90"));
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.at<uint32_t>(0) == r.at<uint32_t>(7, 3));
    return r.at<uint32_t>(0);
  };
  CHECK(reduced("add.u32", 5) == 45);
  CHECK(reduced("min.s32", 0xfffffffd) == 0xfffffffd);
  CHECK(reduced("min.u32", 0xfffffffd) == 40);
  CHECK(reduced("max.s32", 41) == 41);
  CHECK(reduced("and.b32", 8) == 8);
  CHECK(reduced("xor.b32", 8) == 32);
  CHECK(reduced("inc.u32", 40) == 0);
  CHECK(reduced("dec.u32", 50) == 39);
  CHECK(reduced("add.f32", 0) == 40);
  CHECK(reduced("add.noftz.bf16", 0x00010001) == 41u + 0x10000);
  CHECK(reduced("add.u64", 1) == 41);
}

TEST_CASE("tensor copies combine elements of their map's type") {
  const auto reduced = [](MapElement element, const std::string& operation) {
    const std::string text = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
  .reg .b64 %d<4>;
  .reg .b32 %r<8>;
  .reg .pred %p;
  .shared .align 128 .b8 box[128];
  mov.b64 %d1, map;
  cvta.param.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, box;
  mad.lo.u32 %r3, %r1, 4, %r2;
  st.shared.u32 [%r3], 0x40000000;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ne.u32 %p, %r1, 0;
  @%p exit;
  cp.reduce.async.bulk.tensor.1d.global.shared::cta.)" +
                             operation + R"(.bulk_group [%d1, {8}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
)";
    const Module module = Module::parse(text, "tensor.ptx");
    Memory memory;
    const std::vector<uint32_t> ones(32, 0x3f800000);
    TensorMap map;
    map.base = memory.upload("tensor", std::as_bytes(std::span(ones)));
    map.element_bytes = 4;
    map.rank = 1;
    map.dims[0] = map.box[0] = 32;
    map.element = element;
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.arguments = {Argument::tensor_map(map)};
    const LaunchResult result = launch(module, "k", config, memory, {});
    std::array<uint32_t, 32> out;
    std::memcpy(out.data(), memory.bytes(map.base).data(), sizeof out);
    CHECK(out[7] == 0x3f800000);  // before the box
    return result.fault ? fault(result, module.kernel("k")) : std::to_string(out[8]);
  };
  CHECK(reduced(MapElement::kF32, "add") == std::to_string(0x40400000));
  CHECK(reduced(MapElement::kU32, "add") == std::to_string(0x7f800000));
  CHECK(reduced(MapElement::kUnknown, "or") == std::to_string(0x7f800000));
  CHECK(reduced(MapElement::kUnknown, "add") == "invalid 20 warp 0 lane 0");
  CHECK(reduced(MapElement::kF32, "min") == "invalid 20 warp 0 lane 0");
}

TEST_CASE("shared memory is copied to another block") {
  check_swapped(run_pair(R"(
  mapa.shared::cluster.u32 %r11, %r2, %peer;
  @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r6], 256, [%bar];
)",
                         256));
}

TEST_CASE("st.async stores to another block and completes on its barrier") {
  check_swapped(run_pair(
      "  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%there], %r8, [%bar];\n", 256));
}

// So says an H200, which executes plain stores and arrivals through addresses of the cluster.
TEST_CASE("without clusters asynchronous stores and copies between shared memories are invalid") {
  const std::string to_there = " [%there], %r8, [%bar];\n", bytes = ".mbarrier::complete_tx::bytes";
  const std::vector<std::string> refused{
      "  st.async.shared::cluster" + bytes + ".u32" + to_there,
      "  red.async.relaxed.cluster.shared::cluster" + bytes + ".add.u32" + to_there,
      "  @%first cp.async.bulk.shared::cluster.shared::cta" + bytes +
          " [%there], [%r6], 256, [%bar];\n",
  };
  for (const std::string& issue : refused) {
    CHECK(run_pair(issue, 256, "", 1).found.starts_with("invalid 35 "));
    CHECK(run_pair(issue, 256, "", 1, ".explicitcluster\n.reqnctapercluster 1, 1, 1\n").found ==
          "");
  }
  const std::string allowed = R"(
  @%first mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%bar], 0;
  @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];
  st.shared::cluster.u32 [%there], %r8;
)";
  CHECK(!run_pair(allowed, 0, "", 1).result.fault);
}

TEST_CASE("too few bytes of st.async leave the others waiting") {
  const Pair p = run_pair(
      "  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%there], %r8, [%bar];\n", 260);
  CHECK(p.found == "deadlock 38\n");
}

TEST_CASE("red.async combines with the shared memory of another block") {
  const std::string add =
      "  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%there], "
      "%r8, [%bar];\n";
  const Pair p = run_pair(add + add, 512, "  st.shared.u32 [%r5], 7;\n");
  if (p.result.fault) FAIL(p.result.fault->format());
  CHECK(p.found == "");
  for (uint32_t i = 0; i < 128; ++i) CHECK(p.out[i] == 7 + 2 * (i < 64 ? 1000 + i : i - 64));
}

TEST_CASE("updates of another block race with what is not ordered with them") {
  const std::string add =
      "  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%there], "
      "%r8, [%bar];\n";
  const std::string zero = "  st.shared.u32 [%r5], 7;\n";
  // A read before the wait, and a write.
  CHECK(run_pair(add + "  ld.shared.u32 %r11, [%r5];\n", 256, zero).found ==
        "race 37/36 x2\nrace 36/37 x64\n");
  CHECK(run_pair(add + zero, 256, zero).found == "race 36/37 x64\nrace 37/36 x2\n");
  const std::string copy = R"(
  mapa.shared::cluster.u32 %r11, %r2, %peer;
  @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r6], 256, [%bar];
)";
  CHECK(run_pair(copy, 256).found == "");
  // The source is overwritten while it is read.
  CHECK(run_pair(copy + "  st.shared.u32 [%r7], 1;\n", 256).found == "race 37/38\nrace 38/37 x3\n");
}
