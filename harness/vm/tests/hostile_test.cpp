// SPDX-License-Identifier: MIT
// Texts that nobody writes: what they cost is bounded by their length.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "catch.h"
#include "lower/cfg.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;
using Catch::Matchers::Contains;

namespace {

const std::string kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string entry(const std::string& body, const std::string& name = "k",
                  const std::string& parameters = "") {
  return ".visible .entry " + name + "(" + parameters + ") {\n" + body + "\n}\n";
}

template <class F>
std::string repeated(int count, const F& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text(std::to_string(i));
  return all;
}

/// What is wrong with the only kernel, or with the text.
std::string error_of(const std::string& text) {
  try {
    const Module module = Module::parse(kHead + text, "k.ptx");
    const auto errors = module.kernels()[0].errors();
    return errors.empty() ? "accepted" : errors[0].message;
  } catch (const Error& e) {
    return e.diagnostics().at(0).message;
  }
}

/// Megabytes of the process at their highest.
long megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

template <class F>
double seconds(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("variables that no memory holds") {
  const auto four = [](const std::string& space) {
    return repeated(4, [&](const std::string& i) {
      return "." + space + " .align 1 .b8 a" + i + "[1073741824];\n";
    });
  };
  CHECK_THAT(error_of(entry(four("shared") + "ret;")),
             Contains("with 'a0' there are 1073741824 bytes of shared memory"));
  CHECK_THAT(error_of(four("shared") + entry(".reg .b32 %r; ld.shared.u32 %r, [a3]; ret;")),
             Contains("with 'a3' there are 1073741824 bytes of shared memory"));
  CHECK_THAT(error_of(entry(four("local") + "ret;")),
             Contains("bytes of local memory of a thread; at most 524288"));
  // 2^29 + 1 elements of 8 bytes are 8 bytes in 32 bits.
  CHECK_THAT(error_of(entry("ret;", "k", ".param .b64 p[536870913]")),
             Contains("bytes of parameters; at most 32764"));
  CHECK(error_of(entry("ret;", "k", ".param .b64 p[4000]")) == "accepted");
}

TEST_CASE("large variables of a module cost nothing before they are written") {
  const long before = megabytes();
  const Module module = Module::parse(
      kHead +
          repeated(12,
                   [](const std::string& i) {
                     return ".visible .global .align 4 .b8 g" + i + "[1000000000] = {7, 8};\n";
                   }) +
          entry(".reg .b32 %r; ld.global.u32 %r, [g11+999999996]; st.global.u32 [g0+4], %r; ret;"),
      "k.ptx");
  CHECK(module.variables().size() == 12);
  CHECK(module.variables()[3].bytes == 1000000000);
  Memory memory;
  CHECK(!launch(module, "k", {}, memory).fault);
  const auto bytes = memory.variable(module, "g0");
  CHECK(bytes.size() == 1000000000);
  CHECK(bytes[1] == std::byte{8});
  CHECK(bytes[999999999] == std::byte{0});
  CHECK(megabytes() - before < 200);
}

TEST_CASE("many functions, entries and variables take time by their number") {
  const auto functions = [](int count) {
    return repeated(count, [](const std::string& i) { return ".func f" + i + "() { ret; }\n"; });
  };
  const auto entries = [](int count, const std::string& body) {
    return repeated(count, [&](const std::string& i) { return entry(body, "k" + i); });
  };
  const std::string variables =
      repeated(20000, [](const std::string& i) { return ".global .b32 v" + i + ";\n"; });
  const std::string all = kHead + functions(20000) + variables + entries(20000, "call f7;\nret;");
  size_t kernels = 0;
  CHECK(seconds([&] { kernels = Module::parse(all, "k.ptx").kernels().size(); }) < 20);
  CHECK(kernels == 20000);
}

TEST_CASE("many kernels with an unknown instruction each") {
  const std::string all = repeated(
      20000, [](const std::string& i) { return entry("mul.wide" + i + ".u32 %r;", "k" + i); });
  // For the first ones a similar instruction is looked for.
  CHECK(seconds([&] { CHECK_THAT(error_of(all), Contains("unknown instruction")); }) < 5);
}

TEST_CASE("what it takes to begin a block with much local memory counts for the limit of steps") {
  const Module module = Module::parse(
      kHead + entry(".local .align 4 .b8 x[524288]; .reg .b32 %r; ld.local.u32 %r, [x]; ret;"),
      "k.ptx");
  Memory memory;
  LaunchConfig config;
  config.grid = {1u << 20, 1, 1};
  config.block = {32, 1, 1};
  Options options;
  options.max_steps = 100000;
  LaunchResult result;
  CHECK(seconds([&] { result = launch(module, "k", config, memory, options); }) < 20);
  REQUIRE(result.fault);
  CHECK(result.fault->kind == FaultKind::kStepLimit);
  CHECK(result.steps < 1000);
}

TEST_CASE("local memory of all threads at once is bounded") {
  const Module module = Module::parse(
      kHead + entry(".local .align 4 .b8 x[262144]; .reg .b32 %r; st.local.u32 [x], 1; ret;"),
      "k.ptx");
  Memory memory;
  LaunchConfig config;
  config.grid = {8, 1, 1};
  config.block = {128, 1, 1};  // 32 MB
  Options options;
  options.threads = 4;
  options.max_local_bytes = uint64_t{32} << 20;  // one host thread is left
  CHECK(!launch(module, "k", config, memory, options).fault);
  config.cluster = {2, 1, 1};
  std::string refused;
  try {
    launch(module, "k", config, memory, options);
  } catch (const Error& e) {
    refused = e.what();
  }
  CHECK_THAT(refused, Contains("more than the 32 MB that a launch may take"));
  options.max_local_bytes *= 2;
  CHECK(!launch(module, "k", config, memory, options).fault);
}

TEST_CASE("functions that are lowered again for each of many entries") {
  std::string chain = ".func f3000() { ret; }\n";
  for (int i = 3000; i-- > 0;) {
    chain += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i + 1) + "; ret; }\n";
  }
  const std::string text = kHead + chain + repeated(60, [](const std::string& i) {
                             return entry("call f0;\nret;", "k" + i);
                           });
  const Module module = Module::parse(text, "k.ptx");
  CHECK(module.kernels().front().errors().empty());
  REQUIRE(module.kernels().back().errors().size() == 1);
  CHECK_THAT(module.kernels().back().errors()[0].message,
             Contains("more than 3000000 instructions"));
}

TEST_CASE("functions that all may call each other through pointers") {
  const std::string body = "() { .reg .b64 %r; mov.u64 %r, f0; call %r, (), P; ret; }\n";
  const std::string text =
      kHead + repeated(4000, [&](const std::string& i) { return ".func f" + i + body; }) +
      ".global .u64 t[4000] = {f0" +
      repeated(3999, [](const std::string& i) { return ", f" + i; }) + "};\n" +
      entry(".reg .b64 %r; mov.u64 %r, f0; call %r, (), P; ret;");
  CHECK(seconds([&] { CHECK(Module::parse(text, "k.ptx").kernels()[0].errors().empty()); }) < 20);
}

TEST_CASE("loops that nest as deep as the text is long") {
  // Block i goes on to i + 1; the second half goes back to the first, innermost loop first.
  constexpr uint32_t kDepth = 100000;
  Graph graph(2 * kDepth + 1);
  for (uint32_t i = 0; i < 2 * kDepth; ++i) graph[i].push_back(i + 1);
  for (uint32_t i = 0; i < kDepth; ++i) graph[kDepth + i].push_back(kDepth - 1 - i);
  std::vector<uint32_t> order;
  CHECK(seconds([&] { order = order_blocks(graph); }) < 20);
  REQUIRE(order.size() == graph.size());
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("many loops side by side") {
  constexpr uint32_t kLoops = 100000;
  Graph graph(2 * kLoops + 1);
  for (uint32_t i = 0; i < 2 * kLoops; ++i) graph[i].push_back(i + 1);
  for (uint32_t i = 0; i < kLoops; ++i) graph[2 * i + 1].push_back(2 * i);
  CHECK(seconds([&] { CHECK(order_blocks(graph).size() == graph.size()); }) < 20);
}

TEST_CASE("places that are inlined into each other without end") {
  const long before = megabytes();
  const std::string text =
      kHead + ".file 1 \"a.cu\"\n" +
      entry(repeated(30000,
                     [](const std::string& i) {
                       return ".loc 1 1" + i + " 1\n.loc 1 1" + i +
                              " 2, function_name $L, inlined_at 1 1" + i + " 1\nmembar.cta;\n";
                     }) +
            repeated(20000,
                     [](const std::string& i) {
                       const int n = std::stoi(i);
                       return ".loc 1 " + std::to_string(n + 1) +
                              " 3, function_name $L, inlined_at 1 " + i + " 3\nmembar.cta;\n";
                     }) +
            "ret;");
  const Module module = Module::parse(text, "k.ptx");
  const Kernel& kernel = module.kernels()[0];
  CHECK(kernel.source(40000).size() == 65);
  CHECK(megabytes() - before < 700);
}

TEST_CASE("too many instructions, initial values, characters that are none") {
  const long before = megabytes();
  CHECK_THAT(error_of(entry(repeated(3000001, [](const std::string&) { return "ret;"; }))),
             Contains("the text has more than 3000000 instructions"));
  CHECK_THAT(
      error_of(".global .b8 g[4000000] = {1" +
               repeated(3000000, [](const std::string&) { return ",1"; }) + "};\n" + entry("ret;")),
      Contains("the text has more than 3000000 initial values"));
  CHECK(error_of(std::string(30 << 20, '\1')) == "this character cannot stand in PTX");
  CHECK(megabytes() - before < 1000);
}
