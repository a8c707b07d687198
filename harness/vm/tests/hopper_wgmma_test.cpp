// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>

#include "catch.h"
#include "memory/matrix_descriptor.h"
#include "num/half.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

constexpr uint32_t kB = 16384;  // place of B in shared memory, from a multiple of 1024

struct Setup {
  int n = 64;
  bool a_registers = false, a_mn = false, b_mn = false;
  Swizzle swizzle = Swizzle::k128B;
  int step = 0;              // k step within the panel, for K-major with swizzle
  int shift = 0;             // start of both operands, in units of 128 bytes
  bool base_offset = false;  // the swizzle pattern begins there, and the descriptor says so
  bool accumulate = false, half_sums = false, bfloat = false;
  bool constant = false;  // says whether to accumulate, in place of a predicate
  int scale_a = 1, scale_b = 1;
};

uint32_t width(Swizzle s) {
  return s == Swizzle::k128B ? 128 : s == Swizzle::k64B ? 64 : s == Swizzle::k32B ? 32 : 16;
}

// An operand as it would stand in shared memory, and its descriptor.
struct Operand {
  bool mn;
  Swizzle swizzle;
  int extent, step;
  uint32_t shift;
  bool base_offset;

  uint32_t place(int row, int k) const {
    const auto r = static_cast<uint32_t>(row), c = static_cast<uint32_t>(k);
    const uint32_t w = width(swizzle), e = static_cast<uint32_t>(extent);
    uint32_t at = 0;
    if (swizzle == Swizzle::kNone) {
      // Matrices of 128 bytes: along the extent first.
      at = mn ? r / 8 * 128 + c / 8 * (e / 8 * 128) + c % 8 * 16 + r % 8 * 2
              : r / 8 * 128 + c / 8 * (e / 8 * 128) + r % 8 * 16 + c % 8 * 2;
    } else if (mn) {
      at = r / (w / 2) * (16 * w) + c * w + r % (w / 2) * 2;
    } else {
      at = r * w + static_cast<uint32_t>(step) * 32 + c * 2;
    }
    const uint32_t mask = w / 16 - 1, pattern = (base_offset ? at : at + shift * 128) >> 7;
    return (at + shift * 128) ^ (pattern & mask) << 4;
  }

  uint64_t descriptor(uint32_t base) const {
    const uint32_t w = width(swizzle), e = static_cast<uint32_t>(extent);
    uint64_t leading = 0, stride = 8 * w;
    if (swizzle == Swizzle::kNone) {
      leading = e / 8 * 128;  // next eight of k
      stride = 128;           // next eight of the extent
    } else if (mn) {
      leading = 16 * w;
    }
    const uint64_t modes[] = {0, 3, 2, 1};
    const uint64_t start = base + static_cast<uint32_t>(step) * 32 + shift * 128;
    return (start & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 |
           uint64_t{base_offset ? shift % 8 : 0} << 49 | modes[static_cast<size_t>(swizzle)] << 62;
  }
};

std::string registers(int count, const char* name) {
  std::string s = "{";
  for (int i = 0; i < count; ++i) s += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return s + "}";
}

// The kernel: shared memory is filled from %base + 65536; thread t's register i goes to out at
// i * 512 + t * 4.
std::string text(const Setup& s, const std::string& between = "", const std::string& after = "") {
  const int sums = s.n / (s.half_sums ? 4 : 2);
  const std::string type = s.half_sums ? "b32" : "f32", name = "%acc";
  const std::string in = s.bfloat ? "bf16" : "f16";
  std::string body =
      "  .reg ." + type +
      " %acc<128>;\n  .reg .b32 %a<4>;\n"
      "  mov.u32 %r1, area; add.u64 %d3, %base, 65536; shl.b32 %r2, %lane, 2;\n"
      "$fill:\n  setp.ge.u32 %p1, %r2, 49152;\n  @%p1 bra $filled;\n"
      "  cvt.u64.u32 %d4, %r2; add.u64 %d4, %d4, %d3; add.u32 %r3, %r1, %r2;\n"
      "  ld.global.b32 %r4, [%d4]; st.shared.b32 [%r3], %r4;\n  add.u32 %r2, %r2, 512;\n"
      "  bra $fill;\n$filled:\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
      "  shl.b32 %r2, %lane, 4; add.u32 %r2, %r2, %r1;\n"
      "  ld.shared.v4.b32 {%a0, %a1, %a2, %a3}, [%r2];\n";
  for (int i = 0; i < sums; ++i) {
    body += "  mov." + type + " %acc" + std::to_string(i) + ", " +
            (s.half_sums ? "0x40003c00" : "0f40400000") + ";\n";  // (1, 2) or 3
  }
  Operand a{s.a_mn, s.swizzle, 64, s.step, static_cast<uint32_t>(s.shift), s.base_offset},
      b{s.b_mn, s.swizzle, s.n, s.step, static_cast<uint32_t>(s.shift), s.base_offset};
  body += "  setp.ne.u32 %p2, 0, " + std::string(s.accumulate ? "1" : "0") + ";\n" +
          "  mov.b64 %d1, " + std::to_string(a.descriptor(1024)) + ";\n" + "  mov.b64 %d2, " +
          std::to_string(b.descriptor(1024 + kB)) + ";\n  wgmma.fence.sync.aligned;\n" +
          "  wgmma.mma_async.sync.aligned.m64n" + std::to_string(s.n) + "k16." +
          (s.half_sums ? "f16" : "f32") + "." + in + "." + in + " " +
          registers(sums, name.c_str()) + ", " +
          (s.a_registers ? registers(4, "%a") : std::string("%d1")) + ", %d2, " +
          (!s.constant    ? "%p2, "
           : s.accumulate ? "1, "
                          : "0, ") +
          std::to_string(s.scale_a) + ", " + std::to_string(s.scale_b) + ", " +
          (s.a_registers ? ""
           : s.a_mn      ? "1, "
                         : "0, ") +
          (s.b_mn ? "1" : "0") + ";\n" + between + "  wgmma.commit_group.sync.aligned;\n" + after +
          "  wgmma.wait_group.sync.aligned 0;\n  mad.wide.u32 %d5, %lane, 4, %base;\n";
  for (int i = 0; i < sums; ++i) {
    body += "  st.global." + type + " [%d5+" + std::to_string(i * 512) + "], %acc" +
            std::to_string(i) + ";\n";
  }
  return kernel(body, "sm_90a", ".extern .shared .align 1024 .b8 area[];\n");
}

struct Product {
  std::vector<float> a, b;  // 64 x 16, n x 16
  std::vector<std::byte> image;

  explicit Product(const Setup& s)
      : a(64 * 16), b(static_cast<size_t>(s.n) * 16), image(49152, std::byte{0xee}) {
    std::mt19937 rng(static_cast<uint32_t>(s.n));
    auto put = [&](uint32_t at, float x) {
      const uint16_t h = s.bfloat ? num::float_to_bfloat(x) : num::float_to_half(x);
      std::memcpy(&image[at], &h, 2);
    };
    auto fill = [&](std::vector<float>& m) {
      for (float& x : m) x = static_cast<float>(static_cast<int>(rng() % 9) - 4);
    };
    fill(a);
    fill(b);
    const Operand oa{s.a_mn, s.swizzle, 64, s.step, static_cast<uint32_t>(s.shift), s.base_offset},
        ob{s.b_mn, s.swizzle, s.n, s.step, static_cast<uint32_t>(s.shift), s.base_offset};
    for (int k = 0; k < 16; ++k) {
      for (int r = 0; r < s.n; ++r) {
        put(kB + ob.place(r, k), b[static_cast<size_t>(r * 16 + k)]);
      }
      for (int r = 0; r < 64; ++r) {
        const float x = a[static_cast<size_t>(r * 16 + k)];
        if (!s.a_registers) {
          put(oa.place(r, k), x);
          continue;
        }
        // Thread, register and half of element (r, k) of the fragment.
        const int thread = r / 16 * 32 + r % 8 * 4 + k % 8 / 2, reg = k / 8 * 2 + r % 16 / 8;
        put(static_cast<uint32_t>(thread * 16 + reg * 4 + k % 2 * 2), x);
      }
    }
  }

  float expected(const Setup& s, int row, int column) const {
    float sum = 0;
    for (int k = 0; k < 16; ++k) {
      sum += a[static_cast<size_t>(row * 16 + k)] * b[static_cast<size_t>(column * 16 + k)];
    }
    sum *= static_cast<float>(s.scale_a * s.scale_b);
    if (s.accumulate) sum += s.half_sums ? static_cast<float>(column % 2 + 1) : 3.0f;
    return sum;
  }
};

int wrong_elements(const Setup& s) {
  const Product p(s);
  const Run r = run(text(s), p.image, 128, 49152);
  if (r.result.fault) FAIL(r.result.fault->format());
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < s.n; ++column) {
      const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      float got;
      if (s.half_sums) {
        const int reg = column / 8 * 2 + row % 16 / 8;
        uint16_t h;
        std::memcpy(&h, r.out.data() + reg * 512 + thread * 4 + column % 2 * 2, 2);
        got = num::half_to_float(h);
      } else {
        const int reg = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
        std::memcpy(&got, r.out.data() + reg * 512 + thread * 4, 4);
      }
      wrong += got != p.expected(s, row, column);
    }
  }
  return wrong;
}

std::string stopped(const std::string& t, uint32_t threads = 128) {
  return run(t, {}, threads, 49152).fault;
}

class Log : public Observer {
 public:
  std::vector<WgmmaEvent> events;
  std::vector<std::vector<SharedRange>> ranges;

  std::unique_ptr<Probe> make_probe() override {
    struct Recorder : Probe {
      explicit Recorder(Log& l) : log(l) {}
      void wgmma(const WgmmaEvent& e) override {
        log.events.push_back(e);
        log.ranges.emplace_back(e.shared.begin(), e.shared.end());
      }
      Log& log;
    };
    return std::make_unique<Recorder>(*this);
  }
  void end(std::span<const std::unique_ptr<Probe>>) override {}
};

}  // namespace

TEST_CASE("wgmma equals a matrix product for every swizzle, major and kind of A") {
  for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    for (int bits = 0; bits < 8; ++bits) {
      Setup s;
      s.swizzle = swizzle;
      s.a_registers = bits & 1;
      s.a_mn = (bits & 2) && !s.a_registers;
      s.b_mn = bits & 4;
      for (int n : {8, 64, 128, 256}) {
        // A swizzled MN-major operand has whole rows.
        if (s.b_mn && swizzle != Swizzle::kNone && n * 2 < static_cast<int>(width(swizzle))) {
          continue;
        }
        s.n = n;
        INFO("swizzle " << width(swizzle) << " bits " << bits << " n " << n);
        CHECK(wrong_elements(s) == 0);
      }
    }
  }
}

TEST_CASE("sums that nothing has set are used only where scale-d is true") {
  for (const bool accumulate : {false, true}) {
    Setup s;
    s.accumulate = accumulate;
    std::string unset = text(s);
    unset.erase(unset.find("  mov.f32 %acc5, "), std::strlen("  mov.f32 %acc5, 0f40400000;\n"));
    const Run r = run_checked(unset, 128, Order::kForward, Product(s).image, 49152);
    CHECK(r.found == (accumulate ? "uninitialised 69 x4\n" : ""));
    if (accumulate) CHECK(register_of(r.result.findings.at(0)) == "%acc5");
  }
}

TEST_CASE("wgmma for every N") {
  for (int n = 8; n <= 256; n += 8) {
    Setup s;
    s.n = n;
    INFO(n);
    CHECK(wrong_elements(s) == 0);
  }
}

TEST_CASE("wgmma steps through a swizzled panel") {
  for (int step = 0; step < 4; ++step) {
    Setup s;
    s.step = step;
    CHECK(wrong_elements(s) == 0);
    s.swizzle = Swizzle::k64B;
    if (step < 2) CHECK(wrong_elements(s) == 0);
  }
}

TEST_CASE("wgmma reads swizzles by address, or from the base offset on") {
  for (Swizzle swizzle : {Swizzle::k64B, Swizzle::k128B}) {
    for (int bits = 0; bits < 8; ++bits) {
      Setup s;
      s.swizzle = swizzle;
      s.a_registers = bits & 1;
      s.b_mn = bits & 2;
      s.base_offset = bits & 4;
      for (s.shift = 1; s.shift < 8; s.shift += 2) CHECK(wrong_elements(s) == 0);
    }
  }
}

TEST_CASE("wgmma accumulates, negates, and takes bf16 and f16 accumulators") {
  for (int bits = 0; bits < 16; ++bits) {
    Setup s;
    s.accumulate = bits & 1;
    s.scale_a = bits & 2 ? -1 : 1;
    s.scale_b = bits & 4 ? -1 : 1;
    s.a_registers = bits & 8;
    INFO(bits);
    CHECK(wrong_elements(s) == 0);
    s.bfloat = true;
    CHECK(wrong_elements(s) == 0);
    s.bfloat = false;
    s.half_sums = true;
    CHECK(wrong_elements(s) == 0);
  }
}

TEST_CASE("wgmma takes a constant that says whether it accumulates") {
  for (int bits = 0; bits < 4; ++bits) {
    Setup s;
    s.constant = true;
    s.accumulate = bits & 1;
    s.a_registers = bits & 2;
    CHECK(wrong_elements(s) == 0);
  }
}

TEST_CASE("wgmma takes constants among the registers of A") {
  Setup s;
  s.a_registers = true;
  const Product p(s);
  const std::string plain = text(s), list = "{%a0, %a1, %a2, %a3}, %d2";
  const size_t at = plain.find(list), fence = plain.rfind("  wgmma.fence", at);
  const std::string given = "{%a0, 0x40003c00, %a2, 0}, %d2";
  std::string constant = plain, in_registers = plain;
  // Two in flight: a constant is no register that the first one holds.
  const std::string twice = plain.substr(fence, plain.find(';', at) + 2 - fence);
  in_registers.insert(fence, "  mov.b32 %a1, 0x40003c00; mov.b32 %a3, 0;\n" + twice);
  constant.insert(fence, twice);
  for (size_t i = constant.find(list); i != std::string::npos; i = constant.find(list)) {
    constant.replace(i, list.size(), given);
  }
  const Run a = run(in_registers, p.image, 128, 49152), b = run(constant, p.image, 128, 49152);
  if (b.result.fault) FAIL(b.result.fault->format());
  REQUIRE(!a.result.fault);
  CHECK(a.out == b.out);
  CHECK(a.out != run(plain, p.image, 128, 49152).out);
}

TEST_CASE("registers of a wgmma in flight must not be touched") {
  Setup s;
  CHECK(stopped(text(s, "", "  mov.f32 %f1, %acc7;\n")) == "invalid 72 warp 3");
  CHECK(stopped(text(s, "  mov.f32 %acc7, 0f00000000;\n")) == "invalid 71 warp 3");
  s.a_registers = true;
  CHECK(stopped(text(s, "  mov.b32 %r9, %a1;\n")) == "");
  CHECK(stopped(text(s, "  mov.b32 %a1, 0;\n")) == "invalid 71 warp 3");
}

TEST_CASE("misuse of wgmma") {
  const Setup s;
  CHECK(stopped(text(s), 96) == "divergence 69 warp 2");
  std::string t = text(s);
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string copy = t;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  const Operand a{false, Swizzle::k128B, 64, 0, 0, false};
  CHECK(stopped(replaced(std::to_string(a.descriptor(1024)), std::to_string(a.descriptor(0)))) ==
        "out of bounds 70 warp 3");
  CHECK(stopped(replaced("wgmma.fence", "setp.lt.u32 %p3, %lane, 5; @%p3 wgmma.fence")) ==
        "divergence 69 warp 0");
  // One warp goes another way.
  CHECK(stopped(replaced("  wgmma.wait_group",
                         "  setp.lt.u32 %p3, %lane, 32; @%p3 ret;\n"
                         "  wgmma.wait_group")) == "deadlock 73");
  CHECK_THROWS_AS(Module::parse(replaced("%p2, 1, 1", "%p2, 0, 1"), "k.ptx"), Error);
}

TEST_CASE("events of a warpgroup, and the missing fence") {
  for (bool fenced : {true, false}) {
    const Setup s;
    std::string t = text(s);
    if (!fenced) t.replace(t.find("  wgmma.fence.sync.aligned;\n"), 28, "");
    Log log;
    Options options;
    options.observers = {&log};
    const Run r = run(t, {}, 128, 49152, options);
    REQUIRE(!r.result.fault);
    int count[7] = {};
    for (const WgmmaEvent& e : log.events) ++count[static_cast<int>(e.action)];
    CHECK(count[static_cast<int>(WgmmaAction::kFence)] == (fenced ? 4 : 0));
    CHECK(count[static_cast<int>(WgmmaAction::kIssue)] == 4);
    CHECK(count[static_cast<int>(WgmmaAction::kCommit)] == 4);
    CHECK(count[static_cast<int>(WgmmaAction::kWait)] == 4);
    CHECK(count[static_cast<int>(WgmmaAction::kExecute)] == 1);
    CHECK(count[static_cast<int>(WgmmaAction::kComplete)] == 1);
    CHECK(count[static_cast<int>(WgmmaAction::kUnfenced)] == (fenced ? 0 : 4));
    CHECK(r.counts.total.wgmma_bytes == (64 + 64) * 32);
  }
}

TEST_CASE("one warp says for its warpgroup that a wait is over, once a product of all is done") {
  const auto found = [](const std::string& release, Order order) {
    const Operand a{false, Swizzle::kNone, 64, 0, 0, false},
        b{false, Swizzle::kNone, 8, 0, 0, false};
    const std::string body =
        "  .shared .align 1024 .b8 area[4096];\n  .shared .align 8 .b8 bars[16];\n"
        "  .reg .f32 %acc<4>;\n  .reg .b32 %full, %empty;\n"
        "  mov.u32 %r1, area; mov.u32 %full, bars; add.u32 %empty, %full, 8;\n"
        "  shl.b32 %r2, %lane, 4; add.u32 %r2, %r2, %r1; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
        "  st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};\n  fence.proxy.async.shared::cta;\n"
        "  mov.f32 %acc0, 0f00000000; mov.f32 %acc1, %acc0;\n"
        "  mov.f32 %acc2, %acc0; mov.f32 %acc3, %acc0;\n"
        "  setp.eq.u32 %p1, %lane, 0; setp.eq.u32 %p3, %lane, 128; setp.ge.u32 %p4, %lane, 128;\n"
        "  @%p1 mbarrier.init.shared::cta.b64 [%full], 1;\n"
        "  @%p1 mbarrier.init.shared::cta.b64 [%empty], 1;\n"
        "  bar.sync 0;\n  mov.b64 %d1, " +
        std::to_string(a.descriptor(1024)) + ";\n  mov.b64 %d2, " +
        std::to_string(b.descriptor(1024 + 2048)) +
        ";\n  @%p4 bra $produce;\n$consume:\n  and.b32 %r5, %r4, 1;\n"
        "$full:\n  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%full], %r5;\n"
        "  @!%p2 bra $full;\n  wgmma.fence.sync.aligned;\n"
        "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%acc0, %acc1, %acc2, %acc3}, %d1, "
        "%d2, 1, 1, 1, 0, 0;\n  wgmma.commit_group.sync.aligned;\n" +
        release +
        "  add.u32 %r4, %r4, 1;\n  setp.lt.u32 %p5, %r4, 4;\n  @%p5 bra $consume;\n"
        "  wgmma.wait_group.sync.aligned 0;\n  ret;\n$produce:\n  not.b32 %r5, %r4;\n"
        "  and.b32 %r5, %r5, 1;\n"
        "$empty:\n  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%empty], %r5;\n"
        "  @!%p2 bra $empty;\n  @%p3 mbarrier.arrive.shared::cta.b64 _, [%full];\n"
        "  add.u32 %r4, %r4, 1;\n  setp.lt.u32 %p5, %r4, 4;\n  @%p5 bra $produce;\n";
    return run_checked(kernel(body, "sm_90a"), 160, order).found;
  };
  const std::string arrive = "  @%p1 mbarrier.arrive.shared::cta.b64 _, [%empty];\n",
                    wait = "  wgmma.wait_group.sync.aligned ";
  for (const Order order : {Order::kForward, Order::kReversed}) {
    CHECK(found(wait + "0;\n" + arrive, order) == "");
    // Three warps, three of four times: before the wait, or with this product still in flight.
    CHECK(found(arrive + wait + "0;\n", order) == "mbarrier 38/56 x9\n");
    CHECK(found(wait + "1;\n" + arrive, order) == "mbarrier 38/56 x9\n");
  }
}

TEST_CASE("setmaxnreg waits for registers, and the sums must fit") {
  const std::string roles = R"(
  setp.lt.u32 %p1, %lane, 128;
  @%p1 bra $less;
  setmaxnreg.inc.sync.aligned.u32 240;
  st.global.u32 [%out], 1;
  ret;
$less:
  setmaxnreg.dec.sync.aligned.u32 )";
  const Run r = run(kernel(roles + "24;", "sm_90a"), {}, 384);
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(300) == 1);
  // 168 registers each at first: 2 * 128 threads want 72 more, 18432, and 128 * (168 - 32) = 17408
  // are not enough. A block has only what it was launched with, not the rest of the SM's.
  for (const char* keep : {"32;", "40;"}) {
    CHECK(stopped(kernel(roles + keep, "sm_90a"), 384) == "deadlock 21");
  }
  CHECK_THROWS_AS(Module::parse(kernel("  setmaxnreg.dec.sync.aligned.u32 36;", "sm_90a"), "k.ptx"),
                  Error);
}

TEST_CASE("a kernel compiled for several blocks an SM is launched with fewer registers") {
  // A block of 128 threads: 256 registers each alone on an SM, 128 of four blocks, and 64 of four
  // blocks that might have 256 threads. What it has is the most that it can decrease to.
  const auto launched_with = [](const std::string& directives, uint32_t threads) {
    const auto line = 18 + std::count(directives.begin(), directives.end(), '\n');
    int has = 0;
    for (int n = 24; n <= 256; n += 8) {
      std::string text =
          kernel("  setmaxnreg.dec.sync.aligned.u32 " + std::to_string(n) + ";", "sm_90a");
      text.insert(text.find("\n{"), directives);
      const std::string fault = stopped(text, threads);
      if (fault.empty()) has = n;
      if (n > has) CHECK(fault == "invalid " + std::to_string(line) + " warp 0");
    }
    return has;
  };
  CHECK(launched_with("", 128) == 256);
  CHECK(launched_with("", 384) == 168);
  CHECK(launched_with("\n.maxntid 128, 1, 1\n.minnctapersm 4", 128) == 128);
  CHECK(launched_with("\n.maxntid 256, 1, 1\n.minnctapersm 4", 128) == 64);
  CHECK(launched_with("\n.minnctapersm 3", 128) == 168);
  // No more than is asked for anywhere.
  CHECK(stopped(kernel("  setmaxnreg.inc.sync.aligned.u32 248;", "sm_90a")) == "");
  const std::string back =
      "  setmaxnreg.dec.sync.aligned.u32 40;\n  setmaxnreg.inc.sync.aligned.u32 ";
  CHECK(stopped(kernel(back + "232;", "sm_90a"), 256) == "");
  CHECK(stopped(kernel(back + "232;\n  setmaxnreg.inc.sync.aligned.u32 208;", "sm_90a"), 256) ==
        "invalid 20 warp 0");
  CHECK(stopped(kernel("  setmaxnreg.dec.sync.aligned.u32 240;\n" + back + "208;", "sm_90a"),
                384) == "invalid 18 warp 0");
}

TEST_CASE("elect.sync chooses one lane") {
  const Run r = run(kernel(R"(
  elect.sync %r1|%p1, -1; selp.b32 %r2, 1, 0, %p1;
  mov.u32 %r3, 9; mov.u32 %r4, 9;
  setp.ge.u32 %p2, %lane, 8;
  @!%p2 bra $end;
  elect.sync %r3|%p3, 0xffffff00; selp.b32 %r4, 1, 0, %p3;
$end:
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)",
                           "sm_90a"));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(0, 1) == 1);
  CHECK(r.at<uint32_t>(9, 1) == 0);
  CHECK(r.at<uint32_t>(8, 3) == 1);
  CHECK(r.at<uint32_t>(9, 2) == 8);
  CHECK(r.at<uint32_t>(9, 3) == 0);
  CHECK(r.at<uint32_t>(7, 3) == 9);
}
