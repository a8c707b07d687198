// SPDX-License-Identifier: MIT
// What the checker of synchronisation says, and that it says nothing about kernels that are right.
#include "ptxvm/races.h"

#include <fstream>
#include <iterator>

#include "catch.h"
#include "ladder.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

Run check(const std::string& body, uint32_t threads = 64, Order order = Order::kForward,
          const std::string& before = "") {
  return run_checked(kernel(kArea + body, "sm_90a", before), threads, order);
}

std::string findings(const std::string& body, uint32_t threads = 64,
                     Order order = Order::kForward) {
  return check(body, threads, order).found;
}

// Nothing in either order.
void check_clean(const std::string& body, uint32_t threads = 64) {
  for (Order order : {Order::kForward, Order::kReversed}) {
    CHECK(findings(body, threads, order).empty());
  }
}

}  // namespace

TEST_CASE("a missing barrier between warps") {
  // Lanes read the word of the thread 32 further on.
  const std::string write = "st.shared.u32 [%r1], %lane;\n";
  const std::string read =
      "xor.b32 %r4, %r1, 128;\n"
      "ld.shared.u32 %r5, [%r4]; st.global.u32 [%out], %r5;\n";
  check_clean(write + "bar.sync 0;\n" + read);
  CHECK(findings(write + read) == "race 23/21\nrace 21/23\nuninitialised 23\n");
  CHECK(findings(write + read, 64, Order::kReversed) ==
        "race 23/21\nrace 21/23\nuninitialised 23\n");
  CHECK(findings(write + "bar.sync 0;\n" + read + write) == "race 24/25\nrace 25/24\n");
  CHECK(findings("st.shared.u32 [area], 1;\n") == "race (advice) 21/21\n");
}

TEST_CASE("lanes of a warp") {
  const std::string write = "st.shared.u32 [%r1], %lane;\n";
  const std::string read =
      "xor.b32 %r4, %r1, 4;\n"
      "ld.shared.u32 %r5, [%r4];\n";
  check_clean(write + "bar.warp.sync -1;\n" + read);
  check_clean(write + "ld.shared.u32 %r5, [%r1];\n" + write);
  CHECK(findings(write + read) == "race 23/21 x2\n");
  CHECK(findings(write + "bar.warp.sync -1;\n" + read + write) == "race 25/24 x2\n");
}

TEST_CASE("a store that depends on what it overwrites, by way of a shuffle") {
  const std::string read =
      "st.shared.u32 [%r1], %lane;\nbar.warp.sync -1;\nxor.b32 %r4, %r1, 4;\n"
      "ld.shared.u32 %r5, [%r4];\n";
  const auto shuffle = [](const std::string& what, const std::string& by) {
    return "shfl.sync.bfly.b32 %r6, " + what + ", " + by + ", 31, -1;\nadd.u32 %r7, %r6, 100;\n";
  };
  const std::string store = "st.shared.u32 [%r1], %r7;\n";
  const Run handed_on = check(read + shuffle("%r5", "1") + store, 32);
  CHECK(handed_on.found == "race (advice) 27/24\n");
  CHECK(handed_on.result.ok());
  // From another lane; stored is what no shuffle has handed on; the shuffle comes first.
  for (const std::string& body : {read + shuffle("%r5", "2") + store,
                                  read + shuffle("%r5", "1") + "st.shared.u32 [%r1], %r5;\n",
                                  shuffle("%lane", "1") + read + store}) {
    CHECK_THAT(findings(body, 32), Catch::StartsWith("race 2"));
  }
}

TEST_CASE("a buffer that nobody has written is reported by default") {
  const auto reported = [](const std::string& body, Fill fill, Order order, int threads) {
    const Module module = Module::parse(kernel(body, "sm_90a"), "test.ptx");
    Memory memory;
    LaunchConfig config;
    config.grid = {3, 1, 1};
    config.block = {32, 1, 1};
    config.arguments = {Argument::pointer(memory.allocate("buffer", 131072, fill))};
    Races races;
    Options options;
    options.threads = threads;
    options.cta_order = options.warp_order = order;
    options.observers = {&races};
    return found(launch(module, "k", config, memory, options), module.kernel("k"));
  };
  const std::string read = "ld.global.u32 %r1, [%in];\n";
  const std::string first = "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0;\n";
  const std::string message = "uninitialised 18 x3\n";
  for (const Order order : {Order::kForward, Order::kReversed}) {
    for (const int threads : {1, 2}) {
      CHECK(reported(read, Fill::kPoison, order, threads) == message);
      CHECK(reported("red.global.add.u32 [%in], 1;\n", Fill::kPoison, order, threads) == message);
      CHECK(reported(read, Fill::kZero, order, threads).empty());
      CHECK(
          reported("atom.global.exch.b32 %r1, [%in], 1;\n", Fill::kPoison, order, threads).empty());
      // One block writes something.
      CHECK(
          reported(first + "@%p1 st.global.u32 [%out], 1;\n" + read, Fill::kPoison, order, threads)
              .empty());
    }
  }
}

TEST_CASE("copies that nobody waits for") {
  const std::string copy = "cp.async.ca.shared.global [%r1], [%in], 4;\n";
  const std::string read = "ld.shared.u32 %r5, [%r1];\n";
  check_clean(copy + "cp.async.commit_group;\ncp.async.wait_group 0;\n" + read);
  check_clean(copy + "cp.async.wait_all;\n" + read);
  CHECK(findings(copy + read + "cp.async.wait_all;\n") == "race 22/21 x2\n");
  CHECK(findings(copy + "cp.async.commit_group;\n") == "copy 21 x2\n");
  CHECK(findings(copy + "cp.async.wait_group 0;\n") == "copy 21 x2\n");
  // The wait of one warp says nothing to another one.
  const std::string other =
      "xor.b32 %r4, %r1, 128;\nld.shared.u32 %r5, [%r4]; st.global.u32 [%out], %r5;\n";
  check_clean(copy + "cp.async.wait_all;\nbar.sync 0;\n" + other);
  CHECK(findings(copy + "cp.async.wait_all;\n" + other) ==
        "race 24/21\nrace 21/24\nuninitialised 24\n");
  CHECK(findings(copy + "bar.sync 0;\n" + other + "cp.async.wait_all;\n") ==
        "race 24/21\nrace 24/21\n");
  // A buffer that is still read.
  const std::string whole = copy + "cp.async.wait_all;\nbar.sync 0;\n";
  check_clean(whole + other + "bar.sync 0;\n" + copy + "cp.async.wait_all;\n");
  CHECK(findings(whole + other + copy + "cp.async.wait_all;\n") == "race 25/26\nrace 26/25\n");
}

TEST_CASE("memory that was never written") {
  CHECK(findings("ld.shared.u32 %r4, [area+64]; st.global.u32 [%out], %r4;\n") ==
        "uninitialised 21 x2\n");
  CHECK(findings(".local .align 4 .b8 own[16];\nst.local.u32 [own], 1;\n"
                 "ld.local.v2.u32 {%r4, %r5}, [own];\nst.global.u32 [%out], %r5;\n",
                 32) == "uninitialised 23\n");
  // A result that is loaded before it is selected, where the call has given none.
  const auto selected = [](const std::string& less_than) {
    return findings(
        ".local .align 4 .b8 own[4];\nsetp.lt.u32 %p1, %lane, 16;\n"
        "@%p1 st.local.u32 [own], 1;\nld.local.u32 %r4, [own];\n"
        "setp.lt.u32 %p2, %lane, " +
            less_than + ";\nselp.u32 %r5, %r4, 0, %p2;\nst.global.u32 [%out], %r5;\n",
        32);
  };
  CHECK(selected("16").empty());
  CHECK(selected("18") == "uninitialised 24\n");
}

TEST_CASE("named barriers") {
  // Warp 0 produces, warp 1 consumes.
  const std::string branch = "setp.eq.u32 %p1, %r3, 0;\n@%p1 bra $produce;\n";
  const std::string consume =
      "bar.sync 3, 64;\nld.shared.u32 %r4, [area];\nbra.uni $end;\n$produce:\n"
      "st.shared.u32 [area], 42;\n";
  check_clean(branch + consume + "bar.arrive 3, 64;\n$end:\n");
  CHECK(findings(branch + "bar.sync 3, 32;\nld.shared.u32 %r4, [area];\nbra.uni $end;\n$produce:\n"
                          "st.shared.u32 [area], 42;\nbar.arrive 4, 64;\n$end:\n") ==
        "race 24/27\nbarrier 28\n");
}

TEST_CASE("halves of a word and atomics are no race") {
  // Warps write neighbouring halves of the same words.
  const std::string half =
      "and.b32 %r4, %lane, 31;\nshl.b32 %r4, %r4, 2;\nshl.b32 %r5, %r3, 1;\n"
      "add.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r2;\ncvt.u16.u32 %h1, %lane;\n"
      "st.shared.u16 [%r4], %h1;\n";
  check_clean(half + "bar.sync 0;\nand.b32 %r4, %r4, -4;\nld.shared.u32 %r6, [%r4];\n");
  // Warps write neighbouring bytes; then the same one.
  const std::string first =
      "and.b32 %r5, %lane, 31;\nsetp.eq.u32 %p1, %r5, 0;\ncvt.u16.u32 %h1, %r3;\n";
  check_clean(first +
              "add.u32 %r4, %r2, %r3;\n@%p1 st.shared.u8 [%r4], %h1;\nbar.sync 0;\n"
              "ld.shared.u16 %h2, [%r2];\n");
  CHECK(findings(first + "@%p1 st.shared.u8 [%r2], %h1;\n") == "race 24/24\n");
  // A lane reads the byte of its neighbour.
  CHECK(findings("add.u32 %r4, %r2, %lane;\nst.shared.u8 [%r4], %h1;\nxor.b32 %r5, %r4, 1;\n"
                 "ld.shared.u8 %h2, [%r5];\n",
                 32) != "");
  // Lanes write neighbouring bytes.
  check_clean(
      "add.u32 %r4, %r2, %lane;\nst.shared.u8 [%r4], %h1;\nld.shared.u8 %h2, [%r4];\n"
      "st.shared.u8 [%r4], %h2;\n");
  const std::string zero = "st.shared.u32 [%r1], 0;\nbar.sync 0;\n";
  const std::string add = "atom.shared.add.u32 %r4, [area], 1;\n";
  check_clean(zero + add + add + "bar.sync 0;\nld.shared.u32 %r6, [area];\n");
  CHECK(findings(zero + add + "ld.shared.u32 %r6, [area];\n") == "race 23/24\n");
}

TEST_CASE("bulk copies, mbarriers and the async proxy") {
  const std::string init =
      ".shared .align 8 .b8 bar[8];\nmov.u32 %r8, bar; setp.eq.u32 %p1, %lane, 0;\n"
      "@%p1 mbarrier.init.shared::cta.b64 [%r8], 1;\n";
  const std::string fence = "@%p1 fence.mbarrier_init.release.cluster;\n";
  const std::string meet = "bar.sync 0;\n";
  const std::string load =
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 256;\n"
      "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 256, "
      "[%r8];\n";
  const std::string wait =
      "$again:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8], 0;\n@!%p2 bra $again;\n";
  const std::string read = "ld.shared.u32 %r5, [%r1]; st.global.u32 [%out], %r5;\n";
  check_clean(init + fence + meet + load + wait + read);
  CHECK(findings(init + meet + load + wait + read) == "mbarrier (advice) 26/23\n");
  CHECK(findings(init + fence + load + wait + read) == "mbarrier 28/23\n");
  CHECK(findings(init + fence + meet + load + read + wait) ==
        "race 28/27\nrace 27/28\nuninitialised 28\n");

  const std::string write = "st.shared.u32 [%r1], %lane;\n";
  const std::string proxy = "fence.proxy.async.shared::cta;\n";
  const std::string leader = "setp.eq.u32 %p1, %lane, 0;\n";
  const std::string store =
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 256;\n";
  const std::string done =
      "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n";
  check_clean(leader + write + proxy + meet + store + done);
  CHECK(findings(leader + write + meet + store + done) == "proxy 24/22\nproxy 24/22\n");
  CHECK(findings(leader + write + proxy + store + done) == "race 22/24\nuninitialised 24\n");
  CHECK(findings(leader + write + proxy + meet + store + write + done) ==
        "race 26/25\nrace 25/26\n");
  CHECK(findings(leader + write + proxy + meet + store) == "copy (advice) 25\n");
}

TEST_CASE("groups of bulk stores are a thread's: each lane commits and waits for its own") {
  // Lane 0 has a group more than the others; then all commit and wait, as library code does.
  const std::string head =
      "setp.eq.u32 %p1, %lane, 0;\nsetp.eq.u32 %p2, %lane, 1;\nst.shared.u32 [%r1], %lane;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
  const std::string store = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 64;\n";
  const std::string commit = "cp.async.bulk.commit_group;\n";
  const std::string wait = "cp.async.bulk.wait_group.read 0;\n";
  check_clean(head + store + "@%p1 " + commit + store + commit + wait, 32);
  check_clean(head + store + commit + "@%p2 " + commit + wait, 32);
  CHECK(findings(head + store + commit + "@%p2 " + wait, 32) == "copy (advice) 26\n");
  CHECK(findings(head + store + "@%p2 " + commit + wait, 32) == "copy (advice) 26\n");
  // What lane 1 waits for says nothing about lane 0's.
  CHECK(findings(head + store + commit + "@%p2 " + wait + "bar.warp.sync -1;\n" +
                     "st.shared.u32 [%r1], %lane;\n" + wait,
                 32)
            .starts_with("race 30/26"));
}

TEST_CASE("ordinary kernels are clean: a transposition through shared memory, a reduction") {
  constexpr uint32_t n = 64;
  const std::vector<std::byte> zeros(n * n * 4);
  auto check = [&](const std::string& file, const std::string& entry, Dim3 grid, Dim3 block) {
    const Module m = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + file + ".ptx");
    for (Order order : {Order::kForward, Order::kReversed}) {
      Memory memory;
      LaunchConfig config;
      config.grid = grid;
      config.block = block;
      config.arguments = {Argument::pointer(memory.upload("in", zeros)),
                          Argument::pointer(memory.upload("out", zeros)), Argument::scalar<int>(n)};
      Races races;
      Options options;
      options.warp_order = order;
      options.observers = {&races};
      CHECK(found(launch(m, entry, config, memory, options), m.kernel(entry)).empty());
    }
  };
  check("transpose", "transpose_plain", {n / 32, n / 32, 1}, {32, 8, 1});
  check("transpose", "transpose_padded", {n / 32, n / 32, 1}, {32, 8, 1});
  check("reduce", "block_sum", {4, 1, 1}, {256, 1, 1});
}

TEST_CASE("the ladder is clean, whatever the order, and its results are the same", "[ladder]") {
  const Problem problem(256, 2);
  for (const Rung& rung : kRungs) {
    INFO(rung.entry);
    const Module module = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + rung.file + ".ptx");
    const RungRun plain = run_rung(module, rung, problem, {});
    for (int variant = 0; variant < 4; ++variant) {
      Races races;
      Options options;
      options.threads = variant % 2 + 1;
      options.warp_order = variant / 2 ? Order::kReversed : Order::kForward;
      options.observers = {&races};
      const RungRun checked = run_rung(module, rung, problem, options);
      CHECK(found(checked.result, module.kernel(rung.entry)).empty());
      CHECK(checked.output == plain.output);
      CHECK(checked.result.steps == plain.result.steps);
    }
  }
}

TEST_CASE("findings do not depend on the number of host threads", "[ladder]") {
  const Problem problem(256, 2);
  const Rung& rung = kRungs[2];
  std::ifstream in(std::string(PTXVM_TEST_PTX_DIR) + "/" + rung.file + ".ptx");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0; (at = text.find("bar.sync", at)) != std::string::npos; ++at) {
    text.replace(at, text.find(';', at) - at, "// no barrier");
  }
  const Module module = Module::parse(text, "racy.ptx");
  std::string first;
  for (int threads : {1, 2, 2}) {
    Races races;
    Options options;
    options.threads = threads;
    options.observers = {&races};
    std::string text;
    for (const Finding& f : run_rung(module, rung, problem, options).result.findings)
      text += format(f);
    CHECK(!text.empty());
    if (first.empty()) first = text;
    CHECK(text == first);
  }
}

TEST_CASE("two stores of the same value are advice") {
  const auto severities = [](const std::string& body) {
    std::vector<Severity> out;
    for (Order order : {Order::kForward, Order::kReversed}) {
      const Run r = check(body, 64, order);
      // Errors are first; words of the same store that are repeated are advice beside them.
      REQUIRE(!r.result.findings.empty());
      CHECK(r.result.findings[0].checker == "race");
      CHECK(r.result.ok() == (r.result.findings[0].severity == Severity::kAdvice));
      out.push_back(r.result.findings[0].severity);
    }
    return out;
  };
  const std::vector<Severity> advice(2, Severity::kAdvice), error(2, Severity::kError);
  CHECK(severities("st.shared.u32 [%r2], 7;") == advice);
  CHECK(severities("st.shared.u32 [%r2], %r3;") == error);
  // A thread's own place in the warp, and a value in one of two lanes that is another.
  const std::string rows = "and.b32 %r4, %lane, 31; shl.b32 %r5, %r4, 4; add.u32 %r5, %r5, %r2;\n";
  CHECK(severities(rows + "st.shared.v4.u32 [%r5], {%r4, 1, 2, 3};") == advice);
  CHECK(severities(rows + "st.shared.v4.u32 [%r5], {%r4, 1, 2, %lane};") == error);
  const std::string store = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r6};";
  CHECK(severities(rows + "mov.u32 %r6, 3;" + store) == advice);
  CHECK(severities(rows + "setp.eq.u32 %p1, %lane, 37; selp.u32 %r6, 4, 3, %p1;" + store) == error);
  // Of a store some lanes write what another warp has written, and the others fresh words.
  const std::string clamped =
      "setp.eq.u32 %p1, %lane, 63; selp.u32 %r4, 5, %lane, %p1; shl.b32 %r5, %r4, 2;\n"
      "add.u32 %r5, %r5, %r2; st.shared.u32 [%r5], ";
  CHECK(severities(clamped + "%r4;") == advice);
  CHECK(severities(clamped + "%lane;") == error);
}

TEST_CASE("what nobody has written is an error once it is used") {
  const auto found = [](const std::string& body) {
    const std::string text = findings("ld.shared.u32 %r5, [%r1];\n" + body, 32);
    return text.empty() ? 0 : text.find("uninitialised") == 0 ? 1 : 2;
  };
  // Never used, or left aside where it decides nothing.
  CHECK(found("") == 0);
  CHECK(found("add.u32 %r6, %r5, 1; mov.b64 %d1, {%r6, %r5};") == 0);
  CHECK(
      found("setp.lt.u32 %p1, %lane, 99; selp.u32 %r6, 1, %r5, %p1; st.global.u32 [%out], %r6;") ==
      0);
  CHECK(found("mov.u32 %r5, 1; st.global.u32 [%out], %r5;") == 0);
  CHECK(found("st.shared.u32 [%r1], %r5;") == 0);
  CHECK(found("setp.lt.u32 %p1, %r5, 7; setp.gt.u32 %p2, %lane, 99; and.pred %p3, %p1, %p2;\n"
              "@%p3 st.global.u32 [%out], 1;") == 0);
  CHECK(found("setp.lt.u32 %p1, %r5, 7; setp.lt.u32 %p2, %lane, 99; or.pred %p3, %p1, %p2;\n"
              "@%p3 bra $end; st.global.u32 [%out], 1; $end:") == 0);
  CHECK(found("setp.gt.u32 %p2, %lane, 99; setp.lt.and.u32 %p1, %r5, 7, %p2;\n"
              "@%p1 st.global.u32 [%out], 1;") == 0);
  CHECK(found("setp.gt.u32 %p2, %lane, 99; set.lt.and.u32.u32 %r6, %r5, 7, %p2;\n"
              "st.global.u32 [%out], %r6;") == 0);
  CHECK(found("and.b32 %r6, %r5, 0; st.global.u32 [%out], %r6;") == 0);
  // Stored, an address, a branch, a guard; by another lane; through arithmetic.
  CHECK(found("st.global.u32 [%out], %r5;") == 1);
  CHECK(found("and.b32 %r6, %r5, 12; add.u32 %r6, %r6, %r2; st.shared.u32 [%r6], %r2;") == 2);
  CHECK(found("setp.lt.u32 %p1, %r5, 7; @%p1 bra $end; $end:") == 1);
  CHECK(found("setp.lt.u32 %p1, %r5, 7; @%p1 st.global.u32 [%out], 1;") == 1);
  CHECK(found("shfl.sync.idx.b32 %r6, %r5, 3, 31, 0xffffffff; st.global.u32 [%out], %r6;") == 1);
  CHECK(
      found("cvt.rn.f32.u32 %f1, %r5; fma.rn.f32 %f1, %f1, %f1, %f1; st.global.f32 [%out], %f1;") ==
      1);
  CHECK(
      found("setp.gt.u32 %p1, %lane, 99; selp.u32 %r6, 1, %r5, %p1; st.global.u32 [%out], %r6;") ==
      1);
  CHECK(found("setp.lt.u32 %p1, %r5, 7; setp.lt.u32 %p2, %lane, 99; and.pred %p3, %p1, %p2;\n"
              "@%p3 st.global.u32 [%out], 1;") == 1);
  CHECK(found("setp.gt.u32 %p2, %lane, 99; set.lt.or.u32.u32 %r6, %r5, 7, %p2;\n"
              "st.global.u32 [%out], %r6;") == 1);
  CHECK(found("vote.sync.any.pred %p1, 1, 0xffffffff; redux.sync.add.u32 %r6, %r5, 0xffffffff;\n"
              "st.global.u32 [%out], %r6;") == 1);
  // A second read of the same word.
  CHECK(found("ld.shared.u32 %r6, [%r1]; st.global.u32 [%out], %r6;") == 1);
  // Of a vector only what is there.
  const std::string halves =
      "st.shared.u32 [area+256], 1; bar.warp.sync 0xffffffff;\n"
      "ld.shared.v2.u32 {%r6, %r7}, [area+256]; st.global.u32 [%out], ";
  CHECK(found(halves + "%r6;") == 0);
  CHECK(found(halves + "%r7;") == 1);
}

TEST_CASE("a register that nothing has set is an error once it is used") {
  // With the register that the message names.
  const auto found = [](const std::string& body) {
    const Run r = check(body, 32);
    if (r.result.findings.empty()) return r.found;
    return register_of(r.result.findings[0]) + " " + r.found;
  };
  const auto uses = [](const std::string& name, int line) {
    return name + " uninitialised " + std::to_string(line) + "\n";
  };
  const std::string store = "st.global.u32 [%out], %r5;\n";
  CHECK(found(store) == uses("%r5", 21));
  CHECK(check("ld.shared.u32 %r6, [%r5];\n").found.ends_with("uninitialised 21\n"));
  CHECK(found("@%p1 bra $end;\n$end:\n") == uses("%p1", 21));
  CHECK(found("@!%p1 st.global.u32 [%out], 1;\n") == uses("%p1", 21));
  CHECK(found(".reg .v2 .u32 %v;\nmov.u32 %v.x, 1;\nst.global.v2.u32 [%out], %v;\n") ==
        uses("%v.y", 23));
  // Through arithmetic, shared memory, where a bulk copy uses it too, and local memory.
  CHECK(found("add.u32 %r6, %r5, 1;\nst.global.u32 [%out], %r6;\n") == uses("%r5", 22));
  CHECK(found("st.shared.u32 [%r1], %r5;\n") == "");
  CHECK(found("st.shared.u32 [%r1], %r5;\nld.shared.u32 %r6, [%r1];\n"
              "st.global.u32 [%out], %r6;\n") == uses("%r5", 23));
  CHECK(found("st.shared.u32 [%r1], %r5; fence.proxy.async.shared::cta; bar.sync 0;\n"
              "setp.eq.u32 %p1, %lane, 0;\n"
              "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n"
              "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n") ==
        uses("%r5", 23));
  CHECK(found(".local .align 4 .b8 own[4];\nst.local.u32 [own], %r5; ld.local.u32 %r6, [own];\n"
              "st.global.u32 [%out], %r6;\n") == uses("%r5", 23));
  // Joined with what is set, and taken out again.
  const std::string joined = "mov.b64 %d4, {%r5, %lane};\n", split = "mov.b64 {%r6, %r7}, %d4;\n";
  CHECK(found(joined + split + "st.global.u32 [%out], %r7;\n") == "");
  CHECK(found(joined + split + "st.global.u32 [%out], %r6;\n") == uses("%r5", 23));
  CHECK(found(joined + "mov.b64 {%r6, _}, %d4;\nst.global.u32 [%out], %r6;\n") == uses("%r5", 23));
  CHECK(found(joined + "mov.b64 {_, %r6}, %d4;\nst.global.u32 [%out], %r6;\n") == "");
  CHECK(found(joined + "st.global.u64 [%out], %d4;\n") == uses("%r5", 22));
  CHECK(found(joined + "add.u64 %d4, %d4, 1;\n" + split + "st.global.u32 [%out], %r7;\n") ==
        uses("%r5", 24));
  const auto added = [&](const std::string& half) {
    return run_checked(kernel(kArea + joined + "mov.b64 %d5, %d4;\nadd.f32x2 %d4, %d5, %d5;\n" +
                                  split + "st.global.u32 [%out], " + half + ";\n",
                              "sm_100"),
                       32)
        .found;
  };
  CHECK(added("%r7") == "");
  CHECK(added("%r6") == "uninitialised 25\n");
  CHECK(found("mov.b16 %h2, 1;\nmov.b32 %r6, {%h1, %h2};\nmov.b64 %d4, {%lane, %r6};\n"
              "mov.b64 {_, _, %h3, %h4}, %d4;\nst.global.u16 [%out], %h4;\n"
              "st.global.u16 [%out], %h3;\n") == uses("%h1", 26));
  // Never used, or not chosen.
  CHECK(found("add.u32 %r6, %r5, 1;") == "");
  const std::string chosen = "selp.u32 %r5, %r5, 1, %p1;\n" + store;
  CHECK(found("setp.lt.u32 %p1, %lane, 0;\n" + chosen) == "");
  CHECK(found("setp.lt.u32 %p1, %lane, 1;\n" + chosen) == uses("%r5", 23));
  // Set in some lanes, on some paths, in a loop before its use.
  const std::string half = "setp.lt.u32 %p1, %lane, 16;\n@%p1 mov.u32 %r5, 1;\n";
  CHECK(found(half + store) == uses("%r5", 23));
  CHECK(found(half + "@%p1 " + store) == "");
  CHECK(found(half + "@!%p1 mov.u32 %r5, 2;\n" + store) == "");
  CHECK(found("setp.lt.u32 %p1, %lane, 16;\n@%p1 bra $skip;\nmov.u32 %r5, 1;\n$skip:\n" + store) ==
        uses("%r5", 25));
  CHECK(found("mov.u32 %r4, 0;\n$again:\nmov.u32 %r5, %r4;\nadd.u32 %r4, %r4, 1;\n"
              "setp.lt.u32 %p1, %r4, 3;\n@%p1 bra $again;\n" +
              store) == "");
  CHECK(found("mov.u32 %r4, 0;\n$again:\nadd.u32 %r5, %r5, 1;\nadd.u32 %r4, %r4, 1;\n"
              "setp.lt.u32 %p1, %r4, 3;\n@%p1 bra $again;\n" +
              store) == uses("%r5", 27));
}

TEST_CASE("registers of a function that nothing has set, in every call") {
  // The second call finds what the first has left there. A recursive call keeps the caller's.
  const std::string function = R"(
.func (.param .b32 result) once(.param .b32 x)
{
  .reg .b32 %r<4>; .reg .pred %p;
  ld.param.b32 %r1, [x]; setp.eq.u32 %p, %r1, 1; @%p mov.u32 %r2, 7;
  setp.lt.u32 %p, %r1, 3; @%p bra $out;
  mov.u32 %r3, 5; sub.u32 %r1, %r1, 2;
  { .param .b32 y; .param .b32 z; st.param.b32 [y], %r1; call (z), once, (y); }
  mov.u32 %r2, %r3;
$out:
  st.param.b32 [result], %r2;
  ret;
}
)";
  const auto found = [&](const std::string& arguments) {
    std::string text = ".reg .b32 %once;\n";
    for (const char argument : arguments) {
      text += std::string("{ .param .b32 x; .param .b32 result; st.param.b32 [x], ") + argument +
              "; call (result), once, (x); ld.param.b32 %once, [result]; }\n";
    }
    text += "st.global.u32 [%out], %once;\n";
    return check(text, 32, Order::kForward, function).found;
  };
  CHECK(found("1") == "");
  CHECK(found("21") == "");
  CHECK(found("3") == "");
  CHECK(found("4") == "");
  CHECK_THAT(found("2"), Catch::StartsWith("uninitialised"));
  CHECK_THAT(found("12"), Catch::StartsWith("uninitialised"));
}

TEST_CASE("what nobody has written is that after a copy, too") {
  const std::string load = "ld.shared.u32 %r5, [%r1+1024];\n";
  const std::string use = "st.global.u32 [%out], %r6;\n";
  const std::string message = "uninitialised 21\n";
  const auto found = [&](const std::string& body) { return findings(load + body, 32); };
  // Through shared memory, and a second time; what is written over it has a value.
  const std::string again = "ld.shared.u32 %r6, [%r1];\n";
  CHECK(found("st.shared.u32 [%r1], %r5;\n" + again) == "");
  CHECK(found("st.shared.u32 [%r1], %r5;\n" + again + use) == message);
  CHECK(found("st.shared.u32 [%r1], %r5; st.shared.u32 [%r1], %r2;\n" + again + use) == "");
  CHECK(found("st.shared.u32 [%r1], %r5; " + again + "st.shared.u32 [%r1+2048], %r6;\n" +
              "ld.shared.u32 %r6, [%r1+2048];\n" + use) == message);
  // By the lane, by the byte, by the half, of a vector.
  const std::string mixed =
      "mov.u32 %r7, %lane; setp.ne.u32 %p1, %lane, 5; selp.u32 %r5, %lane, %r5, %p1;\n"
      "st.shared.u32 [%r1], %r5; bar.warp.sync 0xffffffff;\n";
  CHECK(found(mixed + "ld.shared.u32 %r6, [area+16];" + use) == "");
  CHECK(found(mixed + "ld.shared.u32 %r6, [area+20];" + use) == message);
  CHECK(found("st.shared.u8 [%r1+1], %r5; ld.shared.u8 %r6, [%r1+1];" + use) == message);
  const std::string parts =
      "shl.b32 %r4, %lane, 4; add.u32 %r4, %r4, %r2;\n"
      "st.shared.v2.u32 [%r4+2048], {%r2, %r5}; ld.shared.u32 %r6, [%r4+2048";
  CHECK(found(parts + "];" + use) == "");
  CHECK(found(parts + "+4];" + use) == message);
  const std::string whole =
      "shl.b32 %r4, %lane, 4; add.u32 %r4, %r4, %r2;\n"
      "st.shared.v4.u32 [%r4+2048], {%r5, %r5, %r5, %r5}; st.shared.u16 [%r4+2054], %r2;\n";
  CHECK(found(whole + "ld.shared.u16 %r6, [%r4+2054];" + use) == "");
  CHECK(found(whole + "ld.shared.u16 %r6, [%r4+2052];" + use) == message);
  // A bulk copy uses what it reads.
  CHECK(found("st.shared.u32 [%r1], %r5; fence.proxy.async.shared::cta; bar.sync 0;\n"
              "setp.eq.u32 %p1, %lane, 0;\n"
              "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n"
              "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n") ==
        message);
  // A copy that lands there gives it a value.
  CHECK(found("st.shared.u32 [%r1], %r5; cp.async.ca.shared.global [%r1], [%in], 4;"
              "cp.async.wait_all; " +
              again + use) == "");
  // By another warp: what is named is the first read.
  CHECK(findings("setp.lt.u32 %p1, %r3, 1;\n@%p1 ld.shared.u32 %r5, [%r1+1024];\n"
                 "@%p1 st.shared.u32 [%r1], %r5;\nbar.sync 0;\n@%p1 bra $end;\n"
                 "ld.shared.u32 %r6, [%r1+-128];\n" +
                 use + "$end:\n") == "uninitialised 22\n");
  // A race is one still.
  CHECK(findings(load + "xor.b32 %r4, %r1, 128; st.shared.u32 [%r4], %r5;\n" + again)
            .starts_with("race 23/22"));
  // Through local memory.
  const std::string local = ".local .align 8 .b8 place[8]; st.local.u32 [place], %r5;\n";
  CHECK(found(local + "ld.local.u32 %r6, [place];") == "");
  CHECK(found(local + "ld.local.u32 %r6, [place]; " + use) == message);
  CHECK(found(local + "ld.local.u8 %r6, [place+3]; " + use) == message);
  CHECK(found(local + "st.local.u8 [place+3], 0; ld.local.u8 %r6, [place+3]; " + use) == "");
}

TEST_CASE("a block has nothing of the block before it on the same host thread") {
  // Block 0 keeps what has no value in local memory; block 1 has a value of its own there.
  const Module module = Module::parse(kernel(kArea + std::string(R"(
    .local .align 4 .b8 place[4];
    mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0;
    st.local.u32 [place], 1;
    ld.shared.u32 %r5, [%r1];
    @%p1 st.local.u32 [place], %r5;
    @!%p1 ld.local.u32 %r6, [place];
    @!%p1 st.global.u32 [%out], %r6;)")),
                                      "test.ptx");
  Memory memory;
  LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = {32, 1, 1};
  config.arguments = {Argument::pointer(memory.allocate("out", 512, Fill::kZero))};
  Races races;
  Options options;
  options.threads = 1;
  options.observers = {&races};
  CHECK(found(launch(module, "k", config, memory, options), module.kernel("k")).empty());
}

TEST_CASE("an update of what nobody has written gives it no value") {
  const std::string zero = "st.shared.u32 [%r1], 0;\n";
  const std::string load = "ld.shared.u32 %r6, [%r1];\n";
  const std::string use = "st.global.u32 [%out], %r6;\n";
  const auto found = [](const std::string& body) { return findings(body, 32); };
  const std::string message = "uninitialised 21\n";
  for (const std::string update :
       {"red.shared.add.u32 [%r1], 1;\n", "atom.shared.add.u32 %r5, [%r1], 1;\n",
        "atom.shared.cas.b32 %r5, [%r1], 1, 2;\n", "red.relaxed.cta.shared.max.u32 [%r1], 1;\n"}) {
    CHECK(found(update) == "");
    CHECK(found(update + load) == "");
    CHECK(found(update + load + use) == message);
    CHECK(found(update + "red.shared.add.u32 [%r1], 1;\n" + load + use) == message);
    CHECK(found(update + zero + load + use) == "");
    CHECK(found(zero + update + load + use) == "");
  }
  CHECK(found("atom.shared.add.u32 %r6, [%r1], 1;\n" + use) == message);
  CHECK(found("atom.shared.cas.b16 %h1, [%r1], %h2, %h3;\nst.global.u16 [%out], %h1;") != "");
  CHECK(found("atom.shared.cas.b32 %r6, [%r1], 0, 1; setp.ne.u32 %p1, %r6, 0;\n"
              "@%p1 bra $end; $end:") == message);
  CHECK(found("atom.shared.exch.b32 %r5, [%r1], 1;\n" + load + use) == "");
  CHECK(found("atom.shared.exch.b32 %r6, [%r1], 1;\n" + use) == message);
}

TEST_CASE("matrices of what nobody has written, stored and read again") {
  // Rows of 16 bytes; those from 5 on are unwritten.
  const auto found = [](const std::string& transposed, int row, int column) {
    const std::string use = std::to_string(row * 16 + column * 2);
    return findings(
               "setp.lt.u32 %p1, %lane, 5; shl.b32 %r4, %lane, 4; add.u32 %r4, %r4, %r2;\n"
               "@%p1 st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2}; bar.warp.sync 0xffffffff;\n"
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];\n"
               "stmatrix.sync.aligned.m8n8.x1" +
                   transposed +
                   ".shared.b16 [%r4+1024], {%r5};\n"
                   "bar.warp.sync 0xffffffff;\nld.shared.u16 %h1, [area+1024+" +
                   use + "]; st.global.u16 [%out], %h1;",
               32) != "";
  };
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      CHECK(found("", row, column) == (row >= 5));
      CHECK(found(".trans", row, column) == (column >= 5));
    }
  }
}

TEST_CASE("what a call passes and gives back has as little value as before") {
  const std::string function = R"(
.func (.param .b32 result) same(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [x]; st.param.b32 [result], %r1;
  ret;
}
)";
  const auto found = [&](const std::string& body) {
    const std::string call =
        "ld.shared.u32 %r5, [%r1];\n{\n.param .b32 x; .param .b32 result;\n"
        "st.param.b32 [x], %r5; call (result), same, (x);\n"
        "ld.param.b32 %r6, [result];\n}\n";
    return check(call + body, 32, Order::kForward, function).found;
  };
  CHECK(found("") == "");
  CHECK_THAT(found("st.global.u32 [%out], %r6;"), Catch::StartsWith("uninitialised"));
}

TEST_CASE("products of ragged sizes have findings only where a row beyond the end is stored") {
  const Module m = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/ragged.ptx");
  const std::vector<uint16_t> ones(16 * 16, 0x3c00);
  for (const std::string entry : {"ragged_mma", "ragged_wmma"}) {
    for (const int past : {0, 1}) {
      INFO(entry << " " << past);
      constexpr int kRows = 11, kColumns = 5;
      Memory memory;
      LaunchConfig config;
      config.block = {32, 1, 1};
      const auto in = std::as_bytes(std::span(ones));
      const Address d = memory.allocate("d", 16 * kColumns * 4, Fill::kZero);
      config.arguments = {Argument::pointer(memory.upload("a", in)),
                          Argument::pointer(memory.upload("b", in)),
                          Argument::pointer(d),
                          Argument::scalar<int>(kRows),
                          Argument::scalar<int>(kColumns),
                          Argument::scalar<int>(kRows - 1 + past)};
      Races races;
      Options options;
      options.observers = {&races};
      const LaunchResult result = launch(m, entry, config, memory, options);
      REQUIRE(!result.fault);
      float sums[kRows * kColumns];
      std::memcpy(sums, memory.bytes(d).data(), sizeof sums);
      for (const float x : sums) CHECK(x == 16);
      if (past == 0) {
        CHECK(found(result, m.kernel(entry)) == "");
      } else {
        REQUIRE(!result.findings.empty());
        CHECK(result.findings[0].checker == "uninitialised");
      }
    }
  }
}

TEST_CASE("rows and columns of a product that nobody has written") {
  // A: 16 x 16 halves from 0 on, B: 8 x 16 from 1024 on. Lane l has row l / 4, columns l % 4 * 2.
  const auto found = [](const std::string& rows_of_a, const std::string& rows_of_b,
                        const std::string& stored) {
    return findings(
        "and.b32 %r4, %lane, 15; shl.b32 %r5, %r4, 5; add.u32 %r5, %r5, %r2;\n"
        "shr.u32 %r6, %lane, 4; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r5;\n"
        "setp.lt.u32 %p1, %r4, " +
            rows_of_a +
            ";\n"
            "@%p1 st.shared.v4.u32 [%r6], {%r4, %r4, %r4, %r4};\n"
            "setp.lt.u32 %p2, %r4, " +
            rows_of_b +
            ";\n"
            "@%p2 st.shared.v4.u32 [%r6+1024], {%r4, %r4, %r4, %r4};\n"
            "bar.sync 0;\n"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r6];\n"
            "and.b32 %r11, %lane, 7; shl.b32 %r11, %r11, 5; add.u32 %r11, %r11, %r2;\n"
            "and.b32 %r12, %lane, 8; shl.b32 %r12, %r12, 1; add.u32 %r11, %r11, %r12;\n"
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r13, %r14}, [%r11+1024];\n"
            "mov.f32 %f1, 0f00000000;\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, "
            "{%r7, %r8, %r9, %r10}, {%r13, %r14}, {%f1, %f1, %f1, %f1};\n" +
            stored,
        32);
  };
  const std::string upper = "st.global.v2.f32 [%out], {%f2, %f3};";
  const std::string lower = "st.global.v2.f32 [%out], {%f4, %f5};";
  const std::string row_6 = "setp.ge.u32 %p3, %lane, 24; @%p3 bra $end; ";
  CHECK(found("16", "8", upper + lower) == "");
  CHECK(found("8", "8", upper) == "");
  CHECK(found("8", "8", lower) != "");
  CHECK(found("6", "8", row_6 + upper + " $end:") == "");
  CHECK(found("7", "8", upper) != "");
  const std::string columns = "and.b32 %r15, %lane, 3; setp.ge.u32 %p3, %r15, ";
  CHECK(found("16", "4", columns + "2; @%p3 bra $end; " + upper + lower + " $end:") == "");
  CHECK(found("16", "4", columns + "3; @%p3 bra $end; " + upper + lower + " $end:") != "");
}
