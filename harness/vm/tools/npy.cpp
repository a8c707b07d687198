// SPDX-License-Identifier: MIT
#include "tools/npy.h"

#include <charconv>
#include <system_error>

#include "io/npy.h"

namespace ptxvm::tools {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

}  // namespace

std::vector<uint64_t> parse_shape(std::string_view text, const std::string& whole) {
  std::vector<uint64_t> shape;
  uint64_t product = 1;
  while (true) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
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

ArrayType type_of(const io::NpyFile& file) {
  const ElementInfo* element = element_of_descr(file.descr());
  if (!element) {
    file.refuse("the element type '" + file.descr() + "' is not supported; allowed: " + names());
  }
  file.require_size(element->bytes, std::string(element->name));
  return {element->element, {file.shape().begin(), file.shape().end()}};
}

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
  return type_of(io::NpyFile(path));
}

Array read_npy(const std::string& path) {
  io::NpyFile file(path);
  const ArrayType type = type_of(file);
  Array array{type, std::vector<std::byte>(type.bytes())};
  file.read(array.bytes);
  return array;
}

void write_npy(const std::string& path, const ArrayType& type, std::span<const std::byte> bytes,
               bool overwrite) {
  const std::vector<int64_t> shape(type.shape.begin(), type.shape.end());
  io::write_npy(path, info(type.element).descr, shape, bytes, io::kNpyMagic, overwrite);
}

}  // namespace ptxvm::tools
