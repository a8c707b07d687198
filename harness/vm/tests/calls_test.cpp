// SPDX-License-Identifier: MIT
// Calls: kernels/calls.cu as nvcc compiles it, against the same functions here.
#include <cmath>
#include <numeric>

#include "catch.h"
#include "ptxvm/races.h"
#include "run_ptx.h"

using namespace ptxvm;

namespace {

const Module& module() {
  static const Module m = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/calls.ptx");
  return m;
}

struct Outcome {
  LaunchResult result;
  std::vector<std::byte> out;

  template <class T>
  T at(size_t i) const {
    T v;
    std::memcpy(&v, out.data() + i * sizeof v, sizeof v);
    return v;
  }
};

Outcome run(const char* kernel, std::vector<Argument> more = {}, Options options = {},
            uint32_t blocks = 1) {
  Memory memory;
  const Address out = memory.allocate("out", 4096, Fill::kZero);
  LaunchConfig config;
  config.grid = {blocks, 1, 1};
  config.block = {32, 1, 1};
  config.arguments = {Argument::pointer(out)};
  for (Argument& a : more) config.arguments.push_back(a);
  Outcome r;
  r.result = launch(module(), kernel, config, memory, options);
  const auto bytes = memory.bytes(out);
  r.out.assign(bytes.begin(), bytes.end());
  return r;
}

int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int sum_of_frames(int depth, const int* outer) {
  int mine[4] = {depth, *outer, depth * 2, 1};
  if (depth == 0) return mine[1];
  return mine[0] + sum_of_frames(depth - 1, &mine[depth & 3]);
}

int expected_recursion(int i) {
  return i % 3 != 0 ? fibonacci(i % 11) : -1;
}

}  // namespace

TEST_CASE("structs are passed and returned by value") {
  const Outcome r = run("structs");
  REQUIRE(r.result.ok());
  for (int i = 0; i < 32; ++i)
    CHECK(r.at<double>(static_cast<size_t>(i)) == i * 30 + i * 3 * 0.001);
}

TEST_CASE("recursion keeps the registers and frames of every lane") {
  Races races;
  for (bool observed : {false, true}) {
    Options options;
    if (observed) options.observers = {&races};
    const Outcome r = run("recursion", {}, options);
    REQUIRE(r.result.ok());
    for (int i = 0; i < 32; ++i) {
      const int outer = 100 + i;
      const auto at = static_cast<size_t>(i);
      CHECK(r.at<int>(at) == expected_recursion(i));
      CHECK(r.at<int>(32 + at) == sum_of_frames(i % 5, &outer));
      CHECK(r.at<int>(64 + at) == expected_recursion(i ^ 1));
    }
  }
}

TEST_CASE("a recursion without end stops with a full stack") {
  const Outcome r = run("too_deep");
  REQUIRE(r.result.fault);
  CHECK(r.result.fault->kind == FaultKind::kOutOfBounds);
  CHECK(r.result.fault->message.find("the call stack is full: ") == 0);
}

TEST_CASE("calls through pointers go where each lane points") {
  const Outcome r = run("pointers");
  REQUIRE(r.result.ok());
  for (int i = 0; i < 32; ++i) {
    const int expected = i % 3 == 0 ? 2 * i : i % 3 == 1 ? i * i : -i;
    CHECK(r.at<int>(static_cast<size_t>(i)) == expected);
  }
}

TEST_CASE("printf's output is kept in the order of blocks") {
  for (int threads : {1, 2}) {
    Options options;
    options.threads = threads;
    options.cta_order = Order::kReversed;
    const Outcome r = run("prints", {}, options, 3);
    REQUIRE(r.result.ok());
    std::string expected;
    for (int block = 0; block < 3; ++block) {
      for (unsigned lane = 0; lane < 2; ++lane) {
        char line[128];
        std::snprintf(line, sizeof line, "block %d lane %u: %5.2f %s|%-4d|%lld %c %x%%\n", block,
                      lane, lane * 1.5, "text", 7, 1ll << 40, 'z', 255);
        expected += line;
      }
    }
    CHECK(r.result.printed == expected);
  }
}

TEST_CASE("assert stops the launch with its own words") {
  Memory memory;
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.arguments = {Argument::scalar(int32_t{32})};
  CHECK(launch(module(), "asserts", config, memory).ok());
  config.arguments = {Argument::scalar(int32_t{30})};
  const LaunchResult r = launch(module(), "asserts", config, memory);
  REQUIRE(r.fault);
  CHECK(r.fault->kind == FaultKind::kTrap);
  CHECK(r.fault->message.find("calls.cu:") != std::string::npos);
  CHECK(r.fault->message.find("block: [0,0,0], thread: [30,0,0] Assertion "
                              "`static_cast<int>(threadIdx.x) < limit` failed.") !=
        std::string::npos);
  CHECK(r.printed == r.fault->message + "\n");
}

TEST_CASE("malloc and free, with bounds") {
  const Outcome r = run("heap", {Argument::scalar(int32_t{0})});
  REQUIRE(r.result.ok());
  for (int i = 0; i < 32; ++i) CHECK(r.at<int>(static_cast<size_t>(i)) == i * i * (i + 1) / 2);
  const Outcome wrong = run("heap", {Argument::scalar(int32_t{1})});
  REQUIRE(wrong.result.fault);
  CHECK(wrong.result.fault->kind == FaultKind::kOutOfBounds);
  CHECK(wrong.result.fault->message.find("of buffer 'malloc ") != std::string::npos);
}

TEST_CASE("variables of the module are read and written from outside") {
  Memory memory;
  const Address out = memory.allocate("out", 128, Fill::kZero);
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.arguments = {Argument::pointer(out)};
  const auto word = [&](std::span<std::byte> bytes) {
    return reinterpret_cast<int*>(bytes.data());
  };
  const auto result = [&](int i) { return reinterpret_cast<float*>(memory.bytes(out).data())[i]; };

  auto weights = memory.variable(module(), "weights");
  REQUIRE(weights.size() == 16);
  REQUIRE(*word(memory.variable(module(), "counter")) == 5);
  REQUIRE(launch(module(), "variables", config, memory).ok());
  CHECK(result(2) == 3 + 5);
  CHECK(*word(memory.variable(module(), "counter")) == 6);

  const float changed = 0.25f;
  std::memcpy(weights.data() + 8, &changed, sizeof changed);
  *word(memory.variable(module(), "counter")) = 100;
  REQUIRE(launch(module(), "variables", config, memory).ok());
  CHECK(result(2) == 100.25f);
  CHECK(result(3) == 104.0f);

  // Another memory has variables of its own.
  Memory other;
  CHECK(*word(other.variable(module(), "counter")) == 5);
  std::string message;
  try {
    memory.variable(module(), "nothing");
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK(message.find("there is no variable 'nothing'; there are: ") != std::string::npos);
  CHECK(message.find("counter") != std::string::npos);
  CHECK(message.find("weights") != std::string::npos);
}

TEST_CASE("double-precision functions as nvcc inlines them") {
  constexpr int kCount = 256;
  std::vector<double> x(kCount);
  for (int i = 0; i < kCount; ++i) x[static_cast<size_t>(i)] = (i - 128) * 0.37;
  x[0] = 1e5;  // the slow path of sin and cos
  Memory memory;
  const Address in = memory.upload("x", std::as_bytes(std::span(x)));
  const Address out = memory.allocate("out", kCount * 64);
  LaunchConfig config;
  config.grid = {kCount / 64, 1, 1};
  config.block = {64, 1, 1};
  config.arguments = {Argument::pointer(in), Argument::pointer(out), Argument::scalar(kCount)};
  const LaunchResult r = launch(module(), "doubles", config, memory);
  REQUIRE(r.ok());
  const auto* o = reinterpret_cast<const double*>(memory.bytes(out).data());
  for (int i = 0; i < kCount; ++i) {
    const double v = x[static_cast<size_t>(i)], magnitude = std::fabs(v) + 0.001;
    const double expected[8] = {std::sin(v),         std::cos(v),         std::pow(magnitude, 1.7),
                                std::log(magnitude), std::exp(v * 0.005), 1 / std::sqrt(magnitude),
                                std::cbrt(v),        std::tanh(v)};
    for (int k = 0; k < 8; ++k) {
      INFO("x " << v << ", function " << k);
      // The CUDA programming guide promises 1 to 2 units in the last place.
      CHECK(std::fabs(o[i * 8 + k] - expected[k]) <=
            4 * 0x1p-52 * std::fabs(expected[k]) + 0x1p-1060);
    }
  }
}
