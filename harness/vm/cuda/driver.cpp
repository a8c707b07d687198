// SPDX-License-Identifier: MIT
// What programs of the runtime use of CUDA's driver: tensor maps, and stores of whole words.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "cuda/machine.h"
#include "memory/tensor_copy.h"

using ptxvm::cuda::Machine;
using ptxvm::cuda::Verdict;

namespace {

ptxvm::Swizzle swizzle_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return ptxvm::Swizzle::kNone;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return ptxvm::Swizzle::k32B;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return ptxvm::Swizzle::k64B;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return ptxvm::Swizzle::k128B;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
      return ptxvm::Swizzle::k128BAtom32B;
    default:
      throw ptxvm::Error("cuTensorMapEncodeTiled: the machine has no swizzle of this kind");
  }
}

// Types are numbered as `MapElement` numbers them.
uint32_t bytes_of(CUtensorMapDataType type) {
  constexpr uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};
  const auto number = static_cast<size_t>(type);
  if (number >= std::size(kBytes)) {
    throw ptxvm::Error("cuTensorMapEncodeTiled: there is no such type");
  }
  return kBytes[number];
}

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count) {
  const cudaError_t error = Machine::call([&](Machine& m) {
    if (count == 0) return cudaSuccess;
    std::byte* const out = m.at(reinterpret_cast<void*>(to), count * sizeof value, true);
    for (size_t i = 0; i < count; ++i) std::memcpy(out + i * sizeof value, &value, sizeof value);
    return cudaSuccess;
  });
  return static_cast<CUresult>(error);  // the two number their errors alike
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                void* base, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  try {
    if (rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
      throw ptxvm::Error(
          "cuTensorMapEncodeTiled: the machine has no interleaved tensors, and "
          "zeros alone beyond the edges");
    }
    ptxvm::TensorMap map;
    map.base = reinterpret_cast<ptxvm::Address>(base);
    map.element_bytes = bytes_of(type);
    map.element = static_cast<ptxvm::MapElement>(type);
    map.rank = rank;
    map.swizzle = swizzle_of(swizzle);
    map.strides[0] = map.element_bytes;
    for (uint32_t i = 0; i < rank; ++i) {
      if (steps[i] != 1) {
        throw ptxvm::Error("cuTensorMapEncodeTiled: the machine has no steps between elements");
      }
      map.dims[i] = dims[i];
      map.box[i] = box[i];
      if (i != 0) map.strides[i] = strides[i - 1];
    }
    if (const uint32_t bits = ptxvm::part_bits(map.element); bits != 0) {
      if (dims[0] % 16 != 0 || box[0] % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
      map.dims[0] = dims[0] / 8 * bits;
      map.box[0] = box[0] / 8 * bits;
    }
    const auto bytes = ptxvm::encode(map);
    std::memcpy(out, bytes.data(), sizeof *out);
    return CUDA_SUCCESS;
  } catch (const ptxvm::Error& e) {
    Machine::call([&](Machine& m) {
      m.report(e.what(), Verdict::kRefused);
      return cudaSuccess;
    });
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
  return fill(to, value, count);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
  return fill(to, value, count);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
  return fill(to, value, count);
}

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** out) {
  *out = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** out) {
  *out = error == CUDA_SUCCESS ? "no error" : "invalid value";
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return Machine::call([&](Machine& m) {
    Dl_info here;
    dladdr(reinterpret_cast<void*>(&cuTensorMapEncodeTiled), &here);
    void* const library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *out = library && std::strncmp(name, "cu", 2) == 0 ? dlsym(library, name) : nullptr;
    if (status) *status = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (*out) return cudaSuccess;
    m.report(
        "this program asks for " + std::string(name) + " of the driver, which ptxvm exec lacks",
        Verdict::kRefused);
    return cudaErrorSymbolNotFound;
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** out, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, out, CUDA_VERSION, flags, status);
}

}  // extern "C"
