// SPDX-License-Identifier: MIT
// CUDA's runtime: memory. Copies are done when they are asked for, whatever their stream.
#include <cstring>

#include "cuda/machine.h"

using ptxvm::cuda::Failure;
using ptxvm::cuda::Machine;

namespace {

// A handle of the one pool that there is.
cudaMemPool_t pool() {
  static int it;
  return reinterpret_cast<cudaMemPool_t>(&it);
}

bool from_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}
bool to_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

// `rows` of `bytes`, `to_pitch` and `from_pitch` apart.
void copy(Machine& m, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t bytes,
          size_t rows, cudaMemcpyKind kind) {
  if (bytes == 0 || rows == 0) return;
  std::byte* out = m.at(to, to_pitch * (rows - 1) + bytes, to_device(kind));
  const std::byte* in = m.at(from, from_pitch * (rows - 1) + bytes, from_device(kind));
  for (size_t row = 0; row < rows; ++row) {
    std::memmove(out + row * to_pitch, in + row * from_pitch, bytes);
  }
}

cudaError_t set(void* to, size_t pitch, int value, size_t bytes, size_t rows) {
  return Machine::call([&](Machine& m) {
    if (bytes == 0 || rows == 0) return cudaSuccess;
    std::byte* const out = m.at(to, pitch * (rows - 1) + bytes, true);
    for (size_t row = 0; row < rows; ++row) std::memset(out + row * pitch, value, bytes);
    return cudaSuccess;
  });
}

std::byte* part(Machine& m, const void* symbol, size_t offset, size_t count) {
  const std::span<std::byte> all = m.symbol(symbol);
  if (offset > all.size() || count > all.size() - offset) {
    throw Failure{cudaErrorInvalidValue, "a copy of " + std::to_string(count) + " bytes at +" +
                                             std::to_string(offset) + " of a variable of " +
                                             std::to_string(all.size()) + " bytes"};
  }
  return all.data() + offset;
}

template <class T>
cudaError_t give(void** out, T make) {
  return Machine::call([&](Machine& m) {
    *out = nullptr;
    *out = make(m);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** out, size_t bytes) {
  return give(out, [&](Machine& m) { return bytes == 0 ? nullptr : m.allocate(bytes); });
}

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t) {
  return cudaMalloc(out, bytes);
}

cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return cudaMalloc(out, bytes);
}

cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  constexpr size_t kPitch = 512;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cudaMalloc(out, *pitch * height);
}

cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return give(out, [&](Machine& m) { return m.map(bytes, cudaMemoryTypeManaged); });
}

cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return give(out, [&](Machine& m) { return m.map(bytes, cudaMemoryTypeHost); });
}

cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return cudaHostAlloc(out, bytes, 0);
}

cudaError_t cudaFree(void* pointer) {
  return Machine::call([&](Machine& m) {
    m.release(pointer);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  return cudaFree(pointer);
}

cudaError_t cudaFreeHost(void* pointer) {
  return cudaFree(pointer);
}

// It makes copies faster on a card, and nothing else here.
cudaError_t cudaHostRegister(void*, size_t, unsigned) {
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void*) {
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  return give(out, [&](Machine& m) {
    if (m.type_of(host) != cudaMemoryTypeUnregistered) return host;
    throw Failure{cudaErrorNotSupported,
                  "cudaHostGetDevicePointer of memory that cudaHostAlloc has not given"};
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
  *flags = cudaHostAllocMapped;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return Machine::call([&](Machine& m) {
    copy(m, to, 0, from, 0, bytes, 1, kind);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return Machine::call([&](Machine& m) {
    copy(m, to, to_pitch, from, from_pitch, width, height, kind);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return set(to, 0, value, bytes, 1);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  return set(to, 0, value, bytes, 1);
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return set(to, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t) {
  return set(to, pitch, value, width, height);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  return Machine::call([&](Machine& m) {
    std::memmove(part(m, symbol, offset, count), m.at(from, count, from_device(kind)), count);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, from, count, offset, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  return Machine::call([&](Machine& m) {
    std::memmove(m.at(to, count, to_device(kind)), part(m, symbol, offset, count), count);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyFromSymbol(to, symbol, count, offset, kind);
}

cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
  return give(out, [&](Machine& m) { return reinterpret_cast<void*>(m.symbol_address(symbol)); });
}

cudaError_t cudaGetSymbolSize(size_t* out, const void* symbol) {
  return Machine::call([&](Machine& m) {
    *out = m.symbol(symbol).size();
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return Machine::call([&](Machine& m) {
    *free = m.free_bytes();
    *total = m.total_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  return Machine::call([&](Machine& m) {
    *out = {};
    out->type = m.type_of(pointer);
    void* const same = const_cast<void*>(pointer);
    if (out->type != cudaMemoryTypeUnregistered) out->devicePointer = same;
    if (out->type != cudaMemoryTypeDevice) out->hostPointer = same;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) {
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int) {
  *out = pool();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int) {
  *out = pool();
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps*) {
  *out = pool();
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return cudaSuccess;
}

}  // extern "C"
