// SPDX-License-Identifier: MIT
// Inputs of the golden vectors: edge values and seeded random ones, each row with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxvm_vectors {

/// One row of operands; a lane of the kernel takes it.
struct Row {
  std::vector<uint64_t> values;
  std::string why;
};

/// Rows for all lanes of one launch: a multiple of 32.
struct InputSet {
  std::string name;
  std::vector<Row> rows;

  size_t columns() const { return rows.empty() ? 0 : rows[0].values.size(); }
};

constexpr uint64_t kSeed = 20240611;

/// The set of that name: kinds of columns separated by spaces (`f32 f32`), or a special one.
InputSet make_inputs(const std::string& name);

/// A value worth testing and what is special about it.
struct Edge {
  uint64_t bits;
  const char* label;
};

/// The edge values of a column kind; the first few are the core that is tried in all pairs.
const std::vector<Edge>& edges(const std::string& kind);
size_t core_size(const std::string& kind);

/// A random value of a kind; `salt` walks the sequence.
uint64_t random_value(const std::string& kind, uint64_t& state);
uint64_t next_random(uint64_t& state);

/// Rows written by hand for a set, among them the known errors of other simulators by name.
std::vector<Row> named_rows(const std::string& set);

/// The special sets (whole warps, matrices); empty name when there is none of that name.
InputSet make_special(const std::string& name);

}  // namespace ptxvm_vectors
