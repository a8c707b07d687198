// SPDX-License-Identifier: MIT
// What nvcc makes with -G and -rdc=true, for sm_80 and sm_90.
#include <cstring>

#include "catch.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

using namespace ptxvm;

namespace {

Module module(int sm) {
  return Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/debug_" + std::to_string(sm) + ".ptx");
}

int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

double expected(int i) {
  const double area = i % 2 ? double(i) * i : double(i) * i / 2;
  const double padded = i + 3.0 * i;
  return (i % 3 ? area / 2 : area * 2) + padded + fibonacci(i % 8) + 10 * (i % 4 + 1);
}

LaunchResult run(int sm, const char* kernel, uint32_t threads, std::vector<Address> buffers,
                 Memory& memory) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  for (Address a : buffers) config.arguments.push_back(Argument::pointer(a));
  Races races;
  Counters counters;
  Options options;
  options.observers = {&races, &counters};
  LaunchResult result = launch(module(sm), kernel, config, memory, options);
  if (result.fault) FAIL(result.fault->format());
  for (const Finding& f : result.findings) FAIL_CHECK(format(f));
  return result;
}

}  // namespace

TEST_CASE("code for a debugger runs, without findings") {
  for (int sm : {80, 90}) {
    INFO(sm);
    Memory memory;
    const Address out = memory.allocate("out", 32 * sizeof(double), Fill::kZero);
    run(sm, "debug", 32, {out}, memory);
    double values[32];
    std::memcpy(values, memory.bytes(out).data(), sizeof values);
    for (int i = 0; i < 32; ++i) CHECK(values[i] == expected(i));
  }
}

TEST_CASE("code for a debugger meets at barriers, and prints") {
  for (int sm : {80, 90}) {
    INFO(sm);
    Memory memory;
    std::vector<float> in(128);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    const Address from = memory.upload("in", std::as_bytes(std::span(in)));
    const Address out = memory.allocate("out", sizeof(float), Fill::kZero);
    const LaunchResult result = run(sm, "debug_reduce", 128, {from, out}, memory);
    float sum = 0;
    std::memcpy(&sum, memory.bytes(out).data(), sizeof sum);
    CHECK(sum == 127 * 64);
    CHECK(result.printed == "128 threads visit\n");
  }
}

TEST_CASE("code for a debugger copies what has no value, without findings") {
  for (int sm : {80, 90}) {
    INFO(sm);
    Memory memory;
    const Address out = memory.allocate("out", 32 * sizeof(uint32_t), Fill::kZero);
    run(sm, "debug_copies", 32, {out}, memory);
    uint32_t values[32];
    std::memcpy(values, memory.bytes(out).data(), sizeof values);
    for (uint32_t i = 0; i < 32; ++i) CHECK(values[i] == (i & 1) + 10 * ((i & 1) + 1));
  }
}

TEST_CASE("what has no value and leaves local memory is found in code for a debugger, too") {
  for (int sm : {80, 90}) {
    INFO(sm);
    Memory memory;
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.arguments = {Argument::pointer(memory.allocate("out", 128, Fill::kZero))};
    Races races;
    Options options;
    options.observers = {&races};
    const LaunchResult result = launch(module(sm), "debug_mistake", config, memory, options);
    REQUIRE(result.findings.size() >= 1);
    CHECK(result.findings[0].checker == "uninitialised");
  }
}
