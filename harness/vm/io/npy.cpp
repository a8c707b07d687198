// SPDX-License-Identifier: MIT
#include "io/npy.h"

#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "io/file.h"

namespace ptxvm::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_file(const fs::path& path, const std::string& what) {
  throw NpyError(path.string() + ": " + what);
}

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

// Parses the Python dictionary literal that describes the array.
class HeaderParser {
 public:
  HeaderParser(const fs::path& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        skip_space();
        if (position_ < text_.size() && text_[position_] == '[') {
          refuse_file(path_, "the element type is structured, allowed are plain numbers");
        }
        header.descr = quoted();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = tuple();
      } else {
        malformed("key '" + key + "', allowed are descr, fortran_order and shape, once each");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) malformed("text after the closing brace");
    if (!has_descr) malformed("no key 'descr'");
    if (!has_order) malformed("no key 'fortran_order'");
    if (!has_shape) malformed("no key 'shape'");
    return header;
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    refuse_file(path_, "malformed .npy header: " + what);
  }

  void skip_space() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t')) {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) {
      malformed(std::string("expected '") + c + "' at character " + std::to_string(position_));
    }
  }

  std::string quoted() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') {
      malformed("expected a quoted string at character " + std::to_string(position_));
    }
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) malformed("unterminated string");
    std::string result(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += std::string_view(word).size();
        return value;
      }
    }
    malformed("fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = 0;
      const char* begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error == std::errc::result_out_of_range) malformed("a dimension exceeds 64 bits");
      if (error != std::errc()) {
        malformed("shape is not a tuple of integers at character " + std::to_string(position_));
      }
      position_ += static_cast<std::size_t>(end - begin);
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const fs::path& path_;
  std::string_view text_;
  std::size_t position_ = 0;
};

std::uint32_t little_endian(const unsigned char* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

constexpr std::uint32_t kLongestHeader = 1 << 16;  // NumPy refuses more than 10000 by default

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

NpyFile::NpyFile(const fs::path& path) : path_(path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw FileError(path.string() + ": no such file");
  // A pipe or a device may have no end.
  if (!fs::is_regular_file(status)) refuse("not a regular file");
  file_size_ = fs::file_size(path, error);
  file_.open(path, std::ios::binary);
  if (error || !file_) throw FileError(path.string() + ": cannot be opened for reading");
  const Header header = HeaderParser(path, header_text()).parse();
  if (header.fortran) {
    refuse("Fortran order, allowed is C order (row-major); save np.ascontiguousarray(x)");
  }
  descr_ = header.descr;
  shape_ = header.shape;
}

void NpyFile::refuse(const std::string& what) const {
  refuse_file(path_, what);
}

void NpyFile::read(std::span<std::byte> elements) {
  file_.read(reinterpret_cast<char*>(elements.data()),
             static_cast<std::streamsize>(elements.size()));
  if (!file_) throw FileError(path_.string() + ": cannot be read");
}

std::string NpyFile::header_text() {
  std::array<unsigned char, 12> start{};
  file_.read(reinterpret_cast<char*>(start.data()), 8);
  if (file_.gcount() < 8) {
    refuse("truncated: " + std::to_string(file_size_) + " bytes, too short for a .npy file");
  }
  if (!std::string_view(reinterpret_cast<const char*>(start.data()), 8).starts_with(kNpyMagic)) {
    refuse("not a .npy file (it does not start with \\x93NUMPY)");
  }
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    refuse(".npy version " + std::to_string(major) + "." + std::to_string(minor) +
           ", allowed are 1.0, 2.0 and 3.0");
  }
  const int length_bytes = major == 1 ? 2 : 4;
  file_.read(reinterpret_cast<char*>(start.data()) + 8, length_bytes);
  const std::uint32_t length = little_endian(start.data() + 8, length_bytes);
  data_start_ = 8u + static_cast<unsigned>(length_bytes) + std::uintmax_t{length};
  if (!file_ || data_start_ > file_size_) {
    refuse("truncated: the header ends at byte " + std::to_string(data_start_) + ", the file has " +
           std::to_string(file_size_));
  }
  if (length > kLongestHeader) {
    refuse("the header has " + std::to_string(length) + " bytes, at most " +
           std::to_string(kLongestHeader) + " are allowed");
  }
  std::string text(length, '\0');
  file_.read(text.data(), length);
  if (!file_) throw FileError(path_.string() + ": cannot be read");
  return text;
}

std::uint64_t NpyFile::require_size(std::uint64_t element_bytes, const std::string& type) const {
  std::uintmax_t bytes = element_bytes;
  for (const std::int64_t extent : shape_) {
    if (extent < 1) {
      refuse("shape " + shape_text(shape_) + ": every dimension must be at least 1");
    }
    // A header may claim any size; the product is only trusted while the file could hold it.
    if (static_cast<std::uintmax_t>(extent) > file_size_ / bytes) {
      bytes = file_size_ + 1;
      break;
    }
    bytes *= static_cast<std::uintmax_t>(extent);
  }
  const std::uintmax_t held = file_size_ - data_start_;
  if (bytes > held) {
    refuse("truncated: shape " + shape_text(shape_) + " of " + type + " needs more than the " +
           std::to_string(held) + " bytes after the header");
  }
  if (bytes < held) {
    refuse(std::to_string(held - bytes) + " bytes follow the array of shape " + shape_text(shape_) +
           " and dtype " + type + ", allowed are none");
  }
  return bytes;
}

void write_npy(const fs::path& path, std::string_view descr, std::span<const std::int64_t> shape,
               std::span<const std::byte> elements, std::string_view beginning, bool overwrite) {
  std::string dict = "{'descr': '" + std::string(descr) +
                     "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  // The format wants the data to start at a multiple of 64, after a newline.
  const std::size_t prefix = kNpyMagic.size() + 4;
  dict.append(63 - (prefix + dict.size()) % 64, ' ');
  dict += '\n';
  std::string header(kNpyMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  header += dict;
  const std::array<std::string_view, 2> parts{
      header, {reinterpret_cast<const char*>(elements.data()), elements.size()}};
  write_replaceable(path, parts, beginning, overwrite);
}

}  // namespace ptxvm::io
