// SPDX-License-Identifier: MIT
#include "tools/wgmma_recorder.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tools/compare.h"
#include "tools/digest.h"

namespace ptxvm_vectors {
namespace {

constexpr const char* kEntry = "vectors";

Format input_format(const WgmmaCase& c) {
  return c.bfloat ? Format::kBfloat : Format::kHalf;
}
Format sum_format(const WgmmaCase& c) {
  return c.half_sums ? Format::kHalf : Format::kSingle;
}

// Operands of one element of D, decoded.
struct Element {
  double sum = 0;        // what it is, in f64
  double magnitude = 0;  // of all terms
};

Element element(const WgmmaCase& c, const std::map<std::string, Matrix>& m, int row, int column) {
  const Matrix& a = m.at(matrix_name('a', c));
  const Matrix& b = m.at(matrix_name('b', c));
  Element e;
  const bool executes = c.guard != '!';
  const int sign = c.scale_a * c.scale_b;
  for (int k = 0; k < kDepth && executes; ++k) {
    const double product =
        decode(a.bits[static_cast<size_t>(row * kDepth + k)], input_format(c)) *
        decode(b.bits[static_cast<size_t>(column * kDepth + k)], input_format(c)) * sign * c.issues;
    e.sum += product;
    e.magnitude += std::fabs(product);
  }
  if (c.accumulate || !executes) {
    const double start = decode(initial(m, c, row, column), sum_format(c));
    e.sum += start;
    e.magnitude += std::fabs(start);
  }
  return e;
}

}  // namespace

WgmmaRecording record_wgmma(Device& device, const std::vector<WgmmaCase>& cases,
                            const std::map<std::string, Matrix>& matrices, int threads) {
  WgmmaRecording result;
  result.file.matrices = matrices;
  std::vector<WgmmaRecord> records(cases.size());
  std::mutex mutex;
  std::atomic<size_t> next{0};
  const auto worker = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) {
      const WgmmaCase& c = cases[i];
      WgmmaRecord& r = records[i];
      r.op = c.spelling->text;
      r.name = c.name;
      r.why = c.why;
      try {
        r.columns = wgmma_columns(c, device.run(wgmma_module(c, kEntry), kEntry, 128,
                                                wgmma_inputs(c, matrices), wgmma_output_words(c)));
      } catch (const std::runtime_error& error) {
        const std::scoped_lock lock(mutex);
        result.errors.push_back(r.key() + ": " + error.what());
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(worker);
  for (std::thread& t : pool) t.join();

  Digest digest;
  for (const WgmmaCase& c : cases) {
    const std::string text = wgmma_module(c, kEntry);
    const std::vector<uint64_t> inputs = wgmma_inputs(c, matrices);
    digest.add(text.data(), text.size());
    digest.add(inputs.data(), inputs.size() * 8);
  }
  result.generator = digest.text();
  for (WgmmaRecord& r : records) {
    if (!r.columns.empty()) result.file.records.push_back(std::move(r));
  }
  return result;
}

std::vector<std::vector<uint64_t>> exact_product(const WgmmaCase& c,
                                                 const std::map<std::string, Matrix>& matrices) {
  std::vector<std::vector<uint64_t>> d(static_cast<size_t>(c.n));
  for (int column = 0; column < c.n; ++column) {
    for (int row = 0; row < kRows; ++row) {
      const auto sum = static_cast<float>(element(c, matrices, row, column).sum);
      d[static_cast<size_t>(column)].push_back(encode(sum, c.half_sums ? "f16" : "f32"));
    }
  }
  return d;
}

std::string wgmma_difference(const WgmmaCase& c, const std::map<std::string, Matrix>& matrices,
                             const std::vector<std::vector<uint64_t>>& hardware,
                             const std::vector<std::vector<uint64_t>>& machine, size_t& equal) {
  if (hardware.size() != machine.size()) return "another number of columns";
  std::string first;
  for (size_t column = 0; column < hardware.size(); ++column) {
    if (hardware[column].size() != kRows || machine[column].size() != kRows)
      return "another number of rows";
    for (size_t row = 0; row < kRows; ++row) {
      const uint64_t a = hardware[column][row], b = machine[column][row];
      equal += a == b;
      if (a == b || !first.empty()) continue;
      Bound bound;
      if (c.data != Data::kSmall) {
        const Element e = element(c, matrices, static_cast<int>(row), static_cast<int>(column));
        bound.absolute = kProductBound * e.magnitude;
        bound.ulps = c.half_sums ? c.issues : 0;
      }
      if (close(a, b, sum_format(c), bound)) continue;
      char text[200];
      std::snprintf(text, sizeof text,
                    "row %zu, column %zu: hardware %llx (%.9g), machine %llx (%.9g)", row, column,
                    static_cast<unsigned long long>(a), decode(a, sum_format(c)),
                    static_cast<unsigned long long>(b), decode(b, sum_format(c)));
      first = text;
    }
  }
  return first;
}

}  // namespace ptxvm_vectors
