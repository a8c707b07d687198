// SPDX-License-Identifier: MIT
#include "harness/attention/npy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "harness/io/file.h"
#include "harness/vm/io/npy.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShapeText = "[B, H, N, D]";

void require_finite(const fs::path& path, const HostTensor& tensor) {
  const std::int64_t index = find_non_finite(tensor);
  if (index < 0) return;
  throw InputError(path.string() + ": " + std::to_string(tensor.at(index)) + " at " +
                   describe_index(tensor.shape, index) + "; all elements must be finite");
}

/// Dtype and shape of a file that holds a tensor.
HostTensor described(const io::NpyFile& file) {
  const bool half = file.descr() == "<f2";
  if (!half && file.descr() != "<f4") {
    file.refuse("dtype '" + file.descr() +
                "', allowed are '<f2' (float16) and '<f4' (float32), little-endian");
  }
  HostTensor tensor{half ? Dtype::f16 : Dtype::f32, {}, {}};
  if (file.shape().size() != tensor.shape.size()) {
    file.refuse("shape " + io::shape_text(file.shape()) + " has rank " +
                std::to_string(file.shape().size()) + ", allowed is rank 4, " + kShapeText);
  }
  std::copy(file.shape().begin(), file.shape().end(), tensor.shape.begin());
  file.require_size(size_of(tensor.dtype), to_string(tensor.dtype));
  return tensor;
}

HostTensor read(const fs::path& path, bool elements) {
  try {
    io::NpyFile file(path);
    const HostTensor tensor = described(file);
    if (!elements) return tensor;
    HostTensor whole = make_tensor(tensor.dtype, tensor.shape);
    file.read(whole.bytes);
    return whole;
  } catch (const io::NpyError& error) {
    throw InputError(error.what());
  } catch (const io::FileError& error) {
    throw InputError(error.what());
  }
}

}  // namespace

HostTensor read_npy_header(const fs::path& path) {
  return read(path, false);
}

HostTensor read_npy(const fs::path& path) {
  return read(path, true);
}

void write_npy(const fs::path& path, const HostTensor& tensor, bool overwrite) {
  const char* descr = tensor.dtype == Dtype::f16 ? "<f2" : "<f4";
  io::write_npy(path, descr, tensor.shape, tensor.bytes, "", overwrite);
}

Problem problem_of(const HostTensor& q, const HostTensor& k, const HostTensor& v, bool causal,
                   const std::string& q_name, const std::string& k_name,
                   const std::string& v_name) {
  auto compare = [](const HostTensor& a, const std::string& a_name, const HostTensor& b,
                    const std::string& b_name, bool lengths) {
    if (a.dtype != b.dtype) {
      throw InputError(b_name + ": dtype " + to_string(b.dtype) + " does not match " +
                       to_string(a.dtype) + " of " + a_name);
    }
    // Query heads may share a head of K and V.
    const bool heads = lengths ? a.shape[1] == b.shape[1] : a.shape[1] % b.shape[1] == 0;
    const bool same = a.shape[0] == b.shape[0] && heads && a.shape[3] == b.shape[3] &&
                      (!lengths || a.shape[2] == b.shape[2]);
    if (!same) {
      throw InputError(b_name + ": shape " + to_string(b.shape) + " does not match " +
                       to_string(a.shape) + " of " + a_name +
                       (lengths ? "; K and V must have the same shape"
                                : "; K may have another N, and a number of heads that divides "
                                  "that of Q, in " +
                                      std::string(kShapeText)));
    }
  };
  compare(q, q_name, k, k_name, false);
  compare(k, k_name, v, v_name, true);
  if (q.shape[3] > 65536) {
    throw InputError(q_name + ": head_dim " + std::to_string(q.shape[3]) + ", at most 65536");
  }
  return {.batch = q.shape[0],
          .heads = q.shape[1],
          .seq_q = q.shape[2],
          .seq_kv = k.shape[2],
          .head_dim = static_cast<int>(q.shape[3]),
          .causal = causal,
          .dtype = q.dtype,
          .own_kv_heads = k.shape[1] == q.shape[1] ? 0 : k.shape[1]};
}

Problem npy_problem(const fs::path& q, const fs::path& k, const fs::path& v, bool causal,
                    bool rows_first) {
  const auto header = [&](const fs::path& path) {
    HostTensor tensor = read_npy_header(path);
    if (rows_first) std::swap(tensor.shape[1], tensor.shape[2]);
    return tensor;
  };
  Problem problem =
      problem_of(header(q), header(k), header(v), causal, q.string(), k.string(), v.string());
  if (rows_first) problem.strides = row_major_strides(problem);
  return problem;
}

Inputs load_inputs(const fs::path& q, const fs::path& k, const fs::path& v) {
  Inputs inputs{read_npy(q), read_npy(k), read_npy(v)};
  require_finite(q, inputs.q);
  require_finite(k, inputs.k);
  require_finite(v, inputs.v);
  return inputs;
}

}  // namespace fa
