// SPDX-License-Identifier: MIT
// PTX that nvcc made of ordinary CUDA C++, against the same code on the host.
#include <cmath>
#include <random>

#include "catch.h"
#include "num/half.h"
#include "ptxvm/launch.h"
#include "ptxvm/report.h"

using namespace ptxvm;

namespace {

Module load(const std::string& name) {
  return Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + name + ".ptx");
}

std::vector<float> floats(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) / 250.0f;
  return v;
}

template <class T>
std::span<T> view(Memory& memory, Address a) {
  const auto b = memory.bytes(a);
  return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
}

int collatz(unsigned n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

// The code of kernels/divergence.cu once more: the host computes what the kernel must.
int divergence(int i) {
  int value = 0;
  for (int a = 0; a < i % 7 + 1; ++a) {
    if (a == 3 && i % 2 == 1) continue;
    for (int b = 0; b < 10; ++b) {
      if (b * a > i % 13) goto leave;
      if ((b + i) % 5 == 4) break;
      value += a * 10 + b;
    }
    value ^= a;
  }
leave:
  switch (i % 10) {
    case 0:
      value += 1;
      break;
    case 1:
      value *= 3;
      [[fallthrough]];
    case 2:
      value -= 7;
      break;
    case 3:
      value = value / 3;
      break;
    case 5:
      value ^= 0x55;
      break;
    case 7:
      value = -value;
      break;
    default:
      value += collatz(static_cast<unsigned>(i) + 1);
  }
  return value;
}

}  // namespace

TEST_CASE("divergent control flow gives every lane its own result") {
  const Module m = load("divergence");
  constexpr int kCount = 3000;
  for (Order order : {Order::kForward, Order::kReversed}) {
    Memory memory;
    LaunchConfig config;
    config.grid = {(kCount + 127) / 128, 1, 1};
    config.block = {128, 1, 1};
    const Address out = memory.allocate("out", kCount * 4);
    config.arguments = {Argument::pointer(out), Argument::scalar<int>(kCount)};
    Options options;
    options.warp_order = options.cta_order = order;
    const LaunchResult r = launch(m, "divergence", config, memory, options);
    REQUIRE(r.ok());
    int wrong = 0;
    for (int i = 0; i < kCount; ++i)
      wrong += view<int>(memory, out)[static_cast<size_t>(i)] != divergence(i);
    CHECK(wrong == 0);
  }
}

TEST_CASE("division of 128-bit numbers, whose code adds the carry of a subtraction") {
  using Wide = unsigned __int128;
  const Module m = load("mathematics");
  constexpr size_t kCount = 256;
  std::mt19937_64 random(1);
  std::vector<uint64_t> in(kCount * 4);
  for (size_t i = 0; i < kCount; ++i) {
    // All lengths of both numbers, a divisor of one word among them.
    in[4 * i] = random() >> i % 61;
    in[4 * i + 1] = random();
    in[4 * i + 2] = i % 3 == 0 ? 0 : random() >> i % 53;
    in[4 * i + 3] = random() >> i % 59 | 1;
  }
  Memory memory;
  LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = {128, 1, 1};
  const Address out = memory.allocate("out", kCount * 32);
  config.arguments = {Argument::pointer(memory.upload("in", std::as_bytes(std::span(in)))),
                      Argument::pointer(out), Argument::scalar<int>(kCount)};
  const LaunchResult r = launch(m, "divide", config, memory);
  if (r.fault) FAIL(r.fault->format());
  const auto wide = [](std::span<const uint64_t> two) {
    return static_cast<Wide>(two[0]) << 64 | two[1];
  };
  for (size_t i = 0; i < kCount; ++i) {
    const auto o = view<uint64_t>(memory, out).subspan(i * 4, 4);
    const std::span x = std::span(in).subspan(i * 4, 4);
    const Wide a = wide(x), b = wide(x.subspan(2));
    INFO("problem " << i);
    CHECK((wide(o) == a / b));
    CHECK((wide(o.subspan(2)) == a % b));
  }
}

TEST_CASE("ordinary mathematics") {
  const Module m = load("mathematics");
  constexpr int kCount = 500;
  const auto in = floats(kCount);
  Memory memory;
  LaunchConfig config;
  config.grid = {4, 1, 1};
  config.block = {128, 1, 1};
  const Address out = memory.allocate("out", kCount * 64);
  config.arguments = {Argument::pointer(memory.upload("in", std::as_bytes(std::span(in)))),
                      Argument::pointer(out), Argument::scalar<int>(kCount)};
  const LaunchResult r = launch(m, "mathematics", config, memory);
  if (r.fault) FAIL(r.fault->format());
  for (int i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(in[static_cast<size_t>(i)]);
    const float f = in[static_cast<size_t>(i)];
    const auto o = view<float>(memory, out).subspan(static_cast<size_t>(i) * 16, 16);
    INFO("x = " << x);
    auto near = [](double expected) { return Approx(expected).epsilon(1e-6).margin(1e-6); };
    CHECK(o[0] == near(std::exp(x)));
    CHECK(o[1] == near(std::log(x + 10)));
    CHECK(o[2] == near(std::sin(x)));
    CHECK(o[3] == near(x / (x * x + 1)));
    CHECK(o[4] == near(std::sqrt(x * x + 2)));
    CHECK(o[5] == near(1 / std::sqrt(x * x + 2)));
    CHECK(o[6] == f * static_cast<float>(i % 8));
    CHECK(o[7] == static_cast<float>(i % 7 + i / 5));
    CHECK(o[8] == Approx(x * 0.5 + 1).margin(2e-3));
    CHECK(o[9] == near(std::sqrt(x * x + 1)));
    CHECK(o[10] == Approx(std::pow(x * x + 0.5, 1.5)).epsilon(1e-5));
    CHECK(o[11] == near(std::tanh(x)));
    CHECK(o[12] == static_cast<float>(std::floor(x) + std::ceil(x) + std::rint(x) + std::trunc(x)));
    CHECK(o[13] == near(std::fmin(x, 0.25) + std::fmax(x, -0.25)));
    CHECK(o[14] == static_cast<float>(static_cast<long long>(i) * 1000000007LL % 97));
    CHECK(o[15] == -f);
  }
}
