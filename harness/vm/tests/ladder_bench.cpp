// SPDX-License-Identifier: MIT
// Speed of the machine: the ladder at 1024 x 2 heads x 128 (or the length that is given).
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "ladder.h"
#include "ptxvm/races.h"

using namespace ptxvm_test;

namespace {

enum class Watch { kNothing, kCounts, kRaces };

double milliseconds(const Module& module, const Rung& rung, const Problem& problem, Watch watch,
                    int threads) {
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    Counters counters;
    Options options;
    options.threads = threads;
    Races races;
    if (watch == Watch::kCounts) options.observers = {&counters};
    if (watch == Watch::kRaces) options.observers = {&races};
    const auto begin = std::chrono::steady_clock::now();
    const RungRun r = run_rung(module, rung, problem, options);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (r.result.fault) {
      std::puts(r.result.fault->format().c_str());
      std::exit(1);
    }
    best = std::min(best, time.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int length = argc > 1 ? std::atoi(argv[1]) : 1024;
  if (length < 128 || length % 128 != 0) {
    std::fputs("usage: ptxvm_ladder_bench [LENGTH, a multiple of 128]\n", stderr);
    return 2;
  }
  const Problem problem(length, 2);
  std::printf("length %d, 2 heads, head_dim 128; best of 3, ms\n", length);
  std::printf("%-12s %8s %14s %14s %14s %14s\n", "rung", "load", "plain, 2 thr", "counted, 2 thr",
              "counted, 1 thr", "races, 2 thr");
  for (const Rung& rung : kRungs) {
    const auto begin = std::chrono::steady_clock::now();
    const Module module = Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + rung.file + ".ptx");
    const std::chrono::duration<double, std::milli> load = std::chrono::steady_clock::now() - begin;
    std::printf("%-12s %8.1f %14.1f %14.1f %14.1f %14.1f\n", rung.file, load.count(),
                milliseconds(module, rung, problem, Watch::kNothing, 2),
                milliseconds(module, rung, problem, Watch::kCounts, 2),
                milliseconds(module, rung, problem, Watch::kCounts, 1),
                milliseconds(module, rung, problem, Watch::kRaces, 2));
  }
}
