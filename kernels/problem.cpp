// SPDX-License-Identifier: MIT
#include "kernels/problem.h"

#include <algorithm>
#include <numeric>

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

double Problem::input_bytes() const {
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
  return text;
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
