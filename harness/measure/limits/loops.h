// SPDX-License-Identifier: MIT
// Bare loops that use one unit of the card and nothing else: what a kernel of the ladder can at
// best reach. Each loop says how much work an iteration is and what its result must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fa::limits {

/// What a loop reads.
enum class Source {
  operands,  ///< random numbers, the same for every thread block
  l2,        ///< a buffer that stays in L2
  memory,    ///< a buffer far larger than L2
};

/// Parameters of every kernel. `count` is the number of 16-byte words of the buffer; loops on
/// operands read the first ones.
struct Arguments {
  const void* input;
  void* output;
  std::int64_t count;
  int iterations;
};

struct Loop;

/// What a launch left behind.
struct Outcome {
  int iterations;
  std::int64_t count;                    ///< as in Arguments
  std::span<const std::uint32_t> input;  ///< the operands; a buffer repeats them
  /// What the kernel wrote: the words of each thread, thread blocks one after the other; of a copy
  /// the copy.
  std::span<const std::uint32_t> output;
};

struct Loop {
  std::string id;     ///< "attention_registers"
  std::string what;   ///< one line for the user
  std::string unit;   ///< "TFLOPS", "Gexp/s" or "GB/s"
  std::string entry;  ///< name of the kernel
  const void* kernel;
  int min_sm;   ///< compute capability x 10
  bool only;    ///< code for sm_90a: runs on 9.0 and on nothing newer
  int threads;  ///< of a thread block
  int blocks;   ///< thread blocks on an SM
  std::size_t shared;
  Source source;
  /// FLOP, exponentials or bytes of one iteration: of one thread block on operands, of each byte of
  /// the buffer otherwise (2 for a copy).
  double work;
  int words;  ///< 32-bit words that a thread writes; 0: the loop copies its buffer
  /// Of its work, what an SM of any card can do in a clock; 0: differs from card to card.
  double most_per_clock;
  /// What is wrong with the first thread block's words; empty for nothing.
  std::function<std::string(const Outcome&)> check;
};

/// All loops, in the order in which they are shown.
const std::vector<Loop>& all_loops();

/// FLOP, exponentials or bytes of a whole launch.
double total_work(const Loop& loop, int blocks, std::int64_t count, int iterations);

/// Why this card cannot run the loop; empty when it can.
std::string unsupported(const Loop& loop, int sm);

/// What is wrong with a launch; empty for nothing. On operands every thread block must have the
/// same bits, and those of the first must be right; sums over a buffer must add up; a copy must be
/// equal.
std::string verify(const Loop& loop, const Outcome& outcome);

/// Why a loop cannot have done so much work in a clock on an SM; empty when it can.
std::string impossible(const Loop& loop, double per_clock_sm);

/// Random normal halves, two a word: what all loops compute with.
std::vector<std::uint32_t> make_operands();

/// Bytes of a word of a buffer, which come in chunks of kChunk.
inline constexpr std::int64_t kWord = 16;
inline constexpr std::int64_t kChunk = 2048;

// What the kernels and their checks agree on.
inline constexpr int kSide = 128;       ///< rows and columns of every tile of the wgmma loops
inline constexpr int kStages = 2;       ///< tiles of K, and of V, that take turns
inline constexpr int kRestart = 64;     ///< iterations after which accumulators start afresh
inline constexpr float kTurn = 0.01F;   ///< of the rotation that the FMA loop computes
inline constexpr int kPairs = 8;        ///< points that a thread rotates
inline constexpr int kExponents = 8;    ///< exponentials of a thread and iteration
inline constexpr int kSharedLoads = 4;  ///< loads from shared memory of a thread and iteration
inline constexpr int kBankBytes = 128;  ///< of all banks of shared memory: a wavefront, a clock
inline constexpr int kMmaTiles = 8;     ///< 8 columns of B each, under two 16-row tiles of A

}  // namespace fa::limits
