// SPDX-License-Identifier: MIT
// CUDA programs that judge themselves, one a word of the command line: 0 is right.
// The last ones are wrong on purpose, and 0 is what they expect.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;

namespace {

void must(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::printf("line %d: %s\n", line, cudaGetErrorString(error));
  std::exit(3);
}
#define CHECK(call) must(call, __LINE__)

template <class T>
T* device(const std::vector<T>& from) {
  T* out = nullptr;
  CHECK(cudaMalloc(&out, from.size() * sizeof(T)));
  CHECK(cudaMemcpy(out, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return out;
}

template <class T>
std::vector<T> host(const T* from, size_t n) {
  std::vector<T> out(n);
  CHECK(cudaMemcpy(out.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
  return out;
}

std::vector<int> counted(int n) {
  std::vector<int> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

template <class T>
__global__ void add(const T* a, const T* b, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int vectors() {
  constexpr int n = 1000;
  int* const a = device(counted(n));
  int* const out = device(std::vector<int>(n, -1));
  add<<<4, 256>>>(a, a, out, n);
  CHECK(cudaGetLastError());
  const std::vector<int> got = host(out, n);
  for (int i = 0; i < n; ++i) {
    if (got[i] != 2 * i) return 1;
  }
  CHECK(cudaFree(a));
  cudaFuncAttributes about;
  CHECK(cudaFuncGetAttributes(&about, add<double>));
  return about.maxThreadsPerBlock == 1024 && about.sharedSizeBytes == 0 ? 0 : 1;
}

__global__ void sum_all(const int* in, int n, unsigned* sum, unsigned* bins) {
  __shared__ unsigned part;
  if (threadIdx.x == 0) part = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&part, in[i]);
    atomicAdd(&bins[in[i] % 8], 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, part);
}

int atomics() {
  constexpr int n = 4000;
  unsigned* const out = device(std::vector<unsigned>(9, 0));
  sum_all<<<3, 128>>>(device(counted(n)), n, out, out + 1);
  const std::vector<unsigned> got = host(out, 9);
  return got[0] == n * (n - 1) / 2 && got[1] == n / 8 && got[8] == n / 8 ? 0 : 1;
}

__global__ void turn(const float* in, size_t pitch, float* out, int width, int height) {
  __shared__ float tile[16][17];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * pitch / 4 + x];
  __syncthreads();
  const int to_x = blockIdx.y * 16 + threadIdx.x, to_y = blockIdx.x * 16 + threadIdx.y;
  if (to_x < height && to_y < width) out[to_y * height + to_x] = tile[threadIdx.x][threadIdx.y];
}

int transpose() {
  constexpr int width = 50, height = 33;
  std::vector<float> in(width * height);
  std::iota(in.begin(), in.end(), 0.0f);
  float *rows, *out;
  size_t pitch;
  CHECK(cudaMallocPitch(&rows, &pitch, width * 4, height));
  CHECK(cudaMemcpy2D(rows, pitch, in.data(), width * 4, width * 4, height, cudaMemcpyDefault));
  CHECK(cudaMalloc(&out, in.size() * 4));
  CHECK(cudaMemset(out, 0, in.size() * 4));
  turn<<<dim3(4, 3), dim3(16, 16)>>>(rows, pitch, out, width, height);
  const std::vector<float> got = host(out, in.size());
  for (int i = 0; i < width * height; ++i) {
    if (got[i % width * height + i / width] != in[i]) return 1;
  }
  return 0;
}

int streams() {
  constexpr int n = 512;
  cudaStream_t one, two;
  cudaEvent_t before, between, after;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  for (cudaEvent_t* each : {&before, &between, &after}) CHECK(cudaEventCreate(each));
  int* pinned;
  CHECK(cudaMallocHost(&pinned, n * 4));
  int *x, *y;
  CHECK(cudaMallocAsync(&x, n * 4, one));
  CHECK(cudaMallocAsync(&y, n * 4, two));
  std::iota(pinned, pinned + n, 0);
  CHECK(cudaEventRecord(before, one));
  CHECK(cudaMemcpyAsync(x, pinned, n * 4, cudaMemcpyHostToDevice, one));
  CHECK(cudaEventRecord(between, one));
  CHECK(cudaStreamWaitEvent(two, between));
  add<<<2, 256, 0, two>>>(x, x, y, n);
  CHECK(cudaMemcpyAsync(pinned, y, n * 4, cudaMemcpyDeviceToHost, two));
  bool called = false;
  CHECK(cudaLaunchHostFunc(
      two, [](void* p) { *static_cast<bool*>(p) = true; }, &called));
  CHECK(cudaEventRecord(after, two));
  CHECK(cudaEventSynchronize(after));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, before, after));
  CHECK(cudaStreamSynchronize(two));
  CHECK(cudaFreeAsync(x, two));
  CHECK(cudaStreamDestroy(two));
  return called && ms > 0 && pinned[n - 1] == 2 * (n - 1) ? 0 : 1;
}

__managed__ int tally = 5;

__global__ void count_up(int* values, const int* pinned, int n) {
  if (threadIdx.x < n) values[threadIdx.x] += pinned[threadIdx.x];
  if (threadIdx.x == 0) tally += n;
}

int managed() {
  int *values, *pinned, *view;
  CHECK(cudaMallocManaged(&values, 64 * 4));
  CHECK(cudaHostAlloc(&pinned, 64 * 4, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&view, pinned, 0));
  for (int i = 0; i < 64; ++i) values[i] = i, pinned[i] = 100;
  count_up<<<1, 64>>>(values, view, 64);
  CHECK(cudaDeviceSynchronize());
  cudaPointerAttributes about;
  CHECK(cudaPointerGetAttributes(&about, values));
  return values[63] == 163 && tally == 69 && about.type == cudaMemoryTypeManaged ? 0 : 1;
}

__constant__ float factors[4];
__device__ float results[4];
__device__ int calls;

__global__ void scale() {
  results[threadIdx.x] = 2 * factors[threadIdx.x];
  if (threadIdx.x == 0) ++calls;
}

int symbols() {
  const float in[4] = {1, 2, 3, 4}, last = 7;
  float out[4];
  int* address = nullptr;
  CHECK(cudaMemcpyToSymbol(factors, in, sizeof in));
  CHECK(cudaMemcpyToSymbol(factors, &last, sizeof last, 3 * sizeof last));
  scale<<<1, 4>>>();
  scale<<<1, 4>>>();
  CHECK(cudaMemcpyFromSymbol(out, results, sizeof out));
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), calls));
  return out[0] == 2 && out[3] == 14 && host(address, 1)[0] == 2 ? 0 : 1;
}

__global__ void neighbours(int* values) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned i = grid.thread_rank();
  for (int round = 0; round < 3; ++round) {
    const int next = values[(i + 1) % grid.size()];
    grid.sync();
    values[i] = next + 1;
    grid.sync();
  }
}

int cooperative() {
  int each = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, neighbours, 64, 0));
  constexpr int blocks = 6, n = blocks * 64;
  int* values = device(counted(n));
  void* arguments[] = {&values};
  CHECK(cudaLaunchCooperativeKernel(neighbours, blocks, 64, arguments));
  const std::vector<int> got = host(values, n);
  for (int i = 0; i < n; ++i) {
    if (got[i] != (i + 3) % n + 3) return 1;
  }
  return each > 0 ? 0 : 1;
}

__global__ void ring(int* out) {
  __shared__ int mine[32];
  const cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, next)[threadIdx.x];
  cluster.sync();
}

int clusters() {
  constexpr int blocks = 8;
  int* const out = device(std::vector<int>(blocks * 32));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, ring, out));
  const std::vector<int> got = host(out, blocks * 32);
  for (int block = 0; block < blocks; ++block) {
    if (got[block * 32 + 5] != (block / 4 * 4 + (block + 1) % 4) * 100 + 5) return 1;
  }
  return 0;
}

__global__ void copy_box(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float box[8][16];
  __shared__ unsigned long long full;
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(box));
  const auto barrier = static_cast<unsigned>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(static_cast<unsigned>(sizeof box)));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(4), "r"(3), "r"(barrier)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{.reg .pred p;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
      "@!p bra again;}" ::"r"(barrier)
      : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) out[i] = box[i / 16][i % 16];
}

int tma() {
  constexpr int width = 64, height = 32;
  std::vector<float> in(width * height);
  std::iota(in.begin(), in.end(), 0.0f);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found));
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  CUtensorMap map;
  const cuuint64_t dims[] = {width, height}, strides[] = {width * 4};
  const cuuint32_t box[] = {16, 8}, steps[] = {1, 1};
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device(in), dims, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    return 1;
  }
  float* const out = device(std::vector<float>(128));
  copy_box<<<1, 32>>>(map, out);
  const std::vector<float> got = host(out, 128);
  for (int i = 0; i < 128; ++i) {
    if (got[i] != in[(3 + i / 16) * width + 4 + i % 16]) return 1;
  }
  return 0;
}

__global__ void through(int* out, int words) {
  extern __shared__ int room[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) room[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = room[words - 1] + words;
}

int shared() {
  constexpr int words = 25000;  // more than a block has without asking
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  int optin = 0;
  CHECK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  if (card.major != 9 || optin < words * 4) return 1;
  CHECK(cudaFuncSetAttribute(through, cudaFuncAttributeMaxDynamicSharedMemorySize, words * 4));
  int* const out = device(std::vector<int>(1));
  through<<<1, 64, words * 4>>>(out, words);
  return host(out, 1)[0] == 2 * words - 1 ? 0 : 1;
}

int threads() {
  constexpr int n = 256;
  std::vector<int> sums(4);
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&, t] {
      int* const a = device(std::vector<int>(n, t));
      int* const out = device(std::vector<int>(n));
      for (int i = 0; i < 3; ++i) add<<<1, n>>>(a, out, out, n);
      const std::vector<int> got = host(out, n);
      sums[t] = std::accumulate(got.begin(), got.end(), 0);
      // The error of one thread is none of another's.
      if (cudaGetLastError() != cudaSuccess) sums[t] = -1;
      if (t == 1 && cudaSetDevice(7) != cudaErrorInvalidDevice) sums[t] = -1;
    });
  }
  for (std::thread& each : all) each.join();
  for (int t = 0; t < 4; ++t) {
    if (sums[t] != 3 * n * t) return 1;
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}

__global__ void say(int n) {
  if (threadIdx.x == 0) printf("block %d of %d\n", blockIdx.x, n);
}

int prints() {
  std::printf("host\n");
  say<<<2, 32>>>(2);
  CHECK(cudaDeviceSynchronize());
  std::printf("host again\n");
  return 0;
}

// --- wrong ---------------------------------------------------------------------------------------

__global__ void deny(int n) {
  assert(n < 0);
}

int asserts() {
  deny<<<1, 1>>>(1);
  return cudaDeviceSynchronize() == cudaErrorAssert ? 0 : 3;
}

__global__ void unordered(int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = part[63 - threadIdx.x];
}

int race() {
  unordered<<<1, 64>>>(device(std::vector<int>(64)));
  CHECK(cudaDeviceSynchronize());
  return 0;
}

int bounds() {
  int* const a = device(counted(100));
  add<<<1, 128>>>(a, a, a, 128);
  const cudaError_t error = cudaDeviceSynchronize();
  int* more = nullptr;
  // Nothing works after it, as on a card.
  return error == cudaErrorIllegalAddress && cudaMalloc(&more, 4) == error ? 0 : 3;
}

int large() {
  int* const out = device(std::vector<int>(1));
  through<<<1, 64, 60000>>>(out, 15000);
  return cudaGetLastError() == cudaErrorInvalidValue ? 0 : 3;
}

int overrun() {
  int* const a = device(counted(4));
  return cudaMemset(a, 0, 20) == cudaErrorInvalidValue ? 0 : 3;
}

int missing() {
  cudaArray_t array;
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  return cudaMallocArray(&array, &format, 8, 8, 0) == cudaErrorNotSupported ? 0 : 3;
}

int dereference() {
  const volatile int* const a = device(counted(4));
  return a[0];
}

const std::map<std::string, int (*)()> kPrograms{{"vectors", vectors},
                                                 {"atomics", atomics},
                                                 {"transpose", transpose},
                                                 {"streams", streams},
                                                 {"managed", managed},
                                                 {"symbols", symbols},
                                                 {"cooperative", cooperative},
                                                 {"clusters", clusters},
                                                 {"tma", tma},
                                                 {"shared", shared},
                                                 {"threads", threads},
                                                 {"prints", prints},
                                                 {"asserts", asserts},
                                                 {"race", race},
                                                 {"bounds", bounds},
                                                 {"large", large},
                                                 {"overrun", overrun},
                                                 {"missing", missing},
                                                 {"dereference", dereference}};

}  // namespace

int main(int count, char** words) {
  const auto found = count == 2 ? kPrograms.find(words[1]) : kPrograms.end();
  if (found == kPrograms.end()) return 9;
  const int wrong = found->second();
  if (wrong != 0) std::printf("%s is wrong\n", words[1]);
  return wrong;
}
