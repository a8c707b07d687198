// SPDX-License-Identifier: MIT
#include "tools/buffers.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "io/file.h"
#include "io/memory.h"
#include "tools/commands.h"

namespace ptxvm::tools {
namespace {

using Begin = BufferArgument::Begin;

/// Of CUtensorMap: 128 since CUDA 13, 64 before, which a struct that holds one says.
constexpr uint32_t kMapAlignment = 64, kNewMapAlignment = 128;

std::vector<const BufferArgument*> all_buffers(const LaunchOptions& wanted) {
  std::vector<const BufferArgument*> out;
  const auto add = [&](const KernelArgument& argument) {
    for (const BufferArgument* buffer : buffers_of(argument)) out.push_back(buffer);
  };
  for (const LaunchWords& launch : wanted.launches) {
    for (const KernelArgument& argument : launch.arguments) add(argument);
  }
  for (const VariableWords& variable : wanted.variables) add(variable.value);
  return out;
}

void require_outputs(const LaunchOptions& wanted) {
  std::vector<io::NamedFile> read{{"the PTX", wanted.file}}, written;
  for (const BufferArgument* buffer : all_buffers(wanted)) {
    if (buffer->written) {
      written.push_back({buffer->reads_file() ? "--arg inout:" : "--arg out:", buffer->name});
    } else if (buffer->reads_file()) {
      read.push_back({"--arg", buffer->name});
    }
  }
  io::require_distinct(written, read);
  for (const io::NamedFile& file : written) {
    io::require_writable(file.path);
    if (!wanted.overwrite) io::require_replaceable(file.path, io::kNpyMagic);
  }
}

/// Asked of the host before it is taken: all buffers, and the largest file while it is copied.
void require_memory(const LaunchOptions& wanted) {
  double buffers = 0, largest_file = 0;
  for (const BufferArgument* buffer : all_buffers(wanted)) {
    if (buffer->begin == Begin::kEarlier) continue;
    const ArrayType type = buffer->reads_file() ? read_npy_type(buffer->name) : buffer->type;
    const auto bytes = static_cast<double>(type.bytes());
    buffers += bytes;
    if (buffer->reads_file()) largest_file = std::max(largest_file, bytes);
  }
  const double needed = buffers + largest_file;
  const std::optional<uint64_t> available = io::available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "the arguments need %.0f bytes of memory, %llu are available", needed,
                static_cast<unsigned long long>(*available));
  throw MemoryError(text.data());
}

/// Extents that the command line gives outermost first, as a tensor map has them.
template <class T>
void copy_reversed(const std::vector<uint64_t>& given, T* out) {
  for (size_t i = 0; i < given.size(); ++i) {
    out[i] = static_cast<std::remove_reference_t<decltype(*out)>>(given[given.size() - 1 - i]);
  }
}

void require_rank(const std::string& what, const std::vector<uint64_t>& given, size_t rank) {
  if (given.size() == rank) return;
  throw UsageError("tmap: " + what + " has " + std::to_string(given.size()) +
                   " extents; the tensor map has " + std::to_string(rank) + " dimensions");
}

/// The name in the PTX of a variable that is given by that, or demangled.
std::string name_of(const Module& module, const std::string& wanted) {
  for (const ModuleVariable& v : module.variables()) {
    if (v.name == wanted || demangle(v.name) == wanted) return v.name;
  }
  return wanted;
}

}  // namespace

void require_files_and_memory(const LaunchOptions& wanted) {
  require_outputs(wanted);
  require_memory(wanted);
}

std::string Buffers::free_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 2; held_.contains(name); ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

Buffers::Held Buffers::made(const BufferArgument& buffer) {
  const std::string stem = std::filesystem::path(buffer.name).stem().string();
  const std::string name = free_name(stem);
  Held held{0, buffer.type};
  if (buffer.begin == Begin::kFile) {
    const Array array = read_npy(buffer.name);
    held = {memory_.upload(name, array.bytes), array.type};
  } else {
    const Fill fill = buffer.begin == Begin::kZero ? Fill::kZero : Fill::kPoison;
    held.address = memory_.allocate(name, buffer.type.bytes(), fill);
  }
  held_[name] = held;
  if (buffer.written) outputs_.push_back({buffer.name, held.type, memory_.bytes(held.address)});
  return held;
}

Buffers::Held Buffers::place(const BufferArgument& buffer) {
  if (buffer.begin != Begin::kEarlier) return made(buffer);
  const auto at = held_.find(buffer.name);
  if (at == held_.end()) {
    std::string names;
    for (const auto& [name, held] : held_) names += (names.empty() ? "" : ", ") + name;
    throw UsageError("there is no buffer '" + buffer.name +
                     "' yet; there are: " + (names.empty() ? "none" : names));
  }
  Held held = at->second;
  held.address += buffer.offset;
  return held;
}

Argument Buffers::tensor_map(const TensorMapArgument& wanted) {
  const Held base = place(wanted.base);
  const std::vector<uint64_t>& dims = wanted.dims.empty() ? base.type.shape : wanted.dims;
  const size_t rank = dims.size();
  if (rank < 1 || rank > 5) {
    throw UsageError("tmap: " + std::to_string(rank) + " dimensions; allowed: 1 to 5");
  }
  require_rank("box", wanted.box, rank);
  TensorMap map;
  map.base = base.address;
  map.element_bytes = info(base.type.element).bytes;
  map.element = info(base.type.element).map_element;
  map.rank = static_cast<uint32_t>(rank);
  map.swizzle = wanted.swizzle;
  copy_reversed(dims, map.dims.data());
  copy_reversed(wanted.box, map.box.data());
  map.strides[0] = map.element_bytes;
  for (size_t i = 1; i < rank; ++i) map.strides[i] = map.strides[i - 1] * map.dims[i - 1];
  if (!wanted.strides.empty()) {
    require_rank("strides, and 1 for the last dimension,", wanted.strides, rank - 1);
    copy_reversed(wanted.strides, map.strides.data() + 1);
  }
  return Argument::tensor_map(map);
}

Argument Buffers::structure(const StructArgument& wanted, uint32_t align) {
  const uint32_t map_alignment = align < kNewMapAlignment ? kMapAlignment : kNewMapAlignment;
  std::vector<std::byte> bytes;
  size_t widest = 1;
  const auto add = [&](std::span<const std::byte> member, size_t alignment) {
    widest = std::max(widest, alignment);
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    bytes.insert(bytes.end(), member.begin(), member.end());
  };
  for (const auto& member : wanted.members) {
    if (const auto* buffer = std::get_if<BufferArgument>(&member)) {
      add(Argument::pointer(place(*buffer).address).bytes(), sizeof(Address));
    } else if (const auto* map = std::get_if<TensorMapArgument>(&member)) {
      add(tensor_map(*map).bytes(), map_alignment);
    } else {
      const auto& value = std::get<ValueArgument>(member);
      add(value.bytes, value.type ? value.type->bytes : 1);
    }
  }
  bytes.resize((bytes.size() + widest - 1) / widest * widest);
  return Argument::raw(bytes);
}

Argument Buffers::make(const KernelArgument& argument, uint32_t align) {
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
    return Argument::pointer(place(*buffer).address);
  }
  if (const auto* value = std::get_if<ValueArgument>(&argument)) return Argument::raw(value->bytes);
  if (const auto* map = std::get_if<TensorMapArgument>(&argument)) return tensor_map(*map);
  return structure(std::get<StructArgument>(argument), align);
}

void Buffers::fill(const Module& module, const VariableWords& wanted) {
  const std::span<std::byte> bytes = memory_.variable(module, name_of(module, wanted.name));
  std::vector<std::byte> value;
  ArrayType type;
  if (const auto* number = std::get_if<ValueArgument>(&wanted.value)) {
    value = number->bytes;
  } else {
    const auto& buffer = std::get<BufferArgument>(wanted.value);
    type = buffer.type;
    if (buffer.begin == Begin::kFile) {
      Array array = read_npy(buffer.name);
      type = array.type;
      value = std::move(array.bytes);
    } else if (buffer.begin == Begin::kZero) {
      value.resize(type.bytes());
    }
    // `out:` leaves what the module says.
    const size_t size = buffer.begin == Begin::kPoison ? type.bytes() : value.size();
    if (buffer.written) outputs_.push_back({buffer.name, type, bytes});
    if (buffer.begin == Begin::kPoison && size == bytes.size()) return;
    value.resize(size);
  }
  if (value.size() != bytes.size()) {
    throw UsageError("--global " + wanted.name + " has " + std::to_string(bytes.size()) +
                     " bytes, not " + std::to_string(value.size()));
  }
  std::ranges::copy(value, bytes.begin());
}

void Buffers::write(bool overwrite) const {
  for (const Output& output : outputs_) {
    write_npy(output.path, output.type, output.bytes, overwrite);
  }
}

}  // namespace ptxvm::tools
