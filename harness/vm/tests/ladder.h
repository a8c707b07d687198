// SPDX-License-Identifier: MIT
// Rungs 01 to 07 as whole-kernel inputs of the machine. Their tiles stand here once more so that
// these tests need nothing of the project but the PTX.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "num/half.h"
#include "ptxvm/launch.h"
#include "ptxvm/report.h"

namespace ptxvm_test {

using namespace ptxvm;

struct Rung {
  const char* file;
  const char* entry;
  int query_rows, keys, warps;
};

inline constexpr Rung kRungs[] = {
    {"01_base", "fa_01_base_d128", 64, 32, 2},
    {"02_swizzle", "fa_02_swizzle_d128", 64, 128, 4},
    {"03_kvpipe", "fa_03_kvpipe_d128", 64, 128, 4},
    {"04_vpair", "fa_04_vpair_d128", 64, 128, 4},
    {"05_exp2f", "fa_05_exp2f_d128", 64, 128, 4},
    {"06_batched", "fa_06_batched_d128", 128, 64, 4},
    {"07_dbuf", "fa_07_dbuf_d128", 128, 64, 4},
};

inline constexpr int kHeadDim = 128;

/// Q, K, V of one problem, [heads, length, 128] in f16.
struct Problem {
  int length, heads;
  std::vector<uint16_t> q, k, v;

  Problem(int n, int h) : length(n), heads(h) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal;
    for (auto* t : {&q, &k, &v}) {
      t->resize(static_cast<size_t>(h) * static_cast<size_t>(n) * kHeadDim);
      for (uint16_t& x : *t) x = num::float_to_half(normal(rng));
    }
  }

  double at(const std::vector<uint16_t>& t, int head, int row, int column) const {
    return static_cast<double>(num::half_to_float(
        t[(static_cast<size_t>(head) * static_cast<size_t>(length) + static_cast<size_t>(row)) *
              kHeadDim +
          static_cast<size_t>(column)]));
  }

  /// Relative L2 error of every `step`-th row of an output against double precision.
  double error(const std::vector<uint16_t>& o, int step) const {
    double difference = 0, norm = 0;
    std::vector<double> p(static_cast<size_t>(length));
    for (int h = 0; h < heads; ++h) {
      for (int i = 0; i < length; i += step) {
        double largest = -INFINITY, sum = 0;
        for (int j = 0; j < length; ++j) {
          double s = 0;
          for (int d = 0; d < kHeadDim; ++d) s += at(q, h, i, d) * at(k, h, j, d);
          p[static_cast<size_t>(j)] = s / std::sqrt(static_cast<double>(kHeadDim));
          largest = std::max(largest, p[static_cast<size_t>(j)]);
        }
        for (double& x : p) sum += x = std::exp(x - largest);
        for (int d = 0; d < kHeadDim; ++d) {
          double x = 0;
          for (int j = 0; j < length; ++j) x += p[static_cast<size_t>(j)] * at(v, h, j, d);
          x /= sum;
          difference += std::pow(x - at(o, h, i, d), 2);
          norm += x * x;
        }
      }
    }
    return std::sqrt(difference / norm);
  }
};

struct RungRun {
  LaunchResult result;
  std::vector<uint16_t> output;
};

inline RungRun run_rung(const Module& module, const Rung& rung, const Problem& p,
                        const Options& options) {
  Memory memory;
  auto bytes = [](const auto& v) { return std::as_bytes(std::span(v)); };
  LaunchConfig c;
  c.grid = {static_cast<uint32_t>(p.length / rung.query_rows), static_cast<uint32_t>(p.heads), 1};
  c.block = {static_cast<uint32_t>(rung.warps * 32), 1, 1};
  c.dynamic_shared_bytes = static_cast<uint32_t>((rung.query_rows + 2 * rung.keys) * kHeadDim * 2);
  double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  scale *= 1.4426950408889634;
  const Address out = memory.allocate("O", p.q.size() * 2);
  c.arguments = {Argument::pointer(memory.upload("Q", bytes(p.q))),
                 Argument::pointer(memory.upload("K", bytes(p.k))),
                 Argument::pointer(memory.upload("V", bytes(p.v))),
                 Argument::pointer(out),
                 Argument::pointer(0),  // no LSE
                 Argument::scalar<int32_t>(p.length),
                 Argument::scalar<int32_t>(p.length),
                 Argument::scalar<int32_t>(0),  // no mask
                 Argument::scalar<int32_t>(1),  // a head of K and V for each query head
                 Argument::scalar<float>(static_cast<float>(scale))};
  RungRun r;
  r.result = launch(module, rung.entry, c, memory, options);
  r.output.resize(p.q.size());
  std::memcpy(r.output.data(), memory.bytes(out).data(), p.q.size() * 2);
  return r;
}

}  // namespace ptxvm_test
