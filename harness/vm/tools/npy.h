// SPDX-License-Identifier: MIT
// Arrays in .npy files (NumPy format 1.0 and 2.0, little-endian, C order).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/io/file.h"

namespace ptxvm::tools {

enum class Element : uint8_t { kFloat16, kFloat32, kFloat64, kInt32 };

size_t size_of(Element element);
/// "float16", as the command line has it.
std::string_view name(Element element);

/// Element type and extents: "float16[1,2,512,128]".
struct ArrayType {
  Element element = Element::kFloat32;
  std::vector<uint64_t> shape;

  uint64_t elements() const;
  uint64_t bytes() const { return elements() * size_of(element); }
};

/// The input is not accepted; one line.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
using fa::io::FileError;

/// What every .npy file begins with.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// Reads "float16[1,2,512,128]". Throws InputError.
ArrayType parse_type(std::string_view text);

struct Array {
  ArrayType type;
  std::vector<std::byte> bytes;
};

/// The type that the header of a file says and its size agrees with. Throws FileError and
/// InputError.
ArrayType read_npy_type(const std::string& path);
/// With the elements.
Array read_npy(const std::string& path);

/// Writes format 1.0 over nothing or another .npy file, with `overwrite` over any file. Throws
/// FileError and io::RefusedFile.
void write_npy(const std::string& path, const ArrayType& type, std::span<const std::byte> bytes,
               bool overwrite);

}  // namespace ptxvm::tools
