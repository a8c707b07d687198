// NumPy .npy files: little-endian float16 and float32 tensors of shape [B, H, N, D].
#pragma once

#include <filesystem>
#include <stdexcept>

#include "harness/attention/host_tensor.h"
#include "harness/attention/inputs.h"
#include "harness/attention/problem.h"

namespace fa {

/// An input file or a combination of them is refused; one line that names the file, the value and
/// what is allowed. Exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file cannot be written; what was there before is intact.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads an array of rank 4, '<f2' or '<f4', C order; header versions 1.0, 2.0 and 3.0
/// (numpy.lib.format). Throws InputError.
HostTensor read_npy(const std::filesystem::path& path);

/// Writes header version 1.0 to a temporary file beside `path` and renames it, so that a failure
/// leaves an existing file as it was. Throws OutputError.
void write_npy(const std::filesystem::path& path, const HostTensor& tensor);

/// The problem that three tensors make, after checking their dtypes and shapes against each other.
/// The names (files, usually) are for the InputError.
Problem problem_of(const HostTensor& q, const HostTensor& k, const HostTensor& v, bool causal,
                   const std::string& q_name = "Q", const std::string& k_name = "K",
                   const std::string& v_name = "V");

/// A problem with its inputs, read from three files.
struct LoadedProblem {
  Problem problem;
  Inputs inputs;
};

/// Reads Q, K and V, checks them against each other and refuses NaN and infinity. Throws
/// InputError.
LoadedProblem load_problem(const std::filesystem::path& q, const std::filesystem::path& k,
                           const std::filesystem::path& v, bool causal);

}  // namespace fa
