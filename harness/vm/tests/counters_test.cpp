// SPDX-License-Identifier: MIT
// Bank conflicts, sectors and instruction counts against hand calculation.
#include <array>

#include "catch.h"
#include "memory/banks.h"
#include "memory/sectors.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

template <class F>
Wavefronts banks(uint32_t bytes, F address, uint32_t mask = 0xffffffff) {
  std::array<uint32_t, 32> a{};
  for (uint32_t i = 0; i < 32; ++i) a[i] = address(i);
  return shared_wavefronts(mask, a.data(), bytes, true);
}

template <class F>
uint32_t sectors(uint32_t bytes, F address, uint32_t mask = 0xffffffff) {
  std::array<uint64_t, 32> a{};
  for (uint64_t i = 0; i < 32; ++i) a[i] = address(i);
  return global_sectors(mask, a.data(), bytes);
}

}  // namespace

TEST_CASE("wavefronts of 4-byte accesses") {
  CHECK(banks(4, [](uint32_t i) { return i * 4; }).actual == 1);
  CHECK(banks(4, [](uint32_t) { return 64u; }).actual == 1);         // broadcast
  CHECK(banks(4, [](uint32_t i) { return i * 8; }).actual == 2);     // stride 2
  CHECK(banks(4, [](uint32_t i) { return i * 128; }).actual == 32);  // a column
  CHECK(banks(4, [](uint32_t i) { return i * 132; }).actual == 1);   // a padded column
  CHECK(banks(
            4, [](uint32_t i) { return i * 128; }, 0xff)
            .actual == 8);
  CHECK(banks(4, [](uint32_t i) { return i * 128; }).ideal == 1);
  CHECK(banks(4, [](uint32_t i) { return i % 2 * 128; }).actual == 2);  // two words of one bank
  CHECK(banks(2, [](uint32_t i) { return i * 2; }).actual == 1);        // halves share words
  CHECK(banks(1, [](uint32_t i) { return i * 128; }).actual == 32);
}

TEST_CASE("wavefronts of wide accesses go in groups") {
  CHECK(banks(8, [](uint32_t i) { return i * 8; }).actual == 2);
  CHECK(banks(16, [](uint32_t i) { return i * 16; }).actual == 4);
  CHECK(banks(16, [](uint32_t i) { return i * 16; }).ideal == 4);
  CHECK(banks(16, [](uint32_t i) { return i * 256; }).actual == 32);  // rows of 128 halves: 8-way
  CHECK(banks(16, [](uint32_t i) { return i * 256 + (i % 8) * 16; }).actual == 4);
  CHECK(banks(
            16, [](uint32_t i) { return i * 16; }, 0xff)
            .actual == 1);
}

TEST_CASE("a wide load that pairs of lanes share goes in groups twice as large") {
  CHECK(banks(16, [](uint32_t) { return 64u; }).actual == 2);             // 16 lanes, one unit each
  CHECK(banks(16, [](uint32_t i) { return i / 16 * 64; }).actual == 2);   // half a warp each
  CHECK(banks(16, [](uint32_t i) { return i / 2 * 16; }).actual == 2);    // 8 units for 16 lanes
  CHECK(banks(16, [](uint32_t i) { return i % 2 * 16; }).actual == 2);    // lane ^ 2 has the same
  CHECK(banks(16, [](uint32_t i) { return i / 2 * 128; }).actual == 16);  // 8 ways, twice
  CHECK(banks(8, [](uint32_t) { return 64u; }).actual == 1);
  CHECK(banks(8, [](uint32_t i) { return i / 2 * 8; }).actual == 1);  // 16 units, all banks once
  CHECK(banks(4, [](uint32_t i) { return i / 2 * 4; }).actual == 1);  // one group already
  // One lane off, in either half of the warp, and all go in the small groups.
  CHECK(banks(16, [](uint32_t i) { return i == 5 ? 16u : 0u; }).actual == 4);
  CHECK(banks(16, [](uint32_t i) { return i == 31 ? 16u : 0u; }).actual == 4);
  CHECK(banks(8, [](uint32_t i) { return i == 5 ? 8u : 0u; }).actual == 2);
  CHECK(banks(16, [](uint32_t i) { return i % 8 / 4 * 16; }).actual == 2);
  CHECK(banks(16, [](uint32_t i) { return i % 4 * 16; }).actual ==
        4);  // only lane ^ 4 has the same
}

TEST_CASE("sectors") {
  CHECK(sectors(4, [](uint64_t i) { return i * 4; }) == 4);
  CHECK(sectors(4, [](uint64_t i) { return i * 4 + 16; }) == 5);
  CHECK(sectors(16, [](uint64_t i) { return i * 16; }) == 16);
  CHECK(sectors(4, [](uint64_t i) { return i * 1024; }) == 32);
  CHECK(sectors(4, [](uint64_t) { return 0; }) == 1);
}

TEST_CASE("counts of a kernel, by kind and by line") {
  std::vector<std::byte> in(4096);
  const Run r = run(".file 1 \"/src/k.cu\"\n" + kernel(R"(
  .shared .align 16 .b8 area[4096];
  .loc 1 10 0
  shl.b32 %r1, %lane, 4; mov.u32 %r2, area; add.u32 %r3, %r1, %r2;
  .loc 1 11 0
  cp.async.cg.shared.global [%r3], [%in], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  .loc 1 12 0
  and.b32 %r4, %lane, 7; shl.b32 %r4, %r4, 8; add.u32 %r4, %r4, %r2;
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r5, %r6}, [%r4];
  .loc 1 13 0
  shl.b32 %r7, %lane, 7; and.b32 %r7, %r7, 4095; add.u32 %r7, %r7, %r2;
  st.shared.u32 [%r7], %r5;
  .loc 1 14 0
  ex2.approx.ftz.f32 %f1, %f1;
  st.global.v4.b32 [%out], {%r5, %r6, %r5, %r6};)"),
                    in, 64);
  REQUIRE(!r.result.fault);
  const Counts& c = r.counts.total;
  CHECK(c.of(CountClass::kCpAsync) == 2);
  CHECK(c.of(CountClass::kCpAsyncGroup) == 4);
  CHECK(c.of(CountClass::kExp) == 2);
  CHECK(c.of(CountClass::kLdMatrix) == 2);
  CHECK(c.shared_copy.wavefronts == 8);
  CHECK(c.shared_copy.conflicts() == 0);
  CHECK(c.global_copy.sectors == 32);
  CHECK(c.global_copy.bytes == 1024);
  CHECK(c.ldmatrix.wavefronts == 2 * 2 * 8);  // rows 256 bytes apart: eight in the same banks
  CHECK(c.ldmatrix.ideal == 4);
  CHECK(c.shared_store.wavefronts == 2 * 32);
  CHECK(c.global_store.sectors == 2 * 16);
  CHECK(c.global_store.bytes == 1024);
  bool seen = false;
  for (const SourceCounts& line : r.counts.by_source(LineView::kOutermost)) {
    if (line.where.line != 12) continue;
    seen = true;
    CHECK(line.where.file == "/src/k.cu");
    CHECK(line.counts.ldmatrix.wavefronts == 32);
    CHECK(line.counts.of(CountClass::kInteger) == 6);
  }
  CHECK(seen);
}

TEST_CASE("a request with no lane is counted as an instruction only") {
  const Run r = run(kernel("  setp.gt.u32 %p1, %lane, 100;\n  @%p1 st.global.u32 [%out], %lane;"));
  CHECK(r.counts.total.of(CountClass::kStoreGlobal) == 1);
  CHECK(r.counts.total.global_store.requests == 0);
}

TEST_CASE("observers change nothing") {
  class Nosy : public Observer {
   public:
    class Eye : public Probe {
     public:
      void instruction(const InstructionEvent&) override { ++instructions; }
      uint64_t instructions = 0;
    };
    std::unique_ptr<Probe> make_probe() override { return std::make_unique<Eye>(); }
    void end(std::span<const std::unique_ptr<Probe>> probes) override {
      for (const auto& p : probes) instructions += static_cast<const Eye&>(*p).instructions;
    }
    bool wants_instructions() const override { return true; }
    uint64_t instructions = 0;
  };
  const std::string text = kernel(R"(
  mov.u32 %r1, 0; mov.u32 %r2, 1;
$loop:
  mad.lo.u32 %r2, %r2, 3, %r1;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %lane; @%p1 bra $loop;
  st.global.u32 [%out], %r2;)");
  const Run plain = run(text);
  Nosy nosy;
  Options options;
  options.observers = {&nosy};
  const Run watched = run(text, {}, 32, 0, options);
  CHECK(plain.out == watched.out);
  CHECK(nosy.instructions == watched.counts.total.total_instructions());
}

TEST_CASE("lines of a kernel's file stand before those of a header, whatever their folders") {
  CountReport report;
  report.by_instruction = {{1, "add", {{"/a/header.h", 7, 0}, {"/b/kernel.cu", 3, 0}}, {}},
                           {2, "add", {{"/b/kernel.cu", 4, 0}}, {}}};
  const std::vector<SourceCounts> lines = report.by_source(LineView::kInnermost);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].where.file == "/b/kernel.cu");
  CHECK(lines[1].where.file == "/a/header.h");
}
