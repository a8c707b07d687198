// Arrays in .npy files (NumPy format 1.0 and 2.0, little-endian, C order).
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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
/// A file cannot be read or written; one line.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads "float16[1,2,512,128]". Throws InputError.
ArrayType parse_type(std::string_view text);

struct Array {
  ArrayType type;
  std::vector<std::byte> bytes;
};

/// Throws FileError and InputError.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace ptxvm::tools
