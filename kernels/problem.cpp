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

double Problem::keys() const {
  if (lengths.empty()) return static_cast<double>(batch) * static_cast<double>(seq_kv);
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
}

Problem::Keys Problem::visible(std::int64_t row, std::int64_t entry) const {
  const std::int64_t keys = length(entry), place = row + keys - seq_q;
  const std::int64_t right = causal ? 0 : window_right;
  const std::int64_t end = right < 0 ? keys : std::clamp<std::int64_t>(place + right + 1, 0, keys);
  return {window_left < 0 ? 0 : std::clamp<std::int64_t>(place - window_left, 0, end), end};
}

double Problem::windowed_flops() const {
  std::int64_t seen = 0;
  for (std::int64_t b = 0; b < (lengths.empty() ? 1 : batch); ++b)
    for (std::int64_t row = 0; row < seq_q; ++row) seen += visible(row, b).count();
  const double entries = lengths.empty() ? static_cast<double>(batch) : 1;
  return 4.0 * static_cast<double>(heads) * head_dim * static_cast<double>(seen) * entries;
}

double Problem::output_bytes() const {
  const double o =
      strides.empty() ? rows() * head_dim : static_cast<double>(stored_elements(*this, 3));
  return o * static_cast<double>(size_of(dtype)) + (lse ? rows() * sizeof(float) : 0);
}

double Problem::input_bytes() const {
  if (!strides.empty()) {
    double elements = 0;
    for (int tensor = 0; tensor < 3; ++tensor)
      elements += static_cast<double>(stored_elements(*this, tensor));
    return elements * static_cast<double>(size_of(dtype));
  }
  const double stored = page > 0 ? static_cast<double>(pages()) * static_cast<double>(page)
                                 : static_cast<double>(batch) * static_cast<double>(seq_kv);
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
  if (!p.lengths.empty()) {
    const auto [least, greatest] = std::minmax_element(p.lengths.begin(), p.lengths.end());
    text += ", lengths " + std::to_string(*least) + " to " + std::to_string(*greatest);
  }
  if (p.page > 0) text += ", pages of " + std::to_string(p.page);
  if (p.e4m3) text += std::string(", K and V ") + to_string(Dtype::e4m3);
  if (!p.strides.empty()) text += ", strided";
  const auto side = [](std::int64_t keys) { return keys < 0 ? "all" : std::to_string(keys); };
  if (p.windowed())
    text += ", window " + side(p.window_left) + " to " + side(p.causal ? 0 : p.window_right);
  if (p.sinks) text += ", sinks";
  return text;
}

namespace {

constexpr const char* kNames[] = {"q", "k", "v", "o"};

/// {batch entries or pages, heads, rows} of Q, K, V or O.
std::array<std::int64_t, 3> extents_of(const Problem& p, int tensor) {
  if (tensor == 0 || tensor == 3) return {p.batch, p.heads, p.seq_q};
  if (p.page > 0) return {p.pages(), p.kv_heads(), p.page};
  return {p.batch, p.kv_heads(), p.seq_kv};
}

std::string stride_error(const Problem& p) {
  if (p.strides.empty()) return {};
  if (p.strides.size() != 12) {
    return std::to_string(p.strides.size()) +
           " strides; 12 are needed, of batch, head and row of "
           "q, k, v and o";
  }
  // The kernels load 16 bytes at a time, and tensor maps ask for multiples of them below 2^40.
  const std::int64_t step = 16 / static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t most = (std::int64_t{1} << 40) / static_cast<std::int64_t>(size_of(p.dtype));
  for (int tensor = 0; tensor < 4; ++tensor) {
    const Strides s = strides_of(p, tensor);
    for (const std::int64_t stride : {s.batch, s.head, s.row}) {
      if (stride >= step && stride % step == 0 && stride < most) continue;
      return std::string(kNames[tensor]) + " has a stride of " + std::to_string(stride) +
             " elements; multiples of " + std::to_string(step) + " below " + std::to_string(most) +
             " are allowed";
    }
  }
  for (int tensor = 0; tensor < 4; ++tensor) {
    const Strides s = strides_of(p, tensor);
    const auto extents = extents_of(p, tensor);
    double span = 0;  // in floating point, because it may not fit 64 bits
    for (const auto& [stride, extent] :
         {std::pair{s.batch, extents[0]}, {s.head, extents[1]}, {s.row, extents[2]}})
      span += static_cast<double>(stride) * static_cast<double>(extent);
    if (span >= 0x1p48) return std::string(kNames[tensor]) + " spans more than 2^48 elements";
  }
  // Rows of O must not lie in each other.
  const Strides s = strides_of(p, 3);
  const auto [batch, heads, rows] = extents_of(p, 3);
  std::array<std::array<std::int64_t, 2>, 3> axes{
      {{s.batch, batch}, {s.head, heads}, {s.row, rows}}};
  std::sort(axes.begin(), axes.end());
  std::int64_t inner = p.head_dim;
  for (const auto& [stride, extent] : axes) {
    if (extent == 1) continue;
    if (stride < inner)
      return "o has a stride of " + std::to_string(stride) +
             " elements, within "
             "which lie " +
             std::to_string(inner);
    inner = stride * extent;
  }
  return {};
}

}  // namespace

Strides strides_of(const Problem& p, int tensor) {
  const auto [batch, heads, rows] = extents_of(p, tensor);
  const Strides plain{heads * rows * p.head_dim, rows * p.head_dim, p.head_dim};
  if (p.strides.empty()) return plain;
  const std::int64_t* given = p.strides.data() + 3 * std::ptrdiff_t{tensor};
  return {batch > 1 ? given[0] : plain.batch, heads > 1 ? given[1] : plain.head,
          rows > 1 ? given[2] : plain.row};
}

std::int64_t stored_elements(const Problem& p, int tensor) {
  const auto [batch, heads, rows] = extents_of(p, tensor);
  const Strides s = strides_of(p, tensor);
  return (batch - 1) * s.batch + (heads - 1) * s.head + (rows - 1) * s.row + p.head_dim;
}

std::vector<std::int64_t> row_major_strides(const Problem& p) {
  std::vector<std::int64_t> all;
  for (int tensor = 0; tensor < 4; ++tensor) {
    const auto [batch, heads, rows] = extents_of(p, tensor);
    all.insert(all.end(),
               {rows * heads * p.head_dim, std::int64_t{p.head_dim}, heads * p.head_dim});
  }
  return all;
}

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
  if (const std::string error = stride_error(p); !error.empty()) return error;
  for (const auto& [side, keys] :
       {std::pair{"window_left", p.window_left}, {"window_right", p.window_right}}) {
    if (keys < -1 || keys > kMostKeys)
      return std::string(side) + " " + text(keys) + " is not between -1 and " + text(kMostKeys);
  }
  if (p.lengths.empty()) return {};
  if (std::ssize(p.lengths) != p.batch) {
    return text(std::ssize(p.lengths)) + " lengths for a batch of " + text(p.batch) +
           "; one for each entry is needed";
  }
  for (const std::int64_t length : p.lengths) {
    if (length >= 0 && length <= p.seq_kv) continue;
    return "length " + text(length) + " is not between 0 and seq_kv " + text(p.seq_kv);
  }
  if (p.keys() == 0) return "all lengths are 0; at least one must be above";
  return {};
}

}  // namespace fa
