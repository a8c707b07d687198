// SPDX-License-Identifier: MIT
// kernels/waiting.cu: as nvcc compiles them, with all checkers.
#include <numeric>
#include <optional>

#include "catch.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

using namespace ptxvm;

namespace {

constexpr uint32_t kThreads = 128;

struct Done {
  LaunchResult result;
  std::vector<int> out;
  Counts counts;
};

// Runs an entry on 1, 2, 3, ...; `more` are the arguments behind the two buffers.
Done run(const std::string& entry, uint32_t blocks, const std::vector<Argument>& more,
         Memory& memory, Order order, int threads = 0, bool global = true) {
  const Module module = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/waiting.ptx");
  std::vector<int> in(size_t{blocks} * kThreads);
  std::iota(in.begin(), in.end(), 1);
  LaunchConfig config;
  config.grid = {blocks, 1, 1};
  config.block = {kThreads, 1, 1};
  const auto bytes = std::as_bytes(std::span(in));
  config.arguments = {Argument::pointer(memory.upload("in", bytes)),
                      Argument::pointer(memory.allocate("out", bytes.size(), Fill::kZero))};
  config.arguments.insert(config.arguments.end(), more.begin(), more.end());
  Options options;
  options.threads = threads;
  options.cta_order = options.warp_order = order;
  Counters counters;
  Races races;
  GlobalRaces global_races;
  options.observers = {&counters, &races};
  if (global) options.observers.push_back(&global_races);
  Done done;
  done.result = launch(module, entry, config, memory, options);
  done.out.resize(in.size());
  std::memcpy(done.out.data(), memory.bytes("out").data(), bytes.size());
  done.counts = counters.report().total;
  return done;
}

void require_clean(const LaunchResult& r) {
  INFO((r.fault ? r.fault->format() : ""));
  for (const Finding& f : r.findings) UNSCOPED_INFO(format(f));
  REQUIRE(!r.fault);
  REQUIRE(r.findings.empty());
}

Done scan(uint32_t blocks, Order order, int threads = 0, bool global = true) {
  Memory memory;
  std::vector<Argument> more;
  for (const char* name : {"state", "sums", "totals"}) {
    const bool flags = std::string_view(name) == "state";
    more.push_back(Argument::pointer(
        memory.allocate(name, blocks * sizeof(int), flags ? Fill::kZero : Fill::kPoison)));
  }
  return run("look_back_scan", blocks, more, memory, order, threads, global);
}

}  // namespace

TEST_CASE("threads that return before a barrier") {
  for (Order order : {Order::kForward, Order::kReversed}) {
    for (int n : {2 * 128, 200, 140, 70}) {
      Memory memory;
      const Done done = run("early_return", 2, {Argument::scalar(n)}, memory, order);
      require_clean(done.result);
      for (int i = 0; i < 256; ++i)
        CHECK(done.out[static_cast<size_t>(i)] == (i < n ? (i ^ 1) + 1 : 0));
    }
  }
}

TEST_CASE("reductions in a part of a warp") {
  for (int lanes : {32, 24, 7, 1}) {
    Memory memory;
    const Done done = run("partial_sums", 2, {Argument::scalar(lanes)}, memory, Order::kForward);
    require_clean(done.result);
    for (int warp = 0; warp < 8; ++warp) {
      const int first = warp * 32 + 1;
      CHECK(done.out[static_cast<size_t>(warp)] == lanes * first + lanes * (lanes - 1) / 2);
    }
  }
}

TEST_CASE("decoupled look-back") {
  for (Order order : {Order::kForward, Order::kReversed}) {
    const Done done = scan(50, order);
    require_clean(done.result);
    for (size_t i = 0; i < done.out.size(); ++i) {
      CHECK(done.out[i] == static_cast<int>((i + 1) * (i + 2) / 2));
    }
  }
}

TEST_CASE("decoupled look-back counts the same each time") {
  std::optional<Counts> first;
  for (int threads : {1, 2, 4, 4}) {
    const Done done = scan(50, Order::kReversed, threads, false);
    require_clean(done.result);
    if (!first) first = done.counts;
    CHECK(done.counts == *first);
  }
}
