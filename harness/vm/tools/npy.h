// SPDX-License-Identifier: MIT
// Arrays of the types that an argument may have, in .npy files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/npy.h"
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
using InputError = io::NpyError;
using io::FileError;

/// Reads "float16[1,2,512,128]" or "f16[1,2,512,128]". Throws InputError.
ArrayType parse_type(std::string_view text);
/// Reads "1,2,512"; `whole` is named in messages. Throws InputError.
std::vector<uint64_t> parse_shape(std::string_view text, const std::string& whole);

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
