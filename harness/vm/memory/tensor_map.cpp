// SPDX-License-Identifier: MIT
// Tensor maps as bytes of parameter memory (PTX ISA 5.5.8). The hardware's own encoding is opaque;
// this one only has to be read back by the machine.
#include <cstring>

#include "ptxvm/launch.h"

namespace ptxvm {
namespace {

constexpr uint32_t kMagic = 0x70616d74;

struct Packed {
  uint32_t magic;
  uint8_t element_bytes, rank, swizzle, unused;
  uint64_t base;
  uint32_t dims[5];  // minus one, as a dimension may be 2^32
  uint32_t box[5];
  uint64_t strides[5];
};
static_assert(sizeof(Packed) <= 128);

}  // namespace

std::array<std::byte, 128> encode(const TensorMap& map) {
  auto fail = [](const char* what) { throw Error(std::string("tensor map: ") + what); };
  if (map.rank < 1 || map.rank > 5) fail("the rank must be from 1 to 5");
  if (map.element_bytes != 1 && map.element_bytes != 2 && map.element_bytes != 4 &&
      map.element_bytes != 8) {
    fail("an element has 1, 2, 4 or 8 bytes");
  }
  if (map.base % 16 != 0) fail("the base must be a multiple of 16");
  Packed p{};
  p.magic = kMagic;
  p.element_bytes = static_cast<uint8_t>(map.element_bytes);
  p.rank = static_cast<uint8_t>(map.rank);
  p.swizzle = static_cast<uint8_t>(map.swizzle);
  p.base = map.base;
  for (size_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] < 1 || map.dims[i] > (uint64_t{1} << 32))
      fail("a dimension must be from 1 to 2^32");
    if (map.box[i] < 1 || map.box[i] > 256) fail("a box extent must be from 1 to 256");
    if (i > 0 && (map.strides[i] % 16 != 0 || map.strides[i] >= (uint64_t{1} << 40))) {
      fail("a stride must be a multiple of 16 below 2^40");
    }
    p.dims[i] = static_cast<uint32_t>(map.dims[i] - 1);
    p.box[i] = map.box[i];
    p.strides[i] = i == 0 ? map.element_bytes : map.strides[i];
  }
  const uint64_t row = uint64_t{map.box[0]} * map.element_bytes;
  if (row % 16 != 0) fail("the innermost box extent must be a multiple of 16 bytes");
  const uint64_t span[] = {UINT64_MAX, 32, 64, 128};
  if (row > span[static_cast<size_t>(map.swizzle)]) {
    fail("the innermost box extent is wider than the swizzle");
  }
  std::array<std::byte, 128> bytes{};
  std::memcpy(bytes.data(), &p, sizeof p);
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  Packed p;
  if (bytes.size() < 128) return std::nullopt;
  std::memcpy(&p, bytes.data(), sizeof p);
  if (p.magic != kMagic) return std::nullopt;
  TensorMap map;
  map.base = p.base;
  map.element_bytes = p.element_bytes;
  map.rank = p.rank;
  map.swizzle = static_cast<Swizzle>(p.swizzle);
  for (size_t i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t{p.dims[i]} + 1;
    map.box[i] = p.box[i];
    map.strides[i] = p.strides[i];
  }
  return map;
}

}  // namespace ptxvm
