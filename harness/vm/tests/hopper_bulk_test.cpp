// SPDX-License-Identifier: MIT
#include "catch.h"
#include "memory/tensor_copy.h"
#include "ptxvm/races.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

constexpr uint32_t kBox = 16384;  // room for a box in shared memory and in the output

struct TensorRun {
  LaunchResult result;
  std::string fault;
  std::vector<std::byte> out, tensor;
  Counts counts;
};

// The tensor copy kernel: loads one box and writes shared memory to `out` as it stands (or, with
// `stores`, fills shared memory from `out` and stores the box to the tensor).
std::string copy_kernel(uint32_t rank, bool stores, const std::string& coordinates,
                        bool four_rows = false) {
  const std::string mode = !four_rows ? "" : stores ? ".tile::scatter4" : ".tile::gather4";
  const std::string d = std::to_string(rank) + "d";
  const std::string target = four_rows ? "sm_100a" : "sm_90a";
  std::string text =
      ".version 9.0\n.target " + target +
      "\n.address_size 64\n.extern .shared .align 1024 .b8 box[];\n"
      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes)\n{\n"
      "  .reg .b64 %d<8>;\n  .reg .b32 %r<16>;\n  .reg .pred %p<4>;\n"
      "  .shared .align 8 .b8 bar[8];\n"
      "  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out];\n"
      "  ld.param.u32 %r3, [bytes]; mov.u32 %r1, box; mov.u32 %r2, bar; mov.u32 %r4, %tid.x;\n"
      "  setp.eq.u32 %p1, %r4, 0;\n  @%p1 mbarrier.init.shared.b64 [%r2], 1;\n  bar.sync 0;\n";
  const std::string loop =
      "  shl.b32 %r5, %r4, 2;\n$loop:\n  setp.ge.u32 %p2, %r5, 16384;\n  @%p2 bra $done;\n"
      "  add.u32 %r6, %r1, %r5; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d3, %d2;\n";
  if (!stores) {
    text +=
        "  @!%p1 bra $wait;\n  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r3;\n"
        "  cp.async.bulk.tensor." +
        d + ".shared::cluster.global" + mode + ".mbarrier::complete_tx::bytes [%r1], [%d1, {" +
        coordinates +
        "}], [%r2];\n$wait:\n  mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;\n"
        "  @!%p3 bra $wait;\n" +
        loop +
        "  ld.shared.b32 %r7, [%r6]; st.global.b32 [%d3], %r7;\n"
        "  add.u32 %r5, %r5, 128;\n  bra $loop;\n$done:\n  ret;\n}\n";
  } else {
    text += loop +
            "  ld.global.b32 %r7, [%d3]; st.shared.b32 [%r6], %r7;\n"
            "  add.u32 %r5, %r5, 128;\n  bra $loop;\n$done:\n"
            "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n  @!%p1 bra $end;\n"
            "  cp.async.bulk.tensor." +
            d + ".global.shared::cta" + mode + ".bulk_group [%d1, {" + coordinates +
            "}], [%r1];\n  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
            "$end:\n  ret;\n}\n";
  }
  return text;
}

// `before`: how far the map's base lies before the buffer.
TensorRun run_copy(TensorMap map, bool stores, const std::string& coordinates, size_t bytes,
                   uint64_t before = 0, bool four_rows = false) {
  Memory memory;
  std::vector<uint16_t> in(bytes / 2);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i * 7 + 1);
  map.base = memory.upload("tensor", std::as_bytes(std::span(in))) - before;
  std::vector<uint16_t> box(kBox / 2);
  for (size_t i = 0; i < box.size(); ++i) box[i] = static_cast<uint16_t>(i + 1);
  const Address out = memory.upload("out", std::as_bytes(std::span(box)));
  LaunchConfig c;
  c.block = {32, 1, 1};
  c.dynamic_shared_bytes = kBox;
  uint32_t box_bytes = map.element_bytes;
  for (uint32_t d = 0; d < map.rank; ++d) box_bytes *= map.box[d];
  if (four_rows) box_bytes *= 4;
  c.arguments = {Argument::tensor_map(map), Argument::pointer(out), Argument::scalar(box_bytes)};
  TensorRun r;
  Counters counters;
  Options options;
  options.observers = {&counters};
  const std::string text = copy_kernel(map.rank, stores, coordinates, four_rows);
  const Module module = Module::parse(text, "copy.ptx");
  r.result = launch(module, "k", c, memory, options);
  r.fault = fault(r.result, module.kernel("k"));
  auto copy = [&](std::string_view name) {
    const auto s = memory.bytes(name);
    return std::vector<std::byte>(s.begin(), s.end());
  };
  r.out = copy("out");
  r.tensor = copy("tensor");
  r.counts = counters.report().total;
  return r;
}

uint16_t half_at(const std::vector<std::byte>& v, uint64_t offset) {
  uint16_t x;
  std::memcpy(&x, v.data() + offset, 2);
  return x;
}

// The definition, element by element: `f(offset in the box's memory, inside, offset in the
// tensor)`.
template <class F>
void for_elements(const TensorMap& m, const std::vector<int>& at, F f) {
  uint32_t count = 1;
  for (uint32_t d = 0; d < m.rank; ++d) count *= m.box[d];
  for (uint32_t e = 0; e < count; ++e) {
    uint32_t rest = e;
    bool inside = true;
    int64_t offset = 0;
    for (uint32_t d = 0; d < m.rank; ++d) {
      const int64_t c = at[d] + static_cast<int64_t>(rest % m.box[d]);
      rest /= m.box[d];
      inside &= c >= 0 && c < static_cast<int64_t>(m.dims[d]);
      offset += c * static_cast<int64_t>(d == 0 ? 2 : m.strides[d]);
    }
    uint32_t place = e * 2;
    const uint32_t mask = m.swizzle == Swizzle::k128B  ? 7
                          : m.swizzle == Swizzle::k64B ? 3
                          : m.swizzle == Swizzle::k32B ? 1
                                                       : 0;
    place ^= (place >> 7 & mask) << 4;
    f(place, inside, static_cast<uint64_t>(offset));
  }
}

TensorMap map_of(std::vector<uint64_t> dims, std::vector<uint32_t> box, Swizzle swizzle) {
  TensorMap m;
  m.rank = static_cast<uint32_t>(dims.size());
  m.swizzle = swizzle;
  m.strides[0] = 2;
  for (size_t d = 0; d < dims.size(); ++d) {
    m.dims[d] = dims[d];
    m.box[d] = box[d];
    if (d > 0) m.strides[d] = m.strides[d - 1] * dims[d - 1];
  }
  return m;
}

std::string text_of(const std::vector<int>& at) {
  std::string s;
  for (int c : at) s += (s.empty() ? "" : ", ") + std::to_string(c);
  return s;
}

}  // namespace

TEST_CASE("tensor loads and stores: ranks, swizzles, boxes inside and across the edges") {
  struct Case {
    TensorMap map;
    std::vector<int> at;
  };
  const std::vector<Case> cases = {
      {map_of({512}, {64}, Swizzle::kNone), {128}},
      {map_of({512}, {64}, Swizzle::kNone), {-8}},
      {map_of({512}, {64}, Swizzle::k128B), {488}},
      {map_of({64, 40}, {64, 16}, Swizzle::k128B), {0, 8}},
      {map_of({64, 40}, {64, 16}, Swizzle::k128B), {0, 32}},
      {map_of({128, 40}, {32, 16}, Swizzle::k64B), {32, -3}},
      {map_of({128, 40}, {16, 16}, Swizzle::k32B), {120, 5}},
      {map_of({128, 40}, {48, 5}, Swizzle::kNone), {100, 37}},
      {map_of({64, 24, 3}, {64, 8, 2}, Swizzle::k128B), {0, 20, 2}},
      {map_of({64, 8, 2, 3}, {32, 4, 2, 2}, Swizzle::k64B), {32, 6, 0, 2}},
      {map_of({16, 4, 2, 3, 2}, {16, 4, 2, 1, 2}, Swizzle::k32B), {0, 1, -1, 2, 1}},
      {map_of({64, 40}, {64, 16}, Swizzle::k128B), {64, 0}},
      {map_of({64, 40}, {64, 16}, Swizzle::k128B), {-2147483647, 2147483647}},
  };
  for (const Case& c : cases) {
    size_t bytes = 2;
    for (uint32_t d = 0; d < c.map.rank; ++d) bytes *= c.map.dims[d];
    INFO("rank " << c.map.rank << " at " << text_of(c.at));
    const TensorRun load = run_copy(c.map, false, text_of(c.at), bytes);
    if (load.result.fault) FAIL(load.result.fault->format());
    const TensorRun store = run_copy(c.map, true, text_of(c.at), bytes);
    if (store.result.fault) FAIL(store.result.fault->format());
    std::vector<uint16_t> expected(bytes / 2);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<uint16_t>(i * 7 + 1);
    uint64_t inside_bytes = 0, box_bytes = 0;
    int wrong = 0;
    for_elements(c.map, c.at, [&](uint32_t place, bool inside, uint64_t offset) {
      const uint16_t value = inside ? static_cast<uint16_t>(offset / 2 * 7 + 1) : uint16_t{0};
      wrong += half_at(load.out, place) != value;
      if (inside) expected[offset / 2] = static_cast<uint16_t>(place / 2 + 1);
      inside_bytes += inside ? 2u : 0u;
      box_bytes += 2;
    });
    CHECK(wrong == 0);
    CHECK(std::memcmp(store.tensor.data(), expected.data(), bytes) == 0);
    CHECK(load.counts.bulk_load.copies == 1);
    CHECK(load.counts.bulk_load.bytes == box_bytes);
    CHECK(load.counts.bulk_load.global_bytes == inside_bytes);
    CHECK(store.counts.bulk_store.global_bytes == inside_bytes);
    // Behind the box nothing was written: the poison of shared memory.
    CHECK(half_at(load.out, box_bytes) == 0xffff);
  }
}

TEST_CASE("four rows of a matrix, whichever they are, and no box of more than one") {
  const auto four = [](TensorMap map, bool stores, const std::string& at) {
    return run_copy(map, stores, at, 64 * 40 * 2, 0, true);
  };
  const int rows[] = {39, 7, -1, 7};
  const std::string at = "16, 39, 7, -1, 7";
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k64B}) {
    const TensorMap map = map_of({64, 40}, {32, 1}, swizzle);
    const TensorRun load = four(map, false, at), store = four(map, true, at);
    CHECK(load.fault == "");
    CHECK(store.fault == "");
    int wrong = 0;
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 32; ++c) {
        auto place = static_cast<uint32_t>(r * 32 + c) * 2;
        if (swizzle == Swizzle::k64B) place ^= (place >> 7 & 3) << 4;
        const int element = rows[r] * 64 + 16 + c;
        wrong += half_at(load.out, place) != (rows[r] < 0 ? 0 : element * 7 + 1);
        // Of two equal rows either may stay; here the last one does.
        const auto value = static_cast<uint16_t>(place / 2 + 1);
        if (r != 1 && rows[r] >= 0)
          wrong += half_at(store.tensor, static_cast<uint64_t>(element) * 2) != value;
      }
    }
    CHECK(wrong == 0);
    CHECK(half_at(load.out, 4 * 64) == 0xffff);
    CHECK(load.counts.bulk_load.bytes == 4 * 64);
    CHECK(load.counts.bulk_load.global_bytes == 3 * 64);
  }
  const TensorMap tall = map_of({64, 40}, {32, 4}, Swizzle::kNone);
  CHECK(four(tall, false, at).fault.starts_with("invalid"));
}

TEST_CASE("sectors of a box") {
  BoxCopy box;
  box.map = map_of({64, 40}, {64, 16}, Swizzle::k128B);
  box.at[1] = 30;
  CHECK(sectors_of(box, box.rows()) == 10 * 4);
  box.map = map_of({40, 40}, {8, 16}, Swizzle::kNone);  // rows of 80 bytes
  box.at[0] = 4;                                        // 16 bytes from 8 of a row
  box.at[1] = 0;
  CHECK(sectors_of(box, box.rows()) == 8 + 8 * 2);
}

TEST_CASE("elements of 4 and 6 bits have gaps in shared memory, or none") {
  struct Form {
    MapElement element;
    uint32_t bits, each;  // bytes of 16 that are from the tensor
  };
  for (const Form& f : {Form{MapElement::kPackedU4, 4, 16}, Form{MapElement::kU4Gaps, 4, 8},
                        Form{MapElement::kU6Gaps, 6, 12}}) {
    // Rows of 512 elements, of which a box has those that fill 128 bytes of shared memory.
    const uint32_t row = 512 * f.bits / 8, box = 8 * f.each;
    TensorMap map;
    map.element_bytes = 1;
    map.element = f.element;
    map.dims = {row, 16, 1, 1, 1};
    map.strides = {1, row, 0, 0, 0};
    map.box = {box, 8, 1, 1, 1};
    map.swizzle = Swizzle::k128B;
    const TensorRun r = run_copy(map, false, "256, 2", size_t{row} * 16);
    REQUIRE(r.fault == "");
    int wrong = 0;
    for (uint32_t y = 0; y < 8; ++y) {
      for (uint32_t chunk = 0; chunk < 8; ++chunk) {
        const std::byte* const got = &r.out[y * 128 + (chunk ^ y) * 16];
        const std::byte* const want = &r.tensor[(y + 2) * row + row / 2 + chunk * f.each];
        wrong += std::memcmp(got, want, f.each) != 0;
      }
    }
    CHECK(wrong == 0);
    CHECK(run_copy(map, false, "8, 2", size_t{row} * 16).fault.starts_with("invalid"));
  }
}

TEST_CASE("a swizzle may move chunks of 32 bytes") {
  TensorMap map;
  map.dims = {128, 16, 1, 1, 1};
  map.strides = {2, 256, 0, 0, 0};
  map.box = {64, 8, 1, 1, 1};
  map.swizzle = Swizzle::k128BAtom32B;
  const TensorRun r = run_copy(map, false, "64, 3", size_t{256} * 16);
  REQUIRE(r.fault == "");
  int wrong = 0;
  for (uint32_t y = 0; y < 8; ++y) {
    for (uint32_t chunk = 0; chunk < 4; ++chunk) {
      wrong += std::memcmp(&r.out[y * 128 + (chunk ^ (y & 3)) * 32],
                           &r.tensor[(y + 3) * 256 + 128 + chunk * 32], 32) != 0;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("plain bulk copies in both directions") {
  std::vector<std::byte> in(512);
  for (uint32_t i = 0; i < 128; ++i) std::memcpy(&in[i * 4], &i, 4);
  const Run r = run(kernel(R"(
  .shared .align 128 .b8 area[256];
  .shared .align 8 .b8 bar[8];
  mov.u32 %r1, area; mov.u32 %r2, bar; setp.ne.u32 %p1, %lane, 0;
  @%p1 bra $end;
  createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 96;
  cp.async.bulk.prefetch.L2.global [%in], 96;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%in+32], 64, [%r2], %d1;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+64], [%in], 32, [%r2];
$again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra $again;
  st.shared.u32 [%r1+4], 77;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 96;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
$end:)",
                           "sm_90a"),
                    in);
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0, 0) == 8);
  CHECK(r.at<uint32_t>(0, 1) == 77);
  CHECK(r.at<uint32_t>(4, 0) == 0);
  CHECK(r.at<uint32_t>(5, 3) == 7);
  CHECK(r.counts.total.bulk_load.bytes == 96);
  CHECK(r.counts.total.bulk_store.sectors == 3);
  CHECK(r.counts.total.bulk_prefetch.copies == 1);
}

TEST_CASE("a load lands only when nothing can go on without it") {
  // Reading before the wait sees poison.
  const Run r = run(kernel(R"(
  .shared .align 128 .b8 area[128];
  .shared .align 8 .b8 bar[8];
  mov.u32 %r1, area; mov.u32 %r2, bar; setp.ne.u32 %p1, %lane, 0;
  @%p1 bra $end;
  mbarrier.init.shared.b64 [%r2], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%in], 16, [%r2];
  ld.shared.u32 %r3, [%r1];
  st.global.u32 [%out], %r3;
$end:)",
                           "sm_90a"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0) == 0xffffffff);
}

TEST_CASE("misuse of bulk copies") {
  const auto stopped = [](const std::string& then) {
    return run(kernel("  .shared .align 128 .b8 area[128];\n"
                      "  .shared .align 8 .b8 bar[8];\n"
                      "  mov.u32 %r1, area; mov.u32 %r2, bar; setp.ne.u32 %p1, %lane, 0;\n"
                      "  @%p1 bra $end;\n  mbarrier.init.shared.b64 [%r2], 1;\n" +
                          then + "\n$end:",
                      "sm_90a"))
        .fault;
  };
  const std::string load = "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ";
  CHECK(stopped(load + "[%r1], [%in], 16, [%r2];") == "");
  CHECK(stopped(load + "[%r1], [%in], 24, [%r2];") == "invalid 23 warp 0 lane 0");
  CHECK(stopped(load + "[%r1+8], [%in], 16, [%r2];") == "misaligned 23 warp 0 lane 0");
  CHECK(stopped(load + "[%r1], [%in+8], 16, [%r2];") == "misaligned 23 warp 0 lane 0");
  CHECK(stopped(load + "[%r1], [%in], 16, [%r1];") == "invalid 23 warp 0 lane 0");
  CHECK(stopped(load + "[%r1], [%in], 256, [%r2];") == "out of bounds 23 warp 0 lane 0");
  CHECK(stopped(load + "[%r1], [%in+1048576], 16, [%r2];") == "out of bounds 23 warp 0 lane 0");
  CHECK(stopped("  cp.async.bulk.prefetch.tensor.2d.L2.global [%base, {%r1, %r2}];") ==
        "invalid 23 warp 0 lane 0");
}

TEST_CASE("misuse of tensor maps") {
  TensorMap map = map_of({64, 40}, {64, 16}, Swizzle::k128B);
  CHECK(run_copy(map, false, "0, 30", 64 * 40 * 2).fault == "");
  CHECK(run_copy(map, false, "0, 30", 64 * 39 * 2).fault == "out of bounds 18 warp 0 lane 0");
  map.box[0] = 32;
  CHECK(run_copy(map, false, "0, 0", 64 * 40 * 2).fault == "invalid 18 warp 0 lane 0");
  map = map_of({64, 40}, {64, 16}, Swizzle::kNone);
  map.rank = 1;
  CHECK(run_copy(map, false, "0", 64 * 40 * 2).fault == "");
}

TEST_CASE("a box that is wholly outside needs memory at the map's base") {
  const TensorMap map = map_of({64, 40}, {64, 16}, Swizzle::k128B);
  const size_t bytes = 64 * 40 * 2;
  const uint64_t before = 64 * 8 * 2;  // the buffer begins with row 8
  for (const bool stores : {false, true}) {
    const std::string line = stores ? "28" : "18";
    for (const char* outside : {"0, 40", "0, -16", "64, 0"}) {
      CHECK(run_copy(map, stores, outside, bytes).fault == "");
      CHECK(run_copy(map, stores, outside, bytes, before).fault ==
            "out of bounds " + line + " warp 0 lane 0");
    }
    CHECK(run_copy(map, stores, "0, 24", bytes, before).fault == "");
    CHECK(run_copy(map, stores, "0, 30", bytes, before).fault == "");
  }
}

namespace {

// A kernel that makes a map of a tensor of 40 rows of 64 halves, as compilers do: 128 bytes of
// zero in shared memory, every field replaced, a copy to global memory, and a fence.
std::string made_map_kernel(const std::string& edits) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 tensor, .param .u64 place, .param .u64 out)\n{\n"
         "  .reg .b64 %d<8>;\n  .reg .b32 %r<16>;\n  .reg .pred %p<4>;\n"
         "  .shared .align 1024 .b8 box[2048];\n  .shared .align 8 .b8 bar[8];\n"
         "  .shared .align 128 .b8 map[128];\n"
         "  ld.param.u64 %d1, [tensor]; ld.param.u64 %d2, [place]; ld.param.u64 %d3, [out];\n"
         "  mov.u32 %r4, %tid.x; mov.u32 %r1, map; mov.u32 %r2, bar;\n"
         "  mad.lo.u32 %r5, %r4, 4, %r1; mov.b32 %r6, 0; st.shared.b32 [%r5], %r6;\n"
         "  bar.warp.sync -1;\n  setp.eq.u32 %p1, %r4, 0;\n"
         "  mov.b32 %r7, 64; mov.b32 %r8, 40; mov.b32 %r9, 16; mov.b32 %r10, 1; mov.b64 %d4, "
         "128;\n" +
         edits +
         "  bar.warp.sync -1;\n"
         "  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
         "[%d2], [%r1], 128;\n"
         "  fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;\n"
         "  @%p1 mbarrier.init.shared.b64 [%r2], 1;\n"
         "  fence.mbarrier_init.release.cluster;\n  bar.sync 0;\n"
         "  @!%p1 bra $wait;\n  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 2048;\n"
         "  mov.u32 %r11, box;\n"
         "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], "
         "[%d2, {0, 8}], [%r2];\n"
         "$wait:\n  mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;\n  @!%p3 bra $wait;\n"
         "$loop:\n  setp.ge.u32 %p2, %r4, 512;\n  @%p2 ret;\n"
         "  mul.wide.u32 %d5, %r4, 4; add.u64 %d5, %d5, %d3; mov.u32 %r11, box;\n"
         "  mad.lo.u32 %r11, %r4, 4, %r11; ld.shared.b32 %r12, [%r11]; st.global.b32 [%d5], %r12;\n"
         "  add.u32 %r4, %r4, 32;\n  bra $loop;\n}\n";
}

std::string replacing(const std::string& field, const std::string& operands,
                      const std::string& space = ".shared::cta") {
  const bool wide = field == "global_address" || field == "global_stride";
  return "  @%p1 tensormap.replace.tile." + field + space + ".b1024." + (wide ? "b64" : "b32") +
         " [" + (space == ".global" ? "%d2" : "%r1") + "], " + operands + ";\n";
}

const std::string kEdits =
    replacing("global_address", "%d1") + replacing("rank", "1") + replacing("box_dim", "0, %r7") +
    replacing("box_dim", "1, %r9") + replacing("global_dim", "0, %r7") +
    replacing("global_dim", "1, %r8") + replacing("global_stride", "0, %d4") +
    replacing("element_stride", "0, %r10") + replacing("element_stride", "1, %r10") +
    replacing("elemtype", "6") + replacing("interleave_layout", "0") +
    replacing("swizzle_mode", "3") + replacing("fill_mode", "0");

struct MadeMap {
  LaunchResult result;
  std::string fault;
  std::vector<uint16_t> out;
  TensorMap map;
};

MadeMap run_made_map(const std::string& text) {
  Memory memory;
  std::vector<uint16_t> in(64 * 40);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i * 7 + 1);
  const Address tensor = memory.upload("tensor", std::as_bytes(std::span(in)));
  const Address place = memory.allocate("place", 128, Fill::kZero);
  const Address out = memory.allocate("out", 2048, Fill::kZero);
  LaunchConfig c;
  c.block = {32, 1, 1};
  c.arguments = {Argument::pointer(tensor), Argument::pointer(place), Argument::pointer(out)};
  Races races;
  GlobalRaces global;
  Counters counters;
  Options options;
  options.observers = {&races, &global, &counters};
  MadeMap r;
  const Module module = Module::parse(text, "made.ptx");
  r.result = launch(module, "k", c, memory, options);
  r.fault = fault(r.result, module.kernel("k"));
  r.out.resize(1024);
  std::memcpy(r.out.data(), memory.bytes(out).data(), 2048);
  if (const auto map = decode_tensor_map(memory.bytes(place))) r.map = *map;
  return r;
}

}  // namespace

TEST_CASE("a kernel makes a tensor map of its own") {
  const MadeMap r = run_made_map(made_map_kernel(kEdits));
  if (r.result.fault) FAIL(r.result.fault->format());
  for (const Finding& f : r.result.findings) FAIL_CHECK(format(f));
  const TensorMap expected = map_of({64, 40}, {64, 16}, Swizzle::k128B);
  CHECK(r.map.rank == 2);
  CHECK(r.map.element_bytes == 2);
  CHECK(r.map.strides[1] == 128);
  for_elements(expected, {0, 8}, [&](uint32_t place, bool, uint64_t offset) {
    REQUIRE(r.out[place / 2] == static_cast<uint16_t>(offset / 2 * 7 + 1));
  });
}

TEST_CASE("a tensor map is changed where it stands in global memory, by a generic address, too") {
  const std::string copy =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%d2], [%r1], 128;\n";
  for (const char* space : {".global", ""}) {
    std::string text = made_map_kernel(kEdits);
    std::string again = replacing("global_dim", "1, %r9", space);
    if (*space == 0) again.replace(again.find("%r1"), 3, "%d2");
    text.insert(text.find(copy) + copy.size(),
                again + "  fence.proxy.tensormap::generic.release.gpu;\n");
    const MadeMap r = run_made_map(text);
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.map.dims[1] == 16);
    CHECK(r.out[0] == 8 * 64 * 7 + 1);
    CHECK(r.out[8 * 64] == 0);  // row 16, which is now outside
  }
}

TEST_CASE("tensor maps that cannot be made or used") {
  const auto stopped = [](const std::string& edits) {
    return run_made_map(made_map_kernel(edits)).fault;
  };
  // Where it is replaced, and where the copy uses it.
  const std::string replace = "invalid 31 warp 0 lane 0", copy = "invalid 41 warp 0 lane 0";
  CHECK(stopped(kEdits + replacing("rank", "5")) == replace);
  CHECK(stopped(kEdits + replacing("element_stride", "0, 2")) == replace);
  CHECK(stopped(kEdits + replacing("elemtype", "8")) == replace);
  CHECK(stopped(kEdits + replacing("fill_mode", "1")) == replace);
  CHECK(stopped(kEdits + replacing("interleave_layout", "1")) == replace);
  CHECK(stopped(kEdits + replacing("box_dim", "0, 128")) == copy);
  CHECK(stopped(kEdits + replacing("global_stride", "0, 24")) == copy);
  CHECK(stopped(kEdits + replacing("rank", "2")) == copy);
  CHECK(stopped("  @%p1 st.shared.b32 [%r1], 7;\n" + kEdits) == "invalid 19 warp 0 lane 0");
  CHECK(stopped("") == "invalid 27 warp 0 lane 0");
}
