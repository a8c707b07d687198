// SPDX-License-Identifier: MIT
// The attention problem: shapes, dtype and the counts derived from them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fa {

/// Element type of Q, K, V and O. Accumulation is always FP32.
enum class Dtype { f16, f32 };

/// Bytes per element.
constexpr std::size_t size_of(Dtype dtype) {
  return dtype == Dtype::f16 ? 2 : 4;
}

/// Name used on the command line and in result files.
constexpr const char* to_string(Dtype dtype) {
  return dtype == Dtype::f16 ? "float16" : "float32";
}

/// One forward pass O = softmax(Q K^T * scale) V. All tensors are contiguous [B, H, N, D].
struct Problem {
  std::int64_t batch = 1;
  std::int64_t heads = 2;
  std::int64_t seq_q = 512;
  std::int64_t seq_kv = 512;
  int head_dim = 128;
  bool causal = false;  ///< bottom-right aligned: query i sees keys j <= i + seq_kv - seq_q
  Dtype dtype = Dtype::f16;
  bool lse = false;  ///< also asks for the log-sum-exp of every row of scaled scores, natural log

  /// Above 0; empty: 1/sqrt(head_dim).
  std::optional<double> own_scale = {};

  /// The factor on Q K^T before the softmax.
  double scale() const {
    return own_scale ? *own_scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
  }

  /// Rows of Q, of O and of the LSE.
  std::int64_t q_rows() const { return batch * heads * seq_q; }
  std::int64_t q_elements() const { return q_rows() * head_dim; }
  std::int64_t kv_elements() const { return batch * heads * seq_kv * head_dim; }

  /// 4*B*H*Nq*Nkv*D, half of it when causal: the convention of the FlashAttention papers.
  double flops() const {
    const double full = 4.0 * static_cast<double>(batch * heads) * static_cast<double>(seq_q) *
                        static_cast<double>(seq_kv) * head_dim;
    return causal ? full / 2 : full;
  }

  /// q_rows() of a problem of any size.
  double rows() const {
    return static_cast<double>(batch) * static_cast<double>(heads) * static_cast<double>(seq_q);
  }
  /// Bytes of Q, K and V.
  double input_bytes() const {
    const double kv_rows =
        static_cast<double>(batch) * static_cast<double>(heads) * static_cast<double>(seq_kv);
    return static_cast<double>(size_of(dtype)) * head_dim * (rows() + 2 * kv_rows);
  }
  /// Bytes of O and of the LSE if there is one.
  double output_bytes() const {
    return rows() * (static_cast<double>(size_of(dtype)) * head_dim + (lse ? sizeof(float) : 0));
  }
  /// Bytes of Q, K, V, O and the LSE if there is one, each moved once.
  double bytes() const { return input_bytes() + output_bytes(); }

  bool operator==(const Problem&) const = default;
};

/// "B=1 H=2 Nq=512 Nkv=512 D=128 float16", for messages.
std::string to_string(const Problem& problem);

}  // namespace fa
