// SPDX-License-Identifier: MIT
#include "num/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "num/float8.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm::num {
namespace {

constexpr int kMostRows = 16, kColumns = 8;
constexpr int kMostDepth = 256;  // of b1

int elements(Element e) {
  switch (e) {
    case Element::kTf32:
      return 1;
    case Element::kS4:
    case Element::kU4:
      return 8;
    case Element::kB1:
      return 32;
    default:
      return 4;
  }
}

const std::array<float, 256>& float8_table(Float8 format) {
  static const auto make = [](Float8 f) {
    std::array<float, 256> t{};
    for (size_t i = 0; i < t.size(); ++i) {
      t[i] = static_cast<float>(float8_to_double(static_cast<uint8_t>(i), f));
    }
    return t;
  };
  static const std::array<float, 256> e4m3 = make(Float8::kE4m3), e5m2 = make(Float8::kE5m2);
  return format == Float8::kE4m3 ? e4m3 : e5m2;
}

template <class T>
T element(uint32_t word, int i, Element e) {
  switch (e) {
    case Element::kTf32:
      // The low bits do not count.
      return static_cast<T>(std::bit_cast<float>(word & ~0x1fffu));
    case Element::kE4m3:
      return static_cast<T>(float8_table(Float8::kE4m3)[word >> (8 * i) & 0xff]);
    case Element::kE5m2:
      return static_cast<T>(float8_table(Float8::kE5m2)[word >> (8 * i) & 0xff]);
    case Element::kS8:
      return static_cast<T>(static_cast<int8_t>(word >> (8 * i)));
    case Element::kU8:
      return static_cast<T>(static_cast<uint8_t>(word >> (8 * i)));
    case Element::kS4:
      return static_cast<T>(static_cast<int32_t>(word << (28 - 4 * i)) >> 28);
    case Element::kU4:
      return static_cast<T>(word >> (4 * i) & 15);
    case Element::kB1:
      return static_cast<T>(word >> i & 1);
  }
  return T{};
}

template <class T>
struct Tile {
  int depth = 0;
  T a[kMostRows][kMostDepth];
  T b[kMostDepth][kColumns];

  // A register of a fragment holds, for lane l, 4 bytes of row or column l/4 at 4 (l%4) of 16.
  void load(const TensorKind& kind, int rows, int steps, const uint32_t* const* from_a,
            const uint32_t* const* from_b) {
    const int count = elements(kind.a);
    depth = steps * 4 * count;
    for (int step = 0; step < steps; ++step) {
      for (int lane = 0; lane < 32; ++lane) {
        const int k = (step * 4 + lane % 4) * count;
        for (int half = 0; half < rows / 8; ++half) {
          const uint32_t word = from_a[step * (rows / 8) + half][lane];
          for (int i = 0; i < count; ++i) {
            a[half * 8 + lane / 4][k + i] = element<T>(word, i, kind.a);
          }
        }
        for (int i = 0; i < count; ++i) {
          b[k + i][lane / 4] = element<T>(from_b[step][lane], i, kind.b);
        }
      }
    }
  }
};

// f(row, column, word, half of the word) for every sum of a tile.
template <class F>
void for_sums(int rows, bool packed, F f) {
  for (int half = 0; half < rows / 8; ++half) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 2; ++i) {
        f(half * 8 + lane / 4, lane % 4 * 2 + i, packed ? half : half * 2 + i, lane, i);
      }
    }
  }
}

void multiply_floats(const TensorKind& kind, int rows, int steps, uint32_t* const* d,
                     const uint32_t* const* a, const uint32_t* const* b, const uint32_t* const* c) {
  Tile<float> t;
  t.load(kind, rows, steps, a, b);
  const bool packed = kind.sum == Sum::kF16;
  float sums[kMostRows][kColumns];
  for_sums(rows, packed, [&](int row, int column, int word, int lane, int i) {
    const uint32_t bits = c[word][lane];
    sums[row][column] = packed ? half_to_float(static_cast<uint16_t>(bits >> (16 * i)))
                               : std::bit_cast<float>(bits);
  });
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < t.depth; ++k) {
      const float x = t.a[row][k];
      for (int n = 0; n < kColumns; ++n) sums[row][n] += x * t.b[k][n];
    }
  }
  for_sums(rows, packed, [&](int row, int column, int word, int lane, int i) {
    const float sum = canonical(sums[row][column]);
    if (!packed) {
      d[word][lane] = std::bit_cast<uint32_t>(sum);
    } else {
      const uint32_t keep = i == 0 ? 0xffff0000u : 0x0000ffffu;
      d[word][lane] = (d[word][lane] & keep) | static_cast<uint32_t>(float_to_half(sum))
                                                   << (16 * i);
    }
  });
}

void multiply_integers(const TensorKind& kind, int rows, int steps, uint32_t* const* d,
                       const uint32_t* const* a, const uint32_t* const* b,
                       const uint32_t* const* c) {
  Tile<int32_t> t;
  t.load(kind, rows, steps, a, b);
  int32_t sums[kMostRows][kColumns] = {};
  const bool bits = kind.a == Element::kB1;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < t.depth; ++k) {
      const int32_t x = t.a[row][k];
      for (int n = 0; n < kColumns; ++n) {
        sums[row][n] += bits && kind.exclusive ? x ^ t.b[k][n] : x * t.b[k][n];
      }
    }
  }
  for_sums(rows, false, [&](int row, int column, int word, int lane, int) {
    const int64_t sum = int64_t{static_cast<int32_t>(c[word][lane])} + sums[row][column];
    using Limits = std::numeric_limits<int32_t>;
    d[word][lane] = static_cast<uint32_t>(
        kind.saturate ? std::clamp<int64_t>(sum, Limits::min(), Limits::max()) : sum);
  });
}

}  // namespace

void multiply_fragments(const TensorKind& kind, int rows, int steps, uint32_t* const* d,
                        const uint32_t* const* a, const uint32_t* const* b,
                        const uint32_t* const* c) {
  (kind.sum == Sum::kS32 ? multiply_integers : multiply_floats)(kind, rows, steps, d, a, b, c);
}

}  // namespace ptxvm::num
