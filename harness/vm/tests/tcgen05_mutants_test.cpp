// SPDX-License-Identifier: MIT
// Two kernels that use tensor memory as the PTX ISA asks for, and what is found when one thing in
// them is wrong. The kernels themselves have no finding, in either order of the warps.
#include <algorithm>

#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

std::string number(int v) {
  return std::to_string(v);
}

std::string registers(int count) {
  std::string s = "{";
  for (int i = 0; i < count; ++i) s += (i ? ", %v" : "%v") + number(i);
  return s + "}";
}

// Warps 0 to 3 wait for a tile, load it from tensor memory, and store it in global memory.
std::string load_tile(int tile) {
  const std::string n = number(tile);
  std::string text = "$done" + n + ":\nmbarrier.try_wait.parity.shared.b64 %p, [done], " + n +
                     "; @!%p bra $done" + n + ";\n";
  text += "tcgen05.fence::after_thread_sync;\n";
  text += "tcgen05.ld.sync.aligned.32x32b.x32.b32 " + registers(32) + ", [%mine];\n";
  text += "tcgen05.wait::ld.sync.aligned;\n";
  text += "tcgen05.fence::before_thread_sync;\n";
  text += "mbarrier.arrive.shared.b64 _, [read];\n";
  for (int c = 0; c < 32; ++c)
    text += "st.global.b32 [%out+" + number(c * 4) + "], %v" + number(c) + ";\n";
  return text;
}

// Warps 0 to 3 write A (128 x 16) and B (32 x 16) into one of two stages of shared memory, warp 4
// multiplies: two products make a tile, of which there are two. The first tile is loaded when the
// stage for the second has been written.
std::string pipeline() {
  std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".visible .entry k(.param .u64 buffer)\n{\n"
      ".shared .align 1024 .b8 area[10240]; .shared .align 8 .b8 full[16], empty[16], done[8], "
      "read[8], other[8];\n"
      ".shared .align 4 .b8 where[8];\n"
      ".reg .b64 %out, %d<4>; .reg .b32 %tid, %warp, %t, %mine, %r<8>, %v<32>, %one;\n"
      ".reg .b16 %h<4>; .reg .pred %first, %multiplies, %lead, %b, %p, %yes, %no;\n"
      "ld.param.u64 %out, [buffer]; mov.u32 %tid, %tid.x; mad.wide.u32 %out, %tid, 128, %out;\n"
      "shr.u32 %warp, %tid, 5; setp.eq.u32 %first, %tid, 0; setp.eq.u32 %multiplies, %warp, 4;\n"
      "setp.eq.u32 %lead, %tid, 128; setp.lt.u32 %b, %tid, 32;\n"
      "setp.eq.u32 %yes, %tid, %tid; setp.ne.u32 %no, %tid, %tid;\n";
  for (const char* bar : {"full", "full+8"})
    text += "@%first mbarrier.init.shared.b64 [" + std::string(bar) + "], 128;\n";
  for (const char* bar : {"empty", "empty+8", "done", "other"})
    text += "@%first mbarrier.init.shared.b64 [" + std::string(bar) + "], 1;\n";
  text +=
      "@%first mbarrier.init.shared.b64 [read], 128;\n"
      "@%first fence.mbarrier_init.release.cluster;\n"
      "@!%multiplies bra $allocated;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;\n"
      "$allocated:\nbar.sync 0;\n"
      "ld.shared.b32 %t, [where];\n"
      "@%multiplies bra $multiply;\n";
  // Rows of 32 bytes in core matrices of 8 rows: the second half of k lies behind the first.
  text +=
      "and.b32 %r0, %tid, 7; add.u32 %r0, %r0, 1; cvt.rn.f16.u32 %h0, %r0; mov.b32 %r1, {%h0, "
      "%h0};\n"
      "shl.b32 %r2, %tid, 4; mov.u32 %r3, area; add.u32 %r2, %r2, %r3;\n"
      "shl.b32 %mine, %warp, 21;\nadd.u32 %mine, %mine, %t;\n";
  for (int i = 0; i < 4; ++i) {
    const int stage = i % 2, at = stage * 5120;
    const std::string n = number(i), bar = number(8 * stage);
    if (i >= 2)
      text += "$empty" + n + ":\nmbarrier.try_wait.parity.shared.b64 %p, [empty+" + bar +
              "], 0; @!%p bra $empty" + n + ";\n";
    const std::string four = "], {%r1, %r1, %r1, %r1};\n";
    text += "st.shared.v4.b32 [%r2+" + number(at) + four;
    text += "st.shared.v4.b32 [%r2+" + number(at + 2048) + four;
    text += "@%b st.shared.v4.b32 [%r2+" + number(at + 4096) + four;
    text += "@%b st.shared.v4.b32 [%r2+" + number(at + 4608) + four;
    text += "fence.proxy.async.shared::cta;\n";
    text += "mbarrier.arrive.shared.b64 _, [full+" + bar + "];\n";
    if (i >= 2) text += load_tile(i - 2);
  }
  text += "bra $end;\n$multiply:\n@!%lead bra $multiplied;\n";
  // M = 128, N = 32, f16 and f32. Leading and stride: 128 rows and 8 rows, or 32 and 8.
  text += "mov.b32 %r4, " + number(1 << 4 | 4 << 17 | 8 << 24) + ";\n";
  for (int i = 0; i < 4; ++i) {
    const int stage = i % 2, at = 1024 + stage * 5120;
    const std::string n = number(i), bar = number(8 * stage);
    const auto descriptor = [](int start, int leading) {
      return std::to_string(uint64_t{1} << 46 | uint64_t{8} << 32 |
                            static_cast<uint64_t>(leading / 16) << 16 |
                            static_cast<uint64_t>(start / 16));
    };
    if (i == 2)
      text +=
          "$read:\nmbarrier.try_wait.parity.shared.b64 %p, [read], 0; @!%p bra $read;\n"
          "tcgen05.fence::after_thread_sync;\n";
    text += "$full" + n + ":\nmbarrier.try_wait.parity.shared.b64 %p, [full+" + bar + "], " +
            number(i / 2) + "; @!%p bra $full" + n + ";\n";
    text += "mov.b64 %d0, " + descriptor(at, 2048) + "; mov.b64 %d1, " +
            descriptor(at + 4096, 512) + ";\n";
    text += "tcgen05.mma.cta_group::1.kind::f16 [%t], %d0, %d1, %r4, " +
            std::string(stage == 0 ? "%no" : "%yes") + ";\n";
    text += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [empty+" + bar +
            "];\n";
    if (stage == 1)
      text += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n";
  }
  return text +
         "$multiplied:\nbar.warp.sync -1;\n"
         "$end:\nbar.sync 0;\n@!%multiplies bra $freed;\n"
         "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;\n"
         "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
         "$freed:\nret;\n}\n";
}

// Warps 0 to 3 store A in tensor memory (columns 32 to 39), warp 0 multiplies it by B in shared
// memory: 128 rows by 32, or 64 by 64 with .ws.
std::string from_tensor_memory(bool stationary = false) {
  const int m = stationary ? 64 : 128, n = stationary ? 64 : 32;
  const uint64_t b = uint64_t{1} << 46 | uint64_t{8} << 32 | static_cast<uint64_t>(n) << 16 | 64;
  return ".version 9.0\n.target sm_100a\n.address_size 64\n"
         ".visible .entry k(.param .u64 buffer)\n{\n"
         ".shared .align 1024 .b8 area[2048]; .shared .align 8 .b8 bar[8], where[8];\n"
         ".reg .b64 %out, %d<4>; .reg .b32 %tid, %warp, %t, %mine, %a, %r<8>, %v<32>;\n"
         ".reg .b16 %h<4>; .reg .pred %first, %zero, %b, %p, %no;\n"
         "ld.param.u64 %out, [buffer]; mov.u32 %tid, %tid.x; mad.wide.u32 %out, %tid, 128, %out;\n"
         "shr.u32 %warp, %tid, 5; setp.eq.u32 %first, %tid, 0; setp.eq.u32 %zero, %warp, 0;\n"
         "setp.lt.u32 %b, %tid, " +
         number(2 * n) +
         "; setp.ne.u32 %no, %tid, %tid;\n"
         "mov.b32 %r1, 0x3c003c00; shl.b32 %r2, %tid, 4; mov.u32 %r3, area; add.u32 %r2, %r2, "
         "%r3;\n"
         "@%b st.shared.v4.b32 [%r2], {%r1, %r1, %r1, %r1};\n"
         "fence.proxy.async.shared::cta;\n"
         "@%first mbarrier.init.shared.b64 [bar], 1;\n"
         "@%first fence.mbarrier_init.release.cluster;\n"
         "@!%zero bra $allocated;\n"
         "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;\n"
         "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
         "$allocated:\nbar.sync 0;\n"
         "ld.shared.b32 %t, [where]; shl.b32 %mine, %warp, 21; add.u32 %mine, %mine, %t;\n"
         "add.u32 %a, %mine, 32;\n"
         "tcgen05.st.sync.aligned.32x32b.x8.b32 [%a], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};\n"
         "tcgen05.wait::st.sync.aligned;\n"
         "tcgen05.fence::before_thread_sync;\n"
         "bar.sync 1;\n"
         "@!%first bra $issued;\n"
         "tcgen05.fence::after_thread_sync;\n"
         "mov.b64 %d1, " +
         std::to_string(b) + "; mov.b32 %r4, " + number(1 << 4 | n / 8 << 17 | m / 16 << 24) +
         "; add.u32 %r5, %t, 32;\ntcgen05.mma" + (stationary ? ".ws" : "") +
         ".cta_group::1.kind::f16 [%t], [%r5], %d1, %r4, %no;\n"
         "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
         "$issued:\n"
         "$wait:\nmbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra $wait;\n"
         "tcgen05.fence::after_thread_sync;\n"
         "tcgen05.ld.sync.aligned.32x32b.x32.b32 " +
         registers(32) +
         ", [%mine];\n"
         "tcgen05.wait::ld.sync.aligned;\n"
         "st.global.b32 [%out+4], %v0;\nst.global.b32 [%out], %v31;\n"
         "tcgen05.fence::before_thread_sync;\n"
         "bar.sync 2;\n@!%zero bra $freed;\n"
         "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;\n"
         "$freed:\nret;\n}\n";
}

// What is found, without lines and counts: `race`, `tcgen05 (advice)`, `invalid`; of several the
// first. A fault comes before findings. Its message, where that is asked for.
std::string first_found(const std::string& text, uint32_t threads, Order order,
                        std::string* message = nullptr) {
  Races races;
  Options options;
  options.warp_order = order;
  options.observers = {&races};
  const Module module = Module::parse(text, "test.ptx");
  Memory memory;
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.arguments = {Argument::pointer(memory.allocate("buffer", 65536, Fill::kZero))};
  const LaunchResult r = launch(module, "k", config, memory, options);
  if (message && r.fault) *message = r.fault->message;
  if (r.fault) return std::string(name(r.fault->kind));
  if (r.findings.empty()) return {};
  const Finding& f = r.findings.front();
  if (message) *message = f.message;
  return f.checker + (f.severity == Severity::kAdvice ? " (advice)" : "");
}

// The n-th occurrence of a text, from 0, is replaced by another. What is found may depend on the
// order of the warps: `race|out of bounds`.
struct Mutant {
  const char* what;
  std::string from, to, found;
  int n = 0;
};

std::string edited(std::string text, const Mutant& m) {
  size_t at = text.find(m.from);
  for (int i = 0; i < m.n && at != std::string::npos; ++i) at = text.find(m.from, at + 1);
  INFO(m.what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, m.from.size(), m.to);
}

void check(const std::string& right, uint32_t threads, const std::vector<Mutant>& mutants) {
  for (const Order order : {Order::kForward, Order::kReversed}) {
    CHECK(first_found(right, threads, order).empty());
    for (const Mutant& m : mutants) {
      INFO(m.what);
      const std::string got = first_found(edited(right, m), threads, order);
      INFO(got << ", and not " << m.found);
      CHECK(!got.empty());
      CHECK(("|" + m.found + "|").find("|" + got + "|") != std::string::npos);
    }
  }
}

const std::string kAlloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;\n";
const std::string kFree = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;\n";
const std::string kCommit =
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 ";

}  // namespace

TEST_CASE("the kernels compute what they should") {
  const Module module = Module::parse(pipeline(), "test.ptx");
  Memory memory;
  const Address out = memory.allocate("out", 65536, Fill::kZero);
  LaunchConfig config;
  config.block = {160, 1, 1};
  config.arguments = {Argument::pointer(out)};
  REQUIRE(!launch(module, "k", config, memory).fault);
  for (int row = 0; row < 128; ++row) {
    for (int column = 0; column < 32; ++column) {
      float value;
      std::memcpy(&value, &memory.bytes(out)[static_cast<size_t>(row * 128 + column * 4)], 4);
      REQUIRE(value == 32.0f * static_cast<float>((row % 8 + 1) * (column % 8 + 1)));
    }
  }
}

TEST_CASE("mutants of a pipeline") {
  check(pipeline(), 160,
        {
            {"no allocation", kAlloc, "", "invalid"},
            {"too few columns", "[where], 64", "[where], 32", "invalid"},
            {"columns that are no power of two", "[where], 64", "[where], %r0", "invalid"},
            {"an address beyond the allocation", "[%t], %d0", "[%t+48], %d0", "out of bounds"},
            {"a tile that is loaded beyond what is allocated", "[%mine]", "[%mine+40]",
             "out of bounds"},
            {"nothing is freed", kFree, "", "invalid"},
            {"half is freed", "%t, 64", "%t, 32", "invalid"},
            {"freed twice", kFree, kFree + kFree, "invalid"},
            {"freed before the last use", "$multiplied:\n", "$multiplied:\n" + kFree,
             "race|out of bounds"},
            {"freed, and then loaded", "$end:\nbar.sync 0;\n",
             "$end:\n@!%multiplies bra $late;\n" + kFree +
                 "$late:\nbar.sync 0;\n@%multiplies bra $none;\n"
                 "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%mine];\n$none:\n",
             "out of bounds"},
            {"allocated after the permit is given back", "$freed:\n",
             "@!%multiplies bra $back;\n" + kAlloc + "$back:\n$freed:\n", "invalid"},
            {"no barrier after the allocation", "$allocated:\nbar.sync 0;\n", "$allocated:\n",
             "race|invalid"},
            {"lanes of another warp", "shl.b32 %mine, %warp, 21;", "mov.u32 %mine, 4194304;",
             "invalid"},
            {"two warps change places", "shl.b32 %mine, %warp, 21;",
             "xor.b32 %mine, %warp, 1; shl.b32 %mine, %mine, 21;", "invalid"},
            {"no wait for a load", "tcgen05.wait::ld.sync.aligned;\n", "", "tcgen05 (advice)", 1},
            {"a wait for stores in place of one for loads", "tcgen05.wait::ld.sync.aligned;\n",
             "tcgen05.wait::st.sync.aligned;\n", "race"},
            {"no commit for the end", kCommit + "[done];\n", "", "deadlock"},
            {"no commit for a stage", kCommit + "[empty+8];\n", "", "deadlock"},
            {"committed before the last product", kCommit + "[empty+8];\n" + kCommit + "[done];\n",
             kCommit + "[empty+8];\n", "deadlock"},
            {"another thread commits", kCommit + "[done];\n$multiplied:\n",
             "$multiplied:\nsetp.eq.u32 %p, %tid, 129; @%p " + kCommit + "[done];\n", "race"},
            {"no wait for the end",
             "mbarrier.try_wait.parity.shared.b64 %p, [done], 1; @!%p bra $done1;\n", "",
             "race|deadlock"},
            {"no wait for the first tile",
             "mbarrier.try_wait.parity.shared.b64 %p, [done], 0; @!%p bra $done0;\n", "",
             "race|mbarrier"},
            {"no wait until the tile is read",
             "mbarrier.try_wait.parity.shared.b64 %p, [read], 0; @!%p bra $read;\n", "", "race"},
            {"a tile is said to be read before it is",
             "tcgen05.wait::ld.sync.aligned;\n"
             "tcgen05.fence::before_thread_sync;\nmbarrier.arrive.shared.b64 _, [read];\n",
             "mbarrier.arrive.shared.b64 _, [read];\ntcgen05.wait::ld.sync.aligned;\n"
             "tcgen05.fence::before_thread_sync;\n",
             "race"},
            {"no wait until a stage is full",
             "mbarrier.try_wait.parity.shared.b64 %p, [full+8], 0; @!%p bra $full1;\n", "", "race"},
            {"no wait until a stage is empty",
             "mbarrier.try_wait.parity.shared.b64 %p, [empty+0], 0; @!%p bra $empty2;\n", "",
             "race|deadlock"},
            {"no fence between the proxies", "fence.proxy.async.shared::cta;\n", "", "proxy", 1},
            {"no barrier before it is freed", "$end:\nbar.sync 0;\n", "$end:\n",
             "race|out of bounds"},
            {"a product by all lanes", "@!%lead bra $multiplied;\n", "", "divergence"},
            {"sums that nobody has set", "%r4, %no;", "%r4, %yes;", "uninitialised"},
            {"columns that nobody has written", "[%mine]", "[%mine+32]", "uninitialised", 1},
            {"no fence after the wait for a tile", "$done1;\ntcgen05.fence::after_thread_sync;\n",
             "$done1;\n", "tcgen05 (advice)"},
            {"no fence before a tile is said to be read", "tcgen05.fence::before_thread_sync;\n",
             "", "tcgen05 (advice)"},
            {"no fence after a tile is read", "$read;\ntcgen05.fence::after_thread_sync;\n",
             "$read;\n", "tcgen05 (advice)"},
            {"an instruction descriptor for another M", "mov.b32 %r4, ", "add.u32 %r4, 16777216, ",
             "invalid"},
            {"no version in a descriptor", "mov.b64 %d0, ", "and.b64 %d0, 0xffff3fffffffffff, ",
             "invalid"},
            {"B beyond shared memory", "mov.b64 %d1, ", "add.u64 %d1, 8192, ", "out of bounds"},
            {"an mbarrier that is not initialised", kCommit + "[done];\n", kCommit + "[where];\n",
             "invalid"},
        });
}

TEST_CASE("mutants of a product with A in tensor memory") {
  const std::string store =
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%a], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};\n";
  const std::string wait = "mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra $wait;\n";
  const std::vector<Mutant> mutants = {
      {"no commit", kCommit + "[bar];\n", "", "deadlock"},
      {"no wait for the sums", wait, "", "race"},
      {"no wait for the stores", "tcgen05.wait::st.sync.aligned;\n", "", "race"},
      {"a wait for loads in place of one for stores", "tcgen05.wait::st.sync.aligned;\n",
       "tcgen05.wait::ld.sync.aligned;\n", "race"},
      {"no barrier after the stores", "bar.sync 1;\n", "", "race"},
      {"nothing is stored", store, "", "uninitialised"},
      {"half of A is stored", store,
       "tcgen05.st.sync.aligned.32x32b.x4.b32 [%a], {%r1, %r1, %r1, %r1};\n", "uninitialised"},
      {"A is overwritten while it is read", "$issued:\n", "$issued:\n" + store, "race"},
      {"the sums overwrite A", "[%t], [%r5]", "[%t+16], [%r5]", "uninitialised"},
      {"no fence behind the stores", "tcgen05.fence::before_thread_sync;\n", "",
       "tcgen05 (advice)"},
      {"no fence before the product", "bra $issued;\ntcgen05.fence::after_thread_sync;\n",
       "bra $issued;\n", "tcgen05 (advice)"},
      {"the lane is above the last", "[%mine];", "[%mine+8388608];", "tcgen05 (advice)"},
      {"a commit gets an address of shared memory", kCommit + "[bar];",
       "mov.u64 %d2, bar; tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d2];",
       "address (advice)"},
      {"all warps name the lanes of the first", "shl.b32 %mine, %warp, 21;", "mov.u32 %mine, 0;",
       "tcgen05 (advice)"},
      {"each thread names its own lane", "shl.b32 %mine, %warp, 21;",
       "mov.u32 %mine, %tid.x; shl.b32 %mine, %mine, 16;", "tcgen05"},
      {"allocated by one warp after another gave the permit back", "$allocated:\n",
       "$allocated:\nsetp.eq.u32 %p, %warp, 1; bar.sync 3; @!%p bra $more;\n" + kAlloc + "$more:\n",
       "invalid"},
      {"a load is left in flight", "st.global.b32 [%out], %v31;\n",
       "st.global.b32 [%out], %v31;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%mine];\n",
       "race"},
  };
  for (const bool stationary : {false, true}) check(from_tensor_memory(stationary), 128, mutants);
}

TEST_CASE("the lanes that allocate tensor memory read its address at once, other warps do not") {
  const std::string after = "$allocated:\n", read = "ld.shared.b32 %t, [where];\n";
  CHECK(first_found(edited(from_tensor_memory(), {"", kAlloc, kAlloc + read, ""}), 128,
                    Order::kForward)
            .empty());
  CHECK(first_found(edited(from_tensor_memory(), {"", after, after + read, ""}), 128,
                    Order::kForward) == "race");
}

TEST_CASE("a product that shifts A in tensor memory writes it") {
  const Mutant early{"A is loaded before the wait", "$issued:\n",
                     "$issued:\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%a];\n"
                     "tcgen05.wait::ld.sync.aligned;\n",
                     "race"};
  CHECK(first_found(edited(from_tensor_memory(), early), 128, Order::kForward).empty());
  check(edited(from_tensor_memory(), {"", ".kind::f16 ", ".kind::f16.ashift ", ""}), 128, {early});
}

TEST_CASE("the words of what is found in tensor memory") {
  const std::string right = pipeline();
  const auto said = [&](const std::string& from, const std::string& to) {
    std::string message;
    first_found(edited(right, {"", from, to, ""}), 160, Order::kForward, &message);
    return message;
  };
  CHECK(said(kFree, "") ==
        "the block ends, and nothing has freed the 64 columns of tensor memory from column 0 on, "
        "which this allocates; tcgen05.dealloc must do it");
  CHECK(said("[where], 64", "[where], 32") ==
        "no 64 columns of tensor memory have been allocated at 0x00000000; there are 32 at this "
        "column");
  CHECK(said("shl.b32 %mine, %warp, 21;", "mov.u32 %mine, 4194304;") ==
        "warp 0 reaches lanes 0 to 31 of tensor memory, and may begin at lane 0; the address names "
        "lane 64");
  CHECK(said("shl.b32 %mine, %warp, 21;", "mov.u32 %mine, 0;").find("names lanes of warp 0") !=
        std::string::npos);
  CHECK(said("[%t], %d0", "[%t+48], %d0") ==
        "columns 48 to 79 of tensor memory do not lie in what is allocated: 0 to 63");
  CHECK(
      said("tcgen05.wait::ld.sync.aligned;\n", "") ==
      "tensor memory, lanes 0 to 15, column 0: the tensor core, for warp 4, issued at "
      "test.ptx:158, overwrites what a tcgen05.ld of warp 0, issued at :55, reads; nothing orders "
      "them");
  CHECK(said("$done1;\ntcgen05.fence::after_thread_sync;\n", "$done1;\n") ==
        "tensor memory, lanes 0 to 15, column 0: a tcgen05.ld of warp 0, issued at test.ptx:101, "
        "reads what the tensor core, for warp 4, issued at :163, writes; no "
        "tcgen05.fence::after_thread_sync comes before the first");
}

TEST_CASE("columns that nobody has written matter where they are used") {
  const std::string right = from_tensor_memory();
  const auto found_with = [&](const std::string& more) {
    const std::string load =
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%mine+48];\n"
        "tcgen05.wait::ld.sync.aligned;\n" +
        more;
    return first_found(edited(right, {"", "st.global.b32 [%out], %v31;\n",
                                      "st.global.b32 [%out], %v31;\n" + load, ""}),
                       128, Order::kForward);
  };
  CHECK(found_with("") == "");
  CHECK(found_with("add.u32 %v0, %v0, 1; st.global.b32 [%out], %v0;\n") == "uninitialised");
}
