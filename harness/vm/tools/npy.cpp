// SPDX-License-Identifier: MIT
#include "tools/npy.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ptxvm::tools {
namespace {

constexpr size_t kHeaderUnit = 64;
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

}  // namespace

// A comma at the end is allowed, as in Python.
std::vector<uint64_t> parse_shape(std::string_view text, const std::string& whole, bool header) {
  std::vector<uint64_t> shape;
  uint64_t product = 1;
  while (true) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty() && header) return shape;
    uint64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent == 0) {
      throw InputError("'" + whole + "': an extent is not a whole number above 0");
    }
    if (extent > kMaxBytes / product) {
      throw InputError("'" + whole + "' is too large; at most " + std::to_string(kMaxBytes) +
                       " elements are allowed");
    }
    product *= extent;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return shape;
    if (text.front() != ',') throw InputError("'" + whole + "': expected a comma");
    text.remove_prefix(1);
  }
}

namespace {

/// The value after 'key': in a header, up to the end that belongs to its first character.
std::string_view value_of(std::string_view header, std::string_view key, char last,
                          const std::string& path) {
  const std::string quoted = "'" + std::string(key) + "':";
  size_t at = header.find(quoted);
  if (at == std::string_view::npos) throw InputError(path + ": the header has no " + quoted);
  at = header.find_first_not_of(' ', at + quoted.size());
  const size_t end = at == std::string_view::npos ? at : header.find(last, at + 1);
  if (end == std::string_view::npos) throw InputError(path + ": the header is cut off");
  return header.substr(at, end - at);
}

ArrayType parse_header(std::string_view header, const std::string& path) {
  const std::string_view descr = value_of(header, "descr", ',', path);
  if (value_of(header, "fortran_order", ',', path) != "False") {
    throw InputError(path + ": Fortran order is not supported; save np.ascontiguousarray(x)");
  }
  const bool quoted = descr.size() > 2 && descr.front() == '\'' && descr.back() == '\'';
  const ElementInfo* element =
      quoted ? element_of_descr(descr.substr(1, descr.size() - 2)) : nullptr;
  if (!element) {
    throw InputError(path + ": the element type " + std::string(descr) +
                     " is not supported; allowed: " + names());
  }
  ArrayType type{element->element, {}};
  std::string_view shape = value_of(header, "shape", ')', path);
  if (shape.empty() || shape.front() != '(') throw InputError(path + ": the shape is damaged");
  type.shape = parse_shape(shape.substr(1), path, true);
  return type;
}

std::string reason() {
  return errno == 0 ? "unknown error" : std::strerror(errno);
}

/// A file whose header was read and fits its size.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path) : path_(path) {
    std::error_code error;
    // A pipe or a device may have no end.
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw InputError(path + ": is not a regular file");
    }
    errno = 0;
    in_.open(path, std::ios::binary);
    if (!in_) throw FileError(path + ": cannot be read: " + reason());
    type_ = parse_header(header(), path);
    const auto begin = in_.tellg();
    in_.seekg(0, std::ios::end);
    const auto held = static_cast<uint64_t>(in_.tellg() - begin);
    if (held != type_.bytes()) {
      throw InputError(path + ": holds " + std::to_string(held) +
                       " bytes of data, its header says " + std::to_string(type_.bytes()));
    }
    in_.seekg(begin);
  }

  const ArrayType& type() const { return type_; }

  Array read() {
    Array array{type_, std::vector<std::byte>(type_.bytes())};
    in_.read(reinterpret_cast<char*>(array.bytes.data()),
             static_cast<std::streamsize>(array.bytes.size()));
    if (!in_) throw FileError(path_ + ": cannot be read: " + reason());
    return array;
  }

 private:
  std::string header() {
    std::array<char, 10> start{};
    in_.read(start.data(), start.size());
    if (!in_ || !std::string_view(start.data(), start.size()).starts_with(kNpyMagic)) {
      throw InputError(path_ + ": not a .npy file");
    }
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(start[i])); };
    size_t length = byte(8) + 256 * byte(9);
    if (byte(6) == 2) {
      std::array<char, 2> rest{};
      in_.read(rest.data(), rest.size());
      length += (size_t{static_cast<uint8_t>(rest[0])} << 16) +
                (size_t{static_cast<uint8_t>(rest[1])} << 24);
    } else if (byte(6) != 1) {
      throw InputError(path_ + ": .npy version " + std::to_string(byte(6)) + " is not supported");
    }
    if (length > 65536) {
      throw InputError(path_ + ": the header has " + std::to_string(length) +
                       " bytes, at most 65536 are allowed");
    }
    std::string text(length, ' ');
    in_.read(text.data(), static_cast<std::streamsize>(length));
    if (!in_) throw InputError(path_ + ": the header is cut off");
    return text;
  }

  std::string path_;
  std::ifstream in_;
  ArrayType type_;
};

}  // namespace

uint64_t ArrayType::elements() const {
  uint64_t product = 1;
  for (const uint64_t extent : shape) product *= extent;
  return product;
}

ArrayType parse_type(std::string_view text) {
  const std::string whole(text);
  const size_t open = text.find('[');
  const std::string_view word = text.substr(0, open);
  const ElementInfo* element = find_element(word);
  if (element && open != std::string_view::npos && text.back() == ']') {
    ArrayType type{element->element, {}};
    type.shape = parse_shape(text.substr(open + 1, text.size() - open - 2), whole);
    return type;
  }
  throw InputError("'" + whole + "' is not a type such as float16[2,512,128]; element types: " +
                   names() + ", or in short " + brief_names());
}

ArrayType read_npy_type(const std::string& path) {
  return NpyFile(path).type();
}

Array read_npy(const std::string& path) {
  return NpyFile(path).read();
}

void write_npy(const std::string& path, const ArrayType& type, std::span<const std::byte> bytes,
               bool overwrite) {
  std::string shape;
  for (const uint64_t extent : type.shape) shape += std::to_string(extent) + ", ";
  if (type.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + std::string(info(type.element).descr) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const size_t preamble = kNpyMagic.size() + 4;
  while ((preamble + header.size() + 1) % kHeaderUnit != 0) header += ' ';
  header += '\n';
  const std::array<char, 4> start{'\x01', '\x00', static_cast<char>(header.size() % 256),
                                  static_cast<char>(header.size() / 256)};
  const std::array<std::string_view, 4> parts{
      kNpyMagic,
      {start.data(), start.size()},
      header,
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  fa::io::write_replaceable(path, parts, kNpyMagic, overwrite);
}

}  // namespace ptxvm::tools
