// SPDX-License-Identifier: MIT
#include "harness/attention/problem.h"

namespace fa {

std::string to_string(const Problem& p) {
  return "B=" + std::to_string(p.batch) + " H=" + std::to_string(p.heads) +
         " Nq=" + std::to_string(p.seq_q) + " Nkv=" + std::to_string(p.seq_kv) +
         " D=" + std::to_string(p.head_dim) + (p.causal ? " causal " : " ") + to_string(p.dtype) +
         (p.lse ? " with LSE" : "");
}

}  // namespace fa
