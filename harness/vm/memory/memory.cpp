// SPDX-License-Identifier: MIT
// Global memory: named buffers, one to a window.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

#include "memory/heap.h"
#include "memory/spaces.h"
#include "program/program.h"
#include "ptxvm/launch.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace ptxvm {
namespace {

constexpr size_t kAlignment = 256;
constexpr uint64_t kLargest = uint64_t{1} << 38;

struct FreeHost {
  void* block = nullptr;
  void operator()(std::byte*) const { std::free(block); }
};
using HostBytes = std::unique_ptr<std::byte, FreeHost>;

// Zeros come from calloc: the host gives a large array its pages when they are written.
HostBytes host_bytes(size_t bytes, Fill fill) {
  size_t room = std::max(bytes, size_t{1}) + kAlignment;
  void* const block = std::calloc(room, 1);
  if (!block) throw std::bad_alloc();
  void* at = block;
  std::align(kAlignment, std::max(bytes, size_t{1}), at, room);
  HostBytes p(static_cast<std::byte*>(at), FreeHost{block});
  if (fill == Fill::kPoison) std::memset(p.get(), 0xff, bytes);
  return p;
}

struct Unmap {
  size_t bytes = 0;
  void operator()([[maybe_unused]] std::byte* host) const {
#ifdef __linux__
    munmap(host, bytes);
#endif
  }
};
using MappedBytes = std::unique_ptr<std::byte, Unmap>;

// Zeros at this address of the host; null where something else is there.
MappedBytes map_at([[maybe_unused]] Address address, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  void* const wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  void* const got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return {static_cast<std::byte*>(got), Unmap{bytes}};
  // A kernel that does not know the flag takes the address for a wish.
  if (got != MAP_FAILED) munmap(got, bytes);
#endif
  return nullptr;
}

struct Mapped {
  std::unique_ptr<Buffer> buffer;
  MappedBytes storage;
};

}  // namespace

struct Memory::State {
  std::vector<std::unique_ptr<Buffer>> buffers;  // by window
  std::array<Mapped, kMappedWindows> mapped;
  std::vector<HostBytes> storage;
  std::unordered_map<uint64_t, std::pair<std::unique_ptr<Buffer>, HostBytes>> variables;
  std::unordered_map<uint64_t, std::vector<std::byte>> constants;  // by module
  std::once_flag heap_made;
  std::unique_ptr<Heap> heap;
  Address workspace = 0;
};

Memory::Memory() : state_(std::make_unique<State>()) {}
Memory::~Memory() = default;

Address Memory::allocate(std::string name, size_t bytes, Fill fill, size_t skew) {
  for (const auto& b : state_->buffers) {
    if (b->host && b->name == name) throw Error("there is already a buffer '" + name + "'");
  }
  if (bytes > kLargest) throw std::bad_alloc();
  skew %= kAlignment;
  state_->storage.push_back(host_bytes(skew + bytes, fill));
  auto buffer = std::make_unique<Buffer>();
  buffer->name = std::move(name);
  buffer->address =
      ((kFirstBufferWindow + state_->buffers.size()) << kWindowShift) + kBufferOffset + skew;
  buffer->bytes = bytes;
  buffer->fresh = fill == Fill::kPoison;
  buffer->host = state_->storage.back().get() + skew;
  state_->buffers.push_back(std::move(buffer));
  return state_->buffers.back()->address;
}

Address Memory::upload(std::string name, std::span<const std::byte> data, size_t skew) {
  const Address address = allocate(std::move(name), data.size(), Fill::kZero, skew);
  if (!data.empty()) std::memcpy(bytes(address).data(), data.data(), data.size());
  return address;
}

Address Memory::map(std::string name, size_t bytes) {
  if (bytes > kLargest) throw std::bad_alloc();
  for (uint64_t i = 0; i < kMappedWindows; ++i) {
    Mapped& slot = state_->mapped[i];
    if (slot.storage) continue;
    const Address address = ((kFirstMappedWindow + i) << kWindowShift) + kBufferOffset;
    slot.storage = map_at(address, std::max(bytes, size_t{1}));
    if (!slot.storage) continue;
    slot.buffer =
        std::make_unique<Buffer>(Buffer{std::move(name), address, bytes, slot.storage.get()});
    return address;
  }
  throw std::bad_alloc();
}

void Memory::release(Address address) {
  for (Mapped& each : state_->mapped) {
    if (!each.storage || each.buffer->address != address) continue;
    each.storage.reset();
    each.buffer->host = nullptr;
    each.buffer->bytes = 0;
    return;
  }
  for (size_t i = 0; i < state_->buffers.size(); ++i) {
    Buffer& b = *state_->buffers[i];
    if (b.address != address || !b.host) continue;
    state_->storage[i].reset();
    b.host = nullptr;
    b.bytes = 0;
    return;
  }
  throw Error("no buffer begins at this address");
}

std::span<std::byte> Memory::bytes(std::string_view name) {
  for (const auto& b : state_->buffers) {
    if (!b->host || b->name != name) continue;
    b->fresh = false;
    return {b->host, b->bytes};
  }
  for (const auto& [window, v] : state_->variables) {
    if (v.first->name == name) return {v.first->host, v.first->bytes};
  }
  throw Error("there is no buffer '" + std::string(name) + "'");
}

std::span<std::byte> Memory::bytes(Address address) {
  const Buffer* b = find(address);
  if (!b || b->address != address || !b->host) throw Error("no buffer begins at this address");
  const_cast<Buffer*>(b)->fresh = false;
  return {b->host, b->bytes};
}

const Buffer* Memory::find(Address address) const {
  const uint64_t window = window_of(address);
  if (window - kFirstBufferWindow < state_->buffers.size()) {
    return state_->buffers[window - kFirstBufferWindow].get();
  }
  if (window - kFirstMappedWindow < kMappedWindows) {
    return state_->mapped[window - kFirstMappedWindow].buffer.get();
  }
  if (window - kFirstHeapWindow < Heap::kWindows) {
    return state_->heap ? state_->heap->find(window - kFirstHeapWindow) : nullptr;
  }
  if (window >= kFirstModuleWindow) {
    auto it = state_->variables.find(window);
    if (it != state_->variables.end()) return it->second.first.get();
  }
  return nullptr;
}

std::span<const std::unique_ptr<Buffer>> Memory::buffers() const {
  return state_->buffers;
}

Address Memory::grid_workspace() {
  constexpr size_t kBytes = 256;
  if (state_->workspace == 0) state_->workspace = allocate("(grid workspace)", kBytes);
  const auto room = bytes(state_->workspace);
  std::fill(room.begin(), room.end(), std::byte{0});
  return state_->workspace;
}

void Memory::forget_fresh() {
  for (const auto& b : state_->buffers) b->fresh = false;
}

void Memory::attach(const Module& module) {
  state_->constants.try_emplace(module.data().id, module.data().constants);
  for (const GlobalVariable& v : module.data().globals) {
    const uint64_t window = window_of(v.address);
    if (state_->variables.contains(window)) continue;
    HostBytes bytes = host_bytes(v.bytes, Fill::kZero);
    if (!v.initial.empty()) std::memcpy(bytes.get(), v.initial.data(), v.initial.size());
    auto buffer = std::make_unique<Buffer>(Buffer{v.name, v.address, v.bytes, bytes.get()});
    state_->variables.emplace(window, std::pair(std::move(buffer), std::move(bytes)));
  }
}

std::span<std::byte> Memory::constants(const Module& module) {
  return state_->constants.at(module.data().id);
}

std::span<std::byte> Memory::variable(const Module& module, std::string_view name) {
  attach(module);
  const auto is_meant = [&](const std::string& each) {
    return each == name || demangle(each) == name;
  };
  std::string names;
  for (const GlobalVariable& v : module.data().globals) {
    if (is_meant(v.name)) return bytes(v.address);
    names += (names.empty() ? "" : ", ") + demangle(v.name);
  }
  for (const Variable& v : module.data().constant_variables) {
    if (is_meant(v.name)) return constants(module).subspan(v.offset, v.bytes);
    names += (names.empty() ? "" : ", ") + demangle(v.name);
  }
  throw Error(module.file_name() + ": there is no variable '" + std::string(name) + "'" +
              (names.empty() ? "; the file has none" : "; there are: " + names));
}

Address Memory::heap_allocate(size_t bytes) {
  std::call_once(state_->heap_made, [&] { state_->heap = std::make_unique<Heap>(); });
  return state_->heap->allocate(bytes, kFirstHeapWindow);
}

bool Memory::heap_release(Address address) {
  const uint64_t window = window_of(address) - kFirstHeapWindow;
  return state_->heap && window < Heap::kWindows && state_->heap->release(window, address);
}

}  // namespace ptxvm
