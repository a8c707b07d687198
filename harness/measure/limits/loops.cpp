// SPDX-License-Identifier: MIT
#include "harness/measure/limits/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "harness/attention/half.h"
#include "harness/attention/inputs.h"
#include "harness/measure/limits/kernels.h"

namespace fa::limits {
namespace {

using Words = std::span<const std::uint32_t>;

constexpr int kWarp = 32;
constexpr double kTolerance = 2e-3;  ///< of the size of a result: float accumulation loses less

/// Element i of the operands as halves.
double half_at(Words input, int i) {
  const auto word = input[static_cast<std::size_t>(i / 2)];
  return half_to_float(static_cast<std::uint16_t>(i % 2 == 0 ? word : word >> 16));
}

/// A 128 x 128 tile of the operands.
class Tile {
 public:
  Tile(Words input, int index) {
    values_.reserve(kSide * kSide);
    for (int i = 0; i < kSide * kSide; ++i)
      values_.push_back(half_at(input, index * kSide * kSide + i));
  }
  double at(int row, int column) const {
    return values_[static_cast<std::size_t>(row * kSide + column)];
  }

 private:
  std::vector<double> values_;
};

std::string mismatch(int thread, int word, double got, double expected) {
  return fmt::format("thread {}, result {}: {} where {} is expected", thread, word, got, expected);
}

/// Compares the words of the first thread block, as floats, with expected(thread, word).
template <class Expected>
std::string compare(const Outcome& outcome, int threads, int words, double tolerance,
                    Expected expected) {
  for (int t = 0; t < threads; ++t) {
    for (int w = 0; w < words; ++w) {
      const double got =
          std::bit_cast<float>(outcome.output[static_cast<std::size_t>(t * words + w)]);
      const double wanted = expected(t, w);
      // A NaN compares as wrong.
      if (!(std::abs(got - wanted) <= tolerance)) return mismatch(t, w, got, wanted);
    }
  }
  return {};
}

/// Row and column of accumulator i of a lane, in a tile of 16 rows.
std::pair<int, int> accumulator_place(int lane, int i) {
  return {lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/// S = Q K^T with the K of the last iteration; O = P V summed since the last fresh start.
std::string check_wgmma(const Outcome& outcome, int threads, bool mix) {
  const int last = outcome.iterations - 1;
  const Tile q(outcome.input, 0), p(outcome.input, 1), k(outcome.input, 2 + last % kStages);
  std::vector<Tile> v;
  double times[kStages] = {};
  if (mix) {
    for (int i = 0; i < kStages; ++i) v.emplace_back(outcome.input, 2 + kStages + i);
    for (int i = last / kRestart * kRestart; i <= last; ++i) times[i % kStages] += 1;
  }
  const auto product = [&](int thread, int word) {
    const int i = word % (kSide / 2);
    const auto [in_warp, column] = accumulator_place(thread % kWarp, i);
    const int row = thread / kWarp * 16 + in_warp;
    double sum = 0;
    for (int d = 0; d < kSide; ++d) {
      if (word < kSide / 2) {
        sum += q.at(row, d) * k.at(column, d);
      } else {
        for (int s = 0; s < kStages; ++s)
          sum += times[s] * p.at(row, d) * v[static_cast<std::size_t>(s)].at(d, column);
      }
    }
    return sum;
  };
  const double size = std::sqrt(kSide) * std::max(1.0, times[0] + times[1]);
  return compare(outcome, threads, kSide / 2 * (mix ? 2 : 1), kTolerance * size, product);
}

std::string check_product(const Outcome& outcome, int threads) {
  return check_wgmma(outcome, threads, false);
}

std::string check_attention(const Outcome& outcome, int threads) {
  return check_wgmma(outcome, threads, true);
}

std::string check_mma(const Outcome& outcome, int threads) {
  const Tile a(outcome.input, 0), b(outcome.input, 1);
  double factor = 0;  // how often the product is in the sum
  for (int i = 0; i < outcome.iterations; ++i)
    factor = (i % kRestart == 0 ? factor / kRestart : factor) + 1;
  const auto product = [&](int thread, int word) {
    const auto [row, column] = accumulator_place(thread % kWarp, word % (kMmaTiles * 4));
    const int first = thread / kWarp % 4 * 32 + word / (kMmaTiles * 4) * 16;
    double sum = 0;
    for (int d = 0; d < 16; ++d) sum += a.at(first + row, d) * b.at(column, d);
    return factor * sum;
  };
  return compare(outcome, threads, 2 * kMmaTiles * 4, kTolerance * 4 * factor, product);
}

std::string check_ex2(const Outcome& outcome, int threads) {
  constexpr int kSettled = 100;  // 2^-x comes nearer to its fixed point by half in each iteration
  for (int i = 0; i < threads * kExponents; ++i) {
    double expected = half_at(outcome.input, 2 * i);
    for (int n = 0; n < std::min(outcome.iterations, kSettled); ++n)
      expected = std::exp2(-expected);
    const double got = std::bit_cast<float>(outcome.output[static_cast<std::size_t>(i)]);
    if (!(std::abs(got - expected) <= 1e-5 * expected))
      return mismatch(i / kExponents, i % kExponents, got, expected);
  }
  return {};
}

/// Some threads, to the bit.
std::string check_fma(const Outcome& outcome, int threads) {
  for (int t = 0; t < threads; t += threads / 3) {
    for (int j = 0; j < kPairs; ++j) {
      const int i = t * kPairs + j;
      auto x = static_cast<float>(half_at(outcome.input, 2 * i));
      auto y = static_cast<float>(half_at(outcome.input, 2 * i + 1));
      for (int n = 0; n < outcome.iterations; ++n) {
        x = std::fma(kTurn, y, x);
        y = std::fma(-kTurn, x, y);
      }
      const std::size_t at = static_cast<std::size_t>(i) * 2;
      if (outcome.output[at] != std::bit_cast<std::uint32_t>(x) ||
          outcome.output[at + 1] != std::bit_cast<std::uint32_t>(y))
        return mismatch(t, 2 * j, std::bit_cast<float>(outcome.output[at]), x);
    }
  }
  return {};
}

/// `lane_word(thread, i)`: where result i of a thread lies in the first row of shared memory.
template <class LaneWord>
std::string check_shared(const Outcome& outcome, int threads, LaneWord lane_word) {
  for (int t = 0; t < threads; ++t) {
    for (int w = 0; w < 4; ++w) {
      std::uint32_t expected = 0;
      for (int j = 0; j < 2 * kSharedLoads; ++j) {
        const int first_half = (outcome.iterations + 1) / 2;
        const int times = j < kSharedLoads ? first_half : outcome.iterations - first_half;
        const int at = j * threads * 4 + lane_word(t, w);
        expected += static_cast<std::uint32_t>(times) * outcome.input[static_cast<std::size_t>(at)];
      }
      const std::uint32_t got = outcome.output[static_cast<std::size_t>(t * 4 + w)];
      if (got != expected) return mismatch(t, w, got, expected);
    }
  }
  return {};
}

std::string check_shared_load(const Outcome& outcome, int threads) {
  return check_shared(outcome, threads, [](int thread, int word) { return thread * 4 + word; });
}

// Tile i of a warp is what its lanes 8i to 8i + 7 point at; lane l holds word l % 4 of row l / 4.
std::string check_ldmatrix(const Outcome& outcome, int threads) {
  return check_shared(outcome, threads, [](int thread, int word) {
    const int lane = thread % kWarp;
    return (thread - lane + 8 * word + lane / 4) * 4 + lane % 4;
  });
}

std::uint32_t sum(Words words) {
  std::uint32_t total = 0;
  for (const std::uint32_t word : words) total += word;
  return total;
}

/// The sums of all threads add up to that of the buffer, which repeats the operands.
std::string verify_sum(const Outcome& outcome) {
  const auto words = static_cast<std::uint64_t>(outcome.count) * 4;
  const auto whole = static_cast<std::uint32_t>(words / outcome.input.size());
  const std::uint32_t once =
      whole * sum(outcome.input) + sum(outcome.input.first(words % outcome.input.size()));
  const std::uint32_t expected = static_cast<std::uint32_t>(outcome.iterations) * once;
  const std::uint32_t got = sum(outcome.output);
  if (got == expected) return {};
  return fmt::format("the words read add up to {:08x} where {:08x} is expected", got, expected);
}

std::string verify_copy(const Outcome& outcome) {
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    if (outcome.output[i] != outcome.input[i % outcome.input.size()])
      return fmt::format("word {} of the copy differs", i);
  }
  return {};
}

std::string verify_blocks(const Loop& loop, const Outcome& outcome) {
  const auto words = static_cast<std::size_t>(loop.threads * loop.words);
  for (std::size_t first = words; first < outcome.output.size(); first += words) {
    if (std::memcmp(outcome.output.data(), outcome.output.data() + first, words * 4) != 0)
      return fmt::format("thread block {} has other results than thread block 0", first / words);
  }
  return loop.check(outcome);
}

/// A loop on operands.
Loop compute(std::string id, std::string what, std::string unit, const Kernel& kernel, int blocks,
             double work, int words, std::string (*check)(const Outcome&, int)) {
  const int threads = kernel.threads;
  return {.id = id,
          .what = std::move(what),
          .unit = std::move(unit),
          .entry = "limit_" + id,
          .kernel = kernel.function,
          .min_sm = 80,
          .only = false,
          .threads = threads,
          .blocks = blocks,
          .shared = kernel.shared,
          .source = Source::operands,
          .work = work,
          .words = words,
          .most_per_clock = 0,
          .check = [=](const Outcome& outcome) { return check(outcome, threads); }};
}

Loop wgmma(std::string id, std::string what, const Kernel& kernel, bool mix) {
  const int products = mix ? 2 : 1;
  Loop loop = compute(std::move(id), std::move(what), "TFLOPS", kernel, 1,
                      products * 2.0 * kSide * kSide * kSide, products * kSide / 2,
                      mix ? check_attention : check_product);
  loop.min_sm = 90;
  loop.only = true;
  return loop;
}

/// A loop that reads shared memory.
Loop shared(std::string id, std::string what, const Kernel& kernel,
            std::string (*check)(const Outcome&, int)) {
  Loop loop = compute(std::move(id), std::move(what), "GB/s", kernel, 2,
                      kernel.threads * kSharedLoads * 16.0, 4, check);
  loop.most_per_clock = kBankBytes;
  return loop;
}

/// A loop over a buffer.
Loop traffic(std::string id, std::string what, const Kernel& kernel, Source source, int blocks,
             bool copies) {
  Loop loop = compute(std::move(id), std::move(what), "GB/s", kernel, blocks, copies ? 2 : 1,
                      copies ? 0 : 1, nullptr);
  loop.source = source;
  loop.check = nullptr;
  return loop;
}

std::vector<Loop> make_loops() {
  const Kernel& mma = kernel_limit_mma_sync;
  const int warps = mma.threads / kWarp;
  const double mma_work = warps * 2.0 * kMmaTiles * (2 * 16 * 8 * 16);
  return {
      wgmma("wgmma_registers", "wgmma m64n128k16, A from registers", kernel_limit_wgmma_registers,
            false),
      wgmma("wgmma_shared", "wgmma m64n128k16, A from shared memory", kernel_limit_wgmma_shared,
            false),
      wgmma("attention_registers", "wgmma, Q K^T and P V in turns, Q from registers",
            kernel_limit_attention_registers, true),
      wgmma("attention_shared", "wgmma, Q K^T and P V in turns, Q from shared memory",
            kernel_limit_attention_shared, true),
      compute("mma_sync", "mma.sync m16n8k16", "TFLOPS", mma, 2, mma_work, 2 * kMmaTiles * 4,
              check_mma),
      compute("fma", "FP32 FMA", "TFLOPS", kernel_limit_fma, 4,
              kernel_limit_fma.threads * kPairs * 2 * 2.0, 2 * kPairs, check_fma),
      compute("ex2", "ex2.approx", "Gexp/s", kernel_limit_ex2, 4,
              kernel_limit_ex2.threads * double{kExponents}, kExponents, check_ex2),
      shared("shared_load", "ld.shared.v4 without conflicts", kernel_limit_shared_load,
             check_shared_load),
      shared("ldmatrix", "ldmatrix.x4 without conflicts", kernel_limit_ldmatrix, check_ldmatrix),
      traffic("l2_read", "reads that hit L2", kernel_limit_l2_read, Source::l2, 2, false),
      traffic("memory_read", "reads from device memory", kernel_limit_memory_read, Source::memory,
              6, false),
      traffic("memory_copy", "copy in device memory, bytes read and written",
              kernel_limit_memory_copy, Source::memory, 5, true)};
}

}  // namespace

const std::vector<Loop>& all_loops() {
  static const std::vector<Loop> loops = make_loops();
  return loops;
}

double total_work(const Loop& loop, int blocks, std::int64_t count, int iterations) {
  const double parts = loop.source == Source::operands ? blocks : static_cast<double>(count) * 16;
  return loop.work * parts * iterations;
}

std::string unsupported(const Loop& loop, int sm) {
  const auto version = [](int value) { return fmt::format("{}.{}", value / 10, value % 10); };
  if (loop.only && sm != loop.min_sm)
    return fmt::format("wgmma exists on compute capability {} alone, this card has {}",
                       version(loop.min_sm), version(sm));
  if (sm < loop.min_sm)
    return fmt::format("needs compute capability {}, this card has {}", version(loop.min_sm),
                       version(sm));
  return {};
}

std::string impossible(const Loop& loop, double per_clock_sm) {
  constexpr double kClockError = 1.05;  // clocks are sampled
  if (loop.most_per_clock == 0 || per_clock_sm <= loop.most_per_clock * kClockError) return {};
  return fmt::format("{:.0f} bytes a clock and SM, where {:.0f} are possible: it left work out",
                     per_clock_sm, loop.most_per_clock);
}

std::string verify(const Loop& loop, const Outcome& outcome) {
  if (loop.words == 0) return verify_copy(outcome);
  return loop.source == Source::operands ? verify_blocks(loop, outcome) : verify_sum(outcome);
}

std::vector<std::uint32_t> make_operands() {
  const Problem problem{.batch = 1, .heads = 16, .seq_q = 1024, .seq_kv = 1024, .head_dim = 128};
  const Inputs inputs = make_inputs(problem, Distribution::normal, /*seed=*/1);
  std::vector<std::uint32_t> words(inputs.q.bytes.size() / 4);
  std::memcpy(words.data(), inputs.q.bytes.data(), words.size() * 4);
  return words;
}

}  // namespace fa::limits
