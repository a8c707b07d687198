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
