// SPDX-License-Identifier: MIT
// CUDA's runtime: the card, its streams and events, errors. Everything is done when it is asked
// for, so that a stream has nothing to wait for.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "cuda/machine.h"

using ptxvm::cuda::Machine;

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
};

struct CUevent_st {
  std::chrono::steady_clock::time_point at;
  bool recorded = false;
};

namespace {

constexpr int kCudaVersion = CUDART_VERSION;
// The machine has no clock. Programs divide by these rates.
constexpr int kKilohertz = 1'000'000;

const char* name_of(cudaError_t error) {
  switch (error) {
#define ERROR(name) \
  case name:        \
    return #name;
#include "cuda_errors.inc"
#undef ERROR
    default:
      return nullptr;
  }
}

cudaDeviceProp properties(Machine& m) {
  const ptxvm::Card& card = m.card();
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "ptxvm, as %s", std::string(card.name).c_str());
  p.totalGlobalMem = m.total_bytes();
  p.sharedMemPerBlock = 48 << 10;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = INT32_MAX;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT32_MAX;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 64 << 10;
  p.major = card.sm / 10;
  p.minor = card.sm % 10;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = static_cast<int>(card.multiprocessors);
  p.canMapHostMemory = p.concurrentKernels = p.asyncEngineCount = p.unifiedAddressing = 1;
  p.maxThreadsPerMultiProcessor = static_cast<int>(card.threads);
  p.streamPrioritiesSupported = 1;
  p.sharedMemPerMultiprocessor = card.shared_bytes;
  p.managedMemory = p.concurrentManagedAccess = p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = card.largest_shared_bytes;
  p.maxBlocksPerMultiProcessor = static_cast<int>(card.blocks);
  p.reservedSharedMemPerBlock = 1 << 10;
  p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.clusterLaunch = card.sm >= 90;
  p.hostNumaId = -1;
  return p;
}

int attribute(const cudaDeviceProp& p, cudaDeviceAttr wanted) {
  switch (wanted) {
    case cudaDevAttrMaxThreadsPerBlock:
      return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX:
      return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY:
      return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ:
      return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX:
      return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY:
      return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ:
      return p.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(p.totalConstMem);
    case cudaDevAttrWarpSize:
      return p.warpSize;
    case cudaDevAttrMaxPitch:
      return static_cast<int>(p.memPitch);
    case cudaDevAttrMaxRegistersPerBlock:
      return p.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return p.regsPerMultiprocessor;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      return kKilohertz;
    case cudaDevAttrTextureAlignment:
      return static_cast<int>(p.textureAlignment);
    case cudaDevAttrMultiProcessorCount:
      return p.multiProcessorCount;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrComputeCapabilityMajor:
      return p.major;
    case cudaDevAttrComputeCapabilityMinor:
      return p.minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrAsyncEngineCount:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrGpuOverlap:
      return 1;
    case cudaDevAttrClusterLaunch:
      return p.clusterLaunch;
    case cudaDevAttrHostNumaId:
      return p.hostNumaId;
    default:
      return 0;  // no cache, no texture, no other card
  }
}

cudaError_t zero_device(int device) {
  return Machine::call(
      [&](Machine&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return zero_device(device);
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return zero_device(device);
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return cudaGetDevice(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return Machine::call([&](Machine& m) {
    if (device != 0) return cudaErrorInvalidDevice;
    *out = properties(m);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr wanted, int device) {
  return Machine::call([&](Machine& m) {
    if (device != 0) return cudaErrorInvalidDevice;
    *out = attribute(properties(m), wanted);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return Machine::call([](Machine&) { return cudaSuccess; });
}

cudaError_t cudaDeviceReset() {
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* out, cudaLimit limit) {
  *out = limit == cudaLimitMallocHeapSize   ? 8 << 20
         : limit == cudaLimitPrintfFifoSize ? 1 << 20
                                            : 1024;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int) {
  std::snprintf(out, static_cast<size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return Machine::get().last_error(true);
}

cudaError_t cudaPeekAtLastError() {
  return Machine::get().last_error(false);
}

const char* cudaGetErrorName(cudaError_t error) {
  const char* const name = name_of(error);
  return name ? name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : cudaGetErrorName(error);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  *out = new CUstream_st{flags, priority};
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithPriority(out, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaStreamQuery(cudaStream_t) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  callback(stream, Machine::get().last_error(false), data);
  return cudaSuccess;
}

// The handles below 3 are those of default streams.
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = reinterpret_cast<uintptr_t>(stream) < 3 ? 0 : stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = reinterpret_cast<uintptr_t>(stream) < 3 ? 0 : stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) {
  return cudaGetDevice(device);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned) {
  event->at = std::chrono::steady_clock::now();
  event->recorded = true;
  return cudaDeviceSynchronize();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaEventElapsedTime(float* out, cudaEvent_t from, cudaEvent_t to) {
  if (!from || !to || !from->recorded || !to->recorded) return cudaErrorInvalidResourceHandle;
  *out = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

}  // extern "C"
