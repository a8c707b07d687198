// SPDX-License-Identifier: MIT
// clusterlaunchcontrol: a cluster that runs takes the place of others that have not begun.
#include <algorithm>
#include <cstring>

#include "catch.h"
#include "ptxvm/races.h"
#include "run_ptx.h"

using namespace ptxvm;

namespace {

struct Cancelling {
  LaunchResult result;
  std::string found;
  std::vector<uint32_t> times;  // that each tile has been computed
  std::vector<uint32_t> by;     // the first block of the cluster that did it, and one
};

struct Shape {
  Dim3 grid{7, 1, 1};
  uint32_t cluster = 1;
  Order order = Order::kForward;
  int host_threads = 2;
};

// Each cluster computes its own tile and those of the clusters that it cancels. The last thread of
// a block of two warps counts the tile.
std::string kernel(bool cluster, const std::string& first_block) {
  const std::string meet = cluster ? "  barrier.cluster.arrive.release.aligned;\n"
                                     "  barrier.cluster.wait.acquire.aligned;\n"
                                   : "  bar.sync 0;\n";
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %d<4>, %out;
  .reg .b32 %r<8>, %x, %y, %z, %width, %height, %thread, %rank, %parity, %own;
  .reg .b128 %response;
  .reg .pred %p, %again, %first, %lead, %last;
  .shared .align 16 .b8 response[16];
  .shared .align 8 .b8 bar[8];
  ld.param.u64 %out, [out];
  mov.u32 %thread, %tid.x;
  mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %first, %thread, 0;
  setp.eq.and.u32 %lead, %rank, 0, %first;
  setp.eq.and.u32 %last, %thread, 63, !%first;
  mov.u32 %parity, 0;
  mov.u32 %width, %nctaid.x;
  mov.u32 %height, %nctaid.y;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  sub.u32 %x, %x, %rank;
  mad.lo.u32 %own, %z, %height, %y;
  mad.lo.u32 %own, %own, %width, %x;
  add.u32 %own, %own, 1;
  @%first mbarrier.init.shared.b64 [bar], 1;
  @%first fence.mbarrier_init.release.cluster;
)" + meet +
         R"($loop:
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
  @%lead clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes)" +
         (cluster ? ".multicast::cluster::all" : "") + R"(.b128 [response], [bar];
  mad.lo.u32 %r1, %z, %height, %y;
  mad.lo.u32 %r1, %r1, %width, %x;
  add.u32 %r1, %r1, %rank;
  mad.wide.u32 %d1, %r1, 8, %out;
  @%last red.global.add.u32 [%d1], 1;
  @%last st.global.u32 [%d1+4], %own;
$wait:
  mbarrier.try_wait.parity.shared.b64 %p, [bar], %parity;  // wait
  @!%p bra $wait;  // wait
  xor.b32 %parity, %parity, 1;
  ld.shared.b128 %response, [response];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %again, %response;
)" + first_block +
         R"(
  fence.proxy.async.shared::cta;
)" + meet +
         R"(  @%again bra $loop;
  ret;
}
)";
}

const std::string kByAxis =
    "  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %response;\n"
    "  clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %y, %response;\n"
    "  clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %z, %response;\n";
const std::string kTogether =
    "  @%again clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, "
    "%response;\n";

Cancelling run(const std::string& text, const Shape& shape) {
  const Module module = Module::parse(text, "cancel.ptx");
  Memory memory;
  const auto tiles = static_cast<uint32_t>(shape.grid.count());
  const Address out = memory.allocate("out", size_t{tiles} * 8, Fill::kZero);
  LaunchConfig config;
  config.grid = shape.grid;
  config.cluster = {shape.cluster, 1, 1};
  config.block = {64, 1, 1};
  config.arguments = {Argument::pointer(out)};
  Races races;
  Options options;
  options.threads = shape.host_threads;
  options.cta_order = options.warp_order = shape.order;
  options.observers = {&races};
  Cancelling r;
  r.result = launch(module, "k", config, memory, options);
  r.found = ptxvm_test::found(r.result, module.kernel("k"));
  for (uint32_t t = 0; t < tiles; ++t) {
    uint32_t word[2];
    std::memcpy(word, memory.bytes(out).data() + size_t{t} * 8, sizeof word);
    r.times.push_back(word[0]);
    r.by.push_back(word[1]);
  }
  return r;
}

std::string without(std::string text, const std::string& part) {
  const size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.erase(at, part.size());
}

}  // namespace

TEST_CASE("each tile is computed once, and clusters take the place of others") {
  for (const Order order : {Order::kForward, Order::kReversed}) {
    for (const uint32_t cluster : {1u, 2u}) {
      for (const std::string& first_block : {kByAxis, kTogether}) {
        const Shape shape{{6, 2, 3}, cluster, order, 2};
        const Cancelling r = run(kernel(cluster == 2, first_block), shape);
        CHECK(r.found == "");
        CHECK(std::ranges::count(r.times, 1u) == 36);
        // Of those that are not resident none begins.
        std::vector<uint32_t> who = r.by;
        std::ranges::sort(who);
        const auto twice = std::ranges::unique(who);
        who.erase(twice.begin(), twice.end());
        CHECK(who.size() == 18 / cluster);
      }
    }
  }
}

TEST_CASE("the same on any number of host threads") {
  const Cancelling one = run(kernel(false, kTogether), {.host_threads = 1});
  CHECK(one.by == run(kernel(false, kTogether), {.host_threads = 4}).by);
  CHECK(one.by == std::vector<uint32_t>{1, 2, 3, 4, 1, 2, 3});
}

TEST_CASE("a grid of one block has nothing to cancel") {
  const Cancelling r = run(kernel(false, kTogether), {.grid = {1, 1, 1}});
  CHECK(r.found == "");
  CHECK(r.times == std::vector<uint32_t>{1});
}

TEST_CASE("clusters that nobody cancels begin, and those that somebody cancels do not") {
  // All but the first compute their own tile and end.
  std::string text = kernel(false, kTogether);
  text.insert(text.find("$loop:"),
              "  setp.gt.u32 %p, %own, 1;\n  @!%p bra $loop;\n  mad.wide.u32 %d1, %own, 8, %out;\n"
              "  @%last red.global.add.u32 [%d1+-8], 1;\n  @%last st.global.u32 [%d1+-4], %own;\n"
              "  ret;\n");
  const Cancelling some = run(text, {.grid = {9, 1, 1}});
  CHECK(some.found == "");
  CHECK(some.by == std::vector<uint32_t>{1, 2, 3, 4, 5, 1, 7, 8, 9});
  // Four of the five that are resident cancel another one, and none computes for it.
  const Cancelling none =
      run(without(kernel(false, kTogether), "  @%again bra $loop;\n"), {.grid = {9, 1, 1}});
  CHECK(none.times == std::vector<uint32_t>{1, 1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("a request after one that was seen to fail is an error") {
  std::string text = kernel(false, kTogether);
  const std::string back = "  @%again bra $loop;\n";
  text.replace(text.find(back), back.size(), "  bra $loop;\n");
  const Cancelling r = run(text, {});
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kInvalid);
  CHECK(r.result.fault->message.find("seen that a request to cancel failed") != std::string::npos);
}

TEST_CASE("a response that nobody waits for is a race or has no value") {
  std::string text = kernel(false, kTogether);
  text = without(text,
                 "$wait:\n  mbarrier.try_wait.parity.shared.b64 %p, [bar], %parity;  // wait\n"
                 "  @!%p bra $wait;  // wait\n");
  CHECK(run(text, {}).found != "");
}

TEST_CASE("a response that is overwritten while another warp reads it is a race") {
  std::string text = kernel(false, kTogether);
  const std::string meet = "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n";
  text = without(text, meet);
  CHECK(run(text, {}).found.find("race") != std::string::npos);
}
