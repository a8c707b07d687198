// SPDX-License-Identifier: MIT
#include "cuda/fatbin.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "ptxvm/diagnostic.h"

namespace ptxvm::cuda {
namespace {

// As fatbinary_section.h has it.
struct Wrapper {
  int32_t magic, version;
  const std::byte* data;
  const std::byte* const* linked;  // of version 2: the fat binaries of the objects, and a null
};
constexpr int32_t kWrapperMagic = 0x466243b1, kLinked = 2;

// The container has no header in the toolkit. These are the fields that are read here, as nvcc 13
// writes them.
struct Container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of all entries
};
constexpr uint32_t kContainerMagic = 0xba55ed50;

struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;  // padded
  uint32_t compressed_bytes, unused[2], sm, unused2[2];
  uint64_t flags, unused3, plain_bytes;
};
constexpr uint16_t kPtx = 1;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

// Libraries that any Linux has at run time, while few have their headers.
void* function_of(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = handle ? dlsym(handle, name) : nullptr;
  if (found) return found;
  throw Error("the PTX in this program is compressed, and " + std::string(library) +
              " is not on this system: install it, or compile with nvcc --compress-mode=none");
}

std::string unpacked(const EntryHeader& header, const char* packed) {
  std::string out(header.plain_bytes, '\0');
  bool good = false;
  if (header.flags & kZstd) {
    using Decompress = size_t (*)(void*, size_t, const void*, size_t);
    static const auto decompress =
        reinterpret_cast<Decompress>(function_of("libzstd.so.1", "ZSTD_decompress"));
    good = decompress(out.data(), out.size(), packed, header.compressed_bytes) == out.size();
  } else {
    using Decompress = int (*)(const char*, char*, int, int);
    static const auto decompress =
        reinterpret_cast<Decompress>(function_of("liblz4.so.1", "LZ4_decompress_safe"));
    const int bytes = decompress(packed, out.data(), static_cast<int>(header.compressed_bytes),
                                 static_cast<int>(out.size()));
    good = bytes >= 0 && static_cast<size_t>(bytes) == out.size();
  }
  if (!good) throw Error("the compressed PTX in this program cannot be read");
  return out;
}

template <class T>
T read(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

FatBinary read_container(const std::byte* data) {
  const auto container = read<Container>(data);
  if (container.magic != kContainerMagic) {
    throw Error("the fat binary of this program is of an unknown kind");
  }
  FatBinary out;
  const std::byte* at = data + container.header_bytes;
  const std::byte* const end = at + container.bytes;
  while (at < end) {
    const auto header = read<EntryHeader>(at);
    FatEntry entry{header.kind == kPtx, static_cast<int>(header.sm), {}};
    if (entry.ptx) {
      const char* const text = reinterpret_cast<const char*>(at + header.header_bytes);
      entry.text =
          header.flags & (kLz4 | kZstd) ? unpacked(header, text) : std::string(text, header.bytes);
      // The padding is zeros.
      entry.text.resize(std::strlen(entry.text.c_str()));
    }
    out.push_back(std::move(entry));
    at += header.header_bytes + header.bytes;
  }
  return out;
}

}  // namespace

std::vector<FatBinary> read_fat_binaries(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const std::byte*>(wrapper));
  if (outer.magic != kWrapperMagic) throw Error("this program registers no fat binary of nvcc");
  if (outer.version != kLinked) return {read_container(outer.data)};
  // What the linker of the device has made of them is machine code.
  std::vector<FatBinary> out;
  for (const std::byte* const* each = outer.linked; *each; ++each) {
    out.push_back(read_container(*each));
  }
  return out;
}

const FatEntry* choose(const FatBinary& binary, int sm) {
  const FatEntry* best = nullptr;
  for (const FatEntry& entry : binary) {
    if (!entry.ptx || entry.sm > sm || (best && entry.sm < best->sm)) continue;
    const std::string target = "sm_" + std::to_string(entry.sm);
    // Targets such as sm_90a run on their own card alone, sm_100f on those of its family.
    const bool own = entry.text.find(".target " + target + "a") != std::string::npos;
    const bool family = entry.text.find(".target " + target + "f") != std::string::npos;
    if ((own && entry.sm != sm) || (family && entry.sm / 10 != sm / 10)) continue;
    // The specific one of two with the same number.
    if (best && entry.sm == best->sm && !own && !family) continue;
    best = &entry;
  }
  return best;
}

}  // namespace ptxvm::cuda
