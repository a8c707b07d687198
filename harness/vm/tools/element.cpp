// SPDX-License-Identifier: MIT
#include "tools/element.h"

#include <charconv>
#include <cstring>
#include <limits>

#include "num/half.h"

namespace ptxvm::tools {
namespace {

constexpr ElementInfo kElements[] = {
    {Element::kFloat16, "float16", "f16", "<f2", 2, ElementKind::kFloat, MapElement::kF16},
    {Element::kBfloat16, "bfloat16", "bf16", "<V2", 2, ElementKind::kFloat, MapElement::kBf16},
    {Element::kFloat32, "float32", "f32", "<f4", 4, ElementKind::kFloat, MapElement::kF32},
    {Element::kFloat64, "float64", "f64", "<f8", 8, ElementKind::kFloat, MapElement::kF64},
    {Element::kInt8, "int8", "i8", "|i1", 1, ElementKind::kSigned, MapElement::kUnknown},
    {Element::kUint8, "uint8", "u8", "|u1", 1, ElementKind::kUnsigned, MapElement::kU8},
    {Element::kInt16, "int16", "i16", "<i2", 2, ElementKind::kSigned, MapElement::kUnknown},
    {Element::kUint16, "uint16", "u16", "<u2", 2, ElementKind::kUnsigned, MapElement::kU16},
    {Element::kInt32, "int32", "i32", "<i4", 4, ElementKind::kSigned, MapElement::kS32},
    {Element::kUint32, "uint32", "u32", "<u4", 4, ElementKind::kUnsigned, MapElement::kU32},
    {Element::kInt64, "int64", "i64", "<i8", 8, ElementKind::kSigned, MapElement::kS64},
    {Element::kUint64, "uint64", "u64", "<u8", 8, ElementKind::kUnsigned, MapElement::kU64},
    {Element::kBool, "bool", "bool", "|b1", 1, ElementKind::kBool, MapElement::kUnknown}};

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T, class... Base>
std::optional<T> parse(std::string_view text, Base... base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The low bytes of an integer of so many bytes; empty where it does not fit.
std::optional<std::vector<std::byte>> integer(const ElementInfo& type, std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  const int base = hexadecimal ? 16 : 10;
  const uint32_t bits = 8 * type.bytes;
  uint64_t value = 0;
  // Hexadecimal digits are bits, whatever the sign of the type.
  if (type.kind == ElementKind::kUnsigned || hexadecimal) {
    const auto parsed = parse<uint64_t>(text, base);
    if (!parsed || (bits < 64 && *parsed >> bits != 0)) return std::nullopt;
    value = *parsed;
  } else {
    const auto parsed = parse<int64_t>(text, base);
    const int64_t largest = std::numeric_limits<int64_t>::max() >> (64 - bits);
    if (!parsed || *parsed > largest || *parsed < -largest - 1) return std::nullopt;
    value = static_cast<uint64_t>(*parsed);
  }
  std::vector<std::byte> bytes = bytes_of(value);
  bytes.resize(type.bytes);
  return bytes;
}

std::string join(std::string_view ElementInfo::*member) {
  std::string text;
  for (const ElementInfo& each : kElements) {
    text += (text.empty() ? "" : ", ") + std::string(each.*member);
  }
  return text;
}

}  // namespace

const ElementInfo& info(Element element) {
  return kElements[static_cast<size_t>(element)];
}

const ElementInfo* find_element(std::string_view word) {
  for (const ElementInfo& each : kElements) {
    if (each.name == word || each.brief == word) return &each;
  }
  return nullptr;
}

const ElementInfo* element_of_descr(std::string_view descr) {
  if (descr == "|V2") return &info(Element::kBfloat16);
  if (descr == "<V1" || descr == "|V1") return &info(Element::kUint8);  // 8-bit floats
  for (const ElementInfo& each : kElements) {
    if (each.descr == descr) return &each;
  }
  return nullptr;
}

std::string brief_names() {
  return join(&ElementInfo::brief);
}

std::string names() {
  return join(&ElementInfo::name);
}

std::optional<std::vector<std::byte>> parse_scalar(Element element, std::string_view text) {
  const ElementInfo& type = info(element);
  if (type.kind == ElementKind::kBool) {
    if (text == "true" || text == "1") return bytes_of(uint8_t{1});
    if (text == "false" || text == "0") return bytes_of(uint8_t{0});
    return std::nullopt;
  }
  if (type.kind != ElementKind::kFloat) return integer(type, text);
  if (element == Element::kFloat64) {
    const auto value = parse<double>(text);
    return value ? std::optional(bytes_of(*value)) : std::nullopt;
  }
  const auto value = parse<float>(text);
  if (!value) return std::nullopt;
  if (element == Element::kFloat16) return bytes_of(num::float_to_half(*value));
  if (element == Element::kBfloat16) return bytes_of(num::float_to_bfloat(*value));
  return bytes_of(*value);
}

std::string values_of(Element element) {
  const ElementInfo& type = info(element);
  if (type.kind == ElementKind::kBool) return "true, false, 1, 0";
  if (type.kind == ElementKind::kFloat) return "decimal numbers such as 0.5 or -1e3, inf, nan";
  const uint32_t bits = 8 * type.bytes;
  const uint64_t largest =
      ~uint64_t{0} >> (64 - bits + (type.kind == ElementKind::kSigned ? 1 : 0));
  const std::string low =
      type.kind == ElementKind::kSigned ? std::to_string(-static_cast<int64_t>(largest) - 1) : "0";
  return "whole numbers from " + low + " to " + std::to_string(largest) + ", or 0x and at most " +
         std::to_string(bits / 4) + " hexadecimal digits";
}

}  // namespace ptxvm::tools
