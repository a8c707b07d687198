// SPDX-License-Identifier: MIT
#include "tools/wgmma_recorder.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "num/float8.h"
#include "tools/compare.h"
#include "tools/digest.h"
#include "tools/tcgen05_case.h"

namespace ptxvm_vectors {
namespace {

constexpr const char* kEntry = "vectors";

// Bits of an operand or a sum as a number.
double number(uint64_t bits, const std::string& type) {
  using ptxvm::num::Float8;
  if (type == "s32") return static_cast<int32_t>(static_cast<uint32_t>(bits));
  if (type == "s8") return static_cast<int8_t>(static_cast<uint8_t>(bits));
  if (type == "u8") return static_cast<double>(bits);
  if (type == "e4m3" || type == "e5m2") {
    return ptxvm::num::float8_to_double(static_cast<uint8_t>(bits),
                                        type == "e4m3" ? Float8::kE4m3 : Float8::kE5m2);
  }
  return decode(bits, type == "f16"    ? Format::kHalf
                      : type == "bf16" ? Format::kBfloat
                                       : Format::kSingle);
}
Format sum_format(const WgmmaCase& c) {
  return c.half_sums ? Format::kHalf : Format::kSingle;
}

// How far sums of products may be from the hardware's, times the sum of magnitudes: those of 8
// bits may keep fewer bits than f32 has.
double product_bound(const WgmmaCase& c) {
  return c.narrow_a.empty() || c.narrow_a == "tf32" ? kProductBound : 0x1p-12;
}

// One element of D.
struct Element {
  double sum = 0;        // what it is, in f64
  double magnitude = 0;  // of all terms
};

// The operands of a case as numbers.
class Product {
 public:
  Product(const WgmmaCase& c, const std::map<std::string, Matrix>& m)
      : case_(c),
        matrices_(m),
        a_(numbers(m.at(matrix_name('a', c)), c.a_type())),
        b_(numbers(m.at(matrix_name('b', c)), c.b_type())) {}

  Element at(int row, int column) const {
    Element e;
    const bool executes = case_.guard != '!';
    const int factor = case_.scale_a * case_.scale_b * case_.issues, depth = case_.depth();
    for (int k = 0; k < depth && executes; ++k) {
      const double product = a_[static_cast<size_t>(row * depth + k)] *
                             b_[static_cast<size_t>(column * depth + k)] * factor;
      e.sum += product;
      e.magnitude += std::fabs(product);
    }
    if (case_.accumulate || !executes) {
      const double start = number(initial(matrices_, case_, row, column), case_.sum_type());
      e.sum += start;
      e.magnitude += std::fabs(start);
    }
    return e;
  }

 private:
  static std::vector<double> numbers(const Matrix& m, const std::string& type) {
    std::vector<double> out;
    for (uint64_t bits : m.bits) out.push_back(number(bits, type));
    return out;
  }

  const WgmmaCase& case_;
  const std::map<std::string, Matrix>& matrices_;
  std::vector<double> a_, b_;
};

bool is_tcgen05(const WgmmaCase& c) {
  return c.spelling->row->count == ptxvm::CountClass::kTcgen05;
}

std::vector<uint64_t> inputs_of(const WgmmaCase& c, const std::map<std::string, Matrix>& m) {
  return is_tcgen05(c) ? tcgen05_inputs(c, m) : wgmma_inputs(c, m);
}

std::vector<std::vector<uint64_t>> run(Device& device, const WgmmaCase& c,
                                       const std::map<std::string, Matrix>& matrices) {
  const std::vector<uint64_t> inputs = inputs_of(c, matrices);
  const size_t words = is_tcgen05(c) ? tcgen05_output_words(c) : wgmma_output_words(c);
  const std::vector<uint64_t> out =
      device.run(product_module(c, kEntry), kEntry, 128, inputs, words);
  return is_tcgen05(c) ? tcgen05_columns(c, inputs, out) : wgmma_columns(c, out);
}

}  // namespace

std::string product_module(const WgmmaCase& c, const std::string& name) {
  return is_tcgen05(c) ? tcgen05_module(c, name) : wgmma_module(c, name);
}

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
        r.columns = run(device, c, matrices);
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
    const std::string text = product_module(c, kEntry);
    const std::vector<uint64_t> inputs = inputs_of(c, matrices);
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
  const Product product(c, matrices);
  const std::string type = c.sum_type();
  std::vector<std::vector<uint64_t>> d(static_cast<size_t>(c.n));
  for (int column = 0; column < c.n; ++column) {
    for (int row = 0; row < c.m; ++row) {
      const auto sum = static_cast<float>(product.at(row, column).sum);
      d[static_cast<size_t>(column)].push_back(encode(sum, type));
    }
  }
  return d;
}

std::string wgmma_difference(const WgmmaCase& c, const std::map<std::string, Matrix>& matrices,
                             const std::vector<std::vector<uint64_t>>& hardware,
                             const std::vector<std::vector<uint64_t>>& machine, size_t& equal) {
  if (hardware.size() != machine.size()) return "another number of columns";
  std::string first;
  const Product product(c, matrices);
  const auto rows = static_cast<size_t>(c.m);
  for (size_t column = 0; column < hardware.size(); ++column) {
    if (hardware[column].size() != rows || machine[column].size() != rows)
      return "another number of rows";
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t a = hardware[column][row], b = machine[column][row];
      equal += a == b;
      if (a == b || !first.empty()) continue;
      Bound bound;
      if (c.data != Data::kSmall && !c.integers()) {
        const Element e = product.at(static_cast<int>(row), static_cast<int>(column));
        bound.absolute = product_bound(c) * e.magnitude;
        bound.ulps = c.half_sums ? c.issues : 0;
      }
      if (close(a, b, sum_format(c), bound)) continue;
      char text[200];
      std::snprintf(text, sizeof text,
                    "row %zu, column %zu: hardware %llx (%.9g), machine %llx (%.9g)", row, column,
                    static_cast<unsigned long long>(a), number(a, c.sum_type()),
                    static_cast<unsigned long long>(b), number(b, c.sum_type()));
      first = text;
    }
  }
  return first;
}

}  // namespace ptxvm_vectors
