// SPDX-License-Identifier: MIT
// Arrays in .npy files: NumPy's formats 1.0, 2.0 and 3.0, little-endian, C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ptxvm::io {

/// The file is not a .npy file that can be used; one line that names it. Exit code 2.
struct NpyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What every .npy file begins with.
inline constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

/// "(1, 2)" and "(3,)", as Python writes a tuple.
std::string shape_text(std::span<const std::int64_t> shape);

/// A file whose header was read. Throws NpyError, and FileError where there is no file or it cannot
/// be read.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  /// The element type as the header spells it: "<f2".
  const std::string& descr() const { return descr_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }

  /// Throws NpyError with the file's name in front.
  [[noreturn]] void refuse(const std::string& what) const;

  /// Throws NpyError unless every extent is at least 1 and the file holds exactly as many elements
  /// of so many bytes; `type` is their name in messages. Returns their bytes.
  std::uint64_t require_size(std::uint64_t element_bytes, const std::string& type) const;

  /// The elements; once.
  void read(std::span<std::byte> elements);

 private:
  std::string header_text();

  std::filesystem::path path_;
  std::uintmax_t file_size_ = 0, data_start_ = 0;
  std::ifstream file_;
  std::string descr_;
  std::vector<std::int64_t> shape_;
};

/// Writes format 1.0 over nothing or a file that begins with `beginning` (write_replaceable()).
void write_npy(const std::filesystem::path& path, std::string_view descr,
               std::span<const std::int64_t> shape, std::span<const std::byte> elements,
               std::string_view beginning, bool overwrite);

}  // namespace ptxvm::io
