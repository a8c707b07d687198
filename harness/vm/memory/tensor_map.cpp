// SPDX-License-Identifier: MIT
// Tensor maps as bytes of parameter memory (PTX ISA 5.5.8). The hardware's own encoding is
// opaque; this one only has to be read back by the machine.
#include "memory/tensor_map.h"

#include <cstring>

#include "memory/tensor_copy.h"

namespace ptxvm {
namespace {

constexpr uint32_t kMagic = 0x70616d74;
constexpr uint32_t kMostRank = 5;

// Bytes of zero are the map that tensormap.replace begins with, so every field counts from its
// least value.
struct Packed {
  uint32_t magic;
  uint8_t element_log2, rank, swizzle, element;
  uint64_t base;
  uint32_t dims[5];  // a dimension may be 2^32
  uint32_t box[5];
  uint64_t strides[5];  // [0] is not used
};
static_assert(sizeof(Packed) <= kTensorMapBytes);

Packed unpack(std::span<const std::byte> bytes) {
  Packed p;
  std::memcpy(&p, bytes.data(), sizeof p);
  return p;
}

// Bytes of an element, by the numbers of PTX ISA 9.7.9.27; 0 for what rounds or has no bytes.
uint32_t element_log2(uint64_t type, bool& modelled) {
  constexpr int8_t kLog2[] = {0, 1, 2, 2, 3, 3, 1, 2, -1, 3, 1, -1, -1};
  modelled = type < std::size(kLog2) && kLog2[type] >= 0;
  return modelled ? static_cast<uint32_t>(kLog2[type]) : 0;
}

}  // namespace

std::string problem_of(const TensorMap& map) {
  const auto wrong = [](const std::string& what, uint64_t value) {
    return what + ", not " + std::to_string(value);
  };
  if (map.rank < 1 || map.rank > kMostRank) return wrong("the rank must be from 1 to 5", map.rank);
  if (map.element_bytes != 1 && map.element_bytes != 2 && map.element_bytes != 4 &&
      map.element_bytes != 8) {
    return wrong("an element has 1, 2, 4 or 8 bytes", map.element_bytes);
  }
  if (map.base % 16 != 0) return wrong("the base must be a multiple of 16", map.base);
  for (size_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] < 1 || map.dims[i] > (uint64_t{1} << 32))
      return wrong("a dimension must be from 1 to 2^32", map.dims[i]);
    if (map.box[i] < 1 || map.box[i] > 256)
      return wrong("a box extent must be from 1 to 256", map.box[i]);
    if (i > 0 && (map.strides[i] % 16 != 0 || map.strides[i] >= (uint64_t{1} << 40))) {
      return wrong("a stride must be a multiple of 16 below 2^40", map.strides[i]);
    }
  }
  const uint64_t each = bytes_of_16(map.element), whole = uint64_t{map.box[0]} * map.element_bytes;
  if (each != 16 && whole % each != 0)
    return wrong("the innermost box extent must hold groups of 16 elements", whole);
  const uint64_t row = each == 16 ? whole : whole / each * 16;
  if (row % 16 != 0) return wrong("the innermost box extent must be a multiple of 16 bytes", row);
  const uint64_t span[] = {UINT64_MAX, 32, 64, 128, 128};
  const uint64_t most = span[static_cast<size_t>(map.swizzle)];
  if (row <= most) return {};
  return wrong("the innermost box extent must be " + std::to_string(most) +
                   " bytes, those of the swizzle, at most",
               row);
}

std::array<std::byte, 128> encode(const TensorMap& map) {
  if (const std::string problem = problem_of(map); !problem.empty()) {
    throw Error("tensor map: " + problem);
  }
  Packed p{};
  p.magic = kMagic;
  p.element_log2 = static_cast<uint8_t>(__builtin_ctz(map.element_bytes));
  p.rank = static_cast<uint8_t>(map.rank - 1);
  p.swizzle = static_cast<uint8_t>(map.swizzle);
  p.element = static_cast<uint8_t>(map.element);
  p.base = map.base;
  for (size_t i = 0; i < map.rank; ++i) {
    p.dims[i] = static_cast<uint32_t>(map.dims[i] - 1);
    p.box[i] = map.box[i] - 1;
    if (i > 0) p.strides[i] = map.strides[i];
  }
  std::array<std::byte, 128> bytes{};
  std::memcpy(bytes.data(), &p, sizeof p);
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  if (bytes.size() < kTensorMapBytes) return std::nullopt;
  const Packed p = unpack(bytes);
  if (p.magic != kMagic || p.element_log2 > 3 || p.rank >= kMostRank ||
      p.swizzle > static_cast<uint8_t>(Swizzle::k128BAtom32B)) {
    return std::nullopt;
  }
  TensorMap map;
  map.base = p.base;
  map.element_bytes = 1u << p.element_log2;
  map.rank = p.rank + 1u;
  map.swizzle = static_cast<Swizzle>(p.swizzle);
  map.element = static_cast<MapElement>(p.element);
  for (size_t i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t{p.dims[i]} + 1;
    map.box[i] = p.box[i] + 1;  // no box is as large as to wrap: problem_of
    map.strides[i] = i == 0 ? map.element_bytes : p.strides[i];
  }
  return map;
}

const char* replace_field(std::span<std::byte> bytes, MapField field, uint32_t ordinal,
                          uint64_t value) {
  Packed p = unpack(bytes);
  if (p.magic != kMagic) {
    for (std::byte b : bytes) {
      if (b != std::byte{0}) return "here is neither a tensor map nor 128 bytes of zero";
    }
    p.magic = kMagic;
  }
  bool modelled = true;
  switch (field) {
    case MapField::kBase:
      p.base = value;
      break;
    case MapField::kRank:
      if (value >= kMostRank) return "the value must be the rank less one, from 0 to 4";
      p.rank = static_cast<uint8_t>(value);
      break;
    case MapField::kBox:
      p.box[ordinal] = static_cast<uint32_t>(value - 1);
      break;
    case MapField::kDimension:
      p.dims[ordinal] = static_cast<uint32_t>(value - 1);
      break;
    case MapField::kStride:  // that of the innermost dimension is not one of them
      p.strides[ordinal + 1] = value;
      break;
    case MapField::kElementStride:
      if (value != 1) return "of element strides only 1 is modelled";
      break;
    case MapField::kElement:
      p.element_log2 = static_cast<uint8_t>(element_log2(value, modelled));
      if (!modelled) return "element types that round are not modelled";
      p.element = static_cast<uint8_t>(value);
      break;
    case MapField::kInterleave:
      if (value != 0) return "interleaved layouts are not modelled";
      break;
    case MapField::kSwizzle:
      p.swizzle = static_cast<uint8_t>(value);
      break;
    case MapField::kFill:
      if (value != 0) return "of what fills a box outside of its tensor only zero is modelled";
      break;
  }
  std::memcpy(bytes.data(), &p, sizeof p);
  return nullptr;
}

}  // namespace ptxvm
