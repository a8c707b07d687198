// SPDX-License-Identifier: MIT
// The timeline is JSON that a viewer can show, and says what warps did.
#include "ptxvm/trace.h"

#include <cstdio>
#include <set>

#include "catch.h"
#include "json_reader.h"
#include "run_ptx.h"
#include "warp_specialized.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// What holds for every trace: slices of a thread follow each other, and everything that begins
// ends.
void check_events(const std::vector<Json>& events) {
  std::map<std::pair<double, double>, double> end_of_thread;
  std::map<std::string, int> open, arrows;
  for (const Json& e : events) {
    const std::string ph = e.text("ph");
    const std::pair thread{e.value("pid"), e.has("tid") ? e.value("tid") : -1};
    if (ph == "M") continue;
    REQUIRE(e.value("ts") >= 0);
    if (ph == "X") {
      REQUIRE(e.value("dur") > 0);
      REQUIRE(e.value("ts") >= end_of_thread[thread]);
      end_of_thread[thread] = e.value("ts") + e.value("dur");
      REQUIRE(!e.at("args").text("from").empty());
    } else if (ph == "b" || ph == "e") {
      open[e.text("id")] += ph == "b" ? 1 : -1;
    } else {
      REQUIRE((ph == "s" || ph == "f"));
      arrows[e.text("id")] += ph == "s" ? 1 : -1;
    }
  }
  for (const auto& [id, n] : open) CHECK(n == 0);
  for (const auto& [id, n] : arrows) CHECK(n == 0);
}

std::vector<Json> read(const Trace& trace) {
  const std::string text = trace.json();
  const Json root = JsonReader(text).read();
  CHECK(root.at("otherData").text("axis").find("not time") != std::string::npos);
  std::vector<Json> events = root.at("traceEvents").array;
  check_events(events);
  return events;
}

// `name begin+steps` of the slices of one warp.
std::string slices(const std::vector<Json>& events, int warp) {
  std::string text;
  for (const Json& e : events) {
    if (e.text("ph") != "X" || static_cast<int>(e.value("tid")) != warp) continue;
    text += e.text("name") + " " + std::to_string(static_cast<int>(e.value("ts"))) + "+" +
            std::to_string(static_cast<int>(e.value("dur"))) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a warp that waits goes on when the last one arrives") {
  Trace trace;
  Options options;
  options.observers = {&trace};
  const Run r = run(kernel(R"(
  setp.ge.u32 %p1, %lane, 32;
  @%p1 bra $wait;
  mov.u32 %r1, 20;
$loop:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra $loop;
$wait:
  bar.sync 0;
  st.global.u32 [%out], %lane;)"),
                    {}, 64, 0, options);
  REQUIRE(r.result.ok());
  const auto events = read(trace);
  CHECK(slices(events, 0) ==
        "other 0+67\n"
        "sync 67+1\n"
        "store 68+2\n");
  CHECK(slices(events, 1) ==
        "other 0+6\n"
        "sync 6+1\n"
        "wait: barrier 0 7+61\n"
        "store 68+2\n");
}

TEST_CASE("asynchronous copies are slices beside the warps") {
  Trace trace;
  Options options;
  options.observers = {&trace};
  const Run r = run(kernel(R"(
  .shared .align 16 .b8 area[512];
  shl.b32 %r1, %lane, 4; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
  cp.async.cg.shared.global [%r1], [%in], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;)"),
                    {}, 32, 0, options);
  REQUIRE(r.result.ok());
  std::string text;
  for (const Json& e : read(trace)) {
    if (e.text("ph") == "b" || e.text("ph") == "e") {
      text += e.text("ph") + " " + e.text("name") + " at " +
              std::to_string(static_cast<int>(e.value("ts"))) + "\n";
    }
  }
  CHECK(text ==
        "b cp.async, group 0 of warp 0: 512 bytes at 7\n"
        "e cp.async, group 0 of warp 0: 512 bytes at 10\n");
}

TEST_CASE("a rung: selected blocks only, the same output, the same file however it is run",
          "[ladder]") {
  const Problem problem(256, 2);
  const Rung& rung = kRungs[2];
  const Module module = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + rung.file + ".ptx");
  const RungRun plain = run_rung(module, rung, problem, {});
  std::string first;
  for (int threads : {1, 2}) {
    Trace trace({0, 5});
    Options options;
    options.threads = threads;
    options.observers = {&trace};
    const RungRun traced = run_rung(module, rung, problem, options);
    CHECK(traced.output == plain.output);
    std::set<std::string> blocks, categories;
    for (const Json& e : read(trace)) {
      if (e.text("name") == "process_name") blocks.insert(e.at("args").text("name"));
      if (e.has("cat")) categories.insert(e.text("cat"));
    }
    CHECK(blocks == std::set<std::string>{"block (0, 0, 0)", "block (1, 1, 0)"});
    for (const char* c : {"matrix", "arithmetic", "copy", "sync", "store", "cp.async", "arrow"}) {
      CHECK(categories.count(c) == 1);
    }
    const std::string text = trace.json();
    CHECK(text.size() < 200000);
    if (first.empty()) first = text;
    CHECK(text == first);
  }
}

TEST_CASE("a kernel of warps with different roles: engines and waits") {
  const Problem problem(256, 1);
  const Module module = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/warp_specialized.ptx");
  Trace trace;
  Options options;
  options.observers = {&trace};
  const RungRun traced = run_warp_specialized(module, problem, options);
  REQUIRE(traced.result.ok());
  CHECK(traced.output == run_warp_specialized(module, problem, {}).output);
  std::map<std::string, int> categories;
  std::set<std::string> waits;
  for (const Json& e : read(trace)) {
    if (!e.has("cat")) continue;
    ++categories[e.text("cat")];
    if (e.text("cat") == "wait") waits.insert(e.text("name").substr(0, 14));
  }
  // Loads: 2 panels of Q, 2 of K and of V for each of 4 tiles; stores: 2 for each consumer.
  CHECK(categories["bulk copy"] == 2 * (2 + 4 * 4 + 2 * 2));
  // Two groups for each tile and consumer.
  CHECK(categories["wgmma"] == 2 * 2 * 4 * 2);
  CHECK(waits.count("wait: mbarrier") == 1);
  CHECK(waits.count("wait: barrier ") == 1);
}

TEST_CASE("files") {
  Trace trace;
  Options options;
  options.observers = {&trace};
  run(kernel(""), {}, 32, 0, options);
  std::string message;
  try {
    trace.write("/no/such/folder/trace.json");
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find("cannot write '/no/such/folder/trace.json': ") != std::string::npos);
}
