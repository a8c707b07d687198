// SPDX-License-Identifier: MIT
// The attention problem: shapes, dtype and the counts derived from them.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/fields.h"
#include "kernels/types.h"

namespace fa {

/// Queries or keys that a command takes, at most.
inline constexpr std::int64_t kMostKeys = std::int64_t{1} << 30;

/// One forward pass O = softmax(Q K^T * scale) V, or the backward pass behind it. Q and O are
/// [B, H, N, D]; K and V are [B, kv_heads, seq_kv, D], or pages of them. Of a packed
/// batch all four are [1, heads, rows, D]: the rows of all batch entries, one entry behind another.
struct Problem {
  FA_FIELDS(Problem);
  FA_FIELD(std::int64_t, batch, 1, "", .least = 1, .most = 65535, .option = "--batch",
           .help = "Batch");
  FA_FIELD(std::int64_t, heads, 2, "", .least = 1, .most = 65535, .option = "--heads",
           .help = "Heads");
  FA_FIELD(std::int64_t, seq_q, 512, "", .least = 1, .most = kMostKeys, .option = "--seq",
           .help = "Queries and keys");
  FA_FIELD(std::int64_t, seq_kv, 512, "", .least = 1, .most = kMostKeys, .option = "--seq-kv",
           .help = "Keys, where other than --seq");
  FA_FIELD(int, head_dim, 128, "", .least = 1, .most = 1024, .option = "--dim", .help = "head_dim");
  FA_FIELD(bool, causal, false, "Bottom-right aligned: query i sees keys j <= i + seq_kv - seq_q.",
           .option = "--causal", .help = "Query i sees keys j <= i + seq_kv - seq_q only");
  FA_FIELD(Dtype, dtype, Dtype::f16, "", .option = "--dtype",
           .help = "Element type (default the rung's, of several float16)");
  FA_FIELD(bool, lse, false,
           "Also asks for the log-sum-exp of every row of scaled scores, natural log.",
           .if_set = true, .option = "--lse",
           .help = "Ask for the log-sum-exp of every row too, and check it");
  FA_FIELD(std::optional<double>, own_scale, {}, "On Q K^T; absent: 1/sqrt(head_dim).",
           .key = "scale", .if_set = true, .exact = true, .rules = kPositive);
  FA_FIELD(std::int64_t, own_kv_heads, 0,
           "Heads of K and V, a divisor of heads: query head h reads K and V head h / group(). "
           "Absent, or 0: as many as heads.",
           .key = "kv_heads", .if_set = true, .most = 65535, .option = "--kv-heads",
           .help = "Heads of K and V, which query heads share (default as many as --heads)");
  FA_FIELD(
      std::vector<std::int64_t>, query_lengths, {},
      "Queries of each batch entry, from 0 to seq_q, of a packed batch; absent: all have seq_q "
      "and the batch is not packed.",
      .if_set = true, .most = kMostKeys, .option = "--query-lengths",
      .help = "Queries of each entry of a packed batch (and keys, but for --lengths)");
  FA_FIELD(std::vector<std::int64_t>, lengths, {},
           "Keys of each batch entry, from 0 to seq_kv; absent: all have seq_kv.", .if_set = true,
           .most = kMostKeys, .option = "--lengths",
           .help = "Keys of each batch entry: 300,0,17, or random from 1 to all (default all)");
  FA_FIELD(std::int64_t, page, 0,
           "Keys of a page of the cache, K and V being [pages, kv_heads, page, head_dim], and a "
           "table says where the pages of a batch entry lie. Absent, or 0: they are not paged.",
           .if_set = true, .most = kMostKeys, .option = "--page",
           .help = "Keys of a page of the cache (default not paged)");
  FA_FIELD(std::int64_t, own_pages, 0,
           "Pages that are stored; absent, or 0: those of all batch entries and one that no table "
           "names.",
           .key = "pages", .if_set = true);
  FA_FIELD(bool, e4m3, false,
           "Type of K and V, each head of a batch entry with a scale for K and one for V; absent: "
           "that of Q.",
           .key = "cache", .if_set = true, .yes = to_string(Dtype::e4m3));
  FA_FIELD(
      std::vector<std::int64_t>, strides, {},
      "Strides in elements of batch, head and row, of Q, of K, of V and of O: 12 numbers; of "
      "paged K and V those of page, head and key. Gradients have those of their tensors, or 12 "
      "more numbers, of the gradients of O, of Q, of K and of V. Absent: all are contiguous.",
      .if_set = true, .option = "--layout",
      .help = "Order of batch, heads, rows and head_dim in memory (default bhnd)");
  FA_FIELD(
      std::int64_t, window_left, -1,
      "Keys before the one at its own place, counted bottom-right as the mask is, that a query "
      "sees at most; absent, or -1: all.",
      .if_set = true, .least = -1, .most = kMostKeys, .option = "--window-left",
      .help = "Keys before its own place that a query sees (default all)");
  FA_FIELD(std::int64_t, window_right, -1, "Keys behind it; absent, or -1: all, with causal none.",
           .if_set = true, .least = -1, .most = kMostKeys, .option = "--window-right",
           .help = "Keys behind its own place that a query sees (default all)");
  FA_FIELD(bool, sinks, false,
           "Each query head has a sink: a score that takes its share of the softmax and has no "
           "value.",
           .if_set = true, .option = "--sinks", .help = "Give each query head a sink");
  FA_FIELD(bool, backward, false,
           "The gradients of Q, K and V are computed from Q, K, V, O, the log-sum-exp and the "
           "gradient of O.",
           .if_set = true);

  /// Whether batch entries of different lengths lie one behind another.
  bool packed() const { return !query_lengths.empty(); }
  bool windowed() const { return window_left >= 0 || (window_right >= 0 && !causal); }
  Dtype kv_dtype() const { return e4m3 ? Dtype::e4m3 : dtype; }
  std::int64_t kv_heads() const { return own_kv_heads > 0 ? own_kv_heads : heads; }
  /// Query heads that share a head of K and V.
  std::int64_t group() const { return heads / kv_heads(); }
  /// Keys of a batch entry.
  std::int64_t length(std::int64_t entry) const {
    return lengths.empty() ? seq_kv : lengths[static_cast<std::size_t>(entry)];
  }
  /// Queries of a batch entry.
  std::int64_t queries(std::int64_t entry) const {
    return packed() ? query_lengths[static_cast<std::size_t>(entry)] : seq_q;
  }
  /// Batch entries, and rows of each head, of the tensors as they are stored.
  std::int64_t stored_batch() const { return packed() ? 1 : batch; }
  std::int64_t stored_queries() const;
  std::int64_t stored_keys() const;
  /// Rows of a head ahead of those of a batch entry, for queries or for keys; 0 unless packed.
  std::int64_t first_query(std::int64_t entry) const;
  std::int64_t first_key(std::int64_t entry) const;
  /// The keys that a query of a batch entry sees: from the first on, up to one before the last.
  struct Keys {
    std::int64_t begin, end;
    std::int64_t count() const { return end - begin; }
  };
  Keys visible(std::int64_t row, std::int64_t entry) const;
  /// Columns of the page table, a row of which belongs to a batch entry.
  std::int64_t table_width() const { return page > 0 ? (seq_kv + page - 1) / page : 0; }
  /// Pages that are stored; 0 where the cache is not paged.
  std::int64_t pages() const;

  /// The factor on Q K^T before the softmax.
  double scale() const {
    return own_scale ? *own_scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
  }

  /// Rows of Q, of O and of the LSE.
  std::int64_t q_rows() const { return stored_batch() * heads * stored_queries(); }
  std::int64_t q_elements() const { return q_rows() * head_dim; }
  /// Of K as it is stored, with keys that no batch entry has.
  std::int64_t kv_elements() const {
    return (page > 0 ? pages() * page : stored_batch() * stored_keys()) * kv_heads() * head_dim;
  }

  /// Keys of all batch entries.
  double keys() const;
  /// Queries times keys of each batch entry, of all of them.
  double pairs() const;

  /// 4*H*Nq*D for every key of a batch entry, half of it when causal, of a backward pass, which has
  /// five products in place of two, 2.5 times as many: the convention of the FlashAttention papers.
  double flops() const {
    const double full = 4.0 * static_cast<double>(heads) * pairs() * head_dim;
    const double products = backward ? 2.5 : 1;
    if (windowed()) return products * windowed_flops();
    return products * (causal ? full / 2 : full);
  }
  /// The same for every key that a query sees.
  double windowed_flops() const;

  /// q_rows() of a problem of any size.
  double rows() const {
    return static_cast<double>(stored_batch()) * static_cast<double>(heads) *
           static_cast<double>(stored_queries());
  }
  /// Bytes of the keys and values of all batch entries, once for each head of K and V.
  double kv_bytes() const {
    return 2 * static_cast<double>(size_of(kv_dtype())) * head_dim *
           static_cast<double>(kv_heads()) * keys();
  }
  /// Scales of K, then of V: [2, batch, kv_heads]. 0 where they have none.
  std::int64_t kv_scales() const { return e4m3 ? 2 * batch * kv_heads() : 0; }
  /// Bytes of Q, and of K and V as they are stored, without their scales; of a backward pass also
  /// of O, its gradient and the LSE.
  double input_bytes() const;
  /// Bytes of O and of the LSE if there is one, or of the gradients of Q, K and V.
  double output_bytes() const;
  /// Bytes of Q, K, V, O and the LSE if there is one, as they are stored.
  double stored_bytes() const { return input_bytes() + output_bytes(); }
  /// Bytes of Q, the keys and values that there are, O and the LSE if there is one, or of all
  /// tensors of a backward pass, each moved once.
  double bytes() const {
    if (backward) return stored_bytes();
    return static_cast<double>(size_of(dtype)) * head_dim * rows() + kv_bytes() + output_bytes();
  }
};

/// "B=1 H=2 Nq=512 Nkv=512 D=128 float16", "B=16 H=32/8 Nq=1 Nkv=8192 D=128 float16, lengths 1 to
/// 8000, pages of 16", for messages.
std::string to_string(const Problem& problem);

/// Distances of neighbours in a tensor, in elements. A row's elements are neighbours in memory.
struct Strides {
  std::int64_t batch, head, row;
};

/// The numbers, those of the enumeration Tensor, of the tensors that strides are given of, in their
/// order: Q, K, V and O, and of a backward pass the gradients of O, Q, K and V.
std::span<const int> strided_tensors(const Problem& problem);

/// Those of such a tensor. Where a tensor has one batch entry, head or row, the stride of a
/// contiguous tensor stands in for one that nothing uses.
Strides strides_of(const Problem& problem, int tensor);

/// {batch entries or pages, heads, rows, head_dim} of such a tensor as it is stored.
std::array<std::int64_t, 4> stored_shape(const Problem& problem, int tensor);

/// Elements of memory that such a tensor spans, with the gaps that strides leave.
std::int64_t stored_elements(const Problem& problem, int tensor);

/// Where they are views of tensors [batch, row, head, head_dim], as models have them.
std::vector<std::int64_t> row_major_strides(const Problem& problem);

/// The first row of each sequence of a packed batch, and behind them the number of rows.
std::vector<std::int32_t> cu_seqlens(const std::vector<std::int64_t>& lengths);

/// What is wrong with kv_heads, lengths, page and so on beside the extents, which are positive: one
/// sentence with the value and what is allowed; empty when nothing is.
std::string cache_error(const Problem& problem);

/// What this problem needs of every kernel. Whether it needs `ragged` depends on the tile, and
/// `few_queries` on the rung. A single query sees every key under the mask, too.
inline Capabilities needs_of(const Problem& problem) {
  using enum Capabilities;
  return (problem.causal && problem.seq_q > 1 ? causal : none) | (problem.lse ? lse : none) |
         (problem.group() > 1 ? grouped : none) |
         (problem.packed()          ? packed
          : problem.lengths.empty() ? none
                                    : lengths) |
         (problem.page > 0 ? paged : none) | (problem.e4m3 ? e4m3 : none) |
         (problem.strides.empty() ? none : strided) | (problem.windowed() ? windowed : none) |
         (problem.sinks ? sinks : none) | (problem.backward ? backward : none);
}

}  // namespace fa
