// SPDX-License-Identifier: MIT
// CUDA's runtime: what nvcc's host code registers, launches, attributes of kernels, occupancy.
#include <cstring>

#include "cuda/machine.h"

using ptxvm::cuda::Failure;
using ptxvm::cuda::Function;
using ptxvm::cuda::Image;
using ptxvm::cuda::Machine;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> pushed;  // between <<< >>> and the stub of the kernel

ptxvm::Dim3 extents(dim3 d) {
  return {d.x, d.y, d.z};
}

cudaError_t launch(const void* stub, const ptxvm::LaunchConfig& config, void** arguments) {
  return Machine::call([&](Machine& m) { return m.launch(m.function(stub), config, arguments); });
}

ptxvm::LaunchConfig plain(dim3 grid, dim3 block, size_t shared, bool cooperative = false) {
  ptxvm::LaunchConfig out;
  out.grid = extents(grid);
  out.block = extents(block);
  out.dynamic_shared_bytes = static_cast<uint32_t>(shared);
  out.cooperative = cooperative;
  return out;
}

ptxvm::LaunchConfig of(const cudaLaunchConfig_t& config) {
  ptxvm::LaunchConfig out = plain(config.gridDim, config.blockDim, config.dynamicSmemBytes);
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& each = config.attrs[i];
    if (each.id == cudaLaunchAttributeClusterDimension) {
      out.cluster = {each.val.clusterDim.x, each.val.clusterDim.y, each.val.clusterDim.z};
    }
    if (each.id == cudaLaunchAttributeCooperative) out.cooperative = each.val.cooperative != 0;
  }
  return out;
}

uint32_t blocks(Machine& m, const Function& f, uint32_t threads, size_t dynamic) {
  return ptxvm::blocks_per_multiprocessor(
      m.card(), threads, m.kernel(f).static_shared_bytes() + static_cast<uint32_t>(dynamic));
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  void** handle = nullptr;
  Machine::call([&](Machine& m) {
    handle = reinterpret_cast<void**>(m.add_image(wrapper));
    return cudaSuccess;
  });
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

// The host calls this function before it uses a __managed__ variable. The address that the host
// gets is not the one that kernels have for the variable.
char __cudaInitModule(void** image) {
  Machine::call([&](Machine& m) {
    Image& own = *reinterpret_cast<Image*>(image);
    for (const auto& [pointer, name] : own.managed) *pointer = m.variable(own, name).data();
    return cudaSuccess;
  });
  return 1;
}

void __cudaRegisterFunction(void** image, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Machine::call([&](Machine& m) {
    m.add_function(stub, {reinterpret_cast<Image*>(image), name});
    return cudaSuccess;
  });
}

void __cudaRegisterVar(void** image, char* shadow, char*, const char* name, int, size_t, int, int) {
  Machine::call([&](Machine& m) {
    m.add_symbol(shadow, {reinterpret_cast<Image*>(image), name});
    return cudaSuccess;
  });
}

void __cudaRegisterManagedVar(void** image, void** pointer, char*, const char* name, int, size_t,
                              int, int) {
  Machine::call([&](Machine& m) {
    m.add_symbol(pointer, {reinterpret_cast<Image*>(image), name});
    reinterpret_cast<Image*>(image)->managed.emplace_back(pointer, name);
    return cudaSuccess;
  });
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pushed.empty()) return cudaErrorMissingConfiguration;
  const Configuration& top = pushed.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  pushed.pop_back();
  return cudaSuccess;
}

// A handle of a kernel is the address of its stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t) {
  return launch(kernel, plain(grid, block, shared), arguments);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  return __cudaGetKernel(kernel, stub);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* stub) {
  *function = static_cast<cudaFunction_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t) {
  return launch(stub, plain(grid, block, shared), arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t) {
  return launch(stub, plain(grid, block, shared, true), arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  return launch(stub, of(*config), arguments);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* stub) {
  return Machine::call([&](Machine& m) {
    const Function& f = m.function(stub);
    const ptxvm::Kernel& kernel = m.kernel(f);
    *out = {};
    out->sharedSizeBytes = kernel.static_shared_bytes();
    out->localSizeBytes = kernel.local_bytes();
    out->maxThreadsPerBlock = static_cast<int>(
        kernel.max_threads() ? std::min<uint64_t>(1024, kernel.max_threads()->count()) : 1024);
    // ptxas alone knows how many there are; these let a block of every size fit.
    out->numRegs = 32;
    const std::string& target = f.image->module->target();
    out->ptxVersion = std::atoi(target.c_str() + std::strlen("sm_"));
    out->binaryVersion = m.card().sm;
    out->maxDynamicSharedSizeBytes = static_cast<int>(m.most_dynamic(f));
    if (const auto cluster = kernel.required_cluster()) {
      out->clusterDimMustBeSet = 1;
      out->requiredClusterWidth = static_cast<int>(cluster->x);
      out->requiredClusterHeight = static_cast<int>(cluster->y);
      out->requiredClusterDepth = static_cast<int>(cluster->z);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  return Machine::call([&](Machine& m) {
    Function& f = m.function(stub);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    const uint32_t most = m.card().largest_shared_bytes - m.kernel(f).static_shared_bytes();
    if (value < 0 || static_cast<uint32_t>(value) > most) return cudaErrorInvalidValue;
    f.most_dynamic = value;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char** name, const void* stub) {
  return Machine::call([&](Machine& m) {
    *name = m.function(stub).name.c_str();
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void* stub,
                                                                   int threads, size_t dynamic,
                                                                   unsigned) {
  return Machine::call([&](Machine& m) {
    *out = static_cast<int>(blocks(m, m.function(stub), static_cast<uint32_t>(threads), dynamic));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void* stub, int threads,
                                                          size_t dynamic) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, stub, threads, dynamic, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* out, const void* stub, int count,
                                                      int threads) {
  return Machine::call([&](Machine& m) {
    const Function& f = m.function(stub);
    const uint32_t most = m.card().largest_shared_bytes - m.kernel(f).static_shared_bytes();
    for (*out = most; *out > 0; *out -= std::min<size_t>(*out, 256)) {
      if (blocks(m, f, static_cast<uint32_t>(threads), *out) >= static_cast<uint32_t>(count)) break;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* out, const void*, const cudaLaunchConfig_t*) {
  *out = 8;  // every card with clusters has these
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int* out, const void* stub,
                                           const cudaLaunchConfig_t* config) {
  return Machine::call([&](Machine& m) {
    const ptxvm::LaunchConfig wanted = of(*config);
    const uint32_t each = blocks(m, m.function(stub), static_cast<uint32_t>(wanted.block.count()),
                                 wanted.dynamic_shared_bytes);
    *out = static_cast<int>(each * m.card().multiprocessors / wanted.cluster.count());
    return cudaSuccess;
  });
}

}  // extern "C"
