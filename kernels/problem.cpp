// SPDX-License-Identifier: MIT
#include "kernels/problem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace fa {

std::int64_t Problem::pages() const {
  if (page == 0 || own_pages > 0) return own_pages;
  std::int64_t count = 1;
  for (std::int64_t b = 0; b < batch; ++b) count += (length(b) + page - 1) / page;
  return count;
}

namespace {

std::int64_t sum(const std::vector<std::int64_t>& lengths, std::int64_t count) {
  return std::accumulate(lengths.begin(), lengths.begin() + count, std::int64_t{0});
}

}  // namespace

std::int64_t Problem::stored_queries() const {
  return packed() ? sum(query_lengths, batch) : seq_q;
}

std::int64_t Problem::stored_keys() const {
  return packed() ? sum(lengths, batch) : seq_kv;
}

std::int64_t Problem::first_query(std::int64_t entry) const {
  return packed() ? sum(query_lengths, entry) : 0;
}

std::int64_t Problem::first_key(std::int64_t entry) const {
  return packed() ? sum(lengths, entry) : 0;
}

double Problem::pairs() const {
  if (!packed()) return static_cast<double>(seq_q) * keys();
  double all = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    all += static_cast<double>(queries(b)) * static_cast<double>(length(b));
  return all;
}

double Problem::keys() const {
  if (lengths.empty()) return static_cast<double>(batch) * static_cast<double>(seq_kv);
  return static_cast<double>(sum(lengths, std::ssize(lengths)));
}

Problem::Keys Problem::visible(std::int64_t row, std::int64_t entry) const {
  const std::int64_t keys = length(entry), place = row + keys - queries(entry);
  const std::int64_t right = causal ? 0 : window_right;
  const std::int64_t end = right < 0 ? keys : std::clamp<std::int64_t>(place + right + 1, 0, keys);
  return {window_left < 0 ? 0 : std::clamp<std::int64_t>(place - window_left, 0, end), end};
}

double Problem::windowed_flops() const {
  std::int64_t seen = 0;
  for (std::int64_t b = 0; b < (lengths.empty() ? 1 : batch); ++b)
    for (std::int64_t row = 0; row < queries(b); ++row) seen += visible(row, b).count();
  const double entries = lengths.empty() ? static_cast<double>(batch) : 1;
  return 4.0 * static_cast<double>(heads) * head_dim * static_cast<double>(seen) * entries;
}

namespace {

/// Of several tensors with their strides.
double strided_bytes(const Problem& p, std::span<const int> tensors) {
  double elements = 0;
  for (const int tensor : tensors) elements += static_cast<double>(stored_elements(p, tensor));
  return elements * static_cast<double>(size_of(p.dtype));
}

}  // namespace

double Problem::output_bytes() const {
  if (backward && !strides.empty()) return strided_bytes(*this, strided_tensors(*this).last(3));
  if (backward) return static_cast<double>(size_of(dtype)) * head_dim * rows() + kv_bytes();
  const double o =
      strides.empty() ? rows() * head_dim : static_cast<double>(stored_elements(*this, 3));
  return o * static_cast<double>(size_of(dtype)) + (lse ? rows() * sizeof(float) : 0);
}

double Problem::input_bytes() const {
  if (!strides.empty())
    return strided_bytes(*this, strided_tensors(*this).first(backward ? 5 : 3)) +
           (backward ? rows() * sizeof(float) : 0);
  if (backward) {
    const double element = static_cast<double>(size_of(dtype));
    return rows() * (3 * element * head_dim + sizeof(float)) + kv_bytes();
  }
  const double stored =
      page > 0 ? static_cast<double>(pages()) * static_cast<double>(page)
               : static_cast<double>(stored_batch()) * static_cast<double>(stored_keys());
  return head_dim *
         (static_cast<double>(size_of(dtype)) * rows() +
          2 * static_cast<double>(size_of(kv_dtype())) * static_cast<double>(kv_heads()) * stored);
}

std::string to_string(const Problem& p) {
  std::string text = "B=" + std::to_string(p.batch) + " H=" + std::to_string(p.heads) +
                     (p.group() > 1 ? std::string("/").append(std::to_string(p.kv_heads())) : "") +
                     " Nq=" + std::to_string(p.seq_q) + " Nkv=" + std::to_string(p.seq_kv) +
                     " D=" + std::to_string(p.head_dim) + (p.causal ? " causal " : " ") +
                     to_string(p.dtype) + (p.lse ? " with LSE" : "");
  const auto range = [&](const char* what, const std::vector<std::int64_t>& lengths) {
    if (lengths.empty()) return;
    const auto [least, greatest] = std::minmax_element(lengths.begin(), lengths.end());
    text += what + std::to_string(*least) + " to " + std::to_string(*greatest);
  };
  range(", packed queries ", p.query_lengths);
  range(", lengths ", p.lengths);
  if (p.page > 0) text += ", pages of " + std::to_string(p.page);
  if (p.e4m3) text += std::string(", K and V ") + to_string(Dtype::e4m3);
  if (!p.strides.empty()) text += ", strided";
  const auto side = [](std::int64_t keys) { return keys < 0 ? "all" : std::to_string(keys); };
  if (p.windowed())
    text += ", window " + side(p.window_left) + " to " + side(p.causal ? 0 : p.window_right);
  if (p.sinks) text += ", sinks";
  if (p.backward) text += ", backward";
  return text;
}

namespace {

constexpr std::array kStridedTensors{0, 1, 2, 3, 11, 12, 13, 14};
constexpr std::array kNames{"q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v"};

std::size_t place_of(int tensor) {
  return static_cast<std::size_t>(
      std::find(kStridedTensors.begin(), kStridedTensors.end(), tensor) - kStridedTensors.begin());
}

/// Of a tensor that a kernel writes: rows must not lie in each other.
std::string overlap_error(const Problem& p, int tensor) {
  const Strides s = strides_of(p, tensor);
  const auto [batch, heads, rows, columns] = stored_shape(p, tensor);
  std::array<std::array<std::int64_t, 2>, 3> axes{
      {{s.batch, batch}, {s.head, heads}, {s.row, rows}}};
  std::sort(axes.begin(), axes.end());
  std::int64_t inner = columns;
  for (const auto& [stride, extent] : axes) {
    if (extent == 1) continue;
    if (stride < inner)
      return std::string(kNames[place_of(tensor)]) + " has a stride of " + std::to_string(stride) +
             " elements, within which lie " + std::to_string(inner);
    inner = stride * extent;
  }
  return {};
}

std::string stride_error(const Problem& p) {
  if (p.strides.empty()) return {};
  const std::span<const int> tensors = strided_tensors(p);
  if (p.strides.size() != 12 && p.strides.size() != 3 * tensors.size()) {
    return std::to_string(p.strides.size()) +
           " strides; 12 are needed, of batch, head and row of q, k, v and o" +
           (p.backward ? ", or 24, of d_o, d_q, d_k and d_v too" : "");
  }
  // The kernels load 16 bytes at a time, and tensor maps ask for multiples of them below 2^40.
  const std::int64_t step = 16 / static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t most = (std::int64_t{1} << 40) / static_cast<std::int64_t>(size_of(p.dtype));
  for (const int tensor : tensors) {
    const Strides s = strides_of(p, tensor);
    for (const std::int64_t stride : {s.batch, s.head, s.row}) {
      if (stride >= step && stride % step == 0 && stride < most) continue;
      return std::string(kNames[place_of(tensor)]) + " has a stride of " + std::to_string(stride) +
             " elements; multiples of " + std::to_string(step) + " below " + std::to_string(most) +
             " are allowed";
    }
  }
  for (const int tensor : tensors) {
    const Strides s = strides_of(p, tensor);
    const auto extents = stored_shape(p, tensor);
    double span = 0;  // in floating point, because it may not fit 64 bits
    for (const auto& [stride, extent] :
         {std::pair{s.batch, extents[0]}, {s.head, extents[1]}, {s.row, extents[2]}})
      span += static_cast<double>(stride) * static_cast<double>(extent);
    if (span >= 0x1p48)
      return std::string(kNames[place_of(tensor)]) + " spans more than 2^48 elements";
  }
  for (const int tensor : p.backward ? tensors.last(3) : tensors.last(1)) {
    if (std::string error = overlap_error(p, tensor); !error.empty()) return error;
  }
  return {};
}

}  // namespace

std::span<const int> strided_tensors(const Problem& p) {
  return std::span(kStridedTensors).first(p.backward ? 8 : 4);
}

std::array<std::int64_t, 4> stored_shape(const Problem& p, int tensor) {
  const bool of_keys = tensor == 1 || tensor == 2 || tensor >= 13;
  if (!of_keys) return {p.stored_batch(), p.heads, p.stored_queries(), p.head_dim};
  if (p.page > 0) return {p.pages(), p.kv_heads(), p.page, p.head_dim};
  return {p.stored_batch(), p.kv_heads(), p.stored_keys(), p.head_dim};
}

Strides strides_of(const Problem& p, int tensor) {
  const auto [batch, heads, rows, columns] = stored_shape(p, tensor);
  const Strides plain{heads * rows * columns, rows * columns, columns};
  if (p.strides.empty()) return plain;
  constexpr std::array<std::size_t, 4> kOwn{3, 0, 1, 2};  // whose gradients d_o to d_v are
  const std::size_t place = place_of(tensor), shared = kOwn.size();
  const std::size_t from =
      p.strides.size() == 12 && place >= shared ? kOwn.at(place - shared) : place;
  const std::int64_t* given = p.strides.data() + 3 * from;
  return {batch > 1 ? given[0] : plain.batch, heads > 1 ? given[1] : plain.head,
          rows > 1 ? given[2] : plain.row};
}

std::int64_t stored_elements(const Problem& p, int tensor) {
  const auto [batch, heads, rows, columns] = stored_shape(p, tensor);
  const Strides s = strides_of(p, tensor);
  return (batch - 1) * s.batch + (heads - 1) * s.head + (rows - 1) * s.row + columns;
}

std::vector<std::int64_t> row_major_strides(const Problem& p) {
  std::vector<std::int64_t> all;
  for (const int tensor : strided_tensors(p)) {
    const auto [batch, heads, rows, columns] = stored_shape(p, tensor);
    all.insert(all.end(), {rows * heads * columns, columns, heads * columns});
  }
  return all;
}

std::vector<std::int32_t> cu_seqlens(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> starts{0};
  for (const std::int64_t length : lengths)
    starts.push_back(starts.back() + static_cast<std::int32_t>(length));
  return starts;
}

namespace {

/// Of lengths that a problem has, each from 0 to `most`.
std::string length_error(const Problem& p, const char* what, const char* bound,
                         const std::vector<std::int64_t>& lengths, std::int64_t most) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  if (std::ssize(lengths) != p.batch) {
    return text(std::ssize(lengths)) + " " + what + "s for a batch of " + text(p.batch) +
           "; one for each entry is needed";
  }
  double all = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > most)
      return std::string(what) + " " + text(length) + " is not between 0 and " + bound + " " +
             text(most);
    all += static_cast<double>(length);
  }
  if (all == 0) return std::string("all ") + what + "s are 0; at least one must be above";
  if (p.packed() && all > static_cast<double>(kMostKeys))
    return std::string("the ") + what + "s of a packed batch add up to more than " +
           text(kMostKeys);
  return {};
}

}  // namespace

std::string cache_error(const Problem& p) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  if (p.own_kv_heads < 0 || p.heads % p.kv_heads() != 0) {
    return "kv_heads " + text(p.own_kv_heads) + " does not divide the " + text(p.heads) + " heads";
  }
  if (p.e4m3 && p.dtype != Dtype::f16) {
    return std::string("K and V of ") + to_string(Dtype::e4m3) + " need Q of " +
           to_string(Dtype::f16) + ", it is " + to_string(p.dtype);
  }
  if (p.page < 0) return "page " + text(p.page) + " is below 0";
  if (p.packed()) {
    if (p.lengths.empty()) return "a packed batch needs lengths, the keys of each entry";
    if (p.page > 0) return "a packed batch has no pages; page is " + text(p.page);
    if (p.e4m3) return std::string("a packed batch has no cache of ") + to_string(Dtype::e4m3);
    const std::string error = length_error(p, "query length", "seq_q", p.query_lengths, p.seq_q);
    if (!error.empty()) return error;
  }
  if (!p.lengths.empty()) {
    const std::string error = length_error(p, "length", "seq_kv", p.lengths, p.seq_kv);
    if (!error.empty()) return error;
  }
  if (p.backward && (p.lse || p.e4m3 || p.page > 0 || (!p.lengths.empty() && !p.packed()))) {
    return "a backward pass takes no pages, no float8_e4m3 and no lengths but those of a packed "
           "batch, and has no LSE among its results";
  }
  if (const std::string error = stride_error(p); !error.empty()) return error;
  for (const auto& [side, keys] :
       {std::pair{"window_left", p.window_left}, {"window_right", p.window_right}}) {
    if (keys < -1 || keys > kMostKeys)
      return std::string(side) + " " + text(keys) + " is not between -1 and " + text(kMostKeys);
  }
  return {};
}

}  // namespace fa
