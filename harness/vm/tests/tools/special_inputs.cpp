// SPDX-License-Identifier: MIT
// Sets whose rows belong together: whole warps, matrices, fragments of tensor products.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "tools/inputs.h"

namespace ptxvm_vectors {
namespace {

constexpr uint64_t kAll = 0xffffffff, kLow = 0x0000ffff, kHigh = 0xffff0000;

// Calls f(lane, random state) for each lane of a warp and appends the rows.
template <class F>
void add_warp(InputSet& set, const std::string& why, uint64_t& state, F f) {
  for (uint64_t lane = 0; lane < 32; ++lane) set.rows.push_back({f(lane, state), why});
}

InputSet shuffles(uint64_t s) {
  InputSet set{"shfl", {}};
  struct Case {
    const char* why;
    uint64_t clamp, mask;
    int mode;  // of the lane operand: a constant, random, random of 6 bits, within a half
    uint64_t lane;
  };
  const Case cases[] = {{"1 lane, whole warp", 0x1f, kAll, 0, 1},
                        {"0 lanes", 0x1f, kAll, 0, 0},
                        {"16 lanes, up clamps at 0", 0, kAll, 0, 16},
                        {"own lane number each", 0x1f, kAll, 1, 0},
                        {"own lane number each, clamp 0", 0, kAll, 1, 0},
                        {"lane numbers above 31", 0x1f, kAll, 2, 0},
                        {"segments of 8", 0x1807, kAll, 1, 0},
                        {"segments of 8, clamp 0", 0x1800, kAll, 0, 3},
                        {"segments of 4, clamp 2", 0x1c02, kAll, 0, 1},
                        {"bits of the clamp operand that do not count", 0xffffe0ff, kAll, 1, 0},
                        {"low half only", 0x100f, kLow, 3, 0},
                        {"high half only, clamp 0", 0x1000, kHigh, 3, 0}};
  for (const Case& c : cases) {
    add_warp(set, c.why, s, [&](uint64_t, uint64_t& state) {
      const uint64_t r = next_random(state), value = next_random(state) & kAll;
      const uint64_t lane = c.mode == 0   ? c.lane
                            : c.mode == 1 ? r & 31
                            : c.mode == 2 ? r & 0xff
                                          : r & 15;
      return std::vector<uint64_t>{value, lane, c.clamp, c.mask};
    });
  }
  return set;
}

// Groups of member masks for vote, match and redux. The halves take part one at a time: an
// instruction is issued once for each launch, so only one group of lanes may reach it.
constexpr std::array<uint64_t, 5> kMasks = {kAll, kLow, kHigh, 0xaaaaaaaa, 0x00000100};

InputSet votes(uint64_t s) {
  InputSet set{"vote", {}};
  const char* patterns[] = {"none", "all", "one lane", "all but one", "random"};
  for (int p = 0; p < 5; ++p) {
    for (uint64_t mask : kMasks) {
      add_warp(
          set, std::string("predicate: ") + patterns[p], s, [&](uint64_t lane, uint64_t& state) {
            const bool on[] = {false, true, lane == 8, lane != 8, (next_random(state) & 1) != 0};
            return std::vector<uint64_t>{on[p], mask};
          });
    }
  }
  return set;
}

InputSet values(const std::string& name, const std::string& kind, uint64_t s) {
  InputSet set{name, {}};
  const char* kinds[] = {"all the same", "few values", "one differs", "edges", "random"};
  const bool wide = kind == "i64";
  for (int k = 0; k < 5; ++k) {
    for (uint64_t mask : kMasks) {
      add_warp(set, kinds[k], s, [&](uint64_t lane, uint64_t& state) {
        const uint64_t r = next_random(state) >> (wide ? 0 : 32);
        const uint64_t same = wide ? 0x8000000180000001 : 0x80000001;
        const uint64_t edge = edges(kind)[lane % edges(kind).size()].bits;
        const uint64_t v[] = {same, r % 3, lane == 8 ? 7 : same, edge, r};
        return std::vector<uint64_t>{v[k], mask};
      });
    }
  }
  return set;
}

InputSet nth_set_bit(uint64_t s) {
  InputSet set{"fns", {}};
  const uint64_t words[] = {0, 1, 0x80000000, kAll, 0xaaaaaaaa, 0x00ff00f0};
  const int64_t offsets[] = {0, 1, -1, 2, -2, 8, 31, 32, -32, -5};
  for (uint64_t word : words) {
    for (int64_t offset : offsets) {
      for (uint64_t base : {0, 7, 31}) {
        set.rows.push_back({{word, base, static_cast<uint64_t>(offset) & kAll}, "edges"});
      }
    }
  }
  while (set.rows.size() % 32) {
    const uint64_t r = next_random(s);
    set.rows.push_back({{next_random(s) & kAll, r & 31, ((r >> 8 & 31) - 16) & kAll}, "random"});
  }
  return set;
}

// Four words for shared memory, and the row whose address the lane gives.
InputSet matrices(uint64_t s) {
  InputSet set{"matrix", {}};
  const char* orders[] = {"rows in order", "rows reversed", "rows interleaved", "rows shuffled"};
  for (uint64_t p = 0; p < 4; ++p) {
    add_warp(set, orders[p], s, [&](uint64_t lane, uint64_t& state) {
      const uint64_t at[] = {lane, 31 - lane, lane * 4 % 32 + lane / 8, lane * 13 % 32};
      std::vector<uint64_t> row;
      for (int i = 0; i < 4; ++i) row.push_back(next_random(state) & kAll);
      row.push_back(at[p] * 16);
      return row;
    });
  }
  return set;
}

InputSet lanes(uint64_t s) {
  InputSet set{"lanes", {}};
  for (int w = 0; w < 2; ++w) {
    add_warp(set, "random", s, [](uint64_t, uint64_t& state) {
      return std::vector<uint64_t>{next_random(state) & kAll};
    });
  }
  return set;
}

InputSet addresses() {
  InputSet set{"address", {}};
  const char* names[] = {"global", "shared", "null"};
  for (uint64_t i = 0; i < 32; ++i) set.rows.push_back({{i % 3}, names[i % 3]});
  return set;
}

uint64_t encode(float x, const std::string& type) {
  const auto f = std::bit_cast<uint32_t>(x);
  if (type == "bf16") return f >> 16;
  if (x == 0) return f >> 31 << 15;
  // The values made here are normal and exact in half precision.
  const int exponent = static_cast<int>(f >> 23 & 0xff) - 127 + 15;
  return f >> 31 << 15 | static_cast<uint64_t>(exponent) << 10 | (f >> 13 & 0x3ff);
}

// Full significands over a range of exponents, so that sums have to be rounded.
float element(bool small, const std::string& type, uint64_t r) {
  if (small) return static_cast<float>(static_cast<int>(r % 9) - 4);
  const int fraction = type == "bf16" ? 7 : type == "f16" ? 10 : 23;
  const uint64_t one = uint64_t{1} << fraction;
  const float m = static_cast<float>(one + r % one) / static_cast<float>(one);
  return std::ldexp(r >> 62 & 1 ? -m : m, static_cast<int>(r >> 40 & 7) - 5);
}

// Infinities, NaN, subnormals and the largest number, now and then.
uint64_t special_element(const std::string& type, uint64_t r) {
  const std::vector<Edge>& all = edges(type);
  return r % 16 == 0 ? all[(r >> 8) % all.size()].bits : encode(element(true, type, r >> 16), type);
}

// `mma_f32 k16 bf16 small`: columns are the registers of a, b and c.
InputSet products(const std::string& name, uint64_t s) {
  InputSet set{name, {}};
  const bool half = name.substr(0, 7) == "mma_f16", deep = name.find("k16") != std::string::npos;
  const bool small = name.find("small") != std::string::npos;
  const bool special = name.find("special") != std::string::npos;
  const std::string type = name.find("bf16") != std::string::npos ? "bf16" : "f16";
  const int packed = deep ? 6 : 3;
  for (int w = 0; w < 4; ++w) {
    const char* why = small ? "small integers" : special ? "special values" : "random";
    add_warp(set, why, s, [&](uint64_t, uint64_t& state) {
      const auto one = [&] {
        const uint64_t r = next_random(state);
        return special ? special_element(type, r) : encode(element(small, type, r), type);
      };
      std::vector<uint64_t> row;
      for (int i = 0; i < packed + (half ? 2 : 0); ++i) {
        const uint64_t low = one();
        row.push_back(low | one() << 16);
      }
      for (int i = 0; i < (half ? 0 : 4); ++i)
        row.push_back(std::bit_cast<uint32_t>(element(small, "f32", next_random(state))));
      return row;
    });
  }
  return set;
}

uint64_t float8(int value, bool e4m3) {
  if (value == 0) return 0;
  const int magnitude = std::abs(value), exponent = magnitude >= 4 ? 2 : magnitude >= 2 ? 1 : 0;
  const int fraction = e4m3 ? (magnitude << (3 - exponent)) & 7 : (magnitude << (2 - exponent)) & 3;
  return (value < 0 ? 0x80u : 0u) | static_cast<unsigned>(e4m3 ? (exponent + 7) << 3 | fraction
                                                               : (exponent + 15) << 2 | fraction);
}

// A word of an operand of mma_any.
uint64_t tensor_word(const std::string& type, bool small, uint64_t& state) {
  const uint64_t r = next_random(state);
  const int value = static_cast<int>(r % 9) - 4;
  if (type == "integer") return r & kAll;
  if (type == "f64") {
    return std::bit_cast<uint64_t>(small ? value : static_cast<double>(element(false, "f32", r)));
  }
  if (type == "tf32") return std::bit_cast<uint32_t>(element(small, "f32", r));
  uint64_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t x = next_random(state);
    // Exponents in the middle, neither NaN nor infinity.
    const uint64_t random = (x & 0x87) | ((x >> 8) % 12 + 2) << 3;
    word |= (small ? float8(static_cast<int>(x % 9) - 4, type == "e4m3") : random) << (8 * i);
  }
  return word;
}

uint64_t tensor_sum(const std::string& type, bool small, uint64_t& state) {
  const uint64_t r = next_random(state);
  if (type == "f64") return tensor_word("f64", small, state);
  if (type == "f32") return std::bit_cast<uint32_t>(element(small, "f32", r));
  if (type == "s32") return r & kAll;
  return encode(element(small, "f16", r), "f16") |
         encode(element(small, "f16", next_random(state)), "f16") << 16;
}

// `tensor e4m3 4 2 f32 small`: columns are the registers of a, b and c.
InputSet tensors(const std::string& name, uint64_t s) {
  std::istringstream in(name);
  std::string skip, type, sums, data;
  int a = 0, b = 0;
  in >> skip >> type >> a >> b >> sums >> data;
  InputSet set{name, {}};
  const int halves = a / b, c = sums == "f16" ? halves : 2 * halves;
  for (int w = 0; w < 2; ++w) {
    add_warp(set, data == "small" ? "small integers" : "random", s, [&](uint64_t, uint64_t& state) {
      std::vector<uint64_t> row;
      for (int i = 0; i < a + b; ++i) row.push_back(tensor_word(type, data == "small", state));
      for (int i = 0; i < c; ++i) row.push_back(tensor_sum(sums, data == "small", state));
      return row;
    });
  }
  return set;
}

// Three operands, and the flag that the instruction in front leaves.
InputSet carry_pairs(uint64_t s) {
  InputSet set{"carry pairs", {}};
  const uint64_t some[] = {0, 1, ~uint64_t{0}, kAll, uint64_t{1} << 32, uint64_t{1} << 63};
  for (uint64_t i = 0; i < 32; ++i) {
    const auto value = [&] { return i < 24 ? some[next_random(s) % 6] : next_random(s); };
    set.rows.push_back({{value(), value(), value(), i & 1}, i < 24 ? "edges" : "random"});
  }
  return set;
}

// Arrivals that make a phase, arrivals at once (no more than that), bytes.
InputSet barriers(uint64_t s) {
  constexpr uint64_t kMostArrivals = (1 << 20) - 2, kMostBytes = (1 << 20) - 1;
  InputSet set{"mbarrier", {}};
  set.rows = {{{1, 1, 0}, "one arrival, no bytes"},
              {{1, 1, 1}, "one arrival, one byte"},
              {{1, 1, 16384}, "as a copy of 16 KiB"},
              {{2, 1, 16}, "half of the arrivals"},
              {{2, 2, 16}, "all arrivals at once"},
              {{32, 1, 0}, "a warp"},
              {{128, 127, 48}, "all but one"},
              {{kMostArrivals, 1, kMostBytes}, "the most arrivals less one, the most bytes"},
              {{kMostArrivals, kMostArrivals, kMostBytes}, "the most at once"},
              {{kMostArrivals, kMostArrivals - 1, 2}, "the most but one"}};
  while (set.rows.size() < 32) {
    const uint64_t n = (next_random(s) & 0xfffff) >> (next_random(s) % 20), most = n == 0 ? 1 : n;
    const uint64_t count = std::min(most, kMostArrivals);
    set.rows.push_back(
        {{count, 1 + next_random(s) % count, next_random(s) & kMostBytes}, "random"});
  }
  return set;
}

}  // namespace

InputSet make_special(const std::string& name) {
  uint64_t seed = kSeed;
  for (char c : name) seed = seed * 131 + static_cast<unsigned char>(c);
  if (name == "shfl") return shuffles(seed);
  if (name == "vote") return votes(seed);
  if (name == "redux" || name == "match32") return values(name, "i32", seed);
  if (name == "redux f32") return values(name, "f32", seed);
  if (name == "match64") return values(name, "i64", seed);
  if (name == "fns") return nth_set_bit(seed);
  if (name == "matrix") return matrices(seed);
  if (name == "lanes") return lanes(seed);
  if (name == "address") return addresses();
  if (name == "mbarrier") return barriers(seed);
  if (name.substr(0, 6) == "tensor") return tensors(name, seed);
  if (name == "carry pairs") return carry_pairs(seed);
  if (name.substr(0, 3) == "mma") return products(name, seed);
  if (name == "none") return {name, std::vector<Row>(32, Row{{0}, "whole warp"})};
  if (name == "lut") {
    InputSet set{name, {}};
    for (int i = 0; i < 31; ++i)
      set.rows.push_back(
          {{next_random(seed) & kAll, next_random(seed) & kAll, next_random(seed) & kAll},
           "random"});
    set.rows.insert(set.rows.begin(), {{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa}, "the whole table"});
    set.rows.resize(32);
    return set;
  }
  return {};
}

}  // namespace ptxvm_vectors
