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

#include "io/file.h"
#include "tools/element.h"

namespace ptxvm::tools {

/// Element type and extents: "float16[1,2,512,128]".
struct ArrayType {
  Element element = Element::kFloat32;
  std::vector<uint64_t> shape;

  uint64_t elements() const;
  uint64_t bytes() const { return elements() * info(element).bytes; }
};

/// The input is not accepted; one line.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
using fa::io::FileError;

/// What every .npy file begins with.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// Reads "float16[1,2,512,128]" or "f16[1,2,512,128]". Throws InputError.
ArrayType parse_type(std::string_view text);
/// Reads "1,2,512", in the header of a file also "" and "512,"; `whole` is named in messages.
/// Throws InputError.
std::vector<uint64_t> parse_shape(std::string_view text, const std::string& whole,
                                  bool header = false);

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
