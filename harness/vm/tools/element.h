// SPDX-License-Identifier: MIT
// Element types of arrays and scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/launch.h"

namespace ptxvm::tools {

enum class Element : uint8_t {
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kBool,
};

enum class ElementKind : uint8_t { kFloat, kSigned, kUnsigned, kBool };

struct ElementInfo {
  Element element;
  std::string_view name;   ///< "float16", as numpy has it.
  std::string_view brief;  ///< "f16"
  std::string_view descr;  ///< "<f2", of a .npy file.
  uint32_t bytes;
  ElementKind kind;
  MapElement map_element;  ///< For reductions through a tensor map.
};

const ElementInfo& info(Element element);

/// By name or brief name; null when there is none.
const ElementInfo* find_element(std::string_view word);
/// By the descr of a .npy file; null for a type that is not supported. bfloat16, which numpy does
/// not know, has two bytes of no type.
const ElementInfo* element_of_descr(std::string_view descr);

/// "f16, bf16, ..." and "float16, bfloat16, ...".
std::string brief_names();
std::string names();

/// The bytes of a number written in decimal, or in hexadecimal after 0x; empty where the type has
/// no such number.
std::optional<std::vector<std::byte>> parse_scalar(Element element, std::string_view text);

/// What `parse_scalar` takes, in words.
std::string values_of(Element element);

}  // namespace ptxvm::tools
