// SPDX-License-Identifier: MIT
#include "tools/arguments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ptxvm::tools {
namespace {

using Begin = BufferArgument::Begin;

constexpr std::string_view kAllowed =
    "allowed: FILE.npy, inout:FILE.npy, out:FILE.npy:TYPE[EXTENTS], zero:NAME:TYPE[EXTENTS], "
    "buffer:NAME[+BYTES], a scalar such as i32:7 or bf16:0.5, raw:HEX, struct:ARGUMENT;ARGUMENT, "
    "tmap:BUFFER:box=EXTENTS[:swizzle=BYTES][:dims=EXTENTS][:strides=BYTES]";

[[noreturn]] void refuse(const std::string& word, const std::string& why) {
  throw UsageError("--arg '" + word + "': " + why);
}

[[noreturn]] void refuse_unknown(const std::string& word) {
  throw UsageError("--arg '" + word + "' is not understood; " + std::string(kAllowed));
}

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// NAME:TYPE; the name may hold colons.
BufferArgument parse_new(const std::string& word, size_t prefix, Begin begin) {
  const size_t colon = word.rfind(':');
  const std::string form = word.substr(0, prefix);
  if (colon == std::string::npos || colon <= prefix) {
    refuse(word,
           "expected " + form + "NAME:TYPE[EXTENTS], such as " + form + "O.npy:float16[2,512,128]");
  }
  BufferArgument buffer{begin, word.substr(prefix, colon - prefix),
                        parse_type(word.substr(colon + 1))};
  buffer.written = begin == Begin::kPoison || buffer.name.ends_with(".npy");
  return buffer;
}

/// NAME or NAME+BYTES.
BufferArgument parse_earlier(const std::string& word, size_t prefix) {
  BufferArgument buffer{Begin::kEarlier, word.substr(prefix), {}};
  const size_t plus = buffer.name.rfind('+');
  if (plus != std::string::npos) {
    const auto offset = whole_number(std::string_view(buffer.name).substr(plus + 1));
    if (!offset) refuse(word, "expected buffer:NAME or buffer:NAME+BYTES");
    buffer.offset = *offset;
    buffer.name.resize(plus);
  }
  if (buffer.name.empty()) refuse(word, "expected buffer:NAME or buffer:NAME+BYTES");
  return buffer;
}

std::optional<BufferArgument> parse_buffer(const std::string& word) {
  const size_t prefix = word.find(':') + 1;
  const std::string kind = word.substr(0, prefix);
  if (kind == "out:") return parse_new(word, prefix, Begin::kPoison);
  if (kind == "zero:") return parse_new(word, prefix, Begin::kZero);
  if (kind == "buffer:") return parse_earlier(word, prefix);
  if (kind == "inout:") {
    BufferArgument buffer{Begin::kFile, word.substr(prefix), {}};
    if (buffer.name.empty()) refuse(word, "expected inout:FILE.npy");
    buffer.written = true;
    return buffer;
  }
  if (kind == "raw:" || kind == "tmap:" || kind == "struct:") return std::nullopt;
  if (word.ends_with(".npy")) return BufferArgument{Begin::kFile, word, {}};
  return std::nullopt;
}

std::optional<ValueArgument> parse_value(const std::string& word) {
  const size_t colon = word.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string kind = word.substr(0, colon), text = word.substr(colon + 1);
  if (kind == "raw") {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
      uint8_t value = 0;
      const auto [end, error] = std::from_chars(&text[i], &text[i] + 2, value, 16);
      if (error != std::errc() || end != &text[i] + 2) break;
      bytes.push_back(std::byte{value});
    }
    if (bytes.empty() || 2 * bytes.size() != text.size()) {
      refuse(word, "expected raw: and two hexadecimal digits a byte, in the order of memory");
    }
    return ValueArgument{word, std::move(bytes)};
  }
  const ElementInfo* type = find_element(kind);
  if (!type) return std::nullopt;
  auto bytes = parse_scalar(type->element, text);
  if (!bytes) {
    throw UsageError("--arg " + kind + ": '" + text +
                     "' is not a number that it takes; allowed: " + values_of(type->element));
  }
  return ValueArgument{word, std::move(*bytes), type};
}

Swizzle parse_swizzle(const std::string& word, const std::string& text) {
  if (text == "0") return Swizzle::kNone;
  if (text == "32") return Swizzle::k32B;
  if (text == "64") return Swizzle::k64B;
  if (text == "128") return Swizzle::k128B;
  refuse(word, "swizzle '" + text + "'; allowed: 0, 32, 64, 128");
}

TensorMapArgument parse_tensor_map(const std::string& word, std::string rest) {
  TensorMapArgument map;
  while (true) {
    const size_t colon = rest.rfind(':');
    const size_t equals = colon == std::string::npos ? colon : rest.find('=', colon);
    if (equals == std::string::npos) break;
    const std::string key = rest.substr(colon + 1, equals - colon - 1);
    const std::string value = rest.substr(equals + 1);
    if (key == "swizzle") {
      map.swizzle = parse_swizzle(word, value);
    } else if (key == "box") {
      map.box = parse_shape(value, word);
    } else if (key == "dims") {
      map.dims = parse_shape(value, word);
    } else if (key == "strides") {
      map.strides = parse_shape(value, word);
    } else {
      refuse(word, "'" + key + "' is not understood; allowed: box, swizzle, dims, strides");
    }
    rest.resize(colon);
  }
  const auto base = parse_buffer(rest);
  if (!base) refuse(word, "'" + rest + "' is not a buffer; " + std::string(kAllowed));
  if (map.box.empty()) refuse(word, "box=EXTENTS is missing");
  map.base = *base;
  return map;
}

StructArgument parse_struct(const std::string& word, std::string_view rest) {
  StructArgument out;
  while (true) {
    const size_t semicolon = rest.find(';');
    const std::string member(rest.substr(0, semicolon));
    if (member.starts_with("tmap:")) {
      out.members.emplace_back(parse_tensor_map(word, member.substr(5)));
    } else if (auto buffer = parse_buffer(member)) {
      out.members.emplace_back(*std::move(buffer));
    } else if (auto value = parse_value(member)) {
      out.members.emplace_back(*std::move(value));
    } else {
      refuse(word,
             "the member '" + member + "' is neither a buffer nor a scalar nor raw:HEX nor tmap:");
    }
    if (semicolon == std::string_view::npos) return out;
    rest.remove_prefix(semicolon + 1);
  }
}

std::string describe(const Kernel& kernel, size_t index) {
  const Parameter& p = kernel.parameters()[index];
  const std::string prefix = kernel.name() + "_";
  const bool generated = p.name.starts_with(prefix);
  return "argument " + std::to_string(index + 1) + ", " +
         (generated ? p.name.substr(prefix.size()) : p.name) + ", is ." + p.type +
         (p.type == "b8" && p.size > 1 ? "[" + std::to_string(p.size) + "]" : "");
}

/// Whether a value of this type can be meant for a parameter that is declared so.
bool fits(const ElementInfo& type, const Parameter& p) {
  if (p.size != type.bytes) return false;
  const char declared = p.type.front();
  if (declared == 'b') return true;  // a struct of one member is .b8[N]
  const bool single = type.element == Element::kFloat32 || type.element == Element::kFloat64;
  if (declared == 'f') return type.kind == ElementKind::kFloat && single == (p.size > 2);
  return type.kind != ElementKind::kFloat;  // .u32 is what nvcc declares an int as
}

}  // namespace

KernelArgument parse_argument(const std::string& word) {
  if (word.starts_with("tmap:")) return parse_tensor_map(word, word.substr(5));
  if (word.starts_with("struct:")) return parse_struct(word, std::string_view(word).substr(7));
  if (auto buffer = parse_buffer(word)) return *buffer;
  if (auto value = parse_value(word)) return *value;
  refuse_unknown(word);
}

std::vector<const BufferArgument*> buffers_of(const KernelArgument& argument) {
  std::vector<const BufferArgument*> out;
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) out.push_back(buffer);
  if (const auto* map = std::get_if<TensorMapArgument>(&argument)) out.push_back(&map->base);
  if (const auto* group = std::get_if<StructArgument>(&argument)) {
    for (const auto& member : group->members) {
      if (const auto* buffer = std::get_if<BufferArgument>(&member)) out.push_back(buffer);
      if (const auto* map = std::get_if<TensorMapArgument>(&member)) out.push_back(&map->base);
    }
  }
  return out;
}

void require_fit(const KernelArgument& argument, const Kernel& kernel, size_t index) {
  const Parameter& p = kernel.parameters()[index];
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
    if (p.size == 8 && p.type.front() != 'f') return;
    throw UsageError(describe(kernel, index) + "; the buffer '" + buffer->name +
                     "' is a pointer of 8 bytes");
  }
  if (std::holds_alternative<TensorMapArgument>(argument) && p.size != 128) {
    throw UsageError(describe(kernel, index) + "; a tensor map has 128 bytes");
  }
  const auto* value = std::get_if<ValueArgument>(&argument);
  if (!value) return;
  if (!value->type && value->bytes.size() == p.size) return;
  if (value->type && fits(*value->type, p)) return;
  std::string why = describe(kernel, index) + "; '" + value->word + "' does not fit";
  if (value->bytes.size() != p.size) {
    why += ": it has " + std::to_string(value->bytes.size()) + " bytes, the parameter " +
           std::to_string(p.size);
  }
  throw UsageError(why + "; raw:HEX gives the bytes of anything");
}

}  // namespace ptxvm::tools
