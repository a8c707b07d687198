// SPDX-License-Identifier: MIT
// Rows of generic sets: named cases, pairs of core edges, all edges, random values.
#include "tools/inputs.h"

#include <algorithm>
#include <sstream>

namespace ptxvm_vectors {
namespace {

constexpr size_t kWarp = 32;
constexpr size_t kLeastRandom = 24;

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

struct Builder {
  std::vector<std::string> kinds;
  InputSet set;

  // One row with edge number `at[c]` in column c.
  void add_edges(const std::vector<size_t>& at) {
    Row row;
    for (size_t c = 0; c < kinds.size(); ++c) {
      const Edge& e = edges(kinds[c])[at[c] % edges(kinds[c]).size()];
      row.values.push_back(e.bits);
      row.why += (c ? ", " : "") + std::string(e.label);
    }
    const auto same = [&](const Row& r) { return r.values == row.values; };
    if (std::none_of(set.rows.begin(), set.rows.end(), same)) set.rows.push_back(std::move(row));
  }

  // All pairs of the cores of two columns, the others taken in turn.
  void add_pairs(size_t first, size_t second) {
    std::vector<size_t> at(kinds.size());
    size_t turn = 0;
    for (size_t i = 0; i < core_size(kinds[first]); ++i) {
      for (size_t j = 0; j < core_size(kinds[second]); ++j, ++turn) {
        for (size_t c = 0; c < kinds.size(); ++c) at[c] = turn * (2 * c + 3) + i;
        at[first] = i;
        at[second] = j;
        add_edges(at);
      }
    }
  }

  // Every edge of every column at least once.
  void add_all() {
    size_t longest = 0;
    for (const std::string& k : kinds) longest = std::max(longest, edges(k).size());
    for (size_t i = 0; i < longest; ++i) {
      std::vector<size_t> at(kinds.size());
      for (size_t c = 0; c < kinds.size(); ++c) at[c] = i * (c == 0 ? 1 : 2 * c + 5) + c;
      add_edges(at);
    }
  }

  void add_random() {
    uint64_t state = kSeed;
    for (char c : set.name) state = state * 131 + static_cast<unsigned char>(c);
    const size_t least = kinds.size() == 1 ? 2 * kLeastRandom : kLeastRandom;
    const size_t total = (set.rows.size() + least + kWarp - 1) / kWarp * kWarp;
    while (set.rows.size() < total) {
      Row row{{}, "random"};
      for (const std::string& k : kinds) row.values.push_back(random_value(k, state));
      set.rows.push_back(std::move(row));
    }
  }
};

}  // namespace

InputSet make_inputs(const std::string& name) {
  InputSet special = make_special(name);
  if (!special.name.empty()) return special;
  Builder b{split(name), {name, named_rows(name)}};
  const size_t n = b.kinds.size();
  if (n >= 2) {
    // Bit counts meet each other, else the value they apply to; otherwise the first two operands.
    const bool counted = b.kinds[n - 1] == "count";
    b.add_pairs(counted ? n - 2 : 0, counted ? n - 1 : 1);
    if (b.kinds[n - 1] == "carry") b.add_pairs(0, n - 1);
  }
  b.add_all();
  b.add_random();
  return b.set;
}

}  // namespace ptxvm_vectors
