// SPDX-License-Identifier: MIT
// NumPy .npy files: little-endian float16 and float32 tensors of shape [B, H, N, D].
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "harness/attention/host_tensor.h"
#include "harness/attention/inputs.h"
#include "kernels/problem.h"

namespace fa {

/// An input file or a combination of them is refused; one line that names the file, the value and
/// what is allowed. Exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads an array of rank 4, '<f2' or '<f4', C order; header versions 1.0, 2.0 and 3.0
/// (numpy.lib.format). Throws InputError.
HostTensor read_npy(const std::filesystem::path& path);

/// Its dtype and shape, without elements. Throws InputError also where the file does not hold them.
HostTensor read_npy_header(const std::filesystem::path& path);

/// Writes header version 1.0 through io::write_replaceable(): over a file only with `overwrite`,
/// since a .npy file does not say what wrote it.
void write_npy(const std::filesystem::path& path, const HostTensor& tensor, bool overwrite = false);

/// The problem that three tensors make, after checking their dtypes and shapes against each other.
/// The names (files, usually) are for the InputError.
Problem problem_of(const HostTensor& q, const HostTensor& k, const HostTensor& v, bool causal,
                   const std::string& q_name = "Q", const std::string& k_name = "K",
                   const std::string& v_name = "V");

/// The problem of three files, from their headers: what it needs can be asked before it is read.
/// With `rows_first` they hold [B, N, H, D], and the problem has such strides. Throws InputError.
Problem npy_problem(const std::filesystem::path& q, const std::filesystem::path& k,
                    const std::filesystem::path& v, bool causal, bool rows_first = false);

/// Reads Q, K and V; refuses NaN and infinity. Throws InputError.
Inputs load_inputs(const std::filesystem::path& q, const std::filesystem::path& k,
                   const std::filesystem::path& v);

}  // namespace fa
